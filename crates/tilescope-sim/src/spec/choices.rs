//! Options that are one of several words.

use super::CheckedSpecValues;

/// Words of a key that become values of an enum.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(unreachable_pub, reason = "of the words of a spec, most are options of it")]
        pub enum $name {
            $($(#[$item_doc])* $item,)+
        }

        impl $name {
            pub(super) fn read(values: &CheckedSpecValues, path: &str) -> Self {
                match values.text(path).as_str() {
                    $($word => Self::$item,)+
                    other => panic!("KEYS allows {other:?} for {path}, the options do not"),
                }
            }
        }
    };
}

words! {
    /// How stages share the IPUs.
    ExecutionStrategy {
        /// Several micro-batches in flight.
        Pipelined = "pipelined",
        /// One micro-batch at a time.
        Sharded = "sharded",
        /// One micro-batch at a time; weights of a phase come from streaming memory.
        Phased = "phased",
    }
}

words! {
    /// Stages where none are written.
    AutoStage {
        AutoIncrement = "auto_increment",
        /// Blocks dealt evenly over the IPUs.
        SameAsIpu = "same_as_ipu",
        /// The split whose longest stage is shortest.
        Balanced = "balanced",
    }
}

words! {
    /// Order of passes in a pipeline.
    PipelineSchedule {
        /// Each IPU makes a forward and a backward pass per slot.
        Grouped = "grouped",
        /// Each IPU makes one pass per slot, forward and backward in turn.
        Interleaved = "interleaved",
        /// One micro-batch at a time.
        Sequential = "sequential",
    }
}

words! {
    /// Whose count of slots and stashes is meant.
    StashConvention {
        /// PopART's: `2 (S - 1 - s) + 1`.
        Popart = "popart",
        /// The memory guide's: `2 (S - s) + 1`; `S + 1` when interleaved.
        Seed = "seed",
    }
}

words! {
    /// What the backward pass computes again.
    RecomputationType {
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

words! {
    /// Which IPUs a sync for host or streaming memory stops.
    SyncPattern {
        Full = "full",
        /// Only the one that copies.
        SinglePipeline = "single_pipeline",
        ReplicaAndLadder = "replica_and_ladder",
    }
}

words! {
    /// Host copies beside compute.
    OverlapIo {
        None = "none",
        /// Within a weight update.
        InnerLoop = "inner_loop",
        /// Across weight updates too.
        Loops = "loops",
    }
}

words! {
    /// Which micro-batches send results to the host.
    OutputMode {
        All = "all",
        /// The last one of a host call.
        Final = "final",
        /// Their sum, once per host call.
        Sum = "sum",
        /// One of so many.
        EveryN = "every_n",
    }
}

words! {
    /// Element type of samples on their way to the IPU.
    StreamInputType {
        /// That of the model.
        Model = "model",
        /// float32.
        Float32 = "float32",
        /// float16.
        Float16 = "float16",
        /// uint8.
        UInt8 = "uint8",
    }
}

words! {
    /// Where samples come from.
    DataLoaderMode {
        /// Always ready: only stream callbacks take time.
        None = "none",
        /// Loaded while the call before runs.
        Async = "async",
        Sync = "sync",
        /// Made on the IPU.
        Synthetic = "synthetic",
    }
}

words! {
    /// Which dimension linear layers are cut along.
    SerializeMatMulOption {
        /// None: layers stay whole.
        None = "none",
        /// Rows of the input.
        InputChannels = "input_channels",
        /// The dimension that is summed over.
        ReducingDim = "reducing_dim",
        /// Columns of the weights.
        OutputChannels = "output_channels",
    }
}
