//! The rows of our own files compared with their stored checksums.

use super::{InvariantCheck, InvariantViolation, Report, ReportOrigin};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::schema;
use crate::table_checksums::{RowSum, TableChecksums, TablePart};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Checksums by table and part.
type Checksums = BTreeMap<(String, TablePart), RowSum>;

impl Report {
    /// Checks that every table has the rows that were written.
    pub(super) fn verify_content(
        &self,
        found: &mut Vec<InvariantViolation>,
    ) -> Result<(), ReportError> {
        let mut law = InvariantCheck::new("content_is_as_written", found);
        if self.origin() != ReportOrigin::Tilescope || self.format() < (2, 0) {
            return Ok(());
        }
        law.check(self.db.has_rows(schema::CHECKSUMS), || "the report has no checksums".to_owned());
        let written = self.written_checksums()?;
        let now = self.checksums_now()?;
        for ((table, part), written) in &written {
            let now = now.get(&(table.clone(), part.clone())).copied().unwrap_or_default();
            law.check(now == *written, || {
                let before = written.rows;
                let now = now.rows;
                let rows = if before == now {
                    format!("rows of part {part} have changed; their number is still {now}")
                } else {
                    format!("part {part} has {now} rows, but {before} were written")
                };
                format!("{table} has changed since it was written: {rows}")
            });
        }
        for (table, part) in now.keys().filter(|part| !written.contains_key(part)) {
            law.check(false, || {
                format!("{table} has changed since it was written: part {part} is new")
            });
        }
        Ok(())
    }

    fn written_checksums(&self) -> Result<Checksums, ReportError> {
        let columns = ["name", "part", "rows", "checksum"];
        let checksums = self.db.list(SelectQuery::all(schema::CHECKSUMS, &columns), |cells| {
            // The part is a string that may look like a number.
            let part = cells.text_only(1).map(TablePart::Text);
            let part = part.or_else(|| cells.int(1).map(TablePart::Ids))?;
            let rows = u64::try_from(cells.int(2)?).ok()?;
            let checksum = cells.int(3)?.cast_unsigned();
            Some(((cells.text(0)?, part), RowSum { rows, checksum }))
        })?;
        Ok(checksums.into_iter().flatten().collect())
    }

    fn checksums_now(&self) -> Result<Checksums, ReportError> {
        let mut sums = TableChecksums::default();
        // Rows in compressed columns are summed as rows of the table that they belong to.
        let is_summed = |name: &str| name != schema::CHECKSUMS && self.db.has_table(name);
        for table in schema::TABLES.iter().filter(|table| is_summed(table.name)) {
            // A file has the columns of its own version.
            let names = table.columns.iter().map(|column| column.name);
            let columns: Vec<&str> =
                names.filter(|column| self.db.has(table.name, column)).collect();
            self.db.stream(SelectQuery::all(table.name, &columns), |cells| {
                sums.add(table.name, cells.values());
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(sums.parts().map(|(table, part, sum)| ((table.to_owned(), part.clone()), sum)).collect())
    }
}
