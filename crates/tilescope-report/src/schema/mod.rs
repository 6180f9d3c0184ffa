//! Every table and column of a `profile.pop`, in one list: the source for the writer, the reader,
//! and the documentation for users of SQL.
//!
//! Tables known from Poplar's files keep their names, columns and meaning, so that scripts written
//! for those work with ours: `steps`, `steps_by_ipu`, `programs`, `compute_sets`, `vars_info`,
//! `var_categories`, `vars_string_table`, `memory_by_tile`, `execution_cycle_totals`. `vars_info`
//! would hold 10^7 rows for a large model, nearly all alike. Layers of a model are alike, too: the
//! data of a compute set, an exchange or a variable on its tiles form a pattern that all equal ones
//! share (`tile_patterns`), each from a base tile of its own. Views show patterns as rows.
//!
//! The report of a long execution has no rows of steps (`meta.layout` is `columns`, not `rows`):
//! `trace_chunks` with `trace_details` hold all steps, and `mark_chunks` the marks. Their tables
//! are replaced by views that fail with a hint on how to query them.
//!
//! All of it describes replica 0. If replicas differ, replicas with equal behaviour form a class.
//! Steps and marks of the other classes are in separate tables (`replica_lanes`,
//! `replica_mark_chunks`), always as compressed columns, so that scripts and older versions see one
//! replica as before.
//!
//! Tiles are numbered over the IPUs of one replica. Columns `first_tile` and `end_tile` bound a
//! half-open run of tiles; the following columns apply to each tile of the run. Cycles count from
//! the start of the trace. NULL means no value.

mod exchange;
mod host;
mod machine;
mod replicas;
mod samples;
mod trace;
mod views;

pub(crate) use samples::{SAMPLE_TABLES, TILE_SAMPLE_CHUNKS, TILE_SAMPLES};
pub(crate) use views::{VIEWS, tables_of_other_files, view_of_samples, views_without_rows};

/// `PRAGMA application_id` of our files: `tSc1`.
pub(crate) const APPLICATION_ID: i32 = 0x7453_6331;
/// Version of the format. A reader supports all versions of its own major version and of earlier
/// ones.
pub const FORMAT: (i32, i32) = (2, 11);

/// The supported versions of the format, as text.
pub(crate) fn readable_formats() -> String {
    format!("1.0 to {}.{}", FORMAT.0, FORMAT.1)
}

/// `PRAGMA user_version` of a format version.
pub(crate) const fn user_version(format: (i32, i32)) -> i32 {
    format.0 * 1000 + format.1
}

/// A column of a table.
pub struct SchemaColumn {
    pub name: &'static str,
    /// Its type and constraints in SQL.
    pub declaration: &'static str,
    /// The unit of its numbers; empty if they have none.
    pub unit: &'static str,
    /// A description of its content.
    pub about: &'static str,
}

/// The type of the cells of a column.
pub(crate) enum ColumnType {
    Integer,
    Real,
    Text,
    Blob,
}

impl SchemaColumn {
    /// The type of its cells, from the first word of its declaration.
    pub(crate) fn kind(&self) -> ColumnType {
        match self.declaration.split(' ').next() {
            Some("INTEGER") => ColumnType::Integer,
            Some("REAL") => ColumnType::Real,
            Some("TEXT") => ColumnType::Text,
            _ => ColumnType::Blob,
        }
    }
}

/// A table of a report.
pub(crate) struct SchemaTable {
    pub name: &'static str,
    /// A description of a row.
    pub about: &'static str,
    /// Its columns in order.
    pub columns: &'static [SchemaColumn],
    /// Primary key over several columns, which also determines the order of rows; empty if there is
    /// none.
    pub key: &'static str,
}

/// The kind of cells of a column: type and constraints in SQL, and the unit of numbers.
#[derive(Clone, Copy)]
struct CellKind(&'static str, &'static str);

const TEXT: CellKind = CellKind("TEXT", "");
const TEXT_KEY: CellKind = CellKind("TEXT PRIMARY KEY", "");
const BLOB: CellKind = CellKind("BLOB", "");
/// A text or a number.
const ANY: CellKind = CellKind("", "");
/// The number of the row.
const KEY: CellKind = CellKind("INTEGER PRIMARY KEY", "id");
/// The number of a row of another table.
const ID: CellKind = CellKind("INTEGER", "id");
/// Any other number: of IPUs, tiles or positions.
const NUMBER: CellKind = CellKind("INTEGER", "number");
const COUNT: CellKind = CellKind("INTEGER", "count");
const FLAG: CellKind = CellKind("INTEGER", "0 or 1");
const CYCLES: CellKind = CellKind("INTEGER", "cycles");
const BYTES: CellKind = CellKind("INTEGER", "bytes");
const FLOPS: CellKind = CellKind("INTEGER", "FLOPs");
const HERTZ: CellKind = CellKind("INTEGER", "hertz");
const FLOPS_PER_CYCLE: CellKind = CellKind("INTEGER", "FLOPs/cycle");
const BYTES_PER_CYCLE: CellKind = CellKind("REAL", "bytes/cycle");
const SAMPLES_PER_SECOND: CellKind = CellKind("REAL", "samples/s");
const SECONDS: CellKind = CellKind("REAL", "s");
/// A part of a whole.
const SHARE: CellKind = CellKind("REAL", "share");
/// One quantity over another of its kind.
const RATIO: CellKind = CellKind("REAL", "ratio");
/// A value whose unit is in another column of the row.
const MEASURED: CellKind = CellKind("REAL", "see unit");
const COST: CellKind = CellKind("REAL", "see kind");

const fn col(name: &'static str, kind: CellKind, about: &'static str) -> SchemaColumn {
    let CellKind(declaration, unit) = kind;
    SchemaColumn { name, declaration, unit, about }
}

const fn table(
    name: &'static str,
    about: &'static str,
    columns: &'static [SchemaColumn],
    key: &'static str,
) -> SchemaTable {
    SchemaTable { name, about, columns, key }
}

const FIRST_TILE: SchemaColumn = col("first_tile", NUMBER, "first tile of the run");
const END_TILE: SchemaColumn = col("end_tile", NUMBER, "first tile after the run");
const EVERY: SchemaColumn =
    col("every", COUNT, "tiles from one equal run to the next; the length of a single run");
const TIMES: SchemaColumn = col("times", COUNT, "number of equal runs");

const BASE_TILE: SchemaColumn =
    col("base_tile", NUMBER, "tile that the pattern counts from; NULL: on no tile");

/// The table of marks stored as compressed columns.
pub(crate) const MARK_CHUNKS: &str = "mark_chunks";
/// Rows of many marks, and smaller blocks of those.
pub(crate) const MARK_ROWS: &str = "mark_rows";
pub(crate) const MARK_BLOCKS: &str = "mark_blocks";
/// Tables of reports whose marks are packed.
pub(crate) const MARK_ROW_TABLES: [&str; 2] = [MARK_ROWS, MARK_BLOCKS];
/// The table of packed marks of replicas that differ from replica 0.
pub(crate) const REPLICA_MARK_CHUNKS: &str = "replica_mark_chunks";
/// The table of the checksums of all others. The index of the critical path of a long run; see
/// [`TRACE_TABLES`].
pub(crate) const PATH_INDEX: &str = "trace_path_index";
pub(crate) const CHECKSUMS: &str = "checksums";

/// All tables, in the order of creation.
pub(crate) const TABLES: &[SchemaTable] = &[
    table(
        "meta",
        "a fact about the file",
        &[
            col(
                "key",
                TEXT_KEY,
                "format, generator, layout, spec; onnx: the file of an imported model and the \
                 treatment of its nodes, JSON, since version 2.4; slice: the report that this one \
                 is a part of, and the part, JSON",
            ),
            col("value", TEXT, "its value"),
        ],
        "",
    ),
    machine::TARGET,
    machine::MACHINE_CHANGES,
    machine::RUNNING_COSTS,
    machine::BANDWIDTHS,
    machine::COMPUTE_RATES,
    machine::ACTION_COSTS,
    machine::SYNC_GROUPS,
    machine::ERROR_BANDS,
    machine::PROGRAM_ERRORS,
    table(
        "graph",
        "sizes of the compiled graph; one row",
        &[
            col("num_compute_sets", COUNT, "compute sets"),
            col("num_vertices", COUNT, "vertices over all tiles"),
            col("num_edges", COUNT, "edges over all tiles"),
            col("num_vars", COUNT, "lowered variables over all tiles"),
        ],
        "",
    ),
    table(
        "options",
        "an option in effect",
        &[col("id", KEY, "position"), col("key", TEXT, "name"), col("value", TEXT, "value")],
        "",
    ),
    table(
        "batching",
        "batching of samples; no or one row",
        &[
            col("micro_batch", COUNT, "samples of one pass"),
            col("gradient_accumulation", COUNT, "micro-batches per weight update"),
            col("replicas", COUNT, "number of replicas"),
            col("device_iterations", COUNT, "iterations per host call"),
        ],
        "",
    ),
    host::HOST_RATES,
    host::HOST_CALL_PARTS,
    host::HOST_TENSORS,
    host::HOST_EPOCHS,
    host::REPLICA_WAITS,
    replicas::RINGS,
    replicas::RING_PROGRAMS,
    replicas::CLASSES,
    replicas::MEMBERS,
    replicas::JOINS,
    table(
        "notes",
        "a warning of the compiler",
        &[col("id", KEY, "position"), col("text", TEXT, "")],
        "",
    ),
    table(
        "operations",
        "an operation of the model",
        &[
            col("id", KEY, "its id"),
            col("name", TEXT, "path of names: layer1/conv"),
            col("kind", TEXT, "operator: conv2d"),
            col(
                "source",
                TEXT,
                "operator and version of its nodes in an ONNX file: Conv@11; since version 2.4",
            ),
            col("pass", TEXT, "forward, backward or update"),
            col("block", TEXT, "annotated block"),
            col("ipu", NUMBER, "IPU of the replica"),
            col(
                "flops",
                FLOPS,
                "floating point operations of one execution, excluding those on padding; up to \
                 version 2.5, convolutions also counted zeros around their input",
            ),
            col("shapes", TEXT, "shapes as text"),
            col("plan", TEXT, "plan, JSON"),
            col(
                "element_type",
                TEXT,
                "type that it computes in: quarter, half or float, whole numbers as floats of \
                 their size; since version 2.6",
            ),
            col(
                "inner_runs",
                COUNT,
                "runs of its most frequent program in one execution: more than 1 in serial loops; \
                 since version 2.6",
            ),
            col(
                "cost_basis",
                TEXT,
                "error_bands.basis, if its shape is outside the measured ones of its kind; NULL: \
                 that of its kind; since version 2.9",
            ),
        ],
        "",
    ),
    table(
        "operation_inputs",
        "an operation that reads results of an earlier one",
        &[
            col("operation", ID, "operations.id"),
            col("position", NUMBER, "position among its inputs"),
            col("input", ID, "operations.id"),
        ],
        "operation, position",
    ),
    table(
        "programs",
        "a node of the compiled program",
        &[
            col("id", KEY, "its id"),
            col("name", TEXT, "debug name"),
            col("type", TEXT, "Program.Type of libpva: OnTileExecute, DoExchange, Sequence, …"),
            col("ipu", NUMBER, "IPU that it runs on; NULL for several"),
            col("compute_set", ID, "compute_sets.compute_set"),
            col("operation", ID, "operations.id"),
            col("stream", TEXT, "other end of a stream copy: host or remote_buffer"),
            col("repeats", COUNT, "iterations of a Repeat, else 1"),
        ],
        "",
    ),
    table(
        "program_children",
        "a child of a program",
        &[
            col("parent", ID, "programs.id"),
            col("position", NUMBER, "position among the children"),
            col("child", ID, "programs.id"),
        ],
        "parent, position",
    ),
    table(
        "outlined_programs",
        "a program that runs the code of a function with several calls; since version 2.2",
        &[
            col("program", KEY, "programs.id, to which steps refer"),
            col("body", ID, "programs.id: the program in the function; itself in the first call"),
            col("call", ID, "programs.id: the Call in which it runs"),
        ],
        "",
    ),
    table(
        "program_roots",
        "a root of the program tree",
        &[col("id", KEY, "position"), col("program", ID, "programs.id")],
        "",
    ),
    table(
        "tile_patterns",
        "pattern on tiles that several rows share, relative to a base tile; since version 2.0",
        &[
            col("id", KEY, "its id"),
            col("runs", TEXT, "JSON: [[first_tile, end_tile, every, times, value, …], …]"),
        ],
        "",
    ),
    table(
        "compute_sets",
        "a compute set",
        &[
            col("compute_set", KEY, "its id"),
            col("name", TEXT, "debug name"),
            BASE_TILE,
            col("pattern", ID, "tile_patterns.id: cycles"),
        ],
        "",
    ),
    table(
        "vertex_types",
        "a vertex type",
        &[
            col("id", KEY, "its id"),
            col("name", TEXT, "poplin::ConvPartial1x1Out<…>"),
            col("code_bytes", BYTES, "code on each tile that uses it"),
            col("state_bytes", BYTES, "state of one vertex"),
            col(
                "shares_code",
                FLAG,
                "1 if a tile has that code once for all types with a 1, else 0; since version 2.3",
            ),
        ],
        "",
    ),
    table(
        "vertex_groups",
        "equal vertices of a compute set",
        &[
            col("id", KEY, "its id"),
            col("compute_set", ID, "compute_sets.compute_set"),
            col("vertex_type", ID, "vertex_types.id"),
            col("edges", COUNT, "edges of one vertex"),
            BASE_TILE,
            col("pattern", ID, "tile_patterns.id: vertices"),
            col(
                "flops",
                FLOPS,
                "floating point operations of all of them in one execution, including those on \
                 padding; NULL: not counted; since version 2.6",
            ),
        ],
        "",
    ),
    exchange::TRAFFIC,
    exchange::CYCLES_BY_TILE,
    table(
        "control_code",
        "control code of a program, without that of programs below it; since version 2.3",
        &[
            col("program", KEY, "programs.id"),
            BASE_TILE,
            col("pattern", ID, "tile_patterns.id: bytes"),
        ],
        "",
    ),
    exchange::ROUTES,
    exchange::FLOWS,
    exchange::MEMORY,
    table(
        "data_buffers",
        "a tensor in one place, as steps read and write it; since version 2.1",
        &[
            col("id", KEY, "its id"),
            col("name", TEXT, "name of the tensor"),
            col("place", TEXT, "tiles, stash, remote_buffer, remote_stash or host"),
            col("ipu", NUMBER, "IPU whose steps read and write it"),
            col("entries", COUNT, "micro-batches that a stash holds, else 1"),
            col("persistent", FLAG, "1 for weights and state, which belong to no micro-batch"),
            col("filled", FLAG, "1 if it has data before the run"),
        ],
        "",
    ),
    table(
        "data_accesses",
        "access of a program to a buffer in each execution; since version 2.1",
        &[
            col("id", KEY, "position"),
            col("flow", ID, "operation or copy: it computes the written data from the read data"),
            col("program", ID, "programs.id"),
            col("buffer", ID, "data_buffers.id"),
            col("access", TEXT, "read or write; send or receive between stages; free"),
        ],
        "",
    ),
    table(
        "vars_string_table",
        "a name",
        &[col("id", KEY, "its id"), col("string", TEXT, "the name")],
        "",
    ),
    table(
        "var_categories",
        "a memory category",
        &[col("id", KEY, "its id"), col("name", TEXT, "its name, in the spelling of libpva")],
        "",
    ),
    table(
        "vars",
        "a variable, over all tiles",
        &[
            col("id", KEY, "its id"),
            col("name", ID, "vars_string_table.id"),
            col("category", ID, "var_categories.id"),
            col("operation", ID, "operations.id"),
            col("shape", ID, "vars_string_table.id"),
            col("first_live", ID, "first liveness step in which it is live; NULL: always live"),
            col("end_live", ID, "first liveness step after its lifetime"),
            BASE_TILE,
            col("pattern", ID, "tile_patterns.id: bytes"),
            col("addresses", ID, "addresses.id, counted from base_tile too"),
        ],
        "",
    ),
    table(
        "variable_uses",
        "liveness steps whose programs use a variable; a variable with a lifetime but without a \
         row is in use for all of it; since version 2.3",
        &[
            col("id", KEY, "position"),
            col("var", ID, "vars.id"),
            col("first_step", ID, "liveness_steps.id of the first"),
            col("end_step", ID, "first liveness step after the last"),
        ],
        "",
    ),
    table(
        "addresses",
        "addresses of equally placed variables; since version 2.0",
        &[
            col("id", KEY, "its id"),
            col("data", BLOB, "addresses from the start of tile memory, as integers in LEB128"),
        ],
        "",
    ),
    table(
        "tiles",
        "a tile of the replica",
        &[col("tile", KEY, "its number"), col("ipu", NUMBER, "its IPU")],
        "",
    ),
    table(
        "memory_by_tile",
        "memory of a tile",
        &[
            col("tile", KEY, "tiles.tile"),
            col("total", BYTES, "bytes ever used: the sum of the regions"),
            col("total_including_gaps", BYTES, "address after the last used byte"),
            col("non_interleaved", BYTES, "bytes used of non-interleaved memory"),
            col("interleaved", BYTES, "bytes used of interleaved memory"),
            col("overflowed", BYTES, "bytes used beyond the end of memory"),
            col("always_live", BYTES, "bytes always live"),
            col("peak_not_always_live", BYTES, "maximum of other live bytes at any step"),
        ],
        "",
    ),
    table(
        "category_bytes",
        "a share of the memory of equal tiles",
        &[
            col("category", ID, "var_categories.id"),
            col("region", NUMBER, "0 non-interleaved, 1 interleaved, 2 overflowed"),
            col("overlapped", FLAG, "1 if several variables share these bytes over time"),
            FIRST_TILE,
            END_TILE,
            EVERY,
            TIMES,
            col("bytes", BYTES, "bytes on each tile"),
        ],
        "category, region, overlapped, first_tile",
    ),
    table(
        "liveness_steps",
        "a step of the compiled program",
        &[
            col("id", KEY, "position"),
            col("program", ID, "programs.id"),
            col("bytes", BYTES, "bytes of not-always-live variables over all tiles"),
        ],
        "",
    ),
    trace::STEPS,
    trace::STEPS_BY_IPU,
    trace::EXECUTION_CYCLE_TOTALS,
    trace::MARKS,
    trace::MARK_KINDS,
    trace::TRACE_LANES,
    replicas::LANES,
    trace::TRACE_CHUNKS,
    trace::TRACE_DETAILS,
    trace::TRACE_NODES,
    trace::TRACE_TOTALS,
    trace::TRACE_LENGTHS,
    trace::TRACE_SYNC_POINTS,
    trace::TRACE_EXCHANGE_ORDER,
    trace::TRACE_BESIDE,
    trace::TRACE_PATH_PROGRAMS,
    trace::TRACE_PATH_INDEX,
    trace::MARK_CHUNKS,
    trace::MARK_ROWS,
    trace::MARK_BLOCKS,
    replicas::MARK_CHUNKS,
    samples::LABELS,
    samples::SAMPLES,
    samples::CHUNKS,
    table(
        CHECKSUMS,
        "the checksum of rows of a table when they were written; since version 2.0",
        &[
            col("name", TEXT, "name of the table"),
            col(
                "part",
                ANY,
                "start of its rows: a string, or an integer / 2^16, / 2^6 if they hold a blob",
            ),
            col("rows", COUNT, "number of rows"),
            col("checksum", NUMBER, "sum of their SipHash-2-4, modulo 2^64, signed"),
        ],
        "name, part",
    ),
];

/// Marks are looked up by kind and start.
pub(crate) const MARKS_INDEX: &str = "CREATE INDEX marks_by_start ON marks(kind, first_cycle)";

/// Tables of copies between replicas; left out of a report without such copies.
pub(crate) const RING_TABLES: [&str; 2] = ["replica_rings", "replica_ring_programs"];
/// Tables of replicas that differ; left out of a report in which all are alike.
pub(crate) const REPLICA_TABLES: [&str; 5] =
    ["replica_classes", "replicas", "replica_joins", "replica_lanes", REPLICA_MARK_CHUNKS];

/// Tables of a trace index, in a report or in a cache beside it.
pub(crate) const TRACE_TABLES: &[&str] = &[
    "trace_lanes",
    "trace_chunks",
    "trace_details",
    "trace_nodes",
    "trace_totals",
    "trace_lengths",
    "trace_sync_points",
    "trace_exchange_order",
    "trace_beside",
    "trace_path_programs",
    PATH_INDEX,
];

/// Every table and column as Markdown, for `docs/format.md`.
pub fn document() -> String {
    let mut text = String::new();
    for table in TABLES {
        text += &document_columns(table.name, &sentence(table.about), table.columns);
        if !table.key.is_empty() {
            text += &format!("\nPrimary key: {}.\n", table.key);
        }
        text.push('\n');
    }
    for view in VIEWS {
        let about = format!("A view. {}", sentence(view.about));
        text += &document_columns(view.name, &about, view.columns);
        text.push('\n');
    }
    text
}

fn document_columns(name: &str, about: &str, columns: &[SchemaColumn]) -> String {
    let mut text =
        format!("### `{name}`\n\n{about}.\n\n| column | SQL | unit | holds |\n|---|---|---|---|\n");
    for SchemaColumn { name, declaration, unit, about } in columns {
        text += &format!("| `{name}` | {declaration} | {unit} | {about} |\n");
    }
    text
}

/// The text with a capital first letter.
pub fn sentence(about: &str) -> String {
    let mut letters = about.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The columns of a table or view; empty for one that this version does not know.
pub fn columns_of(name: &str) -> &'static [SchemaColumn] {
    let view = VIEWS.iter().find(|view| view.name == name).map(|view| view.columns);
    find(name).map(|table| table.columns).or(view).unwrap_or_default()
}

/// The description of a row of a table or view.
pub fn about(name: &str) -> Option<&'static str> {
    let view = VIEWS.iter().find(|view| view.name == name).map(|view| view.about);
    find(name).map(|table| table.about).or(view)
}

/// The table named `name`.
pub(crate) fn find(name: &str) -> Option<&'static SchemaTable> {
    TABLES.iter().find(|table| table.name == name)
}

impl SchemaTable {
    /// The statement that creates it.
    pub(crate) fn create(&self) -> String {
        let mut parts: Vec<String> =
            self.columns.iter().map(|c| format!("\"{}\" {}", c.name, c.declaration)).collect();
        let clustered = if self.key.is_empty() { "" } else { " WITHOUT ROWID" };
        if !self.key.is_empty() {
            parts.push(format!("PRIMARY KEY ({})", self.key));
        }
        format!("CREATE TABLE {} ({}){clustered}", self.name, parts.join(", "))
    }

    /// The statement that inserts a row of all columns.
    pub(crate) fn insert(&self) -> String {
        format!("INSERT INTO {} VALUES ({})", self.name, vec!["?"; self.columns.len()].join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    #[test]
    fn every_table_and_view_can_be_created() {
        let db = Connection::open_in_memory().unwrap();
        for table in TABLES {
            db.execute(&table.create(), []).unwrap();
            db.prepare(&table.insert()).unwrap();
        }
        for view in VIEWS {
            db.execute(&view.create(), []).unwrap();
            db.prepare(&format!("SELECT * FROM {}", view.name)).unwrap();
        }
    }

    #[test]
    fn every_number_has_a_unit() {
        let tables = TABLES.iter().map(|table| (table.name, table.columns));
        for (name, columns) in tables.chain(VIEWS.iter().map(|view| (view.name, view.columns))) {
            for column in columns {
                let is_number = matches!(column.kind(), ColumnType::Integer | ColumnType::Real);
                assert_eq!(is_number, !column.unit.is_empty(), "{name}.{}", column.name);
            }
        }
    }

    #[test]
    fn nothing_is_listed_twice() {
        for (i, table) in TABLES.iter().enumerate() {
            assert!(TABLES[..i].iter().all(|other| other.name != table.name), "{}", table.name);
            for (j, column) in table.columns.iter().enumerate() {
                let mut before = table.columns[..j].iter();
                assert!(before.all(|c| c.name != column.name), "{}.{}", table.name, column.name);
            }
        }
    }
}
