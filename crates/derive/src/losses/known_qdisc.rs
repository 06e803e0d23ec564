//! A qdisc that drops, as it can be spoken of: why it does, by what it is and what it is set to, and what to do about it.

use crate::figure::{percent, speed};
use compact_str::CompactString;
use vnettop_sample::{QdiscCounters, QdiscSetting, shell_word};

/// Above what is offered, the rate that is proposed.
const ROOM: f64 = 1.1;

/// A qdisc, and what it is set to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownQdisc {
    /// `TCA_KIND`
    pub kind: CompactString,
    /// `tcm_handle`
    pub handle: u32,
    /// None where its kind is not read, and in recordings that do not tell.
    pub setting: Option<QdiscSetting>,
}

/// What a kind of qdisc drops for.
enum DropsBy {
    /// A rate of its own.
    Rate,
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
        Self { kind: row.kind.clone(), handle: row.handle, setting: row.setting }
    }
}

impl KnownQdisc {
    fn drops_by(&self) -> DropsBy {
        match self.kind.as_str() {
            "tbf" | "cake" => DropsBy::Rate,
            "htb" | "hfsc" | "drr" => DropsBy::Classes,
            "netem" => match self.setting {
                Some(QdiscSetting { random_loss: Some(0), rate_bytes_per_s: Some(_), .. }) => DropsBy::Rate,
                Some(QdiscSetting { random_loss: Some(0), .. }) => DropsBy::Limit,
                set => {
                    DropsBy::Chance(set.and_then(|set| set.random_loss).map(|part| f64::from(part) / 2_f64.powi(32)))
                }
            },
            "fq_codel" | "codel" | "red" | "pie" | "sfq" | "fq" => DropsBy::Age,
            "ingress" | "clsact" => DropsBy::Filter,
            kind if kind.contains("fifo") => DropsBy::Limit,
            _ => DropsBy::Unknown,
        }
    }

    /// The rate that it is set to, bits/s.
    #[must_use]
    pub fn rate_bits_per_s(&self) -> Option<f64> {
        self.setting?.rate_bytes_per_s.map(|bytes| bytes as f64 * 8.0)
    }

    /// Why it drops. `comes`: that more comes than can go on, as in `more is sent`.
    pub(crate) fn cause(&self, comes: &str) -> String {
        match self.drops_by() {
            DropsBy::Rate => match self.rate_bits_per_s() {
                Some(rate) => format!("{comes} than the {} that it is set to", speed(rate)),
                None => format!("{comes} than its rate"),
            },
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

    /// What to do about it, and the command for the link of this name. `offered`: what comes to it, bits/s, where that is known.
    pub(crate) fn remedy(&self, link: &str, offered_bits_per_s: Option<f64>) -> (&'static str, String) {
        let dev = format!("dev {}", shell_word(link));
        let look = format!("tc -s qdisc show {dev}");
        match self.drops_by() {
            DropsBy::Rate => {
                let raise = offered_bits_per_s.and_then(|offered| self.raised(&dev, offered));
                ("raise its rate above what comes, or send less", raise.unwrap_or(look))
            }
            DropsBy::Classes => ("raise the rate of its class, or send less", format!("tc -s class show {dev}")),
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
        let change = format!("tc qdisc change {dev} root");
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
        _ => (1e3, "kbit"),
    };
    format!("{}{unit}", (bits_per_s / scale * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(kind: &str, setting: QdiscSetting) -> KnownQdisc {
        KnownQdisc {
            kind: kind.into(),
            handle: 0x8001_0000,
            setting: Some(setting).filter(|set| *set != QdiscSetting::default()),
        }
    }

    fn tbf() -> KnownQdisc {
        let (rate_bytes_per_s, burst_bytes, limit_bytes) = (Some(12_500_000), Some(31_999), Some(60_000));
        known("tbf", QdiscSetting { rate_bytes_per_s, burst_bytes, limit_bytes, ..QdiscSetting::default() })
    }

    #[test]
    fn a_set_rate_is_said_and_raised_with_its_delays() {
        assert_eq!(tbf().cause("more is sent"), "more is sent than the 100 Mbit/s that it is set to");
        let raise = "tc qdisc change dev rb root tbf rate 230mbit burst 74000 limit 138000";
        assert_eq!(
            tbf().remedy("rb", Some(2.07e8)),
            ("raise its rate above what comes, or send less", raise.to_owned())
        );
        assert_eq!(tbf().remedy("rb", None).1, "tc -s qdisc show dev rb", "nobody knows how much comes");
        let rate_bytes_per_s = Some(125_000_000);
        let cake = known("cake", QdiscSetting { rate_bytes_per_s, ..QdiscSetting::default() });
        assert_eq!(cake.remedy("a b", Some(2e9)).1, "tc qdisc change dev 'a b' root cake bandwidth 2.2gbit");
        let unknown = known("tbf", QdiscSetting::default());
        assert_eq!(unknown.cause("more is sent"), "more is sent than its rate");
        assert_eq!(unknown.remedy("rb", Some(2.07e8)).1, "tc -s qdisc show dev rb");
        for offered in [0.0, f64::NAN, f64::INFINITY] {
            let command = tbf().remedy("rb", Some(offered)).1;
            assert!(command.starts_with("tc ") && !command.contains("NaN") && !command.contains("inf"), "{command}");
        }
    }

    #[test]
    fn a_netem_that_drops_nothing_at_random_has_a_full_queue() {
        let netem = |random_loss, rate_bytes_per_s| {
            let limit_packets = Some(1_000);
            known("netem", QdiscSetting { random_loss, rate_bytes_per_s, limit_packets, ..QdiscSetting::default() })
                .cause("more is sent")
        };
        assert_eq!(netem(Some(429_496_730), None), "it is set to drop 10 % at random");
        assert_eq!(netem(Some(0), None), "its queue of 1000 packets is full");
        assert_eq!(netem(Some(0), Some(125_000)), "more is sent than the 1 Mbit/s that it is set to");
        assert_eq!(netem(None, None), "it is set to drop some", "a model");
        assert_eq!(
            known("netem", QdiscSetting::default()).cause("more is sent"),
            "it is set to drop some",
            "an old recording"
        );
    }

    #[test]
    fn classes_and_filters_are_looked_at_where_they_are() {
        let other = |kind| known(kind, QdiscSetting::default()).remedy("eth0", Some(1e9)).1;
        assert_eq!(other("htb"), "tc -s class show dev eth0");
        assert_eq!(other("clsact"), "tc -s filter show dev eth0 ingress");
        assert_eq!(other("fq_codel"), "tc -s qdisc show dev eth0");
    }
}
