//! Views of a `profile.pop` in place of tables of Poplar, or of our versions before 2.0.

use super::{
    BYTES, COUNT, CYCLES, END_TILE, EVERY, FIRST_TILE, ID, NUMBER, SchemaColumn, TILE_SAMPLES,
    TIMES, col,
};

/// A view in place of a table of Poplar's files, or of ours before version 2.0, derived from other
/// tables.
pub(crate) struct SchemaView {
    pub name: &'static str,
    /// A description of a row.
    pub about: &'static str,
    /// Its columns in order, without declarations.
    pub columns: &'static [SchemaColumn],
    /// The query for its rows.
    pub select: &'static str,
}

const fn view(
    name: &'static str,
    about: &'static str,
    columns: &'static [SchemaColumn],
    select: &'static str,
) -> SchemaView {
    SchemaView { name, about, columns, select }
}

/// The first columns of a view of runs, from row `r` of the pattern of `o`.
macro_rules! runs {
    ($id:literal, $owners:literal, [$($value:literal),*]) => {
        concat!(
            "SELECT o.", $id, ", o.base_tile + json_extract(r.value, '$[0]'), \
             o.base_tile + json_extract(r.value, '$[1]'), json_extract(r.value, '$[2]'), \
             json_extract(r.value, '$[3]')",
            $(", json_extract(r.value, '$[", $value, "]')",)*
            " FROM ", $owners, " o JOIN tile_patterns p ON p.id = o.pattern, json_each(p.runs) r"
        )
    };
}

/// All views, in the order they are created.
pub(crate) const VIEWS: &[SchemaView] = &[
    view(
        "compute_set_cycles",
        "cycles of a compute set on equal tiles",
        &[
            col("compute_set", ID, "compute_sets.compute_set"),
            FIRST_TILE,
            END_TILE,
            EVERY,
            TIMES,
            col("cycles", CYCLES, "cycles of each tile, the same in every execution"),
        ],
        runs!("compute_set", "compute_sets", [4]),
    ),
    view(
        "vertex_tiles",
        "tiles of the vertices of a group",
        &[
            col("vertex_group", ID, "vertex_groups.id"),
            FIRST_TILE,
            END_TILE,
            EVERY,
            TIMES,
            col("count", COUNT, "vertices on each tile"),
        ],
        runs!("id", "vertex_groups", [4]),
    ),
    view(
        "exchange_tiles",
        "exchange of equal tiles",
        &[
            col("exchange", ID, "exchanges.id"),
            FIRST_TILE,
            END_TILE,
            EVERY,
            TIMES,
            col("bytes_in", BYTES, "bytes received by each tile"),
            col("bytes_out", BYTES, "bytes sent by each tile; a multicast counts once"),
            col("bytes_delivered", BYTES, "bytes sent x number of receivers"),
            col("messages_in", COUNT, "messages received"),
            col("messages_out", COUNT, "messages sent; a multicast counts once"),
            col("code_bytes", BYTES, "exchange code"),
        ],
        runs!("id", "exchanges", [4, 5, 6, 7, 8, 9]),
    ),
    view(
        "var_tiles",
        "the part of a variable that lies on equal tiles",
        &[
            col("var", ID, "vars.id"),
            FIRST_TILE,
            END_TILE,
            EVERY,
            TIMES,
            col("bytes", BYTES, "bytes on each tile"),
        ],
        runs!("id", "vars", [4]),
    ),
    // As in Poplar's files: one row per variable and tile.
    view(
        "vars_info",
        "the part of a variable that lies on a tile",
        &[
            col("id", ID, "vars.id"),
            col("name", ID, "vars_string_table.id"),
            col("tile", NUMBER, "tiles.tile"),
            col("size_bytes", BYTES, "bytes on the tile"),
            col("category", ID, "var_categories.id"),
        ],
        // The limit keeps SQLite from parsing the JSON again for every tile: 3 s instead of 30.
        "SELECT vars.id, vars.name, tiles.tile, r.bytes, vars.category
FROM (SELECT * FROM var_tiles LIMIT -1) r JOIN vars ON vars.id = r.var
CROSS JOIN tiles ON tiles.tile >= r.first_tile
AND tiles.tile < r.end_tile + r.every * (r.times - 1)
AND (tiles.tile - r.first_tile) % r.every < r.end_tile - r.first_tile",
    ),
];

impl SchemaView {
    /// The statement that creates it.
    pub(crate) fn create(&self) -> String {
        let columns: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        format!("CREATE VIEW {} ({}) AS\n{}", self.name, columns.join(", "), self.select)
    }
}

/// Views in place of tables whose rows are stored as columns. An empty table would answer a query
/// with no rows, as if there were none. These views read from a name that does not exist, and
/// SQLite's error message shows that name.
pub(crate) fn views_without_rows() -> String {
    let how =
        "a run of this length has no rows of them; ask with: tilescope query REPORT 'SELECT ...'";
    TABLES_WITHOUT_ROWS
        .map(|table| {
            format!("DROP TABLE {table}; CREATE VIEW {table} AS SELECT * FROM \"{table}: {how}\";")
        })
        .concat()
}

/// A view in place of the samples of tiles, which are never stored as rows.
pub(crate) fn view_of_samples() -> String {
    let how = "its rows are compressed columns; ask with: tilescope query REPORT 'SELECT ...'";
    format!("CREATE VIEW {TILE_SAMPLES} AS SELECT * FROM \"{TILE_SAMPLES}: {how}\";")
}
/// Tables without rows in a report with steps as columns.
const TABLES_WITHOUT_ROWS: [&str; 3] = ["steps", "steps_by_ipu", "marks"];

/// Tables of other files: the views, which except for `vars_info` were tables before version 2.0,
/// and `var_addresses`, now replaced by `addresses`.
pub(crate) fn tables_of_other_files() -> impl Iterator<Item = &'static str> {
    VIEWS.iter().map(|view| view.name).chain(["var_addresses"])
}
