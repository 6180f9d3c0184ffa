//! Elements by index: gathered from, or scattered to, places that are known while the model runs.

use super::{OpBuilder, composed as of_several, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{ArgExtremaOp, ImportProblem, OneHotOp, ScatterUpdate, TopKOp, composed};
use crate::shape::{DType, TensorId};

pub(super) const OPS: &[OpBuilder] = &[
    modelled("ArgMax", |node| arg_extrema(node, true)),
    modelled("ArgMin", |node| arg_extrema(node, false)),
    of_several("GatherElements", gather_elements),
    of_several("GatherND", gather_nd),
    of_several("OneHot", one_hot),
    of_several("Scatter", scatter_elements),
    of_several("ScatterElements", scatter_elements),
    of_several("ScatterND", scatter_nd),
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

/// Rows with one value at the index and another elsewhere. The values themselves do not change the
/// work.
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

fn gather_elements(node: &mut NodeImport) -> Result<(), GraphError> {
    let operands = [node.input(0)?, indices(node)?];
    let axis = node.axis(node.int("axis", 0)?, node.shape(operands[0]).len())?;
    let y =
        node.compose("", |graph, name| composed::gather_elements(graph, name, operands, axis))?;
    node.set(0, y)
}

fn scatter_elements(node: &mut NodeImport) -> Result<(), GraphError> {
    let operands = [node.input(0)?, indices(node)?, node.input(2)?];
    let axis = node.axis(node.int("axis", 0)?, node.shape(operands[0]).len())?;
    let at = (axis, update(node)?);
    let y =
        node.compose("", |graph, name| composed::scatter_elements(graph, name, operands, at))?;
    node.set(0, y)
}

fn gather_nd(node: &mut NodeImport) -> Result<(), GraphError> {
    if takes_all_in_order(node)? {
        let x = node.input(0)?;
        return node.set(0, x);
    }
    let operands = [node.input(0)?, indices(node)?];
    let batch = usize::try_from(node.int("batch_dims", 0)?).unwrap_or(0);
    let y = node.compose("", |graph, name| composed::gather_nd(graph, name, operands, batch))?;
    node.set(0, y)
}

fn scatter_nd(node: &mut NodeImport) -> Result<(), GraphError> {
    let operands = [node.input(0)?, indices(node)?, node.input(2)?];
    let update = update(node)?;
    let y = node.compose("", |graph, name| composed::scatter_nd(graph, name, operands, update))?;
    node.set(0, y)
}

fn indices(node: &mut NodeImport) -> Result<TensorId, GraphError> {
    let indices = node.input(1)?;
    node.cast("indices", indices, DType::Int)
}

/// The effect of a scatter on an existing element.
fn update(node: &NodeImport) -> Result<ScatterUpdate, GraphError> {
    match node.text("reduction", "none")?.as_str() {
        "none" => Ok(ScatterUpdate::Replace),
        "add" => Ok(ScatterUpdate::Add),
        other => Err(node.refuse(ImportProblem::NotModelled(format!("reduction {other:?}")))),
    }
}

/// True if known coordinates name all elements in order, like the indices of a mask that exporters
/// decompose. The result is then the tensor with another shape.
fn takes_all_in_order(node: &NodeImport) -> Result<bool, GraphError> {
    let dims = &node.of_file(0)?.dims;
    if !matches!(node.int("batch_dims", 0), Ok(0)) {
        return Ok(false);
    }
    let Some(known) = node.known_ints(1) else { return Ok(false) };
    let rank = dims.len();
    let all = known.len() as u64 == dims.iter().product::<u64>().saturating_mul(rank as u64);
    Ok(rank > 0
        && all
        && known.chunks_exact(rank).zip(0u64..).all(|(place, at)| {
            let mut left = at;
            (0..rank).rev().all(|axis| {
                let wanted = left % dims[axis].max(1);
                let size = dims[axis].max(1);
                left /= size;
                u64::try_from(place[axis]) == Ok(wanted)
            })
        }))
}
