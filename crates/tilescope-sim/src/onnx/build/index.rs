//! Elements by index: gathered from places that are known while the model runs, or put there.

use super::{OpBuilder, composed, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{
    ArgExtremaOp, EmbeddingOp, OneHotOp, OperationSink, ScatterOp, ScatterUpdate, TopKOp,
    linear_index,
};
use crate::shape::{DType, TensorId};

pub(super) const OPS: &[OpBuilder] = &[
    modelled("ArgMax", |node| arg_extrema(node, true)),
    modelled("ArgMin", |node| arg_extrema(node, false)),
    composed("GatherElements", gather_elements),
    composed("GatherND", gather_nd),
    composed("OneHot", one_hot),
    composed("Scatter", scatter_elements),
    composed("ScatterElements", scatter_elements),
    composed("ScatterND", scatter_nd),
    modelled("TopK", top_k),
];

fn arg_extrema(node: &mut NodeImport, largest: bool) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let axis = node.axis(node.int("axis", 0)?, node.shape(x).len())?;
    let y = node.apply("", ArgExtremaOp { axis, largest }, &[x])?;
    node.set(0, y)
}

fn top_k(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let axis = node.axis(node.int("axis", -1)?, node.shape(x).len())?;
    let k = node.output_dims(if node.has_output(0) { 0 } else { 1 })?[axis];
    let largest = node.int("largest", 1)? != 0;
    let made = node.apply_all("", TopKOp { axis, k, largest }, &[x])?;
    node.set(0, made[0])?;
    node.set(1, made[1])
}

/// Rows with one value where the index says, another elsewhere: the values themselves change
/// nothing about the work.
fn one_hot(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let x = node.cast("indices", x, DType::Int)?;
    let dims = node.output_dims(0)?;
    let axis = node.axis(node.int("axis", -1)?, dims.len())?;
    let dtype = node.output_type(0).unwrap_or(DType::Float);
    let rows = node.apply("", OneHotOp { depth: dims[axis], dtype }, &[x])?;
    let last = dims.len() - 1;
    let order = (0..axis).chain([last]).chain(axis..last).collect();
    let y = node.transpose("axis", rows, order)?;
    node.set(0, y)
}

/// The elements of a tensor as rows of one.
fn as_rows(
    node: &mut NodeImport,
    part: &str,
    x: TensorId,
    width: u64,
) -> Result<TensorId, GraphError> {
    let count = node.ty(x).elements().0 / width.max(1);
    node.reshape(part, x, &[count, width])
}

/// Indices along one axis (popart willow/src/popx/op/gatherx.cpp), as places in a row of elements.
fn along_axis(
    node: &mut NodeImport,
    x: TensorId,
    axis: usize,
) -> Result<[TensorId; 2], GraphError> {
    let indices = node.input(1)?;
    let indices = node.cast("indices", indices, DType::Int)?;
    let rolled = node.transpose("rolled", x, linear_index::rolled(node.shape(x).len(), axis))?;
    let rows = as_rows(node, "elements", rolled, 1)?;
    let (name, ty) = (node.node.name.clone(), node.ty(x));
    let graph: &mut dyn OperationSink = &mut node.importer.graph;
    let places = linear_index::along_axis(graph, &name, (indices, axis), &ty)?;
    Ok([rows, places])
}

/// Elements in the order of an axis that was brought to the front, back in their own.
fn back(
    node: &mut NodeImport,
    x: TensorId,
    shape: &[u64],
    axis: usize,
) -> Result<TensorId, GraphError> {
    let order = linear_index::rolled(shape.len(), axis);
    let rolled: Vec<u64> = order.iter().map(|axis| shape[*axis]).collect();
    let x = node.reshape("rolled/shape", x, &rolled)?;
    let permutation = linear_index::unrolled(&order).permutation;
    node.transpose("unrolled", x, permutation)
}

fn gather_elements(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let axis = node.axis(node.int("axis", 0)?, node.shape(x).len())?;
    let [rows, places] = along_axis(node, x, axis)?;
    let y = node.apply("", EmbeddingOp::default(), &[rows, places])?;
    let dims = node.output_dims(0)?;
    let y = back(node, y, &dims, axis)?;
    node.set(0, y)
}

fn scatter_elements(node: &mut NodeImport) -> Result<(), GraphError> {
    let (x, updates) = (node.input(0)?, node.input(2)?);
    let shape = node.shape(x);
    let axis = node.axis(node.int("axis", 0)?, shape.len())?;
    let [rows, places] = along_axis(node, x, axis)?;
    let order = linear_index::rolled(shape.len(), axis);
    let updates = node.transpose("updates/rolled", updates, order)?;
    let updates = as_rows(node, "updates", updates, 1)?;
    let update = update(node)?;
    let y = node.apply("", ScatterOp(update), &[rows, places, updates])?;
    let y = back(node, y, &shape, axis)?;
    node.set(0, y)
}

/// What becomes of an element that is there already.
fn update(node: &NodeImport) -> Result<ScatterUpdate, GraphError> {
    match node.text("reduction", "none")?.as_str() {
        "none" => Ok(ScatterUpdate::Replace),
        "add" => Ok(ScatterUpdate::Add),
        other => Err(node.refuse(format!("reduction {other:?} is not modelled"))),
    }
}

/// Coordinates of the leading axes (popart willow/src/popx/op/scatterutilx.cpp), as places in a
/// table of what lies behind them.
fn by_coordinates(
    node: &mut NodeImport,
    x: TensorId,
    batch: usize,
) -> Result<[TensorId; 2], GraphError> {
    let indices = node.input(1)?;
    let indices = node.cast("indices", indices, DType::Int)?;
    let (shape, of_indices) = (node.shape(x), node.shape(indices));
    let coordinates = of_indices.last().copied().unwrap_or(0);
    let indexed = usize::try_from(coordinates).unwrap_or(usize::MAX).saturating_add(batch);
    let width = shape.get(indexed..).map(|inner| inner.iter().product());
    let width = width.ok_or_else(|| node.refuse("indices have more coordinates than axes"))?;
    let rows = as_rows(node, "rows", x, width)?;
    let name = node.node.name.clone();
    let graph: &mut dyn OperationSink = &mut node.importer.graph;
    let places = linear_index::of_coordinates(graph, &name, indices, batch)?;
    let count = node.ty(places).elements().0;
    Ok([rows, node.reshape("places", places, &[count])?])
}

fn gather_nd(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let batch = usize::try_from(node.int("batch_dims", 0)?).unwrap_or(0);
    let [rows, places] = by_coordinates(node, x, batch)?;
    let y = node.apply("", EmbeddingOp::default(), &[rows, places])?;
    node.set(0, y)
}

fn scatter_nd(node: &mut NodeImport) -> Result<(), GraphError> {
    let (x, updates) = (node.input(0)?, node.input(2)?);
    let [rows, places] = by_coordinates(node, x, 0)?;
    let width = node.shape(rows)[1];
    let updates = as_rows(node, "updates", updates, width)?;
    let update = update(node)?;
    let y = node.apply("", ScatterOp(update), &[rows, places, updates])?;
    node.set(0, y)
}
