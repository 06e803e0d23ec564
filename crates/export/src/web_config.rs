//! The file of `--web.config.file`, in the form that Prometheus' exporters share (exporter-toolkit): TLS and users.

use super::access::AccessRules;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// The longest file: of some thousand users.
const MOST_BYTES: u64 = 1 << 20;

/// Costs of a hash; one more takes twice as long. Of 16 a check takes some seconds.
const COSTS: std::ops::RangeInclusive<u32> = 4..=16;

/// What is wrong with the file, and where.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}", path = .path.display())]
pub struct WebConfigError {
    path: PathBuf,
    reason: String,
}

/// What the file asks for.
#[derive(Default)]
pub(super) struct Secured {
    pub tls: Option<TlsAcceptor>,
    pub access: AccessRules,
    /// The file itself, and those that it names.
    pub files: Vec<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tls_server_config: Option<Tls>,
    #[serde(default)]
    basic_auth_users: BTreeMap<String, String>,
    /// Taken as it is: there is no HTTP/2 here either way.
    #[serde(rename = "http_server_config")]
    _http: Option<HttpServer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpServer {
    #[serde(rename = "http2")]
    _http2: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tls {
    cert_file: PathBuf,
    key_file: PathBuf,
    client_auth_type: Option<ClientAuth>,
    client_ca_file: Option<PathBuf>,
    #[serde(default)]
    min_version: LeastVersion,
}

/// Go's names.
#[derive(Deserialize, Clone, Copy, PartialEq)]
enum ClientAuth {
    NoClientCert,
    RequireAndVerifyClientCert,
    VerifyClientCertIfGiven,
}

#[derive(Deserialize, Clone, Copy, Default)]
enum LeastVersion {
    #[default]
    #[serde(rename = "TLS12")]
    Tls12,
    #[serde(rename = "TLS13")]
    Tls13,
}

impl Secured {
    pub fn read(path: &Path) -> Result<Self, WebConfigError> {
        let failed = |path: &Path, reason: String| WebConfigError { path: path.to_owned(), reason };
        let text = text_of(path).map_err(|error| failed(path, format!("cannot be read: {error}")))?;
        if text.trim().is_empty() {
            return Err(failed(path, "it is empty: give it tls_server_config or basic_auth_users".to_owned()));
        }
        let file: File = serde_saphyr::from_str(&text).map_err(|error| {
            let first_line = error.to_string().lines().next().unwrap_or_default().to_owned();
            failed(path, first_line)
        })?;
        let mut highest = 4;
        for (user, hash) in &file.basic_auth_users {
            let cost = hash.parse().map(|parts: bcrypt::HashParts| parts.get_cost()).ok();
            let Some(cost) = cost.filter(|cost| COSTS.contains(cost)) else {
                let reason = format!("password of {user:?} is no bcrypt hash of cost 4 to 16: htpasswd -nBC 10 USER");
                return Err(failed(path, reason));
            };
            highest = highest.max(cost);
        }
        // Relative paths in the file start at its own folder.
        let folder = path.parent().unwrap_or(Path::new("."));
        let named = file.tls_server_config.iter().flat_map(Tls::files).map(|named| folder.join(named));
        let files = std::iter::once(path.to_owned()).chain(named).collect();
        let tls =
            file.tls_server_config.map(|tls| tls.acceptor(folder)).transpose().map_err(|(at, why)| failed(&at, why))?;
        Ok(Self { tls, access: AccessRules::of(file.basic_auth_users, highest), files })
    }
}

/// The text of a plain file, which is not waited for and has an end.
fn text_of(path: &Path) -> io::Result<String> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = String::new();
    if file.take(MOST_BYTES + 1).read_to_string(&mut text)? as u64 > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is longer than 1 MiB"));
    }
    Ok(text)
}

impl Tls {
    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.cert_file, &self.key_file].into_iter().chain(&self.client_ca_file)
    }

    fn acceptor(self, folder: &Path) -> Result<TlsAcceptor, (PathBuf, String)> {
        let certificate = folder.join(&self.cert_file);
        let chain = certificates(&certificate)?;
        let key_file = folder.join(&self.key_file);
        let key = PrivateKeyDer::from_pem_file(&key_file)
            .map_err(|error| (key_file.clone(), format!("no private key: {error}")))?;
        let both: &[&SupportedProtocolVersion] = match self.min_version {
            LeastVersion::Tls12 => &[&version::TLS13, &version::TLS12],
            LeastVersion::Tls13 => &[&version::TLS13],
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let refused = |error: rustls::Error| (certificate.clone(), format!("cannot be used for TLS: {error}"));
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(both).map_err(refused)?;
        let kind = self.client_auth_type.unwrap_or(ClientAuth::NoClientCert);
        let builder = match (self.client_ca_file, kind) {
            (None, ClientAuth::NoClientCert) => builder.with_no_client_auth(),
            (None, _) => return Err((certificate, "client_auth_type needs client_ca_file".to_owned())),
            (Some(_), ClientAuth::NoClientCert) => {
                return Err((
                    certificate,
                    "client_ca_file needs client_auth_type: RequireAndVerifyClientCert".to_owned(),
                ));
            }
            (Some(ca), kind) => {
                let ca = folder.join(ca);
                let mut roots = RootCertStore::empty();
                for one in certificates(&ca)? {
                    roots.add(one).map_err(|error| (ca.clone(), format!("cannot be used: {error}")))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let optional = kind == ClientAuth::VerifyClientCertIfGiven;
                let verifier = if optional { verifier.allow_unauthenticated() } else { verifier };
                let verifier = verifier.build().map_err(|error| (ca, format!("cannot be used: {error}")))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(refused)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, (PathBuf, String)> {
    let failed = |why: String| (path.to_owned(), why);
    let all = CertificateDer::pem_file_iter(path).map_err(|error| failed(format!("no certificate: {error}")))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| failed(format!("no certificate: {error}")))?;
    if all.is_empty() { Err(failed("no certificate in it".to_owned())) } else { Ok(all) }
}
