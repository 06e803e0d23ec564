//! What a report says of a core that was profiled: its stages with their shares, what a packet cost in each, and their functions.

use super::flame_graph::{self, stage_color};
use super::words::{UNKNOWN, count, length};
use crate::derive::profile::StageShare;
use crate::derive::summary::ProfileSummary;
use crate::derive::{RecordingSummary, plural};
use crate::report::document::{Block, ReportPlot, ReportTable};
use crate::report::figures::percent;
use crate::report::plot::{BarPlot, BarRow, BarScale, PlotText, bars};
use crate::sample::ProfileClock;

/// Cores that are told.
const CORES: usize = 8;
/// A stage with less is in the table only, share of the core.
const SMALL: f64 = 0.005;

/// The profiled cores, the longest looked at first; nothing where none was.
pub(super) fn blocks(summary: &RecordingSummary) -> Vec<Block> {
    let mut profiles: Vec<&ProfileSummary> = summary.profiles.iter().collect();
    profiles.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    let mut blocks = Vec::new();
    for profile in profiles.iter().take(CORES) {
        blocks.push(Block::Subheading(format!("What core {} did", profile.core)));
        blocks.push(plot(profile));
        blocks.extend(flame_graph::plot(profile));
        blocks.push(table(profile));
    }
    if profiles.len() > CORES {
        let others = plural(profiles.len() - CORES, "more core");
        blocks.push(Block::Text(format!("{others} profiled for less time: left out.")));
    }
    blocks
}

fn plot(profile: &ProfileSummary) -> Block {
    let row = |stage: &StageShare| BarRow {
        label: profile.stage_name(stage),
        value: Some(stage.share * 100.0),
        interval: None,
        nominal: None,
        words: percent(stage.share),
        color: stage_color(stage.stage).0,
    };
    let rows: Vec<BarRow> = profile.stages.iter().filter(|stage| stage.share >= SMALL).map(row).collect();
    let list = rows.iter().map(|row| format!("{} {}", row.label, row.words)).collect::<Vec<_>>().join(", ");
    let words = PlotText {
        title: format!("Time of core {} by stage", profile.core),
        description: format!("Of {} of its profile: {list}.", length(profile.seconds)),
    };
    let plot = BarPlot { scale: BarScale::Linear, x_label: "share of the core's time, %".to_owned(), rows };
    Block::Plot(ReportPlot::new(words, Vec::new(), |text, width| bars(text, width, &plot)))
}

fn table(profile: &ProfileSummary) -> Block {
    let row = |stage: &StageShare| {
        let ns = stage.ns_per_packet(profile.packets_per_s);
        let function = |(name, share): &(String, f64)| format!("{name} {}", percent(*share));
        vec![
            profile.stage_name(stage),
            percent(stage.share),
            ns.map_or_else(|| UNKNOWN.to_owned(), |ns| format!("{ns:.0}")),
            stage.functions.iter().map(function).collect::<Vec<_>>().join(", "),
        ]
    };
    let by = match profile.clock {
        ProfileClock::Cycles => "cycles, idle left out",
        ProfileClock::CpuClock => "cpu-clock",
    };
    let lost = if profile.lost == 0 { String::new() } else { format!(", {} more lost", count(profile.lost as f64)) };
    let caption = format!(
        "{} samples by {by}{lost}; ns per packet of the watched paths; the innermost functions with most of the core's time",
        count(profile.samples as f64)
    );
    let columns = ["stage", ">of the core", ">ns per packet", "functions"];
    Block::Table(ReportTable::new(&caption, &columns, profile.stages.iter().map(row).collect()))
}
