//! Functions that return the group of an operation or program from its name:
//! `SELECT layer_of(name), sum(cycles) … GROUP BY 1`.

use crate::grouping::{GroupKey, OperationIndex};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use std::sync::Arc;
use tilescope_report::Report;

/// Makes a function for each key.
pub(super) fn register(connection: &Connection, report: &Arc<Report>) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    for key in GroupKey::ALL {
        let report = report.clone();
        connection.create_scalar_function(key.sql_function(), 1, flags, move |call| {
            let Some(name) = call.get_raw(0).as_str_or_null()? else { return Ok(None) };
            // Created on first use: most queries name no group.
            let index = OperationIndex::of(&report)
                .map_err(|error| rusqlite::Error::UserFunctionError(error.into()))?;
            Ok(index.label_of_name(key, name))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{JsonRows, SqlQuestion, run};
    use tilescope_fixtures::ReportBuilder;

    #[test]
    fn operations_are_grouped_by_their_names() {
        let mut builder = ReportBuilder::new(1, 8);
        builder.operation("layer0/ff2", "matmul");
        builder.operation("layer1/ff2", "matmul");
        let work = builder.compute("cs3_layer1/ff2/Convolve/ExchangePre", 10);
        builder.run(work, 0..10);
        let directory = tempfile::tempdir().expect("a directory");
        let path = builder.write(directory.path()).expect("written");
        let report = Arc::new(Report::open(path).expect("opened"));
        let answer = |sql: &str| {
            let mut text = Vec::new();
            let question = SqlQuestion::new(sql.to_owned());
            run(&report, &question, &mut JsonRows::new(&mut text)).expect("answered");
            String::from_utf8(text).expect("text")
        };
        let grouped = answer("SELECT layer_of(name) k, count(*) n FROM operations GROUP BY k");
        assert!(grouped.contains("layer*/ff2") && grouped.contains('2'), "{grouped}");
        let of_program = answer("SELECT operator_of(name) k, block_of(NULL) b FROM programs");
        assert!(of_program.contains("matmul") && of_program.contains("null"), "{of_program}");
    }
}
