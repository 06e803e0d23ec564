//! What Docker answers (JSON) → the names of containers and networks. Whatever is not as Docker writes it is left out; all
//! text is made harmless here.

use super::super::cgroup::{self, SHORT_ID, is_id};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a name may be long, characters.
const LONGEST: usize = 128;

/// A network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::owners) struct Network {
    /// Its whole id: hexadecimal, of a swarm's overlay other digits.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The bridge that it was told to use.
    pub bridge: Option<String>,
    /// It spreads published ports over the nodes of a swarm, which has one such network, whatever its name.
    pub ingress: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Container {
    id: String,
    names: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Net {
    id: String,
    name: String,
    options: Option<BTreeMap<String, serde_json::Value>>,
    #[serde(default)]
    ingress: bool,
}

/// Names by the first digits of their ids; none when it is no answer to `/containers/json`.
pub(super) fn containers(body: &[u8]) -> Option<BTreeMap<String, String>> {
    let containers: Vec<Container> = serde_json::from_slice(body).ok()?;
    let named = |container: Container| {
        let id = Some(container.id).filter(|id| is_id(id.as_bytes()))?;
        // Names by which others know it (links) have a second slash.
        let names = container.names.unwrap_or_default();
        let own = names.iter().find_map(|name| name.strip_prefix('/').filter(|name| !name.contains('/')))?;
        Some((id[..SHORT_ID].to_owned(), short(own)?))
    };
    Some(containers.into_iter().filter_map(named).collect())
}

/// None when it is no answer to `/networks`.
pub(super) fn networks(body: &[u8]) -> Option<Vec<Network>> {
    let networks: Vec<Net> = serde_json::from_slice(body).ok()?;
    let named = |network: Net| {
        let bridge = network.options.and_then(|mut options| options.remove("com.docker.network.bridge.name"));
        let bridge = bridge.as_ref().and_then(serde_json::Value::as_str).and_then(short);
        Some(Network { id: short(&network.id)?, name: short(&network.name)?, bridge, ingress: network.ingress })
    };
    Some(networks.into_iter().filter_map(named).collect())
}

fn short(text: &str) -> Option<String> {
    cgroup::short(text.as_bytes(), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn containers_have_their_own_names() {
        let names =
            containers(include_bytes!("../../../../../tests/fixtures/owners/containers.json")).expect("an answer");
        assert_eq!(names["a51cac518006"], "container1", "not the one that another container calls it by");
        assert_eq!(names["b62dbd629117"], "sidecar", "without labels too");
    }

    #[test]
    fn networks_have_names_and_perhaps_a_bridge() {
        let all = networks(include_bytes!("../../../../../tests/fixtures/owners/networks.json")).expect("an answer");
        let bridges: Vec<_> = all.iter().map(|network| (&*network.name, network.bridge.as_deref())).collect();
        let expected =
            [("bridge", Some("docker0")), ("bench-net", None), ("over", None), ("front", None), ("host", None)];
        assert_eq!(bridges, expected, "only the default bridge was told its link's name");
        let ingress: Vec<_> = all.iter().filter(|network| network.ingress).map(|network| &*network.name).collect();
        assert_eq!(ingress, ["front"], "the ingress network may have any name");
    }

    #[test]
    fn hostile_answers_are_left_out_or_made_harmless() {
        let id = "a".repeat(64);
        let named = |name: &str| containers(format!(r#"[{{"Id":"{id}","Names":["{name}"]}}]"#).as_bytes());
        assert_eq!(named("/\\u001b[2J").expect("an answer")["aaaaaaaaaaaa"], "?[2J", "no escape code gets through");
        assert_eq!(named("").expect("an answer").len(), 0, "no name is no name");
        assert_eq!(containers(br#"[{"Id":"../../x","Names":["/x"]}]"#).expect("an answer").len(), 0, "no id");
        for body in ["", "{}", "null", "[", "[1]", r#"{"message":"permission denied"}"#, &"[".repeat(100_000)] {
            assert_eq!(containers(body.as_bytes()), None, "{body:.20} is no list of containers");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = (containers(&bytes), networks(&bytes));
        }
    }
}
