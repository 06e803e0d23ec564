//! The stacks of a profiled core as a flame graph: the core, its stages as wide as their shares, below them programs and functions.

use super::words::length;
use crate::derive::profile::{CoreStage, StackFrame, StackNode};
use crate::derive::summary::ProfileSummary;
use crate::report::document::{Block, ReportPlot};
use crate::report::figures::percent;
use crate::report::plot::{FlameFrame, PlotColor, PlotText, flame};

/// Functions that only call each other are one rectangle, where the last has this part of the first.
const CHAIN: f64 = 0.97;
/// Functions of such a chain that its title names; of longer ones those in the middle are left out.
const NAMED: usize = 8;
/// Stages that the description names.
const STAGES: usize = 4;

/// The colour of a stage wherever it is drawn, and how strong it is behind text.
pub(super) fn stage_color(stage: CoreStage) -> (PlotColor, f64) {
    match stage {
        CoreStage::Application => (PlotColor::Purple, 0.45),
        CoreStage::Copy => (PlotColor::Orange, 0.5),
        CoreStage::SystemCall => (PlotColor::Brown, 0.3),
        CoreStage::Protocol => (PlotColor::Blue, 0.5),
        CoreStage::Segmentation => (PlotColor::Teal, 0.25),
        CoreStage::Checksum => (PlotColor::Red, 0.25),
        CoreStage::Qdisc => (PlotColor::Green, 0.25),
        CoreStage::Bridge => (PlotColor::Teal, 0.5),
        CoreStage::Nft => (PlotColor::Red, 0.45),
        CoreStage::Tunnel => (PlotColor::Purple, 0.25),
        CoreStage::Tun => (PlotColor::Brown, 0.55),
        CoreStage::Link => (PlotColor::Green, 0.5),
        CoreStage::Softirq => (PlotColor::Blue, 0.25),
        CoreStage::Scheduler => (PlotColor::Orange, 0.25),
        CoreStage::Bpf => (PlotColor::Gray, 0.6),
        CoreStage::Program => (PlotColor::Gray, 0.45),
        CoreStage::Unknown => (PlotColor::Gray, 0.25),
        CoreStage::Idle => (PlotColor::Gray, 0.12),
    }
}

/// The graph; none where the stacks are not known.
pub(super) fn plot(profile: &ProfileSummary) -> Option<Block> {
    let root = frames(profile)?;
    let first = |stage: &FlameFrame| match &*stage.called {
        [] => stage.name.clone(),
        [one, ..] => format!("{} ({})", stage.name, one.name),
    };
    let list = root.called.iter().take(STAGES).map(first).collect::<Vec<_>>().join(", ");
    let words = PlotText {
        title: format!("Functions of core {}, by stage", profile.core),
        description: format!(
            "Of {} of its profile, stages with who spent most there: {list}. Below each stage are the functions that led there, the \
             outermost on top; of those that only call each other the last is named.",
            length(profile.seconds)
        ),
    };
    Some(Block::Plot(ReportPlot::new(words, Vec::new(), |text, width| flame(text, width, &root))))
}

/// The whole core: each stage has the share that the table tells.
pub(super) fn frames(profile: &ProfileSummary) -> Option<FlameFrame> {
    let tree = profile.stacks.tree();
    if tree.values().all(|node| node.called.is_empty()) {
        return None;
    }
    let mut stages: Vec<FlameFrame> = Vec::new();
    let mut of_stage: Vec<(CoreStage, f64)> = Vec::new();
    for one in &profile.stages {
        match of_stage.iter_mut().find(|(stage, _)| *stage == one.stage) {
            Some((_, share)) => *share += one.share,
            None => of_stage.push((one.stage, one.share)),
        }
    }
    for (stage, share) in of_stage {
        let node = tree.get(&stage);
        let below = node.filter(|_| stage != CoreStage::Idle);
        let scale = below.map_or(0.0, |node| share / node.sum.weight.max(1) as f64);
        let called = below.map_or_else(Vec::new, |node| called(node, stage, scale, true));
        let name = format!("{} {}", stage.label(), percent(share));
        let samples = node.map(|node| node.sum.samples);
        let title = stage.label().to_owned();
        stages.push(FlameFrame { name, title, color: stage_color(stage), share, samples, called });
    }
    // Waiting and what is not known stand at the end.
    let is_last = |one: &FlameFrame| one.title == CoreStage::Idle.label() || one.title == CoreStage::Unknown.label();
    stages.sort_by(|one, other| is_last(one).cmp(&is_last(other)).then(other.share.total_cmp(&one.share)));
    Some(FlameFrame {
        name: format!("core {}", profile.core),
        title: format!("core {}", profile.core),
        color: (PlotColor::Grid, 0.6),
        share: stages.iter().map(|stage| stage.share).sum::<f64>().min(1.0),
        samples: Some(profile.samples),
        called: stages,
    })
}

/// What a stage or a function called.
fn called(node: &StackNode, stage: CoreStage, scale: f64, are_outermost: bool) -> Vec<FlameFrame> {
    let frame = |(frame, mut one): (&StackFrame, &StackNode)| {
        let (share, samples) = (one.sum.weight as f64 * scale, one.sum.samples);
        let mut names = vec![frame.name.as_str()];
        // A program is not one of its functions.
        let is_program = are_outermost && !frame.is_kernel;
        while let Some((next, below)) = one.called.iter().max_by_key(|(_, below)| below.sum.weight)
            && !is_program
            && below.sum.weight as f64 >= CHAIN * one.sum.weight as f64
        {
            names.push(&next.name);
            one = below;
        }
        FlameFrame {
            name: names.last().map_or_else(String::new, |name| (*name).to_owned()),
            title: format!("{} ({})", chain(&names), stage.label()),
            color: stage_color(stage),
            share,
            samples: Some(samples),
            called: called(one, stage, scale, false),
        }
    };
    let mut called: Vec<FlameFrame> = node.called.iter().map(frame).collect();
    called.sort_by(|one, other| other.share.total_cmp(&one.share));
    called
}

/// Names of functions that call each other.
fn chain(names: &[&str]) -> String {
    if names.len() <= NAMED {
        return names.join(" → ");
    }
    let (first, last) = (&names[..NAMED / 2], &names[names.len() - NAMED / 2..]);
    format!("{} → … → {}", first.join(" → "), last.join(" → "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::profile::{CoreStacks, StageShare};
    use crate::sample::{CoreProfile, ProfileClock, ProfiledFunction, ProfiledStack};
    use std::collections::BTreeSet;

    /// A core whose cycles were sampled while it was busy, 80 % of the time.
    fn profile() -> ProfileSummary {
        let names = ["__write", "ksys_write", "tcp_sendmsg", "_copy_from_iter", "nft_do_chain"];
        let function = |(nth, name): (usize, &&str)| ProfiledFunction {
            name: Some((*name).to_owned()),
            module: (nth == 0).then(|| "libc.so.6".to_owned()),
            kernel: nth > 0,
        };
        let stack = |pid, functions: &[u32], samples: u32| {
            let (program, functions) = (Some(format!("program{pid}")), functions.to_vec());
            ProfiledStack { program, pid, functions, samples, weight: u64::from(samples) * 1000 }
        };
        let functions = names.iter().enumerate().map(function).collect();
        let stacks = vec![stack(7, &[3, 2, 1, 0], 50), stack(7, &[4, 2, 1, 0], 20), stack(9, &[0], 10)];
        let stretch = CoreProfile { core: 1, functions, stacks, ..CoreProfile::default() };
        let mut stacks = CoreStacks::new(100);
        stacks.add(&stretch, &BTreeSet::from([7]));
        let share = |stage, program: Option<&str>, share| StageShare {
            stage,
            program: program.map(str::to_owned),
            share,
            functions: Vec::new(),
        };
        let stages = vec![
            share(CoreStage::Copy, None, 0.5),
            share(CoreStage::Nft, None, 0.2),
            share(CoreStage::Program, Some("program9"), 0.1),
            share(CoreStage::Idle, None, 0.2),
        ];
        let (clock, packets_per_s) = (ProfileClock::Cycles, None);
        ProfileSummary {
            core: 1,
            seconds: 5.0,
            samples: 80,
            lost: 0,
            clock,
            packets_per_s,
            rules: Vec::new(),
            stages,
            stacks,
        }
    }

    #[test]
    fn stages_are_as_wide_as_their_shares_and_what_they_call_no_wider() {
        let root = frames(&profile()).expect("stacks are known");
        assert!((root.share - 1.0).abs() < 1e-9, "{}", root.share);
        let stages: Vec<(&str, f64)> = root.called.iter().map(|stage| (&*stage.title, stage.share)).collect();
        assert_eq!(stages, [("copy", 0.5), ("nft, conntrack", 0.2), ("other programs", 0.1), ("idle", 0.2)]);
        let mut all = vec![&root];
        while let Some(frame) = all.pop() {
            let called: f64 = frame.called.iter().map(|one| one.share).sum();
            assert!(called <= frame.share + 1e-9, "{}: {called}", frame.title);
            all.extend(&frame.called);
        }
        let copy = &root.called[0].called[0];
        assert_eq!((&*copy.name, copy.called.len()), ("program7", 1), "a program is not its functions");
        let below = &copy.called[0];
        assert_eq!(below.name, "_copy_from_iter");
        assert_eq!(below.title, "__write [libc.so.6] → ksys_write → tcp_sendmsg → _copy_from_iter (copy)");
        assert!((below.share - 0.5).abs() < 1e-9 && below.samples == Some(50));
        let others = &root.called[2].called;
        assert!(others.len() == 1 && others[0].called.is_empty(), "of another program there is its name");
        assert!(root.called[3].samples.is_none(), "nobody samples a core that stands still");
    }

    #[test]
    fn without_stacks_there_is_no_graph() {
        let none = ProfileSummary { stacks: CoreStacks::new(1), ..profile() };
        assert!(frames(&none).is_none() && plot(&none).is_none());
    }
}
