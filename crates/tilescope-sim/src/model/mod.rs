//! Built-in models, from their published definitions.

mod adder;
mod bert;
mod classification;
mod gpt2;
mod imported;
mod layer_builder;
mod lstm;
mod mat_vec;
mod matmul_chain;
mod matrix_sum;
mod mlp;
mod mnist;
mod model_spec;
mod operation_precision;
mod resnet;
mod stencil;
mod vit;

use crate::graph::{GraphError, GraphProblem, ModelGraph};
use crate::spec_keys::{LARGEST_SIZE, SpecKey, SpecKeyType};
use std::fmt;

pub(crate) use imported::IMPORTED;
pub(crate) use model_spec::{ModelPrecision, ModelSpec};
pub(crate) use operation_precision::OperationKind;

/// The definition of a built-in model.
#[derive(Clone, Copy)]
pub struct ModelDef {
    /// The name of the model in a spec.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The model's own sizes, as keys of `[model]`.
    pub sizes: &'static [SpecKey],
    /// True if the model has a loss.
    pub trainable: bool,
    /// True if the model works on batches of samples.
    pub batched: bool,
    /// True if its vertices exist for float32 only, so that it has no other precision.
    pub float32_only: bool,
    /// Builds the forward graph for one micro-batch.
    pub build: fn(&ModelSpec) -> Result<ModelGraph, GraphError>,
}

impl fmt::Debug for ModelDef {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "model {}", self.name)
    }
}

impl ModelDef {
    /// True if the model stands for the graph of a file.
    pub(crate) fn is_imported(&self) -> bool {
        self.name == IMPORTED.name
    }
}

/// Every built-in model, sorted by name.
pub const MODELS: &[ModelDef] = &[
    adder::MODEL,
    bert::MODEL,
    bert::SQUAD,
    classification::MODEL,
    gpt2::MODEL,
    lstm::MODEL,
    mat_vec::MODEL,
    matmul_chain::MODEL,
    matrix_sum::MODEL,
    mlp::MODEL,
    mnist::MODEL,
    resnet::RESNET18,
    resnet::RESNET50,
    stencil::MODEL,
    vit::MODEL,
];

/// The names of all models.
pub fn names() -> Vec<&'static str> {
    MODELS.iter().map(|model| model.name).collect()
}

/// Returns the model of that name: a built-in one, or the one that stands for an imported file.
pub(crate) fn find(name: &str) -> Option<&'static ModelDef> {
    MODELS.iter().chain([&IMPORTED]).find(|model| model.name == name)
}

/// The key of a size with a default.
const fn size(path: &'static str, default: &'static str, about: &'static str) -> SpecKey {
    SpecKey::of_model(path, SpecKeyType::Integer(1, LARGEST_SIZE), default, about, &[])
}

/// The key of the number of layers. Each layer is a block, so the limit bounds the number of
/// blocks.
const fn depth(default: &'static str) -> SpecKey {
    let about = "Number of layers, each a separate block";
    SpecKey::of_model("model.layers", SpecKeyType::Integer(1, 256), default, about, &[])
}

/// Checks that one size is a multiple of another.
fn expect_divides(whole: &str, size: u64, part: &str, of: u64) -> Result<(), GraphError> {
    if of > 0 && size.is_multiple_of(of) {
        return Ok(());
    }
    Err(GraphError::new(whole, GraphProblem::NotMultiple { size, part: part.to_owned(), of }))
}

/// Checks that one size is no larger than another.
fn expect_at_most(name: &str, size: u64, bound: &str, most: u64) -> Result<(), GraphError> {
    if size <= most {
        return Ok(());
    }
    Err(GraphError::new(name, GraphProblem::MoreThan { size, bound: bound.to_owned(), most }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specification::{Spec, SpecError, SpecSource};

    #[test]
    fn models_are_sorted_and_build_with_their_defaults() {
        assert!(names().is_sorted());
        for name in names() {
            let source = SpecSource::from_text("test", &format!("[model]\nname = \"{name}\"\n"));
            let spec = Spec::build(&source).expect("valid spec");
            let graph = (spec.model.definition.build)(&spec.model).expect("sizes fit");
            assert!(graph.nodes.iter().any(|node| graph.node_flops(node) > 0), "{name}");
        }
    }

    #[test]
    fn every_model_has_the_precision_of_its_spec_or_refuses_it() {
        for name in names() {
            let build = |precision: &str| {
                let text = format!("[model]\nname = \"{name}\"\nprecision = \"{precision}\"\n");
                let spec = Spec::build(&SpecSource::from_text("test", &text))?;
                Ok((spec.model.definition.build)(&spec.model).expect("sizes fit"))
            };
            let types = |graph: &ModelGraph| {
                graph.tensors.iter().map(|tensor| tensor.ty.dtype).collect::<Vec<_>>()
            };
            let full: ModelGraph = build("float32").expect("valid spec");
            for precision in ["mixed", "float16"] {
                let narrow: Result<ModelGraph, SpecError> = build(precision);
                match narrow {
                    Ok(narrow) => assert_ne!(types(&narrow), types(&full), "{name}"),
                    Err(error) => assert_eq!(error.key, "model.precision", "{name}"),
                }
            }
        }
    }
}
