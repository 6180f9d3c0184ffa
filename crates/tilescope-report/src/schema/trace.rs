//! Tables of the execution trace: steps and marks as rows, as compressed columns, and their index.

use super::{
    BLOB, BYTES, COUNT, CYCLES, ID, KEY, NUMBER, SHARE, SchemaTable, TEXT, TEXT_KEY, col, table,
};

pub(super) const STEPS: SchemaTable = table(
    "steps",
    "an executed step",
    &[
        col("id", KEY, "its id, counted over all runs"),
        col("type", TEXT, "type of its program"),
        col("program", ID, "programs.id"),
        col("compute_set", ID, "compute_sets.compute_set"),
    ],
    "",
);

pub(super) const STEPS_BY_IPU: SchemaTable = table(
    "steps_by_ipu",
    "a step on one IPU",
    &[
        col("step_id", ID, "steps.id"),
        col("ipu", NUMBER, "IPU of the replica"),
        col("cycles", CYCLES, "active_cycles_to_max - active_cycles_from_max"),
        col("active_tiles", COUNT, "active tiles"),
        col("cycles_base", CYCLES, "cycle that the next four count from"),
        col("active_cycles_from_min", CYCLES, "the first active tile starts"),
        col("active_cycles_from_max", CYCLES, "the last active tile starts"),
        col("active_cycles_to_min", CYCLES, "the first active tile ends"),
        col("active_cycles_to_max", CYCLES, "the last active tile ends"),
        col("active_tile_balance", SHARE, "mean active duration / longest"),
        col("tile_balance", SHARE, "active_tile_balance x active tiles / tiles"),
        col("bytes_in", BYTES, "bytes received by its tiles"),
        col("bytes_out", BYTES, "bytes sent by its tiles"),
        col("sub_lane", NUMBER, "0 for compute tiles, higher for those beside them"),
    ],
    "step_id, ipu, sub_lane",
);

pub(super) const EXECUTION_CYCLE_TOTALS: SchemaTable = table(
    "execution_cycle_totals",
    "cycles from the start of the trace to the end of its last step; one row",
    &[col("total", CYCLES, "cycles, including waits for the host")],
    "",
);

pub(super) const MARKS: SchemaTable = table(
    "marks",
    "a named range of the trace",
    &[
        col("id", KEY, "position"),
        col("kind", TEXT, "run, iteration, phase, slot, stage, update, loader or callback"),
        col("label", TEXT, "display text"),
        col("ipu", NUMBER, "IPU; NULL for all"),
        col("pass", TEXT, "pass of a stage"),
        col("number", NUMBER, "micro-batch, iteration or slot"),
        col("first_step", ID, "steps.id of the first step"),
        col("end_step", ID, "steps.id after the last step"),
        col("first_cycle", CYCLES, "its start"),
        col("end_cycle", CYCLES, "its end"),
    ],
    "",
);

pub(super) const MARK_KINDS: SchemaTable = table(
    "mark_kinds",
    "marks of one kind",
    &[
        col("kind", TEXT_KEY, "marks.kind"),
        col("count", COUNT, "number of marks"),
        col("longest_cycles", CYCLES, "length of the longest"),
    ],
    "",
);

pub(super) const TRACE_LANES: SchemaTable = table(
    "trace_lanes",
    "a lane of the trace index (crates/tilescope-report/src/trace)",
    &[
        col("lane", KEY, "ipu * 8 + sub_lane"),
        col("ipu", NUMBER, "IPU of the replica"),
        col("sub_lane", NUMBER, "steps_by_ipu.sub_lane"),
        col("steps", COUNT, "number of steps"),
        col("first_cycle", CYCLES, "start of the first step"),
        col("end_cycle", CYCLES, "end of the last step"),
        col("expectations", BLOB, "expected properties of each program"),
    ],
    "",
);

pub(super) const TRACE_CHUNKS: SchemaTable = table(
    "trace_chunks",
    "4,096 steps of a lane",
    &[col("id", KEY, "lane * 2^40 + position"), col("data", BLOB, "compressed columns")],
    "",
);

pub(super) const TRACE_DETAILS: SchemaTable = table(
    "trace_details",
    "data that a chunk omits; only if the steps have no rows",
    &[col("id", KEY, "as in trace_chunks"), col("data", BLOB, "compressed columns")],
    "",
);

pub(super) const TRACE_NODES: SchemaTable = table(
    "trace_nodes",
    "1,024 nodes of the pyramid over a lane",
    &[
        col("id", KEY, "lane * 2^40 + level * 2^32 + position"),
        col("data", BLOB, "compressed columns"),
    ],
    "",
);

pub(super) const TRACE_TOTALS: SchemaTable = table(
    "trace_totals",
    "totals by program of 2^18 * 16^level steps of a lane; since version 1.1",
    &[
        col("id", KEY, "lane * 2^40 + level * 2^32 + position"),
        col("data", BLOB, "compressed columns"),
    ],
    "",
);

pub(super) const TRACE_LENGTHS: SchemaTable = table(
    "trace_lengths",
    "the entries of `trace_totals` by length of their steps; since version 2.11",
    &[
        col("id", KEY, "trace_totals.id"),
        col("data", BLOB, "compressed sums, by bucket of the lengths of each entry"),
    ],
    "",
);

pub(super) const TRACE_EXCHANGE_ORDER: SchemaTable = table(
    "trace_exchange_order",
    "the steps before exchanges of a long lane, counted; since version 2.10",
    &[
        col("id", KEY, "trace_lanes.lane or replica_lanes.lane"),
        col("data", BLOB, "compressed sums by exchange and its previous step"),
    ],
    "",
);

pub(super) const TRACE_SYNC_POINTS: SchemaTable = table(
    "trace_sync_points",
    "1,024 points of the run at which lanes wait for each other, in the order of the program; \
     the critical path follows from them; since version 2.5",
    &[col("id", KEY, "position"), col("data", BLOB, "compressed points")],
    "",
);

pub(super) const TRACE_BESIDE: SchemaTable = table(
    "trace_beside",
    "steps of a program on tiles beside the compute tiles of an IPU; since version 2.5",
    &[
        col("id", KEY, "position"),
        col("lane", ID, "trace_lanes.lane"),
        col("program", ID, "programs.id"),
        col("type", TEXT, "steps.type"),
        col("stream", TEXT, "other end of a stream copy: host or remote_buffer"),
        col(
            "hidden_cycles",
            CYCLES,
            "their cycles during which the compute tiles work; NULL if unknown",
        ),
    ],
    "",
);

pub(super) const TRACE_PATH_PROGRAMS: SchemaTable = table(
    "trace_path_programs",
    "share of a program's steps on a lane in the critical path of the run; since version 2.8",
    &[
        col("id", KEY, "position"),
        col("lane", ID, "trace_lanes.lane or replica_lanes.lane"),
        col("program", ID, "programs.id"),
        col("type", TEXT, "steps.type"),
        col("stream", TEXT, "other end of a stream copy: host or remote_buffer"),
        col("steps", COUNT, "number of these steps on the path"),
        col("cycles", CYCLES, "cycles of the path on them"),
        col("position", NUMBER, "position on the lane of a representative step"),
        col("longest_cycles", CYCLES, "cycles of that step on the path; 0 if unknown"),
    ],
    "",
);

pub(super) const TRACE_PATH_INDEX: SchemaTable = table(
    super::PATH_INDEX,
    "the critical path of a long run, derived from all sync points: first sums, then states of the \
     walk after blocks of them; since version 2.10",
    &[col("id", KEY, "position"), col("data", BLOB, "compressed sums or states")],
    "",
);

pub(super) const MARK_CHUNKS: SchemaTable = table(
    super::MARK_CHUNKS,
    "marks of one kind on one IPU, if there are too many for rows; since version 2.0",
    &[
        col("id", KEY, "position"),
        col("kind", TEXT, "marks.kind"),
        col("ipu", NUMBER, "marks.ipu"),
        col("first_cycle", CYCLES, "start of the first"),
        col("end_cycle", CYCLES, "end of the last"),
        col("rows", COUNT, "number of marks"),
        col("data", BLOB, "compressed columns of marks"),
    ],
    "",
);

pub(super) const MARK_ROWS: SchemaTable = table(
    super::MARK_ROWS,
    "marks of a kind, or stages and weight updates of an IPU, if more than 4,096; since version \
     2.10",
    &[
        col("id", KEY, "position"),
        col("class", NUMBER, "replica_classes.id; 0 if all replicas are identical"),
        col("kind", TEXT, "marks.kind; NULL for stages and updates"),
        col("ipu", NUMBER, "marks.ipu; NULL for marks of all IPUs"),
        col("marks", COUNT, "number of marks"),
        col("data", BLOB, "compressed blocks of up to 4,096 of them, counted"),
        col(
            "full_slots",
            BLOB,
            "compressed counts of slots in which the pipeline is full, by block; NULL: not known; \
             since version 2.11",
        ),
    ],
    "",
);

pub(super) const MARK_BLOCKS: SchemaTable = table(
    super::MARK_BLOCKS,
    "blocks of up to 64 marks that make up a block of mark_rows; since version 2.10",
    &[
        col("id", KEY, "mark_rows.id * 2^32 + position of the block"),
        col("data", BLOB, "compressed blocks"),
    ],
    "",
);
