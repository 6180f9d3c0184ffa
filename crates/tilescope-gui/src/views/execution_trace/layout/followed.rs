//! Render items of the micro-batch that is followed: where it is worked on, and its way from stage
//! to stage.

use super::TraceLayout;
use egui::{Pos2, Rangef, Rect, pos2};
use tilescope_analysis::trace::{MicroBatchPath, MicroBatchTurn};
use tilescope_report::units::{CycleRange, ReplicaClassId, ReplicaIpu, grouped};

/// Points beyond the lanes at which lines are cut off.
const BEYOND: f32 = 20.0;

/// The micro-batch that is followed.
pub(crate) struct FollowedItem {
    /// `Micro-batch 3`
    pub title: String,
    /// How many passes of stages it takes, and in which cycles.
    pub about: String,
    /// From the end of each turn to the start of the next one.
    pub lines: Vec<[Pos2; 2]>,
}

/// The way of a micro-batch.
pub(crate) fn followed(layout: &TraceLayout<'_>, path: &MicroBatchPath) -> FollowedItem {
    let title = format!("Micro-batch {}", grouped(path.number));
    let own: Vec<&MicroBatchTurn> = path.of_class(ReplicaClassId(0)).collect();
    let about = match own.iter().map(|turn| turn.range).reduce(CycleRange::union) {
        Some(CycleRange { start, end }) => {
            format!("{} passes of stages, cycles {start} - {end}", grouped(own.len() as u64))
        }
        None => "no stage works on it".to_owned(),
    };
    let mut lines = Vec::new();
    let mut turns: Vec<&MicroBatchTurn> = path.turns.iter().collect();
    // Stable: of each class of replicas, from left to right.
    turns.sort_by_key(|turn| turn.at.class);
    for of_class in turns.chunk_by(|one, other| one.at.class == other.at.class) {
        lines.extend(of_class.windows(2).filter_map(|pair| line(layout, pair[0], pair[1])));
    }
    FollowedItem { title, about, lines }
}

/// Where an IPU works for the micro-batch, from left to right, at least one point wide.
pub(crate) fn lit(layout: &TraceLayout<'_>, path: &MicroBatchPath, at: ReplicaIpu) -> Vec<Rangef> {
    let lanes = layout.regions.lanes;
    let turn = |turn: &MicroBatchTurn| {
        let (left, right) = (layout.x(turn.range.start), layout.x(turn.range.end));
        let x = Rangef::new(left, right.max(left + 1.0));
        (x.max > lanes.left() && x.min < lanes.right()).then_some(x)
    };
    path.on(at).filter_map(turn).collect()
}

/// What of `area` is not lit.
pub(crate) fn veiled_parts(area: Rect, lit: &[Rangef]) -> Vec<Rect> {
    let mut left = area.left();
    let mut parts = Vec::new();
    for part in lit {
        if part.min > left {
            parts.push(Rect::from_x_y_ranges(left..=part.min.min(area.right()), area.y_range()));
        }
        left = left.max(part.max);
    }
    if left < area.right() {
        parts.push(Rect::from_x_y_ranges(left..=area.right(), area.y_range()));
    }
    parts
}

fn line(layout: &TraceLayout<'_>, from: &MicroBatchTurn, to: &MicroBatchTurn) -> Option<[Pos2; 2]> {
    if from.at == to.at {
        return None;
    }
    let height = |at: ReplicaIpu| {
        let block = layout.block_of(at)?;
        let row = layout.stage_row(block).unwrap_or_else(|| layout.bars(block));
        Some(row.center().y)
    };
    let start = pos2(layout.x(from.range.end), height(from.at)?);
    let end = pos2(layout.x(to.range.start), height(to.at)?);
    let lanes = layout.regions.lanes;
    let (least, most) = (lanes.left() - BEYOND, lanes.right() + BEYOND);
    if start.x.max(end.x) < least || start.x.min(end.x) > most {
        return None;
    }
    // Ends far outside would lose their digits in 32 bits.
    let cut = |at: Pos2, other: Pos2| {
        let x = at.x.clamp(least, most);
        let run = other.x - at.x;
        let share = if run == 0.0 { 0.0 } else { (x - at.x) / run };
        pos2(x, at.y + (other.y - at.y) * share)
    };
    Some([cut(start, end), cut(end, start)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_lit_is_veiled() {
        let area = Rect::from_min_max(pos2(10.0, 0.0), pos2(110.0, 5.0));
        let veiled = |lit: &[(f32, f32)]| {
            let lit: Vec<Rangef> = lit.iter().map(|(from, to)| Rangef::new(*from, *to)).collect();
            let parts = veiled_parts(area, &lit);
            parts.iter().map(|part| (part.left(), part.right())).collect::<Vec<_>>()
        };
        assert_eq!(veiled(&[]), [(10.0, 110.0)]);
        assert_eq!(veiled(&[(20.0, 30.0), (25.0, 40.0)]), [(10.0, 20.0), (40.0, 110.0)]);
        assert_eq!(veiled(&[(0.0, 15.0), (100.0, 200.0)]), [(15.0, 100.0)]);
        assert_eq!(veiled(&[(0.0, 200.0)]), []);
    }
}
