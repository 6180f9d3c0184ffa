//! Tables of measured tiles: the start and end of each step on each tile.

use super::{BLOB, COUNT, CYCLES, ID, KEY, NUMBER, SchemaTable, TEXT, col, table};

/// The names of the tables, which only reports of measured tiles have.
pub(crate) const SAMPLE_TABLES: [&str; 2] = ["sample_labels", TILE_SAMPLE_CHUNKS];
/// The table of samples, whose rows are stored as compressed columns.
pub(crate) const TILE_SAMPLES: &str = "tile_samples";
/// The table of those columns.
pub(crate) const TILE_SAMPLE_CHUNKS: &str = "tile_sample_chunks";

pub(super) const LABELS: SchemaTable = table(
    "sample_labels",
    "labels of measured samples of tiles; only reports of measured tiles have this table and the \
     next two; since version 2.7",
    &[
        col("id", KEY, "its id"),
        col("kind", TEXT, "exchange, compute, synchronization or idle"),
        col("operation", TEXT, "operation that the tile worked for"),
        col("kernel", TEXT, "vertex type that it ran; empty for none"),
        col("metadata", TEXT, "metadata of the user, JSON: {\"rows\": \"16\"}"),
    ],
    "",
);

pub(super) const SAMPLES: SchemaTable = table(
    TILE_SAMPLES,
    "a step of a tile, from its own cycle counter; tile_sample_chunks stores the rows, compressed \
     like marks; since version 2.7",
    &[
        col("step", ID, "steps.id"),
        col("tile", NUMBER, "tiles.tile"),
        col("label", ID, "sample_labels.id"),
        col("phase", NUMBER, "number of the phase of the program"),
        col("epoch", NUMBER, "number of earlier executions of the program"),
        col("local_index", NUMBER, "number of the step on its tile"),
        col("first_cycle", CYCLES, "its start"),
        col("cycles", CYCLES, "its length"),
        col("exchange_cycles", CYCLES, "planned cycles of the exchange on this tile; NULL: none"),
        col(
            "activities",
            BLOB,
            "planned busy periods of the tile in an exchange, each three LEB128: 0 send, 1 receive \
             or 2 partner busy; first and end cycle in the exchange; NULL: none",
        ),
    ],
    "",
);

pub(super) const CHUNKS: SchemaTable = table(
    TILE_SAMPLE_CHUNKS,
    "samples of consecutive steps; since version 2.7",
    &[
        col("id", KEY, "position"),
        col("first_step", ID, "step of the first"),
        col("last_step", ID, "step of the last, which may continue in the next row"),
        col("rows", COUNT, "number of samples"),
        col("data", BLOB, "compressed columns of tile_samples"),
    ],
    "",
);
