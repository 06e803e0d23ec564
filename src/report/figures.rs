//! The figures of a card with their units: rates in SI bits a second, three digits.

/// `28.8 Gbit/s`.
pub(in crate::report) fn rate(bits_per_s: f64) -> String {
    let (scale, unit) = scale(bits_per_s.abs());
    format!("{} {unit}", digits(bits_per_s / scale))
}

/// `+6.20`, `−6.20`.
pub(in crate::report) fn signed_digits(value: f64) -> String {
    if value >= 0.0 { format!("+{}", digits(value)) } else { digits(value).replace('-', "−") }
}

/// `30.3 %`.
pub(in crate::report) fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// `−29.1`, of percent.
pub(in crate::report) fn signed_points(share: f64) -> String {
    signed_digits(share * 100.0)
}

/// Three digits that say something, of small figures too: `0.0123`.
pub(in crate::report) fn small_digits(value: f64) -> String {
    match value.abs() {
        0.0 | 0.995.. => digits(value),
        ..0.00995 => format!("{value:.5}"),
        ..0.0995 => format!("{value:.4}"),
        _ => format!("{value:.3}"),
    }
}

/// Three digits, as far as they are behind the point.
pub(in crate::report) fn digits(value: f64) -> String {
    match value.abs() {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Seconds without needless digits: `10 s`, `0.4 s`.
pub(in crate::report) fn seconds(seconds: f64) -> String {
    format!("{} s", (seconds * 10.0).round() / 10.0)
}

pub(in crate::report) fn scale(value: f64) -> (f64, &'static str) {
    match value {
        999.5e6.. => (1e9, "Gbit/s"),
        999.5e3.. => (1e6, "Mbit/s"),
        999.5.. => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    }
}
