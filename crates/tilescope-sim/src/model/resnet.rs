//! Residual networks of 18 and 50 layers (He et al., arXiv 1512.03385), with the stride in the 3x3
//! convolution of a bottleneck, as in torchvision and graphcore/examples vision/cnns.
//!
//! Blocks for stages: `stem`, `layer1_0` to `layer4_N`, `head`.

use super::layer_builder::ModelBuilder;
use super::{ModelDef, ModelSpec, size};
use crate::graph::{GraphError, ModelGraph};
use crate::operators::{ActivationOp, BinaryOp, ConvOp, PoolOp};
use crate::shape::TensorId;
use crate::spec_keys::SpecKey;

const SIZES: &[SpecKey] = &[
    size(
        "model.image_size",
        "224",
        "Side of the square RGB images; up to 64 the stem is the one for CIFAR: 3x3, no pooling",
    ),
    size("model.classes", "1000", "Classes"),
];

/// The largest image that gets the stem for CIFAR.
const LARGEST_SMALL_IMAGE: u64 = 64;

/// The network with 18 layers, and blocks of two 3x3 convolutions.
pub(crate) const RESNET18: ModelDef = ModelDef {
    name: "resnet18",
    about: "ResNet-18 for ImageNet or CIFAR images; blocks stem, layer1_0 to layer4_1, head",
    sizes: SIZES,
    trainable: true,
    batched: true,
    float32_only: false,
    build: |spec| build(spec, ResNetVariant { blocks: [2, 2, 2, 2], bottleneck: false }),
};

/// The network with 50 layers, and bottlenecks of 1x1, 3x3 and 1x1 convolutions.
pub(crate) const RESNET50: ModelDef = ModelDef {
    name: "resnet50",
    about: "ResNet-50 for ImageNet or CIFAR images; blocks stem, layer1_0 to layer4_2, head",
    sizes: SIZES,
    trainable: true,
    batched: true,
    float32_only: false,
    build: |spec| build(spec, ResNetVariant { blocks: [3, 4, 6, 3], bottleneck: true }),
};

/// The variant of a residual network.
#[derive(Clone, Copy)]
struct ResNetVariant {
    /// The number of blocks of each of the four layers.
    blocks: [u64; 4],
    /// True if a block is a bottleneck, four times as wide outside as inside.
    bottleneck: bool,
}

fn build(spec: &ModelSpec, shape: ResNetVariant) -> Result<ModelGraph, GraphError> {
    let [side, classes] = ["image_size", "classes"].map(|name| spec.size(name));
    let batch = spec.batch_size;
    let mut model = ModelBuilder::new(spec);
    model.block("stem");
    let mut x = model.input("image", &[batch, 3, side, side], model.dtype);
    x = if side <= LARGEST_SMALL_IMAGE {
        conv(
            &mut model,
            "conv1",
            x,
            ConvNormParams { filters: 64, kernel: 3, stride: 1, relu: true },
        )?
    } else {
        x = conv(
            &mut model,
            "conv1",
            x,
            ConvNormParams { filters: 64, kernel: 7, stride: 2, relu: true },
        )?;
        model.apply("maxpool", PoolOp::max(3, 2, 1), &[x])?
    };
    for (layer, blocks) in (1u64..).zip(shape.blocks) {
        for block in 0..blocks {
            let name = format!("layer{layer}_{block}");
            model.block(&name);
            let stride = if layer > 1 && block == 0 { 2 } else { 1 };
            x = residual(&mut model, &name, x, 32 << layer, stride, shape.bottleneck)?;
        }
    }
    model.block("head");
    let [channels, height, width] = [1, 2, 3].map(|axis| model.ty(x).shape[axis]);
    x = model.apply("avgpool", PoolOp::global_average(height, width), &[x])?;
    x = model.reshape("flatten", x, &[batch, channels])?;
    x = model.linear("fc", x, classes)?;
    model.classify(x)?;
    Ok(model.finish())
}

/// A convolution with batch norm.
#[derive(Clone, Copy)]
struct ConvNormParams {
    filters: u64,
    kernel: u64,
    stride: u64,
    relu: bool,
}

fn conv(
    model: &mut ModelBuilder,
    name: &str,
    x: TensorId,
    conv: ConvNormParams,
) -> Result<TensorId, GraphError> {
    let ConvNormParams { filters, kernel, stride, relu } = conv;
    let operator = ConvOp::square(stride, kernel / 2);
    let x = model.conv(name, x, filters, kernel, operator)?;
    let x = model.batch_norm(&format!("{name}/bn"), x)?;
    if relu { model.apply(&format!("{name}/relu"), ActivationOp::RELU, &[x]) } else { Ok(x) }
}

/// Adds a block: its convolutions, and the sum of its input and their result.
fn residual(
    model: &mut ModelBuilder,
    name: &str,
    x: TensorId,
    width: u64,
    stride: u64,
    bottleneck: bool,
) -> Result<TensorId, GraphError> {
    let named = |part: &str| format!("{name}/{part}");
    let channels = if bottleneck { 4 * width } else { width };
    let first = ConvNormParams { filters: width, kernel: 3, stride, relu: true };
    let last = ConvNormParams { filters: channels, kernel: 3, stride: 1, relu: false };
    let convs = if bottleneck {
        let narrowing = ConvNormParams { kernel: 1, stride: 1, ..first };
        vec![narrowing, first, ConvNormParams { kernel: 1, ..last }]
    } else {
        vec![first, last]
    };
    let mut y = x;
    for (index, step) in (1..).zip(convs) {
        y = conv(model, &named(&format!("conv{index}")), y, step)?;
    }
    let shortcut = if stride != 1 || model.ty(x).shape[1] != channels {
        let downsample = ConvNormParams { kernel: 1, stride, ..last };
        conv(model, &named("downsample"), x, downsample)?
    } else {
        x
    };
    let y = model.apply(&named("add"), BinaryOp::ADD, &[y, shortcut])?;
    model.apply(&named("relu"), ActivationOp::RELU, &[y])
}
