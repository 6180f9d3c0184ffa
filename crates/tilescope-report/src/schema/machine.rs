//! Tables of the machine: its parts, its bandwidths and compute rates, and its running costs.

use super::{
    BYTES, BYTES_PER_CYCLE, COST, COUNT, CYCLES, FLAG, FLOPS_PER_CYCLE, HERTZ, KEY, MEASURED,
    NUMBER, RATIO, SchemaTable, TEXT, col, table,
};

pub(super) const TARGET: SchemaTable = table(
    "target",
    "the machine; one row",
    &[
        col("kind", TEXT, "IPU or IPU_MODEL"),
        col("name", TEXT, "name in a spec: mk2"),
        col("architecture", TEXT, "generation: Mk2"),
        col("num_ipus", COUNT, "IPUs over all replicas"),
        col("tiles_per_ipu", COUNT, "tiles of one IPU"),
        col("io_tiles_per_ipu", COUNT, "tiles reserved for I/O, the last of an IPU"),
        col("bytes_per_tile", BYTES, "memory of one tile"),
        col("clock_hz", HERTZ, "tile clock"),
        col("replicas", COUNT, "copies of the program"),
        col("ipus_per_replica", COUNT, "IPUs of this report"),
        col("memory_element_bytes", BYTES, "bank of non-interleaved memory"),
        col("interleaved_offset", BYTES, "address where interleaved memory begins"),
        col("tiles_per_column", COUNT, "tiles in a column of the floor plan"),
        col(
            "physical_numbers",
            FLAG,
            "1 if tiles are numbered column by column of the floor plan; else their numbers wind \
             through it; since version 2.7",
        ),
    ],
    "",
);

pub(super) const MACHINE_CHANGES: SchemaTable = table(
    "machine_changes",
    "a constant that differs from the machine of target.name, or that the simulation was \
     calibrated with; no rows for an unchanged machine; since version 2.4",
    &[
        col("id", KEY, "position"),
        col(
            "key",
            TEXT,
            "name in a spec, below target.machine; calibration. in front: below target.calibration",
        ),
        col("title", TEXT, "display name"),
        col(
            "unit",
            TEXT,
            "count, bytes, hertz, cycles, seconds, bytes_per_cycle, bytes_per_second, \
             cycles_per_byte or cycles_per_word",
        ),
        col("inherited", MEASURED, "value of the unchanged machine, or of its simulation"),
        col("value", MEASURED, "value of this machine"),
    ],
    "",
);

pub(super) const RUNNING_COSTS: SchemaTable = table(
    "running_costs",
    "running costs of a part of the machine; a kind without rows is unknown; since version 2.4",
    &[
        col("id", KEY, "position"),
        col("kind", TEXT, "power: watts; price: money per hour"),
        col("part", TEXT, "name of the part: IPU-M2000"),
        col("count", COUNT, "number of these parts that the IPUs of the program are in"),
        col("each", COST, "watts, or money per hour, of one part"),
        col("currency", TEXT, "three letters; NULL for power"),
        col("basis", TEXT, "given: by the spec; published; assumed"),
        col("source", TEXT, "source of the figure"),
    ],
    "",
);

pub(super) const BANDWIDTHS: SchemaTable = table(
    "bandwidths",
    "maximum rate of an interface of the machine; since version 2.1",
    &[
        col("id", KEY, "position"),
        col(
            "interface",
            TEXT,
            "tile: data that a tile receives or sends; tile_send: data that it sends, since \
             version 2.6; ipu_links: data into or out of an IPU over all its links; host, \
             remote_buffer: data between those and an IPU; ladder_links, pair_links, gateways: \
             data one way up or down the ladder, to the other IPU of a pair, or between racks",
        ),
        col("bytes_per_cycle", BYTES_PER_CYCLE, "maximum bytes per cycle"),
    ],
    "",
);

pub(super) const COMPUTE_RATES: SchemaTable = table(
    "compute_rates",
    "peak of an engine of a tile; since version 2.6",
    &[
        col("id", KEY, "position"),
        col(
            "engine",
            TEXT,
            "amp: accumulating matrix products; vector: vector units of the workers",
        ),
        col("input", TEXT, "type of operands: quarter, half or float"),
        col("partials", TEXT, "type of sums: quarter, half or float"),
        col(
            "flops_per_cycle",
            FLOPS_PER_CYCLE,
            "maximum floating point operations per cycle; a multiply-accumulate counts as two",
        ),
    ],
    "",
);

pub(super) const ACTION_COSTS: SchemaTable = table(
    "action_costs",
    "an action of the machine that always takes the same time; since version 2.5",
    &[
        col("id", KEY, "position"),
        col(
            "action",
            TEXT,
            "external_sync: a sync of several IPUs, after the last one has arrived; stream_begin, \
             stream_end: before and after the transfer of a stream copy with the host",
        ),
        col("cycles", CYCLES, "its length"),
    ],
    "",
);

pub(super) const SYNC_GROUPS: SchemaTable = table(
    "sync_groups",
    "an IPU of a replica that waits for others; no rows if a replica has one IPU; since version \
     2.3",
    &[
        col("id", KEY, "position"),
        col("sync_group", TEXT, "GS1: copies between IPUs; GS2: the host, streaming memory"),
        col("part", NUMBER, "the part of GS2; parts wait independently. 0 in GS1"),
        col("ipu", NUMBER, "IPU of the replica"),
    ],
    "",
);

pub(super) const ERROR_BANDS: SchemaTable = table(
    "error_bands",
    "errors of predictions of a kind of operation; since version 2.2",
    &[
        col("id", KEY, "position"),
        col("kind", TEXT, "operations.kind; NULL: programs without an operation"),
        col(
            "basis",
            TEXT,
            "measured: operations of the kind were measured; formula: published formulas; links: \
             rates of links, streaming memory and host; assumed: nothing published",
        ),
        col("rows", COUNT, "measured operations that it is based on"),
        col("cycles_low", RATIO, "true cycles / predicted cycles, 5th percentile"),
        col("cycles_high", RATIO, "the same, 95th percentile"),
        col("bytes_low", RATIO, "true bytes / predicted bytes, 5th percentile"),
        col("bytes_high", RATIO, "the same, 95th percentile"),
    ],
    "",
);

pub(super) const PROGRAM_ERRORS: SchemaTable = table(
    "program_errors",
    "errors of figures of a whole program, in addition to those of its operations; since version \
     2.9",
    &[
        col("id", KEY, "position"),
        col(
            "source",
            TEXT,
            "program: all programs; copies: between layouts; formulas: kinds without measurements; \
             odd_rows: rows that end inside a vector; host: its copies and loaders; host_calls: \
             time of its framework; imported: operators of a file; fullest_tile: its bytes; code: \
             code on it; replica_code: code that replicas add, of all code of a replicated program",
        ),
        col("rows", COUNT, "published figures that it is based on; 0: assumed"),
        col(
            "low",
            RATIO,
            "true / predicted cycles or bytes of a program of only this, 5th percentile",
        ),
        col("high", RATIO, "the same, 95th percentile"),
    ],
    "",
);
