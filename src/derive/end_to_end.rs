//! stub
use super::paths::HopMetrics;
use super::flow::Connection;
use super::{Jitter, Loss, Metrics, Test, ThreadMetrics};
use std::net::SocketAddr;
pub struct HostMetrics<'a> { pub name: &'a str, pub metrics: &'a Metrics }
pub struct EndToEnd<'a> { pub sender: HostEnd<'a>, pub receiver: HostEnd<'a>, pub hops: Vec<HostHop<'a>>, pub gaps: Vec<(usize, &'a str)>, pub losses: Vec<HostLoss<'a>>, pub findings: Vec<String> }
pub struct HostEnd<'a> { pub host: usize, pub test: &'a Test, pub connection: &'a Connection, pub address: SocketAddr, pub pid: Option<u32>, pub netns: Option<u64>, pub threads: Vec<&'a ThreadMetrics>, pub bits_per_s: Option<f64>, pub retransmits_per_s: Option<f64>, pub jitter: Option<Jitter>, pub streams: usize }
pub struct HostHop<'a> { pub host: usize, pub hop: HopMetrics<'a> }
pub struct HostLoss<'a> { pub host: usize, pub loss: &'a Loss, pub packets_per_s: Option<f64> }
pub fn end_to_end<'a>(_hosts: &[HostMetrics<'a>]) -> Vec<EndToEnd<'a>> { Vec::new() }
