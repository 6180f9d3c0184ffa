//! Parts of tensors, and tensors joined from parts.

use super::{OpBuilder, composed, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{ConcatOp, ImportProblem, PadOp, SelectOp, SliceOp, SplitOp, TakeOp};
use crate::shape::{DType, TensorId, TensorInfo};

pub(super) const OPS: &[OpBuilder] = &[
    modelled("Concat", concat),
    modelled("Pad", pad),
    modelled("Slice", slice),
    modelled("Split", split),
    composed("Tile", tile),
    composed("Trilu", trilu),
];

fn concat(node: &mut NodeImport) -> Result<(), GraphError> {
    let mut parts = Vec::new();
    for input in 0..node.node.inputs.len() {
        // A tensor without elements adds nothing.
        parts.extend(node.optional(input)?);
    }
    let Some(first) = parts.first().copied() else {
        return Err(node.refuse(ImportProblem::NothingToJoin));
    };
    let axis = node.axis(node.int("axis", 0)?, node.shape(first).len())?;
    let y = if parts.len() == 1 { first } else { node.apply("", ConcatOp { axis }, &parts)? };
    node.set(0, y)
}

fn split(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let shape = node.shape(x);
    let axis = node.axis(node.int("axis", 0)?, shape.len())?;
    let sizes = part_sizes(node, shape[axis])?;
    let parts = match sizes.len() {
        1 => vec![x],
        _ => node.apply_all("", SplitOp { axis, sizes }, &[x])?,
    };
    for (output, part) in parts.into_iter().enumerate() {
        node.set(output, part)?;
    }
    Ok(())
}

/// The largest number of parts, more than any model has. It limits the memory that a file can make
/// the importer allocate.
const MOST_PARTS: u64 = 1 << 16;

/// Sizes of the parts of `whole` elements, including unread ones: as given, or equal with a smaller
/// last one.
fn part_sizes(node: &NodeImport, whole: u64) -> Result<Vec<u64>, GraphError> {
    let wrong = || node.refuse(ImportProblem::SplitSizes);
    if let Some(given) = node.ints_or_input("split", 1)? {
        let sizes: Option<Vec<u64>> = given.iter().map(|size| u64::try_from(*size).ok()).collect();
        return sizes.filter(|sizes| sizes.iter().sum::<u64>() == whole).ok_or_else(wrong);
    }
    let named = i64::try_from(node.node.outputs.len()).unwrap_or(1);
    let parts = u64::try_from(node.int("num_outputs", named)?).unwrap_or(0).max(1);
    if parts > whole.min(MOST_PARTS) {
        return Err(wrong());
    }
    let size = whole.div_ceil(parts);
    let sizes: Vec<u64> =
        (0..parts).map(|part| size.min(whole.saturating_sub(part * size))).collect();
    debug_assert_eq!(sizes.iter().sum::<u64>(), whole, "parts are of the whole axis");
    if sizes.contains(&0) { Err(wrong()) } else { Ok(sizes) }
}

/// Slices some axes, with numpy's rules for ends outside the tensor. The sizes are known. The
/// starts are read.
fn slice(node: &mut NodeImport) -> Result<(), GraphError> {
    let mut y = node.input(0)?;
    let shape = node.shape(y);
    let starts = node.ints_or_input("starts", 1)?.unwrap_or_default();
    let ends = node.ints_or_input("ends", 2)?.unwrap_or_default();
    let axes = node.ints_or_input("axes", 3)?;
    let steps = node.ints_or_input("steps", 4)?;
    for (at, (start, end)) in starts.iter().zip(&ends).enumerate() {
        let axis = match &axes {
            Some(axes) => axes.get(at).copied(),
            None => i64::try_from(at).ok(),
        };
        let axis = node.axis(axis.unwrap_or(0), shape.len())?;
        let step = steps.as_ref().and_then(|steps| steps.get(at)).copied().unwrap_or(1);
        y = stretch(node, y, axis, [*start, *end, step])?;
    }
    node.set(0, y)
}

fn stretch(
    node: &mut NodeImport,
    x: TensorId,
    axis: usize,
    [start, end, step]: [i64; 3],
) -> Result<TensorId, GraphError> {
    let size = node.shape(x)[axis];
    let whole = i64::try_from(size).unwrap_or(i64::MAX);
    let [start, end] = [start, end].map(|at| if at < 0 { at.saturating_add(whole) } else { at });
    if step == 1 {
        let range = or_zero(start).min(size)..or_zero(end).min(size);
        return if range == (0..size) {
            Ok(x)
        } else {
            node.apply("", SliceOp { axis, range }, &[x])
        };
    }
    let (start, end) = match step {
        ..0 => (start.min(whole - 1), end.max(-1)),
        _ => (start.max(0), end.min(whole)),
    };
    let distance = if step < 0 { start - end } else { end - start };
    let count = or_zero(distance).div_ceil(step.unsigned_abs().max(1));
    node.apply("", TakeOp::stepped(axis, or_zero(start), step, count), &[x])
}

/// Pads a tensor with a constant or with its own elements. The padding is an attribute before opset
/// 11 and an input from then on.
fn pad(node: &mut NodeImport) -> Result<(), GraphError> {
    let mut x = node.input(0)?;
    let rank = node.shape(x).len();
    let written = node.ints_or_input("pads", 1)?.unwrap_or_default();
    let axes: Vec<usize> = match node.known_ints(3) {
        Some(axes) => axes.iter().map(|axis| node.axis(*axis, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).collect(),
    };
    let mut pads: Vec<[i64; 2]> = vec![[0, 0]; rank];
    for (at, axis) in axes.iter().enumerate() {
        if let (Some(before), Some(behind)) = (written.get(at), written.get(axes.len() + at)) {
            pads[*axis] = [*before, *behind];
        }
    }
    let mode = node.text("mode", "constant")?;
    for (axis, [before, behind]) in pads.iter().enumerate() {
        // Negative pads cut elements off.
        let size = node.shape(x)[axis];
        let first = or_zero(before.saturating_neg());
        let range = first..size.saturating_sub(or_zero(behind.saturating_neg()));
        if range != (0..size) {
            x = node.apply("cut", SliceOp { axis, range }, &[x])?;
        }
        if mode != "constant" && (*before > 0 || *behind > 0) {
            let size = i64::try_from(node.shape(x)[axis]).unwrap_or(i64::MAX);
            let places = -*before.max(&0)..size + *behind.max(&0);
            let indices = places.map(|place| or_zero(edge_index(&mode, place, size))).collect();
            x = node.apply("", TakeOp { axis, indices }, &[x])?;
        }
    }
    if mode == "constant" && pads.iter().flatten().any(|pad| *pad > 0) {
        let before = pads.iter().map(|[before, _]| or_zero(*before)).collect();
        let behind = pads.iter().map(|[_, behind]| or_zero(*behind)).collect();
        x = node.apply("", PadOp { before, behind }, &[x])?;
    }
    node.set(0, x)
}

/// The number, or 0 if it is negative.
fn or_zero(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The element at a position outside an axis.
fn edge_index(mode: &str, place: i64, size: i64) -> i64 {
    let last = (size - 1).max(0);
    match mode {
        "reflect" if last > 0 => {
            let folded = place.rem_euclid(2 * last);
            folded.min(2 * last - folded)
        }
        "wrap" => place.rem_euclid(size.max(1)),
        _ => place.clamp(0, last),
    }
}

/// Repeats the tensor along each axis: along a new axis before it, which is then merged with it.
fn tile(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let shape = node.shape(x);
    let dims = node.output_dims(0)?;
    let mut once = Vec::new();
    let mut repeated = Vec::new();
    for (size, all) in shape.iter().zip(&dims) {
        once.extend([1, *size]);
        repeated.extend([all / (*size).max(1), *size]);
    }
    let once = node.reshape("once", x, &once)?;
    let all = node.expand("", once, &repeated)?;
    node.set(0, all)
}

/// Keeps the part of each matrix above or below a diagonal and sets the rest to zero: a selection
/// by a constant mask.
fn trilu(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let shape = node.shape(x);
    let matrix = shape.get(shape.len().saturating_sub(2)..).unwrap_or_default().to_vec();
    let mask = node.resident("mask", TensorInfo::new(matrix, DType::Bool));
    let zero = node.resident("zero", TensorInfo::new([], node.ty(x).dtype));
    let y = node.apply("", SelectOp, &[mask, x, zero])?;
    node.set(0, y)
}
