//! Parquet output in a build without it: an error.

use crate::cli::command::CliError;
use crate::cli::export::no_parquet;
use std::path::Path;
use std::sync::Arc;
use tilescope_analysis::sql::SqlQuestion;
use tilescope_report::Report;

pub(super) fn check(_: Option<&Path>) -> Result<(), CliError> {
    Err(no_parquet())
}

pub(super) fn write(_: &Arc<Report>, _: &SqlQuestion, _: &Path) -> Result<(), CliError> {
    Err(no_parquet())
}
