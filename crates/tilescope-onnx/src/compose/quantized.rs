//! Low-precision numbers: scales computed at run time, products of integers, and scales of blocks.
//! IPUs only multiply floats, so products of bytes run as products of halves, which represent them
//! exactly.

use super::{Compose, Composed, NodeComposition, only};
use crate::attributes::AttributeValue;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::{ValueId, ValueSource};

pub(super) const OF_STANDARD: &[(&str, Compose)] = &[
    ("ConvInteger", |of| integer_product(of, "Conv")),
    ("DequantizeLinear", dequantize_blocks),
    ("DynamicQuantizeLinear", dynamic_quantize),
    ("MatMulInteger", |of| integer_product(of, "MatMul")),
    ("QLinearConv", |of| quantized_product(of, "Conv")),
    ("QLinearMatMul", |of| quantized_product(of, "MatMul")),
    ("QuantizeLinear", quantize_blocks),
];

pub(super) const OPS: &[(&str, Compose)] = &[
    ("DequantizeLinear", |of| as_standard(of, "DequantizeLinear")),
    ("DynamicQuantizeMatMul", dynamic_product),
    ("MatMulIntegerToFloat", scaled_product),
    ("MatMulNBits", few_bits),
    ("QuantizeLinear", |of| as_standard(of, "QuantizeLinear")),
];

/// Scale and zero point of the range of a tensor, extended to include 0, and the tensor in bytes.
fn bytes_of(of: &mut NodeComposition, x: ValueId) -> Result<[ValueId; 3], OnnxError> {
    let element = of.element(x);
    let all = [("keepdims", AttributeValue::Int(0))];
    let zero = of.number(element, 0.0)?;
    let most = of.node("most", "ReduceMax", &[x], &all)?;
    let most = of.node("most/zero", "Max", &[most, zero], &[])?;
    let least = of.node("least", "ReduceMin", &[x], &all)?;
    let least = of.node("least/zero", "Min", &[least, zero], &[])?;
    let range = of.node("range", "Sub", &[most, least], &[])?;
    let steps = of.number(element, 1.0 / 255.0)?;
    let scale = of.node("scale", "Mul", &[range, steps], &[])?;
    let below = of.node("below", "Neg", &[least], &[])?;
    let place = of.node("place", "Div", &[below, scale], &[])?;
    let place = of.node("place/round", "Round", &[place], &[])?;
    let zero_point = of.cast("zero", place, ElementKind::Uint8)?;
    let y = of.node("bytes", "QuantizeLinear", &[x, scale, zero_point], &[])?;
    Ok([y, scale, zero_point])
}

fn dynamic_quantize(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let made = bytes_of(of, x)?;
    Ok(Some(made.into_iter().map(Some).collect()))
}

/// Integers as floats, without their zero point. A zero point with several values applies to the
/// second last axis of a left operand, the last of a right one, and the first of filters.
fn centred(
    of: &mut NodeComposition,
    part: &str,
    (x, zero): (ValueId, Option<ValueId>),
    (axis_from_end, element): (usize, ElementKind),
) -> Result<ValueId, OnnxError> {
    let y = of.cast(part, x, element)?;
    let Some(zero) = zero else { return Ok(y) };
    let mut zero = of.cast(&format!("{part}/zero"), zero, element)?;
    let count = of.dims(zero);
    if let [size] = count[..] {
        let rank = of.dims(x).len();
        let mut dims = vec![1; rank];
        if let Some(axis) = rank.checked_sub(axis_from_end).filter(|_| size > 1) {
            dims[axis] = size;
        }
        zero = of.reshape(&format!("{part}/axis"), zero, &dims)?;
    }
    of.node(&format!("{part}/centred"), "Sub", &[y, zero], &[])
}

/// A product of bytes, with the attributes of the node.
fn product(
    of: &mut NodeComposition,
    op: &str,
    operands: [(ValueId, Option<ValueId>); 2],
    element: ElementKind,
) -> Result<ValueId, OnnxError> {
    let rank = of.dims(operands[1].0).len();
    // Filters come first, columns last.
    let axes = if op == "Conv" { [1, rank] } else { [2, 1] };
    let left = centred(of, "left", operands[0], (axes[0], element))?;
    let right = centred(of, "right", operands[1], (axes[1], element))?;
    let attributes = of.own_attributes();
    of.node("product", op, &[left, right], &attributes)
}

fn integer_product(of: &mut NodeComposition, op: &str) -> Composed {
    let operands = [(of.input(0)?, of.optional(2)), (of.input(1)?, of.optional(3))];
    let y = product(of, op, operands, ElementKind::Float16)?;
    let y = of.cast("sum", y, ElementKind::Int32)?;
    only(y)
}

/// A bias of a product of bytes, times the scales of both operands; `None` without a bias.
pub(super) fn scaled_bias(
    of: &mut NodeComposition,
    at: usize,
) -> Result<Option<ValueId>, OnnxError> {
    let Some(bias) = of.optional(at) else { return Ok(None) };
    let scales = [of.input(1)?, of.input(4)?];
    let scale = of.node("bias/scale", "Mul", &scales, &[])?;
    let float = of.cast("bias", bias, of.element(scale))?;
    Ok(Some(of.node("bias/scaled", "Mul", &[float, scale], &[])?))
}

/// A product of bytes with scales, like `DequantizeLinear` before and `QuantizeLinear` after it.
fn quantized_product(of: &mut NodeComposition, op: &str) -> Composed {
    let mut operands = Vec::new();
    for (part, at) in [("left", 0), ("right", 3)] {
        let inputs = [of.input(at)?, of.input(at + 1)?, of.input(at + 2)?];
        let rank = of.dims(inputs[0]).len();
        let axis = match (op, part) {
            ("Conv", _) | (_, "left") => 0,
            _ => i64::try_from(rank).unwrap_or(1) - 1,
        };
        let axis = [("axis", AttributeValue::Int(axis))];
        operands.push(of.node(part, "DequantizeLinear", &inputs, &axis)?);
    }
    operands.extend(scaled_bias(of, 8)?);
    let attributes = of.own_attributes();
    let y = of.node("product", op, &operands, &attributes)?;
    let scale = of.input(6)?;
    let zero = of.input(7)?;
    let y = of.node("bytes", "QuantizeLinear", &[y, scale, zero], &[])?;
    only(y)
}

/// A product of bytes, times the scales of both operands.
fn scaled(
    of: &mut NodeComposition,
    operands: [(ValueId, Option<ValueId>); 2],
    scales: [ValueId; 2],
    bias: Option<ValueId>,
) -> Composed {
    let y = product(of, "MatMul", operands, ElementKind::Float16)?;
    let scale = of.node("scales", "Mul", &scales, &[])?;
    let y = of.cast("float", y, of.element(scale))?;
    let y = of.node("scaled", "Mul", &[y, scale], &[])?;
    let y = of.plus("bias", y, bias)?;
    only(y)
}

fn dynamic_product(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let weights = of.input(1)?;
    let scale = of.input(2)?;
    let [bytes, own, zero] = bytes_of(of, x)?;
    let of_weights = of.optional(3);
    let bias = of.optional(4);
    scaled(of, [(bytes, Some(zero)), (weights, of_weights)], [own, scale], bias)
}

fn scaled_product(of: &mut NodeComposition) -> Composed {
    let left = of.input(0)?;
    let right = of.input(1)?;
    let scales = [of.input(2)?, of.input(3)?];
    let bias = of.optional(6);
    scaled(of, [(left, of.optional(4)), (right, of.optional(5))], scales, bias)
}

/// `DequantizeLinear` with a scale for each block of an axis.
fn dequantize_blocks(of: &mut NodeComposition) -> Composed {
    let Some((axis, block)) = blocks_of(of)? else { return Ok(None) };
    let [x, scale] = [of.input(0)?, of.input(1)?];
    let zero = of.optional(2);
    let made = of_blocks(of, (x, scale, zero), axis, block)?;
    let dims = of.dims(x);
    let y = of.reshape("blocks/join", made, &dims)?;
    only(y)
}

/// The axis of the blocks of a node and their length; `None` without blocks.
fn blocks_of(of: &mut NodeComposition) -> Result<Option<(usize, u64)>, OnnxError> {
    let block = of.size("block_size", 0)?;
    if block == 0 {
        return Ok(None);
    }
    let [dims, scales] = [of.dims(of.input(0)?), of.dims(of.input(1)?)];
    let axis = of.axis(of.int("axis", 1)?, dims.len())?;
    let mut expected = dims.clone();
    expected[axis] = dims[axis].div_ceil(block);
    if scales != expected || !dims[axis].is_multiple_of(block) {
        return Err(of.error(format!(
            "scales of shape {scales:?} do not fit blocks of {block} in {dims:?}"
        )));
    }
    Ok(Some((axis, block)))
}

/// `QuantizeLinear` with a scale for each block of an axis: a division by the scales, and the
/// standard node with a scale of 1, which rounds and keeps in range.
fn quantize_blocks(of: &mut NodeComposition) -> Composed {
    let Some((axis, block)) = blocks_of(of)? else { return Ok(None) };
    let [x, scale] = [of.input(0)?, of.input(1)?];
    let element = of.element(x);
    let dims = of.dims(x);
    let mut rows = of.dims(scale);
    let mut apart = dims.clone();
    apart.splice(axis..=axis, [rows[axis], block]);
    rows.insert(axis + 1, 1);
    let mut y = of.reshape("blocks", x, &apart)?;
    let scale = of.cast("scale/type", scale, element)?;
    let scale = of.reshape("scale", scale, &rows)?;
    y = of.node("scaled", "Div", &[y, scale], &[])?;
    let one = of.number(element, 1.0)?;
    let mut inputs = vec![Some(one)];
    let mut attributes = Vec::new();
    match of.optional(2) {
        Some(zero) => {
            let kind = of.element(zero);
            let zero = of.cast("zero", zero, element)?;
            let zero = of.reshape("zero/blocks", zero, &rows)?;
            y = of.node("moved", "Add", &[y, zero], &[])?;
            inputs.push(Some(of.number(kind, 0.0)?));
        }
        None => {
            attributes = of.own_attributes();
            attributes.retain(|(name, _)| *name == "output_dtype");
        }
    }
    inputs.insert(0, Some(y));
    let made = of.node_of("bytes", "QuantizeLinear", &inputs, &attributes)?;
    let y = of.reshape("blocks/join", made, &dims)?;
    only(y)
}

/// The standard node with the same name.
fn as_standard(of: &mut NodeComposition, op: &str) -> Composed {
    let attributes = of.own_attributes();
    let inputs = [Some(of.input(0)?), Some(of.input(1)?), of.optional(2)];
    only(of.node_of("standard", op, &inputs, &attributes)?)
}

/// `(x - zero) . scale`, with a separate axis for blocks. Each block has a scale.
fn of_blocks(
    of: &mut NodeComposition,
    (x, scale, zero): (ValueId, ValueId, Option<ValueId>),
    axis: usize,
    block: u64,
) -> Result<ValueId, OnnxError> {
    let element = of.element(scale);
    let mut apart = of.dims(x);
    apart.splice(axis..=axis, [of.dims(scale)[axis], block]);
    let mut y = of.reshape("blocks", x, &apart)?;
    y = of.cast("float", y, element)?;
    let mut rows = of.dims(scale);
    rows.insert(axis + 1, 1);
    if let Some(zero) = zero {
        let zero = of.cast("zero", zero, element)?;
        let zero = of.reshape("zero/blocks", zero, &rows)?;
        y = of.node("centred", "Sub", &[y, zero], &[])?;
    }
    let scale = of.reshape("scale", scale, &rows)?;
    of.node("scaled", "Mul", &[y, scale], &[])
}

/// Low-precision weights that the file packs into bytes. On the device they are unpacked, one byte
/// each.
fn unpacked(
    of: &mut NodeComposition,
    packed: ValueId,
    bits: i64,
    dims: Vec<u64>,
) -> Result<ValueId, OnnxError> {
    let element = match bits {
        2 => ElementKind::Uint2,
        4 => ElementKind::Uint4,
        8 => ElementKind::Uint8,
        other => return Err(of.error(format!("numbers of {other} bits are not modelled"))),
    };
    let value = of.value(packed).clone();
    if ![ValueSource::Initializer, ValueSource::Constant].contains(&value.source) {
        return Err(of.error("packed numbers must be constant"));
    }
    let name = value.name.clone();
    let identity = of.identity;
    let id =
        of.resolver.value(&name, element, dims, ValueSource::Initializer, || identity.place())?;
    Ok(id)
}

/// A product with low-precision weights and a scale for each block of a column.
fn few_bits(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let packed = of.input(1)?;
    let scales = of.input(2)?;
    let [inner, columns] = [of.count("K")?, of.count("N")?];
    let bits = of.int("bits", 4)?;
    let block = of.count("block_size")?;
    let blocks = inner.div_ceil(block);
    let weights = unpacked(of, packed, bits, vec![columns, blocks * block])?;
    let scales = of.reshape("scales", scales, &[columns, blocks])?;
    let zero = match of.optional(3) {
        Some(zero) if of.element(zero).is_float() => zero,
        Some(zero) => unpacked(of, zero, bits, vec![columns, blocks])?,
        None => {
            let middle = f64::from(1 << (bits - 1).clamp(0, 30));
            let middle = of.number(of.element(scales), middle)?;
            of.expand("zeros", middle, &[columns, blocks])?
        }
    };
    let made = of_blocks(of, (weights, scales, Some(zero)), 1, block)?;
    let rows = of.reshape("weights", made, &[columns, blocks * block])?;
    let rows = of.slice("weights/used", rows, 1, [0, inner])?;
    let turned = of.transpose("weights/turn", rows, &[1, 0])?;
    let turned = of.cast("weights/type", turned, of.element(x))?;
    let y = of.node("product", "MatMul", &[x, turned], &[])?;
    let bias = of.optional(5);
    let y = of.plus("bias", y, bias)?;
    only(y)
}
