//! Summaries of consecutive steps, and the blobs that keep them.

// Blobs come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::answers::{ACTIVITIES, LongestStep, PerActivity, StepTotals};
use super::step_record::{StepClass, StepRecord};
use crate::codec::{VarintReader, unpack, write_varint};
use crate::limits::{MAX_CYCLES, MAX_STEPS};
use crate::units::{Bytes, CycleRange, Cycles, ProgramId, StepId};

/// Nodes of a full blob.
pub(super) const BLOCK_NODES: usize = 1024;
/// Steps below a node of level 1.
pub(super) const LEAF_STEPS: u64 = 64;
/// Children of a node of any higher level.
pub(super) const FAN_OUT: u64 = 16;
/// Levels that [`MAX_STEPS`] steps can need.
pub(super) const MAX_LEVELS: u32 = 10;

/// Numbers per node: gap, length, first step, steps, longest (3), and four per activity.
const COLUMNS: usize = 7 + 4 * ACTIVITIES;
const MAX_BLOCK_BYTES: usize = BLOCK_NODES * COLUMNS * 10 + 64;

/// Sums over consecutive steps of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PyramidNode {
    /// The cycles from the start of the first step to the end of the last.
    pub(super) range: CycleRange,
    pub(super) first_step: StepId,
    pub(super) totals: StepTotals,
}

impl PyramidNode {
    pub(super) fn from_record(record: &StepRecord) -> Self {
        Self {
            range: record.range,
            first_step: record.step,
            totals: StepTotals::from_record(record),
        }
    }

    /// Adds the step that follows this node.
    pub(super) fn add_step(&mut self, record: &StepRecord) {
        debug_assert!(record.range.start >= self.range.end, "steps follow each other");
        self.range = CycleRange::new(self.range.start, record.range.end);
        self.totals.add_step(record);
    }

    /// Adds the node that follows this one.
    pub(super) fn add(&mut self, next: &Self) {
        debug_assert!(next.range.start >= self.range.end, "nodes follow each other");
        self.range = CycleRange::new(self.range.start, next.range.end);
        self.totals.add(&next.totals);
    }
}

/// Number of steps below a full node of `level`.
pub(super) fn steps_per_node(level: u32) -> u64 {
    debug_assert!((1..=MAX_LEVELS).contains(&level), "steps themselves are not a level: {level}");
    LEAF_STEPS * FAN_OUT.pow(level - 1)
}

/// Number of nodes on `level` of a lane of `steps` steps.
pub(super) fn node_count(steps: u64, level: u32) -> u64 {
    steps.div_ceil(steps_per_node(level))
}

/// Levels of a lane of `steps` steps: the top one has at most 16 nodes.
pub(super) fn level_count(steps: u64) -> u32 {
    (1..MAX_LEVELS).find(|&level| node_count(steps, level) <= FAN_OUT).unwrap_or(MAX_LEVELS)
}

/// A blob of nodes, not packed yet: column after column, without columns in which no node has a
/// value.
pub(super) fn encode(nodes: &[PyramidNode]) -> Vec<u8> {
    let rows = rows(nodes);
    let mut bits = [0u64; COLUMNS];
    for row in &rows {
        bits.iter_mut().zip(row).for_each(|(all, number)| *all |= number);
    }
    let used: Vec<usize> =
        (0..).zip(bits).filter(|(_, bits)| *bits != 0).map(|(place, _)| place).collect();
    let mut raw = Vec::with_capacity(nodes.len() * used.len() * 2 + 16);
    write_varint(&mut raw, nodes.len() as u64);
    // One bit per column that is stored; most activities never occur in a block.
    write_varint(&mut raw, used.iter().map(|place| 1 << place).sum());
    for place in used {
        let column = rows.iter().filter_map(|row| row.get(place));
        column.for_each(|number| write_varint(&mut raw, *number));
    }
    raw
}

/// The numbers of each node.
fn rows(nodes: &[PyramidNode]) -> Vec<[u64; COLUMNS]> {
    let mut rows = Vec::with_capacity(nodes.len());
    let mut cycle = Cycles::ZERO;
    let mut step = StepId(0);
    for node in nodes {
        let mut row = [0; COLUMNS];
        let longest = node.totals.longest;
        let class = longest.map_or(0, |l| StepClass::from_activity(l.kind, l.activity).code() + 1);
        // Gaps and differences instead of absolute numbers: small ones pack to a byte.
        row[0] = (node.range.start - cycle).0;
        row[1] = node.range.length().0;
        row[2] = node.first_step - step;
        row[3] = node.totals.steps;
        row[4] = class;
        row[5] = longest.and_then(|l| l.program).map_or(0, |program| u64::from(program.0) + 1);
        row[6] = longest.map_or(0, |l| l.cycles.0);
        row[7..].copy_from_slice(node.totals.columns().as_flattened());
        (cycle, step) = (node.range.end, node.first_step);
        rows.push(row);
    }
    rows
}

/// True if a packed blob has these bytes.
pub(super) fn is_packed(blob: &[u8], raw: &[u8]) -> bool {
    unpack(blob, MAX_BLOCK_BYTES).is_some_and(|stored| stored == raw)
}

/// The nodes of a blob, if it is sound and has exactly `count` of them.
pub(super) fn decode(blob: &[u8], count: usize) -> Option<Vec<PyramidNode>> {
    decode_raw(&unpack(blob, MAX_BLOCK_BYTES)?, count)
}

/// The same for a blob that is not packed.
pub(super) fn decode_raw(raw: &[u8], count: usize) -> Option<Vec<PyramidNode>> {
    let mut cursor = VarintReader::new(raw);
    if count > BLOCK_NODES || cursor.take()? != count as u64 {
        return None;
    }
    let used = cursor.take()?;
    // An unknown column would shift all later ones.
    if used >> COLUMNS != 0 {
        return None;
    }
    let mut rows = vec![[0; COLUMNS]; count];
    for column in (0..COLUMNS).filter(|column| used & (1 << column) != 0) {
        for row in &mut rows {
            *row.get_mut(column)? = cursor.take()?;
        }
    }
    if !cursor.is_done() {
        return None;
    }
    let mut cycle = Cycles::ZERO;
    let mut step = StepId(0);
    rows.iter()
        .map(|row| {
            let node = node(row, cycle, step)?;
            (cycle, step) = (node.range.end, node.first_step);
            Some(node)
        })
        .collect()
}

fn node(row: &[u64; COLUMNS], cycle: Cycles, step: StepId) -> Option<PyramidNode> {
    let start = cycle.checked_add(Cycles(row[0]))?;
    let end = start.checked_add(Cycles(row[1]))?;
    let first_step = step.checked_add(row[2])?;
    if end > MAX_CYCLES || first_step >= StepId(MAX_STEPS) || row[3] > MAX_STEPS {
        return None;
    }
    let longest = match row[4].checked_sub(1) {
        None => None,
        Some(class) => {
            let class = StepClass::from_code(class)?;
            let program = row[5].checked_sub(1).map(u32::try_from).transpose().ok()?;
            let program = program.map(ProgramId);
            let kind = class.kind();
            let activity = class.activity();
            Some(LongestStep { program, kind, activity, cycles: Cycles(row[6]) })
        }
    };
    let &[cycles, balance, bytes_in, bytes_out] = row[7..].as_chunks::<ACTIVITIES>().0 else {
        return None;
    };
    let totals = StepTotals {
        steps: row[3],
        cycles: PerActivity(cycles.map(Cycles)),
        balance: PerActivity(balance),
        bytes_in: PerActivity(bytes_in.map(Bytes)),
        bytes_out: PerActivity(bytes_out.map(Bytes)),
        longest,
    };
    // Steps of a lane do not overlap, so no node is busy for longer than its length.
    if totals.cycles.total() > end - start || !totals.is_balanced() {
        return None;
    }
    Some(PyramidNode { range: CycleRange::new(start, end), first_step, totals })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_grow_until_sixteen_nodes_are_left() {
        let cases = [(0, 1), (1, 1), (1024, 1), (1025, 2), (16_384, 2), (16_385, 3)];
        for (steps, levels) in cases {
            assert_eq!(level_count(steps), levels, "{steps} steps");
        }
        assert_eq!(level_count(100_000_000), 6);
        assert!(node_count(MAX_STEPS, MAX_LEVELS) <= FAN_OUT);
    }
}
