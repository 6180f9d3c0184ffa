//! Facts that only names and labels reveal, because reports have no field for them. Each function
//! names the writer of the label.

/// The stage of a program that is a forward pass. The simulator names the program `B1/forward`, and
/// its marks `B1 forward`.
pub(crate) fn forward_program(name: &str) -> Option<&str> {
    name.strip_suffix("/forward").filter(|stage| !stage.is_empty())
}

/// The kind of collective between replicas that an exchange is a step of. The simulator names it
/// after the tensor: `name/reduceScatter/crossReplicaCopy`.
pub(crate) fn collective(exchange: &str) -> Option<&str> {
    let path = exchange.strip_suffix("/crossReplicaCopy")?;
    Some(path.rsplit_once('/').map_or(path, |(_, kind)| kind))
}

/// True if a copy with the host returns results. The simulator names it after the result:
/// `loss/copyToHost`, followed by the part of the copy.
pub(crate) fn is_to_host(copy: &str) -> bool {
    copy.contains("copyToHost")
}

/// True if a program belongs to an operation that repeats a computation of the forward pass:
/// `layer/conv/recompute/Conv_1`.
pub(crate) fn is_of_recomputation(program: &str) -> bool {
    program.split('/').any(|part| part == "recompute")
}

/// True if a program belongs to a matmul or a convolution. The names are those of Poplar's
/// libraries: `layer/conv/Conv_1/Convolve`, `layer/matmul/Convolve/ExchangePre`, `…/Reduce`.
pub(crate) fn is_of_convolution(program: &str) -> bool {
    program.contains("/Conv") || program.contains("/Reduce")
}

/// Parts of names of programs that only change a layout, in the spelling of Poplar's libraries.
const REARRANGEMENT_NAME_PARTS: [&str; 8] = [
    "PreArrange",
    "OnTileCopy",
    "actsRearranged",
    "weightsRearranged",
    "preRegroup",
    "Regroup",
    "partialTranspose",
    "Transpose",
];

/// True if a program only changes a layout. The names are those of Poplar's libraries.
pub(crate) fn rearranges(program: &str) -> bool {
    REARRANGEMENT_NAME_PARTS.iter().any(|part| program.contains(part))
}

/// True if an operation repeats a computation of the forward pass. The simulator appends to that
/// operation's name: `name/recompute`.
pub(crate) fn is_recomputed(operation: &str) -> bool {
    operation.ends_with("/recompute")
}

/// The tensor that a variable stores until its backward pass. The simulator names it after the
/// tensor: `name/stash`.
pub(crate) fn stashed_tensor(variable: &str) -> Option<&str> {
    variable.strip_suffix("/stash")
}

/// True if a variable stores activations until their backward pass.
pub(crate) fn is_stash(variable: &str) -> bool {
    stashed_tensor(variable).is_some()
}

/// The blocks of a stage. The simulator names the stage after all of them: `layer0+layer1`.
pub(crate) fn blocks_of_stage(stage: &str) -> Vec<&str> {
    stage.split('+').collect()
}

/// True if a program writes a stash or reads it again: `name/stash/…`, `name/restore/…`.
pub(crate) fn is_of_stash(program: &str) -> bool {
    program.split('/').any(|part| matches!(part, "stash" | "restore"))
}

/// True if a variable is optimiser state. PopART and the simulator name it after the weights:
/// `Accl1___layer/weight`.
pub(crate) fn is_optimizer_state(variable: &str) -> bool {
    variable.starts_with("Accl") && owner_of_state(variable).is_some()
}

/// True if a variable accumulates gradients. PopART and the simulator name it after the weights:
/// `Accum___layer/weight`.
pub(crate) fn is_accumulator(variable: &str) -> bool {
    variable.starts_with("Accum___")
}

/// True if a variable holds partial sums. The simulator names them after the operation:
/// `layer/Conv_1/partials`.
pub(crate) fn is_partials(variable: &str) -> bool {
    variable.ends_with("/partials")
}

/// True if the last part of a variable's name is that of weights: `layer/weight`,
/// `encoder.0.fc.weight`.
pub(crate) fn is_named_weight(variable: &str) -> bool {
    variable.rsplit(['/', '.']).next().is_some_and(|name| name.contains("weight"))
}

/// The weights whose optimiser state or gradients a variable holds.
pub(crate) fn owner_of_state(variable: &str) -> Option<&str> {
    let (kind, owner) = variable.split_once("___")?;
    if matches!(kind, "Accl" | "Accl1" | "Accl2" | "Accum") { Some(owner) } else { None }
}

/// True if a variable has elements of 32-bit floating point, according to the description in
/// [`crate::liveness::LiveVariable`]: its category and its shape, which starts with the type in all
/// reports (`float32[10,5]`).
pub(crate) fn is_float32(about: &str) -> bool {
    about.contains("float32")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_are_recognized_by_name() {
        assert_eq!(collective("Accum___a/b/reduceScatter/crossReplicaCopy"), Some("reduceScatter"));
        assert_eq!(collective("inter-ipu-copies/GlobalPre"), None);
    }

    #[test]
    fn copies_and_passes_are_recognized_by_name() {
        assert!(is_to_host("loss/copyToHost") && !is_to_host("copyFromHost"));
        assert!(is_of_recomputation("layer/conv/recompute/Conv_1"));
        assert!(!is_of_recomputation("layer/conv"));
        assert!(is_of_convolution("cs0_layer/Conv_1/Convolve") && !is_of_convolution("a/Add"));
    }

    #[test]
    fn rearrangements_and_recomputation_are_recognized_by_name() {
        assert!(rearranges("a/conv/Convolve/PreArrange-0") && !rearranges("a/conv/Convolve"));
        assert!(is_recomputed("a/relu/recompute") && !is_recomputed("a/recompute/relu"));
    }

    #[test]
    fn state_and_gradients_are_recognized_by_name() {
        assert!(is_optimizer_state("Accl1___a/weight") && is_optimizer_state("Accl___b"));
        assert!(!is_optimizer_state("Accum___b") && !is_optimizer_state("Accl_b"));
        assert!(is_accumulator("Accum___a/weight") && !is_accumulator("a/Accum___"));
        assert_eq!(owner_of_state("Accl2___a/weight"), Some("a/weight"));
        assert_eq!(owner_of_state("a___b"), None);
        assert!(is_partials("a/Conv_1/partials") && !is_partials("partials/a"));
        assert!(is_named_weight("a/weight") && is_named_weight("a.b.weight"));
        assert!(!is_named_weight("weights/a") && !is_named_weight("m1"));
    }

    #[test]
    fn stashes_and_types_are_recognized_by_name() {
        assert!(is_stash("encoder/x/stash") && !is_stash("encoder/stash/x"));
        assert!(is_of_stash("x/restore/DynamicSlice") && is_of_stash("cs1_x/stash/update"));
        assert!(!is_of_stash("restored/Conv"));
        assert!(is_float32("Variable, float32[10,5]") && !is_float32("Variable, float16[10,5]"));
    }
}
