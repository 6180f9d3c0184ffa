//! A multi-layer perceptron of any depth, one block per layer: the plainest model to pipeline.

use super::{ModelDef, size};
use crate::sim::graph::{DType, Graph, GraphBuilder, GraphError, Role, TensorType};
use crate::sim::ops::{Activation, CrossEntropy};
use crate::sim::spec::{Form, Key, ModelSpec};

const SIZES: &[Key] = &[
    Key {
        path: "model.layers",
        form: Form::Integer(1, 64),
        default: "4",
        about: "Linear layers, each a block of its own: L0, L1 and so on",
        also: "",
    },
    size("model.width", "256", "Values between layers"),
    size("model.classes", "16", "Values of the last layer"),
];

/// Linear layers with ReLU between them, and a cross-entropy loss when trained.
pub const MODEL: ModelDef = ModelDef {
    name: "mlp",
    about: "Multi-layer perceptron of any depth; blocks L0, L1, ...",
    sizes: SIZES,
    trainable: true,
    batched: true,
    build,
};

fn build(spec: &ModelSpec) -> Result<Graph, GraphError> {
    let [layers, width, classes] = ["layers", "width", "classes"].map(|name| spec.size(name));
    let (batch, dtype) = (spec.batch_size, spec.precision);
    let mut graph = GraphBuilder::new();
    graph.block("L0");
    let mut x = graph.tensor("input", TensorType::new([batch, width], dtype), Role::Input);
    for layer in 0..layers {
        let name = format!("L{layer}");
        graph.block(&name);
        let last = layer + 1 == layers;
        x = super::linear(&mut graph, &name, x, if last { classes } else { width }, dtype)?;
        if !last {
            x = graph.apply(&format!("{name}/relu"), Activation::RELU, &[x])?;
        }
    }
    graph.output(x);
    if spec.training {
        let labels = graph.tensor("labels", TensorType::new([batch], DType::Int), Role::Input);
        let loss = graph.apply("loss", CrossEntropy, &[x, labels])?;
        graph.output(loss);
        graph.loss(loss);
    }
    Ok(graph.finish())
}
