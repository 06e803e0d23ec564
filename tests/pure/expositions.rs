//! What `vnettop export` serves of every recorded system: each series once, finite, and no counter that falls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vnettop::derive::{Derivation, Metrics, Totals};
use vnettop::record::Recording;
use vnettop::report::exposition::{ExpositionFormat, exposition};
use vnettop::sample::{Kind, Owned, Owner, OwnerBy, OwnerKind};

const FORMATS: [ExpositionFormat; 2] = [ExpositionFormat::OpenMetrics, ExpositionFormat::Text];

fn systems() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/systems");
    let files = fs::read_dir(folder).expect("the recorded systems").map(|entry| entry.expect("readable").path());
    files.filter(|path| path.extension().is_some_and(|end| end == "zst")).chain([with_latency()]).collect()
}

fn with_latency() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/latency/tbf.vnettop.zst")
}

/// Series → value of a page, which is as its format says.
fn series(page: &str, format: ExpositionFormat) -> BTreeMap<&str, f64> {
    assert!(page.ends_with('\n'), "the last line has its end");
    assert_eq!(
        page.ends_with("# EOF\n"),
        format == ExpositionFormat::OpenMetrics,
        "only OpenMetrics says where it ends"
    );
    let mut series = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("a number: {line}"));
        assert!(value.is_finite() && value >= 0.0, "{line}");
        let labels = name.split_once('{').map_or("{}", |(_, labels)| labels);
        assert!(labels.ends_with('}') && labels.matches('"').count() % 2 == 0, "{line}");
        assert_eq!(series.insert(name, value), None, "twice: {name}");
    }
    series
}

#[test]
fn of_every_system_each_series_is_there_once_and_no_counter_falls() {
    let systems = systems();
    assert!(systems.len() > 10, "the systems are found");
    for path in systems {
        let mut recording = Recording::open(&path).expect("a recording");
        let (mut derivation, mut totals) = (Derivation::default(), Totals::new(2000));
        let mut before: BTreeMap<String, f64> = BTreeMap::new();
        while let Some(item) = recording.next_item().expect("readable") {
            let Some(metrics) = derivation.advance(item) else { continue };
            totals.observe(&metrics);
            let [open, plain] = FORMATS.map(|format| exposition(&totals, &metrics, format));
            let now = series(&plain, ExpositionFormat::Text);
            assert_eq!(now.len(), series(&open, ExpositionFormat::OpenMetrics).len(), "both have the same series");
            let counts = |name: &str| ["_total", "_bucket", "_sum", "_count"].iter().any(|end| name.contains(end));
            for (name, value) in now.iter().filter(|(name, _)| counts(name)) {
                let was = before.get(*name).copied().unwrap_or_default();
                assert!(*value >= was, "{}: {name} fell from {was} to {value}", path.display());
            }
            before = now.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        }
        assert!(before.keys().any(|name| name.starts_with("vnettop_link_receive_bytes_total")), "{}", path.display());
    }
}

#[test]
fn latency_is_a_histogram_of_each_stage_with_all_that_was_counted() {
    let mut recording = Recording::open(&with_latency()).expect("a recording");
    let (mut derivation, mut totals) = (Derivation::default(), Totals::new(2000));
    let mut newest: Option<Metrics> = None;
    while let Some(item) = recording.next_item().expect("readable") {
        let Some(metrics) = derivation.advance(item) else { continue };
        totals.observe(&metrics);
        newest = Some(metrics);
    }
    let metrics = newest.expect("samples");
    let whole = metrics.subject.latency.as_ref().and_then(|latency| latency.whole.as_ref()).expect("it was measured");
    for format in FORMATS {
        let page = exposition(&totals, &metrics, format);
        assert!(page.contains("# TYPE vnettop_test_latency_seconds histogram"), "{page}");
        let series = series(&page, format);
        let of_whole = |part: &str| -> Vec<f64> {
            let is_it = |name: &str| name.starts_with(&format!("vnettop_test_latency_seconds_{part}{{"));
            let own = series.iter().filter(|(name, _)| is_it(name) && name.contains("stage=\"whole\""));
            own.map(|(_, value)| *value).collect()
        };
        assert_eq!(of_whole("count"), [whole.so_far.count() as f64], "each packet once");
        assert!((of_whole("sum")[0] - whole.so_far.sum_s()).abs() < 1e-6, "all their time");
        let buckets = of_whole("bucket");
        assert_eq!(buckets.len(), 13, "as many as docs/export.md says");
        assert!(buckets.contains(&(whole.so_far.count() as f64)), "the last one has them all: {buckets:?}");
        let all = series.keys().filter(|name| name.starts_with("vnettop_test_latency_seconds")).count();
        assert!(all <= 6 * 15, "{all} series of one test");
    }
}

/// `lacks_cpu` of `LacksCpu`.
fn word(variant: &str) -> String {
    let mut word = String::new();
    for (at, letter) in variant.char_indices() {
        word.extend((at > 0 && letter.is_ascii_uppercase()).then_some('_'));
        word.push(letter.to_ascii_lowercase());
    }
    word
}

#[test]
fn each_finding_is_told_and_counted_in_the_manual() {
    let read = |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("readable");
    let (code, manual) = (read("crates/derive/src/finding.rs"), read("docs/export.md"));
    let (_, variants) = code.split_once("pub enum FindingId {").expect("the findings");
    let (variants, _) = variants.split_once('}').expect("their end");
    let expected: BTreeSet<String> =
        variants.split(',').map(|of| word(of.trim())).filter(|id| !id.is_empty()).collect();
    let (_, list) = manual.split_once("\n- `id`: ").expect("the list of them");
    let (list, _) = list.split_once("\n- ").expect("its end");
    let told: BTreeSet<String> = list.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert_eq!(told, expected, "the list of findings in docs/export.md");
    assert!(manual.contains(&format!("| findings | {} | 1 series |", expected.len())), "{} of them", expected.len());
}

fn newest() -> Metrics {
    let mut recording = Recording::open(&systems()[0]).expect("a recording");
    let mut derivation = Derivation::default();
    let mut newest: Option<Metrics> = None;
    while let Some(item) = recording.next_item().expect("readable") {
        newest = derivation.advance(item).or(newest);
    }
    newest.expect("samples")
}

#[test]
fn pods_of_one_name_are_told_by_their_kubernetes_namespaces() {
    let mut metrics = newest();
    let machine = Arc::make_mut(&mut metrics.machine);
    let (own, mut namespaces) = (machine.netns, ["shop", "test"].into_iter());
    let mut owners = Vec::new();
    for link in Arc::make_mut(&mut machine.links).iter_mut().filter(|link| link.facts.netns == own) {
        let Some(namespace) = namespaces.next() else { break };
        Arc::make_mut(&mut link.facts).kind = Kind::Veth;
        let owner = Owner {
            kind: OwnerKind::Pod,
            name: "web-0".to_owned(),
            id: None,
            by: OwnerBy::Kubernetes,
            guess: false,
            pod_namespace: Some(namespace.to_owned()),
        };
        owners.push(Owned { link: link.facts.key(), owner });
    }
    assert_eq!(owners.len(), 2, "the recording has two links");
    machine.owners = Arc::new(owners);
    let mut totals = Totals::new(2000);
    totals.observe(&metrics);
    for format in FORMATS {
        let page = exposition(&totals, &metrics, format);
        let all = series(&page, format);
        for namespace in ["shop", "test"] {
            let labels = r#"netns="own",link="",kind="veth",owner="web-0""#;
            let name = format!("vnettop_link_receive_bytes_total{{{labels},namespace=\"{namespace}\",pod=\"web-0\"}}");
            assert!(all.contains_key(&*name), "{name}: {page}");
        }
        let pods = all.keys().filter(|name| name.contains("pod=")).count();
        assert_eq!(pods, all.keys().filter(|name| name.contains("owner=\"web-0\"")).count(), "a pod's alone have them");
    }
}

#[test]
fn names_with_quotes_and_ends_of_lines_stay_in_their_label() {
    let mut metrics = newest();
    for (number, link) in Arc::make_mut(&mut Arc::make_mut(&mut metrics.machine).links).iter_mut().enumerate() {
        Arc::make_mut(&mut link.facts).name = format!("a\"}} 1\n\\{number}");
    }
    let mut totals = Totals::new(2000);
    totals.observe(&metrics);
    for format in FORMATS {
        let page = exposition(&totals, &metrics, format);
        let links = page.lines().filter(|line| line.starts_with("vnettop_link_receive_bytes_total{"));
        let escaped = links.filter(|line| line.contains(r#"link="a\"} 1\n\\"#)).count();
        assert_eq!(escaped, metrics.machine.links.iter().filter(|link| link.counters.is_some()).count(), "{page}");
    }
}
