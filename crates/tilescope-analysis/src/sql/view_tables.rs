//! Tables of views and topics, by their names in files and Python: `"memory/variables"`.
//!
//! The tables that a query names are created before it runs, and dropped with its connection.

use super::SqlError;
use crate::data_table::DataTable;
use crate::records::cell_value;
use crate::tables;
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, params_from_iter};
use tilescope_report::Report;

/// Creates the tables that a query names in quotes.
///
/// # Errors
/// Reports that cannot be read, and more rows than the memory limit of queries permits.
pub(super) fn make(connection: &Connection, report: &Report, sql: &str) -> Result<(), SqlError> {
    for table in tables::all() {
        let name = table.path();
        if sql.contains(&format!("\"{name}\"")) {
            let rows = (table.read)(report)?;
            insert(connection, &name, &rows).map_err(|error| match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::OutOfMemory) => SqlError::TooMuchMemory,
                _ => SqlError::Failed(error.to_string()),
            })?;
        }
    }
    Ok(())
}

fn insert(connection: &Connection, name: &str, table: &DataTable) -> rusqlite::Result<()> {
    let columns: Vec<String> =
        table.identifiers().iter().map(|column| format!("\"{column}\"")).collect();
    let columns = columns.join(", ");
    connection.execute_batch(&format!("CREATE TEMP TABLE \"{name}\" ({columns})"))?;
    let places = vec!["?"; table.columns.len()].join(", ");
    let mut statement =
        connection.prepare(&format!("INSERT INTO temp.\"{name}\" VALUES ({places})"))?;
    for row in &table.rows {
        let cells = (0..row.len()).map(|at| ToSqlOutput::Borrowed(cell_value(row, at)));
        statement.execute(params_from_iter(cells))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{JsonRows, SqlQuestion, run};
    use std::sync::Arc;
    use tilescope_fixtures::ReportBuilder;

    #[test]
    fn every_table_of_every_topic_can_be_queried_in_sql() {
        let mut builder = ReportBuilder::new(2, 8);
        let work = builder.compute("a/Convolve", 1_234);
        builder.run(work, 0..1_234);
        let directory = tempfile::tempdir().expect("a directory");
        let path = builder.write(directory.path()).expect("written");
        let report = Arc::new(Report::open(path).expect("opened"));
        for table in tables::all() {
            let name = table.path();
            let question = SqlQuestion::new(format!("SELECT * FROM \"{name}\""));
            let mut text = Vec::new();
            let found = run(&report, &question, &mut JsonRows::new(&mut text));
            let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
            let rows = (table.read)(&report).expect("read").rows.len();
            assert_eq!(found.rows, rows as u64, "{name}");
        }
    }
}
