//! Keys that a search may change, and values worth trying without a proposal.

/// The condition under which a lever has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeverUse {
    Always,
    Training,
    SeveralIpus,
    Replicas,
}

/// A key and the values that may help without a proposal of insights.
pub struct Lever {
    pub key: &'static str,
    pub used: LeverUse,
    /// Values that may save time.
    pub faster: &'static [&'static str],
    /// Values that may save memory.
    pub smaller: &'static [&'static str],
}

const fn lever(
    key: &'static str,
    used: LeverUse,
    faster: &'static [&'static str],
    smaller: &'static [&'static str],
) -> Lever {
    Lever { key, used, faster, smaller }
}

/// Options that change the execution but not the result.
pub static LEVERS: &[Lever] = &[
    lever(
        "options.sync_pattern",
        LeverUse::SeveralIpus,
        &["single_pipeline", "replica_and_ladder"],
        &[],
    ),
    lever(
        "options.accumulate_outer_schedule",
        LeverUse::SeveralIpus,
        &["overlap_cycle_optimized"],
        &["serial"],
    ),
    lever("options.overlap_io", LeverUse::Always, &["loops", "inner_loop"], &["none"]),
    lever("options.execution", LeverUse::SeveralIpus, &["pipelined"], &["sharded", "phased"]),
    lever(
        "options.pipeline_schedule",
        LeverUse::SeveralIpus,
        &["grouped", "interleaved"],
        &["interleaved", "sequential"],
    ),
    lever("options.recomputation", LeverUse::Training, &["none"], &["checkpoints", "pipeline"]),
    lever("options.merge_exchange", LeverUse::Always, &["true"], &[]),
    lever("options.merge_collectives", LeverUse::Replicas, &["true"], &[]),
    lever("options.sync_replicas_independently", LeverUse::Replicas, &["true"], &[]),
    lever(
        "options.location.optimizer_state.replicated_tensor_sharding",
        LeverUse::Replicas,
        &["true"],
        &["true"],
    ),
    lever("options.location.activations.on_chip", LeverUse::Always, &["true"], &["false"]),
    lever("options.location.optimizer_state.on_chip", LeverUse::Training, &["true"], &["false"]),
    lever("options.location.accumulators.on_chip", LeverUse::Training, &["true"], &["false"]),
    lever("options.location.weights.on_chip", LeverUse::Always, &["true"], &["false"]),
    lever("options.conv_dithering", LeverUse::Always, &[], &["true"]),
    lever("options.enable_outlining", LeverUse::Always, &["false"], &["true"]),
    lever(
        "options.serialize_matmul",
        LeverUse::Always,
        &["none"],
        &["output_channels", "input_channels"],
    ),
];

/// Numbers that are worth doubling and halving.
pub static NUMBERS: &[&str] = &[
    "options.num_io_tiles",
    "options.available_memory_proportion",
    "options.device_iterations",
    "options.prefetch_depth",
];

/// Numbers that affect memory.
pub static NUMBERS_OF_MEMORY: &[&str] =
    &["options.available_memory_proportion", "options.num_io_tiles"];

/// Keys, and tables of keys, that determine the computation, its machine or its precision. They
/// change only if they are freed.
pub static MEANING: &[&str] = &[
    "model",
    "target",
    "options.gradient_accumulation",
    "options.replication_factor",
    "options.tensor_parallel",
    "options.partials_type",
    "options.stochastic_rounding",
    "options.returned_outputs",
    "options.output_type",
];

/// True if a key is in a list, or in one of its tables.
pub fn is_below(path: &str, list: &[impl AsRef<str>]) -> bool {
    list.iter().any(|of| {
        let rest = path.strip_prefix(of.as_ref());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_sim::specification::keys::KEYS;

    #[test]
    fn levers_are_keys_and_their_values_are_taken() {
        for Lever { key: path, faster, smaller, .. } in LEVERS {
            let key = KEYS.iter().find(|key| key.path == *path);
            let key = key.unwrap_or_else(|| panic!("{path} is no key"));
            for value in faster.iter().chain(*smaller) {
                key.read(value).unwrap_or_else(|error| panic!("{path}: {error}"));
            }
            assert!(!is_below(path, MEANING), "{path} changes what is computed");
        }
        for path in NUMBERS.iter().chain(NUMBERS_OF_MEMORY).chain(MEANING) {
            assert!(KEYS.iter().any(|key| is_below(&key.path, &[path])), "{path} is no key");
        }
    }

    #[test]
    fn tables_match_only_their_own_keys() {
        assert!(is_below("model.batch_size", MEANING));
        assert!(is_below("options.partials_type", MEANING));
        assert!(!is_below("options.num_io_tiles", MEANING));
        assert!(!is_below("models.name", MEANING));
    }
}
