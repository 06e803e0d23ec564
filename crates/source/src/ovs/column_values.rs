//! The values of the database in JSON (RFC 7047, section 5.1) → plain ones. A set of at most one may come as the value
//! itself; whatever is of another type than it should be counts as absent.

use serde_json::Value;
use vnettop_sample::text::clean;

/// A row's name, for as long as the row is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Uuid(u128);

/// Names and options are short; what is longer is cut.
const LONGEST_TEXT: usize = 256;

impl Uuid {
    /// `550e8400-e29b-41d4-a716-446655440000`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().filter(|&byte| byte != b'-');
        let number = digits
            .clone()
            .try_fold(0u128, |number, byte| Some(number << 4 | u128::from((byte as char).to_digit(16)?)))?;
        (digits.count() == 32).then_some(Self(number))
    }
}

/// The members of a set; a value that is no set is a set of itself.
pub(super) fn members(value: &Value) -> &[Value] {
    match value.as_array().map(Vec::as_slice) {
        Some([Value::String(word), Value::Array(members)]) if word == "set" => members,
        _ => std::slice::from_ref(value),
    }
}

/// A string, made harmless; none where it is empty.
pub(super) fn text(value: &Value) -> Option<String> {
    let [Value::String(text)] = members(value) else { return None };
    let bytes = text.as_bytes();
    Some(clean(&bytes[..bytes.len().min(LONGEST_TEXT)])).filter(|text| !text.is_empty())
}

/// An integer.
pub(super) fn number(value: &Value) -> Option<i64> {
    let [value] = members(value) else { return None };
    value.as_i64()
}

/// References to rows: `["uuid", …]`.
pub(super) fn uuids(value: &Value) -> Vec<Uuid> {
    let uuid = |member: &Value| match member.as_array().map(Vec::as_slice) {
        Some([Value::String(word), Value::String(text)]) if word == "uuid" => Uuid::parse(text),
        _ => None,
    };
    members(value).iter().filter_map(uuid).collect()
}

/// What a map has under a key: `["map", [[key, value], …]]`.
pub(super) fn under<'a>(map: &'a Value, key: &str) -> Option<&'a Value> {
    let Some([Value::String(word), Value::Array(pairs)]) = map.as_array().map(Vec::as_slice) else { return None };
    let of = |pair: &'a Value| match pair.as_array().map(Vec::as_slice) {
        Some([Value::String(name), value]) if name == key => Some(value),
        _ => None,
    };
    if word == "map" { pairs.iter().find_map(of) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sets_of_one_are_values_and_values_are_sets_of_one() {
        assert_eq!(text(&json!("vxlan")).as_deref(), Some("vxlan"));
        assert_eq!(text(&json!(["set", ["a\u{1b}b"]])).as_deref(), Some("a?b"), "text is made harmless");
        assert_eq!(text(&json!(["set", []])), None, "an empty set is nothing");
        assert_eq!(text(&json!("")), None, "an empty string is nothing");
        assert_eq!((number(&json!(["set", [7]])), number(&json!(-1)), number(&json!("1"))), (Some(7), Some(-1), None));
        let id = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(uuids(&json!(["uuid", id])), [Uuid(0x550e_8400_e29b_41d4_a716_4466_5544_0000)]);
        assert_eq!(uuids(&json!(["set", [["uuid", id], ["uuid", "zz"], 3]])).len(), 1, "what is no row is left out");
    }

    #[test]
    fn a_map_is_looked_up_by_its_key() {
        let map = json!(["map", [["remote_ip", "198.18.0.1"], ["key", "7"], 3, ["x"]]]);
        assert_eq!(under(&map, "key").and_then(text).as_deref(), Some("7"));
        assert_eq!(under(&map, "x"), None);
        assert_eq!(under(&json!({"key": 1}), "key"), None, "an object is no map of the database");
    }
}
