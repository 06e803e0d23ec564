//! The only arithmetic of units: numbers of `Metrics` → the few characters of a cell. Unknown is `–`, never 0; nothing
//! is ever shown as `1000k`.

use crate::derive::{Basis, LinkMetrics, Metrics};
use crate::state::Units;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// What stands for a number that is not known.
pub(crate) const UNKNOWN: &str = "–";

const SUFFIXES: [char; 6] = ['k', 'M', 'G', 'T', 'P', 'E'];

/// How many digits of a number matter.
#[derive(Clone, Copy, PartialEq)]
enum Digits {
    Two,
    Three,
}

/// A rate from bits a second, in bits or bytes, SI, three digits: `34.8G`.
pub(crate) struct Rate(pub Option<f64>, pub Units);

/// Things a second, SI, two digits: `2.9M`.
pub(crate) struct Count(pub Option<f64>);

/// A share as percent without its sign: `98`, `0.3`.
pub(crate) struct Percent(pub Option<f64>);

/// Bytes, exact while they fit five characters.
pub(crate) struct Bytes(pub Option<f64>);

/// A multiple: `3.5×`.
pub(crate) struct Times(pub f64);

/// A total, exact while it fits six characters.
pub(crate) struct Total(pub u64);

/// A claimed speed and its basis: `10G const`.
pub(crate) struct Claim {
    /// The speed, Mb/s.
    pub mbps: Option<u32>,
    /// What it is worth.
    pub basis: Basis,
    /// Ports, for a bridge.
    pub ports: u32,
    /// The unit of the rates beside it.
    pub units: Units,
}

/// Rates that are read together, all in the unit that suits the largest: `24.1 Gbit/s`, `9.2`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Bits/s that make one.
    per: f64,
    /// The unit's word.
    pub unit: &'static str,
}

/// A share as percent with its sign, a decimal below ten: `38 %`, `1.2 %`.
pub(crate) struct Share(pub f64);

/// Any number of a finding, three digits, SI, with its sign.
pub(crate) struct Signed(pub f64);

/// Seconds, a decimal below ten: `2.1 s`, `30 s`.
pub(crate) struct Seconds(pub f64);

/// How long something took, two digits: `1.6us`, `350us`, `12ms`, `1.2s`.
pub(crate) struct Elapsed(pub f64);

/// A stretch of time between two samples: `500 ms`, `2 s`.
pub(crate) struct Interval(pub Duration);

impl Claim {
    /// Of a link, with its ports counted.
    pub fn of(metrics: &Metrics, link: &LinkMetrics, units: Units) -> Self {
        let is_port = |other: &&LinkMetrics| {
            other.facts.master.map(|master| other.facts.beside(master)) == Some(link.facts.key())
        };
        let ports = u32::try_from(metrics.machine.links.iter().filter(is_port).count()).unwrap_or(u32::MAX);
        Self { mbps: link.facts.speed_mbps, basis: link.basis, ports, units }
    }
}

impl Display for Elapsed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (scaled, unit) = match self.0 {
            0.9995.. => (self.0, "s"),
            999.5e-6.. => (self.0 * 1e3, "ms"),
            _ => (self.0 * 1e6, "us"),
        };
        if scaled < 9.95 { write!(f, "{scaled:.1}{unit}") } else { write!(f, "{scaled:.0}{unit}") }
    }
}

impl Display for Rate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let per = if self.1 == Units::Bytes { 8.0 } else { 1.0 };
        number(f, self.0.map(|bits| bits / per), Digits::Three)
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        number(f, self.0, Digits::Two)
    }
}

impl Display for Percent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        number(f, self.0.map(|share| share * 100.0), Digits::Two)
    }
}

impl Display for Bytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bytes) if (0.0..99_999.5).contains(&bytes) => write!(f, "{}", whole(bytes)),
            other => number(f, other, Digits::Two),
        }
    }
}

impl Display for Times {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        number(f, Some(self.0), Digits::Two)?;
        f.write_str("×")
    }
}

impl Display for Total {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 < 1_000_000 { write!(f, "{}", self.0) } else { number(f, Some(self.0 as f64), Digits::Three) }
    }
}

impl Display for Claim {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(mbps) = self.mbps.filter(|_| self.basis != Basis::None) else { return f.write_str(UNKNOWN) };
        match self.units {
            Units::Bits | Units::Packets => label(f, mbps)?,
            Units::Bytes => number(f, Some(f64::from(mbps) * 1e6 / 8.0), Digits::Three)?,
        }
        match self.basis {
            Basis::Real => f.write_str(" real"),
            Basis::Constant => f.write_str(" const"),
            Basis::Inherited => f.write_str(" inherit"),
            Basis::MaxOfPorts => write!(f, " max({})", self.ports),
            Basis::SumOfPorts => f.write_str(" sum"),
            Basis::UserSet => f.write_str(" set"),
            Basis::None => Ok(()),
        }
    }
}

impl Display for Interval {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        match (ms / 1000, ms % 1000) {
            (0, ms) => write!(f, "{ms} ms"),
            (s, 0) => write!(f, "{s} s"),
            (s, ms) => write!(f, "{s}.{} s", ms / 100),
        }
    }
}

impl Scale {
    /// The scale for a rate, bits/s.
    pub fn of(bits_per_s: f64, units: Units) -> Self {
        const BITS: [&str; 5] = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
        const BYTES: [&str; 5] = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
        let (mut per, words) = if units == Units::Bytes { (8.0, BYTES) } else { (1.0, BITS) };
        let mut unit = words[0];
        for word in &words[1..] {
            if bits_per_s.abs() / per < 999.5 {
                break;
            }
            (per, unit) = (per * 1000.0, word);
        }
        Self { per, unit }
    }

    /// A rate with its unit.
    pub fn with_unit(self, bits_per_s: f64) -> String {
        format!("{} {}", self.number(bits_per_s), self.unit)
    }

    /// A rate without its unit; two decimals below ten, one below a hundred.
    pub fn number(self, bits_per_s: f64) -> String {
        let value = bits_per_s / self.per;
        match value.abs() {
            ..9.995 => format!("{value:.2}"),
            ..99.95 => format!("{value:.1}"),
            _ => format!("{value:.0}"),
        }
    }
}

/// A rate by itself, in bits whatever the links are shown in, as benchmarks have it, three digits: `24.1 Gbit/s`.
pub(crate) fn speed(bits_per_s: f64) -> String {
    Scale::of(bits_per_s, Units::Bits).with_unit(bits_per_s)
}

impl Display for Share {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        if percent.abs() < 9.95 { write!(f, "{percent:.1} %") } else { write!(f, "{percent:.0} %") }
    }
}

impl Display for Signed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.abs() {
            below if below > 0.0 && below < 0.1 => write!(f, "{:.3}", self.0),
            below if below < 10.0 && below.fract() != 0.0 => write!(f, "{:.2}", self.0),
            other => {
                f.write_str(if self.0 < 0.0 { "-" } else { "" })?;
                number(f, Some(other), Digits::Three)
            }
        }
    }
}

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 < 9.95 && (self.0.fract() * 10.0).round() % 10.0 != 0.0 {
            write!(f, "{:.1} s", self.0)
        } else {
            write!(f, "{:.0} s", self.0)
        }
    }
}

/// A claimed speed without needless digits: `10M`, `2.5G`.
fn label(f: &mut Formatter<'_>, mbps: u32) -> fmt::Result {
    let (unit, suffix) = match mbps {
        0..1_000 => return write!(f, "{mbps}M"),
        1_000..1_000_000 => (1_000, 'G'),
        _ => (1_000_000, 'T'),
    };
    match (mbps / unit, mbps % unit * 10 / unit) {
        (whole, 0) => write!(f, "{whole}{suffix}"),
        (whole, tenth) => write!(f, "{whole}.{tenth}{suffix}"),
    }
}

/// A number that is not negative, with an SI suffix.
fn number(f: &mut Formatter<'_>, value: Option<f64>, digits: Digits) -> fmt::Result {
    let Some(value) = value.filter(|value| value.is_finite() && *value >= 0.0) else { return f.write_str(UNKNOWN) };
    if value < 999.5 {
        return small(f, value);
    }
    let mut scaled = value / 1000.0;
    for suffix in SUFFIXES {
        if scaled < 999.5 {
            mantissa(f, scaled, digits)?;
            return write!(f, "{suffix}");
        }
        scaled /= 1000.0;
    }
    f.write_str(">999E")
}

/// Below 999.5: a decimal only where it says something.
fn small(f: &mut Formatter<'_>, value: f64) -> fmt::Result {
    if value >= 9.95 {
        return write!(f, "{}", whole(value));
    }
    match whole(value * 10.0) {
        0 if value > 0.0 => f.write_str("<0.1"),
        tenths if tenths % 10 == 0 => write!(f, "{}", tenths / 10),
        tenths => write!(f, "{}.{}", tenths / 10, tenths % 10),
    }
}

/// Between 0.9995 and 999.5, in the digits that matter.
fn mantissa(f: &mut Formatter<'_>, scaled: f64, digits: Digits) -> fmt::Result {
    if digits == Digits::Three && scaled < 9.995 {
        let hundredths = whole(scaled * 100.0);
        write!(f, "{}.{:02}", hundredths / 100, hundredths % 100)
    } else if scaled < if digits == Digits::Three { 99.95 } else { 9.95 } {
        let tenths = whole(scaled * 10.0);
        write!(f, "{}.{}", tenths / 10, tenths % 10)
    } else {
        write!(f, "{}", whole(scaled))
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "callers keep it between 0 and 99999")]
fn whole(value: f64) -> u32 {
    value.round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(value: f64) -> String {
        Rate(Some(value), Units::Bits).to_string()
    }

    fn count(value: f64) -> String {
        Count(Some(value)).to_string()
    }

    #[test]
    fn rates_have_three_digits_and_never_say_1000() {
        let expected = [
            (0.0, "0"),
            (0.04, "<0.1"),
            (0.5, "0.5"),
            (1.0, "1"),
            (7.25, "7.3"),
            (9.95, "10"),
            (999.4, "999"),
            (999.5, "1.00k"),
            (1_000.0, "1.00k"),
            (9_994.0, "9.99k"),
            (9_995.0, "10.0k"),
            (99_949.0, "99.9k"),
            (99_950.0, "100k"),
            (999_499.0, "999k"),
            (999_500.0, "1.00M"),
            (212e6, "212M"),
            (999.5e6, "1.00G"),
            (34.8e9, "34.8G"),
            (1e12, "1.00T"),
            (1.5e20, "150E"),
            (1e24, ">999E"),
        ];
        for (value, text) in expected {
            assert_eq!(bits(value), text, "{value} bits/s");
        }
    }

    #[test]
    fn counts_have_two_digits() {
        for (value, text) in [(2.9e6, "2.9M"), (9.95e3, "10k"), (812.0, "812"), (0.5, "0.5"), (999_500.0, "1.0M")] {
            assert_eq!(count(value), text, "{value} a second");
        }
    }

    #[test]
    fn what_is_not_known_is_a_dash_and_never_a_number() {
        assert_eq!(Rate(None, Units::Bits).to_string(), "–", "an unknown rate");
        assert_eq!(Percent(None).to_string(), "–", "an unknown share");
        assert_eq!(Bytes(None).to_string(), "–", "an unknown size");
        for value in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(bits(value), "–", "{value} is no rate");
        }
    }

    #[test]
    fn bytes_are_an_eighth_and_sizes_are_exact() {
        assert_eq!(Rate(Some(34.8e9), Units::Bytes).to_string(), "4.35G", "SI bytes a second");
        assert_eq!(Bytes(Some(1447.9)).to_string(), "1448", "a mean packet to the byte");
        assert_eq!(Bytes(Some(65_483.2)).to_string(), "65483", "a GSO packet to the byte");
        assert_eq!(Bytes(Some(99_999.5)).to_string(), "100k", "beyond five characters");
    }

    #[test]
    fn claims_say_what_they_are_worth() {
        let claim = |mbps, basis| Claim { mbps: Some(mbps), basis, ports: 2, units: Units::Bits }.to_string();
        assert_eq!(claim(10_000, Basis::Constant), "10G const", "veth");
        assert_eq!(claim(10, Basis::Constant), "10M const", "tun before 6.2");
        assert_eq!(claim(25_000, Basis::UserSet), "25G set", "ethtool -s");
        assert_eq!(claim(10_000, Basis::MaxOfPorts), "10G max(2)", "a bridge tells its ports");
        assert_eq!(claim(2_500, Basis::Inherited), "2.5G inherit", "a vlan");
        assert_eq!(claim(1_000, Basis::Real), "1G real", "hardware");
        assert_eq!(claim(20_000, Basis::SumOfPorts), "20G sum", "a bond");
        let bytes = Claim { mbps: Some(10_000), basis: Basis::Constant, ports: 0, units: Units::Bytes };
        assert_eq!(bytes.to_string(), "1.25G const", "in the unit of the rates beside it");
        assert_eq!(claim(u32::MAX, Basis::Constant), "4294.9T const", "no overflow");
        assert_eq!(
            Claim { mbps: None, basis: Basis::None, ports: 0, units: Units::Bits }.to_string(),
            "–",
            "lo says nothing"
        );
    }

    #[test]
    fn rates_read_together_have_one_unit() {
        let scale = Scale::of(24.1e9, Units::Bits);
        assert_eq!((scale.number(24.1e9).as_str(), scale.unit), ("24.1", "Gbit/s"));
        assert_eq!(scale.number(9.2e9), "9.20", "the same unit for all");
        assert_eq!(scale.number(-0.01e9), "-0.01", "differences may be negative");
        assert_eq!(Scale::of(999.6e6, Units::Bits).unit, "Gbit/s", "never 1000 Mbit/s");
        assert_eq!(Scale::of(24.1e9, Units::Bytes).number(24.0e9), "3.00", "an eighth, in GB/s");
        assert_eq!(Scale::of(0.0, Units::Bytes).unit, "B/s", "nothing has the smallest unit");
        assert_eq!((Share(0.38).to_string(), Share(0.012).to_string()), ("38 %".into(), "1.2 %".into()));
        let seconds = [2.1, 30.2, 9.96, 4.0].map(|s| Seconds(s).to_string());
        assert_eq!(seconds, ["2.1 s", "30 s", "10 s", "4 s"], "a decimal where it says something");
    }

    #[test]
    fn shares_multiples_totals_and_intervals() {
        assert_eq!(Percent(Some(0.98)).to_string(), "98", "whole percent");
        assert_eq!(Percent(Some(0.0031)).to_string(), "0.3", "a decimal below ten");
        assert_eq!(Percent(Some(1.0)).to_string(), "100", "all of a core");
        assert_eq!(Times(3.48).to_string(), "3.5×", "a multiple of its label");
        assert_eq!(Times(4_500.0).to_string(), "4.5k×", "tun says 10 and moves 45 G");
        assert_eq!(Total(999_999).to_string(), "999999", "totals are exact");
        assert_eq!(Total(1_234_567).to_string(), "1.23M", "until they do not fit");
        assert_eq!(Interval(Duration::from_millis(500)).to_string(), "500 ms", "below a second");
        assert_eq!(
            [1.6e-6, 350e-6, 9.996e-4, 1.25].map(|s| Elapsed(s).to_string()),
            ["1.6us", "350us", "1.0ms", "1.2s"]
        );
        assert_eq!(Interval(Duration::from_secs(2)).to_string(), "2 s", "whole seconds");
        assert_eq!(Interval(Duration::from_millis(2500)).to_string(), "2.5 s", "between");
    }
}
