//! The few messages of RFC 7047 that are said and understood.

use super::tables::{COLUMNS, STATISTICS};
use serde_json::{Map, Value, json};

/// The monitor of everything but the statistics, and its answer.
const FACTS: &str = "facts";
const DATABASE: &str = "Open_vSwitch";
/// The question whether the other end still lives.
const ALIVE: &str = "alive";
/// The longest question that is answered by repeating it.
const LONGEST_ECHO: usize = 64 << 10;

/// What a message means here.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Heard {
    /// All facts there are.
    Facts(Value),
    /// Facts that changed.
    Learnt(Value),
    /// All statistics there are.
    Statistics(Value),
    /// Statistics that changed.
    Counted(Value),
    /// A question, and its answer.
    Asked(Vec<u8>),
    /// Nothing that matters.
    Nothing,
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

/// Understands one message.
///
/// # Errors
/// It is none, or a refusal: the end of a sentence.
pub(super) fn understand(message: &[u8]) -> Result<Heard, String> {
    let mut value: Value = serde_json::from_slice(message).map_err(|_| "it does not send JSON".to_owned())?;
    if value["method"] == "echo" {
        if message.len() > LONGEST_ECHO {
            return Err(format!("it asks for an echo of more than {} KiB", LONGEST_ECHO >> 10));
        }
        let answer = json!({"id": value["id"], "result": value["params"], "error": null});
        return Ok(Heard::Asked(answer.to_string().into_bytes()));
    }
    if value["method"] == "update" {
        let updates = value["params"].get_mut(1).map(Value::take).unwrap_or_default();
        return Ok(match value["params"][0].as_str() {
            Some(FACTS) => Heard::Learnt(updates),
            Some(STATISTICS) => Heard::Counted(updates),
            _ => Heard::Nothing,
        });
    }
    let refusal = &value["error"];
    if !refusal.is_null() {
        let words = refusal["error"].as_str().or(refusal.as_str()).unwrap_or("it does not say why");
        let words: String = words.chars().take(80).collect();
        return Err(format!("it refuses to be followed ({})", crate::text::clean(words.as_bytes())));
    }
    let result = value.get_mut("result").map(Value::take).unwrap_or_default();
    Ok(match value["id"].as_str() {
        Some(FACTS) => Heard::Facts(result),
        Some(STATISTICS) => Heard::Statistics(result),
        _ => Heard::Nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_echo_is_answered_with_its_own_words() {
        let heard = understand(br#"{"id":"echo","method":"echo","params":["x",1]}"#).expect("good");
        let Heard::Asked(answer) = heard else { panic!("an echo is a question, not {heard:?}") };
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(answer, json!({"id": "echo", "result": ["x", 1], "error": null}));
    }

    #[test]
    fn answers_and_updates_are_told_apart() {
        let heard = |text: &str| understand(text.as_bytes());
        assert_eq!(heard(r#"{"id":"facts","result":{"a":1},"error":null}"#), Ok(Heard::Facts(json!({"a": 1}))));
        let update = r#"{"id":null,"method":"update","params":["statistics",{"b":2}]}"#;
        assert_eq!(heard(update), Ok(Heard::Counted(json!({"b": 2}))));
        assert_eq!(heard(r#"{"id":"alive","result":[],"error":null}"#), Ok(Heard::Nothing));
        let refusal = r#"{"id":"facts","result":null,"error":{"error":"unknown database","details":"x"}}"#;
        assert_eq!(heard(refusal), Err("it refuses to be followed (unknown database)".to_owned()));
        assert_eq!(heard("{x}"), Err("it does not send JSON".to_owned()));
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
            text in r#"\{("(id|method|params|result|error)":("facts"|"echo"|"update"|null|1|\{\}|\[\]|\["facts",[0-9]\]),){0,4}"x":0\}"#,
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let _ = understand(text.as_bytes());
            let _ = understand(&bytes);
        }
    }
}
