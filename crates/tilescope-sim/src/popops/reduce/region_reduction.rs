//! Region reductions: some results of one tile with the location of their elements, and the
//! vertices that reduce them (poplibs lib/popops/reduction/ReductionConnection.cpp).

use super::cycles::{self, ReduceVertexType, ReductionSpecialisation};
use super::introspection::{PartialsDescription, PartialsPattern};
use crate::poplar::exchange::WORD_BYTES;
use crate::popops::elementwise::VECTOR_BYTES;
use crate::poputil::list_length;
use crate::shape::DType;
use std::ops::Range;
use tilescope_report::units::{Bytes, Cycles};

/// Location of the elements of a region.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RegionOperands {
    /// One stretch of memory, with rows at a regular distance.
    Regular {
        /// Number of elements before the first row.
        offset: u64,
        /// Distance between rows.
        stride: u64,
    },
    /// Separate pieces of these sizes.
    Pieces(Vec<u64>),
}

/// Results that are reduced together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RegionReduction {
    /// Results as columns in memory order.
    pub columns: Vec<Range<u64>>,
    pub outputs: u64,
    /// Number of elements of one result in a row.
    pub inner: u64,
    pub outer: u64,
    /// Location of the elements.
    pub operands: RegionOperands,
}

/// One vertex of a compute set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReduceVertex {
    pub form: ReductionSpecialisation,
    /// Types and operation of the vertex.
    pub kind: ReduceVertexType,
    /// Cycles of the worker that runs it.
    pub cycles: Cycles,
    /// Number of operands and results, each a pointer of the vertex.
    pub edges: u64,
}

impl RegionReduction {
    /// Creates a region that reads `rows` pieces, each with one element per result.
    pub(crate) fn of_pieces(columns: Range<u64>, rows: u64) -> Self {
        let outputs = columns.end - columns.start;
        let operands = RegionOperands::Pieces(vec![outputs; list_length(rows)]);
        Self { columns: vec![columns], outputs, inner: 1, outer: rows, operands }
    }

    /// Creates a region of one result with `length` contiguous elements.
    pub(crate) fn of_stretch(column: u64, length: u64) -> Self {
        let operands = RegionOperands::Pieces(vec![length]);
        Self {
            columns: std::iter::once(column..column + 1).collect(),
            outputs: 1,
            inner: 1,
            outer: 1,
            operands,
        }
    }

    /// Creates the region of a group of columns on a tile.
    pub(crate) fn of_group(group: PartialsDescription) -> Self {
        let outputs = group.width();
        let (inner, outer, operands) = match group.patterns[..] {
            [PartialsPattern { inner, offset, stride, outer }] => {
                (inner, outer, RegionOperands::Regular { offset, stride })
            }
            ref patterns => {
                let pieces = patterns.iter().flat_map(|pattern| pieces(pattern, outputs));
                let last = patterns[patterns.len() - 1];
                (last.inner, last.outer, RegionOperands::Pieces(pieces.collect()))
            }
        };
        Self { columns: group.columns, outputs, inner, outer, operands }
    }

    /// Number of elements that contribute to the results.
    pub(crate) fn elements(&self) -> u64 {
        match &self.operands {
            RegionOperands::Regular { .. } => self.outputs * self.inner * self.outer,
            RegionOperands::Pieces(pieces) => pieces.iter().sum(),
        }
    }

    /// Sizes of the pieces of the elements.
    pub(crate) fn pieces(&self) -> Vec<u64> {
        match &self.operands {
            RegionOperands::Regular { .. } => {
                vec![self.outputs * self.inner; list_length(self.outer)]
            }
            RegionOperands::Pieces(pieces) => pieces.clone(),
        }
    }

    /// Number of elements of one result.
    pub(crate) fn depth(&self) -> u64 {
        self.elements() / self.outputs
    }

    /// Returns the operands moved by `elements` if they are regular.
    pub(crate) fn operands_at(&self, elements: u64) -> RegionOperands {
        match &self.operands {
            RegionOperands::Regular { offset, stride } => {
                RegionOperands::Regular { offset: offset + elements, stride: *stride }
            }
            pieces => pieces.clone(),
        }
    }
}

/// Returns true if `bytes` is a multiple of `unit`, a word or a vector.
fn is_whole(bytes: Bytes, unit: Bytes) -> bool {
    (bytes % unit).is_zero()
}

/// Sizes of the pieces of a pattern. Contiguous rows count as one piece.
fn pieces(pattern: &PartialsPattern, outputs: u64) -> Vec<u64> {
    // Contiguous rows are one operand of the vertex, which takes one pointer instead of many.
    let row = pattern.inner * outputs;
    if pattern.inner == 1 && pattern.stride == outputs {
        vec![row * pattern.outer]
    } else {
        vec![row; list_length(pattern.outer)]
    }
}

/// Returns true if pieces can be received contiguously without copying: all but the last are whole
/// words.
fn whole_words(pieces: impl Iterator<Item = u64>, dtype: DType) -> bool {
    let mut odd = false;
    for piece in pieces {
        if odd {
            return false;
        }
        odd = !is_whole(piece * dtype.bytes(), WORD_BYTES);
    }
    true
}

/// Number of first regions that are results of one length, written and read contiguously.
fn continuous_length(
    regions: &[RegionReduction],
    kind: ReduceVertexType,
    first_stage: bool,
) -> usize {
    let length = regions[0].elements();
    if length == 1 {
        return 0;
    }
    // A vertex with one output pointer writes its results contiguously.
    let mut next_column = None;
    let mut next_element = None;
    // True while the operands are contiguous in memory.
    let mut is_stretch = true;
    // True while the operands can be received contiguously without copying.
    let mut is_whole_words = true;
    let mut ends_in_word = false;
    for (at, region) in regions.iter().enumerate() {
        if region.outputs != 1 || region.elements() != length {
            return at;
        }
        for columns in &region.columns {
            if next_column.is_some_and(|next| next != columns.start) {
                return at;
            }
            next_column = Some(columns.end);
        }
        match &region.operands {
            RegionOperands::Regular { offset, .. } => {
                let follows = next_element.is_none_or(|next| next == *offset);
                is_stretch &= follows && region.outer == 1;
                next_element = Some(offset + length);
            }
            RegionOperands::Pieces(pieces) => is_stretch &= at == 0 && pieces.len() == 1,
        }
        // Pieces of several regions have no known place.
        is_stretch &= at != 1 || !matches!(regions[0].operands, RegionOperands::Pieces(_));
        if first_stage {
            for piece in region.pieces() {
                is_whole_words &= !ends_in_word;
                ends_in_word = !is_whole(piece * kind.input.bytes(), WORD_BYTES);
            }
            if !is_stretch && !is_whole_words {
                return at;
            }
        }
    }
    regions.len()
}

fn is_single_input(regions: &[RegionReduction], kind: ReduceVertexType) -> bool {
    let [region] = regions else { return false };
    region.outputs == 1
        && !kind.result.update
        && match &region.operands {
            RegionOperands::Regular { .. } => is_whole(kind.input.bytes(), WORD_BYTES),
            RegionOperands::Pieces(pieces) => whole_words(pieces.iter().copied(), kind.input),
        }
}

/// True if rows of a region can be read and written whole by the strided vertex.
fn has_strided_rows(region: &RegionReduction, kind: ReduceVertexType) -> bool {
    // The strided vertex loads 64 bits of every row and stores words. Rows and results that end
    // inside one would need a tail for which it has no code.
    is_whole(region.outputs * kind.output.bytes(), WORD_BYTES)
        && is_whole(region.outputs * kind.input.bytes(), VECTOR_BYTES)
}

fn is_strided(regions: &[RegionReduction], kind: ReduceVertexType) -> bool {
    let [first] = regions else {
        return strided_length(regions, kind, regions.len() - 1) == regions.len();
    };
    has_strided_rows(first, kind)
        && match &first.operands {
            RegionOperands::Regular { .. } => true,
            RegionOperands::Pieces(pieces) => {
                pieces.iter().all(|piece| piece % first.outputs == 0)
                    && whole_words(pieces.iter().copied(), kind.input)
            }
        }
}

/// The largest number of first regions up to which one strided vertex can take each number of them
/// above `from`, at least `from`. The rows of such regions are side by side.
fn strided_length(regions: &[RegionReduction], kind: ReduceVertexType, from: usize) -> usize {
    let first = &regions[0];
    let RegionOperands::Regular { offset, stride } = &first.operands else { return from };
    if !has_strided_rows(first, kind) || !is_whole(*stride * kind.input.bytes(), VECTOR_BYTES) {
        return from;
    }
    let mut outputs = 0;
    for (at, region) in regions.iter().enumerate() {
        let place = RegionOperands::Regular { offset: offset + outputs, stride: *stride };
        outputs += region.outputs;
        let is_beside =
            region.inner == 1 && region.outer == first.outer && region.operands == place;
        if !is_beside || at >= from && !is_whole(outputs * kind.input.bytes(), VECTOR_BYTES) {
            return at.max(from);
        }
    }
    regions.len()
}

/// True if an operation has a strided vertex for floats of this type.
fn has_strided_form(kind: ReduceVertexType) -> bool {
    let operation = kind.operation;
    let has_form =
        operation.has_regular_forms() || operation == super::operation::ReduceOperation::LogAdd;
    has_form && matches!(kind.output, DType::Half | DType::Float)
}

/// Returns the specialisation of the vertex that reduces all these regions.
fn specialisation_for(
    regions: &[RegionReduction],
    kind: ReduceVertexType,
    first_stage: bool,
) -> ReductionSpecialisation {
    let operation = kind.operation;
    let is_regular = operation.has_regular_forms();
    if is_regular && continuous_length(regions, kind, first_stage) == regions.len() {
        ReductionSpecialisation::AllRegionsContinuous
    } else if operation.is_sum() && is_single_input(regions, kind) {
        ReductionSpecialisation::ScalarOutputSingleInput
    } else if is_strided(regions, kind) {
        if has_strided_form(kind) {
            ReductionSpecialisation::StridedReduce
        } else {
            ReductionSpecialisation::Default
        }
    } else if regions.iter().all(|region| region.outputs == 1) {
        ReductionSpecialisation::ScalarOutputRegions
    } else {
        ReductionSpecialisation::Default
    }
}

/// Bytes of vertex state of the general vertex for each region.
const GENERAL_BYTES_PER_REGION: usize = 8;

/// Bytes of vertex state, by which poplibs compares several vertices with one (`getReductionCost`,
/// as of May 2022; before that, regions added 2 bytes, and short runs of regular ones used the
/// general vertex).
fn state_cost(form: ReductionSpecialisation, regions: usize) -> usize {
    match form {
        ReductionSpecialisation::Default | ReductionSpecialisation::ScalarOutputRegions => {
            // Poplibs adds the 2 additional cycles of the inner loop.
            GENERAL_BYTES_PER_REGION * regions + 20 + 2
        }
        ReductionSpecialisation::ScalarOutputSingleInput
        | ReductionSpecialisation::AllRegionsContinuous
        | ReductionSpecialisation::StridedReduce => 12,
    }
}

/// Returns true if a specialisation takes additional regions at no cost.
fn takes_many(form: ReductionSpecialisation) -> bool {
    matches!(
        form,
        ReductionSpecialisation::AllRegionsContinuous | ReductionSpecialisation::StridedReduce
    )
}

/// Minimum number of regions for which a separate vertex is cheaper than adding them to a general
/// vertex.
fn worthwhile(form: ReductionSpecialisation) -> usize {
    // From this number on, a separate vertex has less state than these regions add to the general
    // one.
    if takes_many(form) { state_cost(form, 0) / GENERAL_BYTES_PER_REGION } else { usize::MAX }
}

/// Returns the length of the longest initial run of regions that one vertex takes, and its
/// specialisation.
fn longest_run(
    regions: &[RegionReduction],
    kind: ReduceVertexType,
    first_stage: bool,
) -> (usize, ReductionSpecialisation) {
    // All other specialisations take a single region, or gain nothing from more.
    let mut continuous = 0;
    if kind.operation.has_regular_forms() {
        continuous = continuous_length(regions, kind, first_stage);
    }
    let mut length = continuous.max(1);
    if has_strided_form(kind) {
        length = strided_length(regions, kind, length);
    }
    if length == 1 {
        (1, specialisation_for(&regions[..1], kind, first_stage))
    } else if length <= continuous {
        (length, ReductionSpecialisation::AllRegionsContinuous)
    } else {
        (length, ReductionSpecialisation::StridedReduce)
    }
}

/// Distributes the regions of one worker over the cheapest vertices.
fn group_into_vertices(
    regions: &[RegionReduction],
    kind: ReduceVertexType,
    first_stage: bool,
) -> Vec<Vec<RegionReduction>> {
    if !matches!(
        specialisation_for(regions, kind, first_stage),
        ReductionSpecialisation::Default | ReductionSpecialisation::ScalarOutputRegions
    ) {
        return vec![regions.to_vec()];
    }
    // poplibs compares bytes of vertex state, not cycles: first the runs for which a vertex always
    // pays, then all the rest in one vertex or in several, depending on which has less state.
    let mut dealt = Vec::new();
    let mut left = Vec::new();
    let mut at = 0;
    while at < regions.len() {
        let (length, form) = longest_run(&regions[at..], kind, first_stage);
        let run = regions[at..at + length].to_vec();
        if length >= worthwhile(form) {
            dealt.push(run)
        } else {
            left.extend(run)
        }
        at += length;
    }
    if left.is_empty() {
        return dealt;
    }
    let budget = state_cost(specialisation_for(&left, kind, first_stage), left.len());
    let mut runs = Vec::new();
    let mut cost = 0;
    let mut at = 0;
    while at < left.len() {
        let (length, form) = longest_run(&left[at..], kind, first_stage);
        cost += state_cost(form, length);
        runs.push(left[at..at + length].to_vec());
        at += length;
    }
    if cost > budget {
        dealt.push(left)
    } else {
        dealt.append(&mut runs)
    }
    dealt
}

/// Returns the vertices that reduce the regions of one worker.
pub(crate) fn vertices(
    regions: &[RegionReduction],
    kind: ReduceVertexType,
    first_stage: bool,
) -> Vec<ReduceVertex> {
    group_into_vertices(regions, kind, first_stage)
        .iter()
        .map(|regions| {
            let form = specialisation_for(regions, kind, first_stage);
            let edges = match form {
                ReductionSpecialisation::Default | ReductionSpecialisation::ScalarOutputRegions => {
                    regions.iter().map(|region| 1 + region.pieces().len() as u64).sum()
                }
                _ => 2,
            };
            ReduceVertex { form, kind, cycles: vertex_cycles(regions, form, kind), edges }
        })
        .collect()
}

fn vertex_cycles(
    regions: &[RegionReduction],
    form: ReductionSpecialisation,
    kind: ReduceVertexType,
) -> Cycles {
    let first = &regions[0];
    let outputs: u64 = regions.iter().map(|region| region.outputs).sum();
    match form {
        ReductionSpecialisation::AllRegionsContinuous => {
            cycles::continuous(kind, outputs, first.elements())
        }
        ReductionSpecialisation::ScalarOutputSingleInput => {
            cycles::single_input(kind, first.elements())
        }
        ReductionSpecialisation::StridedReduce => match &first.operands {
            RegionOperands::Regular { stride, .. } => {
                let aligned = is_whole(*stride * kind.input.bytes(), VECTOR_BYTES);
                // Rows that are not aligned to 64 bits are copied side by side before the vertex
                // runs.
                let stride = if aligned { *stride } else { first.outputs };
                cycles::strided(kind, outputs, first.outer, stride)
            }
            RegionOperands::Pieces(_) => {
                cycles::strided(kind, first.outputs, first.depth(), first.outputs)
            }
        },
        ReductionSpecialisation::Default | ReductionSpecialisation::ScalarOutputRegions => {
            let pieces: Vec<(u64, Vec<u64>)> =
                regions.iter().map(|region| (region.outputs, region.pieces())).collect();
            cycles::general(kind, pieces.iter().map(|(outputs, pieces)| (*outputs, &pieces[..])))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ReduceOperation, ReduceResultUse};
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    /// Regions side by side, most of them alike: seeds of their sizes, gaps and kinds.
    fn regions(seeds: &[[u64; 3]]) -> Vec<RegionReduction> {
        let mut column = 0;
        let mut offset = 0;
        let mut regions = Vec::new();
        for [size, gap, kind] in seeds {
            let outputs = [1, 1, 4, 2][*size as usize % 4];
            column += u64::from(*gap == 0);
            offset += u64::from(*gap == 1);
            let (inner, outer) = if outputs == 1 { (4, 1) } else { (1, 3) };
            let operands = match kind {
                0 => RegionOperands::Pieces(vec![outputs * inner; outer as usize]),
                _ => RegionOperands::Regular { offset, stride: 8 },
            };
            let columns = vec![column..column + outputs];
            regions.push(RegionReduction { columns, outputs, inner, outer, operands });
            column += outputs;
            offset += outputs * inner;
        }
        regions
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(2000).max(300)))]
        /// A run is as long as the specialisations of its beginnings say, one after another.
        #[test]
        fn runs_end_where_no_vertex_takes_another_region(
            same in [0u64..4, 2u64..9, 0u64..9],
            seeds in prop::collection::vec([0u64..4, 0u64..9, 0u64..9], 1..12),
            alike in 0usize..12,
            first_stage: bool,
            half: bool,
            operation in prop::sample::select(vec![ReduceOperation::Add, ReduceOperation::Max]),
        ) {
            let mut seeds = seeds;
            for seed in seeds.iter_mut().take(alike) {
                *seed = same;
            }
            let regions = regions(&seeds);
            let dtype = if half { DType::Half } else { DType::Float };
            let result = ReduceResultUse::PLAIN;
            let kind = ReduceVertexType { operation, input: dtype, output: dtype, result };
            let mut expected = (1, specialisation_for(&regions[..1], kind, first_stage));
            for length in 2..=regions.len() {
                let form = specialisation_for(&regions[..length], kind, first_stage);
                if !takes_many(form) {
                    break;
                }
                expected = (length, form);
            }
            prop_assert_eq!(longest_run(&regions, kind, first_stage), expected);
        }
    }
}
