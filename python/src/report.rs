//! An open report. Answers that are trees come as JSON text, which Python reads faster than objects
//! can be made one by one here.

use crate::errors::{arrow_error, report_error, unknown_name};
use crate::sql::{self, SqlColumns, SqlParameter};
use crate::table::Table;
use crate::tables::records::{RECORDS, TableError};
use crate::tables::steps::{StepSelection, StepTable};
use crate::tables::views;
use crate::threads::detached;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tilescope_analysis::find::{SearchCatalogue, SearchQuery, SearchQueryError, find};
use tilescope_analysis::{insights, summary};
use tilescope_report::units::NumberFormat;
use tilescope_report::{ReportError, ReportOrigin};

/// The table of executed steps.
const STEPS: (&str, &str) = ("steps", "Executed steps, one row for each IPU");

/// An open report.
#[pyclass(frozen, module = "tilescope._tilescope")]
pub(crate) struct Report {
    pub(crate) report: Arc<tilescope_report::Report>,
}

/// Opens a directory that holds a `profile.pop`, or such a file under any name.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, path: PathBuf) -> PyResult<Report> {
    let report = py.detach(|| tilescope_report::Report::open(&path)).map_err(report_error)?;
    Ok(Report { report: Arc::new(report) })
}

/// JSON for Python to read.
pub(crate) fn text(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

impl Report {
    /// Reads without holding up other threads of Python.
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&Arc<tilescope_report::Report>) -> Result<T, ReportError> + Send,
    ) -> PyResult<T> {
        detached(py, || read(&self.report)).map_err(report_error)
    }
}

#[pymethods]
impl Report {
    /// Path of the `profile.pop` file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.report.path().to_owned()
    }

    /// Whether tilescope wrote it.
    #[getter]
    fn is_own(&self) -> bool {
        self.report.origin() == ReportOrigin::Tilescope
    }

    #[getter]
    fn meta(&self) -> BTreeMap<String, String> {
        self.report.meta().clone()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.report.warnings()
    }

    fn notes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.read(py, |report| report.notes())
    }

    fn options(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.read(py, |report| report.options())
    }

    fn summary_json(&self, py: Python<'_>) -> PyResult<String> {
        text(&self.read(py, |report| summary::summary(report))?)
    }

    fn insights_json(&self, py: Python<'_>) -> PyResult<String> {
        // Without the file of what was tried, findings are what they are.
        let (found, _) =
            self.read(py, |report| insights::insights_with_tried(report, NumberFormat::default()))?;
        text(&found)
    }

    /// Results of a query, list by list; see `tilescope find --help`.
    fn find_json(&self, py: Python<'_>, query: &str, limit: usize) -> PyResult<String> {
        let parsed: SearchQuery = query.parse().map_err(|error: SearchQueryError| {
            let pointer = " ".repeat(error.at);
            unknown_name(format!("{}\n  {query}\n  {pointer}^", error.problem))
        })?;
        let found =
            self.read(py, |report| find(report, &SearchCatalogue::read(report)?, &parsed))?;
        let hits = found.hits.iter().take(limit).map(|hit| {
            json!({
                "list": hit.thing.source(),
                "id": hit.thing.id(),
                "name": hit.name,
                "type": hit.kind,
                "ipu": hit.ipu,
                "count": hit.count,
                "cycles": hit.cycles,
                "bytes": hit.bytes,
            })
        });
        text(&json!({ "totals": found.totals, "hits": hits.collect::<Vec<Value>>() }))
    }

    /// Columns of the answer to a question in SQL; parameters have a name or come in order.
    fn sql(
        &self,
        py: Python<'_>,
        query: String,
        parameters: Vec<(Option<String>, Option<SqlParameter>)>,
        seconds: f64,
    ) -> PyResult<SqlColumns> {
        sql::ask(py, &self.report, query, parameters, seconds)
    }

    /// Names of the tables, each with what it holds.
    #[staticmethod]
    fn tables() -> Vec<(String, String)> {
        let records = RECORDS.iter().map(|of| (of.name, of.about));
        let records = std::iter::once(STEPS).chain(records);
        let records = records.map(|(name, about)| (name.to_owned(), about.to_owned()));
        records.chain(views::names().map(|(name, about)| (name, about.to_owned()))).collect()
    }

    /// A table by name. `ipus` and `cycles` select steps.
    #[pyo3(signature = (name, ipus=None, cycles=None))]
    fn table(
        &self,
        py: Python<'_>,
        name: &str,
        ipus: Option<Vec<u32>>,
        cycles: Option<(u64, u64)>,
    ) -> PyResult<Table> {
        if name == STEPS.0 {
            if let Some((start, end)) = cycles.filter(|(start, end)| end < start) {
                let problem = format!("cycles end before they begin: ({start}, {end})");
                return Err(PyValueError::new_err(problem));
            }
            let selection = StepSelection { ipus, cycles };
            let table = self.read(py, |report| StepTable::select(report.clone(), &selection))?;
            return Ok(Table::steps(table));
        }
        if ipus.is_some() || cycles.is_some() {
            return Err(PyValueError::new_err("ipus and cycles are for the table \"steps\" only"));
        }
        if let Some(records) = RECORDS.iter().find(|records| records.name == name) {
            let batch =
                detached(py, || (records.read)(&self.report)).map_err(|error| match error {
                    TableError::Report(error) => report_error(error),
                    TableError::Arrow(error) => arrow_error(error),
                })?;
            return Ok(Table::whole(batch));
        }
        let Some(table) = views::find(name) else {
            let known: Vec<String> = Self::tables().into_iter().map(|(name, _)| name).collect();
            let known = known.join(", ");
            return Err(unknown_name(format!("there is no table {name:?}; known: {known}")));
        };
        let data = self.read(py, |report| (table.read)(report))?;
        Ok(Table::whole(views::batch(&data).map_err(arrow_error)?))
    }
}
