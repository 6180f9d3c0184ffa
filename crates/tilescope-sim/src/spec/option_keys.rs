//! The keys of `[options]`, `[options.host]` and `[options.location.*]`.

use super::keys::{LARGEST_SIZE, SpecKey, SpecKeyType};

const fn key(
    path: &'static str,
    form: SpecKeyType,
    default: &'static str,
    about: &'static str,
    also: &'static str,
) -> SpecKey {
    SpecKey { path, value_type: form, default, about, other_names: also }
}

macro_rules! location_on_chip {
    ($what:literal, $about:literal, $setter:literal) => {
        key(
            concat!("options.location.", $what, ".on_chip"),
            SpecKeyType::Boolean,
            "true",
            $about,
            concat!("TensorLocations.", $setter, " useOnChipStorage"),
        )
    };
}

macro_rules! location_io_tiles {
    ($what:literal, $setter:literal) => {
        key(
            concat!("options.location.", $what, ".use_io_tiles"),
            SpecKeyType::Boolean,
            "false",
            "Let the I/O tiles move what lives in streaming memory",
            concat!("TensorLocations.", $setter, " useIOTilesToLoad, useIOTilesToStore"),
        )
    };
}

macro_rules! location_min {
    ($what:literal, $setter:literal) => {
        key(
            concat!("options.location.", $what, ".min_elements_for_off_chip"),
            SpecKeyType::Integer(0, LARGEST_SIZE),
            "2",
            "Fewest elements of a tensor that leaves the chip",
            concat!("TensorLocations.", $setter, " minElementsForOffChip"),
        )
    };
}

/// Longest time a key of the host takes, in seconds.
const MAX_HOST_SECONDS: f64 = 1000.0;

/// The keys, in the order in which they are documented.
pub(super) const OPTION_KEYS: &[SpecKey] = &[
    key(
        "options.execution",
        SpecKeyType::OneOf(&["pipelined", "sharded", "phased"]),
        "\"pipelined\"",
        "How stages share the IPUs: several micro-batches at once, one after the other, or in phases whose weights come from streaming memory",
        "poptorch.PipelinedExecution / ShardedExecution / ParallelPhasedExecution",
    ),
    key(
        "options.stages",
        SpecKeyType::Stages,
        "[]",
        "Blocks of the model grouped into stages, one IPU each unless `ipu` is given; empty means `auto_stage`",
        "poptorch.Stage(...).ipu(...)",
    ),
    key(
        "options.auto_stage",
        SpecKeyType::OneOf(&["auto_increment", "same_as_ipu", "balanced"]),
        "\"auto_increment\"",
        "Stages where none are written: one per block, blocks dealt evenly over the IPUs, or the split whose longest stage is shortest",
        "poptorch.AutoStage; virtualGraphMode Auto",
    ),
    key(
        "options.pipeline_schedule",
        SpecKeyType::OneOf(&["grouped", "interleaved", "sequential"]),
        "\"grouped\"",
        "Order of forward and backward passes of a pipeline",
        "PipelineSchedule.Grouped / Interleaved / Sequential (TensorFlow)",
    ),
    key(
        "options.stash_convention",
        SpecKeyType::OneOf(&["popart", "seed"]),
        "\"popart\"",
        "Slots and stashes counted as PopART does, with 2(S-1-s)+1 entries, or as the memory guide does, with 2(S-s)+1 (interleaved: S+1)",
        "",
    ),
    key(
        "options.recomputation",
        SpecKeyType::OneOf(&["none", "auto", "checkpoints", "pipeline"]),
        "\"none\"",
        "What the backward pass computes again: nothing, each block from its inputs (auto, checkpoints), or the whole stage from its inputs",
        "autoRecomputation RecomputationType; recomputationCheckpoint",
    ),
    key(
        "options.gradient_accumulation",
        SpecKeyType::Integer(1, LARGEST_SIZE),
        "1",
        "Micro-batches per weight update",
        "poptorch.Options.Training.gradientAccumulation; accumulationFactor",
    ),
    key(
        "options.device_iterations",
        SpecKeyType::Integer(1, LARGEST_SIZE),
        "1",
        "Weight updates (or inference passes) per host call",
        "poptorch.Options.deviceIterations; batchesPerStep; steps_per_execution",
    ),
    key(
        "options.replication_factor",
        SpecKeyType::Integer(1, 256),
        "1",
        "Copies of the program that work side by side, over all instances",
        "poptorch.Options.replicationFactor; replicatedGraphCount, globalReplicationFactor",
    ),
    key(
        "options.tensor_parallel",
        SpecKeyType::PowerOfTwo(64),
        "1",
        "IPUs that take the place of each one, with the columns of linear layers split over them",
        "tensor parallel execution (popxl replica grouping)",
    ),
    key(
        "options.num_instances",
        SpecKeyType::Integer(1, 256),
        "1",
        "Host processes that share the replicas, each with a loader of its own",
        "poprun --num-instances; enableDistributedReplicatedGraphs, globalReplicaOffset",
    ),
    key(
        "options.sync_pattern",
        SpecKeyType::OneOf(&["full", "single_pipeline", "replica_and_ladder"]),
        "\"full\"",
        "Which IPUs a sync for host or streaming memory stops: all, only the one, or every other",
        "poptorch.Options.syncPattern; popart.SyncPattern",
    ),
    key(
        "options.num_io_tiles",
        SpecKeyType::Integer(0, 1470),
        "0",
        "Tiles of each IPU set aside for input and output; 0, or an even number from 32",
        "poptorch.Options.TensorLocations.numIOTiles; io_tiles.num_io_tiles",
    ),
    key(
        "options.overlap_io",
        SpecKeyType::OneOf(&["none", "inner_loop", "loops"]),
        "\"none\"",
        "Host copies of the next micro-batch beside compute: never, within a weight update, or across updates",
        "poptorch.OverlapMode; ExchangeStrategy JustInTime / OverlapInnerLoop / OverlapLoops",
    ),
    key(
        "options.prefetch_depth",
        SpecKeyType::Integer(1, 64),
        "1",
        "Micro-batches the host prepares ahead in the stream buffers",
        "defaultPrefetchBufferingDepth; IPUInfeedQueue prefetch_depth",
    ),
    key(
        "options.output_mode",
        SpecKeyType::OneOf(&["all", "final", "sum", "every_n"]),
        "\"all\"",
        "Which micro-batches send their results to the host; sum adds them up on the IPU",
        "poptorch.OutputMode; AnchorReturnType",
    ),
    key(
        "options.output_return_period",
        SpecKeyType::Integer(1, LARGEST_SIZE),
        "1",
        "Micro-batches from one sent result to the next with output mode every_n",
        "poptorch.Options.outputMode(OutputMode.EveryN, n)",
    ),
    key(
        "options.input_type",
        SpecKeyType::OneOf(&["model", "float32", "float16", "uint8"]),
        "\"model\"",
        "Element type in which samples cross from the host; the IPU casts them to the model's",
        "uint8 or half dataset with a cast in the model",
    ),
    key(
        "options.normalise_on_ipu",
        SpecKeyType::Boolean,
        "false",
        "Scale and shift the samples on the IPU instead of on the host",
        "normalisation moved into the model",
    ),
    key(
        "options.available_memory_proportion",
        SpecKeyType::RealAbove(0.0, 1.0),
        "0.6",
        "Share of a tile's memory that temporaries of one matmul or convolution may fill",
        "availableMemoryProportion",
    ),
    key(
        "options.serialize_matmul",
        SpecKeyType::OneOf(&["none", "input_channels", "reducing_dim", "output_channels"]),
        "\"none\"",
        "Compute linear layers in parts one after the other, cut along one of their dimensions where it divides evenly",
        "poptorch.SerializedMatMul mode; MatMulSerializationMode",
    ),
    key(
        "options.serialize_matmul_factor",
        SpecKeyType::Integer(2, 1024),
        "2",
        "Parts of a serialised linear layer",
        "poptorch.SerializedMatMul factor",
    ),
    key(
        "options.conv_dithering",
        SpecKeyType::Boolean,
        "false",
        "Let each convolution begin at a tile of its own, by its shape, instead of tile 0: weights are spread more evenly",
        "enableConvDithering",
    ),
    key(
        "options.partials_type",
        SpecKeyType::OneOf(&["float32", "float16"]),
        "\"float32\"",
        "Element type of partial sums inside matmuls and convolutions",
        "partialsType",
    ),
    key(
        "options.stochastic_rounding",
        SpecKeyType::Boolean,
        "false",
        "Round to half at random, which takes a seed on every tile",
        "enableStochasticRounding",
    ),
    location_on_chip!(
        "optimizer_state",
        "Keep optimiser state in tile memory, not in streaming memory",
        "setOptimizerLocation; offload_weight_update_variables"
    ),
    location_io_tiles!("optimizer_state", "setOptimizerLocation"),
    location_min!("optimizer_state", "setOptimizerLocation"),
    key(
        "options.location.optimizer_state.replicated_tensor_sharding",
        SpecKeyType::Boolean,
        "false",
        "Split optimiser state over the replicas: each updates its shard of the weights",
        "useReplicatedTensorSharding; replicated_optimizer_state_sharding",
    ),
    key(
        "options.location.optimizer_state.min_elements_for_rts",
        SpecKeyType::Integer(0, LARGEST_SIZE),
        "8192",
        "Fewest elements of a tensor that is split over the replicas",
        "minElementsForReplicatedTensorSharding",
    ),
    location_on_chip!(
        "weights",
        "Keep weights in tile memory, not in streaming memory",
        "setWeightLocation"
    ),
    location_io_tiles!("weights", "setWeightLocation"),
    location_min!("weights", "setWeightLocation"),
    location_on_chip!(
        "accumulators",
        "Keep gradient accumulators in tile memory, not in streaming memory",
        "setAccumulatorLocation"
    ),
    location_io_tiles!("accumulators", "setAccumulatorLocation"),
    location_min!("accumulators", "setAccumulatorLocation"),
    location_on_chip!(
        "activations",
        "Keep activations stashed for the backward pass in tile memory, not in streaming memory",
        "setActivationLocation; offload_activations"
    ),
    location_io_tiles!("activations", "setActivationLocation"),
    location_min!("activations", "setActivationLocation"),
    key(
        "options.host.loader",
        SpecKeyType::OneOf(&["none", "async", "sync", "synthetic"]),
        "\"none\"",
        "Where samples come from: always ready, loaded during the call before, loaded between calls, or made on the IPU without any host copy",
        "poptorch.DataLoaderMode; enableSyntheticData",
    ),
    key(
        "options.host.num_workers",
        SpecKeyType::Integer(1, 1024),
        "1",
        "Loader processes of an instance that prepare samples side by side",
        "poptorch.DataLoader num_workers",
    ),
    key(
        "options.host.seconds_per_sample",
        SpecKeyType::RealFrom(0.0, MAX_HOST_SECONDS),
        "0.0",
        "Time one worker takes to prepare one sample",
        "",
    ),
    key(
        "options.host.seconds_per_call",
        SpecKeyType::RealFrom(0.0, MAX_HOST_SECONDS),
        "0.0",
        "Time an instance's loader takes per host call besides its samples",
        "",
    ),
    key(
        "options.host.copy_bytes_per_second",
        SpecKeyType::RealAbove(0.0, 1.0e13),
        "2.5e10",
        "Rate at which an instance's loader copies samples into the host's buffers",
        "",
    ),
    key(
        "options.host.buffer_size",
        SpecKeyType::Integer(1, 1024),
        "3",
        "Calls an asynchronous loader may run ahead",
        "async_options buffer_size",
    ),
    key(
        "options.host.sample_time_spread",
        SpecKeyType::RealFrom(0.0, 1.0),
        "0.0",
        "Spread of the time a micro-batch takes the host, as a share of its mean",
        "",
    ),
    key(
        "options.host.seconds_per_micro_batch",
        SpecKeyType::RealFrom(0.0, MAX_HOST_SECONDS),
        "0.0",
        "Time of the stream callback that fills a micro-batch's buffers",
        "IStepIO callback",
    ),
    key(
        "options.host.seconds_per_iteration",
        SpecKeyType::RealFrom(0.0, MAX_HOST_SECONDS),
        "0.0",
        "Time the framework on the host holds every device iteration up",
        "",
    ),
    key(
        "options.host.bytes_per_second",
        SpecKeyType::RealFrom(0.0, 1.0e12),
        "0.0",
        "Rate between the host and one IPU; 0 for the system's own",
        "",
    ),
];
