//! Command lines as people write them; whatever stands in one is survived.

use super::*;
use proptest::prelude::*;

fn read(line: &str) -> Option<Benchmark> {
    let mut words = line.split(' ').map(str::to_owned);
    let program = words.next().expect("a program").parse().expect("a known one");
    parse(1, program, &words.filter(|word| !word.is_empty()).collect::<Vec<_>>())
}

fn test(line: &str) -> Benchmark {
    read(line).unwrap_or_else(|| panic!("{line} is a benchmark"))
}

#[test]
fn the_side_is_read_as_iperf3_reads_its_arguments() {
    let side = |line: &str| read(&format!("iperf3 {line}")).map(|test| test.side);
    for line in ["-s", "-s -1", "--server", "-sD", "-p 5202 -s", "-p5202 -1s", "-4Vs", "--port 5 --server", "--serv"] {
        assert_eq!(side(line), Some(Side::Server), "iperf3 {line} serves");
    }
    for line in ["-c h", "-ch", "-c198.18.0.1", "--client h", "--client=h", "-uc h", "-T s -c h", "-u -b 200M -c h"] {
        assert_eq!(side(line), Some(Side::Client), "iperf3 {line} sends");
    }
    for line in ["", "--version", "-Bs", "-T -s", "s", "--cport 1", "-ps", "-- -s"] {
        assert_eq!(side(line), None, "iperf3 {line} is neither");
    }
}

#[test]
fn the_direction_is_read_from_the_clients_arguments() {
    let direction = |line: &str| test(line).direction;
    for line in ["-c h -R", "-Rc h", "--client h --reverse", "-uRc h", "-t 5 -c h -P 8 -R", "-c h -uR", "-c h --rev"] {
        assert_eq!(direction(&format!("iperf3 {line}")), Some(Direction::Reverse), "iperf3 {line}: the server sends");
    }
    for line in
        ["iperf3 -c h --bidir", "iperf3 -c h --bid", "iperf -c h -d", "iperf -c h --full-duplex", "iperf -c h --dual"]
    {
        assert_eq!(direction(line), Some(Direction::Both), "{line}: both send");
    }
    for line in
        ["iperf3 -c h", "iperf3 -c h -T -R", "iperf3 -c h -B R", "iperf3 -c R", "iperf3 -d -c h", "iperf -c h -L 7"]
    {
        assert_eq!(direction(line), Some(Direction::Forward), "{line}: the client sends");
    }
    assert_eq!(direction("iperf -c h -R"), Some(Direction::Reverse), "iperf 2.1 has it too");
    assert_eq!(direction("iperf -c h -r"), None, "one way, then the other");
    assert_eq!(direction("iperf3 -s"), None, "a server's line does not tell");
}

#[test]
fn everything_that_is_asked_for_is_told() {
    let one = test("iperf3 -uc 198.18.0.1 -p5202 --para 8 -b 1.5G/10 -l 8K -O2 -t=7 -t 30 -A 2,3 --json-stream");
    assert_eq!((one.program, one.target.as_deref(), one.port), (Program::Iperf3, Some("198.18.0.1"), 5202));
    assert_eq!((one.proto, one.streams, one.json_stream), (Some(Proto::Udp), Some(8), true));
    assert_eq!(
        (one.asked_bits_per_s, one.length_bytes),
        (Some(1_500_000_000), Some(8192)),
        "rates are decimal, lengths binary"
    );
    assert_eq!((one.omit_ms, one.time_ms, one.affinity.as_deref()), (Some(2000), Some(30_000), Some("2,3")));
    let two = test("iperf --client=h -u -b 10m -P4 -t 2.5 -l 1470");
    assert_eq!(
        (two.program, two.port, two.streams, two.asked_bits_per_s),
        (Program::Iperf, 5001, Some(4), Some(10_000_000))
    );
    assert_eq!((two.time_ms, two.length_bytes), (Some(2500), Some(1470)));
    assert_eq!(
        test("iperf3 -c h -b 1e9 -l 8e3").asked_bits_per_s,
        Some(1_000_000_000),
        "an exponent is a part of the number"
    );
    assert_eq!(test("iperf -c h -u -b 10M").asked_bits_per_s, Some(80_000_000), "iperf 2's capitals are bytes");
    assert_eq!(test("iperf -c h -u -b 1000pps").asked_bits_per_s, None, "packets a second are no bits");
    assert_eq!(test("iperf -su").proto, Some(Proto::Udp), "a server of iperf 2 is told");
    let server = test("iperf3 -s -B 198.18.0.1 -A1");
    assert_eq!((server.proto, server.streams, server.target), (None, None, None), "a server of iperf 3 is asked");
    assert_eq!((server.port, server.affinity.as_deref()), (5201, Some("1")));
}

#[test]
fn a_client_without_a_host_has_no_target() {
    let arguments = ["-c".to_owned()];
    let one = parse(1, Program::Iperf3, &arguments).expect("a client");
    assert_eq!((one.side, one.target), (Side::Client, None), "nothing was named");
    assert!(test("iperf3 -u -c h --gsro").batched && !test("iperf3 -u -c h").batched, "several datagrams in one call");
}

#[test]
fn a_beginning_stands_for_the_name_where_only_one_is_meant() {
    assert_eq!(test("iperf3 -c h --ban 5M").asked_bits_per_s, Some(5_000_000), "one name begins so");
    assert_eq!(test("iperf3 -c h --bi 5M").asked_bits_per_s, None, "several do, and mean different things");
    assert!(test("iperf3 -c h --json-s").json_stream, "two do, and mean the same");
    assert!(!test("iperf3 -c h --json").json_stream, "a whole name is that one, whatever others begin so");
}

proptest! {
    #[test]
    fn any_command_line_is_survived(words: Vec<String>, is_three: bool) {
        let program = if is_three { Program::Iperf3 } else { Program::Iperf };
        parse(1, program, &words);
    }

    #[test]
    fn any_value_is_survived(letter in "[a-zA-Z]", value in "\\PC{0,12}") {
        for program in [Program::Iperf3, Program::Iperf] {
            parse(1, program, &["-c".to_owned(), "h".to_owned(), format!("-{letter}{value}")]);
        }
    }
}
