//! Stacks → shares of stages.

use super::StageShare;
use super::stage::{CoreStage, is_interrupt, is_kernel_thread, of_function};
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{CoreProfile, ProfiledFunction, ProfiledStack};

/// Functions of a stage that are named.
const MOST_FUNCTIONS: usize = 8;
/// Most other programs by name; the rest is one.
const MOST_PROGRAMS: usize = 8;

/// The sums of some stretches.
pub(super) struct Fold<'a> {
    own: &'a BTreeSet<u32>,
    /// Weight by stage and program, and of that by innermost function.
    parts: BTreeMap<(CoreStage, Option<String>), StagePart>,
    samples: u64,
}

#[derive(Default)]
struct StagePart {
    weight: u64,
    functions: BTreeMap<String, u64>,
}

impl<'a> Fold<'a> {
    /// `own` are the processes whose work is told stage by stage.
    pub fn new(own: &'a BTreeSet<u32>) -> Self {
        Self { own, parts: BTreeMap::new(), samples: 0 }
    }

    pub fn samples(&self) -> u64 {
        self.samples
    }

    pub fn add(&mut self, profile: &CoreProfile) {
        let placed = PlacedStacks::new(profile, self.own);
        for stack in &profile.stacks {
            let (stage, program) = placed.place(stack);
            self.samples += u64::from(stack.samples);
            let part = self.parts.entry((stage, program)).or_default();
            part.weight += stack.weight;
            let innermost = stack.functions.first().and_then(|&at| placed.function(at));
            if let Some(function) = innermost.filter(|_| stage != CoreStage::Program) {
                *part.functions.entry(called(function)).or_default() += stack.weight;
            }
        }
    }

    /// The shares of all that was looked at, which add up to 1; of a core's cycles, with its idle share beside them.
    pub fn stages(mut self, idle: Option<f64>) -> Vec<StageShare> {
        self.join_small_programs();
        let all: u64 = self.parts.values().map(|part| part.weight).sum();
        let busy = 1.0 - idle.unwrap_or(0.0).clamp(0.0, 1.0);
        let share = |weight: u64| weight as f64 / all.max(1) as f64 * busy;
        let mut stages: Vec<StageShare> = self
            .parts
            .into_iter()
            .map(|((stage, program), part)| {
                let mut functions: Vec<_> =
                    part.functions.into_iter().map(|(name, weight)| (name, share(weight))).collect();
                functions.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
                functions.truncate(MOST_FUNCTIONS);
                StageShare { stage, program, share: share(part.weight), functions }
            })
            .collect();
        if busy < 1.0 {
            match stages.iter_mut().find(|one| one.stage == CoreStage::Idle) {
                Some(halted) => halted.share += 1.0 - busy,
                None => stages.push(StageShare {
                    stage: CoreStage::Idle,
                    program: None,
                    share: 1.0 - busy,
                    functions: Vec::new(),
                }),
            }
        }
        let is_last = |one: &StageShare| matches!(one.stage, CoreStage::Idle | CoreStage::Unknown);
        stages.sort_by(|one, other| is_last(one).cmp(&is_last(other)).then(other.share.total_cmp(&one.share)));
        stages
    }

    /// Many programs with little each are one line.
    fn join_small_programs(&mut self) {
        let is_program = |key: &(CoreStage, Option<String>)| key.0 == CoreStage::Program && key.1.is_some();
        let mut programs: Vec<_> = self
            .parts
            .iter()
            .filter(|(key, _)| is_program(key))
            .map(|(key, part)| (part.weight, key.clone()))
            .collect();
        programs.sort_unstable_by(|one, other| other.cmp(one));
        for (weight, key) in programs.into_iter().skip(MOST_PROGRAMS) {
            self.parts.remove(&key);
            self.parts.entry((CoreStage::Program, None)).or_default().weight += weight;
        }
    }
}

/// The stacks of a stretch, each with whose it is.
pub(super) struct PlacedStacks<'a> {
    profile: &'a CoreProfile,
    own: &'a BTreeSet<u32>,
    /// The stage of each function; none of one that belongs to its caller.
    stages: Vec<Option<CoreStage>>,
}

impl<'a> PlacedStacks<'a> {
    /// `own` are the processes whose work is told stage by stage.
    pub fn new(profile: &'a CoreProfile, own: &'a BTreeSet<u32>) -> Self {
        let stage = |one: &ProfiledFunction| if one.kernel { of_function(one) } else { Some(CoreStage::Application) };
        Self { profile, own, stages: profile.functions.iter().map(stage).collect() }
    }

    pub fn function(&self, at: u32) -> Option<&'a ProfiledFunction> {
        self.profile.functions.get(place(at))
    }

    /// Whose a stack is.
    fn place(&self, stack: &ProfiledStack) -> (CoreStage, Option<String>) {
        let stage = |at: &u32| self.stages.get(place(*at)).copied().flatten();
        let is_of_kernel = || stack.functions.last().and_then(|&at| self.function(at)).is_some_and(is_kernel_thread);
        let (is_own, entry) = (self.is_own(stack), self.entry(stack));
        // An interrupt comes while anybody runs: what it does is nobody's.
        let looked_at = match entry {
            Some(entry) if !is_own => &stack.functions[..=entry],
            _ => &stack.functions[..],
        };
        let found = looked_at.iter().find_map(stage);
        match found {
            Some(stage) if is_own || entry.is_some() => (stage, None),
            // A thread of the kernel that carries packets, as wireguard's or vhost's, is a stage of the path.
            Some(stage) if stage.is_of_packets() && stage != CoreStage::Scheduler && is_of_kernel() => (stage, None),
            _ if is_own && stack.functions.is_empty() => (CoreStage::Application, None),
            _ if is_own => (CoreStage::Unknown, None),
            _ => (CoreStage::Program, stack.program.clone()),
        }
    }

    /// The stage of a stack, its program, and those of its functions that are told, from the innermost on. What an interrupt does
    /// is no program's.
    pub fn told(&self, stack: &'a ProfiledStack) -> (CoreStage, Option<String>, &'a [u32]) {
        let (stage, program) = self.place(stack);
        let name = || stack.program.clone().unwrap_or_else(|| "[ended]".to_owned());
        match (stage, self.entry(stack)) {
            (CoreStage::Program, _) => (stage, Some(program.unwrap_or_else(name)), &[]),
            (_, Some(entry)) if !self.is_own(stack) => (stage, None, &stack.functions[..=entry]),
            _ => (stage, (stack.pid != 0).then(name), &stack.functions),
        }
    }

    fn is_own(&self, stack: &ProfiledStack) -> bool {
        stack.pid == 0 || self.own.contains(&stack.pid)
    }

    /// Where the outermost interrupt begins.
    fn entry(&self, stack: &ProfiledStack) -> Option<usize> {
        stack.functions.iter().rposition(|&at| self.function(at).is_some_and(is_interrupt))
    }
}

fn place(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// A function for people: of a program with the file that it is in, and where it has no name the file alone.
pub(super) fn called(function: &ProfiledFunction) -> String {
    match (&function.name, &function.module) {
        (Some(name), Some(module)) => format!("{name} [{module}]"),
        (Some(name), None) => name.clone(),
        (None, Some(module)) => format!("[{module}]"),
        (None, None) => if function.kernel { "[kernel]" } else { "[unknown]" }.to_owned(),
    }
}
