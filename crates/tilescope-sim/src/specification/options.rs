//! The options of a spec, with one entry each, and their conversion to the specification that the
//! simulator uses. The options of Poplar's libraries are in [`PoplibsOptions`].

use super::calibration::{self, CALIBRATION_TABLE, CalibrationSpec};
use super::choices::{
    AccumulateOuterSchedule, AutoStage, Currency, DataLoaderMode, DomainSharding,
    ExecutionStrategy, MultiThreadMode, OutputMode, OverlapIo, PipelineSchedule, RecomputationType,
    ReturnedOutputs, ShardingDomain, StashConvention, StreamConnection, StreamInputType,
    StreamOutputType, SyncPattern,
};
use super::error::SpecError;
use super::machine::{self, MachineSpec};
use super::phase_settings::{BatchSerializationSettings, ExecutionPhaseSettings};
use super::stages::{self, StageSpec};
use super::{CheckedSpecValues, Spec, checks, keys};
use crate::cost_constants::{HostPath, PLAIN_HOST};
use crate::model::ModelSpec;
use crate::poplin::planner::PoplibsOptions;
use crate::spec_keys::{
    COUNT, ChosenValues, SpecField, SpecKeyType, SpecTable, SpecValue, last_part, spec_table,
};
use crate::targets::{self, Chip, HOST_CORES, HOST_LINK_BYTES_PER_SECOND, SystemDef};
use std::collections::BTreeMap;
use tilescope_report::TargetKind;
use tilescope_report::units::Elements;

spec_table! {
    /// The machine that the program runs on.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TargetSpec {
        /// The system, or a chip type with as many IPUs as needed
        system as "name": &'static SystemDef = targets::DEFAULT_SYSTEM => {
            shows_in: "Summary: target",
            poplar: "IPUModel ipuVersion; Pod size",
        }
        /// Hardware, or Poplar's IPU Model, which generates no code and has a host without delay
        kind as "type": TargetKind = TargetKind::Ipu => {
            shows_in: "Memory: code categories are zero on an IPU Model",
            poptorch: "poptorch.Options.useIpuModel",
        }
        /// IPUs of one replica
        ipus: u32 = 1, in SpecKeyType::Integer(1, 256) => {
            shows_in: "Execution trace: one lane for each IPU",
            poplar: "IPUModel numIPUs",
        }
        /// Power of the machine while the program runs, including host servers; 0 for the published
        /// power of its machines
        power_watts: Option<f64> = None, in SpecKeyType::RealFrom(0.0, 1.0e9) => {
            shows_in: "Summary: Energy and cost",
        }
        /// Price of one hour of the machine; 0 for the list price of its machines spread over three
        /// years
        price_per_hour: Option<f64> = None, in SpecKeyType::RealFrom(0.0, 1.0e9) => {
            shows_in: "Summary: Energy and cost",
        }
        /// Currency of `target.price_per_hour`
        currency: Currency = Currency::UsDollar => {
            shows_in: "Summary: Energy and cost",
        }
        tables {
            /// Constants of the machine.
            machine: MachineSpec = "machine" {}
            /// Constants of the cost model that were fitted to a measurement.
            calibration: CalibrationSpec = "calibration" {}
        }
        derived {
            /// The chip, with the constants that the spec changes.
            chip: Chip = machine.chip(system.chip),
        }
    }
}

spec_table! {
    /// The location of a kind of tensor.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TensorLocation {
        /// Keep {what} in tile memory, not in streaming memory
        on_chip: bool = true => {
            shows_in: "Execution trace: {moves}; Memory",
            poptorch: "TensorLocations.{setter} useOnChipStorage",
            tensorflow: "{offload}",
            check_box: "{label} on chip",
        }
        /// Copy tensors in streaming memory with the I/O tiles
        use_io_tiles: bool = false => {
            shows_in: "Execution trace: `…/interTilesetCopy` beside remote buffer copies",
            poptorch: "TensorLocations.{setter} useIOTilesToLoad, useIOTilesToStore",
        }
        /// Minimum number of elements for a tensor to be offloaded
        min_elements_for_off_chip: Elements = Elements(2) => {
            shows_in: "Memory: tensors that are always live",
            poptorch: "TensorLocations.{setter} minElementsForOffChip",
        }
    }
}

impl TensorLocation {
    /// True if a tensor with this number of elements is kept in streaming memory.
    pub(crate) fn is_off_chip(&self, elements: Elements) -> bool {
        !self.on_chip && elements >= self.min_elements_for_off_chip
    }
}

spec_table! {
    /// The sharding of a kind of tensor over the replicas.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ReplicatedTensorSharding {
        /// Shard {what} over the replicas: {effect}
        replicated_tensor_sharding: bool = false => {
            shows_in: "Memory: {what}; Execution trace: {collectives}",
            poptorch: "TensorLocations.{setter} useReplicatedTensorSharding",
            tensorflow: "{option}",
        }
        /// Replicas over which a tensor is sharded: those of one instance (consecutive) or all;
        /// must be equal for all sharded kinds
        sharding_domain: ShardingDomain = ShardingDomain::Consecutive => {
            shows_in: "Memory: sizes of shares; Execution trace: collectives over the instances",
            popart: "TensorLocation shardingDomain, CommGroupType",
        }
        /// Minimum number of elements for a tensor to be sharded over the replicas
        min_elements_for_rts: Elements = Elements(8192) => {
            shows_in: "Memory: sharded tensors",
            poptorch: "TensorLocations.{setter} minElementsForReplicatedTensorSharding",
        }
    }
}

impl ReplicatedTensorSharding {
    /// True if a tensor with this number of elements is split over the replicas.
    pub(crate) fn applies_to(&self, elements: Elements) -> bool {
        self.replicated_tensor_sharding && elements >= self.min_elements_for_rts
    }
}

spec_table! {
    /// The locations of the kinds of tensors.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TensorLocations {
        tables {
            /// The location of optimiser state.
            optimizer_state: TensorLocation = "optimizer_state" {
                what: "optimiser state",
                label: "optimizer state",
                setter: "setOptimizerLocation",
                offload: "offload_weight_update_variables",
                moves: "remote buffer copies around the update",
            }
            /// The sharding of optimiser state.
            optimizer_state_sharding: ReplicatedTensorSharding = "optimizer_state" {
                what: "optimiser state",
                effect: "each replica updates its share of the weights",
                collectives: "reduceScatter and allGather around a shorter update",
                setter: "setOptimizerLocation",
                option: "replicated_optimizer_state_sharding",
            }
            /// The location of weights.
            weights: TensorLocation = "weights" {
                what: "weights",
                label: "weights",
                setter: "setWeightLocation",
                offload: "",
                moves: "remote buffer copies around the passes",
            }
            /// The sharding of weights.
            weights_sharding: ReplicatedTensorSharding = "weights" {
                what: "weights",
                effect: "each pass gathers them directly before their use",
                collectives: "allGather before operations with weights",
                setter: "setWeightLocation",
                option: "",
            }
            /// The location of gradient accumulators.
            accumulators: TensorLocation = "accumulators" {
                what: "gradient accumulators",
                label: "accumulators",
                setter: "setAccumulatorLocation",
                offload: "",
                moves: "remote buffer copies around the backward passes",
            }
            /// The sharding of gradient accumulators.
            accumulators_sharding: ReplicatedTensorSharding = "accumulators" {
                what: "gradient accumulators",
                effect: "each replica accumulates its share of all gradients",
                collectives: "reduceScatter before every accumulation",
                setter: "setAccumulatorLocation",
                option: "",
            }
            /// The location of activations stashed for the backward pass.
            activations: TensorLocation = "activations" {
                what: "activations stashed for the backward pass",
                label: "activations",
                setter: "setActivationLocation",
                offload: "offload_activations",
                moves: "`…/remoteStore` and `…/remoteLoad` in place of stashes",
            }
        }
    }
}

impl TensorLocations {
    /// The sharding of each kind of tensor that can be split over replicas, with its key.
    pub(crate) fn shardings(&self) -> [(&'static str, &ReplicatedTensorSharding); 3] {
        [
            ("options.location.weights.replicated_tensor_sharding", &self.weights_sharding),
            (
                "options.location.accumulators.replicated_tensor_sharding",
                &self.accumulators_sharding,
            ),
            (
                "options.location.optimizer_state.replicated_tensor_sharding",
                &self.optimizer_state_sharding,
            ),
        ]
    }
}

/// The key of the share of memory for temporaries.
pub(super) const MEMORY_PROPORTION: &str = "options.available_memory_proportion";

/// A time of the host, in seconds.
const SECONDS: SpecKeyType = SpecKeyType::RealFrom(0.0, 1000.0);

spec_table! {
    /// The host: its work and the time that it takes.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct HostSpec {
        /// Source of the samples: always ready, loaded during the previous call (at once or in
        /// small batches), loaded between calls, or generated on the IPU without host copies
        loader: DataLoaderMode = DataLoaderMode::None => {
            shows_in: "Execution trace: no stream copies when synthetic, else `hostCall/loader`; Summary: Host",
            poptorch: "poptorch.DataLoaderMode",
            popart: "enableSyntheticData",
        }
        /// Data loader processes per instance that prepare samples in parallel
        num_workers: u64 = 1, in SpecKeyType::Integer(1, 1024) => {
            shows_in: "Execution trace: `hostCall/loader` at the start; Summary: Host, loader alone",
            poptorch: "poptorch.DataLoader num_workers",
        }
        /// Time for one worker to prepare one sample
        seconds_per_sample: f64 = 0.0, in SECONDS => {
            shows_in: "Execution trace: `hostCall/loader` at the start; Summary: Host, loader alone",
        }
        /// Time for one worker to cast and scale one sample, unless the IPU does it
        /// (`options.normalise_on_ipu`)
        seconds_per_normalisation: f64 = 0.0, in SECONDS => {
            shows_in: "Execution trace: `hostCall/loader` at the start; Summary: Host, loader alone",
            applications: "preprocessing on the host or on the IPU",
        }
        /// Time of an instance's loader per host call, excluding its samples
        seconds_per_call: f64 = 0.0, in SECONDS => {
            shows_in: "Execution trace: `hostCall/loader` at the start; Summary: Host, loader alone",
        }
        /// Rate at which an instance's loader copies samples into the host's buffers
        copy_bytes_per_second: f64 = 2.5e10, in SpecKeyType::RealAbove(0.0, 1.0e13), written "2.5e10" => {
            shows_in: "Execution trace: `hostCall/loader` at the start; Summary: Host, loader alone",
        }
        /// Number of calls that an asynchronous loader may load in advance
        buffer_size: u64 = 3, in SpecKeyType::Integer(1, 1024) => {
            shows_in: "Execution trace: `hostCall/loader` at the start; Summary: Host, loader alone",
            poptorch: "async_options buffer_size",
        }
        /// Spread of the host time per micro-batch, as a share of its mean
        sample_time_spread: f64 = 0.0, in SpecKeyType::RealFrom(0.0, 1.0) => {
            shows_in: "Execution trace: StreamCopyBegin; Summary: samples per second",
        }
        /// Time of the stream callback that fills a micro-batch's buffers
        seconds_per_micro_batch: f64 = 0.0, in SECONDS => {
            shows_in: "Execution trace: callbacks, StreamCopyBegin; Summary: Host",
            popart: "IStepIO callback",
        }
        /// Framework that calls the program; it determines the time per call and the error of that
        /// time. `plain` is a program without a framework
        framework: &'static HostPath = &PLAIN_HOST => {
            shows_in: "Execution trace: `hostCall/framework` at the start; Summary: Host",
        }
        /// Time of the framework per host call before the launch, in which it checks and arranges
        /// the arguments; by default that of `options.host.framework`
        seconds_per_framework_call: f64 = PLAIN_HOST.call_seconds, in SECONDS, written "" => {
            shows_in: "Execution trace: `hostCall/framework` at the start; Summary: Host",
            poptorch: "PoplarExecutor.__call__",
        }
        /// Time from the launch of the program to its first step
        seconds_per_launch: f64 = 0.0, in SECONDS => {
            shows_in: "Execution trace: `hostCall/launch` at the start; Summary: Host",
            poplar: "Engine::run",
        }
        /// Time for the framework to return the results of a call
        seconds_per_return: f64 = 0.0, in SECONDS => {
            shows_in: "Execution trace: `hostCall/return` at the end; Summary: Host",
        }
        /// Source of the stream buffers: callbacks of a framework, or memory that a plain program
        /// has connected
        streams: StreamConnection = StreamConnection::Framework => {
            shows_in: "Execution trace: StreamCopyMid",
            popart: "IStepIO",
            poplar: "Engine::connectStream, connectStreamToCallback",
        }
        /// Rate between the host and one IPU; 0 for the system's own
        bytes_per_second: Option<f64> = None, in SpecKeyType::RealFrom(0.0, 1.0e12) => {
            shows_in: "Execution trace: StreamCopyMid",
        }
        /// Rate of the links of one host, which all its instances and their replicas share
        shared_bytes_per_second: f64 = HOST_LINK_BYTES_PER_SECOND, in SpecKeyType::RealAbove(0.0, 1.0e13), written "2.5e10" => {
            shows_in: "Execution trace: StreamCopyBegin if a host has many replicas; Summary: Host",
        }
        /// Cores of one host, which its instances share; they limit the number of effective workers
        /// and callback threads
        cores: u64 = HOST_CORES, in SpecKeyType::Integer(1, 4096), written "128" => {
            shows_in: "Summary: Host, loader alone",
        }
        /// Threads that run the stream callbacks of an instance: one thread, worker threads, or
        /// worker threads and the calling thread
        stream_callbacks_multi_thread_mode: MultiThreadMode = MultiThreadMode::SingleThread => {
            shows_in: "Execution trace: callbacks; Summary: Host",
            poplar: "streamCallbacks.multiThreadMode",
        }
        /// Worker threads for stream callbacks; 0 for one per replica
        num_worker_threads: u64 = 0, in SpecKeyType::Integer(0, 1024) => {
            shows_in: "Execution trace: callbacks; Summary: Host",
            poplar: "streamCallbacks.numWorkerThreads",
        }
        /// Number of instances, counted from the last, whose loader and stream callbacks are
        /// slower, such as on busy or older servers
        slower_instances: u32 = 0, in SpecKeyType::Integer(0, 256) => {
            shows_in: "Summary: Host, replicas; Execution trace: `hostCall/loader`, StreamCopyBegin, External sync",
        }
        /// Factor by which loader and stream callbacks of a slower instance take longer
        slower_instance_factor: f64 = 2.0, in SpecKeyType::RealFrom(1.0, 1000.0) => {
            shows_in: "Summary: Host, replicas",
        }
        /// Samples in the dataset; 0 to simulate no epochs
        dataset_samples: u64 = 0 => {
            shows_in: "Summary: Host, epochs",
            poptorch: "len(dataset)",
        }
        /// Number of passes over the dataset
        epochs: u64 = 1, in COUNT => {
            shows_in: "Summary: Host, epochs",
        }
        /// Drop the samples of an epoch that do not fill a call; otherwise the last call is padded
        drop_last: bool = true => {
            shows_in: "Summary: Host, epochs",
            poptorch: "poptorch.DataLoader drop_last",
        }
        /// The dataset is iterable: each worker reads a part of it and drops samples that do not
        /// fill its last batch
        iterable_dataset: bool = false => {
            shows_in: "Summary: Host, epochs",
            poptorch: "torch.utils.data.IterableDataset",
        }
        /// Samples per transfer from a worker with the asynchronous loader that rebatches
        rebatched_worker_size: u64 = 1, in COUNT => {
            shows_in: "Summary: Host, epochs",
            poptorch: "poptorch.DataLoader rebatched_worker_size",
        }
        /// Time to start one loader process at the beginning of an epoch
        seconds_per_worker_start: f64 = 0.0, in SECONDS => {
            shows_in: "Summary: Host, epochs",
        }
        /// Keep the loader processes between epochs
        persistent_workers: bool = false => {
            shows_in: "Summary: Host, epochs",
            poptorch: "poptorch.DataLoader persistent_workers",
        }
        /// Start loading when the loader is created, while the program compiles
        early_preload: bool = false => {
            shows_in: "Summary: Host, epochs",
            poptorch: "async_options early_preload",
        }
        /// Continue loading for the next epoch during the last calls of this epoch
        load_indefinitely: bool = true => {
            shows_in: "Summary: Host, epochs",
            poptorch: "async_options load_indefinitely",
        }
    }
}

spec_table! {
    /// The way in which the model is run.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SpecOptions {
        /// Execution of the stages: pipelined over several micro-batches, sharded (one stage after
        /// another), or in phases whose weights come from streaming memory. In phases, even and odd
        /// IPUs are two sets that compute and load in turn
        execution: ExecutionStrategy = ExecutionStrategy::Pipelined => {
            shows_in: "Execution trace: IPUs that compute at the same time",
            poptorch: "poptorch.PipelinedExecution / ShardedExecution / ParallelPhasedExecution",
        }
        /// Blocks or single operations of the model (`layer3/fc2`, `*/norm`) grouped into stages,
        /// one IPU each unless `ipu` is given. Consecutive stages on one IPU are merged, except
        /// with frameworks and schedules that keep them separate (keras, popxl, interleaved,
        /// sequential). An operation that no stage names belongs to the stage of its inputs. Empty:
        /// `auto_stage` chooses the stages
        stages: Vec<StageSpec> = Vec::new() => {
            shows_in: "Execution trace: stage marks of each lane",
            poptorch: "poptorch.Stage(...).ipu(...)",
        }
        /// Choice of stages if `stages` is empty: one per block, an equal number of blocks per IPU,
        /// or the fastest of several tested splits, including the equal one
        auto_stage: AutoStage = AutoStage::AutoIncrement => {
            shows_in: "Execution trace: lengths of the stages; `tilescope simulate --balance`",
            poptorch: "poptorch.AutoStage",
            popart: "virtualGraphMode Auto",
        }
        /// Order of forward and backward passes of a pipeline
        pipeline_schedule: PipelineSchedule = PipelineSchedule::Grouped => {
            shows_in: "Execution trace: order of passes; Memory: stashes",
            tensorflow: "PipelineSchedule.Grouped / Interleaved / Sequential (TensorFlow)",
        }
        /// Number of slots and stash entries: as in PopART, 2(S-1-s)+1, as in the memory guide,
        /// 2(S-s)+1 (interleaved: S+1), or as in TensorFlow, 2(S-s) (interleaved: S-s). The default
        /// of `options.host.framework = "keras"` is that of TensorFlow
        stash_convention: StashConvention = StashConvention::Popart => {
            shows_in: "Execution trace: slots of the ramp-up; Memory: `…/stash` variables",
        }
        /// Activations that the backward pass recomputes: none, those of each block from its inputs
        /// (auto, checkpoints), or those of the whole stage from its inputs
        recomputation: RecomputationType = RecomputationType::None => {
            shows_in: "Memory: smaller stashes; Execution trace: `…/recompute` steps",
            popart: "autoRecomputation RecomputationType",
            poptorch: "recomputationCheckpoint",
        }
        /// Micro-batches per weight update
        gradient_accumulation: u64 = 1, in COUNT => {
            shows_in: "Summary: samples per host call; Execution trace: share of the ramps",
            poptorch: "poptorch.Options.Training.gradientAccumulation",
            popart: "accumulationFactor",
            slider: ("Accumulation", 4096.0),
        }
        /// Weight updates (or inference passes) per host call
        device_iterations: u64 = 1, in COUNT => {
            shows_in: "Execution trace: iteration marks; Summary: samples per host call",
            poptorch: "poptorch.Options.deviceIterations",
            popart: "batchesPerStep",
            tensorflow: "steps_per_execution",
            slider: ("Device iterations", 1024.0),
        }
        /// Data-parallel replicas of the program, over all instances
        replication_factor: u32 = 1, in SpecKeyType::Integer(1, 256) => {
            shows_in: "Summary: replicas; Execution trace: `…/crossReplicaCopy`; Memory: control and exchange code",
            poptorch: "poptorch.Options.replicationFactor",
            popart: "replicatedGraphCount, globalReplicationFactor",
            slider: ("Replicas", 64.0),
        }
        /// IPUs of a tensor-parallel group, which split the columns of linear layers
        tensor_parallel: u32 = 1, in SpecKeyType::PowerOfTwo(64) => {
            shows_in: "Execution trace: `…/allGather` after linear layers, `…/all_reduce` in \
            backward passes",
            popart: "tensor parallel execution (popxl replica grouping)",
        }
        /// Split fields and images by rows over the IPUs of a replica, with halo exchange, instead
        /// of stages; auto: if the model has only one block
        domain_sharding: DomainSharding = DomainSharding::Auto => {
            shows_in: "Execution trace: all IPUs work on the same step, `…/inter-ipu-copies` between steps",
            applications: "domain sharding (memory and performance optimisation guide)",
        }
        /// Host processes that share the replicas, each with its own data loader
        num_instances: u32 = 1, in SpecKeyType::Integer(1, 256) => {
            shows_in: "Summary: samples per second if the host is the limit; notes: global replica \
            offsets",
            poptorch: "poprun --num-instances",
            popart: "enableDistributedReplicatedGraphs, globalReplicaOffset",
        }
        /// Servers that run the host processes, each with its own cores and links
        num_hosts: u32 = 1, in SpecKeyType::Integer(1, 64) => {
            shows_in: "Summary: Host; samples per second if the host is the limit",
            poptorch: "poprun --host",
        }
        /// IPUs that sync for a copy with the host or streaming memory: all, only the copying IPU,
        /// or every second IPU
        sync_pattern: SyncPattern = SyncPattern::Full => {
            shows_in: "Execution trace: IPUs that wait in External sync; notes: GS1 and GS2",
            poptorch: "poptorch.Options.syncPattern",
            popart: "popart.SyncPattern",
        }
        /// Let each replica sync with the host independently; otherwise all replicas wait until the
        /// host is ready for the last one. In both cases replicas sync to exchange gradients
        sync_replicas_independently: bool = false => {
            shows_in: "Execution trace: StreamCopyBegin and External sync; Summary: Host, replicas",
            poplar: "target.syncReplicasIndependently",
        }
        /// Order of the weight updates of several IPUs: sequential, or parallel, so that copies of
        /// optimiser state to and from streaming memory share their syncs
        accumulate_outer_schedule: AccumulateOuterSchedule = AccumulateOuterSchedule::Serial => {
            shows_in: "Execution trace: remote buffer copies of the updates, IPUs that wait in \
            External sync",
            popart: "AccumulateOuterFragmentSettings schedule",
        }
        /// Store sequences of operations that an IPU runs several times once, as functions. Without
        /// outlining, each use has its own steps, names and code
        enable_outlining: bool = true => {
            shows_in: "Program tree: functions and their calls; Memory: control code, exchange code and vertex state",
            popart: "SessionOptions enableOutlining",
        }
        /// Make the weights of an inference model constants of the program (PopART's default)
        /// instead of variables that the host loads (as in PopTorch)
        constant_weights: bool = false => {
            shows_in: "Memory: weights are constants; less host exchange code",
            popart: "SessionOptions constantWeights",
        }
        /// Merge consecutive copies from or to streaming memory or the host into one exchange, with
        /// one sync and one handshake
        merge_exchange: bool = true => {
            shows_in: "Execution trace: several StreamCopyMid between one StreamCopyBegin and StreamCopyEnd",
            popart: "SessionOptions enableMergeExchange",
        }
        /// Reduce the gradients of a stage over the replicas with one collective per element type
        /// instead of one per tensor
        merge_collectives: bool = false => {
            shows_in: "Execution trace: reduceScatter and allGather around the updates; Memory: exchange and control code",
            popart: "ReplicatedCollectivesSettings mergeAllReduceCollectives, mergeReduceScatterCollectives, mergeAllGatherCollectives",
            tensorflow: "optimizations.maximum_cross_replica_sum_buffer_size",
        }
        /// Tiles of each IPU reserved for I/O; 0, or an even number from 32
        num_io_tiles: u32 = 0, in SpecKeyType::Integer(0, 1470) => {
            shows_in: "Memory: the last tiles; Execution trace: sub-lane of the I/O tiles",
            poptorch: "poptorch.Options.TensorLocations.numIOTiles",
            tensorflow: "io_tiles.num_io_tiles",
            slider: ("I/O tiles", 512.0),
        }
        /// Overlap of host copies for the next micro-batch with compute: never, within a weight
        /// update, or across updates
        overlap_io: OverlapIo = OverlapIo::None => {
            shows_in: "Execution trace: StreamCopy beside compute in its sub-lane",
            poptorch: "poptorch.OverlapMode",
            popart: "ExchangeStrategy JustInTime / OverlapInnerLoop / OverlapLoops",
        }
        /// Number of micro-batches that the host prefetches into the stream buffers
        prefetch_depth: u64 = 1, in SpecKeyType::Integer(1, 65_536) => {
            shows_in: "Execution trace: length of StreamCopyBegin; notes: host memory of stream buffers",
            popart: "defaultBufferingDepth, defaultPrefetchBufferingDepth",
            tensorflow: "IPUInfeedQueue prefetch_depth",
        }
        /// Micro-batches whose results are returned to the host: by default all in inference and
        /// the final one in training; sum adds the results on the IPU
        output_mode: OutputMode = OutputMode::Default => {
            shows_in: "Execution trace: `…/copyToHost`",
            poptorch: "poptorch.OutputMode",
            popart: "AnchorReturnType",
        }
        /// Micro-batches between returned results with output mode every_n
        output_return_period: u64 = 1, in COUNT => {
            shows_in: "Execution trace: `…/copyToHost`",
            poptorch: "poptorch.Options.outputMode(OutputMode.EveryN, n)",
        }
        /// Element type in which the host sends samples; the IPU casts them to the model's type
        input_type: StreamInputType = StreamInputType::Model => {
            shows_in: "Execution trace: bytes of `copyFromHost`, and a Cast after it",
            applications: "uint8 or half dataset with a cast in the model",
        }
        /// Element type in which results are returned to the host; the IPU casts them first
        output_type: StreamOutputType = StreamOutputType::Model => {
            shows_in: "Execution trace: a Cast before `…/copyToHost`, and its bytes",
            applications: "half results of the model",
        }
        /// Results that are returned to the host: all, or only the loss if there is one
        returned_outputs: ReturnedOutputs = ReturnedOutputs::All => {
            shows_in: "Execution trace: `…/copyToHost`; Summary: Host",
            popart: "anchors of the DataFlow",
        }
        /// Scale and shift the samples on the IPU instead of on the host
        normalise_on_ipu: bool = false => {
            shows_in: "Execution trace: `…/normalise` after `copyFromHost`",
            applications: "normalisation moved into the model",
        }
        /// Linear layers to which `serialize_matmul` applies (`head/decoder`, `*/ff1`, or blocks),
        /// named as in `stages`; empty for all
        serialize_matmul_layers: Vec<String> = Vec::new(), written "[]" => {
            shows_in: "Program tree: Repeat around the layer; Memory: smaller temporaries",
            poptorch: "poptorch.SerializedMatMul in one layer",
            popart: "Builder.setSerializeMatMul",
            applications: "embedding_serialization_factor",
        }
        tables {
            /// Options of Poplar's libraries.
            library: PoplibsOptions = "" {}
            /// Locations of tensors.
            location: TensorLocations = "location" {}
            /// Settings of phases.
            execution_phase_settings: ExecutionPhaseSettings = "execution_phase_settings" {}
            /// Parts of a micro-batch.
            batch_serialization_settings: BatchSerializationSettings = "batch_serialization_settings" {}
            /// Settings of the host.
            host: HostSpec = "host" {}
        }
    }
}

impl SpecOptions {
    /// Replicas of one instance.
    pub(crate) fn local_replicas(&self) -> u32 {
        (self.replication_factor / self.num_instances).max(1)
    }

    /// The number of instances whose host is slower than the others. Zero if the slower ones are
    /// equally fast.
    pub(crate) fn slow_instances(&self) -> u32 {
        if self.host.slower_instance_factor > 1.0 {
            self.host.slower_instances.min(self.num_instances)
        } else {
            0
        }
    }

    /// The number of replicas that share a tensor.
    pub(crate) fn replicas_of(&self, domain: ShardingDomain) -> u32 {
        match domain {
            ShardingDomain::Consecutive => self.local_replicas(),
            ShardingDomain::All => self.replication_factor,
        }
    }
}

/// Assembles the specification and checks conditions on several keys.
pub(super) fn assemble(values: &CheckedSpecValues) -> Result<Spec, SpecError> {
    stages::check(values)?;
    let mut model = ModelSpec::read("model", values);
    model.training &= model.definition.trainable;
    model.sizes = sizes(values);
    model.file = values.imported.clone();
    let spec = Spec {
        model,
        target: TargetSpec::read("target", values),
        options: SpecOptions::read("options", values),
        memory_proportions: memory_proportions(values),
        text: text(values),
        machine_changes: machine::changes(values),
        calibration: calibration::changes(values, &machine::rates_of_name(values)),
        process_constants: calibration::process_constants(values),
        effective_values: effective(values),
        warnings: values.warnings.clone(),
        locations: values.locations(),
    };
    checks::check(values, &spec)?;
    Ok(spec)
}

/// The shares of memory for temporaries, if they are given by IPU.
fn memory_proportions(values: &CheckedSpecValues) -> Vec<f64> {
    match values.chosen(MEMORY_PROPORTION) {
        Some(SpecValue::Array(shares)) => shares.iter().filter_map(f64::from_spec).collect(),
        _ => Vec::new(),
    }
}

/// The sizes of the model, by the last part of their key.
fn sizes(values: &CheckedSpecValues) -> BTreeMap<&'static str, u64> {
    let sizes = values.model.sizes.iter().map(|key| {
        let name = last_part(&key.path);
        (name, u64::from_spec(&values.get(&key.path)).unwrap_or(0))
    });
    sizes.collect()
}

/// The keys that were set, as TOML, in the order of the key list.
fn text(values: &CheckedSpecValues) -> String {
    let mut text = String::new();
    for section in ["model", "target", "options"] {
        let keys = keys::for_model(values.model);
        let set = keys.map(|key| &*key.path).filter(|path| values.is_set(path));
        let mut lines = String::new();
        for path in set.chain(values.of_file()) {
            if let Some((table, name)) = path.split_once('.')
                && table == section
            {
                lines.push_str(&format!("{} = {}\n", quoted(name), values.get(path)));
            }
        }
        if !lines.is_empty() {
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}[{section}]\n{lines}"));
        }
    }
    text
}

/// The name of a key in TOML. The name of a dimension may contain any characters.
fn quoted(name: &str) -> String {
    let Some(dim) = name.strip_prefix("dim.") else { return name.to_string() };
    format!("dim.{}", SpecValue::String(dim.to_string()))
}

/// Every key that applies with its value, for the options table of a report. Of the calibration,
/// only keys that are set, because nothing else was fitted.
fn effective(values: &CheckedSpecValues) -> Vec<(String, String)> {
    let paths = keys::for_model(values.model)
        .map(|key| &*key.path)
        .filter(|path| !path.starts_with(CALIBRATION_TABLE) || values.is_set(path));
    paths.chain(values.of_file()).map(|path| (path.to_string(), values.text(path))).collect()
}
