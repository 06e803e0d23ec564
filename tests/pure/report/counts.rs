//! One thing has one count in a report, or says over which time it is counted; and what is named is found in its tables.

use super::{json, report, root, systems};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vnettop::record::{Recorder, Recording};
use vnettop::sample::{
    CoreProfile, Event, FirewallRules, Ifindex, Item, LinkKey, ProfiledFunction, ProfiledStack, Sample,
};

fn system(name: &str) -> PathBuf {
    root().join(format!("tests/fixtures/systems/{name}.vnettop.zst"))
}

/// The tests of its only recording.
fn tests(file: &Path) -> Vec<Value> {
    json(false, &[file])["recordings"][0]["summary"]["tests"].as_array().expect("tests").clone()
}

fn rows(of: &Value) -> impl Iterator<Item = &Value> {
    of.as_array().expect("a list").iter()
}

#[test]
fn lost_packets_are_counted_once() {
    let mut lost_there = 0.0;
    for file in systems() {
        for test in tests(&file) {
            let packets = |loss: &Value| loss["packets"].as_f64().expect("a count");
            let all: f64 = rows(&test["losses"]).map(packets).sum();
            assert!((all - test["lost_packets"].as_f64().expect("a count")).abs() < 0.5, "{}: {all}", file.display());
            for hop in rows(&test["paths"]).flat_map(|path| rows(&path["hops"])) {
                let is_here = |loss: &&Value| loss["netns"] == hop["netns"] && loss["ifindex"] == hop["ifindex"];
                let here: f64 = rows(&test["losses"]).filter(is_here).map(packets).sum();
                assert_eq!(hop["lost"].as_f64(), Some(here), "{}: {hop}", file.display());
                lost_there += here;
            }
        }
    }
    assert!(lost_there > 25_000.0, "some lose packets on their path: {lost_there}");
    let guest = report("markdown", false, &[&system("guest-on-bridge")]);
    // As many segments were sent again.
    let of_link = guest.lines().find(|line| line.contains("25,126") && !line.contains("etransmits"));
    assert_eq!(of_link, None, "the link's counter of another time stands nowhere");
    let row = guest.lines().find(|line| line.starts_with("| 2 tap0 |")).expect("the link of the path");
    assert!(row.contains("| 25,223 |"), "{row}");
    for begins in ["- losses: 2.36 % of packets lost (25,223)", "- 2.36 % of packets lost (25,223)"] {
        assert!(guest.contains(begins), "{begins}: {guest}");
    }
    let shaped = report("markdown", false, &[&root().join("tests/fixtures/latency/tbf.vnettop.zst")]);
    let beside = "776 packets/s dropped (at the end; 3,104 packets lost over the whole test)";
    assert!(shaped.contains(beside), "what a rate came to: {shaped}");
    assert!(shaped.contains(" | allowed at the end |") && shaped.contains(" | cores 0-1 (all) |"), "{shaped}");
    assert!(
        shaped.contains("comes (`ip netns exec xa tc -s qdisc show dev x1`)"),
        "a command is pasted as it is: {shaped}"
    );
    assert!(shaped.contains("\n- CV: ") && !shaped.contains("\n- 99 % interval: "), "words that stand there: {shaped}");
}

#[test]
fn migrations_say_over_which_time_they_are_counted() {
    let nat = report("markdown", false, &[&system("docker-nat")]);
    assert!(nat.contains("28 of its threads, from core to core"), "{nat}");
    assert!(nat.contains("Its threads while the test ran; "), "{nat}");
    assert!(!nat.contains("| watched |"), "each for as long as the test, whose length stands above: {nat}");
}

#[test]
fn nobody_is_sent_to_the_other_end_while_both_cores_are_full() {
    let guest = report("markdown", false, &[&system("guest-on-macvtap")]);
    let first = guest.split_once("\n## ").expect("a test").0;
    assert!(!first.contains("look at the other end") && !first.contains("nothing is saturated"), "{first}");
    assert!(first.contains("Held back and unsteady, other programs fill core 0: "), "{first}");
}

#[test]
fn the_verdict_comes_before_its_figures_and_a_cost_has_a_why() {
    let proxy = report("markdown", false, &[&system("docker-proxy")]);
    assert!(proxy.starts_with("# Held back and unsteady, other programs fill core "), "state and cause: {proxy:.80}");
    let at = |label: &str| proxy.find(&format!("\n\n{label}: ")).unwrap_or_else(|| panic!("{label}: {proxy:.900}"));
    assert!(at("Why") < at("Do"), "in the screen's order");
    assert!(proxy.contains("Why: core "), "{proxy:.900}");
    for file in systems() {
        let page = report("markdown", false, &[&file]);
        let first = page.split_once("\n## ").expect("a test").0;
        assert!(!first.contains("\n\nCost: ") || first.contains("\n\nWhy: "), "{}: {first}", file.display());
    }
}

#[test]
fn threads_and_namespaces_have_one_name() {
    for file in systems() {
        let page = report("markdown", false, &[&file]);
        let numbered = page.split("busy threads (").skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        assert!(!numbered && !page.contains("| tid |"), "{}: names", file.display());
        for head in ["kind | packets |", "kind | nominal speed |"] {
            let heads = ["| link | netns | owner | ", "| link | netns | "].map(|begins| format!("{begins}{head}"));
            assert!(heads.iter().any(|head| page.contains(head)), "{}: {head}", file.display());
        }
    }
    let nat = report("markdown", false, &[&system("docker-nat")]);
    let of = |begins: &str| {
        let row = nat.lines().find(|line| line.starts_with(begins)).expect("a row");
        row.split(" | ").nth(1).expect("a namespace").to_owned()
    };
    assert_eq!(of("| eth0 |"), of("| 5 eth0 |"), "in the links as in the path");
    assert_eq!([of("| nic0 |"), of("| 2 nic0 |")], ["own", "own"]);
}

#[test]
fn a_core_that_is_named_is_in_the_table() {
    for file in systems().iter().chain([&super::shipped()]) {
        let page = report("markdown", false, &[file]);
        let table = page.split_once("| core | busy |").expect("a table").1;
        let table = table.split_once("\n\n").expect("its end").0.replace(" · ", " |");
        for test in tests(file) {
            for core in rows(&test["limits"]).filter_map(|limit| limit["numbers"]["core"].as_f64()) {
                assert!(table.contains(&format!("| core {core} |")), "{}: core {core}: {table}", file.display());
            }
        }
    }
}

/// The sample with so many rules, and what core 1 did in the second before it.
fn with_rules(mut sample: Sample) -> [Item; 2] {
    let function = |name: &str| ProfiledFunction { name: Some(name.to_owned()), module: None, kernel: true };
    let stack = |functions, samples| ProfiledStack { program: None, pid: 1, functions, samples, weight: 2_004_008 };
    let profile = CoreProfile {
        core: 1,
        from_ns: sample.at_ns.saturating_sub(500_000_000),
        to_ns: sample.at_ns,
        hz: 499,
        functions: ["nft_do_chain", "nf_hook_slow", "ip_forward", "net_rx_action", "handle_softirqs", "__irq_exit_rcu"]
            .map(function)
            .to_vec(),
        stacks: vec![stack((0..6).collect(), 250)],
        ..CoreProfile::default()
    };
    let link =
        sample.facts.links.first().map_or(LinkKey { netns: sample.netns, ifindex: Ifindex(1) }, |link| link.key());
    sample.facts_mut().firewall = Arc::new(vec![FirewallRules { link, rules: Some(1_000), gap: None }]);
    [Item::Event(Event::Profiled(Box::new(profile))), Item::Sample(Box::new(sample))]
}

#[test]
fn a_profile_says_how_many_rules_packets_met() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rules.vnettop.zst");
    let (mut recorder, mut nat) =
        (Recorder::create(&file).expect("a file"), Recording::open(&system("docker-nat")).expect("a recording"));
    while let Some(item) = nat.next_item().expect("an item") {
        match item {
            Item::Sample(sample) => {
                for item in with_rules(*sample) {
                    recorder.write(&item).expect("written");
                }
            }
            item @ Item::Event(_) => recorder.write(&item).expect("written"),
        }
    }
    recorder.finish().expect("written");
    let profile = &json(false, &[&file])["recordings"][0]["summary"]["profiles"][0];
    assert_eq!(profile["rules"][0]["rules"], 1_000, "{profile}");
    assert_eq!(profile["rules"][0]["gap"], Value::Null);
    let link = profile["rules"][0]["link"].as_str().expect("its name").to_owned();
    let (markdown, page) = (report("markdown", false, &[&file]), report("html", false, &[&file]));
    for text in [&markdown, &page] {
        assert!(text.contains(&format!("nft, conntrack (1,000 rules on {link})")), "{text}");
    }
    assert!(markdown.contains(&format!("| firewall on the paths | 1,000 rules on {link} |")), "{markdown}");
}

#[test]
fn what_few_read_is_folded_and_paper_has_what_is_open() {
    let page = report("html", false, &[&super::shipped()]);
    for title in ["Links", "The machine in detail", "Words"] {
        let summary = format!("<summary>{title}</summary>");
        assert!(page.contains(&summary), "{title} is folded");
    }
    let graph = page.find("<title>Rate over time</title>").expect("the graph");
    assert!(
        graph < page.find("<details").expect("a fold") && graph < page.find("<dl class=\"figures\">").expect("figures")
    );
    assert!(!page.contains("details-content"), "what is folded is not printed");
}

#[test]
fn figures_that_stand_beside_each_other_are_of_the_same_time() {
    for file in systems() {
        let summary = &json(false, &[&file])["recordings"][0]["summary"];
        for test in rows(&summary["tests"]) {
            let Some(mean) = test["mean_bits_per_s"].as_f64() else { continue };
            for hop in rows(&test["paths"]).flat_map(|path| rows(&path["hops"])) {
                let Some(carried) = hop["mean_bits_per_s"].as_f64() else { continue };
                assert!(carried >= 0.97 * mean, "{}: {carried} of {mean}: {hop}", file.display());
            }
        }
    }
    let page = report("markdown", false, &[&system("docker-proxy")]);
    assert!(
        page.contains("| eth0 | server | server | veth | 10.0 Gbit/s (constant of the driver) | 3.04 Gbit/s |"),
        "{page}"
    );
    assert!(page.contains("All traffic, means of 5.5 s of the test; "), "{page}");
    assert!(!page.contains("Cause: other programs fill core 1"), "the headline has core 0: {page}");
}

#[test]
fn a_test_has_what_it_was_asked_for_and_what_it_cost() {
    let page = report("markdown", false, &[&root().join("tests/fixtures/tests/stopped-reader.vnettop.zst")]);
    assert!(
        page.contains("| asked for | 200 Mbit/s |")
            && page.contains("| mean rate | 140 Mbit/s | payload that arrived, 72.0 % of what was sent |"),
        "{page}"
    );
    assert!(page.contains("| CPU per Gbit | 1.6"), "{page}");
    assert!(!page.contains("and none arrives"), "that is the same loss once more: {page}");
    assert_eq!(page.matches("- losses: ").count(), 1, "{page}");
    let busy = report("html", false, &[&system("docker-proxy")]);
    assert!(busy.contains(">\n0 %\n<") && busy.contains(">\n100 %\n<"), "maps have a scale");
}
