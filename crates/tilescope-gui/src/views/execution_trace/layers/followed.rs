//! The layer of the followed micro-batch: its number and its path through all stages and passes,
//! both looked up in the background, then a veil over everything else and lines from stage to
//! stage.

use super::{TracePainter, VEIL, veiled_parts};
use crate::views::ViewContext;
use crate::views::execution_trace::id;
use crate::views::execution_trace::layout::{IpuLaneLayout, TraceLayout};
use crate::views::execution_trace::loaded_trace::LoadedTrace;
use crate::widgets::background_query::{BackgroundQuery, BackgroundQueryError, Versioned};
use crate::widgets::node_ui;
use egui::accesskit::Role;
use egui::{Pos2, Rangef, Stroke, Ui, pos2};
use tilescope_analysis::trace::{MicroBatchPath, MicroBatchTurn, micro_batch_path, stage_at};
use tilescope_report::units::{CycleRange, ReplicaClassId, ReplicaIpu, grouped};

/// The distance beyond the lanes, in points, at which lines are cut off.
const BEYOND: f32 = 20.0;

/// An IPU, the cycles of the selection there, and the number of the key press.
type StageKey = (ReplicaIpu, CycleRange, u64);

/// The queries of the followed micro-batch.
#[derive(Default)]
pub(crate) struct FollowedMicroBatch {
    wanted: Option<StageKey>,
    presses: u64,
    stage: BackgroundQuery<StageKey, Option<u64>>,
    path: BackgroundQuery<u64, MicroBatchPath>,
}

impl FollowedMicroBatch {
    /// Starts to look up the micro-batch that an IPU works on in a range of cycles.
    pub(crate) fn start(&mut self, at: ReplicaIpu, cycles: CycleRange) {
        self.presses += 1;
        self.wanted = Some((at, cycles, self.presses));
    }

    /// The micro-batch that was looked up, once it is known. The inner value is `None` between
    /// stages.
    pub(crate) fn arrived(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
    ) -> Option<Result<Option<u64>, BackgroundQueryError>> {
        let wanted = self.wanted?;
        let found = context
            .ask(ui, &mut self.stage, &wanted, |report, (at, cycles, _)| {
                let stage = stage_at(report, *at, *cycles)?;
                Ok(stage.map(|mark| mark.index))
            })
            .finished()?;
        self.wanted = None;
        Some(found.map(|found| *found))
    }

    /// Queries the path of a micro-batch; `None` before the marks are read.
    pub(crate) fn ask_path(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
        number: u64,
    ) -> Option<Versioned<MicroBatchPath>> {
        prepared.known_marks()?;
        let shared = prepared.clone();
        context
            .ask(ui, &mut self.path, &number, move |report, number| match shared.known_marks() {
                Some(rows) => micro_batch_path(report, rows, *number),
                None => Ok(MicroBatchPath::default()),
            })
            .answer()
            .cloned()
    }
}

/// The ranges in which an IPU works on the micro-batch, from left to right, at least one point
/// wide.
pub(super) fn lit(layout: &TraceLayout<'_>, path: &MicroBatchPath, at: ReplicaIpu) -> Vec<Rangef> {
    let lanes = layout.regions.lanes;
    path.on(at)
        .filter_map(|turn| {
            let left = layout.x(turn.range.start);
            let right = layout.x(turn.range.end);
            let x = Rangef::new(left, right.max(left + 1.0));
            if x.max > lanes.left() && x.min < lanes.right() { Some(x) } else { None }
        })
        .collect()
}

/// The lines from the end of each turn to the start of the next one.
fn lines(layout: &TraceLayout<'_>, path: &MicroBatchPath) -> Vec<[Pos2; 2]> {
    let mut lines = Vec::new();
    let mut turns: Vec<&MicroBatchTurn> = path.turns.iter().collect();
    // A stable sort: within each replica class, from left to right.
    turns.sort_by_key(|turn| turn.at.class);
    for of_class in turns.chunk_by(|one, other| one.at.class == other.at.class) {
        lines.extend(of_class.windows(2).filter_map(|pair| line(layout, pair[0], pair[1])));
    }
    lines
}

/// The line from the end of one turn to the start of the next one.
fn line(layout: &TraceLayout<'_>, from: &MicroBatchTurn, to: &MicroBatchTurn) -> Option<[Pos2; 2]> {
    if from.at == to.at {
        return None;
    }
    let find_height = |at: ReplicaIpu| {
        let block = layout.block_of(at)?;
        let row = layout.stage_row(block).unwrap_or_else(|| layout.bars(block));
        Some(row.center().y)
    };
    let start = pos2(layout.x(from.range.end), find_height(from.at)?);
    let end = pos2(layout.x(to.range.start), find_height(to.at)?);
    let lanes = layout.regions.lanes;
    let least = lanes.left() - BEYOND;
    let most = lanes.right() + BEYOND;
    if start.x.max(end.x) < least || start.x.min(end.x) > most {
        return None;
    }
    // Ends far outside the screen would lose precision in 32 bits.
    let cut = |at: Pos2, other: Pos2| {
        let x = at.x.clamp(least, most);
        let run = other.x - at.x;
        let share = if run == 0.0 { 0.0 } else { (x - at.x) / run };
        pos2(x, at.y + (other.y - at.y) * share)
    };
    Some([cut(start, end), cut(end, start)])
}

impl TracePainter<'_> {
    /// Veils an IPU's work on other micro-batches.
    pub(super) fn veil_others(&self, block: &IpuLaneLayout<'_>, lit: &[Rangef]) {
        let layout = self.layout;
        let veil = self.palette.lane.gamma_multiply(VEIL);
        let bars = layout.bars(block);
        let area = layout.stage_row(block).map_or(bars, |row| bars.union(row));
        for part in veiled_parts(area.union(layout.links(block)), lit) {
            self.painter.rect_filled(part, 0.0, veil);
        }
    }

    /// Paints the path of the micro-batch and exposes it to screen readers.
    pub(super) fn followed_ui(&self, path: &MicroBatchPath) {
        let stroke = Stroke::new(1.5, self.palette.selection);
        for [from, to] in lines(self.layout, path) {
            self.painter.line_segment([from, to], stroke);
            self.painter.circle_filled(to, 2.5, self.palette.selection);
        }
        let node = id(self.ui, "followed micro-batch");
        let lanes = self.layout.regions.lanes;
        node_ui(self.ui, node, lanes, Role::GraphicsObject, || words(path));
    }
}

/// The micro-batch, the number of its stage passes, and their cycles.
fn words(path: &MicroBatchPath) -> (String, String) {
    let title = format!("Micro-batch {}", grouped(path.number));
    let own: Vec<&MicroBatchTurn> = path.of_class(ReplicaClassId(0)).collect();
    let about = match own.iter().map(|turn| turn.range).reduce(CycleRange::union) {
        Some(CycleRange { start, end }) => {
            format!("{} passes of stages, cycles {start} - {end}", grouped(own.len() as u64))
        }
        None => "no stage runs it".to_owned(),
    };
    (title, about)
}
