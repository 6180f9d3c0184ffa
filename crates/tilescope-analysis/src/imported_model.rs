//! The file that a model was imported from, and the share of a report's figures that depends on
//! operators of it that are not modelled.

use crate::trace::program_runs;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{Bytes, Cycles, OperationId, grouped, percent};
use tilescope_report::{
    ImportedModel, ProgramKind, Report, ReportError, ReportPart, UnknownOperator, VariableFilter,
};

/// An imported model: its file and a summary of its nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImportedModelSummary {
    #[serde(flatten)]
    pub model: ImportedModel,
    /// The share of its unknown operators; `None` if all operators are modelled.
    pub unmodelled: Option<UnmodelledShare>,
}

impl ImportedModelSummary {
    /// Names and texts, for the command line and the window.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let ImportedModel { path, digest, opset, producer, nodes, folded, fused, ignored, unknown } =
            &self.model;
        let folded = folded.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let joined = if fused.is_empty() { "none".to_owned() } else { listed(fused) };
        let mut rows = vec![
            ("File", path.clone()),
            ("Digest", digest.clone()),
            ("Opset", format!("{opset}, written by {producer}")),
            ("Nodes", format!("{} ({} folded)", grouped(*nodes), grouped(folded))),
            ("Joined from several", joined),
        ];
        if !ignored.is_empty() {
            rows.push(("Annotations without effect", listed(ignored)));
        }
        if let Some(share) = &self.unmodelled {
            let text = format!("{}; they account for {}", operator_list(unknown), share.words());
            rows.push(("Not modelled", text));
        }
        rows
    }

    /// The share of operators that are not modelled, as a sentence without a full stop.
    pub fn unmodelled_words(&self) -> Option<String> {
        let share = self.unmodelled.as_ref()?;
        let operators = operator_list(&self.model.unknown);
        Some(format!("{} come from operators that are not modelled: {operators}", share.words()))
    }
}

/// The share of a report's figures that depends on operators without a model, which are costed as
/// one pass over their operands.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UnmodelledShare {
    /// Nodes of the file.
    pub nodes: u64,
    /// Share of all cycles in which IPUs work, without waits; `None` if the program was not
    /// executed.
    pub cycles: Option<f64>,
    /// Share of the bytes of all variables, regardless of their lifetimes; `None` if none were
    /// recorded.
    pub bytes: Option<f64>,
}

impl UnmodelledShare {
    /// `12.3 % of the cycles and 4.0 % of the bytes`
    pub fn words(&self) -> String {
        let cycles = self.cycles.map(|share| format!("{} of the cycles", percent(share)));
        let bytes = self.bytes.map(|share| format!("{} of the bytes", percent(share)));
        let known: Vec<String> = cycles.into_iter().chain(bytes).collect();
        if known.is_empty() {
            return "an unrecorded share of the cycles and bytes".to_owned();
        }
        known.join(" and ")
    }
}

/// Names with their counts: `Identity (3), Dropout (2)`.
fn listed(counts: &BTreeMap<String, u64>) -> String {
    let words = counts.iter().map(|(name, count)| format!("{name} ({})", grouped(*count)));
    words.collect::<Vec<_>>().join(", ")
}

/// Operators with their node counts: `com.example.Custom@1 (2)`.
fn operator_list(unknown: &[UnknownOperator]) -> String {
    let words = unknown.iter().map(|of| format!("{} ({})", of.source, grouped(of.count)));
    words.collect::<Vec<_>>().join(", ")
}

/// The imported model of a report; `None` if the model is built in, or not known.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn imported_model(report: &Report) -> Result<Option<ImportedModelSummary>, ReportError> {
    let Some(model) = report.imported_model() else { return Ok(None) };
    let unmodelled = unmodelled_share(report, &model.unknown)?;
    Ok(Some(ImportedModelSummary { model, unmodelled }))
}

/// The share of operators that are not modelled; `None` if there are none.
fn unmodelled_share(
    report: &Report,
    unknown: &[UnknownOperator],
) -> Result<Option<UnmodelledShare>, ReportError> {
    if unknown.is_empty() {
        return Ok(None);
    }
    let sources: BTreeSet<&str> = unknown.iter().map(|of| of.source.as_str()).collect();
    let operations = report.operations()?;
    let own: BTreeSet<OperationId> = operations
        .iter()
        .enumerate()
        .filter(|(_, of)| of.source.as_deref().is_some_and(|source| sources.contains(source)))
        .map(|(index, _)| OperationId::from_index(index))
        .collect();
    Ok(Some(UnmodelledShare {
        nodes: unknown.iter().map(|of| of.count).fold(0, u64::saturating_add),
        cycles: cycles(report, &own)?,
        bytes: bytes(report, &own)?,
    }))
}

/// Cycles of the programs of the operations `own`, over all IPUs, as a share of all working cycles.
fn cycles(report: &Report, own: &BTreeSet<OperationId>) -> Result<Option<f64>, ReportError> {
    let Some(trace) = report.trace()? else { return Ok(None) };
    let programs = report.programs()?;
    let runs = program_runs(&trace)?.by_program();
    let mut of_own = Cycles::ZERO;
    let mut all = Cycles::ZERO;
    for (id, of) in runs {
        let Some(program) = programs.get(id).filter(|of| of.kind != ProgramKind::Sync) else {
            continue;
        };
        all = all.saturating_add(of.totals.cycles);
        if program.operation.is_some_and(|operation| own.contains(&operation)) {
            of_own = of_own.saturating_add(of.totals.cycles);
        }
    }
    Ok(Some(of_own.as_f64() / all.max(Cycles(1)).as_f64()))
}

/// Bytes of the variables of the operations `own`, as a share of all bytes.
fn bytes(report: &Report, own: &BTreeSet<OperationId>) -> Result<Option<f64>, ReportError> {
    if !report.has(ReportPart::Variables) {
        return Ok(None);
    }
    let filter = VariableFilter { tiles: None, category: None, after: None, limit: usize::MAX };
    let mut of_own = Bytes::ZERO;
    let mut all = Bytes::ZERO;
    for (_, variable) in report.variables(&filter)? {
        let tiles = variable.tiles.iter();
        let bytes = tiles
            .map(|(tiles, part)| part.bytes.saturating_mul(tiles.count().into()))
            .fold(Bytes::ZERO, Bytes::saturating_add);
        all = all.saturating_add(bytes);
        if variable.operation.is_some_and(|operation| own.contains(&operation)) {
            of_own = of_own.saturating_add(bytes);
        }
    }
    Ok(Some(of_own.as_f64() / all.max(Bytes(1)).as_f64()))
}
