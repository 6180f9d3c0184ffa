//! Pooling operators.

use super::conv::windows;
use super::{OpBuilder, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{ImportProblem, PoolOp, PoolWindow};
use crate::popnn::pool::PoolingType;

pub(super) const OPS: &[OpBuilder] = &[
    modelled("AveragePool", |node| pool(node, PoolingType::Average)),
    modelled("GlobalAveragePool", |node| global(node, PoolingType::Average)),
    modelled("GlobalMaxPool", |node| global(node, PoolingType::Max)),
    modelled("MaxPool", |node| pool(node, PoolingType::Max)),
];

fn pool(node: &mut NodeImport, kind: PoolingType) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let field = node.shape(x).get(2..).map(<[u64]>::to_vec).unwrap_or_default();
    let kernel = node.sizes("kernel_shape", field.len(), 1)?;
    let output = node.output_dims(0)?;
    let mut of_axes = Vec::new();
    for (axis, window) in windows(node, &field, &kernel)?.into_iter().enumerate() {
        if window.dilation != 1 {
            let what = "pooling with dilation".to_owned();
            return Err(node.refuse(ImportProblem::NotModelled(what)));
        }
        let [before, mut behind] = window.padding;
        // `ceil_mode` adds a window that ends after the field.
        let windows = output.get(2 + axis).copied().unwrap_or(1).max(1);
        let covered = (windows - 1) * window.stride + window.kernel;
        behind = behind.max(covered.saturating_sub(field[axis] + before));
        of_axes.push(PoolWindow { kernel: window.kernel, stride: window.stride, before, behind });
    }
    let y = node.apply("", PoolOp { kind, windows: of_axes }, &[x])?;
    node.set(0, y)
}

/// Pools with one window over the whole field.
fn global(node: &mut NodeImport, kind: PoolingType) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let windows = node
        .shape(x)
        .iter()
        .skip(2)
        .map(|kernel| PoolWindow { kernel: *kernel, stride: 1, before: 0, behind: 0 })
        .collect();
    let y = node.apply("", PoolOp { kind, windows }, &[x])?;
    node.set(0, y)
}
