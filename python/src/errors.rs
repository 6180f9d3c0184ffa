//! Exceptions.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use tilescope_analysis::sql::SqlError;
use tilescope_arrow::TableError;

create_exception!(
    tilescope,
    ReportError,
    PyException,
    "A report cannot be opened or read; the message ends with its path."
);
create_exception!(
    tilescope,
    QueryError,
    PyValueError,
    "An unknown table, view or column, or an invalid query; the message lists the known names."
);

/// The exception for an error of reading.
pub(crate) fn report_error(error: tilescope_report::ReportError) -> PyErr {
    ReportError::new_err(error.to_string())
}

/// The exception for data that Arrow refuses: a bug.
pub(crate) fn arrow_error(error: arrow_schema::ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// The exception for a table that cannot be read.
pub(crate) fn table_error(error: TableError) -> PyErr {
    match error {
        TableError::Report(error) => report_error(error),
        TableError::Arrow(error) => arrow_error(error),
        TableError::Unknown { .. } => unknown_name(error.to_string()),
        error => PyValueError::new_err(error.to_string()),
    }
}

/// The exception for a question in SQL that has no answer.
pub(crate) fn sql_error(error: SqlError) -> PyErr {
    match error {
        SqlError::Report(error) => report_error(error),
        error => unknown_name(error.to_string()),
    }
}

/// The exception for a name that is not there: `words` are what it is, and what there is instead.
pub(crate) fn unknown_name(words: impl Into<String>) -> PyErr {
    QueryError::new_err(words.into())
}
