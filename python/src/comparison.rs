//! A comparison of two reports.

use crate::errors::{arrow_error, report_error, unknown_name};
use crate::report::{Report, text};
use crate::table::Table;
use crate::threads::detached;
use pyo3::prelude::*;
use serde_json::json;
use std::sync::Arc;
use tilescope_analysis::compare::{
    COMPARISONS, ComparedReports, ComparisonTable, ReportAlignment, WorkUnit, comparison, markdown,
    overview, table_named,
};
use tilescope_analysis::gates::{Gate, GateSyntaxError, violations};
use tilescope_arrow::view_batch;
use tilescope_report::ReportError;
use tilescope_report::units::NumberFormat;

/// The name of the overview of changes.
const OVERVIEW: &str = "overview";

/// Two reports with their aligned items.
#[pyclass(frozen, module = "tilescope._tilescope")]
pub(crate) struct Comparison {
    source: Arc<tilescope_report::Report>,
    target: Arc<tilescope_report::Report>,
    alignment: ReportAlignment,
    unit: WorkUnit,
}

/// Compares two reports; figures of their runs are `per` sample, update, … or run.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    source: &Report,
    target: &Report,
    per: Option<&str>,
) -> PyResult<Comparison> {
    let unit = WorkUnit::ALL.into_iter().find(|unit| per.is_none_or(|per| unit.name() == per));
    let Some(unit) = unit.map(|unit| if per.is_some() { unit } else { WorkUnit::default() }) else {
        let known = WorkUnit::ALL.map(WorkUnit::name).join(", ");
        let per = per.unwrap_or_default();
        return Err(unknown_name(format!("unknown unit of work {per:?}; known: {known}")));
    };
    let source = source.report.clone();
    let target = target.report.clone();
    let alignment = detached(py, || ReportAlignment::without_links(&source, &target));
    Ok(Comparison { alignment: alignment.map_err(report_error)?, source, target, unit })
}

impl Comparison {
    fn sides(&self) -> ComparedReports<'_> {
        ComparedReports {
            source: &self.source,
            target: &self.target,
            alignment: &self.alignment,
            numbers: NumberFormat::default(),
            unit: self.unit,
        }
    }

    fn of_view(&self, view: &str) -> Option<Result<Vec<ComparisonTable>, ReportError>> {
        if view == OVERVIEW {
            return Some(overview(&self.sides()).map(|page| page.tables));
        }
        comparison(view).map(|one| (one.tables)(&self.sides()))
    }
}

#[pymethods]
impl Comparison {
    /// The result: the verdict, whether it exceeds the model's error, and the unit of figures.
    fn overview_json(&self, py: Python<'_>) -> PyResult<String> {
        let page = detached(py, || overview(&self.sides())).map_err(report_error)?;
        text(&json!({
            "verdict": page.verdict,
            "distinction": page.distinction,
            "normalization": page.normalization,
        }))
    }

    /// Names of the views that can be compared.
    #[staticmethod]
    fn views() -> Vec<&'static str> {
        std::iter::once(OVERVIEW).chain(COMPARISONS.iter().map(|one| one.view)).collect()
    }

    /// Tables of differences of a view by name, each with its title.
    fn tables(&self, py: Python<'_>, view: &str) -> PyResult<Vec<(String, String)>> {
        let tables = detached(py, || self.of_view(view)).ok_or_else(|| unknown_view(view))?;
        let tables = tables.map_err(report_error)?;
        Ok(tables.iter().map(|table| (table.name(), table.title.to_owned())).collect())
    }

    /// Gates that the target violates.
    fn check_json(&self, py: Python<'_>, gates: Vec<String>) -> PyResult<String> {
        let gates: Result<Vec<Gate>, GateSyntaxError> =
            gates.iter().map(|gate| gate.parse()).collect();
        let gates = gates.map_err(|error| unknown_name(error.to_string()))?;
        text(
            &detached(py, || {
                let per = self.sides().normalization()?;
                violations(&gates, &self.source, &self.target, &per)
            })
            .map_err(report_error)?,
        )
    }

    /// The overview of changes, as Markdown.
    fn markdown(&self, py: Python<'_>, limit: usize) -> PyResult<String> {
        let page = detached(py, || overview(&self.sides())).map_err(report_error)?;
        Ok(markdown(&page, std::iter::empty(), limit))
    }

    /// A table of differences: `memory/variables`, or the first of a view for `memory`.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let (view, table) = name.split_once('/').map_or((name, None), |(a, b)| (a, Some(b)));
        let tables = detached(py, || self.of_view(view)).ok_or_else(|| unknown_view(view))?;
        let tables = tables.map_err(report_error)?;
        let table = table_named(&tables, table).map_err(|error| unknown_name(error.to_string()))?;
        Ok(Table::whole(view_batch(&table.data()).map_err(arrow_error)?))
    }
}

fn unknown_view(view: &str) -> PyErr {
    let known = Comparison::views().join(", ");
    unknown_name(format!("unknown view {view:?}; views to compare: {known}"))
}
