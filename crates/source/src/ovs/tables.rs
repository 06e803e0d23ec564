//! The rows of the database that matter, kept in step with what it tells of them. It knows no link and no socket.

use super::column_values::{Uuid, members, number, text, under, uuids};
use serde_json::Value;
use std::collections::BTreeMap;
use vnettop_sample::{LinkState, OvsBridge, OvsDatapathKind, OvsPort, OvsPortKind};

/// What is asked for, as table and columns.
pub(super) const COLUMNS: [(&str, &[&str]); 4] = [
    ("Open_vSwitch", &["ovs_version", "other_config"]),
    ("Bridge", &["name", "datapath_type", "fail_mode", "ports"]),
    ("Port", &["name", "tag", "interfaces"]),
    ("Interface", &["name", "type", "ifindex", "ofport", "options", "error", "link_state", "admin_state", "mtu"]),
];
/// The column that changes again and again.
pub(super) const STATISTICS: &str = "statistics";
/// How often ovs-vswitchd writes it unless told otherwise (`other_config:stats-update-interval`), ms.
const STATISTICS_MS: u64 = 5000;

/// Its ports are named by their rows.
#[derive(Debug)]
pub(super) struct Bridge {
    pub row: OvsBridge,
    pub ports: Vec<Uuid>,
}

#[derive(Debug)]
pub(super) struct Port {
    pub name: String,
    pub tag: Option<u16>,
    pub interfaces: Vec<Uuid>,
}

/// Its port is another row, and so are its statistics.
#[derive(Debug)]
pub(super) struct Interface {
    pub row: OvsPort,
    /// None for 0, which tunnels and patch ports have.
    pub ifindex: Option<u32>,
    pub state: LinkState,
    /// 0 where it has none.
    pub mtu: u32,
}

/// The keys of `Interface.statistics` that matter: bytes and packets both ways, then what was dropped.
const COUNTED: [&str; 8] =
    ["rx_bytes", "tx_bytes", "rx_packets", "tx_packets", "rx_dropped", "tx_dropped", "rx_errors", "tx_errors"];

/// `Interface.statistics` in the order of [`COUNTED`]: only what is there.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Statistics(pub [Option<u64>; COUNTED.len()]);

/// What changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// What there is: bridges, ports, interfaces, or which of them count.
    pub facts: bool,
    /// Counters of an interface that counted before: ovs-vswitchd has just written those of all.
    pub counters: bool,
}

/// Bridges, ports and interfaces: the largest message there may be holds fewer.
const MOST_ROWS: usize = 100_000;

/// The database as last told.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub version: Option<String>,
    pub bridges: BTreeMap<Uuid, Bridge>,
    pub ports: BTreeMap<Uuid, Port>,
    pub interfaces: BTreeMap<Uuid, Interface>,
    pub statistics: BTreeMap<Uuid, Statistics>,
    statistics_ms: Option<u64>,
}

impl Tables {
    /// Takes in the answer to a request for the facts, or a later update of them (RFC 7047, section 4.1.6).
    pub fn learn(&mut self, updates: &Value) {
        each(updates, "Open_vSwitch", |_, row| {
            self.version = row.and_then(|row| text(row.get("ovs_version")?));
            let reported =
                row.and_then(|row| text(under(row.get("other_config")?, "stats-update-interval")?)?.parse().ok());
            self.statistics_ms = reported;
        });
        each(updates, "Bridge", |id, row| keep(&mut self.bridges, id, row.map(bridge)));
        each(updates, "Port", |id, row| keep(&mut self.ports, id, row.map(port)));
        each(updates, "Interface", |id, row| keep(&mut self.interfaces, id, row.map(interface)));
    }

    /// Takes in rows of statistics; what changed with them.
    pub fn count(&mut self, updates: &Value) -> Changes {
        let mut news = Changes::default();
        each(updates, "Interface", |id, row| {
            let new = row.and_then(|row| row.get(STATISTICS)).map(statistics).unwrap_or_default();
            let old = self.statistics.insert(id, new).unwrap_or_default();
            if row.is_none() {
                self.statistics.remove(&id);
            }
            news.facts |= old.is_there() != new.is_there() || old.tells_drops() != new.tells_drops();
            news.counters |= old.is_there() && new.is_there() && old != new;
        });
        news
    }

    /// There are not more rows than can be.
    ///
    /// # Errors
    /// The end of a sentence.
    pub fn bounded(&self) -> Result<(), String> {
        let rows = self.bridges.len() + self.ports.len() + self.interfaces.len();
        match rows.max(self.statistics.len()) {
            0..=MOST_ROWS => Ok(()),
            _ => Err(format!("it has more than {MOST_ROWS} rows")),
        }
    }

    /// How often ovs-vswitchd writes statistics, ns.
    pub fn statistics_ns(&self) -> u64 {
        // It takes 5 s for the least.
        self.statistics_ms.unwrap_or(STATISTICS_MS).clamp(STATISTICS_MS, 3_600_000) * 1_000_000
    }
}

impl Statistics {
    /// It counts bytes and packets both ways.
    pub fn is_there(&self) -> bool {
        self.0[..4].iter().all(Option::is_some)
    }

    /// It counts what it dropped, too.
    pub fn tells_drops(&self) -> bool {
        self.0[4..].iter().all(Option::is_some)
    }
}

/// Every row of a table that an update names; none where it was deleted.
fn each(updates: &Value, table: &str, mut row: impl FnMut(Uuid, Option<&Value>)) {
    for (id, update) in updates.get(table).and_then(Value::as_object).into_iter().flatten() {
        if let Some(id) = Uuid::parse(id) {
            row(id, update.get("new").filter(|new| new.is_object()));
        }
    }
}

fn keep<T>(rows: &mut BTreeMap<Uuid, T>, id: Uuid, row: Option<T>) {
    match row {
        Some(row) => drop(rows.insert(id, row)),
        None => drop(rows.remove(&id)),
    }
}

fn bridge(row: &Value) -> Bridge {
    let reported = OvsBridge {
        name: text(&row["name"]).unwrap_or_default(),
        datapath: text(&row["datapath_type"]).as_deref().map(OvsDatapathKind::from).unwrap_or_default(),
        fail_mode: text(&row["fail_mode"]),
        ports: Vec::new(),
    };
    Bridge { row: reported, ports: uuids(&row["ports"]) }
}

fn port(row: &Value) -> Port {
    Port {
        name: text(&row["name"]).unwrap_or_default(),
        tag: number(&row["tag"]).and_then(|tag| tag.try_into().ok()),
        interfaces: uuids(&row["interfaces"]),
    }
}

fn interface(row: &Value) -> Interface {
    let option = |key| text(under(&row["options"], key)?);
    let is_up = |column: &str| text(&row[column]).map(|word| word == "up");
    let reported = OvsPort {
        name: text(&row["name"]).unwrap_or_default(),
        kind: text(&row["type"]).as_deref().map(OvsPortKind::from).unwrap_or_default(),
        ofport: number(&row["ofport"]),
        peer: option("peer"),
        remote_ip: option("remote_ip"),
        local_ip: option("local_ip"),
        key: option("key"),
        error: text(&row["error"]),
        ..OvsPort::default()
    };
    Interface {
        row: reported,
        ifindex: number(&row["ifindex"]).and_then(|index| index.try_into().ok()).filter(|&index| index != 0),
        state: match (is_up("admin_state"), is_up("link_state")) {
            (Some(false), _) | (_, Some(false)) => LinkState::Down,
            (_, Some(true)) => LinkState::Up,
            (_, None) => LinkState::Unknown,
        },
        mtu: number(&row["mtu"]).and_then(|mtu| mtu.try_into().ok()).unwrap_or(0),
    }
}

fn statistics(map: &Value) -> Statistics {
    Statistics(COUNTED.map(|key| members(under(map, key)?).first()?.as_u64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

    #[test]
    fn a_row_comes_changes_and_goes() {
        let mut tables = Tables::default();
        let row = json!({"name": "vx0", "type": "vxlan", "ifindex": 0, "ofport": 2, "mtu": ["set", []],
            "options": ["map", [["remote_ip", "198.18.0.2"], ["key", "flow"]]], "error": ["set", []],
            "link_state": "up", "admin_state": "up"});
        tables.learn(&json!({"Interface": {ID: {"new": row}}}));
        let known = &tables.interfaces[&Uuid::parse(ID).expect("a uuid")];
        assert_eq!((known.row.name.as_str(), &known.row.kind), ("vx0", &OvsPortKind::Vxlan));
        assert_eq!(
            (known.ifindex, known.row.ofport, known.mtu),
            (None, Some(2), 0),
            "index 0 and an empty set are nothing"
        );
        assert_eq!((known.row.remote_ip.as_deref(), known.row.key.as_deref()), (Some("198.18.0.2"), Some("flow")));
        assert_eq!((known.state, known.row.error.as_deref()), (LinkState::Up, None));
        tables.learn(&json!({"Interface": {ID: {"old": {}}}}));
        assert!(tables.interfaces.is_empty(), "a row without a new value was deleted");
    }

    #[test]
    fn statistics_tell_when_all_were_written_and_when_only_a_new_port_was() {
        let mut tables = Tables::default();
        let counted = |bytes: u64| {
            let map = json!([["rx_bytes", bytes], ["tx_bytes", 0], ["rx_packets", 1], ["tx_packets", 0]]);
            json!({"Interface": {ID: {"new": {"statistics": ["map", map]}}}})
        };
        assert_eq!(tables.count(&counted(0)), Changes { facts: true, counters: false }, "the first of a new port");
        assert_eq!(tables.count(&counted(9)), Changes { facts: false, counters: true }, "a run over all ports");
        assert_eq!(tables.count(&counted(9)), Changes::default(), "nothing new");
        let known = tables.statistics.values().next().expect("a row");
        assert!(!known.tells_drops() && known.0[0] == Some(9), "what is not counted is not 0");
        tables.count(&json!({"Interface": {ID: {"old": {}}}}));
        assert!(tables.statistics.is_empty());
    }

    #[test]
    fn the_pace_of_statistics_is_the_databases_own_and_never_under_five_seconds() {
        let mut tables = Tables::default();
        assert_eq!(tables.statistics_ns(), 5_000_000_000);
        for (reported, expected) in [("20000", 20_000_000_000), ("10", 5_000_000_000), ("x", 5_000_000_000)] {
            let config = json!(["map", [["stats-update-interval", reported]]]);
            tables.learn(&json!({"Open_vSwitch": {ID: {"new": {"ovs_version": "3.1.0", "other_config": config}}}}));
            assert_eq!(tables.statistics_ns(), expected, "told {reported} ms");
        }
    }

    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z]{0,4}".prop_map(Value::from),
            Just(json!("set")),
            Just(json!("map")),
            Just(json!("uuid")),
            Just(json!(ID)),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| json!(["set", [a, b]])),
                (inner.clone(), inner).prop_map(|(a, b)| json!(["map", [["statistics", a], ["key", b]]])),
            ]
        })
    }

    proptest! {
        #[test]
        fn rows_of_any_types_break_nothing(value in anything()) {
            let mut tables = Tables::default();
            for (table, columns) in COLUMNS {
                let row: serde_json::Map<String, Value> =
                    columns.iter().chain(&[STATISTICS]).map(|column| ((*column).to_owned(), value.clone())).collect();
                tables.learn(&json!({table: {ID: {"new": row}}}));
                tables.count(&json!({table: {ID: {"new": row}}}));
                tables.learn(&json!({table: value}));
                tables.count(&value);
            }
        }
    }
}
