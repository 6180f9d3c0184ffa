//! Options whose value is one of several words.

use crate::cost_constants::{HOST_PATH_NAMES, HOST_PATHS, HostPath};
use crate::operators::Optimizer;
use crate::spec_keys::{SpecField, SpecKeyType, SpecValue, spec_words};
use crate::targets::{self, SystemDef};
use tilescope_report::TargetKind;

spec_words! {
    /// The way in which stages share the IPUs.
    pub enum ExecutionStrategy {
        /// Several micro-batches in flight.
        Pipelined = "pipelined",
        /// One micro-batch at a time.
        Sharded = "sharded",
        /// One micro-batch at a time, with the weights of a phase loaded from streaming memory.
        Phased = "phased",
    }
}

spec_words! {
    /// The stages of a spec that writes none.
    pub enum AutoStage {
        AutoIncrement = "auto_increment",
        /// Blocks spread evenly over the IPUs.
        SameAsIpu = "same_as_ipu",
        /// The fastest of several splits that are tried.
        Balanced = "balanced",
    }
}

spec_words! {
    /// The order of passes in a pipeline.
    pub enum PipelineSchedule {
        /// Each IPU makes a forward and a backward pass per slot.
        Grouped = "grouped",
        /// Each IPU makes one pass per slot, forward and backward in turn.
        Interleaved = "interleaved",
        /// One micro-batch at a time.
        Sequential = "sequential",
    }
}

spec_words! {
    /// The replicas that share a tensor.
    pub enum ShardingDomain {
        /// The replicas of one instance: each host has the whole tensor.
        Consecutive = "consecutive",
        All = "all",
    }
}

spec_words! {
    /// The sharing of the rows of fields and images by the IPUs of a replica.
    pub enum DomainSharding {
        /// Rows are shared if the model has one block, for which stages would leave all but one IPU
        /// idle.
        Auto = "auto",
        Rows = "rows",
        None = "none",
    }
}

spec_words! {
    /// The convention for counting slots and stashes.
    pub enum StashConvention {
        /// The convention of PopART: `2 (S - 1 - s) + 1`.
        Popart = "popart",
        /// The convention of the memory guide: `2 (S - s) + 1`, or `S + 1` for the interleaved
        /// schedule.
        MemoryGuide = "memory_guide" | "seed",
        /// The convention of TensorFlow: `2 (S - s)`, or `S - s` for the interleaved schedule.
        Tensorflow = "tensorflow",
    }
}

spec_words! {
    /// The activations that the backward pass recomputes.
    pub enum RecomputationType {
        /// No recomputation: all activations are kept.
        None = "none",
        /// The choice of the program: each block from its inputs.
        Auto = "auto",
        /// Each block from its inputs.
        Checkpoints = "checkpoints",
        /// The whole stage from its inputs.
        Pipeline = "pipeline",
    }
}

spec_words! {
    /// The IPUs that a sync with the host or streaming memory stops.
    pub enum SyncPattern {
        Full = "full",
        /// Only the IPU that copies.
        SinglePipeline = "single_pipeline",
        ReplicaAndLadder = "replica_and_ladder",
    }
}

spec_words! {
    /// The overlap of host copies with compute.
    pub enum OverlapIo {
        None = "none",
        /// Within a weight update.
        InnerLoop = "inner_loop",
        /// Also across weight updates.
        Loops = "loops",
    }
}

spec_words! {
    /// The order in which the weights of stages are updated.
    pub enum AccumulateOuterSchedule {
        /// One stage after the other.
        Serial = "serial",
        /// IPUs in parallel.
        OverlapCycleOptimized = "overlap_cycle_optimized",
        /// IPUs in parallel. The model ignores which tensors PopART keeps longer with the other
        /// word.
        OverlapMemoryOptimized = "overlap_memory_optimized",
    }
}

spec_words! {
    /// The time at which a phase loads tensors of a kind from streaming memory.
    pub enum ExecutionPhaseIoSchedule {
        /// During the previous phase.
        Preload = "preload",
        /// Just before they are read.
        OnDemand = "on_demand",
    }
}

spec_words! {
    /// The order in which a phase updates its weights.
    pub enum ExecutionPhaseSchedule {
        /// One weight after the other.
        Interleaving = "interleaving",
        /// Each step for all weights before the next step.
        Batch = "batch",
        /// The order of `Batch`, with all loads before all other work of the phase.
        BatchClusteredIo = "batch_clustered_io",
    }
}

spec_words! {
    /// The micro-batches that send results to the host.
    pub enum OutputMode {
        /// The final one in training, all in inference.
        Default = "default",
        All = "all",
        /// The last one of a host call.
        Final = "final",
        /// The sum of all, once per host call.
        Sum = "sum",
        /// One of every `output_return_period`.
        EveryN = "every_n",
    }
}

spec_words! {
    /// The element type in which samples cross to the IPU.
    pub enum StreamInputType {
        /// The type of the model.
        Model = "model",
        /// float32.
        Float32 = "float32",
        /// float16.
        Float16 = "float16",
        /// uint8.
        UInt8 = "uint8",
        /// int8.
        Int8 = "int8",
    }
}

spec_words! {
    /// The element type in which results cross to the host.
    pub enum StreamOutputType {
        /// The type of the model.
        Model = "model",
        /// float32.
        Float32 = "float32",
        /// float16.
        Float16 = "float16",
    }
}

spec_words! {
    /// The results that go to the host.
    pub enum ReturnedOutputs {
        /// All results of the model.
        All = "all",
        /// Only the loss, if the model has one.
        Loss = "loss",
    }
}

spec_words! {
    /// The way in which the stream buffers are filled.
    pub enum StreamConnection {
        /// Callbacks of a framework, which copy each micro-batch.
        Framework = "framework",
        /// A plain program, whose memory is connected to the stream.
        Raw = "raw",
    }
}

spec_words! {
    /// The threads of an instance that call its stream callbacks.
    pub enum MultiThreadMode {
        /// The thread that runs the program, one callback after the other.
        SingleThread = "single_thread",
        /// Worker threads.
        Dedicated = "dedicated",
        /// Worker threads and the thread that runs the program.
        Collaborative = "collaborative",
    }
}

spec_words! {
    /// The source of samples.
    pub enum DataLoaderMode {
        /// Always ready: only stream callbacks take time.
        None = "none",
        /// Loaded during the previous call.
        Async = "async",
        /// Loaded during the previous call. Workers return small batches, which are then combined.
        AsyncRebatched = "async_rebatched",
        Sync = "sync",
        /// Made on the IPU.
        Synthetic = "synthetic",
    }
}

spec_words! {
    /// Currencies, identified by three letters (ISO 4217).
    pub enum Currency {
        UsDollar = "USD",
        Euro = "EUR",
        PoundSterling = "GBP",
        SwissFranc = "CHF",
        Yuan = "CNY",
        Yen = "JPY",
        Won = "KRW",
        IndianRupee = "INR",
        CanadianDollar = "CAD",
        AustralianDollar = "AUD",
        SingaporeDollar = "SGD",
        NorwegianKrone = "NOK",
    }
}

impl Currency {
    /// The three letters of the currency.
    pub(crate) fn code(self) -> String {
        match self.to_spec() {
            SpecValue::String(code) => code,
            _ => String::new(),
        }
    }
}

impl SpecField for TargetKind {
    const FORM: SpecKeyType = SpecKeyType::OneOf(&["ipu", "ipu_model"]);

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::String(word) if word == "ipu" => Some(Self::Ipu),
            SpecValue::String(word) if word == "ipu_model" => Some(Self::IpuModel),
            _ => None,
        }
    }

    fn to_spec(&self) -> SpecValue {
        let word = match self {
            Self::Ipu => "ipu",
            Self::IpuModel => "ipu_model",
        };
        SpecValue::String(word.to_string())
    }
}

impl SpecField for &'static SystemDef {
    const FORM: SpecKeyType = SpecKeyType::OneOf(&targets::SYSTEM_NAMES);

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::String(name) => targets::find_system(name),
            _ => None,
        }
    }

    fn to_spec(&self) -> SpecValue {
        SpecValue::String(self.name.to_string())
    }
}

impl SpecField for &'static HostPath {
    const FORM: SpecKeyType = SpecKeyType::OneOf(&HOST_PATH_NAMES);

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::String(name) => HOST_PATHS.into_iter().find(|path| path.name == name),
            _ => None,
        }
    }

    fn to_spec(&self) -> SpecValue {
        SpecValue::String(self.name.to_string())
    }
}

impl SpecField for Optimizer {
    const FORM: SpecKeyType = SpecKeyType::OneOf(&Self::NAMES);

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::String(name) => Self::find(name),
            _ => None,
        }
    }

    fn to_spec(&self) -> SpecValue {
        SpecValue::String(self.name().to_string())
    }
}
