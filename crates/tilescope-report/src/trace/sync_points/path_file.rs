//! The index of the critical path in a file, so that a reader can skip the walk over all sync
//! points.
//!
//! The first piece has sums, and groups of stretches from the last to the first. The others have
//! the states of the walk after blocks of points, in order, each as a difference to the previous
//! one.

// Pieces come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::super::program_totals::{program_code, program_from_code};
use super::path_index::{BlockState, LaneSlack, PathIndex, PathLead, StretchGroup};
use super::point::{StretchSums, read_stretch, write_stretch};
use super::walk::{FoundStretch, LaneState, OpenStretch, WalkState};
use crate::codec::{self, VarintReader, apply_zigzag_difference, difference, pack, write_varint};
use crate::limits::{MAX_CYCLES, MAX_STEPS};
use crate::row_writer::RowWriter;
use crate::schema::PATH_INDEX;
use crate::units::{CycleRange, Cycles};
use rusqlite::params;

/// The number of raw bytes from which a piece of states is full.
const FULL_PIECE_BYTES: usize = if cfg!(test) { 1 << 6 } else { 1 << 18 };
/// The largest unpacked piece: the most groups, or a full piece and a state of the most lanes.
const MAX_PIECE_BYTES: usize = 1 << 24;

/// Writes an index.
pub(super) fn insert(index: &PathIndex, rows: &RowWriter) -> Result<(), crate::ReportError> {
    for (id, raw) in (0i64..).zip(pieces(index)) {
        rows.insert(PATH_INDEX, params![id, pack(&raw)])?;
    }
    Ok(())
}

/// The pieces of an index, not packed yet.
pub(super) fn pieces(index: &PathIndex) -> impl Iterator<Item = Vec<u8>> {
    std::iter::once(encode_sums(index)).chain(encode_states(&index.blocks))
}

/// Unpacks a piece.
pub(in crate::trace) fn unpack(blob: &[u8]) -> Option<Vec<u8>> {
    codec::unpack(blob, MAX_PIECE_BYTES)
}

/// Reads an index piece by piece.
pub(in crate::trace) struct PathIndexReader {
    index: PathIndex,
    has_sums: bool,
}

impl PathIndexReader {
    /// A reader for lanes with these ranges.
    pub(in crate::trace) fn new(lanes: &[CycleRange]) -> Self {
        let range = lanes.iter().copied().reduce(CycleRange::union).unwrap_or_default();
        let lanes = vec![LaneSlack::default(); lanes.len()];
        let index = PathIndex { range, lanes, ..PathIndex::default() };
        Self { index, has_sums: false }
    }

    /// Reads the next piece, if it is sound.
    pub(in crate::trace) fn piece(&mut self, raw: &[u8]) -> Option<()> {
        let mut cursor = VarintReader::new(raw);
        if self.has_sums {
            read_states(&mut cursor, &mut self.index)?;
        } else {
            read_sums(&mut cursor, &mut self.index)?;
            self.has_sums = true;
        }
        if cursor.is_done() { Some(()) } else { None }
    }

    /// The index of a run with this number of blocks of points, if no piece is missing.
    pub(in crate::trace) fn finish(self, blocks: u64) -> Option<PathIndex> {
        let Self { index, has_sums } = self;
        let is_whole = has_sums && index.blocks.len() as u64 == blocks && index.covers_its_range();
        if is_whole { Some(index) } else { None }
    }
}

fn encode_sums(index: &PathIndex) -> Vec<u8> {
    let mut raw = Vec::new();
    write_varint(&mut raw, index.lanes.len() as u64);
    for lane in &index.lanes {
        let LaneSlack { path_cycles, waits, works, least_slack, weighted_slack, lead } = *lane;
        for cycles in [path_cycles, waits, works, lead] {
            write_varint(&mut raw, cycles.0);
        }
        write_varint(&mut raw, least_slack.map_or(0, |slack| slack.0.saturating_add(1)));
        for half in [weighted_slack & u128::from(u64::MAX), weighted_slack >> u64::BITS] {
            write_varint(&mut raw, u64::try_from(half).unwrap_or(u64::MAX));
        }
    }
    write_varint(&mut raw, index.leads.len() as u64);
    for ((lane, program), lead) in &index.leads {
        write_varint(&mut raw, *lane as u64);
        write_varint(&mut raw, program_code(*program));
        write_varint(&mut raw, lead.times);
        write_varint(&mut raw, lead.cycles.0);
    }
    write_varint(&mut raw, index.first.map_or(0, |first| first.lane as u64 + 1));
    if let Some(FoundStretch { range, totals, .. }) = index.first {
        write_varint(&mut raw, range.end.0);
        write_stretch(&mut raw, &StretchSums { start: range.start, totals }, range.end);
    }
    write_varint(&mut raw, index.groups.len() as u64);
    for group in index.groups.iter().rev() {
        let StretchGroup { range, totals, stretches, lane } = *group;
        write_varint(&mut raw, stretches);
        write_varint(&mut raw, lane.map_or(0, |lane| lane as u64 + 1));
        write_stretch(&mut raw, &StretchSums { start: range.start, totals }, range.end);
    }
    raw
}

fn read_sums(cursor: &mut VarintReader<'_>, index: &mut PathIndex) -> Option<()> {
    if cursor.take()? != index.lanes.len() as u64 {
        return None;
    }
    for lane in &mut index.lanes {
        lane.path_cycles = read_cycles(cursor)?;
        lane.waits = Cycles(cursor.take()?);
        lane.works = Cycles(cursor.take()?);
        lane.lead = Cycles(cursor.take()?);
        lane.least_slack = cursor.take()?.checked_sub(1).map(Cycles);
        let low = cursor.take()?;
        lane.weighted_slack = u128::from(cursor.take()?) << u64::BITS | u128::from(low);
    }
    for _ in 0..read_count(cursor)? {
        let lane = read_lane(cursor.take()?, index.lanes.len())?;
        let program = program_from_code(cursor.take()?)?;
        let lead = PathLead { times: cursor.take()?, cycles: Cycles(cursor.take()?) };
        index.leads.insert((lane, program), lead);
    }
    index.first = match cursor.take()?.checked_sub(1) {
        None => None,
        Some(lane) => {
            let lane = read_lane(lane, index.lanes.len())?;
            let end = read_cycles(cursor)?;
            let StretchSums { start, totals } = read_stretch(cursor, end)?;
            let range = CycleRange::new(start, end);
            Some(FoundStretch { lane, range, totals, hop: None })
        }
    };
    // They cover the run without a gap: each ends where the next one begins.
    let mut end = index.range.end;
    for _ in 0..read_count(cursor)? {
        let stretches = cursor.take().filter(|stretches| *stretches <= MAX_STEPS)?;
        let lane = cursor.take()?.checked_sub(1);
        let lane = match lane {
            Some(lane) => Some(read_lane(lane, index.lanes.len())?),
            None => None,
        };
        let StretchSums { start, totals } = read_stretch(cursor, end)?;
        index.groups.push(StretchGroup {
            range: CycleRange::new(start, end),
            totals,
            stretches,
            lane,
        });
        index.stretches = index.stretches.checked_add(stretches)?;
        let mut whole = totals;
        whole.add(&index.totals);
        index.totals = whole;
        end = start;
    }
    index.groups.reverse();
    if end == index.range.start { Some(()) } else { None }
}

/// The states of all blocks, in pieces.
fn encode_states(blocks: &[BlockState]) -> impl Iterator<Item = Vec<u8>> {
    let mut left = blocks;
    std::iter::from_fn(move || {
        let mut states = Vec::new();
        let mut count = 0;
        let mut before = None;
        for block in left {
            if states.len() >= FULL_PIECE_BYTES {
                break;
            }
            write_state(&mut states, before, block);
            before = Some(block);
            count += 1;
        }
        left = left.get(count..).unwrap_or_default();
        let mut raw = Vec::with_capacity(states.len() + 8);
        write_varint(&mut raw, count as u64);
        raw.extend(states);
        if count > 0 { Some(raw) } else { None }
    })
}

fn read_states(cursor: &mut VarintReader<'_>, index: &mut PathIndex) -> Option<()> {
    for place in 0..read_count(cursor)? {
        let before = index.blocks.last().filter(|_| place > 0);
        let state = read_state(cursor, before, index.lanes.len())?;
        // A later block does not repeat steps of an earlier one.
        let is_behind = index.blocks.last().is_none_or(|last| {
            let mut limits = last.limits.iter().zip(&state.limits);
            last.from <= state.from && limits.all(|(last, own)| last <= own)
        });
        if !is_behind {
            return None;
        }
        index.blocks.push(state);
    }
    Some(())
}

fn write_state(raw: &mut Vec<u8>, before: Option<&BlockState>, block: &BlockState) {
    let BlockState { behind: WalkState { lanes, path, bounds }, from, limits } = block;
    write_varint(raw, difference(from.0, before.map_or(0, |before| before.from.0)));
    write_varint(raw, path.lane as u64);
    write_varint(raw, difference(path.range.end.0, from.0));
    let sums = StretchSums { start: path.range.start, totals: path.totals };
    write_stretch(raw, &sums, path.range.end);
    write_varint(raw, bounds.len() as u64);
    let mut last = 0;
    for (number, slack) in bounds {
        write_varint(raw, number - last);
        write_varint(raw, slack.0);
        last = *number;
    }
    for (at, (lane, limit)) in lanes.iter().zip(limits).enumerate() {
        let [slack, until, last] = lane_before(before, at);
        write_varint(raw, difference(lane.slack.0, slack));
        write_varint(raw, difference(lane.until.0, until));
        write_varint(raw, difference(*limit, last));
    }
}

fn read_state(
    cursor: &mut VarintReader<'_>,
    before: Option<&BlockState>,
    lane_count: usize,
) -> Option<BlockState> {
    let from = apply_zigzag_difference(cursor.take()?, before.map_or(0, |before| before.from.0));
    let from = Some(Cycles(from)).filter(|from| *from <= MAX_CYCLES)?;
    let lane = read_lane(cursor.take()?, lane_count)?;
    let end = Cycles(apply_zigzag_difference(cursor.take()?, from.0));
    let end = Some(end).filter(|end| *end <= MAX_CYCLES)?;
    let StretchSums { start, totals } = read_stretch(cursor, end)?;
    let path = OpenStretch { lane, range: CycleRange::new(start, end), totals };
    let mut behind = WalkState { lanes: Vec::new(), path, bounds: Default::default() };
    let mut number = 0u64;
    for _ in 0..read_count(cursor)? {
        number = number.checked_add(cursor.take()?)?;
        behind.bounds.insert(number, Cycles(cursor.take()?));
    }
    let mut limits = Vec::new();
    for at in 0..lane_count {
        let [slack, until, last] = lane_before(before, at);
        let slack = Cycles(apply_zigzag_difference(cursor.take()?, slack));
        let until = Cycles(apply_zigzag_difference(cursor.take()?, until));
        behind.lanes.push(LaneState { slack, until });
        limits.push(apply_zigzag_difference(cursor.take()?, last));
    }
    Some(BlockState { behind, from, limits })
}

/// Slack, start and limit of a lane in a state; 0 if there is none.
fn lane_before(before: Option<&BlockState>, lane: usize) -> [u64; 3] {
    let Some(BlockState { behind, limits, .. }) = before else { return [0; 3] };
    let state = behind.lanes.get(lane).map_or([0; 2], |state| [state.slack.0, state.until.0]);
    [state[0], state[1], limits.get(lane).copied().unwrap_or(0)]
}

/// Reads the length of a list. Each item takes at least a byte.
fn read_count(cursor: &mut VarintReader<'_>) -> Option<usize> {
    let count = usize::try_from(cursor.take()?).ok()?;
    if count <= cursor.left() { Some(count) } else { None }
}

fn read_lane(number: u64, lanes: usize) -> Option<usize> {
    usize::try_from(number).ok().filter(|lane| *lane < lanes)
}

fn read_cycles(cursor: &mut VarintReader<'_>) -> Option<Cycles> {
    Some(Cycles(cursor.take()?)).filter(|cycles| *cycles <= MAX_CYCLES)
}
