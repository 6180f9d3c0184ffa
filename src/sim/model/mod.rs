//! The layers people name: built-in models, from their published definitions.

mod matmul_chain;
mod mlp;
mod mnist;

use crate::sim::graph::{DType, Graph, GraphBuilder, GraphError, Role, TensorId, TensorType};
use crate::sim::ops::{BiasAdd, MatMul};
use crate::sim::spec::{Key, ModelSpec};
use std::fmt;

/// A built-in model.
#[derive(Clone, Copy)]
pub struct ModelDef {
    /// Name in a spec.
    pub name: &'static str,
    /// What it is, one line.
    pub about: &'static str,
    /// Its own sizes, as keys of `[model]`.
    pub sizes: &'static [Key],
    /// Whether it has a loss.
    pub trainable: bool,
    /// Whether it works on batches of samples.
    pub batched: bool,
    /// Builds the forward graph for one micro-batch.
    pub build: fn(&ModelSpec) -> Result<Graph, GraphError>,
}

impl fmt::Debug for ModelDef {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "model {}", self.name)
    }
}

/// Every built-in model, sorted by name.
pub const MODELS: &[ModelDef] = &[matmul_chain::MODEL, mlp::MODEL, mnist::MODEL];

/// The names of all models.
pub fn names() -> Vec<&'static str> {
    MODELS.iter().map(|model| model.name).collect()
}

/// The model of that name.
pub fn find(name: &str) -> Option<&'static ModelDef> {
    MODELS.iter().find(|model| model.name == name)
}

/// The key of a size with a default.
const fn size(path: &'static str, default: &'static str, about: &'static str) -> Key {
    Key {
        path,
        form: crate::sim::spec::Form::Integer(1, crate::sim::spec::keys::LARGEST_SIZE),
        default,
        about,
        also: "",
    }
}

/// `x . weight + bias`.
fn linear(
    graph: &mut GraphBuilder,
    name: &str,
    x: TensorId,
    outputs: u64,
    dtype: DType,
) -> Result<TensorId, GraphError> {
    let inputs = graph.graph().tensor(x).ty.shape[1];
    let weights = TensorType::new([inputs, outputs], dtype);
    let weights = graph.tensor(&format!("{name}/weight"), weights, Role::Parameter);
    let bias =
        graph.tensor(&format!("{name}/bias"), TensorType::new([outputs], dtype), Role::Parameter);
    let x = graph.apply(name, MatMul::default(), &[x, weights])?;
    graph.apply(&format!("{name}/bias"), BiasAdd { axis: 1 }, &[x, bias])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Pass;
    use crate::sim::spec::{Spec, SpecSource};

    fn graph(text: &str) -> Graph {
        let spec = Spec::build(&SpecSource::from_text("test", text)).expect("valid spec");
        (spec.model.definition.build)(&spec.model).expect("sizes fit")
    }

    #[test]
    fn models_are_sorted_and_build_with_their_defaults() {
        assert!(names().is_sorted());
        for name in names() {
            let graph = graph(&format!("[model]\nname = \"{name}\"\n"));
            assert!(!graph.nodes.is_empty() && graph.flops(Pass::Forward) > 0, "{name}");
        }
    }

    #[test]
    fn mnist_has_the_parameters_of_the_tutorial() {
        // Convolutions 260 and 5,020, linear layers 82,176 and 2,570.
        assert_eq!(graph("[model]\nname = \"mnist\"\n").parameter_count(), 90_026);
    }
}
