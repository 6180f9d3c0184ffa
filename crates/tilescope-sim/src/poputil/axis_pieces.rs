//! Pieces of a tensor that are at regular distances in memory and on the side of their receivers.

use super::rearranged_blocks::AxisMemory;
use std::ops::Range;
use tilescope_report::RouteDim;

/// Blocks beyond which a route is not worth its place in a report.
pub(crate) const MAX_BLOCKS: usize = 1024;

/// Elements of one axis that are at regular distances on both sides, relative to those of other
/// axes.
#[derive(Clone, Debug)]
pub(crate) struct AxisPiece {
    pub sent_at: u64,
    pub received_at: u64,
    pub dims: Vec<RouteDim>,
}

/// Indices of an axis at regular distances, and the distance of their receivers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisIndices {
    pub first: u64,
    pub count: u64,
    pub step: u64,
    pub received_at: u64,
    pub received_step: u64,
}

/// Joins the pieces of every `period`-th list.
pub(crate) fn joined_at(lists: &[Vec<AxisPiece>], period: usize) -> Vec<AxisPiece> {
    let mut found = Vec::new();
    for first in 0..period.min(lists.len()) {
        let alike: Vec<&Vec<AxisPiece>> = lists.iter().skip(first).step_by(period).collect();
        // Lists of parts at the ends may have pieces of another form.
        for group in alike.chunk_by(|one, other| one.len() == other.len()) {
            for at in 0..group[0].len() {
                found.extend(joined(group.iter().map(|pieces| pieces[at].clone()).collect()));
            }
        }
    }
    found
}

/// Joins pieces of equal form at regular distances.
pub(crate) fn joined(pieces: Vec<AxisPiece>) -> Vec<AxisPiece> {
    let measure = |one: &AxisPiece, other: &AxisPiece| {
        let sent = other.sent_at.checked_sub(one.sent_at)?;
        let received = other.received_at.checked_sub(one.received_at)?;
        if one.dims == other.dims { Some([sent, received]) } else { None }
    };
    let mut joined: Vec<AxisPiece> = Vec::new();
    let mut at = 0;
    while at < pieces.len() {
        let mut count = 1;
        let step = pieces.get(at + 1).and_then(|next| measure(&pieces[at], next));
        while step.is_some()
            && at + count < pieces.len()
            && measure(&pieces[at + count - 1], &pieces[at + count]) == step
        {
            count += 1;
        }
        let mut piece = pieces[at].clone();
        if let Some([sent, received]) = step {
            let mut dims = Vec::new();
            push(&mut dims, count as u64, sent, received);
            dims.append(&mut piece.dims);
            piece.dims = dims;
        }
        joined.push(piece);
        at += count;
    }
    joined
}

/// Indices of a whole axis.
pub(crate) fn whole(count: u64, received_step: u64) -> AxisIndices {
    AxisIndices { first: 0, count, step: 1, received_at: 0, received_step }
}

/// Adjacent elements of an axis at regular distances in memory.
pub(crate) struct AxisRun {
    pub part: Range<u64>,
    pub at: u64,
    pub step: u64,
}

/// The runs of a part of an axis. `None` if there are too many.
pub(crate) fn runs_of(memory: &AxisMemory) -> Option<Vec<AxisRun>> {
    let AxisMemory { part, digits } = memory;
    let (step, size) = digits.first().map_or((1, 1), |digit| (digit.memory, digit.size));
    let count = (part.end - part.start) / size.max(1);
    if count > MAX_BLOCKS as u64 {
        return None;
    }
    let mut runs = Vec::new();
    for run in 0..count {
        let mut at = 0;
        let mut left = run;
        for digit in digits.iter().skip(1) {
            at += left % digit.size * digit.memory;
            left /= digit.size;
        }
        let start = part.start + run * size;
        runs.push(AxisRun { part: start..start + size, at, step });
    }
    Some(runs)
}

/// The pieces of indices of an axis that are in a part of it. `None` if they have no simple form.
pub(crate) fn axis_pieces(memory: &AxisMemory, indices: AxisIndices) -> Option<Vec<AxisPiece>> {
    let AxisIndices { first, count, step, received_at, received_step } = indices;
    let mut pieces = Vec::new();
    if step == 0 {
        return None;
    }
    for run in runs_of(memory)? {
        // The first index that is not before the run, and the first one that is after it.
        let find_index = |at: u64| at.saturating_sub(first).div_ceil(step).min(count);
        let [low, high] = [run.part.start, run.part.end].map(find_index);
        if low >= high {
            continue;
        }
        let start = first + low * step;
        let mut dims = Vec::new();
        push(&mut dims, high - low, step * run.step, received_step);
        pieces.push(AxisPiece {
            sent_at: run.at + (start - run.part.start) * run.step,
            received_at: received_at + low * received_step,
            dims,
        });
    }
    Some(joined(pieces))
}

/// Every piece of one axis with every piece of another.
pub(crate) fn combined(pieces: &[AxisPiece], others: &[AxisPiece]) -> Vec<AxisPiece> {
    let mut found = Vec::new();
    for one in pieces {
        for other in others {
            let mut dims = one.dims.clone();
            dims.extend(&other.dims);
            found.push(AxisPiece {
                sent_at: one.sent_at + other.sent_at,
                received_at: one.received_at + other.received_at,
                dims,
            });
        }
    }
    found
}

pub(crate) fn push(dims: &mut Vec<RouteDim>, count: u64, sent_step: u64, received_step: u64) {
    if count > 1 {
        dims.push(RouteDim { count, sent_step, received_step });
    }
}
