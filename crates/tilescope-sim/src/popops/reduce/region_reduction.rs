//! Region reductions: some results of one tile and where their elements lie, and which vertices
//! reduce them (poplibs lib/popops/reduction/ReductionConnection.cpp).

use super::cycles::{self, ReduceVertexType, ReductionSpecialisation};
use super::introspection::{PartialsDescription, PartialsPattern};
use crate::poplar::exchange::WORD_BYTES;
use crate::popops::elementwise::VECTOR_BYTES;
use crate::poputil::list_length;
use crate::shape::DType;
use std::ops::Range;
use tilescope_report::units::{Bytes, Cycles};

/// Where the elements of a region lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RegionOperands {
    /// In one stretch of memory: rows at a regular distance.
    Regular {
        /// Elements before the first row.
        offset: u64,
        /// Distance of the rows.
        stride: u64,
    },
    /// In separate pieces of these sizes.
    Pieces(Vec<u64>),
}

/// Results that are reduced together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RegionReduction {
    /// The results, as columns in the order of memory.
    pub columns: Vec<Range<u64>>,
    pub outputs: u64,
    /// Elements of one result in a row.
    pub inner: u64,
    pub outer: u64,
    /// Where the elements lie.
    pub operands: RegionOperands,
}

/// One vertex of a compute set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReduceVertex {
    pub form: ReductionSpecialisation,
    /// Its types and operation.
    pub kind: ReduceVertexType,
    /// Cycles of the worker that runs it.
    pub cycles: Cycles,
    /// Operands and results, each a pointer of the vertex.
    pub edges: u64,
}

impl RegionReduction {
    /// A region that reads `rows` pieces of as many elements as it has results.
    pub(crate) fn of_pieces(columns: Range<u64>, rows: u64) -> Self {
        let outputs = columns.end - columns.start;
        let operands = RegionOperands::Pieces(vec![outputs; list_length(rows)]);
        Self { columns: vec![columns], outputs, inner: 1, outer: rows, operands }
    }

    /// One result of `length` elements that lie together.
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

    /// The region of a group of columns on a tile.
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

    /// Elements that go into the results.
    pub(crate) fn elements(&self) -> u64 {
        match &self.operands {
            RegionOperands::Regular { .. } => self.outputs * self.inner * self.outer,
            RegionOperands::Pieces(pieces) => pieces.iter().sum(),
        }
    }

    /// Sizes of the pieces the elements lie in.
    pub(crate) fn pieces(&self) -> Vec<u64> {
        match &self.operands {
            RegionOperands::Regular { .. } => {
                vec![self.outputs * self.inner; list_length(self.outer)]
            }
            RegionOperands::Pieces(pieces) => pieces.clone(),
        }
    }

    /// Elements of one result.
    pub(crate) fn depth(&self) -> u64 {
        self.elements() / self.outputs
    }

    /// The regular operands one step of `outputs` columns further.
    pub(crate) fn operands_at(&self, elements: u64) -> RegionOperands {
        match &self.operands {
            RegionOperands::Regular { offset, stride } => {
                RegionOperands::Regular { offset: offset + elements, stride: *stride }
            }
            pieces => pieces.clone(),
        }
    }
}

/// Whether so many bytes are whole words, or whole vectors.
fn is_whole(bytes: Bytes, unit: Bytes) -> bool {
    (bytes % unit).is_zero()
}

/// Pieces of a pattern: rows that lie end to end count as one.
fn pieces(pattern: &PartialsPattern, outputs: u64) -> Vec<u64> {
    // Rows end to end are one operand of the vertex, that is one pointer instead of many.
    let row = pattern.inner * outputs;
    if pattern.inner == 1 && pattern.stride == outputs {
        vec![row * pattern.outer]
    } else {
        vec![row; list_length(pattern.outer)]
    }
}

/// Whether the results lie side by side.
fn side_by_side(regions: &[RegionReduction]) -> bool {
    let mut columns = regions.iter().flat_map(|region| &region.columns);
    // A vertex with one output pointer writes its results one behind the other.
    let Some(first) = columns.next() else { return true };
    let mut end = first.end;
    columns.all(|range| std::mem::replace(&mut end, range.end) == range.start)
}

/// Whether pieces can be received one behind the other without copying: all but the last are
/// whole words.
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

/// Whether the operands of all regions lie one behind the other in memory.
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
    // The strided vertex loads 64 bits of every row and stores words: rows and results that end
    // inside one would need a tail it has no code for.
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
            let adjacent = |region: &RegionReduction| {
                let at = next;
                next += region.outputs;
                region.inner == 1
                    && region.outer == first.outer
                    && region.operands == RegionOperands::Regular { offset: at, stride: *stride }
            };
            regions.len() == 1 || (aligned && regions.iter().all(adjacent))
        }
        RegionOperands::Pieces(pieces) => {
            regions.len() == 1
                && pieces.iter().all(|piece| piece % first.outputs == 0)
                && whole_words(pieces.iter().copied(), kind.input)
        }
    }
}

/// The form of vertex that reduces all these regions.
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

/// Bytes of vertex state that the general vertex has for each region.
const GENERAL_BYTES_PER_REGION: usize = 8;

/// Bytes of vertex state by which poplibs weighs several vertices against one (`getReductionCost`,
/// as of May 2022; until then regions added 2 bytes, and short runs of regular ones went to the
/// general vertex).
fn state_cost(form: ReductionSpecialisation, regions: usize) -> usize {
    match form {
        ReductionSpecialisation::Default | ReductionSpecialisation::ScalarOutputRegions => {
            // Poplibs adds the 2 cycles that the inner loop takes more.
            GENERAL_BYTES_PER_REGION * regions + 20 + 2
        }
        ReductionSpecialisation::ScalarOutputSingleInput
        | ReductionSpecialisation::AllRegionsContinuous
        | ReductionSpecialisation::StridedReduce => 12,
    }
}

/// Whether a form takes more regions at no cost.
fn takes_many(form: ReductionSpecialisation) -> bool {
    matches!(
        form,
        ReductionSpecialisation::AllRegionsContinuous | ReductionSpecialisation::StridedReduce
    )
}

/// Regions from which on a form is cheaper than adding them to a general vertex.
fn worthwhile(form: ReductionSpecialisation) -> usize {
    // From here on a vertex of its own has less state than these regions add to the general one.
    if takes_many(form) { state_cost(form, 0) / GENERAL_BYTES_PER_REGION } else { usize::MAX }
}

/// The longest run of regions from the start that one vertex takes, and its form.
fn longest_run(
    regions: &[RegionReduction],
    kind: ReduceVertexType,
    first_stage: bool,
) -> (usize, ReductionSpecialisation) {
    let (mut length, mut chosen) = (1, specialisation_for(&regions[..1], kind, first_stage));
    while length < regions.len() {
        let candidate = specialisation_for(&regions[..=length], kind, first_stage);
        // All other forms take a single region, or gain nothing by more.
        if !takes_many(candidate) {
            break;
        }
        (length, chosen) = (length + 1, candidate);
    }
    (length, chosen)
}

/// The regions of one worker, dealt to the cheapest vertices.
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
    // poplibs weighs bytes of vertex state, not cycles: first the runs that always pay for a
    // vertex, then all the rest in one vertex or in several, whichever has less state.
    let (mut dealt, mut left) = (Vec::new(), Vec::new());
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
    let (mut runs, mut cost, mut at) = (Vec::new(), 0, 0);
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

/// The vertices that reduce the regions of one worker.
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
                // Rows that do not begin at 64 bits are copied side by side before the vertex runs.
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
