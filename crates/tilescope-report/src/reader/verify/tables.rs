//! Invariants between the rows of tables, checked by SQLite.

use super::{InvariantCheck, InvariantViolation, Report};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::model::{OutlinedCall, ProgramKind, StreamEndpoint, TrainingPass};
use crate::reader::tile_patterns::strided_runs_of_numbers;
use crate::units::{ProgramId, TileId};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Tables whose rows are numbered 0, 1, 2, …, with the column of the number.
const NUMBERED_TABLES: [(&str, &str); 44] = [
    ("machine_changes", "id"),
    ("running_costs", "id"),
    ("bandwidths", "id"),
    ("action_costs", "id"),
    ("trace_sync_points", "id"),
    ("trace_beside", "id"),
    ("trace_path_programs", "id"),
    ("trace_path_index", "id"),
    ("sync_groups", "id"),
    ("error_bands", "id"),
    ("program_errors", "id"),
    ("options", "id"),
    ("host_rates", "id"),
    ("host_call_parts", "id"),
    ("host_tensors", "id"),
    ("host_epochs", "id"),
    ("replica_waits", "id"),
    ("replica_rings", "id"),
    ("replica_classes", "id"),
    ("replica_mark_chunks", "id"),
    ("mark_rows", "id"),
    ("notes", "id"),
    ("programs", "id"),
    ("operations", "id"),
    ("program_roots", "id"),
    ("tile_patterns", "id"),
    ("compute_sets", "compute_set"),
    ("vertex_types", "id"),
    ("vertex_groups", "id"),
    ("exchanges", "id"),
    ("exchange_routes", "id"),
    ("exchange_flows", "id"),
    ("data_buffers", "id"),
    ("data_accesses", "id"),
    ("vars_string_table", "id"),
    ("var_categories", "id"),
    ("vars", "id"),
    ("variable_uses", "id"),
    ("addresses", "id"),
    ("var_addresses", "var"),
    ("tiles", "tile"),
    ("liveness_steps", "id"),
    ("sample_labels", "id"),
    ("tile_sample_chunks", "id"),
];

/// Columns whose numbers refer to a column of another table.
const REFERENCES: [(&str, &str, &str, &str); 50] = [
    ("operation_inputs", "operation", "operations", "id"),
    ("operation_inputs", "input", "operations", "id"),
    ("programs", "compute_set", "compute_sets", "compute_set"),
    ("programs", "operation", "operations", "id"),
    ("program_children", "parent", "programs", "id"),
    ("program_children", "child", "programs", "id"),
    ("program_roots", "program", "programs", "id"),
    ("outlined_programs", "program", "programs", "id"),
    ("outlined_programs", "body", "programs", "id"),
    ("outlined_programs", "call", "programs", "id"),
    ("compute_sets", "pattern", "tile_patterns", "id"),
    ("replica_ring_programs", "program", "programs", "id"),
    ("replica_ring_programs", "ring", "replica_rings", "id"),
    ("replicas", "class", "replica_classes", "id"),
    ("replica_joins", "program", "programs", "id"),
    ("replica_lanes", "class", "replica_classes", "id"),
    ("replica_mark_chunks", "class", "replica_classes", "id"),
    ("compute_set_cycles", "compute_set", "compute_sets", "compute_set"),
    ("vertex_groups", "compute_set", "compute_sets", "compute_set"),
    ("vertex_groups", "vertex_type", "vertex_types", "id"),
    ("vertex_groups", "pattern", "tile_patterns", "id"),
    ("vertex_tiles", "vertex_group", "vertex_groups", "id"),
    ("exchanges", "program", "programs", "id"),
    ("exchanges", "pattern", "tile_patterns", "id"),
    ("exchange_tiles", "exchange", "exchanges", "id"),
    ("exchange_cycles", "exchange", "exchanges", "id"),
    ("exchange_cycles", "pattern", "tile_patterns", "id"),
    ("control_code", "program", "programs", "id"),
    ("trace_beside", "program", "programs", "id"),
    ("trace_path_programs", "program", "programs", "id"),
    ("control_code", "pattern", "tile_patterns", "id"),
    ("exchange_routes", "program", "exchanges", "program"),
    ("exchange_flows", "program", "exchanges", "program"),
    ("exchange_flows", "pattern", "tile_patterns", "id"),
    ("exchange_memory", "flow", "exchange_flows", "id"),
    ("exchange_memory", "pattern", "tile_patterns", "id"),
    ("data_accesses", "program", "programs", "id"),
    ("data_accesses", "buffer", "data_buffers", "id"),
    ("vars", "name", "vars_string_table", "id"),
    ("vars", "shape", "vars_string_table", "id"),
    ("vars", "category", "var_categories", "id"),
    ("vars", "operation", "operations", "id"),
    ("vars", "pattern", "tile_patterns", "id"),
    ("vars", "addresses", "addresses", "id"),
    ("variable_uses", "var", "vars", "id"),
    ("var_tiles", "var", "vars", "id"),
    ("var_addresses", "var", "vars", "id"),
    ("memory_by_tile", "tile", "tiles", "tile"),
    ("category_bytes", "category", "var_categories", "id"),
    ("liveness_steps", "program", "programs", "id"),
];

/// Tables of items that a pattern distributes over tiles.
const PATTERN_OWNERS: [&str; 8] = [
    "compute_sets",
    "vertex_groups",
    "exchanges",
    "exchange_cycles",
    "exchange_flows",
    "exchange_memory",
    "control_code",
    "vars",
];

/// Rows that no sound report has: their table, their condition, and their description.
const BROKEN_ROWS: [(&str, &str, &str); 21] = [
    (
        "meta",
        "key NOT IN ('format', 'generator', 'layout', 'onnx', 'slice', 'spec', 'steps')",
        "unknown facts",
    ),
    ("meta", "key = 'layout' AND value NOT IN ('rows', 'columns')", "unknown layouts"),
    (
        "target",
        "tiles_per_ipu * ipus_per_replica != (SELECT total(1) FROM tiles)",
        "machines whose number of tiles differs from the listed tiles",
    ),
    (
        "target",
        "num_ipus = 0 OR num_ipus < replicas * ipus_per_replica",
        "machines with too few IPUs for their replicas",
    ),
    (
        "graph",
        "num_compute_sets != (SELECT total(1) FROM compute_sets)",
        "graphs whose number of compute sets differs from the listed ones",
    ),
    (
        "batching",
        "replicas != (SELECT replicas FROM target)",
        "batches whose number of replicas differs from the machine's",
    ),
    (
        "sync_groups",
        "ipu >= (SELECT ipus_per_replica FROM target) OR sync_group NOT IN ('GS1', 'GS2')
         OR (SELECT total(1) FROM sync_groups) != 2 * (SELECT ipus_per_replica FROM target)
         OR (SELECT total(1) FROM sync_groups AS other
             WHERE other.sync_group = sync_groups.sync_group AND other.ipu = sync_groups.ipu) != 1",
        "IPUs that are not exactly once in each sync group",
    ),
    (
        "replica_rings",
        "ranks < 2 OR spacing < 1 OR (SELECT replicas FROM target) % (ranks * spacing) != 0
         OR clockwise NOT BETWEEN 0 AND 1",
        "rings whose replicas differ from the machine's",
    ),
    (
        "replicas",
        "id >= (SELECT replicas FROM target)
         OR (SELECT total(1) FROM replicas) != (SELECT replicas FROM target)
         OR id = 0 AND class != 0",
        "replicas that do not match the machine",
    ),
    ("replica_classes", "id NOT IN (SELECT class FROM replicas)", "classes without replicas"),
    (
        "operations",
        "ipu >= (SELECT ipus_per_replica FROM target)",
        "operations on IPUs that do not exist",
    ),
    ("operation_inputs", "input >= operation", "operations that read later ones"),
    (
        "operation_inputs",
        "(operation, position) NOT IN
         (SELECT operation, row_number() OVER (PARTITION BY operation ORDER BY position) - 1
          FROM operation_inputs)",
        "inputs with wrong positions",
    ),
    (
        "programs",
        "ipu >= (SELECT ipus_per_replica FROM target)",
        "programs on IPUs that do not exist",
    ),
    (
        "programs",
        "repeats < 1 OR repeats > 1 AND type != 'Repeat'",
        "repeated programs that are not loops",
    ),
    (
        "program_children",
        "(parent, position) NOT IN
         (SELECT parent, row_number() OVER (PARTITION BY parent ORDER BY position) - 1
          FROM program_children)",
        "children with wrong positions",
    ),
    (
        "tiles",
        "ipu != tile / (SELECT tiles_per_ipu FROM target)",
        "tiles whose IPU does not match their number",
    ),
    (
        "vars",
        "(first_live IS NULL) != (end_live IS NULL)",
        "variables with only one end of their lifetime",
    ),
    (
        "category_bytes",
        "overlapped NOT IN (0, 1) OR times < 1 OR times = 1 AND every != end_tile - first_tile",
        "shares with invalid tiles or overlap flags",
    ),
    (
        "data_buffers",
        "ipu >= (SELECT ipus_per_replica FROM target) OR entries < 1
         OR persistent NOT IN (0, 1) OR filled NOT IN (0, 1)",
        "buffers with an invalid IPU, size or flag",
    ),
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
    /// Checks the invariants of our own files.
    pub(super) fn verify_tables(
        &self,
        found: &mut Vec<InvariantViolation>,
    ) -> Result<(), ReportError> {
        let mut law = InvariantCheck::new("tables_agree", found);
        for (table, number) in NUMBERED_TABLES {
            // Numbers are indices of lists: without gaps, and from 0.
            let holes = format!("total(1) - coalesce(max({number}) + 1, 0)");
            let holes = self.db.worked_out(table, &holes)?;
            law.check(holes.is_none_or(|holes| holes == 0), || {
                format!("ids of {table} are not 0, 1, 2, …")
            });
        }
        for (table, column, other, id) in REFERENCES {
            // Some columns were added in version 2.0, others removed.
            if !self.db.has(table, column) {
                continue;
            }
            let condition =
                format!("{column} IS NOT NULL AND {column} NOT IN (SELECT {id} FROM {other})");
            let rows = self.rows_where(table, &condition)?;
            law.check(rows == 0, || {
                format!("{table}.{column} refers to missing rows of {other} in {rows} rows")
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
            law.check(rows == 0, || format!("{table}.{column} has unknown names in {rows} rows"));
        }
        for (table, condition, what) in BROKEN_ROWS {
            let rows = self.rows_where(table, condition)?;
            law.check(rows == 0, || format!("{table} has {rows} {what}"));
        }
        self.verify_mark_rows(&mut law)?;
        self.verify_meta(&mut law);
        self.verify_program_tree(&mut law)?;
        self.verify_graph(&mut law)?;
        self.verify_patterns(&mut law)
    }

    /// Checks that each program is in the tree or runs code of one that is.
    fn verify_program_tree(&self, law: &mut InvariantCheck) -> Result<(), ReportError> {
        let programs = self.programs()?;
        let children = programs.iter().flat_map(|(_, program)| &program.children);
        let in_tree: BTreeSet<ProgramId> = children.chain(programs.roots()).copied().collect();
        for (id, program) in programs.iter() {
            let number = id.0;
            let Some(OutlinedCall { body, call }) = program.outlined else {
                let runs = program.kind == ProgramKind::Sync
                    || programs.roots().is_empty()
                    || in_tree.contains(&id);
                law.check(runs, || format!("program {number} never runs"));
                continue;
            };
            let is_same = programs.get(body).is_some_and(|body| {
                (body.kind, body.ipu, body.compute_set)
                    == (program.kind, program.ipu, program.compute_set)
            });
            law.check(is_same && programs.body(body) == body, || {
                format!("program {number} differs from {} of its function", body.0)
            });
            let is_call = programs.get(call).is_some_and(|call| call.kind == ProgramKind::Call);
            law.check(is_call, || {
                format!("program {number} refers to {}, which is not a call", call.0)
            });
        }
        Ok(())
    }

    /// Compares the sizes of the graph with the lists.
    fn verify_graph(&self, law: &mut InvariantCheck) -> Result<(), ReportError> {
        if !self.db.has_rows("graph") {
            return Ok(());
        }
        let graph = self.graph()?;
        let groups = self.compute_sets()?.into_iter().flat_map(|(_, set)| set.vertices);
        let (vertices, edges) = groups.fold((0u128, 0u128), |(vertices, edges), group| {
            let counts = group.count.iter();
            let count = counts.map(|(tiles, &count)| u128::from(tiles.count()) * u128::from(count));
            let count: u128 = count.sum();
            (vertices + count, edges + count * u128::from(group.edges))
        });
        let variables = self.variable_parts()?;
        let counts = [
            (u128::from(graph.vertices), vertices, "vertices"),
            (u128::from(graph.edges), edges, "edges"),
            (u128::from(graph.variables), u128::from(variables), "variables"),
        ];
        for (said, listed, what) in counts {
            law.check(said == listed, || {
                format!("graph has {said} {what}, but {listed} are listed")
            });
        }
        Ok(())
    }

    /// Checks the stored form of patterns: their runs in order, and each pattern in use.
    fn verify_patterns(&self, law: &mut InvariantCheck) -> Result<(), ReportError> {
        if !self.db.has_table("tile_patterns") {
            return Ok(());
        }
        let tiles_per_ipu = self.target()?.tiles_per_ipu;
        let mut broken = 0;
        self.db.stream(SelectQuery::all("tile_patterns", &["runs"]), |cells| {
            let text = cells.long_text(0).unwrap_or_default();
            broken += u64::from(!is_written_pattern(&text, tiles_per_ipu));
            Ok(ControlFlow::Continue(()))
        })?;
        law.check(broken == 0, || format!("tile_patterns has {broken} invalid patterns"));
        // Some were added in version 2.3.
        let owners: Vec<&str> =
            PATTERN_OWNERS.into_iter().filter(|table| self.db.has(table, "pattern")).collect();
        let used = owners
            .iter()
            .map(|table| format!("SELECT pattern FROM {table} WHERE pattern IS NOT NULL"));
        let used = used.collect::<Vec<_>>().join(" UNION ");
        let unused = self.rows_where("tile_patterns", &format!("id NOT IN ({used})"))?;
        law.check(unused == 0, || format!("tile_patterns has {unused} unused patterns"));
        for table in owners {
            let condition = "base_tile % (SELECT max(tiles_per_ipu, 1) FROM target) != 0
                 OR (base_tile IS NULL) != (pattern IS NULL)";
            let rows = self.rows_where(table, condition)?;
            law.check(rows == 0, || {
                format!("{table} has {rows} patterns that do not start at the first tile of an IPU")
            });
        }
        Ok(())
    }

    fn verify_meta(&self, law: &mut InvariantCheck) {
        let (major, minor) = self.format();
        let format = format!("{major}.{minor}");
        law.check(self.meta.get("format") == Some(&format), || {
            format!("meta does not record the format {format}")
        });
        for key in ["generator", "layout"] {
            law.check(self.meta.contains_key(key), || format!("meta has no {key}"));
        }
    }

    /// Number of rows of a table for which a condition holds.
    fn rows_where(&self, table: &str, condition: &str) -> Result<i64, ReportError> {
        let rows = self.db.worked_out(table, &format!("count(*) FILTER (WHERE {condition})"))?;
        Ok(rows.unwrap_or(0))
    }
}

/// True if the writer could have written this pattern: runs are in the order of their first tiles,
/// the first on the first IPU, and numbers are in canonical form.
fn is_written_pattern(text: &str, tiles_per_ipu: u32) -> bool {
    let Ok(rows) = serde_json::from_str::<Vec<Vec<u64>>>(text) else { return false };
    let runs: Option<Vec<_>> = rows.iter().map(|row| strided_runs_of_numbers(row)).collect();
    let Some(runs) = runs else { return false };
    let first_tiles: Vec<TileId> = runs.iter().map(|run| run.first).collect();
    let alone = runs.iter().all(|run| run.repeats > 1 || run.stride == run.run_length);
    first_tiles.is_sorted_by(|a, b| a < b)
        && first_tiles.first().is_some_and(|first| first.0 < tiles_per_ipu)
        && alone
        && serde_json::to_string(&rows).is_ok_and(|written| written == text)
}
