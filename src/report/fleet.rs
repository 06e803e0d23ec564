//! The hosts of a fleet → a table, JSON. Field names are the contract of docs/json.md.

use super::figures::{digits, percent, rate};
use crate::derive::fleet::{FleetFigure, FleetHost};
use serde_json::json;
use unicode_width::UnicodeWidthStr;

/// Raised when a field changes its meaning or goes away; new fields do not raise it.
const SCHEMA_VERSION: u32 = 1;
const UNKNOWN: &str = "–";
const HEADS: [&str; 7] = ["HOST", "RATE", "CV", "SOFTIRQ", "MIGR/S", "FAR/S", "LOST/S"];

/// A line for each host, in the order given, and what the columns are over; of ASCII alone where the terminal shows nothing else.
#[must_use]
pub fn text(hosts: &[FleetHost], window: &str, utf8: bool) -> String {
    let rows: Vec<[String; 7]> = hosts.iter().map(cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].width());
        cells.chain([HEADS[column].width()]).max().unwrap_or_default()
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let line = |cells: [&str; 7]| {
        let mut line = format!("{}{}", cells[0], " ".repeat(widths[0] - cells[0].width()));
        for (cell, width) in cells.iter().zip(widths).skip(1) {
            line.push_str(&" ".repeat(2 + width - cell.width()));
            line.push_str(cell);
        }
        line + "\n"
    };
    let all: String =
        std::iter::once(line(HEADS)).chain(rows.iter().map(|row| line(std::array::from_fn(|at| &*row[at])))).collect();
    let all = all + &format!("Over the last {window}, idle time included; CV is the highest, while tests ran\n");
    let shown = |c: char| if c.is_ascii() || utf8 { c } else { '-' };
    all.chars().map(shown).collect()
}

fn cells(host: &FleetHost) -> [String; 7] {
    let figure = |figure, written: fn(f64) -> String| host.figure(figure).map_or_else(|| UNKNOWN.to_owned(), written);
    if !host.is_up() {
        let rest = [(); 5].map(|()| UNKNOWN.to_owned());
        let [cv, softirq, migrations, far, lost] = rest;
        return [host.instance.clone(), "down".to_owned(), cv, softirq, migrations, far, lost];
    }
    [
        host.instance.clone(),
        figure(FleetFigure::Rate, rate),
        figure(FleetFigure::Variation, percent),
        figure(FleetFigure::Softirq, percent),
        figure(FleetFigure::Migrations, digits),
        figure(FleetFigure::Far, digits),
        figure(FleetFigure::Losses, digits),
    ]
}

/// One object on one line; what Prometheus does not know is null.
#[must_use]
pub fn json(hosts: &[FleetHost], window: &str) -> String {
    let object = |host: &FleetHost| {
        json!({
            "instance": host.instance,
            "up": host.is_up(),
            "bits_per_s": host.figure(FleetFigure::Rate),
            "cv": host.figure(FleetFigure::Variation),
            "softirq": host.figure(FleetFigure::Softirq),
            "moves_per_s": host.figure(FleetFigure::Migrations),
            "far_moves_per_s": host.figure(FleetFigure::Far),
            "lost_per_s": host.figure(FleetFigure::Losses),
        })
    };
    let hosts: Vec<_> = hosts.iter().map(object).collect();
    json!({ "schema_version": SCHEMA_VERSION, "window": window, "hosts": hosts }).to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::fleet::{FleetOrder, hosts};

    #[test]
    fn a_line_for_each_host_and_a_dash_for_what_is_not_known() {
        let known = |figure, instance: &str, value| (figure, instance.to_owned(), value);
        let answers = [
            known(FleetFigure::Up, "kp1:9782", 1.0),
            known(FleetFigure::Rate, "kp1:9782", 35.2e9),
            known(FleetFigure::Variation, "kp1:9782", 0.021),
            known(FleetFigure::Losses, "kp1:9782", 0.0),
            known(FleetFigure::Up, "kp2:9782", 0.0),
            known(FleetFigure::Rate, "kp2:9782", 1.0),
        ];
        let hosts = hosts(answers, FleetOrder::Worst);
        insta::assert_snapshot!(text(&hosts, "2m", true), @r"
        HOST             RATE      CV  SOFTIRQ  MIGR/S  FAR/S  LOST/S
        kp2:9782         down       –        –       –      –       –
        kp1:9782  35.2 Gbit/s  2.10 %        –       –      –    0.00
        Over the last 2m, idle time included; CV is the highest, while tests ran
        ");
        assert!(text(&hosts, "2m", false).is_ascii());
        let object: serde_json::Value = serde_json::from_str(&json(&hosts, "2m")).expect("JSON");
        assert_eq!((&object["hosts"][1]["cv"], &object["hosts"][1]["softirq"]), (&json!(0.021), &json!(null)));
    }
}
