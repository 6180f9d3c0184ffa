//! Consecutive blocks of a row as bytes: each is encoded as a difference to the previous one.

// Pieces come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::block::{MarkBlock, PassCycles};
use crate::codec::{self, VarintReader, apply_zigzag_difference, difference, write_varint};
use crate::limits::{MAX_COUNT, MAX_CYCLES};
use crate::model::TrainingPass;
use crate::units::{CycleRange, Cycles};

/// Largest unpacked piece: some 500,000 coarse blocks, of 2 * 10^9 marks.
const MAX_PIECE_BYTES: usize = 1 << 24;
/// No label: labels are read with the marks themselves.
const NO_LABEL: u32 = u32::MAX;

/// Encodes blocks as bytes, not yet packed.
pub(super) fn encode(blocks: &[MarkBlock]) -> Vec<u8> {
    let mut raw = Vec::new();
    write_varint(&mut raw, blocks.len() as u64);
    let mut end = Cycles::ZERO;
    let mut number = 0;
    for block in blocks {
        let MarkBlock { range, count, updates, passes, shortest, longest, numbers, .. } = *block;
        write_varint(&mut raw, difference(range.start.0, end.0));
        write_varint(&mut raw, range.length().0);
        write_varint(&mut raw, count);
        write_varint(&mut raw, updates);
        write_varint(&mut raw, shortest.0);
        write_varint(&mut raw, (longest - shortest).0);
        write_varint(&mut raw, difference(numbers.0, number));
        write_varint(&mut raw, difference(numbers.1, numbers.0));
        for cycles in passes.passes {
            write_varint(&mut raw, cycles.0);
        }
        write_varint(&mut raw, passes.other.0);
        match block.micro_batches {
            None => write_varint(&mut raw, 0),
            Some((low, high)) => {
                write_varint(&mut raw, high - low + 1);
                write_varint(&mut raw, difference(low, numbers.0));
            }
        }
        (end, number) = (range.end, numbers.1);
    }
    raw
}

/// Decodes the blocks of a packed piece whose first mark has index `first` in its row; `None` if
/// the piece is damaged.
pub(crate) fn decode(blob: &[u8], first: u64) -> Option<Vec<MarkBlock>> {
    let raw = codec::unpack(blob, MAX_PIECE_BYTES)?;
    let mut cursor = VarintReader::new(&raw);
    let count = usize::try_from(cursor.take()?).ok()?;
    // Every block takes several bytes, so a count that is too large is found before any allocation.
    if count > cursor.left() {
        return None;
    }
    let mut blocks: Vec<MarkBlock> = Vec::with_capacity(count);
    for _ in 0..count {
        let block = read_block(&mut cursor, blocks.last(), first)?;
        blocks.push(block);
    }
    if cursor.is_done() { Some(blocks) } else { None }
}

fn read_block(
    cursor: &mut VarintReader<'_>,
    before: Option<&MarkBlock>,
    first: u64,
) -> Option<MarkBlock> {
    let end = before.map_or(Cycles::ZERO, |before| before.range.end);
    let number = before.map_or(0, |before| before.numbers.1);
    let start = Cycles(apply_zigzag_difference(cursor.take()?, end.0));
    let length = cycles(cursor)?;
    let range = CycleRange::new(start, start.checked_add(length)?);
    let is_in_order = before.is_none_or(|before| before.range.start <= start);
    if !is_in_order || range.end > MAX_CYCLES {
        return None;
    }
    let count = cursor.take().filter(|count| (1..=MAX_COUNT).contains(count))?;
    let updates = cursor.take().filter(|updates| *updates <= count)?;
    let shortest = cycles(cursor)?;
    let longest = shortest.checked_add(cycles(cursor)?)?;
    let from = apply_zigzag_difference(cursor.take()?, number);
    let numbers = (from, apply_zigzag_difference(cursor.take()?, from));
    let mut passes = [Cycles::ZERO; TrainingPass::ALL.len()];
    for sum in &mut passes {
        *sum = cycles(cursor)?;
    }
    let passes = PassCycles { passes, other: cycles(cursor)? };
    let micro_batches = match cursor.take()?.checked_sub(1) {
        None => None,
        Some(wide) => {
            let low = apply_zigzag_difference(cursor.take()?, from);
            Some((low, low.checked_add(wide)?))
        }
    };
    let place = before.map_or(first, |before| before.first + before.count);
    if place > MAX_COUNT {
        return None;
    }
    Some(MarkBlock {
        range,
        first: place,
        count,
        updates,
        passes,
        shortest,
        longest,
        numbers,
        micro_batches,
        label: NO_LABEL,
    })
}

fn cycles(cursor: &mut VarintReader<'_>) -> Option<Cycles> {
    Some(Cycles(cursor.take()?)).filter(|cycles| *cycles <= MAX_CYCLES)
}
