//! Elements and rows, selected by index.

use super::{OpBuilder, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{EmbeddingOp, SliceOp, TakeOp};
use crate::shape::DType;

pub(super) const OPS: &[OpBuilder] = &[modelled("Gather", gather)];

/// Gathers rows of a table. Other axes are moved to the front. A known index is a slice.
fn gather(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let shape = node.shape(x);
    let axis = node.axis(node.int("axis", 0)?, shape.len())?;
    if let Some(range) = stretch(node, shape[axis]) {
        let y = if range == (0..shape[axis]) {
            x
        } else {
            node.apply("", SliceOp { axis, range }, &[x])?
        };
        return node.set(0, y);
    }
    if let Some(indices) = known_places(node, shape[axis]) {
        let y = node.apply("", TakeOp { axis, indices }, &[x])?;
        return node.set(0, y);
    }
    let indices = node.input(1)?;
    let of_indices = node.shape(indices);
    let indices = node.cast("indices", indices, DType::Int)?;
    let rest: Vec<usize> = (0..shape.len()).filter(|other| *other != axis).collect();
    let front = std::iter::once(axis).chain(rest.iter().copied()).collect();
    let table = node.transpose("table/transpose", x, front)?;
    let width: u64 = rest.iter().map(|axis| shape[*axis]).product();
    let table = node.reshape("table", table, &[shape[axis], width])?;
    let count: u64 = of_indices.iter().product();
    let flat = node.reshape("indices/flat", indices, &[count])?;
    let rows = node.apply("", EmbeddingOp::default(), &[table, flat])?;
    if axis == 0 {
        return node.set(0, rows);
    }
    // The axes of the indices take the place of the gathered axis.
    let of_rest = rest.iter().map(|axis| shape[*axis]);
    let sizes: Vec<u64> = std::iter::once(count).chain(of_rest).collect();
    let rows = node.reshape("rows", rows, &sizes)?;
    let order = (1..=axis).chain([0]).chain(axis + 1..sizes.len()).collect();
    let y = node.transpose("rows/transpose", rows, order)?;
    node.set(0, y)
}

/// Known indices of an axis, if they are few.
fn known_places(node: &NodeImport, size: u64) -> Option<Vec<u64>> {
    let whole = i64::try_from(size).ok()?;
    let mut places = Vec::new();
    for index in node.known_ints(1)? {
        let place = u64::try_from(if index < 0 { index + whole } else { index }).ok()?;
        if place >= size {
            return None;
        }
        places.push(place);
    }
    Some(places)
}

/// The range of an axis that known consecutive indices cover.
fn stretch(node: &NodeImport, size: u64) -> Option<std::ops::Range<u64>> {
    let whole = i64::try_from(size).ok()?;
    let known = node.known_ints(1)?;
    let from_front = |index: &i64| if *index < 0 { index + whole } else { *index };
    let first = known.first().map(from_front)?;
    let consecutive = known.iter().zip(first..).all(|(index, at)| from_front(index) == at);
    let start = u64::try_from(first).ok()?;
    let end = start.checked_add(known.len() as u64)?;
    if consecutive && end <= size { Some(start..end) } else { None }
}
