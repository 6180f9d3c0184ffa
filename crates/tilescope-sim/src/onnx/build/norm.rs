//! Normalisation operators.

use super::{OpBuilder, composed, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{BinaryOp, NormOp, PoolOp, PoolWindow, ReduceOp, UnaryOp};
use crate::popnn::pool::PoolingType;
use crate::popops::elementwise::{BinaryOpType, UnaryOpType};
use crate::popops::reduce::ReduceOperation;
use crate::shape::{TensorId, TensorInfo, TensorRole};
use tilescope_onnx::ValueId;

pub(super) const OPS: &[OpBuilder] = &[
    modelled("BatchNormalization", batch_norm),
    modelled("GroupNormalization", |node| {
        let groups = node.count("num_groups")?;
        group_norm(node, groups)
    }),
    modelled("InstanceNormalization", |node| {
        let x = node.input(0)?;
        let channels = node.shape(x).get(1).copied().unwrap_or(1);
        group_norm(node, channels)
    }),
    composed("LRN", local_response_norm),
    modelled("LayerNormalization", layer_norm),
    composed("LpNormalization", lp_norm),
    composed("MeanVarianceNormalization", mean_variance_norm),
    composed("RMSNormalization", rms_norm),
    composed("SimplifiedLayerNormalization", rms_norm),
];

/// Builds a batch norm. A trained model uses popnn's statistics over the batch. Otherwise it is a
/// scale and a shift per channel, derived from the running statistics (popart
/// willow/src/popx/op/batchnormx.cpp).
fn batch_norm(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let shape = node.shape(x);
    let channels = shape.get(1).copied().unwrap_or(1);
    let mean = node.required(3)?;
    let variance = node.required(4)?;
    let statistics = [statistic(node, mean)?, statistic(node, variance)?];
    let [scale, shift] = [node.input(1)?, node.input(2)?];
    if node.importer.settings.training {
        let operands = [x, scale, shift, statistics[0], statistics[1]];
        let y = node.apply_all("", NormOp::BATCH, &operands)?[0];
        return node.set(0, y);
    }
    let epsilon = node.float("epsilon", 1e-5)?;
    let inverse =
        node.with_scalar("invStdDev", BinaryOpType::VarianceToInvStdDev, statistics[1], epsilon)?;
    let scale = node.binary("multiplicand", BinaryOpType::Multiply, [inverse, scale])?;
    let offset = node.binary("offset", BinaryOpType::Multiply, [statistics[0], scale])?;
    let shift = node.binary("addend", BinaryOpType::Subtract, [shift, offset])?;
    let mut per_channel = vec![channels];
    per_channel.resize(shape.len().saturating_sub(1).max(1), 1);
    let scale = node.reshape("multiplicand/channels", scale, &per_channel)?;
    let shift = node.reshape("addend/channels", shift, &per_channel)?;
    let y = node.apply("scale", BinaryOp::MULTIPLY, &[x, scale])?;
    let y = node.apply("", BinaryOp::ADD, &[y, shift])?;
    node.set(0, y)
}

/// The tensor of a running statistic, which is on the device and is not changed by an optimiser.
fn statistic(node: &mut NodeImport, value: ValueId) -> Result<TensorId, GraphError> {
    if let Some(known) = node.importer.tensors[value.index()] {
        return Ok(known);
    }
    let of_file = node.importer.value(value);
    if !matches!(of_file.source, tilescope_onnx::ValueSource::Initializer) {
        return node.importer.tensor(value);
    }
    let ty = TensorInfo::new(of_file.dims.clone(), node.importer.dtype(of_file.element));
    let name = node.importer.unique(&of_file.name);
    let tensor = node.importer.graph.tensor(&name, ty, TensorRole::Resident);
    node.importer.tensors[value.index()] = Some(tensor);
    Ok(tensor)
}

fn group_norm(node: &mut NodeImport, groups: u64) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let scale = node.input(1)?;
    let shift = node.input(2)?;
    let shape = node.shape(x);
    let channels = shape.get(1).copied().unwrap_or(1);
    // popnn's norm has fields of two dimensions. Before opset 21 there is a scale per group.
    let field: u64 = shape.iter().skip(2).product();
    let samples = shape.first().copied().unwrap_or(1);
    let as_field = node.reshape("field", x, &[samples, channels, field, 1])?;
    let mut affine = [scale, shift];
    for (part, tensor) in ["scale", "shift"].into_iter().zip(&mut affine) {
        if node.ty(*tensor).elements().0 == groups && groups != channels {
            let column = node.reshape(&format!("{part}/groups"), *tensor, &[groups, 1])?;
            let all = node.expand(part, column, &[groups, channels / groups.max(1)])?;
            *tensor = node.reshape(&format!("{part}/channels"), all, &[channels])?;
        }
    }
    let y = node.apply_all("", NormOp::of_groups(groups), &[as_field, affine[0], affine[1]])?[0];
    node.set(0, y)
}

/// Merges the axes from `axis` on into one axis.
fn rows(node: &mut NodeImport, x: TensorId) -> Result<(TensorId, u64), GraphError> {
    let shape = node.shape(x);
    let axis = node.axis(node.int("axis", -1)?, shape.len())?;
    let channels: u64 = shape[axis..].iter().product();
    let rows: u64 = shape[..axis].iter().product();
    Ok((node.reshape("rows", x, &[rows, channels])?, channels))
}

fn layer_norm(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let (x, channels) = rows(node, x)?;
    // popnn always requires scale and shift: ones and zeros if the file has none.
    let dtype = node.ty(x).dtype;
    let mut affine = [x; 2];
    for (part, tensor) in affine.iter_mut().enumerate() {
        let name = if part == 0 { "scale" } else { "shift" };
        *tensor = match node.optional(1 + part)? {
            Some(given) => node.reshape(name, given, &[channels])?,
            None => node.resident(name, TensorInfo::new([channels], dtype)),
        };
    }
    let [scale, shift] = affine;
    let y = node.apply_all("", NormOp::LAYER, &[x, scale, shift])?[0];
    node.set(0, y)
}

/// Builds `x / sqrt(mean(x^2) + epsilon) . scale` step by step, because popnn has no such norm.
fn rms_norm(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let (x, channels) = rows(node, x)?;
    let row_count = node.shape(x)[0];
    let sum = ReduceOp::new(ReduceOperation::SquareAdd, vec![1]);
    let sum = if node.importer.settings.training {
        // The gradient passes through the square.
        let square = node.apply("square", UnaryOp(UnaryOpType::Square), &[x])?;
        node.apply("sum", ReduceOp::new(ReduceOperation::Add, vec![1]), &[square])?
    } else {
        node.apply("squareSum", sum, &[x])?
    };
    let mean = node.scale("mean", sum, 1.0 / channels.max(1) as f64)?;
    let epsilon = node.float("epsilon", 1e-5)?;
    let shifted = node.with_scalar("epsilon", BinaryOpType::Add, mean, epsilon)?;
    let root = node.apply("sqrt", UnaryOp(UnaryOpType::Sqrt), &[shifted])?;
    let inverse = node.apply("inverse", UnaryOp(UnaryOpType::Inverse), &[root])?;
    let inverse = node.reshape("inverse/rows", inverse, &[row_count, 1])?;
    let y = node.apply("normalise", BinaryOp::MULTIPLY, &[x, inverse])?;
    let scale = node.input(1)?;
    let scale = node.reshape("scale", scale, &[channels])?;
    let y = node.apply("", BinaryOp::MULTIPLY, &[y, scale])?;
    node.set(0, y)
}

/// Divides `x` by the sum of magnitudes, or by the root of the sum of squares, along an axis.
fn lp_norm(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let mut shape = node.shape(x);
    let axis = node.axis(node.int("axis", -1)?, shape.len())?;
    let squares = node.int("p", 2)? == 2;
    let function = if squares { UnaryOpType::Square } else { UnaryOpType::Absolute };
    let values = node.apply("values", UnaryOp(function), &[x])?;
    let sum = node.apply("sum", ReduceOp::new(ReduceOperation::Add, vec![axis]), &[values])?;
    let norm = if squares { node.apply("sqrt", UnaryOp(UnaryOpType::Sqrt), &[sum])? } else { sum };
    shape[axis] = 1;
    let norm = node.reshape("norm", norm, &shape)?;
    let y = node.apply("", BinaryOp::DIVIDE, &[x, norm])?;
    node.set(0, y)
}

/// Builds `x / (bias + alpha . mean of squares over neighbouring channels)^beta`. The mean is a
/// pooling along the channels, as popart composes it (willow/src/popx/op/lrnx.cpp).
fn local_response_norm(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let shape = node.shape(x);
    let size = node.count("size")?;
    let samples = shape[0];
    let channels = shape.get(1).copied().unwrap_or(1);
    let field: u64 = shape.iter().skip(2).product();
    let square = node.apply("square", UnaryOp(UnaryOpType::Square), &[x])?;
    let columns = node.reshape("columns", square, &[samples, 1, channels, field])?;
    let before = (size.max(1) - 1) / 2;
    let along = PoolWindow { kernel: size, stride: 1, before, behind: size.max(1) - 1 - before };
    let across = PoolWindow { kernel: 1, stride: 1, before: 0, behind: 0 };
    let pool = PoolOp { kind: PoolingType::Sum, windows: vec![along, across] };
    let sums = node.apply("neighbours", pool, &[columns])?;
    let sums = node.reshape("neighbours/field", sums, &shape)?;
    let alpha = node.float("alpha", 1e-4)?;
    let scaled = node.scale("alpha", sums, alpha / size.max(1) as f64)?;
    let bias = node.float("bias", 1.0)?;
    let beta = node.float("beta", 0.75)?;
    let shifted = node.with_scalar("bias", BinaryOpType::Add, scaled, bias)?;
    let power = node.with_scalar("power", BinaryOpType::Power, shifted, beta)?;
    let y = node.apply("", BinaryOp::DIVIDE, &[x, power])?;
    node.set(0, y)
}

/// Subtracts the mean of `x` and divides by its deviation, along some axes: all but the channels if
/// none is named.
fn mean_variance_norm(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let shape = node.shape(x);
    let axes = match node.ints("axes")? {
        Some(axes) => axes.iter().map(|axis| node.axis(*axis, shape.len())).collect(),
        None => Ok((0..shape.len()).filter(|axis| *axis != 1).collect::<Vec<usize>>()),
    }?;
    let share = 1.0 / axes.iter().map(|axis| shape[*axis]).product::<u64>().max(1) as f64;
    let mut kept = shape;
    for axis in &axes {
        kept[*axis] = 1;
    }
    let average = |node: &mut NodeImport, part: &str, of: TensorId| {
        let sum = ReduceOp::new(ReduceOperation::Add, axes.clone());
        let sum = node.apply(&format!("{part}/sum"), sum, &[of])?;
        let mean = node.scale(part, sum, share)?;
        node.reshape(&format!("{part}/rows"), mean, &kept)
    };
    let of_values = average(node, "mean", x)?;
    let centred = node.binary("centred", BinaryOpType::Subtract, [x, of_values])?;
    let squares = node.apply("squares", UnaryOp(UnaryOpType::Square), &[centred])?;
    let variance = average(node, "variance", squares)?;
    let deviation = node.apply("deviation", UnaryOp(UnaryOpType::Sqrt), &[variance])?;
    let y = node.binary("", BinaryOpType::Divide, [centred, deviation])?;
    node.set(0, y)
}
