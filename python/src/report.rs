//! `tilescope.Report`.

use crate::errors::report_error;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// An open report. Opening takes milliseconds at any size; every answer is read when it is asked for.
#[pyclass(frozen, module = "tilescope")]
pub(crate) struct Report {
    pub(crate) report: Arc<tilescope_report::Report>,
}

/// Opens a directory that holds a `profile.pop`, or such a file under any name.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, path: PathBuf) -> PyResult<Report> {
    let report = py.detach(|| tilescope_report::Report::open(&path)).map_err(report_error)?;
    Ok(Report { report: Arc::new(report) })
}

#[pymethods]
impl Report {
    /// Path of the `profile.pop` file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.report.path().to_owned()
    }

    fn __repr__(&self) -> String {
        format!("<tilescope.Report {}>", self.report.path().display())
    }
}
