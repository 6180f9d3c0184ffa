//! The network of the PopTorch tutorial on efficient data loading: two convolutions, group norm,
//! two linear layers, and a log-softmax that runs over the batch, as in the tutorial.

use super::layer_builder::ModelBuilder;
use super::{ModelDef, ModelSpec, size};
use crate::graph::{GraphError, ModelGraph};
use crate::operators::{ActivationOp, ConvOp, NllOp, NormOp, PoolOp, SoftmaxOp};
use crate::spec_keys::SpecKey;

const SIZES: &[SpecKey] = &[
    size("model.image_size", "128", "Side of the square images, which have one channel"),
    size("model.classes", "10", "Classes"),
];

/// The `ClassificationModel` of the tutorial.
pub(crate) const MODEL: ModelDef = ModelDef {
    name: "classification",
    about: "Data loading tutorial: conv 3x3 1-5, conv 5x5 5-12, group norm, linear 100, linear 10",
    sizes: SIZES,
    trainable: true,
    batched: true,
    float32_only: false,
    build,
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let [side, classes] = ["image_size", "classes"].map(|name| spec.size(name));
    let batch = spec.batch_size;
    let mut model = ModelBuilder::new(spec);
    model.block("main");
    let x = model.input("image", &[batch, 1, side, side], model.dtype);
    let x = model.conv("conv1", x, 5, 3, ConvOp::square(1, 0))?;
    let x = model.bias("conv1", x, 5)?;
    let x = model.apply("conv1/relu", ActivationOp::RELU, &[x])?;
    let x = model.apply("pool", PoolOp::max(2, 2, 0), &[x])?;
    let x = model.conv("conv2", x, 12, 5, ConvOp::square(1, 0))?;
    let x = model.bias("conv2", x, 12)?;
    let x = model.apply("conv2/relu", ActivationOp::RELU, &[x])?;
    let [scale, shift] = model.affine("norm", 12)?;
    let x = model.apply_all("norm", NormOp::of_groups(3), &[x, scale, shift])?[0];
    let values = model.ty(x).elements().0 / batch;
    let x = model.reshape("flatten", x, &[batch, values])?;
    let x = model.linear("fc1", x, 100)?;
    let x = model.apply("fc1/relu", ActivationOp::RELU, &[x])?;
    let x = model.linear("fc2", x, classes)?;
    let x = model.apply("log_softmax", SoftmaxOp { axis: 0, log: true }, &[x])?;
    model.output(x);
    if spec.training {
        let labels = model.input("labels", &[batch], crate::shape::DType::Int);
        model.loss("loss", NllOp, &[x, labels])?;
    }
    Ok(model.finish())
}
