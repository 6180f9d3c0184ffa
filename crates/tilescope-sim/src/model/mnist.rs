//! The network of the PopTorch pipelining tutorial (SDK 3.0): two convolution layers and two
//! linear ones on MNIST images, in blocks B1 to B4.

use super::layer_builder::ModelBuilder;
use super::{ModelDef, ModelSpec};
use crate::graph::{GraphError, ModelGraph};
use crate::operators::{ActivationOp, ConvOp, PoolOp};
use crate::shape::TensorId;

/// The side of the images, which have one channel.
const IMAGE: u64 = 28;
const CLASSES: u64 = 10;

pub(crate) const MODEL: ModelDef = ModelDef {
    name: "mnist",
    about: "MNIST: conv 5x5 1-10, conv 5x5 10-20, linear 320-256, linear 256-10; blocks B1 to B4",
    sizes: &[],
    trainable: true,
    batched: true,
    float32_only: false,
    build,
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let batch = spec.batch_size;
    let mut model = ModelBuilder::new(spec);
    model.block("B1");
    let mut x = model.input("image", &[batch, 1, IMAGE, IMAGE], model.dtype);
    x = conv_layer(&mut model, "layer1", x, 10)?;
    model.block("B2");
    x = conv_layer(&mut model, "layer2", x, 20)?;
    model.block("B3");
    x = model.reshape("flatten", x, &[batch, 320])?;
    x = model.linear("layer3", x, 256)?;
    x = model.apply("layer3_act", ActivationOp::RELU, &[x])?;
    model.block("B4");
    x = model.linear("layer4", x, CLASSES)?;
    model.classify(x)?;
    Ok(model.finish())
}

/// A convolution 5 x 5 with bias, max-pool 2 and ReLU: `ConvLayer` of the tutorial.
fn conv_layer(
    model: &mut ModelBuilder,
    name: &str,
    x: TensorId,
    filters: u64,
) -> Result<TensorId, GraphError> {
    let conv = format!("{name}/conv");
    let x = model.conv(&conv, x, filters, 5, ConvOp::square(1, 0))?;
    let x = model.bias(&conv, x, filters)?;
    let x = model.apply(&format!("{name}/pool"), PoolOp::max(2, 2, 0), &[x])?;
    model.apply(&format!("{name}/relu"), ActivationOp::RELU, &[x])
}
