//! Averages of windows that count the zeros around a field (`count_include_pad` of ONNX's
//! AveragePool): sums divided by the size of a window.

use super::Composition;
use crate::operators::{GraphError, OperationSink, PoolOp, PoolWindow, ScaleOp};
use crate::popnn::pool::PoolingType;
use crate::shape::TensorId;

/// Adds the mean of each window of `[batch, channels, field..]`, with padding counted as zeros.
///
/// # Errors
/// Returns an error for windows that do not fit.
pub fn padded_average_pool(
    graph: &mut dyn OperationSink,
    name: &str,
    x: TensorId,
    windows: Vec<PoolWindow>,
) -> Result<TensorId, GraphError> {
    let mut of = Composition { graph, name };
    let size = windows.iter().map(|window| window.kernel as f64).product::<f64>();
    let sums = of.apply("sum", PoolOp { kind: PoolingType::Sum, windows }, &[x])?;
    of.apply("", ScaleOp::by(1.0 / size), &[sums])
}
