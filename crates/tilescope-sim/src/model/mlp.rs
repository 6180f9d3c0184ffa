//! A multi-layer perceptron of any depth, one block per layer: the simplest model to pipeline.

use super::layer_builder::ModelBuilder;
use super::{ModelDef, ModelSpec, size};
use crate::graph::{GraphError, ModelGraph};
use crate::operators::ActivationOp;
use crate::spec_keys::SpecKey;

const SIZES: &[SpecKey] = &[
    super::depth("4"),
    size("model.width", "256", "Width of hidden layers"),
    size("model.classes", "16", "Width of the last layer"),
];

/// Linear layers with ReLU between them, and a cross-entropy loss when trained.
pub(crate) const MODEL: ModelDef = ModelDef {
    name: "mlp",
    about: "Multi-layer perceptron of any depth; blocks L0, L1, ...",
    sizes: SIZES,
    trainable: true,
    batched: true,
    float32_only: false,
    build,
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let [layers, width, classes] = ["layers", "width", "classes"].map(|name| spec.size(name));
    let mut model = ModelBuilder::new(spec);
    model.block("L0");
    let mut x = model.input("input", &[spec.batch_size, width], model.dtype);
    for layer in 0..layers {
        let name = format!("L{layer}");
        model.block(&name);
        let last = layer + 1 == layers;
        x = model.linear(&name, x, if last { classes } else { width })?;
        if !last {
            x = model.apply(&format!("{name}/relu"), ActivationOp::RELU, &[x])?;
        }
    }
    model.classify(x)?;
    Ok(model.finish())
}
