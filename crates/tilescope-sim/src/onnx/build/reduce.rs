//! Reductions over some axes, or over all axes if none is named.

use super::{OpBuilder, composed, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{ReduceOp, UnaryOp};
use crate::popops::elementwise::{BinaryOpType, UnaryOpType};
use crate::popops::reduce::ReduceOperation;

pub(super) const OPS: &[OpBuilder] = &[
    composed("ReduceL1", |node| reduce(node, Reduction::L1)),
    composed("ReduceL2", |node| reduce(node, Reduction::L2)),
    composed("ReduceLogSum", |node| reduce(node, Reduction::LogSum)),
    composed("ReduceLogSumExp", |node| reduce(node, Reduction::LogSumExp)),
    modelled("ReduceMax", |node| reduce(node, Reduction::Plain(ReduceOperation::Max))),
    modelled("ReduceMean", |node| reduce(node, Reduction::Mean)),
    modelled("ReduceMin", |node| reduce(node, Reduction::Plain(ReduceOperation::Min))),
    modelled("ReduceProd", |node| reduce(node, Reduction::Plain(ReduceOperation::Multiply))),
    modelled("ReduceSum", |node| reduce(node, Reduction::Plain(ReduceOperation::Add))),
    composed("ReduceSumSquare", |node| reduce(node, Reduction::SumSquare)),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduction {
    Plain(ReduceOperation),
    Mean,
    L1,
    L2,
    LogSum,
    LogSumExp,
    SumSquare,
}

fn reduce(node: &mut NodeImport, reduction: Reduction) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let shape = node.shape(x);
    let axes = match node.ints_or_input("axes", 1)? {
        Some(axes) if !axes.is_empty() => {
            axes.iter().map(|axis| node.axis(*axis, shape.len())).collect::<Result<Vec<_>, _>>()?
        }
        _ if node.int("noop_with_empty_axes", 0)? != 0 => return node.set(0, x),
        _ => (0..shape.len()).collect(),
    };
    if reduction == Reduction::LogSumExp {
        return log_sum_exp(node, axes);
    }
    let before = match reduction {
        Reduction::L1 => Some(UnaryOpType::Absolute),
        Reduction::L2 | Reduction::SumSquare => Some(UnaryOpType::Square),
        _ => None,
    };
    let values = match before {
        Some(function) => node.apply("values", UnaryOp(function), &[x])?,
        None => x,
    };
    let operation = match reduction {
        Reduction::Plain(operation) => operation,
        _ => ReduceOperation::Add,
    };
    let count: u64 = axes.iter().map(|axis| shape[*axis]).product();
    let reduced = node.apply("", ReduceOp::new(operation, axes), &[values])?;
    let y = match reduction {
        Reduction::Mean => node.scale("mean", reduced, 1.0 / count.max(1) as f64)?,
        Reduction::L2 => node.apply("sqrt", UnaryOp(UnaryOpType::Sqrt), &[reduced])?,
        Reduction::LogSum => node.apply("log", UnaryOp(UnaryOpType::Log), &[reduced])?,
        _ => reduced,
    };
    node.set(0, y)
}

/// The logarithm of the sum of exponentials. The largest value is subtracted first, as in PopART
/// (willow/src/popx/op/reducelogsumexpx.cpp).
fn log_sum_exp(node: &mut NodeImport, axes: Vec<usize>) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let mut kept = node.shape(x);
    for axis in &axes {
        kept[*axis] = 1;
    }
    let most = node.apply("max", ReduceOp::new(ReduceOperation::Max, axes.clone()), &[x])?;
    let rows = node.reshape("max/rows", most, &kept)?;
    let less = node.binary("less", BinaryOpType::Subtract, [x, rows])?;
    let powers = node.apply("exp", UnaryOp(UnaryOpType::Exp), &[less])?;
    let sum = node.apply("sum", ReduceOp::new(ReduceOperation::Add, axes), &[powers])?;
    let log = node.apply("log", UnaryOp(UnaryOpType::Log), &[sum])?;
    let y = node.binary("", BinaryOpType::Add, [log, most])?;
    node.set(0, y)
}
