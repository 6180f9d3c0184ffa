//! Parts of tensors, and tensors of parts.

use super::{OpBuilder, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{ConcatOp, SliceOp, SplitOp};
use crate::shape::TensorId;

pub(super) const OPS: &[OpBuilder] =
    &[modelled("Concat", concat), modelled("Slice", slice), modelled("Split", split)];

fn concat(node: &mut NodeImport) -> Result<(), GraphError> {
    let mut parts = Vec::new();
    for input in 0..node.node.inputs.len() {
        // What has no elements adds none.
        parts.extend(node.optional(input)?);
    }
    let Some(first) = parts.first().copied() else {
        return Err(node.refuse("there is nothing to join"));
    };
    let axis = node.axis(node.int("axis", 0)?, node.shape(first).len())?;
    let y = if parts.len() == 1 { first } else { node.apply("", ConcatOp { axis }, &parts)? };
    node.set(0, y)
}

fn split(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let axis = node.axis(node.int("axis", 0)?, node.shape(x).len())?;
    let sizes = (0..node.node.outputs.len()).map(|output| Ok(node.output_dims(output)?[axis]));
    let sizes = sizes.collect::<Result<Vec<u64>, GraphError>>()?;
    let parts = match sizes.len() {
        1 => vec![x],
        _ => node.apply_all("", SplitOp { axis, sizes }, &[x])?,
    };
    for (output, part) in parts.into_iter().enumerate() {
        node.set(output, part)?;
    }
    Ok(())
}

/// A stretch of some axes, by the numpy rules for ends that lie outside. What it leaves is known;
/// where it begins is read.
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
    let from_front = |at: i64| {
        let whole = i64::try_from(size).unwrap_or(i64::MAX);
        u64::try_from(if at < 0 { at.saturating_add(whole) } else { at }).unwrap_or(0).min(size)
    };
    if step != 1 {
        return Err(node.refuse(format!("a step of {step} is not modelled")));
    }
    let range = from_front(start)..from_front(end);
    if range == (0..size) { Ok(x) } else { node.apply("", SliceOp { axis, range }, &[x]) }
}
