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

/// One unit for figures that are read side by side, with digits enough to tell them apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::report) struct CommonUnit {
    per: f64,
    pub(in crate::report) name: &'static str,
}

/// A figure as large as this in a unit is not written in it: five digits are not read at a glance.
const MOST_IN_UNIT: f64 = 10_000.0;

impl CommonUnit {
    /// That of these rates, bits/s: of the largest; of the smallest one above 0 where the largest is short in it too.
    pub(in crate::report) fn of_rates(rates: &[f64]) -> Self {
        let (per, name) = Self::common(rates, scale);
        Self { per, name }
    }

    /// That of one rate, bits/s, for what stands beside it.
    pub(in crate::report) fn of_rate(rate: f64) -> Self {
        let (per, name) = scale(rate);
        Self { per, name }
    }

    /// That of these times, s.
    pub(in crate::report) fn of_times(times: &[f64]) -> Self {
        let (per, name) = Self::common(times, time_scale);
        Self { per, name }
    }

    fn common(values: &[f64], scale: fn(f64) -> (f64, &'static str)) -> (f64, &'static str) {
        let largest = values.iter().copied().fold(0.0, f64::max);
        let smallest = values.iter().copied().filter(|value| *value > 0.0).fold(largest, f64::min);
        let small = scale(smallest);
        if largest / small.0 < MOST_IN_UNIT { small } else { scale(largest) }
    }

    /// The number of it.
    pub(in crate::report) fn number(self, value: f64) -> f64 {
        value / self.per
    }

    /// Of that number, bits/s or s.
    pub(in crate::report) fn bits(self, number: f64) -> f64 {
        number * self.per
    }

    /// `1,008`, `26.0`, `0.0023`.
    pub(in crate::report) fn digits(self, value: f64) -> String {
        match self.number(value) {
            far @ 999.5.. => grouped(far),
            near => small_digits(near),
        }
    }

    /// `1,008 Mbit/s`.
    pub(in crate::report) fn figure(self, value: f64) -> String {
        format!("{} {}", self.digits(value), self.name)
    }

    /// `996 to 1,008 Mbit/s`.
    pub(in crate::report) fn range(self, from: f64, to: f64) -> String {
        format!("{} to {}", self.digits(from), self.figure(to))
    }
}

/// A whole number, its thousands set apart: `3,450`.
pub(in crate::report) fn grouped(value: f64) -> String {
    let whole = format!("{value:.0}");
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Three digits that say something, of small figures too: `0.0123`.
pub(in crate::report) fn small_digits(value: f64) -> String {
    match value.abs() {
        0.0 | 0.9995.. => digits(value),
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
    let (per, unit) = time_scale(seconds);
    format!("{} {unit}", digits(seconds / per))
}

fn time_scale(seconds: f64) -> (f64, &'static str) {
    match seconds {
        0.9995.. => (1.0, "s"),
        999.5e-6.. => (1e-3, "ms"),
        _ => (1e-6, "us"),
    }
}

/// The same text with `µs` where a figure has `us`: what a terminal shows may have to be ASCII, a page has not.
pub(in crate::report) fn with_micro(text: &str) -> String {
    const ASCII: &str = " us";
    let is_unit = |at: usize| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        text[..at].ends_with(|c: char| c.is_ascii_digit() || c == ')') && !text[at + ASCII.len()..].starts_with(is_word)
    };
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(ASCII).filter(|(at, _)| is_unit(*at)) {
        out.extend([&text[done..at], " µs"]);
        done = at + ASCII.len();
    }
    out + &text[done..]
}

pub(in crate::report) fn scale(value: f64) -> (f64, &'static str) {
    match value {
        999.5e6.. => (1e9, "Gbit/s"),
        999.5e3.. => (1e6, "Mbit/s"),
        999.5.. => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_side_by_side_have_one_unit_and_none_seems_larger_than_it_is() {
        let of = |rates: &[f64]| {
            let unit = CommonUnit::of_rates(rates);
            (rates.iter().map(|rate| unit.digits(*rate)).collect::<Vec<_>>().join(" "), unit.name)
        };
        assert_eq!(of(&[996e6, 1.0005e9, 1.008e9]), ("996 1,000 1,008".to_owned(), "Mbit/s"), "never 996 beside 1.00");
        assert_eq!(of(&[5.1e9, 35.7e9]), ("5.10 35.7".to_owned(), "Gbit/s"));
        assert_eq!(of(&[554e6, 12.9e9]), ("0.554 12.9".to_owned(), "Gbit/s"), "five digits are too many");
        assert_eq!(of(&[0.0, 2e6]), ("0.00 2.00".to_owned(), "Mbit/s"));
        assert_eq!(CommonUnit::of_times(&[10.3e-6, 2.41e-3]).range(10.3e-6, 2.41e-3), "10.3 to 2,410 us");
        assert_eq!(CommonUnit::of_rates(&[]).name, "bit/s", "of nothing");
    }

    #[test]
    fn a_page_has_the_sign_of_micro_and_words_stay() {
        let text = "p99 33.0 us, +2 (1 to 3) us; 5 users of us, x us, 3 us_east";
        assert_eq!(with_micro(text), "p99 33.0 µs, +2 (1 to 3) µs; 5 users of us, x us, 3 us_east");
    }
}
