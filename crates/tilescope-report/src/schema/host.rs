//! Tables of the host: the data that it feeds to replicas, its rates, and the waits of replicas.

use super::{
    BYTES, COUNT, CYCLES, FLAG, KEY, NUMBER, SAMPLES_PER_SECOND, SECONDS, SchemaTable, TEXT, col,
    table,
};

pub(super) const HOST_RATES: SchemaTable = table(
    "host_rates",
    "samples per second of a part of the work; since version 2.2",
    &[
        col("id", KEY, "position"),
        col("source", TEXT, "loader_alone, synthetic_data or real_data"),
        col("samples_per_second", SAMPLES_PER_SECOND, "of all replicas"),
        col("bottleneck", TEXT, "loader, host_link, callbacks, host_call, host_copies or ipu"),
    ],
    "",
);

pub(super) const HOST_CALL_PARTS: SchemaTable = table(
    "host_call_parts",
    "a part of a host call; since version 2.2",
    &[
        col("id", KEY, "position"),
        col("part", TEXT, "loader, framework, launch, handshake, program or return"),
        col("seconds", SECONDS, "their sum is the length of the run"),
    ],
    "",
);

pub(super) const HOST_TENSORS: SchemaTable = table(
    "host_tensors",
    "a tensor that a host call of one instance takes or returns; since version 2.2",
    &[
        col("id", KEY, "position"),
        col("name", TEXT, "the tensor"),
        col("is_input", FLAG, "1 if the call takes it, 0 if it returns it"),
        col("element_type", TEXT, "as transferred: float16"),
        col("shape", TEXT, "JSON: [800, 1, 128, 128]"),
        col("bytes", BYTES, "its size"),
    ],
    "",
);

pub(super) const HOST_EPOCHS: SchemaTable = table(
    "host_epochs",
    "equal epochs; since version 2.2",
    &[
        col("id", KEY, "position"),
        col("epochs", COUNT, "number of equal epochs"),
        col("calls", COUNT, "host calls of one epoch"),
        col("samples", COUNT, "samples that it processes"),
        col("left_out", COUNT, "samples that it leaves out"),
        col("seconds", SECONDS, "its length"),
    ],
    "",
);

pub(super) const REPLICA_WAITS: SchemaTable = table(
    "replica_waits",
    "waits of consecutive replicas, for each of them; no rows if all are equal; since version 2.3",
    &[
        col("id", KEY, "position"),
        col("first_replica", NUMBER, "the first of them, over all instances"),
        col("replicas", COUNT, "number of these replicas"),
        col("instance", NUMBER, "host process of these replicas"),
        col("loader_cycles", CYCLES, "until the loader has the samples of the call"),
        col(
            "host_cycles",
            CYCLES,
            "until the host has prepared their own buffers, on all IPUs of a replica",
        ),
        col("others_cycles", CYCLES, "for replicas that arrive later, on all IPUs of a replica"),
        col("behind_least", CYCLES, "fewest cycles after the first replica at the common sync"),
        col("behind_most", CYCLES, "most cycles after the first replica"),
    ],
    "",
);
