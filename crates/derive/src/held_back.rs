//! What holds a test back, as a value: the judgement is in [`super::limit`], and findings follow from it.

use super::losses::LossPlace;
use vnettop_sample::CoreId;

/// The figure of a test that its client was asked for.
pub(crate) const ASKED_BITS_PER_S: &str = "asked_bits_per_s";
/// The figure of about how much more a test would carry if its threads need not wait for a core.
pub(crate) const GAIN_BITS_PER_S: &str = "gain_bits_per_s";
/// What it is that holds a test back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LimitKind {
    /// A core that is full, most of it with the test's own threads.
    OwnThread,
    /// A core that is full, most of it with the softirqs of the test's packets.
    OwnSoftirq,
    /// A core that others use, so that a thread of the test waits for it.
    Others,
    /// A thread that carries the packets between the ends and has no core of its own, or not enough of one.
    Worker,
    /// The hypervisor, which gives a core of the test to others.
    Steal,
    /// A core that is full, and whose clock is held below what it could do.
    Frequency,
    /// The CPU quota of a cgroup.
    Quota,
    /// A qdisc that holds packets back or drops them.
    Qdisc,
    /// Another place where packets are lost.
    Loss,
    /// The receiver's window.
    ReceiveWindow,
    /// The sender's buffer.
    SendBuffer,
    /// The congestion window.
    CongestionWindow,
    /// A rate at which the sender is paced.
    Pacing,
    /// The sending program has no more to send, or was asked for no more.
    Application,
    /// The speed of a link, where it is a real one.
    Claim,
    /// Nothing that is seen from here.
    Nothing,
}

/// What holds a test back.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// What kind of thing.
    pub kind: LimitKind,
    /// One sentence, with its figures.
    pub text: String,
    /// The core that is full.
    pub core: Option<CoreId>,
    /// What it is called: the program that fills the core, the qdisc and its link, the link, the place of the loss.
    pub name: Option<String>,
    /// That program's process.
    pub pid: Option<u32>,
    /// The thread, where it is one.
    pub tid: Option<u32>,
    /// The key that proposes another core for that thread, where one can be proposed.
    pub key: Option<char>,
    /// The figures, by name with unit; shares are of 1.
    pub numbers: Vec<(&'static str, f64)>,
    /// What it does to the test, as a clause for the finding that it explains; `None` where that is not seen.
    pub because: Option<String>,
    /// How long a thread waits for that core, as a clause; `None` where none is seen to.
    pub waits: Option<String>,
    /// How much is lost, as `text` ends with it: `; 66 % of packets lost`; empty where it does not.
    pub lost: String,
    /// The place of the losses that follow from it.
    pub loses: Option<LossPlace>,
}

impl Limit {
    pub(crate) fn new(kind: LimitKind, text: String, numbers: Vec<(&'static str, f64)>) -> Self {
        Self {
            kind,
            text,
            core: None,
            name: None,
            pid: None,
            tid: None,
            key: None,
            numbers,
            because: None,
            waits: None,
            lost: String::new(),
            loses: None,
        }
    }

    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    pub(crate) fn because(self, clause: String) -> Self {
        Self { because: Some(clause), ..self }
    }
}

impl Limit {
    /// The sentence without how much is lost, for whoever says that beside it.
    #[must_use]
    pub fn text_alone(&self) -> &str {
        self.text.strip_suffix(&self.lost).unwrap_or(&self.text)
    }

    /// A ceiling that somebody set, which the test has reached: nothing else would make it faster.
    pub(crate) fn is_ceiling(&self) -> bool {
        matches!(self.kind, LimitKind::Pacing | LimitKind::Claim) || self.meets_what_was_asked()
    }

    /// The test carries what its client was asked for.
    #[must_use]
    pub fn meets_what_was_asked(&self) -> bool {
        self.asked_bits_per_s().is_some()
    }

    /// What its client was asked for, bits/s, where the test carries that.
    #[must_use]
    pub fn asked_bits_per_s(&self) -> Option<f64> {
        let asked = self.numbers.iter().find(|(name, _)| *name == ASKED_BITS_PER_S);
        asked.filter(|_| self.kind == LimitKind::Application).map(|(_, bits_per_s)| *bits_per_s)
    }

    /// About how much more the test would carry if its threads need not wait for a core, by the CPU time that a bit takes now.
    pub(crate) fn gain_bits_per_s(&self) -> Option<f64> {
        self.numbers.iter().find(|(name, _)| *name == GAIN_BITS_PER_S).map(|(_, bits_per_s)| *bits_per_s)
    }

    /// A thread of the test, or between its ends, gets too little of a core.
    #[must_use]
    pub fn lacks_cpu(&self) -> bool {
        matches!(self.kind, LimitKind::Others | LimitKind::Steal | LimitKind::Worker | LimitKind::Quota)
    }

    /// Another core gives no thread of the test more time: its cgroup or the hypervisor holds it back.
    #[must_use]
    pub fn is_beyond_cores(&self) -> bool {
        matches!(self.kind, LimitKind::Steal | LimitKind::Quota)
    }

    /// Why packets are lost at this place, where it follows from this limit.
    pub(crate) fn explains(&self, place: LossPlace) -> Option<&str> {
        self.because.as_deref().filter(|_| self.loses == Some(place))
    }

    /// Why the rate swings, in a few words, when the limit makes any rate unsteady; LIMIT says more.
    pub(crate) fn makes_unsteady(&self) -> Option<String> {
        Some(match (self.kind, self.core) {
            (LimitKind::Others, Some(core)) => format!("other programs fill core {core}"),
            (LimitKind::Others, None) => "other programs fill a core".to_owned(),
            (LimitKind::Worker, _) => "a thread between the ends lacks CPU time".to_owned(),
            (LimitKind::Loss, _) => "packets are lost".to_owned(),
            (LimitKind::Quota, _) => "a CPU quota is used up".to_owned(),
            _ => return None,
        })
    }
}
