//! Exceptions.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    tilescope,
    ReportError,
    PyException,
    "A report cannot be opened, read or written; the message ends with its path."
);

/// The exception for an error of reading.
pub(crate) fn report_error(error: tilescope_report::ReportError) -> PyErr {
    ReportError::new_err(error.to_string())
}
