//! A qdisc that drops, as it can be spoken of: why it does, by what it is and what it is set to, and what to do about it.

use crate::figure::{percent, speed};
use compact_str::CompactString;
use vnettop_sample::{QdiscCounters, QdiscSetting, shell_word};

/// `TC_H_ROOT`: the parent of a root.
pub(crate) const ROOT: u32 = u32::MAX;
/// Above what is offered, the rate that is proposed.
const ROOM: f64 = 1.1;
/// Below this part of a rate it is not reached on average.
const ENOUGH: f64 = 0.95;
/// A loss at random may be so many times what is set, and so much more, where it is of few packets.
const CHANCE: f64 = 2.0;
const FEW: f64 = 0.002;

/// A qdisc, and what it is set to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownQdisc {
    /// `TCA_KIND`
    pub kind: CompactString,
    /// `tcm_handle`
    pub handle: u32,
    /// `tcm_parent`; `0xffff_ffff` is the root.
    pub parent: u32,
    /// None where its kind is not read, and in recordings that do not tell.
    pub setting: Option<QdiscSetting>,
}

/// What comes to a qdisc, as far as that is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QdiscLoad {
    /// Bits/s, with what is dropped.
    pub offered_bits_per_s: Option<f64>,
    /// Share of the packets that is dropped.
    pub dropped: Option<f64>,
}

/// What a kind of qdisc drops for.
enum DropsBy {
    /// A rate of its own.
    Rate,
    /// Bursts that its queue is too short for: on average less comes than its rate.
    Bursts,
    /// Rates of its classes.
    Classes,
    /// A set loss, at random or by a model; this share of the packets, where it is known.
    Chance(Option<f64>),
    /// Time in the queue.
    Age,
    /// A full queue.
    Limit,
    /// A filter.
    Filter,
    Unknown,
}

impl From<&QdiscCounters> for KnownQdisc {
    fn from(row: &QdiscCounters) -> Self {
        Self { kind: row.kind.clone(), handle: row.handle, parent: row.parent, setting: row.setting }
    }
}

impl KnownQdisc {
    fn drops_by(&self, load: QdiscLoad) -> DropsBy {
        match self.kind.as_str() {
            // Without a limit of its own it drops what waits too long.
            "cake" if self.setting.is_none() => DropsBy::Age,
            "tbf" | "cake" => self.rate_or_bursts(load),
            "htb" | "hfsc" | "drr" => DropsBy::Classes,
            "netem" => self.by_chance(load).unwrap_or_else(|| match self.rate_bits_per_s() {
                Some(_) => self.rate_or_bursts(load),
                None => DropsBy::Limit,
            }),
            "fq_codel" | "codel" | "red" | "pie" | "sfq" | "fq" => DropsBy::Age,
            "ingress" | "clsact" => DropsBy::Filter,
            kind if kind.contains("fifo") => DropsBy::Limit,
            _ => DropsBy::Unknown,
        }
    }

    /// Chance alone drops hardly more than it is set to.
    fn by_chance(&self, load: QdiscLoad) -> Option<DropsBy> {
        let set = self.setting.and_then(|set| set.random_loss).map(|part| f64::from(part) / 2_f64.powi(32));
        let explains = |set: f64| set > 0.0 && load.dropped.is_none_or(|share| share <= CHANCE * set + FEW);
        set.is_none_or(explains).then_some(DropsBy::Chance(set))
    }

    fn rate_or_bursts(&self, load: QdiscLoad) -> DropsBy {
        let is_less = |(offered, rate): (f64, f64)| offered < ENOUGH * rate;
        let is_less = load.offered_bits_per_s.zip(self.rate_bits_per_s()).is_some_and(is_less);
        if is_less { DropsBy::Bursts } else { DropsBy::Rate }
    }

    /// The rate that it is set to, bits/s.
    #[must_use]
    pub fn rate_bits_per_s(&self) -> Option<f64> {
        self.setting?.rate_bytes_per_s.map(|bytes| bytes as f64 * 8.0)
    }

    /// Why it drops. `comes`: that more comes than can go on, as in `more is sent`.
    pub(crate) fn cause(&self, comes: &str, load: QdiscLoad) -> String {
        match self.drops_by(load) {
            DropsBy::Rate => match self.rate_bits_per_s() {
                Some(rate) => format!("{comes} than the {} that it is set to", speed(rate)),
                None => format!("{comes} than its rate"),
            },
            DropsBy::Bursts => {
                let rate = self.rate_bits_per_s().map_or_else(String::new, |rate| format!(", {}", speed(rate)));
                format!("bursts fill its queue; on average less comes than its rate{rate}")
            }
            DropsBy::Classes => format!("{comes} than the rate of its class"),
            DropsBy::Chance(Some(share)) => format!("it is set to drop {} % at random", percent(share)),
            DropsBy::Chance(None) => "it is set to drop some".to_owned(),
            DropsBy::Age => format!("{comes} than its link takes, and it drops what waits too long"),
            DropsBy::Limit => match self.setting {
                Some(QdiscSetting { limit_packets: Some(most), .. }) => format!("its queue of {most} packets is full"),
                Some(QdiscSetting { limit_bytes: Some(most), .. }) => format!("its queue of {most} bytes is full"),
                _ => "its queue is full".to_owned(),
            },
            DropsBy::Filter => "a filter there drops them".to_owned(),
            DropsBy::Unknown => "its queue is full, or it is set to drop".to_owned(),
        }
    }

    /// What to do about it, and the command for the link of this name.
    pub(crate) fn remedy(&self, link: &str, load: QdiscLoad) -> (&'static str, String) {
        let dev = format!("dev {}", shell_word(link));
        let look = format!("tc -s qdisc show {dev}");
        match self.drops_by(load) {
            DropsBy::Rate => {
                let raise = load.offered_bits_per_s.and_then(|offered| self.raised(&dev, offered));
                ("send less, or raise its rate above what comes", raise.unwrap_or(look))
            }
            DropsBy::Bursts => ("raise its burst or its limit", look),
            DropsBy::Classes => ("send less, or raise the rate of its class", format!("tc -s class show {dev}")),
            DropsBy::Chance(_) => ("remove that, unless it is part of the test", format!("tc qdisc show {dev}")),
            DropsBy::Age => ("send less", look),
            DropsBy::Limit => ("send less, or for bursts raise its limit", look),
            DropsBy::Filter => ("see which", format!("tc -s filter show {dev} ingress")),
            DropsBy::Unknown => ("see which", look),
        }
    }

    /// The command that gives room to what comes: the same delays at a higher rate. `None` where it is not known what it has now.
    fn raised(&self, dev: &str, offered_bits_per_s: f64) -> Option<String> {
        let rate = self.rate_bits_per_s().filter(|rate| *rate > 0.0)?;
        let wanted = two_digits_up(offered_bits_per_s.max(rate) * ROOM)?;
        let place = match self.parent {
            ROOT => "root".to_owned(),
            parent => format!("parent {:x}:{:x}", parent >> 16, parent & 0xffff),
        };
        let change = format!("tc qdisc change {dev} {place}");
        match self.kind.as_str() {
            "tbf" => {
                let (burst, limit) = (self.setting?.burst_bytes?, self.setting?.limit_bytes?);
                let scaled = |bytes: f64| (bytes * wanted / rate / 1e3).ceil() * 1e3;
                let (burst, limit) = (scaled(burst as f64), scaled(f64::from(limit)));
                Some(format!("{change} tbf rate {} burst {burst} limit {limit}", tc_rate(wanted)))
            }
            "cake" => Some(format!("{change} cake bandwidth {}", tc_rate(wanted))),
            _ => None,
        }
    }
}

/// At most two digits and zeros, not less than it was; `None` of what is no rate.
fn two_digits_up(bits_per_s: f64) -> Option<f64> {
    let step = 10_f64.powf(bits_per_s.log10().floor() - 1.0);
    Some((bits_per_s / step).ceil() * step).filter(|rate| rate.is_finite() && *rate >= 1.0)
}

/// As `tc` reads it.
fn tc_rate(bits_per_s: f64) -> String {
    let (scale, unit) = match bits_per_s {
        1e9.. => (1e9, "gbit"),
        1e6.. => (1e6, "mbit"),
        1e3.. => (1e3, "kbit"),
        _ => (1.0, "bit"),
    };
    format!("{}{unit}", (bits_per_s / scale * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(kind: &str, setting: QdiscSetting) -> KnownQdisc {
        let setting = Some(setting).filter(|set| *set != QdiscSetting::default());
        KnownQdisc { kind: kind.into(), handle: 0x8001_0000, parent: ROOT, setting }
    }

    fn tbf() -> KnownQdisc {
        let (rate_bytes_per_s, burst_bytes, limit_bytes) = (Some(12_500_000), Some(31_999), Some(60_000));
        known("tbf", QdiscSetting { rate_bytes_per_s, burst_bytes, limit_bytes, ..QdiscSetting::default() })
    }

    fn offered(bits_per_s: f64) -> QdiscLoad {
        QdiscLoad { offered_bits_per_s: Some(bits_per_s), dropped: None }
    }

    const UNKNOWN: QdiscLoad = QdiscLoad { offered_bits_per_s: None, dropped: None };

    #[test]
    fn a_set_rate_is_said_and_raised_with_its_delays() {
        assert_eq!(tbf().cause("more is sent", UNKNOWN), "more is sent than the 100 Mbit/s that it is set to");
        let raise = "tc qdisc change dev rb root tbf rate 230mbit burst 74000 limit 138000";
        let (fix, command) = tbf().remedy("rb", offered(2.07e8));
        assert_eq!((fix, command.as_str()), ("send less, or raise its rate above what comes", raise));
        assert_eq!(tbf().remedy("rb", UNKNOWN).1, "tc -s qdisc show dev rb", "nobody knows how much comes");
        let child = KnownQdisc { parent: 0x0001_000a, ..tbf() };
        assert_eq!(child.remedy("rb", offered(2.07e8)).1, raise.replace("root", "parent 1:a"));
        let rate_bytes_per_s = Some(125_000_000);
        let cake = known("cake", QdiscSetting { rate_bytes_per_s, ..QdiscSetting::default() });
        assert_eq!(cake.remedy("a b", offered(2e9)).1, "tc qdisc change dev 'a b' root cake bandwidth 2.2gbit");
        let unknown = known("tbf", QdiscSetting::default());
        assert_eq!(unknown.cause("more is sent", offered(2e8)), "more is sent than its rate");
        assert_eq!(unknown.remedy("rb", offered(2e8)).1, "tc -s qdisc show dev rb");
        for bits_per_s in [0.0, f64::NAN, f64::INFINITY] {
            let command = tbf().remedy("rb", offered(bits_per_s)).1;
            assert!(command.starts_with("tc ") && !command.contains("NaN") && !command.contains("inf"), "{command}");
        }
    }

    #[test]
    fn a_rate_that_is_not_reached_is_not_blamed() {
        let said = "bursts fill its queue; on average less comes than its rate, 100 Mbit/s";
        assert_eq!(tbf().cause("more is sent", offered(4e7)), said);
        assert_eq!(tbf().remedy("rb", offered(4e7)).0, "raise its burst or its limit");
        let unlimited = known("cake", QdiscSetting::default()).cause("more is sent", UNKNOWN);
        assert_eq!(unlimited, "more is sent than its link takes, and it drops what waits too long");
    }

    #[test]
    fn a_netem_that_drops_more_than_it_is_set_to_has_a_full_queue() {
        let netem = |random_loss, rate_bytes_per_s, dropped| {
            let limit_packets = Some(1_000);
            let set = QdiscSetting { random_loss, rate_bytes_per_s, limit_packets, ..QdiscSetting::default() };
            known("netem", set).cause("more is sent", QdiscLoad { offered_bits_per_s: None, dropped })
        };
        assert_eq!(netem(Some(429_496_730), None, Some(0.11)), "it is set to drop 10 % at random");
        assert_eq!(netem(Some(42_949_673), None, Some(0.4)), "its queue of 1000 packets is full", "not by 1 %");
        assert_eq!(netem(Some(0), None, None), "its queue of 1000 packets is full");
        assert_eq!(netem(Some(0), Some(125_000), None), "more is sent than the 1 Mbit/s that it is set to");
        assert_eq!(netem(None, None, Some(0.4)), "it is set to drop some", "a model");
        let old = known("netem", QdiscSetting::default()).cause("more is sent", UNKNOWN);
        assert_eq!(old, "it is set to drop some", "an old recording");
    }

    #[test]
    fn classes_and_filters_are_looked_at_where_they_are() {
        let other = |kind| known(kind, QdiscSetting::default()).remedy("eth0", offered(1e9)).1;
        assert_eq!(other("htb"), "tc -s class show dev eth0");
        assert_eq!(other("clsact"), "tc -s filter show dev eth0 ingress");
        assert_eq!(other("fq_codel"), "tc -s qdisc show dev eth0");
    }
}
