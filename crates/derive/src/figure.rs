//! Numbers as the sentences write them: SI, as many digits as the cells of the screen have. No sentence, no decision.

/// What is there, but would be written as nothing.
const TINY: &str = "<0.1";

fn is_tiny(value: f64) -> bool {
    value > 0.0 && value < 0.05
}

/// A count a second, with as many digits as it deserves.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        _ if is_tiny(per_s) => TINY.to_owned(),
        ..10.0 => format!("{per_s:.1}"),
        _ => format!("{per_s:.0}"),
    }
}

/// The same in thousands and millions, where it is large: `86.6k`.
pub(crate) fn large_rate(per_s: f64) -> String {
    let (scaled, unit) = match per_s {
        999_950.0.. => (per_s / 1e6, "M"),
        9_999.5.. => (per_s / 1e3, "k"),
        _ => return rate(per_s),
    };
    if scaled < 99.95 { format!("{}{unit}", decimal(scaled)) } else { format!("{scaled:.0}{unit}") }
}

/// Some of many, in one unit: `9.8k of 34.2k`.
pub(crate) fn large_part(part: f64, whole: f64) -> String {
    format!("{} of {}", large_in(part, whole), large_rate(whole))
}

/// Some of so many, in the unit of all.
pub(crate) fn large_in(part: f64, whole: f64) -> String {
    let (scale, unit) = match whole {
        999_950.0.. => (1e6, "M"),
        9_999.5.. => (1e3, "k"),
        _ => return rate(part),
    };
    let scaled = part / scale;
    // A small part keeps a unit in which it is more than 0.
    if scaled < 0.95 { large_rate(part) } else { format!("{}{unit}", decimal(scaled)) }
}

/// Whole things, as a number of a finding.
pub(crate) fn count(things: usize) -> f64 {
    things as f64
}

/// A speed in the unit that fits, SI.
pub(crate) fn speed(bits_per_s: f64) -> String {
    let unit = Unit::of(bits_per_s);
    format!("{} {}", unit.figure(bits_per_s), unit.word)
}

/// A decimal of more than this says nothing that is measured.
const WHOLE: f64 = 99.95;

/// The unit of a speed: figures that are compared share it.
pub(crate) struct Unit {
    scale: f64,
    pub(crate) word: &'static str,
}

impl Unit {
    pub(crate) fn of(bits_per_s: f64) -> Self {
        match bits_per_s {
            1e9.. => Self { scale: 1e9, word: "Gbit/s" },
            1e6.. => Self { scale: 1e6, word: "Mbit/s" },
            _ => Self { scale: 1e3, word: "kbit/s" },
        }
    }

    /// What [`Self::figure`] shows of it, bits/s.
    pub(crate) fn rounded(&self, bits_per_s: f64) -> f64 {
        let value = bits_per_s / self.scale;
        (if value.abs() >= WHOLE { value.round() } else { (value * 10.0).round() / 10.0 }) * self.scale
    }

    /// With one decimal, where it is not 0, and none from 100 on.
    pub(crate) fn figure(&self, bits_per_s: f64) -> String {
        decimal(self.rounded(bits_per_s) / self.scale)
    }
}

/// With one decimal, where it is not 0.
pub(crate) fn decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A share in percent: whole from ten on, one decimal below, as in the cells.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if is_tiny(percent) {
        return TINY.to_owned();
    }
    if percent < 9.95 { decimal(percent) } else { format!("{percent:.0}") }
}

/// Bytes in the unit that fits, SI, two digits.
pub(crate) fn bytes(bytes: f64) -> String {
    let (scaled, unit) = match bytes {
        999.5e6.. => (bytes / 1e9, "GB"),
        999.5e3.. => (bytes / 1e6, "MB"),
        _ => (bytes / 1e3, "kB"),
    };
    if scaled < 9.95 { format!("{} {unit}", decimal(scaled)) } else { format!("{scaled:.0} {unit}") }
}

/// A time in the unit that fits, two digits: `350 us`, `3.1 ms`, `1.2 s`.
pub(crate) fn time(seconds: f64) -> String {
    let (scaled, unit) = match seconds {
        0.9995.. => (seconds, "s"),
        999.5e-6.. => (seconds * 1e3, "ms"),
        _ => (seconds * 1e6, "us"),
    };
    if scaled < 9.95 { format!("{} {unit}", decimal(scaled)) } else { format!("{scaled:.0} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_fits() {
        assert_eq!([time(2.3e-6), time(350e-6), time(3.14e-3)], ["2.3 us", "350 us", "3.1 ms"]);
        assert_eq!([time(12.4e-3), time(1.25), time(9.996e-4)], ["12 ms", "1.2 s", "1 ms"]);
    }

    #[test]
    fn figures_are_as_the_cells_have_them() {
        assert_eq!([speed(34.8e9), speed(10e9), speed(876e6)], ["34.8 Gbit/s", "10 Gbit/s", "876 Mbit/s"]);
        assert_eq!([percent(0.382), percent(0.0031), percent(0.02)], ["38", "0.3", "2"]);
        assert_eq!([percent(0.0), percent(0.0004), rate(0.01)], ["0", "<0.1", "<0.1"], "little is not nothing");
        assert_eq!(
            [bytes(61.2e6), bytes(2.19e8), bytes(3.14e3), bytes(1.2e9)],
            ["61 MB", "219 MB", "3.1 kB", "1.2 GB"]
        );
    }
}
