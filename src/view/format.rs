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
mod tests;
