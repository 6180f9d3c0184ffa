//! An open report. Trees are returned as JSON text, which Python parses faster than objects can be
//! created one by one here.

use crate::errors::{report_error, sql_error, table_error, unknown_name};
use crate::sql::{self, SqlColumns, SqlParameter};
use crate::table::Table;
use crate::threads::detached;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tilescope_analysis::find::{SearchCatalogue, SearchQuery, SearchQueryError, find};
use tilescope_analysis::sql::{ListedColumn, ListedTable, list_tables};
use tilescope_analysis::topics::{TOPICS, topic};
use tilescope_analysis::{insights, summary};
use tilescope_arrow::{GroupKey, RowSelection, read_groups, read_table, tables};
use tilescope_html::figure_svg;
use tilescope_report::units::NumberFormat;
use tilescope_report::{ReportError, ReportOrigin};

/// An open report.
#[pyclass(frozen, module = "tilescope._tilescope")]
pub(crate) struct Report {
    pub(crate) report: Arc<tilescope_report::Report>,
}

/// Opens a directory that contains a `profile.pop`, or such a file under any name.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, path: PathBuf) -> PyResult<Report> {
    let report = py.detach(|| tilescope_report::Report::open(&path)).map_err(report_error)?;
    Ok(Report { report: Arc::new(report) })
}

/// JSON for Python to read.
pub(crate) fn text(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// A table that SQL asks.
fn table_json(table: &ListedTable) -> Value {
    let columns: Vec<Value> = table.columns.iter().map(column_json).collect();
    json!({ "about": table.about, "columns": columns })
}

fn column_json(column: &ListedColumn) -> Value {
    let unit = Some(&column.unit).filter(|unit| !unit.is_empty());
    json!({ "name": column.name, "type": column.declaration, "unit": unit, "about": column.about })
}

impl Report {
    /// Reads without blocking other threads of Python.
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

    /// True if tilescope wrote it.
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
        // Without the file of tried proposals, findings have no results.
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

    /// Columns of the answer to an SQL query; parameters are named or positional.
    fn sql(
        &self,
        py: Python<'_>,
        query: String,
        parameters: Vec<(Option<String>, Option<SqlParameter>)>,
        seconds: f64,
    ) -> PyResult<SqlColumns> {
        sql::ask(py, &self.report, query, parameters, seconds)
    }

    /// Names of the topics, each with its question.
    #[staticmethod]
    fn topics() -> Vec<(&'static str, &'static str)> {
        TOPICS.iter().map(|topic| (topic.id, topic.about)).collect()
    }

    /// Facts, figures and tables of a topic, as JSON.
    fn topic_json(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        let topic = topic(name).map_err(|error| unknown_name(error.to_string()))?;
        text(&self.read(py, |report| topic.read(report))?)
    }

    /// Names of the tables, each with its description.
    #[staticmethod]
    fn tables() -> Vec<(String, String)> {
        tables().into_iter().map(|table| (table.name, table.about.to_owned())).collect()
    }

    /// Tables that SQL asks, with their columns, types and units, as JSON.
    fn schema_json(&self, py: Python<'_>) -> PyResult<String> {
        let listed = detached(py, || list_tables(&self.report)).map_err(sql_error)?;
        let tables = listed.iter().map(|of| (of.name.clone(), table_json(of)));
        text(&tables.collect::<serde_json::Map<String, Value>>())
    }

    /// Names of the figures of topics, each with what it shows.
    #[staticmethod]
    fn figures() -> Vec<(String, &'static str)> {
        let named = TOPICS.iter().flat_map(|topic| {
            topic.figures.iter().map(|of| (format!("{}/{}", topic.id, of.name), of.about))
        });
        named.collect()
    }

    /// A figure of a topic, the first where only the topic is named: its whole name, its title, what
    /// it shows, and the picture as SVG.
    fn figure_svg(&self, py: Python<'_>, name: &str, is_dark: bool) -> PyResult<[String; 4]> {
        let (id, of_topic) = match name.split_once('/') {
            Some((topic, figure)) => (topic, Some(figure)),
            None => (name, None),
        };
        let asked = topic(id).map_err(|error| unknown_name(error.to_string()))?;
        let known = asked.figures.iter();
        let mut known = known.filter(|of| of_topic.is_none_or(|name| name == of.name));
        let Some(found) = known.next() else {
            let all: Vec<String> = Self::figures().into_iter().map(|(name, _)| name).collect();
            let problem = format!("unknown figure {name:?}; known: {}", all.join(", "));
            return Err(unknown_name(problem));
        };
        let figure = self.read(py, |report| (found.read)(report))?;
        let svg = figure_svg(&figure, found.about, is_dark);
        Ok([format!("{id}/{}", found.name), figure.title, found.about.to_owned(), svg])
    }

    /// A table by name. `ipus` and `cycles` select rows of those tables that have them.
    #[pyo3(signature = (name, ipus=None, cycles=None, group_by=None))]
    fn table(
        &self,
        py: Python<'_>,
        name: &str,
        ipus: Option<Vec<u32>>,
        cycles: Option<(u64, u64)>,
        group_by: Option<&str>,
    ) -> PyResult<Table> {
        let selection = RowSelection { ipus, cycles, tiles: None };
        let table = match group_by {
            None => detached(py, || read_table(&self.report, name, &selection)),
            Some(key) => {
                let key = group_key(key)?;
                if selection != RowSelection::default() {
                    let words = "rows can be selected or grouped, not both";
                    return Err(PyValueError::new_err(words));
                }
                detached(py, || read_groups(&self.report, name, key))
            }
        };
        table.map(Table::new).map_err(table_error)
    }
}

/// The key that rows are grouped by.
fn group_key(name: &str) -> PyResult<GroupKey> {
    GroupKey::of_name(name).ok_or_else(|| {
        let known = GroupKey::ALL.map(GroupKey::name).join(", ");
        PyValueError::new_err(format!("unknown group_by {name:?}; known: {known}"))
    })
}
