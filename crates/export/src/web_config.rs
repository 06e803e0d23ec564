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
    /// Certificates that a client's own has to come from; empty where clients need none.
    pub clients: Vec<CertificateDer<'static>>,
    pub access: Arc<AccessRules>,
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
        let unread = |error: &dyn std::fmt::Display| failed(path, format!("cannot be read: {error}"));
        let bytes = bytes_of(path).map_err(|error| unread(&error))?;
        let text = String::from_utf8(bytes).map_err(|error| unread(&error))?;
        if text.trim().is_empty() {
            return Err(failed(path, "it is empty: give it tls_server_config or basic_auth_users".to_owned()));
        }
        let file: File = serde_saphyr::from_str(&text).map_err(|error| {
            let first_line = error.to_string().lines().next().unwrap_or_default().to_owned();
            failed(path, first_line)
        })?;
        if file.tls_server_config.is_none() && file.basic_auth_users.is_empty() {
            let reason = "it has no passwords and no TLS: add tls_server_config or basic_auth_users";
            return Err(failed(path, reason.to_owned()));
        }
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
        let tls = file.tls_server_config.map(|tls| tls.acceptor(folder)).transpose();
        let (tls, clients) = tls.map_err(|(at, why)| failed(&at, why))?.unzip();
        let access = Arc::new(AccessRules::of(file.basic_auth_users, highest));
        Ok(Self { tls, clients: clients.unwrap_or_default(), access, files })
    }

    /// What was read anew, in the place of this.
    ///
    /// # Errors
    /// It guards less: that takes a restart.
    pub fn followed_by(&self, mut next: Self, path: &Path) -> Result<Self, WebConfigError> {
        let failed = |what: &str| WebConfigError {
            path: path.to_owned(),
            reason: format!("it no longer has {what}, which only a restart takes away"),
        };
        if self.tls.is_some() && next.tls.is_none() {
            return Err(failed("tls_server_config"));
        }
        if !self.clients.is_empty() && next.clients.is_empty() {
            return Err(failed("client_ca_file"));
        }
        if !self.access.is_open() && next.access.is_open() {
            return Err(failed("basic_auth_users"));
        }
        // Who was let in with a password needs no second check of it.
        if self.access.has_users_of(&next.access) {
            next.access = Arc::clone(&self.access);
        }
        Ok(next)
    }

    /// A connection that was accepted under the other is let in by the same rules as one that comes now.
    pub fn lets_in_as(&self, other: &Self) -> bool {
        self.tls.is_some() == other.tls.is_some() && self.clients == other.clients
    }
}

/// What a plain file holds, which is not waited for and has an end.
fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    if file.take(MOST_BYTES + 1).read_to_end(&mut bytes)? as u64 > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is longer than 1 MiB"));
    }
    Ok(bytes)
}

impl Tls {
    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.cert_file, &self.key_file].into_iter().chain(&self.client_ca_file)
    }

    /// With the certificates that a client's own has to come from; none where clients need none.
    fn acceptor(self, folder: &Path) -> Result<(TlsAcceptor, Vec<CertificateDer<'static>>), (PathBuf, String)> {
        let certificate = folder.join(&self.cert_file);
        let chain = certificates(&certificate)?;
        let key_file = folder.join(&self.key_file);
        let bytes = bytes_of(&key_file).map_err(|error| (key_file.clone(), format!("cannot be read: {error}")))?;
        let key = PrivateKeyDer::from_pem_slice(&bytes)
            .map_err(|error| (key_file.clone(), format!("no private key: {error}")))?;
        let both: &[&SupportedProtocolVersion] = match self.min_version {
            LeastVersion::Tls12 => &[&version::TLS13, &version::TLS12],
            LeastVersion::Tls13 => &[&version::TLS13],
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let refused = |error: rustls::Error| (certificate.clone(), format!("cannot be used for TLS: {error}"));
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(both).map_err(refused)?;
        let mut clients = Vec::new();
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
                clients = certificates(&ca)?;
                for one in &clients {
                    roots.add(one.clone()).map_err(|error| (ca.clone(), format!("cannot be used: {error}")))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let optional = kind == ClientAuth::VerifyClientCertIfGiven;
                let verifier = if optional { verifier.allow_unauthenticated() } else { verifier };
                let verifier = verifier.build().map_err(|error| (ca, format!("cannot be used: {error}")))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(refused)?;
        Ok((TlsAcceptor::from(Arc::new(config)), clients))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, (PathBuf, String)> {
    let failed = |why: String| (path.to_owned(), why);
    let bytes = bytes_of(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
    let all = CertificateDer::pem_slice_iter(&bytes);
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| failed(format!("no certificate: {error}")))?;
    if all.is_empty() { Err(failed("no certificate in it".to_owned())) } else { Ok(all) }
}
