//! The few messages of RFC 7047 that are said and understood.

use super::tables::{COLUMNS, STATISTICS};
use serde_json::{Map, Value, json};

/// The monitor of everything but the statistics, and its answer.
const FACTS: &str = "facts";
const DATABASE: &str = "Open_vSwitch";
/// The question whether the other end still lives.
const ALIVE: &str = "alive";

/// What is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Facts,
    Statistics,
}

/// Rows of it: all there are, or those that changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct News {
    pub of: Subject,
    pub is_all: bool,
    pub rows: Value,
}

/// Asks for everything and for news of it. The statistics are asked for by themselves: they change every few seconds, and
/// each news of a row repeats all its columns.
pub(super) fn requests() -> Vec<u8> {
    let columns = |columns: &[&str]| json!([{ "columns": columns }]);
    let facts: Map<String, Value> = COLUMNS.iter().map(|(table, of)| ((*table).to_owned(), columns(of))).collect();
    let monitor =
        |name: &str, tables: Value| json!({"id": name, "method": "monitor", "params": [DATABASE, name, tables]});
    let facts = monitor(FACTS, Value::Object(facts));
    let statistics = monitor(STATISTICS, json!({"Interface": columns(&[STATISTICS])}));
    format!("{facts}{statistics}").into_bytes()
}

/// Asks whether it still lives.
pub(super) fn probe() -> Vec<u8> {
    json!({"id": ALIVE, "method": "echo", "params": []}).to_string().into_bytes()
}

/// Understands one message; none where it says nothing that matters.
///
/// # Errors
/// It is a refusal: the end of a sentence.
pub(super) fn understand(mut message: Value) -> Result<Option<News>, String> {
    let is_all = message["method"] != "update";
    let refusal = &message["error"];
    if is_all && !refusal.is_null() {
        let words = refusal["error"].as_str().or(refusal.as_str()).unwrap_or("it does not say why");
        let words: String = words.chars().take(80).collect();
        return Err(format!("it refuses to be followed ({})", vnettop_sample::text::clean(words.as_bytes())));
    }
    let of = match if is_all { &message["id"] } else { &message["params"][0] }.as_str() {
        Some(FACTS) => Subject::Facts,
        Some(STATISTICS) => Subject::Statistics,
        _ => return Ok(None),
    };
    let rows = if is_all { message.get_mut("result") } else { message["params"].get_mut(1) };
    Ok(Some(News { of, is_all, rows: rows.map(Value::take).unwrap_or_default() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn answers_and_updates_are_told_apart() {
        let received = |text: &str| understand(text.parse().expect("JSON"));
        let facts = News { of: Subject::Facts, is_all: true, rows: json!({"a": 1}) };
        assert_eq!(received(r#"{"id":"facts","result":{"a":1},"error":null}"#), Ok(Some(facts)));
        let update = r#"{"id":null,"method":"update","params":["statistics",{"b":2}]}"#;
        assert_eq!(received(update), Ok(Some(News { of: Subject::Statistics, is_all: false, rows: json!({"b": 2}) })));
        assert_eq!(received(r#"{"id":"alive","result":[],"error":null}"#), Ok(None));
        let refusal = r#"{"id":"facts","result":null,"error":{"error":"unknown database","details":"x"}}"#;
        assert_eq!(received(refusal), Err("it refuses to be followed (unknown database)".to_owned()));
    }

    #[test]
    fn the_requests_are_two_objects() {
        let requests = requests();
        let values: Vec<Value> =
            serde_json::Deserializer::from_slice(&requests).into_iter().map(|value| value.expect("JSON")).collect();
        let names: Vec<&Value> = values.iter().map(|value| &value["params"][1]).collect();
        assert_eq!(names, ["facts", "statistics"]);
        assert_eq!(values[0]["params"][2]["Bridge"][0]["columns"][0], "name");
    }

    proptest! {
        #[test]
        fn no_message_breaks_it(
            text in r#"\{("(id|method|params|result|error)":("facts"|"update"|null|1|\{\}|\[\]|\["facts",[0-9]\]),){0,4}"x":0\}"#,
        ) {
            let _ = understand(text.parse().expect("JSON"));
        }
    }
}
