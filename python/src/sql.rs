//! SQL queries, answered as by `tilescope query`.

use crate::errors::{sql_error, unknown_name};
use crate::threads::detached;
use pyo3::prelude::*;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tilescope_analysis::sql::{RowSink, SqlQuestion, SqlValue, run};
use tilescope_report::Report;

/// The value of a parameter that is not NULL.
#[derive(FromPyObject)]
pub(crate) enum SqlParameter {
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// A cell of an answer that is not NULL.
#[derive(IntoPyObject)]
pub(crate) enum SqlCell {
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// Columns of an answer with their names.
pub(crate) type SqlColumns = Vec<(String, Vec<Option<SqlCell>>)>;

/// Collects an answer column by column.
#[derive(Default)]
struct KeptColumns(SqlColumns);

impl RowSink for KeptColumns {
    fn columns(&mut self, names: &[String]) -> io::Result<()> {
        self.0 = names.iter().map(|name| (name.clone(), Vec::new())).collect();
        Ok(())
    }

    fn row(&mut self, values: &[SqlValue]) -> io::Result<()> {
        for ((_, column), value) in self.0.iter_mut().zip(values) {
            column.push(match value {
                SqlValue::Null => None,
                SqlValue::Integer(value) => Some(SqlCell::Integer(*value)),
                SqlValue::Real(value) => Some(SqlCell::Real(*value)),
                SqlValue::Text(text) => Some(SqlCell::Text(text.clone())),
                SqlValue::Blob(bytes) => Some(SqlCell::Blob(bytes.clone())),
            });
        }
        Ok(())
    }
}

/// The answer to a query within a time limit in seconds.
pub(crate) fn ask(
    py: Python<'_>,
    report: &Arc<Report>,
    sql: String,
    parameters: Vec<(Option<String>, Option<SqlParameter>)>,
    seconds: f64,
) -> PyResult<SqlColumns> {
    let parameters = parameters.into_iter().map(|(name, parameter)| {
        let value = match parameter {
            None => SqlValue::Null,
            Some(SqlParameter::Integer(value)) => SqlValue::Integer(value),
            Some(SqlParameter::Real(value)) => SqlValue::Real(value),
            Some(SqlParameter::Text(text)) => SqlValue::Text(text),
            Some(SqlParameter::Blob(bytes)) => SqlValue::Blob(bytes),
        };
        (name, value)
    });
    let parameters = parameters.collect();
    let time_limit = Duration::try_from_secs_f64(seconds)
        .map_err(|_| unknown_name(format!("{seconds} is not a time limit in seconds")))?;
    let question = SqlQuestion { parameters, time_limit, ..SqlQuestion::new(sql) };
    let mut kept = KeptColumns::default();
    detached(py, || run(report, &question, &mut kept)).map_err(sql_error)?;
    Ok(kept.0)
}
