//! The mechanisms of the machine and the host that take cycles, and the options that determine how
//! many.
//!
//! This is the only such list: analysis knows options by their keys, as text. A test compares the
//! keys with those of specs.

/// A mechanism of the machine or the host that takes cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    /// The loader prepares the samples of a call.
    Loader,
    /// The framework handles the call, or the program is launched.
    HostCall,
    /// Results are returned.
    HostReturn,
    /// A stream callback fills buffers.
    Callback,
    /// The host links that the IPUs of a group share move data.
    SharedHostLink,
    /// The link between the host and an IPU moves samples.
    HostInput,
    /// The link between the host and an IPU moves results.
    HostOutput,
    /// Handshake before and end after a stream copy.
    Handshake,
    StreamingMemory,
    /// The links between IPUs.
    IpuLinks,
    /// Gradients or weights are exchanged between replicas.
    Collective,
    /// The signal of a sync between IPUs.
    ExternalSync,
    /// The signal of a sync between tiles.
    InternalSync,
    /// Tiles exchange data.
    InternalExchange,
    /// Tiles change the layout of data.
    Rearrangement,
    Compute,
    /// Weights are updated.
    WeightUpdate,
    /// Nothing was recorded.
    NotRecorded,
}

/// A mechanism and the options that determine its cycles.
pub struct MechanismOptions {
    pub mechanism: Mechanism,
    /// Its name within a sentence: `the host link`.
    pub name: &'static str,
    /// Keys of a spec, the most effective first.
    pub options: &'static [&'static str],
}

const fn of(
    mechanism: Mechanism,
    name: &'static str,
    options: &'static [&'static str],
) -> MechanismOptions {
    MechanismOptions { mechanism, name, options }
}

/// Every mechanism, in the order of the enum.
pub const MECHANISMS: &[MechanismOptions] = &[
    of(
        Mechanism::Loader,
        "the loader of the host",
        &[
            "options.host.loader",
            "options.host.num_workers",
            "options.host.seconds_per_sample",
            "options.host.buffer_size",
        ],
    ),
    of(
        Mechanism::HostCall,
        "the framework on the host",
        &[
            "options.device_iterations",
            "options.host.seconds_per_framework_call",
            "options.host.seconds_per_launch",
        ],
    ),
    of(
        Mechanism::HostReturn,
        "the host to return results",
        &["options.device_iterations", "options.host.seconds_per_return", "options.output_mode"],
    ),
    of(
        Mechanism::Callback,
        "stream callbacks on the host",
        &[
            "options.host.seconds_per_micro_batch",
            "options.host.stream_callbacks_multi_thread_mode",
            "options.host.num_worker_threads",
            "options.prefetch_depth",
        ],
    ),
    of(
        Mechanism::SharedHostLink,
        "the host links, which all its IPUs share",
        &[
            "options.num_hosts",
            "options.host.shared_bytes_per_second",
            "options.input_type",
            "options.prefetch_depth",
        ],
    ),
    of(
        Mechanism::HostInput,
        "the host link",
        &[
            "options.overlap_io",
            "options.num_io_tiles",
            "options.input_type",
            "options.host.bytes_per_second",
        ],
    ),
    of(
        Mechanism::HostOutput,
        "the host link",
        &[
            "options.output_mode",
            "options.returned_outputs",
            "options.output_type",
            "options.overlap_io",
            "options.num_io_tiles",
        ],
    ),
    of(
        Mechanism::Handshake,
        "the handshake with the host",
        &[
            "options.merge_exchange",
            "options.overlap_io",
            "options.num_io_tiles",
            "model.batch_size",
            "options.output_mode",
        ],
    ),
    of(
        Mechanism::StreamingMemory,
        "streaming memory",
        &[
            "options.location.optimizer_state.on_chip",
            "options.location.weights.on_chip",
            "options.location.activations.on_chip",
            "options.location.accumulators.on_chip",
            "options.location.optimizer_state.replicated_tensor_sharding",
            "options.sync_pattern",
            "options.gradient_accumulation",
        ],
    ),
    of(
        Mechanism::IpuLinks,
        "the links between IPUs",
        &["options.stages", "options.auto_stage", "model.batch_size", "model.precision"],
    ),
    of(
        Mechanism::Collective,
        "the links between replicas",
        &[
            "options.gradient_accumulation",
            "options.merge_collectives",
            "options.replication_factor",
        ],
    ),
    of(
        Mechanism::ExternalSync,
        "the sync between IPUs",
        &["options.sync_pattern", "options.merge_exchange", "model.batch_size"],
    ),
    of(
        Mechanism::InternalSync,
        "syncs between tiles",
        &["model.batch_size", "options.enable_outlining"],
    ),
    of(
        Mechanism::InternalExchange,
        "exchange between tiles",
        &["options.available_memory_proportion", "options.partials_type", "model.precision"],
    ),
    of(
        Mechanism::Rearrangement,
        "copies that change the layout",
        &["options.available_memory_proportion", "model.batch_size"],
    ),
    of(
        Mechanism::Compute,
        "compute",
        &[
            "options.stages",
            "options.auto_stage",
            "model.precision",
            "options.partials_type",
            "options.available_memory_proportion",
            "options.recomputation",
        ],
    ),
    of(
        Mechanism::WeightUpdate,
        "the weight update",
        &["options.gradient_accumulation", "options.accumulate_outer_schedule", "model.optimizer"],
    ),
    of(Mechanism::NotRecorded, "an unrecorded cause", &[]),
];

impl Mechanism {
    /// Its entry of [`MECHANISMS`].
    pub fn entry(self) -> &'static MechanismOptions {
        MECHANISMS.iter().find(|entry| entry.mechanism == self).unwrap_or(&MECHANISMS[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mechanism_has_one_entry() {
        for (at, entry) in MECHANISMS.iter().enumerate() {
            assert_eq!(entry.mechanism as usize, at, "{} is not in order", entry.name);
        }
    }
}
