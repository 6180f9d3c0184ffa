//! The whole run: the activities in every column of cycles, lane by lane.

use super::{
    AXIS, MAX_LANES, NAMES, PLOT, PageFacts, WIDTH, cycle_axis, lane_name, more_lanes, name_row,
};
use crate::block::{Block, LegendEntry};
use crate::colours;
use crate::svg::{Px, PxRect, Svg};
use std::fmt::Write;
use tilescope_analysis::trace::lane_shares;
use tilescope_report::trace::{PerActivity, Trace};
use tilescope_report::units::{CycleRange, Cycles, Quantity, percent};
use tilescope_report::{ReportError, StepActivity};

/// The maximum number of columns over all lanes, to bound the size of a page.
const MAX_COLUMNS: f64 = 12_000.0;
/// Height of the row of the critical path.
const PATH_HEIGHT: f64 = 24.0;
const GAP: f64 = 4.0;

pub(super) fn blocks(facts: &PageFacts<'_>, trace: &Trace) -> Result<Vec<Block>, ReportError> {
    let classes: Vec<Trace> = trace.classes().collect();
    let all = classes.iter().flat_map(|trace| (0..trace.lanes().len()).map(move |at| (trace, at)));
    let lanes: Vec<(&Trace, usize)> = all.collect();
    let shown = &lanes[..lanes.len().min(MAX_LANES)];
    let window = trace.range();
    let caption = format!(
        "The whole run, {}: each column stacks the activities of its cycles; the rest is idle. {}",
        facts.cycles_and_time(window.length()),
        activity_words(facts),
    );
    let legend = legend(facts);
    let svg = picture(facts, shown, window)?;
    let mut blocks = vec![Block::heading("The whole run"), Block::figure(svg, caption, legend)];
    blocks.extend(more_lanes(lanes.len()));
    blocks.push(Block::Table { table: facts.table("execution-trace", "ipus")? });
    Ok(blocks)
}

/// The activities of IPUs, as a mean over them, in words.
fn activity_words(facts: &PageFacts<'_>) -> String {
    let ipus = facts.summary.execution.as_ref().map_or(&[][..], |run| &run.ipus);
    let mut sums: Vec<(&str, f64)> = Vec::new();
    for (name, share) in ipus.iter().flat_map(|ipu| ipu.proportions.iter()) {
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += share,
            None => sums.push((name, share)),
        }
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    let count = ipus.len().max(1) as f64;
    let words = sums
        .iter()
        .filter(|(_, sum)| *sum > 0.0005 * count)
        .map(|(name, sum)| format!("{} {}", name.replace('_', " "), percent(sum / count)));
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        String::new()
    } else {
        format!("Averaged over IPUs: {}.", words.join(", "))
    }
}

/// The activities that occur in the run.
fn legend(facts: &PageFacts<'_>) -> Vec<LegendEntry> {
    let ipus = facts.summary.execution.as_ref().map_or(&[][..], |run| &run.ipus);
    let has = |name: &str| {
        ipus.iter().any(|ipu| ipu.proportions.iter().any(|(own, share)| own == name && share > 0.0))
    };
    let entries = [
        ("compute", StepActivity::Compute, "Compute"),
        ("internal_exchange", StepActivity::InternalExchange, "Internal exchange"),
        ("global_exchange", StepActivity::GlobalExchange, "Global exchange"),
        ("host", StepActivity::Host, "Host"),
        ("remote_buffer", StepActivity::RemoteBuffer, "Remote buffers"),
        ("sync", StepActivity::Sync, "Sync"),
        ("other", StepActivity::Other, "Other"),
    ];
    let mut legend = Vec::new();
    for (name, activity, title) in entries {
        if has(name) {
            legend.push(LegendEntry::new(colours::activity(activity), title));
        }
    }
    legend.push(LegendEntry::new("lane", "Idle"));
    legend
}

fn picture(
    facts: &PageFacts<'_>,
    lanes: &[(&Trace, usize)],
    window: CycleRange,
) -> Result<String, ReportError> {
    let height: f64 = match lanes.len() {
        0..=16 => 28.0,
        17..=64 => 18.0,
        _ => 12.0,
    };
    // Whole pixels, so that columns are sharp.
    let column = (PLOT * (lanes.len() + 1) as f64 / MAX_COLUMNS).ceil().max(2.0);
    let columns = (PLOT / column) as usize;
    let path = facts.report.known_critical_path()?;
    let top = if path.is_some() { PATH_HEIGHT + 2.0 * GAP } else { 0.0 };
    let bottom = top + (height + GAP) * lanes.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + AXIS);
    if let Some(path) = &path {
        let row = PxRect { x: NAMES, y: 0.0, width: PLOT, height: PATH_HEIGHT };
        let at = |part: usize| window.start + window.length().share(part as u64, columns as u64);
        let ranges = (0..columns).map(|part| CycleRange::new(at(part), at(part + 1)));
        let totals = ranges.map(|range| Ok((range, path.totals_in(range)?.cycles)));
        let totals: Vec<_> = totals.collect::<Result<_, ReportError>>()?;
        draw_columns(&mut svg, row, column, totals.into_iter());
        name_row(&mut svg, "Critical path", 0.0, PATH_HEIGHT);
    }
    for (at, (trace, lane)) in lanes.iter().enumerate() {
        let Some(lane) = trace.lane(*lane) else { continue };
        let y = top + (height + GAP) * at as f64;
        let shares = lane_shares(lane, window, columns)?;
        let totals = (0..columns).map(|at| (shares.range(at), shares.columns()[at].cycles));
        draw_columns(&mut svg, PxRect { x: NAMES, y, width: PLOT, height }, column, totals);
        name_row(&mut svg, &lane_name(facts, &lane.info()), y, height);
    }
    cycle_axis(&mut svg, window, (bottom, bottom + 4.0));
    let label = format!(
        "Shares of activities over the run of {} cycles on {} lanes. {}",
        window.length(),
        lanes.len(),
        activity_words(facts)
    );
    Ok(svg.finish(&label))
}

/// Draws columns of a lane, each a stack of activities from bottom to top.
fn draw_columns(
    svg: &mut Svg,
    lane: PxRect,
    column: f64,
    totals: impl Iterator<Item = (CycleRange, PerActivity<Cycles>)>,
) {
    svg.rect(lane, "lane");
    let mut strokes: Vec<(StepActivity, String)> =
        StepActivity::ALL.map(|activity| (activity, String::new())).to_vec();
    for (at, (range, cycles)) in totals.enumerate() {
        let x = lane.x + (at as f64 + 0.5) * column;
        let length = range.length().max(Cycles(1)).as_f64();
        let mut below = 0.0;
        for (activity, path) in &mut strokes {
            let part = (cycles[*activity].as_f64() / length * lane.height).min(lane.height - below);
            if part >= 0.05 {
                let foot = lane.y + lane.height - below;
                // Writing to a string cannot fail.
                let _ = write!(path, "M{} {}v{}", Px(x), Px(foot), Px(-part));
                below += part;
            }
        }
    }
    for (activity, path) in strokes {
        svg.strokes(&path, column, colours::activity(activity));
    }
}
