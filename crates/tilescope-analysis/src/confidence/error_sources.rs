//! The sources of the errors of steps.

use super::ErrorProneRun;
use super::draws::text_number;
use crate::label_conventions::rearranges;
use std::collections::BTreeMap;
use tilescope_report::units::ProgramId;
use tilescope_report::{
    CostBasis, ErrorBand, HostCallPart, ModelOperation, ProgramErrorSource, ProgramKind,
    ProgramNode, StreamEndpoint,
};

/// Sources of errors that some steps have and others do not.
pub(super) const STEP_SOURCES: [ProgramErrorSource; 5] = [
    ProgramErrorSource::Copies,
    ProgramErrorSource::Formulas,
    ProgramErrorSource::OddRows,
    ProgramErrorSource::Host,
    ProgramErrorSource::Imported,
];

/// The errors of operations; operations with equal values have the same errors.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ErrorSource {
    /// Index among the report's bands.
    pub(super) band: usize,
    /// Number of the shape and plan of the operations.
    pub(super) work: u64,
    /// True for each source of [`STEP_SOURCES`] that applies.
    pub(super) has: [bool; STEP_SOURCES.len()],
}

impl ErrorSource {
    /// The errors of programs without an operation; `None` without a band for them.
    fn without_operation(band: Option<usize>, is_of_host: bool) -> Option<Self> {
        let has = STEP_SOURCES.map(|source| is_of_host && source == ProgramErrorSource::Host);
        Some(Self { band: band?, work: 0, has })
    }
}

/// Looks up the error source of steps.
pub(super) struct ErrorSources<'a> {
    run: &'a ErrorProneRun<'a>,
    /// Indices of bands by kind of operation, and by cost basis for kinds with several bands.
    by_kind: BTreeMap<(&'a str, Option<CostBasis>), usize>,
    /// Indices for programs without an operation: those over links, and all others.
    links: Option<usize>,
    others: Option<usize>,
}

impl<'a> ErrorSources<'a> {
    pub(super) fn new(run: &'a ErrorProneRun<'a>) -> Self {
        let mut by_kind = BTreeMap::new();
        for (at, band) in run.bands.iter().enumerate() {
            let Some(kind) = band.kind.as_deref() else { continue };
            by_kind.insert((kind, Some(band.basis)), at);
            by_kind.insert((kind, None), at);
        }
        let links = band_without_kind(run.bands, true);
        let others = band_without_kind(run.bands, false);
        Self { run, by_kind, links, others }
    }

    fn node(&self, program: Option<ProgramId>) -> Option<&'a ProgramNode> {
        self.run.programs.get(program?)
    }

    /// The part of a host call that a program waits for.
    pub(super) fn awaited_part(&self, program: Option<ProgramId>) -> Option<HostCallPart> {
        let node = self.node(program)?;
        if node.kind == ProgramKind::Sync { HostCallPart::of_sync(&node.name) } else { None }
    }

    /// `None` for waits, and if no band is known.
    pub(super) fn of(&self, program: Option<ProgramId>, kind: ProgramKind) -> Option<ErrorSource> {
        let node = self.node(program);
        match kind {
            ProgramKind::Sync => return None,
            ProgramKind::GlobalExchange => {
                return ErrorSource::without_operation(self.links, false);
            }
            ProgramKind::StreamCopyBegin
            | ProgramKind::StreamCopyMid
            | ProgramKind::StreamCopyEnd => {
                let host = node.is_none_or(|node| node.stream == StreamEndpoint::Host);
                return ErrorSource::without_operation(self.links, host);
            }
            _ => {}
        }
        let operation = node.and_then(|node| self.run.operations.get(node.operation?.index()));
        let Some(operation) = operation else {
            return ErrorSource::without_operation(self.others, false);
        };
        let band = *self.by_kind.get(&(operation.kind.as_str(), operation.cost_basis))?;
        let plan = operation.plan.as_deref().unwrap_or("");
        let work = text_number(&operation.shapes) ^ text_number(plan).rotate_left(1);
        let copies = node.is_some_and(|node| rearranges(&node.name));
        let is_formula = self.run.bands.get(band).is_some_and(|b| b.basis == CostBasis::Formula);
        let has = STEP_SOURCES.map(|source| match source {
            ProgramErrorSource::Copies => copies,
            ProgramErrorSource::Formulas => is_formula,
            ProgramErrorSource::OddRows => copies && has_odd_rows(operation),
            ProgramErrorSource::Imported => operation.source.is_some(),
            _ => false,
        });
        Some(ErrorSource { band, work, has })
    }
}

/// Index of the band of programs without an operation, either those over links or all others.
fn band_without_kind(bands: &[ErrorBand], over_links: bool) -> Option<usize> {
    bands
        .iter()
        .position(|band| band.kind.is_none() && (band.basis == CostBasis::Links) == over_links)
}

/// Number of halves in a vector.
const VECTOR_HALVES: u64 = 4;

/// True for operations on matrices of several heads whose rows end within a vector.
fn has_odd_rows(operation: &ModelOperation) -> bool {
    if !["softmax", "matmul"].iter().any(|kind| operation.kind.starts_with(kind)) {
        return false;
    }
    operation.shapes.split('[').skip(1).any(|shape| {
        let sizes = shape.split(']').next().unwrap_or("").split(',');
        let sizes: Vec<u64> = sizes.filter_map(|size| size.trim().parse().ok()).collect();
        let last = sizes.last().copied().unwrap_or(0);
        sizes.len() >= 3 && !last.is_multiple_of(VECTOR_HALVES)
    })
}
