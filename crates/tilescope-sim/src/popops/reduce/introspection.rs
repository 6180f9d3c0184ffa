//! Elements of the columns of a reduction on a tile, and their patterns of repetition.
//!
//! A reduction is treated as a matrix with one column per result and one row per element that
//! contributes to it. A tile holds a stretch of the tensor's memory. Adjacent columns with equal
//! repetition form a group, which one vertex can reduce (poplibs
//! lib/popops/reduction/ReductionIntrospection.cpp).

use super::intermediate_partials::merged;
use std::collections::HashMap;
use std::ops::Range;

/// One dimension of a tensor, in memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReduceDim {
    pub size: u64,
    /// True if the dimension is reduced, false if it is kept.
    pub reduced: bool,
}

/// Location of the elements of one column: runs of `inner` elements, `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PartialsPattern {
    /// Number of elements in a run.
    pub inner: u64,
    /// Number of elements before the first run.
    pub offset: u64,
    /// Distance between runs, or 1 if there is only one.
    pub stride: u64,
    pub outer: u64,
}

/// Adjacent columns on a tile with equal repetition. The patterns are those of the first column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartialsDescription {
    /// Columns, in memory order.
    pub columns: Vec<Range<u64>>,
    /// Patterns of the first column. Each further column begins `inner` elements later.
    pub patterns: Vec<PartialsPattern>,
}

impl PartialsDescription {
    pub(crate) fn width(&self) -> u64 {
        width(&self.columns)
    }

    /// Returns some of the columns, counted in memory order.
    pub(crate) fn slice(&self, part: Range<u64>) -> Self {
        let mut before = 0;
        let mut columns = Vec::new();
        for range in &self.columns {
            let length = range.end - range.start;
            let start = part.start.max(before) - before;
            let end = part.end.min(before + length).saturating_sub(before);
            if start < end {
                columns.push(range.start + start..range.start + end);
            }
            before += length;
        }
        let mut patterns = self.patterns.clone();
        for pattern in &mut patterns {
            pattern.offset += part.start * pattern.inner;
        }
        Self { columns, patterns }
    }
}

/// Splits a group into its columns if its patterns have runs of different lengths, because no
/// region can describe them together.
pub(crate) fn split_mixed(group: PartialsDescription) -> Vec<PartialsDescription> {
    let inner = group.patterns[0].inner;
    if group.patterns.iter().all(|pattern| pattern.inner == inner) {
        vec![group]
    } else {
        (0..group.width()).map(|at| group.slice(at..at + 1)).collect()
    }
}

/// Number of elements in several ranges.
pub(crate) fn width(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Returns the dimensions without those of size one, with adjacent ones of the same kind joined.
pub(crate) fn collapse(dims: &[ReduceDim]) -> Vec<ReduceDim> {
    let mut joined: Vec<ReduceDim> = Vec::new();
    for dim in dims.iter().filter(|dim| dim.size != 1) {
        match joined.last_mut() {
            Some(last) if last.reduced == dim.reduced => last.size *= dim.size,
            _ => joined.push(*dim),
        }
    }
    joined
}

/// Number of columns.
pub(crate) fn column_count(dims: &[ReduceDim]) -> u64 {
    dims.iter().filter(|dim| !dim.reduced).map(|dim| dim.size).product()
}

/// Contiguous elements: the same number of each of some adjacent columns.
pub(crate) struct ColumnPiece {
    pub columns: Range<u64>,
    /// Number of elements of the tile before the piece.
    offset: u64,
    /// Number of elements of each column.
    pub inner: u64,
}

/// Groups of columns in `range` of a tensor with these collapsed dimensions.
pub(crate) fn groups(dims: &[ReduceDim], range: Range<u64>) -> Vec<PartialsDescription> {
    join(columns_side_by_side(&pieces(dims, range)))
}

/// Number of different columns in `range` of a tensor with these collapsed dimensions.
pub(crate) fn columns(dims: &[ReduceDim], range: Range<u64>) -> u64 {
    width(&merged(pieces(dims, range).into_iter().map(|piece| piece.columns).collect()))
}

/// Cuts the range at each restart of the dimension that distinguishes adjacent columns: the
/// innermost one, or the one around it.
pub(crate) fn pieces(dims: &[ReduceDim], range: Range<u64>) -> Vec<ColumnPiece> {
    let single = ReduceDim { size: 1, reduced: false };
    let (inner, outer) = dims.split_last().unwrap_or((&single, &[]));
    let around = outer.last().unwrap_or(&single).size;
    let mut found = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let row = start / inner.size;
        let within = start % inner.size;
        let rest = range.end - start;
        let base = column(outer, row);
        let part = (inner.size - within).min(rest);
        // Whole runs of a reduced innermost dimension are consecutive columns until the dimension
        // around it restarts.
        let (first, count, elements) = if !inner.reduced {
            (base * inner.size + within, part, 1)
        } else if part < inner.size {
            (base, 1, part)
        } else {
            (base, (around - row % around).min(rest / inner.size), inner.size)
        };
        let columns = first..first + count;
        found.push(ColumnPiece { columns, offset: start - range.start, inner: elements });
        start += count * elements;
    }
    found
}

/// Column of an index over `dims`.
pub(crate) fn column(dims: &[ReduceDim], index: u64) -> u64 {
    let mut rest = index;
    let mut column = 0;
    let mut scale = 1;
    for dim in dims.iter().rev() {
        let at = rest % dim.size;
        rest /= dim.size;
        if !dim.reduced {
            column += at * scale;
            scale *= dim.size;
        }
    }
    column
}

/// Groups of columns that are in the same pieces.
fn columns_side_by_side(pieces: &[ColumnPiece]) -> Vec<PartialsDescription> {
    let mut borders: Vec<u64> =
        pieces.iter().flat_map(|piece| [piece.columns.start, piece.columns.end]).collect();
    borders.sort_unstable();
    borders.dedup();
    let mut runs: Vec<Vec<(u64, u64)>> = vec![Vec::new(); borders.len()];
    for ColumnPiece { columns, offset, inner } in pieces {
        let first = borders.partition_point(|border| *border < columns.start);
        for (at, border) in borders.iter().enumerate().skip(first) {
            if *border >= columns.end {
                break;
            }
            runs[at].push((offset + (border - columns.start) * inner, *inner));
        }
    }
    let columns = borders.windows(2).zip(runs);
    columns
        .filter(|(_, runs)| !runs.is_empty())
        .map(|(pair, runs)| {
            let columns = std::iter::once(pair[0]..pair[1]).collect();
            PartialsDescription { columns, patterns: patterns(&runs) }
        })
        .collect()
}

/// Patterns that describe runs of `(offset, length)` in order. A new pattern starts at each change
/// of length or distance.
fn patterns(runs: &[(u64, u64)]) -> Vec<PartialsPattern> {
    let mut found: Vec<PartialsPattern> = Vec::new();
    let mut last_offset = 0;
    for &(offset, length) in runs {
        let distance = offset - last_offset;
        last_offset = offset;
        let fresh = PartialsPattern { inner: length, offset, stride: 0, outer: 1 };
        match found.last_mut() {
            Some(pattern) if pattern.stride == 0 || pattern.stride == distance => {
                // As in poplibs, the distance is recorded at the start of a run, before its length
                // is known: a pattern of one run may keep the distance to a run that does not
                // belong to it.
                pattern.stride = distance;
                if pattern.inner == length {
                    pattern.outer += 1;
                } else {
                    found.push(fresh);
                }
            }
            _ => found.push(fresh),
        }
    }
    for pattern in &mut found {
        pattern.stride = pattern.stride.max(1);
    }
    found
}

/// Joins groups that continue each other in memory.
fn join(mut groups: Vec<PartialsDescription>) -> Vec<PartialsDescription> {
    groups.sort_by_key(|group| group.patterns[0].offset);
    let by_offset: HashMap<u64, usize> =
        groups.iter().enumerate().map(|(at, group)| (group.patterns[0].offset, at)).collect();
    let mut used = vec![false; groups.len()];
    let mut joined = Vec::new();
    for first in 0..groups.len() {
        if std::mem::replace(&mut used[first], true) {
            continue;
        }
        let mut group = groups[first].clone();
        while let Some(next) = following(&group, &groups, &by_offset).filter(|next| !used[*next]) {
            used[next] = true;
            for columns in &groups[next].columns {
                match group.columns.last_mut() {
                    Some(last) if last.end == columns.start => last.end = columns.end,
                    _ => group.columns.push(columns.clone()),
                }
            }
        }
        joined.push(group);
    }
    joined
}

/// Index of the group that directly follows `group` in every repetition.
fn following(
    group: &PartialsDescription,
    all: &[PartialsDescription],
    by_offset: &HashMap<u64, usize>,
) -> Option<usize> {
    let width = group.width();
    let first = &group.patterns[0];
    let next = *by_offset.get(&(first.offset + width * first.inner))?;
    let behind = &all[next].patterns;
    if behind.len() != group.patterns.len() {
        return None;
    }
    for (behind, before) in behind.iter().zip(&group.patterns) {
        let offset = before.offset + width * before.inner;
        if *behind != (PartialsPattern { offset, ..*before }) {
            return None;
        }
    }
    Some(next)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn dim(size: u64, reduced: bool) -> ReduceDim {
        ReduceDim { size, reduced }
    }

    #[test]
    fn whole_rows_of_columns_form_one_group() {
        let groups = groups(&[dim(100, true), dim(8, false)], 16..40);
        let pattern = PartialsPattern { inner: 1, offset: 0, stride: 8, outer: 3 };
        assert_eq!(groups, [PartialsDescription { columns: vec![0..8], patterns: vec![pattern] }]);
    }

    #[test]
    fn a_start_inside_a_row_rotates_the_columns() {
        let groups = groups(&[dim(100, true), dim(8, false)], 4..20);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].columns, [4..8, 0..4]);
    }

    #[test]
    fn reduced_innermost_dimensions_give_runs() {
        let dims = [dim(256, true), dim(8, false), dim(4, true)];
        let groups = groups(&dims, 0..128);
        let pattern = PartialsPattern { inner: 4, offset: 0, stride: 32, outer: 4 };
        assert_eq!(groups, [PartialsDescription { columns: vec![0..8], patterns: vec![pattern] }]);
    }

    #[test]
    fn a_change_of_length_or_distance_starts_a_pattern() {
        let found = patterns(&[(1, 3), (6, 3), (10, 1), (12, 1)]);
        let shapes: Vec<_> = found.iter().map(|p| (p.inner, p.offset, p.stride, p.outer)).collect();
        assert_eq!(shapes, [(3, 1, 5, 2), (1, 10, 2, 2)]);
    }

    /// Between one and four dimensions.
    pub(crate) fn dims() -> impl Strategy<Value = Vec<ReduceDim>> {
        prop::collection::vec((1u64..9, any::<bool>()), 1..5)
            .prop_map(|dims| dims.into_iter().map(|(size, reduced)| dim(size, reduced)).collect())
    }

    /// Stretch of the memory of a tensor, between any two elements.
    pub(crate) fn stretch(dims: &[ReduceDim], from: u64, to: u64) -> Range<u64> {
        let total: u64 = dims.iter().map(|dim| dim.size).product();
        let from = from % (total + 1);
        let to = to % (total + 1);
        from.min(to)..from.max(to)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn every_element_is_in_one_group(dims in dims(), from in 0u64..1000, to in 0u64..1000) {
            let range = stretch(&dims, from, to);
            prop_assume!(!range.is_empty());
            let groups = groups(&collapse(&dims), range.clone());
            let mut seen: Vec<u64> = Vec::new();
            for group in &groups {
                for pattern in &group.patterns {
                    for run in 0..pattern.outer {
                        let start = pattern.offset + run * pattern.stride;
                        seen.extend(start..start + pattern.inner * group.width());
                    }
                }
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..range.end - range.start).collect::<Vec<_>>());
            let all = merged(groups.iter().flat_map(|group| group.columns.clone()).collect());
            prop_assert_eq!(columns(&collapse(&dims), range), width(&all));
        }
    }
}
