//! Asks a Prometheus server: one instant query after the other over its HTTP API. It knows nothing of what is asked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::http::StatusCode;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// How long the server may take for one query.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest answer that is read: of some 10,000 hosts.
const MOST_BYTES: u64 = 32 << 20;
/// Where distributions keep the certificates that they trust.
const TRUSTED: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// A server that answers queries.
pub struct Prometheus {
    agent: Agent,
    /// Without user and password, and without a slash at its end.
    url: String,
    /// `Authorization`, where the URL has a user.
    authorization: Option<String>,
}

/// One element of an answer: what it is of, and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value; never NaN or infinite.
    pub value: f64,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum PrometheusError {
    /// The URL is none that can be asked.
    #[error("no URL of a Prometheus: give http://HOST:9090 or https://USER:PASSWORD@HOST")]
    Url,
    /// Nobody answers, or not in HTTP.
    #[error("cannot ask Prometheus at {url}: {reason}; is this its URL, and does it run?")]
    Unreachable {
        /// What was asked.
        url: String,
        /// Why.
        reason: String,
    },
    /// It answers, but not this.
    #[error("Prometheus at {url} refuses the query: {reason}")]
    Refused {
        /// What was asked.
        url: String,
        /// Its own words.
        reason: String,
    },
    /// Not the answer of a Prometheus.
    #[error("{url} does not answer as Prometheus does: {reason}")]
    NoPrometheus {
        /// What was asked.
        url: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The file of trusted certificates.
    #[error("{path}: {reason}")]
    Certificates {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
}

#[derive(Deserialize)]
struct ApiReply {
    status: String,
    error: Option<String>,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    kind: String,
    result: Vec<VectorElement>,
}

#[derive(Deserialize)]
struct VectorElement {
    metric: BTreeMap<String, String>,
    value: (f64, String),
}

impl Prometheus {
    /// One at this URL, whose certificate one in `authorities` has signed, or one that the system trusts. It is asked directly,
    /// whatever proxy the environment names.
    ///
    /// # Errors
    /// The URL is none, or the file of certificates cannot be read.
    pub fn at(url: &str, authorities: Option<&Path>) -> Result<Self, PrometheusError> {
        let (scheme, rest) = url.split_once("://").ok_or(PrometheusError::Url)?;
        if !["http", "https"].contains(&scheme) || rest.is_empty() {
            return Err(PrometheusError::Url);
        }
        // A password may have a slash in it; a host has no @.
        let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
        let authorization = user.map(|user| {
            let decoded: Vec<u8> = percent_decode_str(user).collect();
            format!("Basic {}", STANDARD.encode(decoded))
        });
        let config = Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false);
        // It answers itself, or not: an answer that leads elsewhere is not followed.
        let mut config = config.proxy(None).max_redirects(0);
        let trusted = match authorities {
            Some(path) => Some(certificates(path)?),
            None => TRUSTED.iter().find_map(|path| certificates(Path::new(path)).ok()),
        };
        if let Some(trusted) = trusted {
            let tls = TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(trusted))).build();
            config = config.tls_config(tls);
        }
        let url = format!("{scheme}://{}", host.trim_end_matches('/'));
        Ok(Self { agent: config.build().new_agent(), url, authorization })
    }

    /// What an expression is now; elements that are no number are left away.
    ///
    /// # Errors
    /// There is no answer, or not one to this.
    pub fn query(&self, expression: &str) -> Result<Vec<Element>, PrometheusError> {
        let unreachable =
            |error: ureq::Error| PrometheusError::Unreachable { url: self.url.clone(), reason: error.to_string() };
        let asked = format!("{}/api/v1/query", self.url);
        let mut request = self.agent.get(asked).query("query", expression);
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let mut response = request.call().map_err(unreachable)?;
        let status = response.status();
        let text = response.body_mut().with_config().limit(MOST_BYTES).read_to_string().map_err(unreachable)?;
        elements(&text, status, &self.url)
    }
}

/// What an answer says.
fn elements(text: &str, status: StatusCode, url: &str) -> Result<Vec<Element>, PrometheusError> {
    let shown = || url.to_owned();
    let reply: ApiReply = match serde_json::from_str(text) {
        Ok(reply) => reply,
        Err(_) if !status.is_success() => {
            let reason = match status.as_u16() {
                401 | 403 => format!("HTTP status {status}: give a user as https://USER:PASSWORD@HOST"),
                _ => format!("HTTP status {status}: give the URL of its start page, as http://HOST:9090"),
            };
            return Err(PrometheusError::NoPrometheus { url: shown(), reason });
        }
        Err(error) => return Err(PrometheusError::NoPrometheus { url: shown(), reason: error.to_string() }),
    };
    let Some(data) = reply.data.filter(|_| reply.status == "success") else {
        let reason = reply.error.unwrap_or_else(|| format!("HTTP status {status}"));
        return Err(PrometheusError::Refused { url: shown(), reason: crate::text::clean(reason.as_bytes()) });
    };
    if data.kind != "vector" {
        return Err(PrometheusError::NoPrometheus {
            url: shown(),
            reason: crate::text::clean(format!("{} for a vector", data.kind).as_bytes()),
        });
    }
    Ok(data.result.iter().filter_map(Element::of).collect())
}

impl Element {
    fn of(element: &VectorElement) -> Option<Self> {
        let value = element.value.1.parse().ok().filter(|value: &f64| value.is_finite())?;
        let clean = |text: &String| crate::text::clean(text.as_bytes());
        let labels = element.metric.iter().map(|(name, value)| (clean(name), clean(value))).collect();
        Some(Self { labels, value })
    }
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, PrometheusError> {
    let failed = |reason: String| PrometheusError::Certificates { path: path.display().to_string(), reason };
    let bytes = fs::read(path).map_err(|error| failed(error.to_string()))?;
    let items = parse_pem(&bytes).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let all: Vec<_> = items.collect();
    if all.is_empty() { Err(failed("no certificate in it".to_owned())) } else { Ok(all) }
}

/// What a fuzzer gives the parser of answers.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz(text: &str) {
    for status in [StatusCode::OK, StatusCode::NOT_FOUND] {
        if let Err(error) = elements(text, status, "http://127.0.0.1:9090") {
            let sentence = error.to_string();
            assert!(!sentence.chars().any(char::is_control), "{sentence:?} steers no terminal");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that gives one answer.
    fn answers(status: &str, body: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://ada:secret@{}", listener.local_addr().expect("an address"));
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("asked");
            let _request = stream.read(&mut [0; 4096]);
            stream.write_all(answer.as_bytes()).expect("answered");
        });
        url
    }

    fn asked(status: &str, body: &str) -> Result<Vec<Element>, String> {
        let prometheus = Prometheus::at(&answers(status, body), None).expect("certificates are not needed");
        prometheus.query("up").map_err(|error| error.to_string())
    }

    #[test]
    fn a_vector_is_read_and_what_is_no_number_is_left_away() {
        let body = r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"instance":"kp1:9782"},"value":[1.5,"42.5"]},
            {"metric":{"instance":"kp2:9782"},"value":[1.5,"NaN"]}]}}"#;
        let elements = asked("200 OK", body).expect("an answer");
        let labels = BTreeMap::from([("instance".to_owned(), "kp1:9782".to_owned())]);
        assert_eq!(elements, [Element { labels, value: 42.5 }]);
    }

    #[test]
    fn every_other_answer_is_one_sentence_without_the_password() {
        let error = r#"{"status":"error","errorType":"bad_data","error":"parse \u001b[31merror"}"#;
        let scalar = r#"{"status":"success","data":{"resultType":"scalar","result":[]}}"#;
        for (status, body, expected) in [
            ("400 Bad Request", error, "refuses the query: parse ?[31merror"),
            ("401 Unauthorized", "no", "HTTP status 401"),
            ("200 OK", "<html>", "not answer as Prometheus does"),
            ("200 OK", scalar, "scalar for a vector"),
            ("200 OK", &scalar.replace("scalar", "\\u001b[31m"), "?[31m for a vector"),
            ("200 OK", "", "not answer as Prometheus does"),
        ] {
            let sentence = asked(status, body).expect_err("no answer");
            assert!(sentence.contains(expected) && !sentence.contains("secret"), "{body}: {sentence}");
        }
        for url in ["ada:secret@prometheus:9090", "prometheus", "ftp://ada:secret@host", "http://"] {
            let sentence = Prometheus::at(url, None).err().expect("no URL").to_string();
            assert!(sentence.contains("http://HOST:9090") && !sentence.contains("secret"), "{url}: {sentence}");
        }
        let slash = Prometheus::at("http://ada:sec%2Fr/et@127.0.0.1:1/", None).expect("made");
        assert_eq!(slash.authorization, Some(format!("Basic {}", STANDARD.encode("ada:sec/r/et"))));
        let nobody = slash;
        let sentence = nobody.query("up").expect_err("nobody answers").to_string();
        assert!(sentence.starts_with("cannot ask Prometheus at http://127.0.0.1:1: "), "{sentence}");
    }
}
