//! Gathers and scatters of elements and of slices, through lookups in a table of one column or of
//! the slices (popart willow/src/popx/op/{gatherx,scatterx,scatterutilx}.cpp).

use super::Composition;
use crate::operators::linear_index::{along_axis, of_coordinates, rolled, unrolled};
use crate::operators::{
    EmbeddingOp, GraphError, GraphProblem, OperationSink, ScatterOp, ScatterUpdate,
};
use crate::poputil::list_length;
use crate::shape::{TensorId, TensorInfo};

/// True if indices along `axis` fit `data`: the rank is the same, and no other dimension is longer.
fn fits_along(data: &TensorInfo, indices: &TensorInfo, axis: usize) -> bool {
    let mut sizes = data.shape.iter().zip(&indices.shape).enumerate();
    axis < data.shape.len()
        && data.shape.len() == indices.shape.len()
        && sizes.all(|(at, (data, indices))| at == axis || indices <= data)
}

/// Adds the selection of the elements of `data` at `indices` along `axis`. The result has the shape
/// of `indices` (ONNX GatherElements).
///
/// # Errors
/// Returns an error for operands that do not fit together.
pub fn gather_elements(
    graph: &mut dyn OperationSink,
    name: &str,
    [data, indices]: [TensorId; 2],
    axis: usize,
) -> Result<TensorId, GraphError> {
    let mut of = Composition { graph, name };
    let ty = of.ty(data);
    let shape = of.ty(indices).shape;
    if !fits_along(&ty, &of.ty(indices), axis) {
        let indices = of.ty(indices);
        return Err(of.refuse(GraphProblem::IndicesOfAxis { indices, axis, ty }));
    }
    let places = along_axis(of.graph, name, (indices, axis), &ty)?;
    let roll = rolled(ty.shape.len(), axis);
    let table = of.transpose("roll", data, roll.clone())?;
    let table = of.reshape("table", table, vec![ty.elements().0, 1])?;
    let found = of.apply("lookup", EmbeddingOp::default(), &[table, places])?;
    let turned = roll.iter().map(|old| shape[*old]).collect();
    if axis == 0 {
        return of.reshape("", found, turned);
    }
    let found = of.reshape("found", found, turned)?;
    of.apply("", unrolled(&roll), &[found])
}

/// Adds the selection of slices of `data` at the coordinates along the last axis of `indices`,
/// after `batch` leading dimensions that both share (ONNX GatherND).
///
/// # Errors
/// Returns an error for operands that do not fit together.
pub fn gather_nd(
    graph: &mut dyn OperationSink,
    name: &str,
    [data, indices]: [TensorId; 2],
    batch: usize,
) -> Result<TensorId, GraphError> {
    let mut of = Composition { graph, name };
    let (table, places, shape) = coordinate_table(&mut of, [data, indices], batch)?;
    let found = of.apply("lookup", EmbeddingOp::default(), &[table, places])?;
    of.reshape("", found, shape)
}

/// Returns the tensor as a table of the addressed slices, the selected rows, and the shape of the
/// selection.
fn coordinate_table(
    of: &mut Composition,
    [data, indices]: [TensorId; 2],
    batch: usize,
) -> Result<(TensorId, TensorId, Vec<u64>), GraphError> {
    let ty = of.ty(data);
    let places = of.ty(indices);
    let coordinates = places.shape.last().map_or(0, |count| list_length(*count));
    let named = batch.saturating_add(coordinates);
    let leads = batch < places.shape.len() && ty.shape.get(..batch) == places.shape.get(..batch);
    if coordinates == 0 || named > ty.shape.len() || !leads {
        return Err(of.refuse(GraphProblem::Indices { indices: places, ty }));
    }
    let (rows, width) = ty.shape.split_at(named);
    let shape = [&places.shape[..places.shape.len() - 1], width].concat();
    let table = vec![rows.iter().product(), width.iter().product()];
    let places = of_coordinates(of.graph, of.name, indices, batch)?;
    Ok((of.reshape("table", data, table)?, places, shape))
}

/// Adds a copy of `data` with elements of `updates` at `indices` along `axis` (ONNX
/// ScatterElements). The operands are data, indices and updates.
///
/// # Errors
/// Returns an error for operands that do not fit together.
pub fn scatter_elements(
    graph: &mut dyn OperationSink,
    name: &str,
    [data, indices, updates]: [TensorId; 3],
    (axis, update): (usize, ScatterUpdate),
) -> Result<TensorId, GraphError> {
    let mut of = Composition { graph, name };
    let ty = of.ty(data);
    let numbers = of.ty(indices);
    if !fits_along(&ty, &numbers, axis) || of.ty(updates).shape != numbers.shape {
        return Err(of.refuse(GraphProblem::IndicesOfAxis { indices: numbers, axis, ty }));
    }
    let places = along_axis(of.graph, name, (indices, axis), &ty)?;
    let roll = rolled(ty.shape.len(), axis);
    let table = of.transpose("roll", data, roll.clone())?;
    let table = of.reshape("table", table, vec![ty.elements().0, 1])?;
    let rows = of.transpose("rollUpdates", updates, roll.clone())?;
    let rows = of.reshape("rows", rows, vec![numbers.elements().0, 1])?;
    let made = of.apply("scatter", ScatterOp(update), &[table, places, rows])?;
    let turned = roll.iter().map(|old| ty.shape[*old]).collect();
    if axis == 0 {
        return of.reshape("", made, turned);
    }
    let made = of.reshape("made", made, turned)?;
    of.apply("", unrolled(&roll), &[made])
}

/// Adds a copy of `data` with slices of `updates` at the coordinates along the last axis of
/// `indices` (ONNX ScatterND). The operands are data, indices and updates.
///
/// # Errors
/// Returns an error for operands that do not fit together.
pub fn scatter_nd(
    graph: &mut dyn OperationSink,
    name: &str,
    [data, indices, updates]: [TensorId; 3],
    update: ScatterUpdate,
) -> Result<TensorId, GraphError> {
    let mut of = Composition { graph, name };
    let (table, places, shape) = coordinate_table(&mut of, [data, indices], 0)?;
    if of.ty(updates).shape != shape {
        let updates = of.ty(updates);
        return Err(of.refuse(GraphProblem::Updates(updates)));
    }
    let [count, width] = [of.ty(places).elements().0, of.ty(table).shape[1]];
    let rows = of.reshape("rows", updates, vec![count, width])?;
    let made = of.apply("scatter", ScatterOp(update), &[table, places, rows])?;
    let whole = of.ty(data).shape;
    of.reshape("", made, whole)
}
