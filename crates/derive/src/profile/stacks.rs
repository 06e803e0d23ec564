//! Stacks of a core, added up: of each stage the programs, and the functions that called each other. Of another program there is its
//! name alone.

use super::fold::{PlacedStacks, called};
use super::stage::CoreStage;
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{CoreId, CoreProfile};

/// A program, or a function that was called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StackFrame {
    /// Its name.
    pub name: String,
    /// It is a function of the kernel.
    pub is_kernel: bool,
}

/// Samples, and what they stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackSum {
    /// Samples.
    pub samples: u64,
    /// What they stand for: ns, or cycles.
    pub weight: u64,
}

impl StackSum {
    fn add(&mut self, other: Self) {
        (self.samples, self.weight) = (self.samples + other.samples, self.weight + other.weight);
    }
}

/// The stacks of one core, of some stretches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreStacks {
    most: usize,
    /// Every frame met, with its number.
    frames: BTreeMap<StackFrame, u32>,
    /// By stage and numbers of frames, from the outermost on.
    stacks: BTreeMap<(CoreStage, Vec<u32>), StackSum>,
}

/// What passed within a frame, as a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackNode {
    /// Samples of the frame and of what it called.
    pub sum: StackSum,
    /// What it called.
    pub called: BTreeMap<StackFrame, StackNode>,
}

impl CoreStacks {
    /// None yet; at most so many are kept: where there are more, of those with the fewest samples the program is kept alone.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, frames: BTreeMap::new(), stacks: BTreeMap::new() }
    }

    /// Takes the stacks of a stretch; `own` are the processes whose functions are told.
    pub fn add(&mut self, profile: &CoreProfile, own: &BTreeSet<u32>) {
        let placed = PlacedStacks::new(profile, own);
        for stack in &profile.stacks {
            let (stage, program, functions) = placed.told(stack);
            let program = program.map(|name| StackFrame { name, is_kernel: false });
            let functions = functions.iter().rev().filter_map(|at| placed.function(*at));
            let functions = functions.map(|one| StackFrame { name: called(one), is_kernel: one.kernel });
            let frames = program.into_iter().chain(functions).map(|frame| self.number(frame)).collect();
            let sum = StackSum { samples: u64::from(stack.samples), weight: stack.weight };
            self.stacks.entry((stage, frames)).or_default().add(sum);
        }
        let mut few = 1;
        while self.stacks.len() > self.most && few < u64::MAX / 2 {
            self.shorten(few);
            few *= 2;
        }
    }

    fn number(&mut self, frame: StackFrame) -> u32 {
        let next = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        *self.frames.entry(frame).or_insert(next)
    }

    /// Of stacks with so few samples the outermost frame is kept alone.
    fn shorten(&mut self, few: u64) {
        for ((stage, mut frames), sum) in std::mem::take(&mut self.stacks) {
            if sum.samples <= few {
                frames.truncate(1);
            }
            self.stacks.entry((stage, frames)).or_default().add(sum);
        }
    }

    /// Each stack with its stage and its frames, from the outermost on.
    fn each(&self) -> impl Iterator<Item = (CoreStage, Vec<&StackFrame>, StackSum)> {
        let mut names: Vec<(&StackFrame, u32)> = self.frames.iter().map(|(frame, number)| (frame, *number)).collect();
        names.sort_unstable_by_key(|(_, number)| *number);
        self.stacks.iter().map(move |((stage, frames), sum)| {
            let frame =
                |number: &u32| usize::try_from(*number).ok().and_then(|at| names.get(at)).map(|(frame, _)| *frame);
            (*stage, frames.iter().filter_map(frame).collect(), *sum)
        })
    }

    /// A line a stack, as speedscope and tools for flame graphs read it: the core, the stage, the program, the functions from the
    /// outermost on, with `;` between them, and the samples.
    #[must_use]
    pub fn lines(&self, core: CoreId) -> Vec<String> {
        let line = |(stage, frames, sum): (CoreStage, Vec<&StackFrame>, StackSum)| {
            let mut path = format!("core {core};{}", stage.label());
            for frame in frames {
                path += ";";
                path += &folded_name(&frame.name, frame.is_kernel);
            }
            format!("{path} {}", sum.samples)
        };
        self.each().map(line).collect()
    }

    /// A tree a stage.
    #[must_use]
    pub fn tree(&self) -> BTreeMap<CoreStage, StackNode> {
        let mut stages: BTreeMap<CoreStage, StackNode> = BTreeMap::new();
        for (stage, frames, sum) in self.each() {
            let mut node = stages.entry(stage).or_default();
            node.sum.add(sum);
            for frame in frames {
                node = node.called.entry(frame.clone()).or_default();
                node.sum.add(sum);
            }
        }
        stages
    }
}

/// A name as a part of such a line: a function of the kernel with `_[k]`.
pub(super) fn folded_name(name: &str, is_kernel: bool) -> String {
    name.replace([';', ' ', '\n'], "_") + if is_kernel { "_[k]" } else { "" }
}
