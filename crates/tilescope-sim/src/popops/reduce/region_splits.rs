//! Splitting of regions between the workers of a tile, by rows and by columns.

use super::region_reduction::{RegionOperands, RegionReduction};
use crate::popops::elementwise::vector_width;
use crate::poputil::list_length;
use crate::shape::DType;
use std::ops::Range;

/// Number of rows of each of up to `workers` parts, at least two each.
pub(crate) fn rows_per_worker(rows: u64, workers: u64, grain: u64) -> Vec<u64> {
    if rows <= 3 || workers <= 1 {
        return vec![rows];
    }
    // Use the smallest number of parts that does not enlarge the largest part: 9 rows for 4 workers
    // are 3, 3, 3, not 3, 2, 2, 2 (poplibs splitRowsToWorkers).
    let parts = (rows / 2).min(rows.div_ceil(rows.div_ceil(workers)));
    let mut split = vec![grain * (rows / (parts * grain)); list_length(parts)];
    let rest = rows % (parts * grain);
    for part in split.iter_mut().take(list_length(rest / grain)) {
        *part += grain;
    }
    if let Some(last) = split.last_mut() {
        *last += rest % grain;
    }
    split.retain(|rows| *rows > 0);
    split
}

/// Returns `outer` rows of a region with the given operands.
fn rows_of(region: &RegionReduction, outer: u64, operands: RegionOperands) -> RegionReduction {
    RegionReduction {
        columns: region.columns.clone(),
        outputs: region.outputs,
        inner: 1,
        outer,
        operands,
    }
}

/// Splits the rows of a region into consecutive parts.
pub(crate) fn split_rows(region: &RegionReduction, rows: &[u64]) -> Vec<RegionReduction> {
    let repeats = region.inner != 1 && region.outer != 1;
    match &region.operands {
        RegionOperands::Regular { offset, stride } if !repeats => {
            // A single column in one run is cut inside the run.
            let step = if region.inner == 1 { *stride } else { 1 };
            let mut done = 0;
            rows.iter()
                .map(|count| {
                    let offset = offset + step * done;
                    done += count;
                    let operands = RegionOperands::Regular { offset, stride: step };
                    let whole = rows_of(region, *count, operands);
                    // A stretch of one column is one operand.
                    if step == 1 {
                        RegionReduction { inner: *count, outer: 1, ..whole }
                    } else {
                        whole
                    }
                })
                .collect()
        }
        _ => {
            let mut left = region.pieces().into_iter();
            let mut current = 0;
            rows.iter()
                .map(|count| {
                    let mut wanted = count * region.outputs;
                    let mut pieces = Vec::new();
                    while wanted > 0 {
                        if current == 0 {
                            match left.next() {
                                Some(next) => current = next,
                                None => break,
                            }
                        }
                        let taken = wanted.min(current);
                        pieces.push(taken);
                        wanted -= taken;
                        current -= taken;
                    }
                    rows_of(region, *count, RegionOperands::Pieces(pieces))
                })
                .collect()
        }
    }
}

/// Returns true if rows of `row` elements, several rows of the region each, cover it exactly.
pub(crate) fn fits_wider_rows(region: &RegionReduction, row: u64) -> bool {
    match &region.operands {
        RegionOperands::Regular { stride, .. } => {
            region.elements() != row
                && region.outputs == *stride
                && region.elements().is_multiple_of(row)
        }
        RegionOperands::Pieces(pieces) => pieces.iter().all(|piece| piece.is_multiple_of(row)),
    }
}

/// Minimum number of wide rows that is worth a worker.
const LEAST_WIDE_ROWS: u64 = 4;

/// Splits a region of few columns into up to `splits` parts of whole wide rows.
pub(crate) fn split_wide_rows(
    region: &RegionReduction,
    row: u64,
    splits: u64,
) -> Vec<RegionReduction> {
    let wide_rows = region.elements() / row;
    if wide_rows <= splits * LEAST_WIDE_ROWS {
        return vec![region.clone()];
    }
    let factor = row / region.outputs;
    let mut rows = vec![wide_rows / splits * factor; list_length(splits)];
    if let Some(last) = rows.last_mut() {
        *last += wide_rows % splits * factor;
    }
    split_rows(region, &rows)
}

/// Splits a region by columns into at most `splits` equal parts of whole vectors.
pub(crate) fn split_columns(
    region: &RegionReduction,
    splits: u64,
    input: DType,
) -> Vec<RegionReduction> {
    let elements = region.outputs * region.inner;
    let largest = (2..=splits).rev().find(|&parts| {
        region.outputs.is_multiple_of(parts)
            // Parts that are not whole vectors would need a slower vertex.
            && (elements / parts).is_multiple_of(vector_width(input))
    });
    let Some(parts) = largest else { return vec![region.clone()] };
    let outputs = region.outputs / parts;
    let columns: Vec<u64> = region.columns.iter().cloned().flatten().collect();
    columns
        .chunks(list_length(outputs))
        .enumerate()
        .map(|(at, columns)| RegionReduction {
            columns: ranges(columns),
            outputs,
            operands: match &region.operands {
                RegionOperands::Pieces(pieces) => {
                    RegionOperands::Pieces(pieces.iter().map(|piece| piece / parts).collect())
                }
                _ => region.operands_at(at as u64 * outputs * region.inner),
            },
            ..region.clone()
        })
        .collect()
}

/// Groups consecutive numbers into ranges, in their order.
fn ranges(numbers: &[u64]) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    for number in numbers {
        match found.last_mut() {
            Some(last) if last.end == *number => last.end += 1,
            _ => found.push(*number..number + 1),
        }
    }
    found
}

/// Number of results of each worker. Workers that would not shorten the longest share are left out.
pub(crate) fn outputs_per_worker(most: u64, outputs: u64) -> Vec<u64> {
    let workers = most.min(outputs).max(1);
    let mut counts: Vec<u64> =
        (0..workers).map(|at| outputs / workers + u64::from(at < outputs % workers)).collect();
    let largest = counts[0];
    while let Some((last, others)) = counts.split_last_mut() {
        let Some(other) = others.iter_mut().find(|other| **other + *last == largest) else { break };
        *other += *last;
        counts.pop();
    }
    counts
}
