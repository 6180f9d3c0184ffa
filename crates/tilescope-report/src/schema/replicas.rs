//! Tables of replicas: rings in which they exchange data, and classes of replicas that differ.

use super::{
    BLOB, COUNT, CYCLES, ID, KEY, NUMBER, REPLICA_MARK_CHUNKS, SHARE, SchemaTable, TEXT, col, table,
};

pub(super) const RINGS: SchemaTable = table(
    "replica_rings",
    "replicas that exchange data in a ring, and parallel rings; this table and the next are absent \
     if replicas exchange no data; since version 2.4",
    &[
        col("id", KEY, "position"),
        col("ring_order", TEXT, "flat: 0, 1, 2, 3; interleaved: 0, 2, 3, 1; serpent: 0, 1, 3, 2"),
        col(
            "links",
            TEXT,
            "ladder: IPU-Links, a ladder with two ends; closed_ladder: its ends are joined; \
             gateways: between racks",
        ),
        col("ranks", COUNT, "replicas of one ring"),
        col("spacing", COUNT, "distance from one of them to the next, in numbers"),
        col("clockwise", SHARE, "share of a replica's sent data that goes to the next one"),
    ],
    "",
);

pub(super) const RING_PROGRAMS: SchemaTable = table(
    "replica_ring_programs",
    "a copy between replicas; since version 2.4",
    &[col("program", KEY, "programs.id"), col("ring", ID, "replica_rings.id")],
    "",
);

pub(super) const CLASSES: SchemaTable = table(
    "replica_classes",
    "replicas with the same steps at the same cycles; this table and the others of replicas that \
     differ are absent if all are identical; since version 2.4",
    &[
        col(
            "id",
            KEY,
            "its number; replica 0 is in class \
                      0",
        ),
        col("why", TEXT, "difference between them"),
    ],
    "",
);

pub(super) const MEMBERS: SchemaTable = table(
    "replicas",
    "a replica, if replicas differ; since version 2.4",
    &[col("id", KEY, "its number over all instances"), col("class", ID, "replica_classes.id")],
    "",
);

pub(super) const JOINS: SchemaTable = table(
    "replica_joins",
    "a program whose steps end at the same cycle on all replicas, if replicas differ; since \
     version 2.4",
    &[col("program", KEY, "programs.id")],
    "",
);

pub(super) const LANES: SchemaTable = table(
    "replica_lanes",
    "a lane of replicas that differ from replica 0; its pieces are in the tables of the others; \
     since version 2.4",
    &[
        col("lane", KEY, "class * 8,192 + ipu * 8 + sub_lane"),
        col("class", ID, "replica_classes.id"),
        col("ipu", NUMBER, "IPU of the replica"),
        col("sub_lane", NUMBER, "as in trace_lanes"),
        col("steps", COUNT, "number of steps"),
        col("first_cycle", CYCLES, "start of the first step"),
        col("end_cycle", CYCLES, "end of the last step"),
        col("expectations", BLOB, "as in trace_lanes"),
    ],
    "",
);

pub(super) const MARK_CHUNKS: SchemaTable = table(
    REPLICA_MARK_CHUNKS,
    "marks of one kind on one IPU of replicas that differ from replica 0; since version 2.4",
    &[
        col("id", KEY, "position"),
        col("class", ID, "replica_classes.id"),
        col("kind", TEXT, "marks.kind: stage or update"),
        col("ipu", NUMBER, "marks.ipu"),
        col("first_cycle", CYCLES, "start of the first"),
        col("end_cycle", CYCLES, "end of the last"),
        col("rows", COUNT, "number of marks"),
        col("data", BLOB, "compressed columns of marks"),
    ],
    "",
);
