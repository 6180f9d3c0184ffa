//! Files laid out like Poplar's, with only the tables and columns known from real ones, filled
//! with a small two-phase program. Same variant, same content.

use rusqlite::{Connection, params_from_iter, types::Value};
use std::path::Path;

const SCHEMA: [(&str, &[&str]); 9] = [
    ("programs", &["id INTEGER PRIMARY KEY", "name TEXT"]),
    ("compute_sets", &["compute_set INTEGER PRIMARY KEY", "name TEXT"]),
    ("steps", &["id INTEGER PRIMARY KEY", "type TEXT", "program INTEGER", "compute_set INTEGER"]),
    (
        "steps_by_ipu",
        &[
            "step_id INTEGER",
            "ipu INTEGER",
            "cycles INTEGER",
            "active_tiles INTEGER",
            "cycles_base INTEGER",
            "active_cycles_from_min INTEGER",
            "active_cycles_from_max INTEGER",
            "active_cycles_to_min INTEGER",
            "active_cycles_to_max INTEGER",
        ],
    ),
    ("vars_string_table", &["id INTEGER PRIMARY KEY", "string TEXT"]),
    ("var_categories", &["id INTEGER PRIMARY KEY", "name TEXT"]),
    (
        "vars_info",
        &[
            "id INTEGER PRIMARY KEY",
            "name INTEGER",
            "tile INTEGER",
            "size_bytes INTEGER",
            "category INTEGER",
        ],
    ),
    ("memory_by_tile", &["tile INTEGER PRIMARY KEY", "total INTEGER"]),
    ("execution_cycle_totals", &["total INTEGER"]),
];

/// Every known table with its columns, for tables of several.
pub(crate) fn known_columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCHEMA.iter().filter(|(_, columns)| columns.len() > 1).flat_map(|(table, columns)| {
        columns.iter().map(|column| (*table, column.split(' ').next().unwrap()))
    })
}

/// Names of all known tables.
pub(crate) fn known_tables() -> impl Iterator<Item = &'static str> {
    SCHEMA.iter().map(|(table, _)| *table)
}

/// One iteration: step type, program, compute set or not, cycles, share of active tiles.
const BODY: [(&str, &str, bool, i64, f64); 8] = [
    ("StreamCopyBegin", "copyFromHost", false, 1800, 0.02),
    ("StreamCopyMid", "copyFromHostRemoteBuffer", false, 5200, 0.10),
    ("DoExchange", "cs0_dense/fwd/Conv_1/Convolve/ExchangePre", false, 610, 0.95),
    ("OnTileExecute", "dense/fwd/Conv_1/Convolve", true, 8700, 0.97),
    ("Sync", "Internal", false, 110, 1.0),
    ("OnTileExecute", "dense/fwd/Conv_1/Reduce0", true, 730, 0.85),
    ("GlobalExchange", "dense/inter-ipu-copy/GlobalPre", false, 2100, 0.30),
    ("StreamCopyEnd", "loss/copyToHost", false, 90, 0.02),
];
const CATEGORIES: [&str; 4] = ["variable", "constant", "internalExchangeCode", "stack"];
const STRINGS: [&str; 3] = ["weights", "activations", "code"];

/// Which file to write.
#[derive(Clone, Debug)]
pub(crate) struct Foreign {
    pub ipus: i64,
    pub tiles_per_ipu: i64,
    pub steps: i64,
    pub without_tables: Vec<&'static str>,
    pub without_columns: Vec<(&'static str, &'static str)>,
    pub nulls: bool,
    pub unknown_types: bool,
    pub extra: bool,
    /// Rows of `steps_by_ipu` IPU by IPU instead of step by step.
    pub by_ipu: bool,
    pub wal: bool,
    /// The three steps of the stream copy from the host have one program, as Poplar's have.
    pub stream_copies: bool,
}

impl Default for Foreign {
    fn default() -> Self {
        Self {
            ipus: 2,
            tiles_per_ipu: 1472,
            steps: 800,
            without_tables: Vec::new(),
            without_columns: Vec::new(),
            nulls: false,
            unknown_types: false,
            extra: false,
            by_ipu: false,
            wal: false,
            stream_copies: false,
        }
    }
}

impl Foreign {
    /// Writes the file. In write-ahead-log mode the rows are left in the log, beside the file.
    pub(crate) fn write(&self, path: &Path) {
        let db = Connection::open(path).unwrap();
        db.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY").unwrap();
        if self.wal {
            db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
            db.execute_batch("PRAGMA wal_autocheckpoint = 0").unwrap();
        }
        db.execute_batch("BEGIN").unwrap();
        for (table, columns) in SCHEMA {
            if !self.without_tables.contains(&table) {
                let columns = columns.iter().filter(|column| self.keeps(table, column));
                let mut columns: Vec<&str> = columns.copied().collect();
                if self.extra {
                    columns.push("reserved BLOB");
                }
                db.execute(&format!("CREATE TABLE {table} ({})", columns.join(", ")), []).unwrap();
            }
        }
        self.fill(&db);
        if self.extra {
            let sql = "CREATE TABLE future (a, b); INSERT INTO future VALUES (1, 'x');
                       CREATE VIEW future_view AS SELECT a FROM future;
                       CREATE INDEX future_index ON future(a)";
            db.execute_batch(sql).unwrap();
        }
        db.execute_batch("COMMIT").unwrap();
        if self.wal {
            // Closing would empty the log, so the files are taken as they are now.
            let name = path.file_name().unwrap().to_str().unwrap();
            let log = path.with_file_name(format!("{name}-wal"));
            let files = [path, log.as_path()].map(|file| (file, std::fs::read(file).unwrap()));
            drop(db);
            files.iter().for_each(|(file, bytes)| std::fs::write(file, bytes).unwrap());
        }
    }

    fn keeps(&self, table: &str, column: &str) -> bool {
        let name = column.split(' ').next().unwrap();
        !self.without_columns.contains(&(table, name))
    }

    fn insert(&self, db: &Connection, table: &str, row: Vec<Value>) {
        if self.without_tables.contains(&table) {
            return;
        }
        let (_, columns) = SCHEMA.iter().find(|(name, _)| *name == table).unwrap();
        let kept = columns.iter().zip(row).filter(|(column, _)| self.keeps(table, column));
        let (names, values): (Vec<&str>, Vec<Value>) =
            kept.map(|(column, value)| (column.split(' ').next().unwrap(), value)).unzip();
        let marks = vec!["?"; names.len()].join(", ");
        let sql = format!("INSERT INTO {table} ({}) VALUES ({marks})", names.join(", "));
        db.prepare_cached(&sql).unwrap().execute(params_from_iter(values)).unwrap();
    }

    fn fill(&self, db: &Connection) {
        let mut body = BODY.to_vec();
        let mut categories = CATEGORIES.to_vec();
        if self.unknown_types {
            body.insert(4, ("OnSuperTileDance", "dense/dance", false, 77, 0.5));
            categories.push("quantumFoam");
        }
        if self.stream_copies {
            body[1] = ("StreamCopyMid", "copyFromHost", false, 5200, 0.10);
            body.insert(2, ("StreamCopyEnd", "copyFromHost", false, 90, 0.02));
        }
        let text = |text: &str| Value::from(text.to_owned());
        for (id, (_, name, _, _, _)) in body.iter().enumerate() {
            self.insert(db, "programs", vec![Value::from(id as i64), text(name)]);
            self.insert(db, "compute_sets", vec![Value::from(id as i64), text(name)]);
        }
        for (id, name) in STRINGS.iter().enumerate() {
            self.insert(db, "vars_string_table", vec![Value::from(id as i64), text(name)]);
        }
        for (id, name) in categories.iter().enumerate() {
            self.insert(db, "var_categories", vec![Value::from(id as i64), text(name)]);
        }
        for tile in 0..self.ipus * self.tiles_per_ipu {
            let size = |category: i64| 64 * (1 + (tile * 7 + category * 131) % 97);
            let count = categories.len() as i64;
            for category in 0..count {
                let gone = self.nulls && tile % 50 == 3;
                let bytes = if gone { Value::Null } else { size(category).into() };
                let name = category % STRINGS.len() as i64;
                let row = vec![
                    (tile * count + category).into(),
                    name.into(),
                    tile.into(),
                    bytes,
                    category.into(),
                ];
                self.insert(db, "vars_info", row);
            }
            let total: i64 = (0..count).map(size).sum();
            self.insert(db, "memory_by_tile", vec![tile.into(), total.into()]);
        }
        for step in 0..self.steps {
            let at = step % body.len() as i64;
            let (kind, _, is_set, _, _) = body[at as usize];
            let program = if self.stream_copies && at < 3 { 0 } else { at };
            let program = if self.nulls && step % 90 == 11 { Value::Null } else { program.into() };
            let set = if is_set { at.into() } else { Value::Null };
            self.insert(db, "steps", vec![step.into(), text(kind), program, set]);
        }
        self.fill_cycles(db, &body);
    }

    fn fill_cycles(&self, db: &Connection, body: &[(&str, &str, bool, i64, f64)]) {
        let mut clocks = vec![0; self.ipus as usize];
        let mut rows = Vec::new();
        for step in 0..self.steps {
            let (_, _, _, cycles, share) = body[(step % body.len() as i64) as usize];
            for ipu in 0..self.ipus {
                let clock = &mut clocks[ipu as usize];
                let mut took = cycles + (step * 26_544_357 + ipu * 40_503) % (1 + cycles / 8);
                if step == 0 {
                    took *= 5000;
                }
                let spread = (took / 4).min(40);
                let to_max = spread + took;
                let active = ((self.tiles_per_ipu as f64 * share) as i64).max(1);
                let gone = self.nulls && step % 77 == 5;
                let cycles = if gone { Value::Null } else { took.into() };
                rows.push((
                    ipu,
                    vec![
                        step.into(),
                        ipu.into(),
                        cycles,
                        active.into(),
                        (*clock).into(),
                        0.into(),
                        spread.into(),
                        (to_max - spread).into(),
                        to_max.into(),
                    ],
                ));
                *clock += to_max;
            }
        }
        if self.by_ipu {
            rows.sort_by_key(|(ipu, _)| *ipu);
        }
        for (_, row) in rows {
            self.insert(db, "steps_by_ipu", row);
        }
        let total = clocks.iter().copied().max().unwrap_or(0);
        self.insert(db, "execution_cycle_totals", vec![Value::from(total)]);
    }
}
