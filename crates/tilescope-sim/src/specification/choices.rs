//! Options that are one of several words.

use crate::cost_constants::{HOST_PATH_NAMES, HOST_PATHS, HostPath};
use crate::operators::Optimizer;
use crate::spec_keys::{SpecField, SpecKeyType, SpecValue, spec_words};
use crate::targets::{self, SystemDef};
use tilescope_report::TargetKind;

spec_words! {
    /// How stages share the IPUs.
    pub enum ExecutionStrategy {
        /// Several micro-batches in flight.
        Pipelined = "pipelined",
        /// One micro-batch at a time.
        Sharded = "sharded",
        /// One micro-batch at a time; weights of a phase come from streaming memory.
        Phased = "phased",
    }
}

spec_words! {
    /// Stages where none are written.
    pub enum AutoStage {
        AutoIncrement = "auto_increment",
        /// Blocks dealt evenly over the IPUs.
        SameAsIpu = "same_as_ipu",
        /// The fastest of several splits that are tried.
        Balanced = "balanced",
    }
}

spec_words! {
    /// Order of passes in a pipeline.
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
    /// Replicas that share a tensor out.
    pub enum ShardingDomain {
        /// Those of one instance: each host has all of the tensor.
        Consecutive = "consecutive",
        All = "all",
    }
}

spec_words! {
    /// Whether the IPUs of a replica share the rows of fields and images.
    pub enum DomainSharding {
        /// Where the model has one block, for which stages would leave all but one IPU idle.
        Auto = "auto",
        Rows = "rows",
        None = "none",
    }
}

spec_words! {
    /// Whose count of slots and stashes is meant.
    pub enum StashConvention {
        /// PopART's: `2 (S - 1 - s) + 1`.
        Popart = "popart",
        /// The memory guide's: `2 (S - s) + 1`; `S + 1` when interleaved.
        MemoryGuide = "memory_guide" | "seed",
    }
}

spec_words! {
    /// What the backward pass computes again.
    pub enum RecomputationType {
        /// Nothing: all activations are kept.
        None = "none",
        /// Chosen by the program: each block from its inputs.
        Auto = "auto",
        /// Each block from its inputs.
        Checkpoints = "checkpoints",
        /// The whole stage from its inputs.
        Pipeline = "pipeline",
    }
}

spec_words! {
    /// Which IPUs a sync for host or streaming memory stops.
    pub enum SyncPattern {
        Full = "full",
        /// Only the one that copies.
        SinglePipeline = "single_pipeline",
        ReplicaAndLadder = "replica_and_ladder",
    }
}

spec_words! {
    /// Host copies beside compute.
    pub enum OverlapIo {
        None = "none",
        /// Within a weight update.
        InnerLoop = "inner_loop",
        /// Across weight updates too.
        Loops = "loops",
    }
}

spec_words! {
    /// In which order the weights of stages are updated.
    pub enum AccumulateOuterSchedule {
        /// One stage after the other.
        Serial = "serial",
        /// IPUs side by side.
        OverlapCycleOptimized = "overlap_cycle_optimized",
        /// The same: which tensors PopART keeps longer in the other one is not modelled.
        OverlapMemoryOptimized = "overlap_memory_optimized",
    }
}

spec_words! {
    /// When a phase loads tensors of a kind from streaming memory.
    pub enum ExecutionPhaseIoSchedule {
        /// In the phase before.
        Preload = "preload",
        /// Just before they are read.
        OnDemand = "on_demand",
    }
}

spec_words! {
    /// In which order a phase updates its weights.
    pub enum ExecutionPhaseSchedule {
        /// One weight after the other.
        Interleaving = "interleaving",
        /// Each step for all weights, then the next one.
        Batch = "batch",
        /// The same, and all that is loaded comes before everything else that the phase does.
        BatchClusteredIo = "batch_clustered_io",
    }
}

spec_words! {
    /// Which micro-batches send results to the host.
    pub enum OutputMode {
        /// Final in training, all in inference.
        Default = "default",
        All = "all",
        /// The last one of a host call.
        Final = "final",
        /// Their sum, once per host call.
        Sum = "sum",
        /// One of so many.
        EveryN = "every_n",
    }
}

spec_words! {
    /// Element type of samples on their way to the IPU.
    pub enum StreamInputType {
        /// That of the model.
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
    /// Element type of results on their way to the host.
    pub enum StreamOutputType {
        /// That of the model.
        Model = "model",
        /// float32.
        Float32 = "float32",
        /// float16.
        Float16 = "float16",
    }
}

spec_words! {
    /// Which results go to the host.
    pub enum ReturnedOutputs {
        /// All that the model has.
        All = "all",
        /// Only the loss, where the model has one.
        Loss = "loss",
    }
}

spec_words! {
    /// Who fills the stream buffers.
    pub enum StreamConnection {
        /// Callbacks of a framework, which copy each micro-batch.
        Framework = "framework",
        /// A plain program, whose memory is connected to the stream.
        Raw = "raw",
    }
}

spec_words! {
    /// Which threads of an instance call its stream callbacks.
    pub enum MultiThreadMode {
        /// The one that runs the program, one callback after the other.
        SingleThread = "single_thread",
        /// Worker threads.
        Dedicated = "dedicated",
        /// Worker threads and the one that runs the program.
        Collaborative = "collaborative",
    }
}

spec_words! {
    /// Where samples come from.
    pub enum DataLoaderMode {
        /// Always ready: only stream callbacks take time.
        None = "none",
        /// Loaded while the call before runs.
        Async = "async",
        /// The same; workers hand over small batches, which are put together afterwards.
        AsyncRebatched = "async_rebatched",
        Sync = "sync",
        /// Made on the IPU.
        Synthetic = "synthetic",
    }
}

spec_words! {
    /// Currencies, by their three letters (ISO 4217).
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
    /// Its three letters.
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
