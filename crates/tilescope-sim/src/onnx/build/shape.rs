//! Views, and conversions of the same elements to other types and shapes.

use super::{OpBuilder, composed, modelled};
use crate::graph::{GraphError, ImportProblem};
use crate::onnx::node_import::NodeImport;

pub(super) const OPS: &[OpBuilder] = &[
    modelled("Cast", cast),
    modelled("CastLike", cast),
    composed("DepthToSpace", depth_to_space),
    modelled("Expand", expand),
    modelled("Flatten", reshape),
    modelled("Identity", identity),
    modelled("Reshape", reshape),
    composed("SpaceToDepth", space_to_depth),
    modelled("Squeeze", reshape),
    modelled("Transpose", transpose),
    modelled("Unsqueeze", reshape),
];

fn identity(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    node.set(0, x)
}

/// Reshapes to the known shape of the result. The way in which the shape was computed does not
/// matter.
fn reshape(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let dims = node.output_dims(0)?;
    let y = node.reshape("", x, &dims)?;
    node.set(0, y)
}

fn cast(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let to = node.output_type(0).unwrap_or(node.ty(x).dtype);
    let y = node.cast("", x, to)?;
    node.set(0, y)
}

fn expand(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let dims = node.output_dims(0)?;
    let y = node.expand("", x, &dims)?;
    node.set(0, y)
}

fn transpose(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let rank = node.shape(x).len();
    let permutation = match node.ints("perm")? {
        None => (0..rank).rev().collect(),
        Some(axes) => {
            axes.iter().map(|axis| node.axis(*axis, rank)).collect::<Result<Vec<_>, _>>()?
        }
    };
    let y = node.transpose("", x, permutation)?;
    node.set(0, y)
}

/// Moves channels to squares of the field: `[n, c, h, w]` to `[n, c / b^2, h b, w b]`.
fn depth_to_space(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let block = node.count("blocksize")?;
    let [n, c, h, w] = node.shape(x)[..] else {
        return Err(node.refuse(ImportProblem::Operand("[batch, channels, height, width]")));
    };
    let inner = c / (block * block).max(1);
    let column_row = node.text("mode", "DCR")? == "CRD";
    let (split, permutation) = if column_row {
        ([n, inner, block, block, h, w], vec![0, 1, 4, 2, 5, 3])
    } else {
        ([n, block, block, inner, h, w], vec![0, 3, 4, 1, 5, 2])
    };
    let parts = node.reshape("blocks", x, &split)?;
    let turned = node.transpose("transpose", parts, permutation)?;
    let y = node.reshape("", turned, &[n, inner, h * block, w * block])?;
    node.set(0, y)
}

/// Moves squares of the field to channels, the inverse of [`depth_to_space`].
fn space_to_depth(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let block = node.count("blocksize")?.max(1);
    let [n, c, h, w] = node.shape(x)[..] else {
        return Err(node.refuse(ImportProblem::Operand("[batch, channels, height, width]")));
    };
    let parts = node.reshape("blocks", x, &[n, c, h / block, block, w / block, block])?;
    let turned = node.transpose("transpose", parts, vec![0, 3, 5, 1, 2, 4])?;
    let y = node.reshape("", turned, &[n, c * block * block, h / block, w / block])?;
    node.set(0, y)
}
