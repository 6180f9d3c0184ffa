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
        col("io_tiles_per_ipu", COUNT, "the last of them, set aside for I/O"),
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
    "a constant in which the machine differs from the one of target.name, or that its simulation was \
     calibrated with; none for a machine that can be bought, simulated as it comes; since version 2.4",
    &[
        col("id", KEY, "position"),
        col(
            "key",
            TEXT,
            "name in a spec, below target.machine; calibration. in front: below target.calibration",
        ),
        col("title", TEXT, "name for people"),
        col(
            "unit",
            TEXT,
            "count, bytes, hertz, cycles, seconds, bytes_per_cycle, bytes_per_second, \
             cycles_per_byte or cycles_per_word",
        ),
        col("inherited", MEASURED, "value of the machine of that name, or of its simulation"),
        col("value", MEASURED, "value of this machine"),
    ],
    "",
);

pub(super) const RUNNING_COSTS: SchemaTable = table(
    "running_costs",
    "running costs of a part of the machine; no rows of a kind: unknown; since version 2.4",
    &[
        col("id", KEY, "position"),
        col("kind", TEXT, "power: watts; price: money per hour"),
        col("part", TEXT, "name of the part: IPU-M2000"),
        col("count", COUNT, "how many of them the program's IPUs are in"),
        col("each", COST, "watts, or money per hour, of one"),
        col("currency", TEXT, "three letters; NULL for power"),
        col("basis", TEXT, "given: by the spec; published; assumed"),
        col("source", TEXT, "where the figure comes from"),
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
            "tile: what a tile receives or sends; tile_send: what it sends, since version \
             2.6; ipu_links: what goes into or out of an IPU over all its links; host, \
             remote_buffer: what goes between those and an IPU; ladder_links, pair_links, \
             gateways: what goes one way up or down the ladder, to the other IPU of a pair, or \
             between racks",
        ),
        col("bytes_per_cycle", BYTES_PER_CYCLE, "most bytes per cycle"),
    ],
    "",
);

pub(super) const COMPUTE_RATES: SchemaTable = table(
    "compute_rates",
    "how fast an engine of a tile is; since version 2.6",
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
            "most floating point operations per cycle; a multiply-accumulate counts as two",
        ),
    ],
    "",
);

pub(super) const ACTION_COSTS: SchemaTable = table(
    "action_costs",
    "something that the machine does now and then, and that always takes as long; since version \
     2.5",
    &[
        col("id", KEY, "position"),
        col(
            "action",
            TEXT,
            "external_sync: a sync of several IPUs, after the last one has come; stream_begin, \
             stream_end: before and after the transfer of a stream copy with the host",
        ),
        col("cycles", CYCLES, "its length"),
    ],
    "",
);

pub(super) const SYNC_GROUPS: SchemaTable = table(
    "sync_groups",
    "an IPU of a replica that waits for others; none where a replica is one IPU; since version \
     2.3",
    &[
        col("id", KEY, "position"),
        col("sync_group", TEXT, "GS1: copies between IPUs; GS2: the host, streaming memory"),
        col("part", NUMBER, "each part of GS2 waits by itself; 0 in GS1"),
        col("ipu", NUMBER, "IPU of the replica"),
    ],
    "",
);

pub(super) const ERROR_BANDS: SchemaTable = table(
    "error_bands",
    "how far predictions of a kind of operation may be off; since version 2.2",
    &[
        col("id", KEY, "position"),
        col("kind", TEXT, "operations.kind; NULL: programs of no operation"),
        col(
            "basis",
            TEXT,
            "measured: operations of the kind were measured; formula: published formulas; links: \
             rates of links, streaming memory and host; assumed: nothing published",
        ),
        col("rows", COUNT, "measured operations it is taken from"),
        col("cycles_low", RATIO, "true cycles over predicted ones, below in one case of twenty"),
        col("cycles_high", RATIO, "the same, above in one case of twenty"),
        col("bytes_low", RATIO, "true bytes over predicted ones, below in one case of twenty"),
        col("bytes_high", RATIO, "the same, above in one case of twenty"),
    ],
    "",
);

pub(super) const PROGRAM_ERRORS: SchemaTable = table(
    "program_errors",
    "how far figures of a whole program may be off, beside the errors of its operations; since \
     version 2.9",
    &[
        col("id", KEY, "position"),
        col(
            "source",
            TEXT,
            "program: all programs; copies: between layouts; formulas: kinds without measurements; \
             odd_rows: rows that end inside a vector; host: its copies and loaders; host_calls: \
             what its framework takes; imported: operators of a file; fullest_tile: its bytes; \
             code: code on it; replica_code: code that replicas add, of all code of a replicated \
             program",
        ),
        col("rows", COUNT, "published figures it is taken from; 0: assumed"),
        col(
            "low",
            RATIO,
            "true cycles or bytes over predicted ones of a program of nothing else, \
             below in one case of twenty",
        ),
        col("high", RATIO, "the same, above in one case of twenty"),
    ],
    "",
);
