//! Fields of another size: repeated elements, or weighted sums of neighbours.

use super::{OpBuilder, composed};
use crate::graph::{GraphError, ImportProblem};
use crate::onnx::node_import::NodeImport;
use crate::operators::TakeOp;
use crate::popops::elementwise::BinaryOpType;
use crate::shape::{TensorId, TensorInfo};

pub(super) const OPS: &[OpBuilder] = &[composed("Resize", resize), composed("Upsample", resize)];

/// The largest number of elements on each side of a position that are added one by one.
const MOST_NEIGHBOURS: u64 = 128;

/// Resizes axis by axis, as popart does (willow/src/popx/op/resizex.cpp). Nearest elements are
/// copies, linear and cubic ones a weighted sum of two and of four elements, or of more with
/// antialiasing.
fn resize(node: &mut NodeImport) -> Result<(), GraphError> {
    let mut x = node.input(0)?;
    let dims = node.output_dims(0)?;
    let reach = match node.text("mode", "nearest")?.as_str() {
        "nearest" => None,
        "linear" => Some(1),
        "cubic" => Some(2),
        other => return Err(node.refuse(ImportProblem::NotModelled(format!("mode {other:?}")))),
    };
    for (axis, size) in dims.iter().enumerate() {
        let from = node.shape(x)[axis];
        if from != *size {
            let places = Places::new(node, from, *size)?;
            x = match reach {
                None => nearest(node, x, axis, &places)?,
                Some(reach) => match places.neighbours(node, reach)? {
                    1 => blend(node, x, axis, &places)?,
                    wide => weighted(node, x, axis, &places, wide)?,
                },
            };
        }
    }
    node.set(0, x)
}

/// The source positions of the elements of an axis, which may be between elements.
struct Places {
    positions: Vec<f64>,
    last: f64,
    /// Elements of the source for each of the result.
    scale: f64,
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
        Ok(Self { positions: positions.collect(), last: (from.max(1) - 1) as f64, scale })
    }

    /// Elements on each side of a position that contribute to it. Antialiasing widens the filter of
    /// a smaller result.
    fn neighbours(&self, node: &NodeImport, reach: u64) -> Result<u64, GraphError> {
        let widened = node.int("antialias", 0)? != 0 && self.scale > 1.0;
        let wide = if widened { whole((reach as f64 * self.scale).ceil()) } else { reach };
        if wide > MOST_NEIGHBOURS {
            let problem = format!("antialiasing over {wide} elements on each side");
            return Err(node.refuse(ImportProblem::NotModelled(problem)));
        }
        Ok(wide)
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

/// The sum of the elements on each side of a position, each with its weight.
fn weighted(
    node: &mut NodeImport,
    x: TensorId,
    axis: usize,
    places: &Places,
    each_side: u64,
) -> Result<TensorId, GraphError> {
    let mut sum: Option<TensorId> = None;
    for at in 0..2 * each_side {
        let shift = at as f64 + 1.0 - each_side as f64;
        let indices = places.indices(|position| position.floor() + shift);
        let part = node.apply(&format!("tap{at}"), TakeOp { axis, indices }, &[x])?;
        let ty = node.ty(part);
        let mut shape = vec![1; ty.shape.len()];
        shape[axis] = ty.shape[axis];
        let weights = node.resident(&format!("tap{at}/weights"), TensorInfo::new(shape, ty.dtype));
        let name = format!("tap{at}/weighed");
        let part = node.binary(&name, BinaryOpType::Multiply, [part, weights])?;
        sum = Some(match sum {
            Some(sum) => {
                let name =
                    if at + 1 == 2 * each_side { String::new() } else { format!("tap{at}/sum") };
                node.binary(&name, BinaryOpType::Add, [sum, part])?
            }
            None => part,
        });
    }
    Ok(sum.unwrap_or(x))
}
