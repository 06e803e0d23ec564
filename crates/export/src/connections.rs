//! Every connection, from its start to its end.

use super::access::Admission;
use super::gate::Gate;
use super::listener::{ClientStream, Listener};
use super::scrape::ScrapeHandover;
use super::web_config::Secured;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// Connections at once. A Prometheus keeps one; a pair of them, a browser and a check make a few more.
const MOST: usize = 128;
/// Of them from one address: whoever floods keeps the others' places free.
const MOST_OF_SOURCE: usize = 96;
/// Who asks for more within [`BURST`] is no scraper, and gives way to one.
const MOST_ASKED: u32 = 20;
const BURST: Duration = Duration::from_secs(10);
/// How long a new one waits while all others wait for their answers, and how often it looks.
const TURN: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);
/// Without a whole request for so long, a connection is closed: longer than from scrape to scrape of most.
const IDLE: Duration = Duration::from_secs(75);
const HANDSHAKE: Duration = Duration::from_secs(10);
/// All of a request's header; hyper's least.
const MOST_HEADER: usize = 8192;
/// Out of descriptors, most likely: some will be closed.
const BREATHE: Duration = Duration::from_millis(100);

const PAGE: &str = concat!(
    "<!doctype html><html lang=\"en\"><title>vnettop</title><h1>vnettop</h1>",
    "<p><a href=\"/metrics\">Metrics</a> for Prometheus</p></html>\n"
);

/// As exporters of Prometheus call it.
const HEALTHY: &str = "/-/healthy";

/// One that is open.
struct OpenConnection {
    task: AbortHandle,
    uses: Arc<Uses>,
    source: Option<IpAddr>,
}

/// What a connection does, for whoever decides which one gives way.
struct Uses {
    began: Instant,
    /// One that may ask waits for its answer.
    is_asking: AtomicBool,
    /// When that was so last, ms after it began.
    asked_ms: AtomicU64,
    /// Its client takes nothing of what is written.
    is_stalled: Arc<AtomicBool>,
    /// How often it has asked since then, ms after it began.
    burst: AtomicU32,
    burst_ms: AtomicU64,
}

/// Who gives way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GivesWay {
    /// Its answers are not read: what it asks for it does not want.
    Unread,
    /// It asks as nobody does who reads the answers.
    Greedy,
    /// It asks for nothing.
    Quiet,
}

impl Uses {
    fn new(is_stalled: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            is_asking: AtomicBool::new(false),
            asked_ms: AtomicU64::new(0),
            is_stalled,
            burst: AtomicU32::new(0),
            burst_ms: AtomicU64::new(0),
        })
    }

    fn asks(&self, whether: bool) {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.asked_ms.store(now_ms, Ordering::Relaxed);
        self.is_asking.store(whether, Ordering::Relaxed);
        if whether {
            if now_ms.saturating_sub(self.burst_ms.load(Ordering::Relaxed))
                > u64::try_from(BURST.as_millis()).unwrap_or(u64::MAX)
            {
                self.burst_ms.store(now_ms, Ordering::Relaxed);
                self.burst.store(0, Ordering::Relaxed);
            }
            self.burst.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether and how soon it gives way, and since when it has asked for nothing; none while it waits for an answer as a scraper does.
    fn gives_way(&self) -> Option<(GivesWay, Instant)> {
        let since = self.began + Duration::from_millis(self.asked_ms.load(Ordering::Relaxed));
        let kind = if self.is_stalled.load(Ordering::Relaxed) {
            GivesWay::Unread
        } else if self.burst.load(Ordering::Relaxed) > MOST_ASKED {
            GivesWay::Greedy
        } else if self.is_asking.load(Ordering::Relaxed) {
            return None;
        } else {
            GivesWay::Quiet
        };
        Some((kind, since))
    }
}

/// Closes one of these: whose answers are not read, who asks without end, who has asked for nothing for the longest. False where
/// all wait for their answers.
fn make_room(open: &mut Vec<OpenConnection>, of: impl Fn(&OpenConnection) -> bool) -> bool {
    let ready = open.iter().enumerate().filter(|(_, one)| of(one));
    let first = ready.filter_map(|(at, one)| Some((one.uses.gives_way()?, at))).min().map(|(_, at)| at);
    first.map(|at| open.swap_remove(at)).inspect(|one| one.task.abort()).is_some()
}

/// Whether one more from there is served: where there is no room, one of the others has given way, from the same place if that
/// has its share already.
fn has_room(open: &mut Vec<OpenConnection>, source: Option<IpAddr>) -> bool {
    open.retain(|one| !one.task.is_finished());
    let is_its = |one: &OpenConnection| source.is_some() && one.source == source;
    if open.iter().filter(|one| is_its(one)).count() >= MOST_OF_SOURCE {
        return make_room(open, is_its);
    }
    open.len() < MOST || make_room(open, |_| true)
}

/// Accepts for ever.
pub(super) async fn serve(listener: Listener, gate: Arc<Gate>, handover: ScrapeHandover) {
    let Ok(accepting) = listener.accepting() else { return };
    let mut open: Vec<OpenConnection> = Vec::new();
    loop {
        let Ok((stream, source)) = accepting.accept().await else {
            make_room(&mut open, |_| true);
            tokio::time::sleep(BREATHE).await;
            continue;
        };
        // Connections that wait for their answers are not closed for this one, which waits for a place: the answers come soon.
        let until = Instant::now() + TURN;
        let mut is_served = has_room(&mut open, source);
        while !is_served && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
            is_served = has_room(&mut open, source);
        }
        if !is_served {
            continue;
        }
        let uses = Uses::new(stream.is_stalled());
        let accepted = gate.now();
        let tls = accepted.tls.clone();
        let service =
            Service { gate: Arc::clone(&gate), accepted, handover: handover.clone(), uses: Arc::clone(&uses) };
        let task = match tls {
            None => tokio::spawn(service.connection(stream)),
            Some(tls) => tokio::spawn(service.encrypted(tls, stream)),
        };
        open.push(OpenConnection { task: task.abort_handle(), uses, source });
    }
}

#[derive(Clone)]
struct Service {
    gate: Arc<Gate>,
    /// What held when it was accepted.
    accepted: Arc<Secured>,
    handover: ScrapeHandover,
    uses: Arc<Uses>,
}

impl Service {
    async fn encrypted(self, tls: TlsAcceptor, stream: ClientStream) {
        if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
            self.connection(stream).await;
        }
    }

    async fn connection(self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let service = service_fn(move |request| {
            let one = self.clone();
            async move { Ok::<_, Infallible>(one.respond(request).await) }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(MOST_HEADER).half_close(false);
        // Whatever went wrong is the client's, and it knows.
        let _closed = builder.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn respond(self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let secured = self.gate.now();
        let mut response = if secured.lets_in_as(&self.accepted) {
            self.response(&request, &secured).await
        } else {
            plain(StatusCode::SERVICE_UNAVAILABLE, "who may connect has changed, connect again\n", None)
        };
        if !Arc::ptr_eq(&secured, &self.accepted) {
            // The next one is shown the certificate of now.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self.uses.asks(false);
        response
    }

    async fn response(&self, request: &Request<Incoming>, secured: &Secured) -> Response<Full<Bytes>> {
        // It says nothing but that, and probes have no password.
        if request.uri().path() == HEALTHY && [Method::GET, Method::HEAD].contains(request.method()) {
            return match self.handover.freshness.check() {
                Ok(()) => plain(StatusCode::OK, "samples come\n", None),
                Err(text) => {
                    let body = Full::new(Bytes::from(text));
                    with_type(StatusCode::SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", body)
                }
            };
        }
        let header = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
        match secured.access.check(header(AUTHORIZATION)).await {
            Admission::Allowed => self.uses.asks(true),
            Admission::Refused => {
                let challenge = (WWW_AUTHENTICATE, "Basic realm=\"vnettop\"");
                return plain(StatusCode::UNAUTHORIZED, "user and password needed\n", Some(challenge));
            }
            Admission::Busy => {
                return plain(StatusCode::SERVICE_UNAVAILABLE, "too many passwords to check, try again\n", None);
            }
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD only\n", Some((ALLOW, "GET, HEAD")));
        }
        match request.uri().path() {
            "/metrics" => match self.handover.ask(header(ACCEPT).map(str::to_owned)).await {
                Some(answer) => with_type(StatusCode::OK, answer.content_type, answer.body()),
                None => plain(StatusCode::SERVICE_UNAVAILABLE, "no sample yet, try again\n", None),
            },
            "/" => {
                with_type(StatusCode::OK, "text/html; charset=utf-8", Full::new(Bytes::from_static(PAGE.as_bytes())))
            }
            _ => plain(StatusCode::NOT_FOUND, "not here: see /metrics\n", None),
        }
    }
}

fn plain(status: StatusCode, text: &'static str, header: Option<(HeaderName, &'static str)>) -> Response<Full<Bytes>> {
    let mut response = with_type(status, "text/plain; charset=utf-8", Full::new(Bytes::from_static(text.as_bytes())));
    if let Some((name, value)) = header {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn with_type(status: StatusCode, content_type: &'static str, body: Full<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
