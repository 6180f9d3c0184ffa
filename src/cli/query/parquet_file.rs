//! Answers as Parquet files.

use super::hint;
use crate::cli::command::CliError;
use crate::cli::error::{JobError, UsageError};
use crate::cli::exported_file::ExportedFile;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tilescope_analysis::sql::SqlQuestion;
use tilescope_arrow::{AnswerColumnKinds, AnswerFileError, write_answer};
use tilescope_report::Report;

/// Checks the output file of an answer, for any report.
///
/// # Errors
/// The output is not a file, so it could not be restarted.
pub(super) fn check(file: Option<&Path>) -> Result<(), CliError> {
    let Some(file) = file else {
        let problem = "--format parquet writes a file: name it with -o FILE.parquet";
        return Err(UsageError::Request(problem).into());
    };
    let is_stream = fs::metadata(file).is_ok_and(|found| !found.is_file() && !found.is_dir());
    let problem = if file.extension().is_some_and(|ending| ending == "gz") {
        "a Parquet file is already compressed; choose a name that ends in .parquet"
    } else if is_stream {
        "cannot write Parquet to a device or a pipe, because the file starts again if the type of \
         a column changes; name a file"
    } else {
        return Ok(());
    };
    Err(UsageError::FileProblem { file: file.to_owned(), problem }.into())
}

/// Writes an answer. Restarts if later rows need other types of columns.
///
/// # Errors
/// Those of the query and of the file, and columns without a common type.
pub(super) fn write(
    report: &Arc<Report>,
    question: &SqlQuestion,
    file: &Path,
) -> Result<(), CliError> {
    let mut known = AnswerColumnKinds::default();
    loop {
        let mut written = ExportedFile::create(file)?;
        match write_answer(report, question, known, &mut written) {
            Ok(summary) => {
                hint(&summary);
                return written.finish();
            }
            // More is known each time, so this loop ends.
            Err(AnswerFileError::Again(found)) => known = found,
            Err(AnswerFileError::Sql(error)) => return Err(error.into()),
            Err(AnswerFileError::Write(problem)) => return Err(written.error(problem)),
            Err(error) => return Err(JobError::Other(error.into()).into()),
        }
    }
}
