//! Formatters: what a number looks like in its cell.

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
    assert_eq!([1.6e-6, 350e-6, 9.996e-4, 1.25].map(|s| Elapsed(s).to_string()), ["1.6us", "350us", "1.0ms", "1.2s"]);
    assert_eq!(Interval(Duration::from_secs(2)).to_string(), "2 s", "whole seconds");
    assert_eq!(Interval(Duration::from_millis(2500)).to_string(), "2.5 s", "between");
}
