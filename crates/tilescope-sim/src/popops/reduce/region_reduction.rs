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

/// Returns true if the results are contiguous.
fn side_by_side(regions: &[RegionReduction]) -> bool {
    let mut columns = regions.iter().flat_map(|region| &region.columns);
    // A vertex with one output pointer writes its results contiguously.
    let Some(first) = columns.next() else { return true };
    let mut end = first.end;
    columns.all(|range| std::mem::replace(&mut end, range.end) == range.start)
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

fn is_continuous(regions: &[RegionReduction], kind: ReduceVertexType, first_stage: bool) -> bool {
    let length = regions[0].elements();
    let equal = regions.iter().all(|region| region.outputs == 1 && region.elements() == length);
    if !equal || length == 1 || !side_by_side(regions) {
        return false;
    }
    !first_stage
        || in_one_stretch(regions)
        || whole_words(regions.iter().flat_map(RegionReduction::pieces), kind.input)
}

/// Returns true if the operands of all regions are contiguous in memory.
fn in_one_stretch(regions: &[RegionReduction]) -> bool {
    let mut next = None;
    regions.iter().all(|region| match &region.operands {
        RegionOperands::Regular { offset, .. } => {
            let follows = next.is_none_or(|next| next == *offset) && region.outer == 1;
            next = Some(offset + region.elements());
            follows
        }
        RegionOperands::Pieces(pieces) => regions.len() == 1 && pieces.len() == 1,
    })
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

fn is_strided(regions: &[RegionReduction], kind: ReduceVertexType) -> bool {
    let first = &regions[0];
    let outputs: u64 = regions.iter().map(|region| region.outputs).sum();
    // The strided vertex loads 64 bits of every row and stores words. Rows and results that end
    // inside one would need a tail for which it has no code.
    if !is_whole(first.outputs * kind.output.bytes(), WORD_BYTES)
        || !is_whole(outputs * kind.input.bytes(), VECTOR_BYTES)
        || !is_whole(first.outputs * kind.input.bytes(), VECTOR_BYTES)
    {
        return false;
    }
    match &first.operands {
        RegionOperands::Regular { offset, stride } => {
            let mut next = *offset;
            let aligned = is_whole(*stride * kind.input.bytes(), VECTOR_BYTES);
            if regions.len() == 1 {
                return true;
            }
            let adjacent = regions.iter().all(|region| {
                let at = next;
                next += region.outputs;
                region.inner == 1
                    && region.outer == first.outer
                    && region.operands == RegionOperands::Regular { offset: at, stride: *stride }
            });
            aligned && adjacent
        }
        RegionOperands::Pieces(pieces) => {
            regions.len() == 1
                && pieces.iter().all(|piece| piece % first.outputs == 0)
                && whole_words(pieces.iter().copied(), kind.input)
        }
    }
}

/// Returns the specialisation of the vertex that reduces all these regions.
fn specialisation_for(
    regions: &[RegionReduction],
    kind: ReduceVertexType,
    first_stage: bool,
) -> ReductionSpecialisation {
    let operation = kind.operation;
    let float = matches!(kind.output, DType::Half | DType::Float);
    if operation.has_regular_forms() && is_continuous(regions, kind, first_stage) {
        ReductionSpecialisation::AllRegionsContinuous
    } else if operation.is_sum() && is_single_input(regions, kind) {
        ReductionSpecialisation::ScalarOutputSingleInput
    } else if is_strided(regions, kind) {
        let has_form =
            operation.has_regular_forms() || operation == super::operation::ReduceOperation::LogAdd;
        if has_form && float {
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
    let mut length = 1;
    let mut chosen = specialisation_for(&regions[..1], kind, first_stage);
    while length < regions.len() {
        let candidate = specialisation_for(&regions[..=length], kind, first_stage);
        // All other specialisations take a single region, or gain nothing from more.
        if !takes_many(candidate) {
            break;
        }
        length += 1;
        chosen = candidate;
    }
    (length, chosen)
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
