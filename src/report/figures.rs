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

/// From how far above its middle on nobody reads where an interval ends, as a share.
const FAR: f64 = 10.0;

/// Both ends of the interval of a share, of percent: `−19.7 to −15.7`, `−97.0 to over +1000`.
pub(in crate::report) fn points_range(from: f64, to: f64) -> String {
    let end = if to > FAR { format!("over {}", signed_points(FAR)) } else { signed_points(to) };
    format!("{} to {end}", signed_points(from))
}

/// Both ends of the interval of a positive figure that is `is`, in its unit: `34.3 to 35.7`, `under 2.86 to over 346`.
pub(in crate::report) fn rate_range([is, from, to]: [f64; 3], figure: fn(f64) -> String) -> String {
    let (near, far) = (is / (1.0 + FAR), (1.0 + FAR) * is);
    let begin = if from < near { format!("under {}", figure(near)) } else { figure(from) };
    let end = if to > far { format!("over {}", figure(far)) } else { figure(to) };
    format!("{begin} to {end}")
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

/// How long something took, three digits: `1.64 us`, `350 us`, `12.0 ms`, `1.20 s`.
pub(in crate::report) fn time(seconds: f64) -> String {
    let (scaled, unit) = match seconds {
        0.9995.. => (seconds, "s"),
        999.5e-6.. => (seconds * 1e3, "ms"),
        _ => (seconds * 1e6, "us"),
    };
    format!("{} {unit}", digits(scaled))
}

pub(in crate::report) fn scale(value: f64) -> (f64, &'static str) {
    match value {
        999.5e6.. => (1e9, "Gbit/s"),
        999.5e3.. => (1e6, "Mbit/s"),
        999.5.. => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    }
}
