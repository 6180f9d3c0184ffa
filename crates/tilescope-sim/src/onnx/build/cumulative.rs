//! Running sums along an axis.

use super::{OpBuilder, composed};
use crate::graph::ImportProblem;
use crate::operators::composed::cumulative_sum;

pub(super) const OPS: &[OpBuilder] = &[composed("CumSum", |node| {
    let x = node.input(0)?;
    let axis = node.known_ints(1).and_then(|axis| axis.first().copied());
    let axis =
        axis.ok_or_else(|| node.refuse(ImportProblem::NotConstant("the axis".to_owned())))?;
    let axis = node.axis(axis, node.shape(x).len())?;
    let y = node.compose("", |graph, name| cumulative_sum(graph, name, x, axis))?;
    node.set(0, y)
})];
