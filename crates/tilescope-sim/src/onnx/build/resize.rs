//! Fields of another size: repeated elements, or means of neighbours.

use super::{OpBuilder, composed};
use crate::graph::{GraphError, ImportProblem};
use crate::onnx::node_import::NodeImport;
use crate::operators::TakeOp;
use crate::popops::elementwise::BinaryOpType;
use crate::shape::{TensorId, TensorInfo};

pub(super) const OPS: &[OpBuilder] = &[composed("Resize", resize), composed("Upsample", resize)];

/// Resizes axis by axis, as popart does (willow/src/popx/op/resizex.cpp). Nearest elements are
/// copies, linear ones a weighted sum of two elements.
fn resize(node: &mut NodeImport) -> Result<(), GraphError> {
    let mut x = node.input(0)?;
    let dims = node.output_dims(0)?;
    let linear = match node.text("mode", "nearest")?.as_str() {
        "nearest" => false,
        "linear" => true,
        other => return Err(node.refuse(ImportProblem::NotModelled(format!("mode {other:?}")))),
    };
    for (axis, size) in dims.iter().enumerate() {
        let from = node.shape(x)[axis];
        if from != *size {
            let places = Places::new(node, from, *size)?;
            x = if linear {
                blend(node, x, axis, &places)?
            } else {
                nearest(node, x, axis, &places)?
            };
        }
    }
    node.set(0, x)
}

/// The source positions of the elements of an axis, which may be between elements.
struct Places {
    positions: Vec<f64>,
    last: f64,
}

impl Places {
    fn new(node: &NodeImport, from: u64, to: u64) -> Result<Self, GraphError> {
        // Positions were asymmetric before opset 11.
        let default = if node.node.opset < 11 { "asymmetric" } else { "half_pixel" };
        let mode = node.text("coordinate_transformation_mode", default)?;
        let scale = from as f64 / to as f64;
        let positions = (0..to).map(|place| match mode.as_str() {
            "asymmetric" => place as f64 * scale,
            "align_corners" if to > 1 => place as f64 * (from - 1) as f64 / (to - 1) as f64,
            "align_corners" => 0.0,
            "pytorch_half_pixel" if to == 1 => 0.0,
            _ => (place as f64 + 0.5) * scale - 0.5,
        });
        Ok(Self { positions: positions.collect(), last: (from.max(1) - 1) as f64 })
    }

    /// Rounds positions to elements of the axis.
    fn indices(&self, round: impl Fn(f64) -> f64) -> Vec<u64> {
        let rounded = self.positions.iter().map(|position| round(*position).clamp(0.0, self.last));
        rounded.map(whole).collect()
    }
}

/// Converts a rounded number within an axis.
#[allow(clippy::cast_possible_truncation, reason = "positions lie between 0 and an axis's size")]
fn whole(position: f64) -> u64 {
    position as u64
}

fn nearest(
    node: &mut NodeImport,
    x: TensorId,
    axis: usize,
    places: &Places,
) -> Result<TensorId, GraphError> {
    let mode = node.text("nearest_mode", "round_prefer_floor")?;
    let indices = places.indices(|position| match mode.as_str() {
        "floor" => position.floor(),
        "ceil" => position.ceil(),
        "round_prefer_ceil" => (position + 0.5).floor(),
        _ => (position - 0.5).ceil(),
    });
    node.apply("", TakeOp { axis, indices }, &[x])
}

/// `low + (high - low) . weight` for each element.
fn blend(
    node: &mut NodeImport,
    x: TensorId,
    axis: usize,
    places: &Places,
) -> Result<TensorId, GraphError> {
    let low = TakeOp { axis, indices: places.indices(f64::floor) };
    let low = node.apply("low", low, &[x])?;
    let high = TakeOp { axis, indices: places.indices(f64::ceil) };
    let high = node.apply("high", high, &[x])?;
    let ty = node.ty(low);
    let mut shape = vec![1; ty.shape.len()];
    shape[axis] = ty.shape[axis];
    let weights = node.resident("weights", TensorInfo::new(shape, ty.dtype));
    let difference = node.binary("difference", BinaryOpType::Subtract, [high, low])?;
    let part = node.binary("part", BinaryOpType::Multiply, [difference, weights])?;
    node.binary("", BinaryOpType::Add, [part, low])
}
