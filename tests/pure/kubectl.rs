//! `packaging/kubernetes/kubectl-vnettop` beside a kubectl that plays answers and writes down what it was asked: which pod is made, what is
//! started in it, and that it is deleted however that ends. The answers are those that kubectl's documentation shows; no cluster was at hand.

use crate::rooms::root;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Two nodes, a pod on the first one, one that runs nowhere; CODE, READY, WHO and PODS come from the test.
const KUBECTL: &str = r#"#!/bin/sh
printf '%s\n' "$*" >>"$LOG/asked"
case " $* " in
  *" auth whoami "*) printf '%s' "$WHO" ;;
  *" get pods "*) printf '%s' "$PODS" ;;
  *" get node worker-1 "*InternalIP*) printf '198.18.0.11' ;;
  *" get node worker-1 "* | *" get node worker-2 "*) printf 'node/%s\n' "$(printf '%s' "$*" | sed 's/.*\(worker-.\).*/\1/')" ;;
  *" get node "*) ;;
  *" get pod web-1 "*) printf 'worker-1 10.244.1.7' ;;
  *" get pod idle "*) printf ' ' ;;
  *" get pod/"*) printf 'Pending   ErrImagePull no such image' ;;
  *" get pod "*) echo 'Error from server (NotFound): pods "x" not found' >&2; exit 1 ;;
  *" create "*) cat >>"$LOG/made"; n=$(grep -c generateName "$LOG/made"); echo "pod/kubectl-vnettop-$n" ;;
  *" wait "*) exit "${READY:-0}" ;;
  *" exec "*) echo "in the pod"; exit "${CODE:-0}" ;;
  *" delete "*) echo deleted ;;
esac
"#;
/// What a vnettop on this machine does for two nodes: it calls ssh's stand-in.
const VNETTOP: &str = r#"#!/bin/sh
printf '%s\n' "$*" >"$LOG/vnettop"
[ "$1" = --ssh-command ] || exit 0
exec $2 -T -o BatchMode=yes -- worker-2 "vnettop agent --delay 0.5 --watch 'it'\''s'"
"#;

struct Cluster {
    folder: TempDir,
}

impl Cluster {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("kubectl", KUBECTL), ("vnettop", VNETTOP)] {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
        }
        Self { folder }
    }

    fn ask(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.folder.path().display());
        let mut plugin = Command::new("sh");
        plugin.arg(root().join("packaging/kubernetes/kubectl-vnettop")).args(arguments).stdin(Stdio::null());
        plugin.env_clear().env("PATH", path).env("LOG", self.folder.path()).env("TERM", "xterm-256color");
        plugin.envs(environment.iter().copied()).output().expect("there is a sh")
    }

    /// What was asked, a line each.
    fn asked(&self) -> String {
        fs::read_to_string(self.folder.path().join("asked")).unwrap_or_default()
    }

    fn file(&self, name: &str) -> String {
        read(&self.folder.path().join(name))
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_node_gets_a_pod_with_the_rights_that_are_needed_and_loses_it() {
    let cluster = Cluster::new();
    let done = cluster.ask(&["worker-1", "--", "--json", "-n", "1"], &[]);
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "in the pod\n", "nothing but vnettop's own output");
    let asked = cluster.asked();
    let last: Vec<&str> = asked.lines().rev().take(2).collect();
    assert_eq!(last[1], "exec --stdin pod/kubectl-vnettop-1 -- /vnettop --json -n 1");
    assert!(last[0].starts_with("delete pod/kubectl-vnettop-1 --ignore-not-found"), "{}", last[0]);

    let pod: Value = serde_json::from_str(&cluster.file("made")).expect("JSON");
    let (spec, container) = (&pod["spec"], &pod["spec"]["containers"][0]);
    assert_eq!(
        (&spec["nodeName"], &spec["hostPID"], &spec["hostNetwork"]),
        (&"worker-1".into(), &true.into(), &true.into())
    );
    assert_eq!((&spec["restartPolicy"], &spec["activeDeadlineSeconds"]), (&"Never".into(), &3600.into()));
    let rights = &container["securityContext"];
    assert_eq!(rights["capabilities"]["drop"], serde_json::json!(["ALL"]));
    let added = serde_json::json!(["SYS_NICE", "SYS_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH", "SYSLOG"]);
    assert_eq!(rights["capabilities"]["add"], added, "as docs/rights.md has them");
    assert_eq!((&rights["readOnlyRootFilesystem"], &rights["privileged"]), (&true.into(), &Value::Null));
    assert_eq!(container["env"][0]["value"], "xterm-256color", "the terminal is the user's");
}

#[test]
fn a_pod_stands_for_its_node_and_is_named_with_its_address() {
    let cluster = Cluster::new();
    let done = cluster.ask(&["-n", "shop", "web-1", "--readonly", "--in", "tools", "--context", "lab"], &[]);
    assert!(done.status.success(), "{}", said(&done));
    assert!(said(&done).contains("the pod web-1 runs on worker-1, address 10.244.1.7"), "{}", said(&done));
    let asked = cluster.asked();
    assert!(asked.contains("--context lab --namespace shop get pod web-1 "), "{asked}");
    assert!(asked.contains("--context lab --namespace tools create "), "{asked}");
    assert!(asked.contains("-- /vnettop --readonly\n"), "{asked}");
    assert!(!cluster.file("made").contains("SYS_NICE"), "what changes nothing needs no right for it");
}

#[test]
fn what_vnettop_exits_with_is_what_the_plugin_exits_with_and_the_pod_goes_all_the_same() {
    let cluster = Cluster::new();
    assert_eq!(cluster.ask(&["node/worker-1"], &[("CODE", "3")]).status.code(), Some(3));
    assert!(
        cluster.asked().ends_with("delete pod/kubectl-vnettop-1 --ignore-not-found --wait=false --grace-period=5\n")
    );
}

#[test]
fn a_pod_that_does_not_get_ready_is_deleted_and_its_reason_said() {
    let cluster = Cluster::new();
    let done = cluster.ask(&["worker-1"], &[("READY", "1")]);
    assert_eq!(done.status.code(), Some(1));
    assert!(said(&done).contains("the pod on worker-1: Pending ErrImagePull no such image"), "{}", said(&done));
    let asked = cluster.asked();
    assert!(!asked.contains("exec ") && asked.contains("\ndelete pod/kubectl-vnettop-1 "), "{asked}");
}

#[test]
fn two_nodes_are_one_screen_over_their_pods() {
    let cluster = Cluster::new();
    let done = cluster.ask(&["worker-1", "worker-2", "--kubeconfig", "/k"], &[]);
    assert!(done.status.success(), "{}", said(&done));
    let vnettop = cluster.file("vnettop");
    assert!(vnettop.ends_with("--host worker-1 --host worker-2\n"), "{vnettop}");
    let asked = cluster.asked();
    let agent = "--kubeconfig /k exec --stdin pod/kubectl-vnettop-2 -- /vnettop agent --delay 0.5 --watch it's\n";
    assert!(asked.contains(agent), "the words that a shell would have made: {asked}");
    assert!(asked.contains("delete pod/kubectl-vnettop-1 pod/kubectl-vnettop-2 "), "both go: {asked}");
}

#[test]
fn ssh_goes_to_the_address_of_the_node_and_makes_no_pod() {
    let cluster = Cluster::new();
    assert!(cluster.ask(&["--ssh", "worker-1", "--", "-d", "1"], &[]).status.success());
    assert_eq!(cluster.file("vnettop"), "--host root@198.18.0.11 -d 1\n");
    assert!(!cluster.asked().contains("create"));
}

#[test]
fn a_name_that_is_none_reaches_no_cluster() {
    let strange = ["node/\"},{", "-oProxyCommand=id", "$(id)", "*", "Worker", "pod/..;id", "a/b", ""];
    for name in strange {
        let cluster = Cluster::new();
        let done = cluster.ask(&[name], &[]);
        assert_eq!(done.status.code(), Some(2), "{name}: {}", said(&done));
        assert_eq!(cluster.asked(), "", "{name}");
    }
    for (option, value) in [("--image", "a\",\"b"), ("--in", "a b"), ("-n", "--all")] {
        let cluster = Cluster::new();
        assert_eq!(cluster.ask(&[option, value, "worker-1"], &[]).status.code(), Some(2), "{option}");
        assert_eq!(cluster.asked(), "", "{option}");
    }
    let cluster = Cluster::new();
    let hostile = [("TERM", "x\",\"y"), ("COLORTERM", "\u{1b}[2J")];
    assert!(cluster.ask(&["worker-1"], &hostile).status.success());
    let pod: Value = serde_json::from_str(&cluster.file("made")).expect("JSON whatever the environment is");
    assert_eq!(pod["spec"]["containers"][0]["env"][0]["value"], "xterm");
}

#[test]
fn what_is_wrong_is_one_sentence() {
    for (arguments, says) in [
        (&["nobody"][..], "there is no node and no pod nobody"),
        (&["pod/idle"], "the pod idle runs on no node yet"),
        (&["--lissen"], "--lissen: no such option"),
        (&["-n"], "-n needs a value"),
    ] {
        let cluster = Cluster::new();
        let done = cluster.ask(arguments, &[]);
        assert!(!done.status.success());
        assert!(said(&done).contains(says), "{arguments:?}: {}", said(&done));
        assert!(!cluster.asked().contains("create"), "{arguments:?}");
    }
    let cluster = Cluster::new();
    assert!(cluster.ask(&["--clean"], &[]).status.success());
    assert!(cluster.asked().contains("get pods --selector app.kubernetes.io/name=kubectl-vnettop,"));
    assert!(!cluster.asked().contains("delete"), "there is nothing to delete");
}

/// Whose the pod is that is made with this environment: its labels.
fn labels(environment: &[(&str, &str)]) -> Value {
    let cluster = Cluster::new();
    assert!(cluster.ask(&["worker-1"], environment).status.success());
    let pod: Value = serde_json::from_str(&cluster.file("made")).expect("JSON");
    pod["metadata"]["labels"].clone()
}

fn owner(environment: &[(&str, &str)]) -> String {
    let user = labels(environment)["kubectl-vnettop/user"].as_str().expect("whose it is").to_owned();
    let ends = |end: Option<char>| end.is_some_and(|end| end.is_ascii_alphanumeric());
    assert!(ends(user.chars().next()) && ends(user.chars().last()), "a label: {user}");
    assert!(user.len() <= 63 && user.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-'), "{user}");
    user
}

#[test]
fn two_people_who_are_root_on_one_machine_are_two_owners() {
    let long = format!("arn:aws:sts::1:assumed-role/{}", "x".repeat(200));
    let people: [&[(&str, &str)]; 5] = [
        &[],
        &[("WHO", "one@shop.example")],
        &[("WHO", "two@shop.example")],
        &[("WHO", &long)],
        &[("WHO", "one@shop.example"), ("SUDO_USER", "-ann.lee-")],
    ];
    let owners: Vec<String> = people.iter().map(|environment| owner(environment)).collect();
    for (at, one) in owners.iter().enumerate() {
        assert!(!owners[..at].contains(one), "{owners:?}");
        assert_eq!(*one, owner(people[at]), "the same person is the same owner");
    }
    assert!(owners[4].starts_with("ann-lee-"), "{}", owners[4]);
}

#[test]
fn clean_deletes_your_own_pods_whose_session_has_ended_and_of_others_what_has_ended() {
    let who = [("WHO", "one@shop.example")];
    let user = owner(&who);
    let session = labels(&who)["kubectl-vnettop/session"].as_str().expect("a label").to_owned();
    assert!(session.parse::<u32>().is_ok(), "the process that made it: {session}");

    // One session runs, the number of another is another program's by now, and one made its pod before there was such a label.
    let mut waits = Command::new("sh");
    waits.args(["-c", "read line", "kubectl-vnettop"]).stdin(Stdio::piped());
    let mut runs = waits.spawn().expect("there is a sh");
    let pods = format!("kv-1={} kv-2={} kv-3=1 kv-4= ../nodes/x=1 ", runs.id(), session);
    let cluster = Cluster::new();
    let done = cluster.ask(&["--clean"], &[who[0], ("PODS", &pods)]);
    runs.kill().and_then(|()| runs.wait()).expect("it is ours");
    assert!(done.status.success(), "{}", said(&done));
    assert!(said(&done).contains("left alone: pod/kv-1, "), "{}", said(&done));
    let selector = format!("get pods --selector app.kubernetes.io/name=kubectl-vnettop,kubectl-vnettop/user={user} ");
    let asked = cluster.asked();
    assert!(asked.lines().any(|line| line.starts_with(&selector)), "{asked}");
    let deletes = |asked: &str| -> Vec<String> {
        asked.lines().filter(|line| line.starts_with("delete ")).map(ToOwned::to_owned).collect()
    };
    assert_eq!(deletes(&asked), ["delete pod/kv-2 pod/kv-3 pod/kv-4 --ignore-not-found"], "nobody else's");

    let cluster = Cluster::new();
    assert!(cluster.ask(&["--clean", "--everybody"], &[]).status.success());
    let ended = "delete pods --selector app.kubernetes.io/name=kubectl-vnettop \
                 --field-selector status.phase!=Running,status.phase!=Pending";
    assert_eq!(deletes(&cluster.asked()), [ended]);
}

#[test]
fn what_a_cluster_asks_for_goes_into_the_pod() {
    let cluster = Cluster::new();
    let options =
        ["--for", "30m", "--image-pull-secret=pull", "--selinux", "spc_t", "--steer", "--old-kernel", "worker-1"];
    let done = cluster.ask(&options, &[]);
    assert!(done.status.success(), "{}", said(&done));
    let pod: Value = serde_json::from_str(&cluster.file("made")).expect("JSON");
    let rights = &pod["spec"]["containers"][0]["securityContext"];
    assert_eq!(pod["spec"]["activeDeadlineSeconds"], 1800);
    assert_eq!(pod["spec"]["imagePullSecrets"], serde_json::json!([{"name": "pull"}]));
    assert_eq!(rights["seLinuxOptions"], serde_json::json!({"type": "spc_t"}));
    let added = serde_json::json!([
        "SYS_NICE",
        "SYS_ADMIN",
        "SYS_PTRACE",
        "DAC_READ_SEARCH",
        "SYSLOG",
        "NET_ADMIN",
        "SYS_RESOURCE"
    ]);
    assert_eq!(rights["capabilities"]["add"], added, "and no others");
    for (time, seconds) in [("8h", 28_800), ("90", 90), ("90s", 90)] {
        let cluster = Cluster::new();
        assert!(cluster.ask(&["--for", time, "worker-1"], &[]).status.success(), "{time}");
        let pod: Value = serde_json::from_str(&cluster.file("made")).expect("JSON");
        assert_eq!(pod["spec"]["activeDeadlineSeconds"], seconds, "{time}");
    }
    let wrong: [&[&str]; 9] = [
        &["--for", "0"],
        &["--for", "soon"],
        &["--for", "1d"],
        &["--for=", "--clean"],
        &["--for", "999h"],
        &["--selinux", "a\"b"],
        &["--image-pull-secret", "a\"b"],
        &["--readonly", "--steer"],
        &["--everybody"],
    ];
    for options in wrong {
        let cluster = Cluster::new();
        let done = cluster.ask(&[options, &["worker-1"]].concat(), &[]);
        assert_eq!(done.status.code(), Some(2), "{options:?}: {}", said(&done));
        assert_eq!(cluster.asked(), "", "{options:?}");
    }
}
