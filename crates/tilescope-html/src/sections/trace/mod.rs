//! The execution trace at three levels: the whole run as shares, an iteration by stages and
//! micro-batches, and steps where the critical path spends most.

mod iteration;
mod steps;
mod whole_run;

use super::{NOT_RUN, PageFacts, SectionEntry, counted};
use crate::block::Block;
use crate::svg::axis::{PlacedAxis, Scale};
use crate::svg::{Anchor, Svg};
use tilescope_analysis::figures::{FigureAxis, FigureUnit};
use tilescope_analysis::replica_classes::ipu_words;
use tilescope_report::ReportError;
use tilescope_report::trace::LaneInfo;
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu};

pub(super) const SECTION: SectionEntry =
    SectionEntry { id: "execution-trace", title: "Execution trace", build };

/// Width of pictures, and of the names at their left.
const WIDTH: f64 = 1080.0;
const NAMES: f64 = 120.0;
/// Width of the plot beside the names.
const PLOT: f64 = WIDTH - NAMES;
/// Height of an axis.
const AXIS: f64 = 24.0;
/// The maximum number of lanes drawn; tables have the others.
const MAX_LANES: usize = 256;

fn build(facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    let Some(trace) = &facts.trace else { return Ok(vec![Block::note(NOT_RUN)]) };
    let mut blocks = whole_run::blocks(facts, trace)?;
    blocks.extend(iteration::blocks(facts, trace)?);
    blocks.extend(steps::blocks(facts, trace)?);
    Ok(blocks)
}

/// The IPU of a lane.
fn place(lane: &LaneInfo) -> ReplicaIpu {
    ReplicaIpu { class: lane.class, ipu: lane.ipu }
}

/// The name beside a lane.
fn lane_name(facts: &PageFacts<'_>, lane: &LaneInfo) -> String {
    let name = ipu_words(&facts.classes, place(lane));
    if lane.sub_lane == 0 { name } else { format!("{name}, I/O") }
}

/// Writes the name of a row, vertically centred.
fn name_row(svg: &mut Svg, name: &str, y: f64, height: f64) {
    let at = (NAMES - 8.0, y + height / 2.0 + 4.0);
    svg.fitted_text(at, (Anchor::End, "weak"), name, NAMES - 10.0);
}

/// The horizontal scale of cycles in a picture.
fn scale_of(window: CycleRange) -> Scale {
    let start = window.start.as_f64();
    let end = window.end.as_f64();
    Scale::new((start, end), (NAMES, WIDTH))
}

/// Draws an axis of the cycles of a window, starting at its first one.
fn cycle_axis(svg: &mut Svg, window: CycleRange, (top, bottom): (f64, f64)) {
    let length = window.length().as_f64();
    let title = match window.start {
        Cycles::ZERO => "cycles".to_owned(),
        start => format!("cycles after {start}"),
    };
    let axis = FigureAxis::new(title, FigureUnit::Cycles);
    PlacedAxis::new(&axis, (0.0, length), (NAMES, WIDTH)).draw_bottom(svg, (top, bottom));
}

/// A note about lanes that are not drawn; `None` if all are.
fn more_lanes(lanes: usize) -> Option<Block> {
    let more = lanes.checked_sub(MAX_LANES).filter(|more| *more > 0)?;
    let text = format!("{} more are in the table only.", counted(more as u64, "lane"));
    Some(Block::note(text))
}
