//! Laws between the rows of tables, checked by SQLite.

use super::{InvariantCheck, InvariantViolation, Report};
use crate::error::ReportError;
use crate::model::{ProgramKind, StreamEndpoint, TrainingPass};

/// Tables whose rows are numbered 0, 1, 2, …, and the column of the number.
const NUMBERED_TABLES: [(&str, &str); 15] = [
    ("options", "id"),
    ("notes", "id"),
    ("programs", "id"),
    ("operations", "id"),
    ("program_roots", "id"),
    ("compute_sets", "compute_set"),
    ("vertex_types", "id"),
    ("vertex_groups", "id"),
    ("exchanges", "id"),
    ("exchange_routes", "id"),
    ("vars_string_table", "id"),
    ("var_categories", "id"),
    ("vars", "id"),
    ("tiles", "tile"),
    ("liveness_steps", "id"),
];

/// Columns whose numbers are found in a column of another table.
const REFERENCES: [(&str, &str, &str, &str); 16] = [
    ("operation_inputs", "operation", "operations", "id"),
    ("operation_inputs", "input", "operations", "id"),
    ("programs", "compute_set", "compute_sets", "compute_set"),
    ("programs", "operation", "operations", "id"),
    ("program_children", "parent", "programs", "id"),
    ("program_children", "child", "programs", "id"),
    ("program_roots", "program", "programs", "id"),
    ("vertex_groups", "compute_set", "compute_sets", "compute_set"),
    ("vertex_groups", "vertex_type", "vertex_types", "id"),
    ("exchanges", "program", "programs", "id"),
    ("exchange_routes", "program", "exchanges", "program"),
    ("vars", "name", "vars_string_table", "id"),
    ("vars", "shape", "vars_string_table", "id"),
    ("vars", "category", "var_categories", "id"),
    ("vars", "operation", "operations", "id"),
    ("liveness_steps", "program", "programs", "id"),
];

/// Rows that no sound report has: their table, what makes them so, and what they are.
const BROKEN_ROWS: [(&str, &str, &str); 16] = [
    (
        "meta",
        "key NOT IN ('format', 'generator', 'layout', 'spec', 'steps')",
        "facts of no known name",
    ),
    ("meta", "key = 'layout' AND value NOT IN ('rows', 'columns')", "layouts of no known name"),
    (
        "target",
        "tiles_per_ipu * ipus_per_replica != (SELECT total(1) FROM tiles)",
        "machines of other than the listed tiles",
    ),
    (
        "target",
        "num_ipus = 0 OR num_ipus < replicas * ipus_per_replica",
        "machines with too few IPUs for their replicas",
    ),
    (
        "graph",
        "num_compute_sets != (SELECT total(1) FROM compute_sets)",
        "graphs of other than the listed compute sets",
    ),
    (
        "batching",
        "replicas != (SELECT replicas FROM target)",
        "batches over other than the machine's replicas",
    ),
    ("operations", "ipu >= (SELECT ipus_per_replica FROM target)", "operations on no IPU"),
    ("operation_inputs", "input >= operation", "operations that read later ones"),
    (
        "operation_inputs",
        "(operation, position) NOT IN
         (SELECT operation, row_number() OVER (PARTITION BY operation ORDER BY position) - 1
          FROM operation_inputs)",
        "inputs out of place",
    ),
    ("programs", "ipu >= (SELECT ipus_per_replica FROM target)", "programs on no IPU"),
    (
        "programs",
        "repeats < 1 OR repeats > 1 AND type != 'Repeat'",
        "programs with repeats that are no loop",
    ),
    (
        "programs",
        "type != 'Sync' AND EXISTS (SELECT 1 FROM program_roots)
         AND id NOT IN (SELECT child FROM program_children)
         AND id NOT IN (SELECT program FROM program_roots)",
        "programs that nothing runs",
    ),
    (
        "program_children",
        "(parent, position) NOT IN
         (SELECT parent, row_number() OVER (PARTITION BY parent ORDER BY position) - 1
          FROM program_children)",
        "children out of place",
    ),
    (
        "tiles",
        "ipu != tile / (SELECT tiles_per_ipu FROM target)",
        "tiles on another IPU than their number says",
    ),
    ("vars", "(first_live IS NULL) != (end_live IS NULL)", "variables that live half a life"),
    (
        "steps_by_ipu",
        "cycles != active_cycles_to_max - active_cycles_from_max OR active_cycles_from_min != 0
         OR active_cycles_to_min NOT BETWEEN 0 AND active_cycles_to_max
         OR active_tile_balance NOT BETWEEN 0 AND 1
         OR abs(tile_balance - active_tile_balance * active_tiles
                / (SELECT max(tiles_per_ipu, 1) FROM target)) > 1e-6",
        "steps whose cycles or balances contradict each other",
    ),
];

impl Report {
    /// Laws that our own files keep.
    pub(super) fn verify_tables(
        &self,
        found: &mut Vec<InvariantViolation>,
    ) -> Result<(), ReportError> {
        let mut law = InvariantCheck::new("tables_agree", found);
        for (table, number) in NUMBERED_TABLES {
            // Numbers are places in lists: without holes, and from 0.
            let holes = format!("total(1) - coalesce(max({number}) + 1, 0)");
            let holes = self.db.number(table, &holes)?;
            law.check(holes.is_none_or(|holes| holes == 0), || {
                format!("ids of {table} are not 0, 1, 2, …")
            });
        }
        for (table, column, other, id) in REFERENCES {
            let condition =
                format!("{column} IS NOT NULL AND {column} NOT IN (SELECT {id} FROM {other})");
            let rows = self.rows_where(table, &condition)?;
            law.check(rows == 0, || {
                format!("{table}.{column} names what {other} does not have in {rows} rows")
            });
        }
        let passes = TrainingPass::ALL.map(TrainingPass::name);
        let names: [(&str, &str, &[&str]); 4] = [
            ("operations", "pass", &passes),
            ("programs", "type", &ProgramKind::ALL.map(ProgramKind::name)),
            ("programs", "stream", &StreamEndpoint::ALL.map(StreamEndpoint::name)),
            ("steps", "type", &ProgramKind::ALL.map(ProgramKind::name)),
        ];
        for (table, column, known) in names {
            let condition = format!("{column} NOT IN ('{}')", known.join("', '"));
            let rows = self.rows_where(table, &condition)?;
            law.check(rows == 0, || format!("{table}.{column} is no known name in {rows} rows"));
        }
        for (table, condition, what) in BROKEN_ROWS {
            let rows = self.rows_where(table, condition)?;
            law.check(rows == 0, || format!("{table} has {rows} {what}"));
        }
        self.verify_runs(&mut law)?;
        self.verify_mark_rows(&mut law)?;
        self.verify_meta(&mut law);
        Ok(())
    }

    fn verify_meta(&self, law: &mut InvariantCheck) {
        let (major, minor) = self.format();
        let format = format!("{major}.{minor}");
        law.check(self.meta.get("format") == Some(&format), || {
            format!("meta does not say that the format is {format}")
        });
        for key in ["generator", "layout"] {
            law.check(self.meta.contains_key(key), || format!("meta has no {key}"));
        }
    }

    /// Number of rows of a table for which a condition holds.
    fn rows_where(&self, table: &str, condition: &str) -> Result<i64, ReportError> {
        let rows = self.db.number(table, &format!("count(*) FILTER (WHERE {condition})"))?;
        Ok(rows.unwrap_or(0))
    }
}
