//! Refusal of models that are far too large to compile.
//!
//! A model that does not fit in memory is compiled all the same, because its report shows what is
//! too large. A tensor of many times the memory shows nothing, and placing it takes long.

use crate::graph::{GraphError, GraphProblem, ModelGraph};
use crate::shape::{Tensor, TensorRole};
use crate::specification::Spec;
use tilescope_report::units::Bytes;

/// The size of a tensor, in multiples of the memory of all IPUs of a replica, above which a model
/// is not compiled.
const MOST_TIMES: u64 = 4;

/// Refuses a graph with a tensor that is far larger than the memory of all IPUs of a replica.
///
/// # Errors
/// Returns an error that names the largest tensor.
pub(super) fn refuse_far_too_large(spec: &Spec, graph: &ModelGraph) -> Result<(), GraphError> {
    let chip = &spec.target.chip;
    let tiles = u64::from(chip.tiles) * u64::from(spec.target.ipus);
    let memory = chip.bytes_per_tile * tiles;
    let mut is_held = Vec::with_capacity(graph.tensors.len());
    for tensor in &graph.tensors {
        is_held.push(match tensor.role {
            TensorRole::Input | TensorRole::Activation => true,
            // Streaming memory may hold them, and its size is not checked here.
            _ => spec.options.location.weights.on_chip,
        });
    }
    for node in &graph.nodes {
        let shared = node.operator.output_alias().shared_memory(&node.operands());
        // A view takes no memory of its own, even if it repeats its operand many times.
        if let Some((_, views, true)) = shared {
            for view in views {
                is_held[view.0] = false;
            }
        }
    }
    let mut largest: Option<(&Tensor, Bytes)> = None;
    for (tensor, is_held) in graph.tensors.iter().zip(is_held) {
        let bytes = tensor.ty.dtype.bytes() * tensor.ty.elements().0;
        if is_held && largest.is_none_or(|(_, most)| bytes > most) {
            largest = Some((tensor, bytes));
        }
    }
    match largest {
        Some((tensor, bytes)) if bytes >= MOST_TIMES * memory => {
            let times = bytes.0 / memory.0;
            let problem = GraphProblem::FarTooLarge { ty: tensor.ty.clone(), bytes, times };
            Err(GraphError::new(&tensor.name, problem))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::build_graph;
    use super::*;
    use crate::model::MODELS;
    use crate::spec_keys::SpecKeyType;
    use crate::specification::SpecSource;

    /// The message of the refusal of a model with one key set to a value, if it is refused.
    fn refusal(model: &str, key: &str, value: i64) -> Option<String> {
        let text = format!("[model]\nname = \"{model}\"\n");
        let mut source = SpecSource::from_text("test", &text);
        source.overrides.push(format!("{key}={value}"));
        let spec = match Spec::build(&source) {
            Ok(spec) => spec,
            Err(error) => return Some(error.to_string()),
        };
        match build_graph(&spec) {
            Ok((graph, _)) => refuse_far_too_large(&spec, &graph).err().map(|e| e.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Keys whose largest value is harmless: the batch of models without one, and two vectors.
    const BOUNDED: [&str; 6] = [
        "adder model.batch_size",
        "adder model.elements",
        "mat_vec model.batch_size",
        "matmul_chain model.batch_size",
        "matrix_sum model.batch_size",
        "stencil model.batch_size",
    ];

    #[test]
    fn absurd_sizes_of_any_key_are_refused_before_anything_is_planned() {
        let mut bounded = Vec::new();
        for model in MODELS {
            let mut keys = vec!["model.batch_size"];
            for key in model.sizes {
                if let SpecKeyType::Integer(_, 16_777_216) = key.value_type {
                    keys.push(&key.path);
                }
            }
            keys.retain(|key| refusal(model.name, key, 16_777_216).is_none());
            bounded.extend(keys.iter().map(|key| format!("{} {key}", model.name)));
        }
        assert_eq!(bounded, BOUNDED);
        let words = refusal("mnist", "model.batch_size", 6_553_640).expect("refused");
        assert!(words.contains("times the memory of all IPUs"), "{words}");
        assert_eq!(refusal("mnist", "model.batch_size", 10_000), None);
    }
}
