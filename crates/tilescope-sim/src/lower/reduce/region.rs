//! Region reductions: some results of one tile and where their elements lie, and which vertices
//! reduce them (poplibs lib/popops/reduction/ReductionConnection.cpp).

use super::cycles::{self, Form, Kind};
use super::pattern::{Group, Pattern};
use crate::graph::DType;
use std::ops::Range;

/// Where the elements of a region lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operands {
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
pub(crate) struct Region {
    /// The results, as columns in the order of memory.
    pub columns: Vec<Range<u64>>,
    pub outputs: u64,
    /// Elements of one result in a row.
    pub inner: u64,
    pub outer: u64,
    /// Where the elements lie.
    pub operands: Operands,
}

/// One vertex of a compute set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vertex {
    pub form: Form,
    /// Its types and operation.
    pub kind: Kind,
    /// Cycles of the worker that runs it.
    pub cycles: u64,
    /// Operands and results, each a pointer of the vertex.
    pub edges: u64,
}

impl Region {
    /// A region that reads `rows` pieces of as many elements as it has results.
    pub(crate) fn of_pieces(columns: Range<u64>, rows: u64) -> Self {
        let outputs = columns.end - columns.start;
        let operands = Operands::Pieces(vec![outputs; rows as usize]);
        Self { columns: vec![columns], outputs, inner: 1, outer: rows, operands }
    }

    /// One result of `length` elements that lie together.
    pub(crate) fn of_stretch(column: u64, length: u64) -> Self {
        let operands = Operands::Pieces(vec![length]);
        Self {
            columns: std::iter::once(column..column + 1).collect(),
            outputs: 1,
            inner: 1,
            outer: 1,
            operands,
        }
    }

    /// The region of a group of columns on a tile.
    pub(crate) fn of_group(group: Group) -> Self {
        let outputs = group.width();
        let (inner, outer, operands) = match group.patterns[..] {
            [Pattern { inner, offset, stride, outer }] => {
                (inner, outer, Operands::Regular { offset, stride })
            }
            ref patterns => {
                let pieces = patterns.iter().flat_map(|pattern| pieces(pattern, outputs));
                let last = patterns[patterns.len() - 1];
                (last.inner, last.outer, Operands::Pieces(pieces.collect()))
            }
        };
        Self { columns: group.columns, outputs, inner, outer, operands }
    }

    /// Elements that go into the results.
    pub(crate) fn elements(&self) -> u64 {
        match &self.operands {
            Operands::Regular { .. } => self.outputs * self.inner * self.outer,
            Operands::Pieces(pieces) => pieces.iter().sum(),
        }
    }

    /// Sizes of the pieces the elements lie in.
    pub(crate) fn pieces(&self) -> Vec<u64> {
        match &self.operands {
            Operands::Regular { .. } => vec![self.outputs * self.inner; self.outer as usize],
            Operands::Pieces(pieces) => pieces.clone(),
        }
    }

    /// Elements of one result.
    pub(crate) fn depth(&self) -> u64 {
        self.elements() / self.outputs
    }

    /// The regular operands one step of `outputs` columns further.
    pub(crate) fn operands_at(&self, elements: u64) -> Operands {
        match &self.operands {
            Operands::Regular { offset, stride } => {
                Operands::Regular { offset: offset + elements, stride: *stride }
            }
            pieces => pieces.clone(),
        }
    }
}

/// Pieces of a pattern: rows that lie end to end count as one.
fn pieces(pattern: &Pattern, outputs: u64) -> Vec<u64> {
    let row = pattern.inner * outputs;
    if pattern.inner == 1 && pattern.stride == outputs {
        vec![row * pattern.outer]
    } else {
        vec![row; pattern.outer as usize]
    }
}

/// Whether the results lie side by side.
fn side_by_side(regions: &[Region]) -> bool {
    let mut columns = regions.iter().flat_map(|region| &region.columns);
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
        odd = !(piece * dtype.bytes()).is_multiple_of(4);
    }
    true
}

fn is_continuous(regions: &[Region], kind: Kind, first_stage: bool) -> bool {
    let length = regions[0].elements();
    let equal = regions.iter().all(|region| region.outputs == 1 && region.elements() == length);
    if !equal || length == 1 || !side_by_side(regions) {
        return false;
    }
    !first_stage
        || in_one_stretch(regions)
        || whole_words(regions.iter().flat_map(Region::pieces), kind.input)
}

/// Whether the operands of all regions lie one behind the other in memory.
fn in_one_stretch(regions: &[Region]) -> bool {
    let mut next = None;
    regions.iter().all(|region| match &region.operands {
        Operands::Regular { offset, .. } => {
            let follows = next.is_none_or(|next| next == *offset) && region.outer == 1;
            next = Some(offset + region.elements());
            follows
        }
        Operands::Pieces(pieces) => regions.len() == 1 && pieces.len() == 1,
    })
}

fn is_single_input(regions: &[Region], kind: Kind) -> bool {
    let [region] = regions else { return false };
    region.outputs == 1
        && !kind.result.update
        && match &region.operands {
            Operands::Regular { .. } => kind.input.bytes().is_multiple_of(4),
            Operands::Pieces(pieces) => whole_words(pieces.iter().copied(), kind.input),
        }
}

fn is_strided(regions: &[Region], kind: Kind) -> bool {
    let first = &regions[0];
    let outputs: u64 = regions.iter().map(|region| region.outputs).sum();
    if !(first.outputs * kind.output.bytes()).is_multiple_of(4)
        || !(outputs * kind.input.bytes()).is_multiple_of(8)
        || !(first.outputs * kind.input.bytes()).is_multiple_of(8)
    {
        return false;
    }
    match &first.operands {
        Operands::Regular { offset, stride } => {
            let mut next = *offset;
            let aligned = (stride * kind.input.bytes()).is_multiple_of(8);
            let adjacent = |region: &Region| {
                let at = next;
                next += region.outputs;
                region.inner == 1
                    && region.outer == first.outer
                    && region.operands == Operands::Regular { offset: at, stride: *stride }
            };
            regions.len() == 1 || (aligned && regions.iter().all(adjacent))
        }
        Operands::Pieces(pieces) => {
            regions.len() == 1
                && pieces.iter().all(|piece| piece % first.outputs == 0)
                && whole_words(pieces.iter().copied(), kind.input)
        }
    }
}

/// The form of vertex that reduces all these regions.
fn form(regions: &[Region], kind: Kind, first_stage: bool) -> Form {
    let operation = kind.operation;
    let float = matches!(kind.output, DType::Half | DType::Float);
    if operation.has_regular_forms() && is_continuous(regions, kind, first_stage) {
        Form::Continuous
    } else if operation.is_sum() && is_single_input(regions, kind) {
        Form::SingleInput
    } else if is_strided(regions, kind) {
        let has_form =
            operation.has_regular_forms() || operation == super::operation::Operation::LogAdd;
        if has_form && float { Form::Strided } else { Form::Default }
    } else if regions.iter().all(|region| region.outputs == 1) {
        Form::ScalarOutputs
    } else {
        Form::Default
    }
}

/// Bytes of vertex state by which poplibs weighs several vertices against one.
fn state_cost(form: Form, regions: usize) -> usize {
    match form {
        Form::Default | Form::ScalarOutputs => 2 * regions + 14 + 2,
        Form::SingleInput | Form::Continuous => 8,
        Form::Strided => 10,
    }
}

/// Whether a form takes more regions at no cost.
fn takes_many(form: Form) -> bool {
    matches!(form, Form::Continuous | Form::Strided)
}

/// Regions from which on a form is cheaper than adding them to a general vertex.
fn worthwhile(form: Form) -> usize {
    if takes_many(form) { state_cost(form, 0) / 2 } else { usize::MAX }
}

/// The longest run of regions from the start that one vertex takes, and its form.
fn longest_run(regions: &[Region], kind: Kind, first_stage: bool) -> (usize, Form) {
    let (mut length, mut chosen) = (1, form(&regions[..1], kind, first_stage));
    while length < regions.len() {
        let candidate = form(&regions[..=length], kind, first_stage);
        if !takes_many(candidate) {
            break;
        }
        (length, chosen) = (length + 1, candidate);
    }
    (length, chosen)
}

/// The regions of one worker, dealt to the cheapest vertices.
fn deal(regions: &[Region], kind: Kind, first_stage: bool) -> Vec<Vec<Region>> {
    if !matches!(form(regions, kind, first_stage), Form::Default | Form::ScalarOutputs) {
        return vec![regions.to_vec()];
    }
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
    let budget = state_cost(form(&left, kind, first_stage), left.len());
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
pub(crate) fn vertices(regions: &[Region], kind: Kind, first_stage: bool) -> Vec<Vertex> {
    deal(regions, kind, first_stage)
        .iter()
        .map(|regions| {
            let form = form(regions, kind, first_stage);
            let edges = match form {
                Form::Default | Form::ScalarOutputs => {
                    regions.iter().map(|region| 1 + region.pieces().len() as u64).sum()
                }
                _ => 2,
            };
            Vertex { form, kind, cycles: vertex_cycles(regions, form, kind), edges }
        })
        .collect()
}

fn vertex_cycles(regions: &[Region], form: Form, kind: Kind) -> u64 {
    let first = &regions[0];
    let outputs: u64 = regions.iter().map(|region| region.outputs).sum();
    match form {
        Form::Continuous => cycles::continuous(kind, outputs, first.elements()),
        Form::SingleInput => cycles::single_input(kind, first.elements()),
        Form::Strided => match &first.operands {
            Operands::Regular { stride, .. } => {
                let aligned = (stride * kind.input.bytes()).is_multiple_of(8);
                let stride = if aligned { *stride } else { first.outputs };
                cycles::strided(kind, outputs, first.outer, stride)
            }
            Operands::Pieces(_) => {
                cycles::strided(kind, first.outputs, first.depth(), first.outputs)
            }
        },
        Form::Default | Form::ScalarOutputs => {
            let pieces: Vec<(u64, Vec<u64>)> =
                regions.iter().map(|region| (region.outputs, region.pieces())).collect();
            cycles::general(kind, pieces.iter().map(|(outputs, pieces)| (*outputs, &pieces[..])))
        }
    }
}
