//! Element-wise operations of two operands: one operator for all of popops' binary vertices. The
//! second operand may be smaller: dimensions of size 1 (and missing outer ones) are repeated.

use super::parts::Rows;
use super::{Operator, Reduce, Reshape, Reuse, UnaryOp, expect_operands};
use crate::graph::{Backward, GraphError, Node, Role, TensorId, TensorType};
use crate::lower::elementwise::{self, Binary, Unary};
use crate::lower::reduce::Operation;
use crate::lower::{LowerError, Lowering, work::Work};

/// An operation of an element with its partner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BinaryOp(pub Binary);

impl BinaryOp {
    /// a + b
    pub(crate) const ADD: Self = Self(Binary::Add);
    pub(crate) const MULTIPLY: Self = Self(Binary::Multiply);
    /// a / b
    pub(crate) const DIVIDE: Self = Self(Binary::Divide);
}

/// Axes of `a` along which `b` is repeated.
fn repeated_axes(a: &TensorType, b: &TensorType) -> Result<Vec<usize>, String> {
    let missing = a.shape.len().checked_sub(b.shape.len());
    let refuse = || format!("{b} cannot be repeated to fit {a}");
    let missing = missing.ok_or_else(refuse)?;
    let mut repeated: Vec<usize> = (0..missing).collect();
    for (axis, (of_a, of_b)) in (missing..).zip(a.shape[missing..].iter().zip(&b.shape)) {
        match (of_a, of_b) {
            (many, 1) if *many > 1 => repeated.push(axis),
            (same, other) if same == other => {}
            _ => return Err(refuse()),
        }
    }
    Ok(repeated)
}

/// A gradient summed over the axes along which its operand was repeated.
fn collect(
    backward: &mut Backward,
    gradient: TensorId,
    axes: &[usize],
    ty: &TensorType,
) -> Result<TensorId, GraphError> {
    if axes.is_empty() {
        return Ok(gradient);
    }
    let sum = Reduce::new(Operation::Add, axes.to_vec());
    let sum = backward.apply("grad/reduce", sum, &[gradient])?;
    backward.apply("grad/reshape", Reshape { shape: ty.shape.clone() }, &[sum])
}

impl Operator for BinaryOp {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        if inputs[0].dtype != inputs[1].dtype {
            return Err(format!("operands differ: {} and {}", inputs[0], inputs[1]));
        }
        repeated_axes(&inputs[0], &inputs[1])?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let dy = backward.gradient()?;
        let [a, b] = [backward.node.inputs[0], backward.node.inputs[1]];
        let (a_type, b_type) = (backward.input_type(0), backward.input_type(1));
        let axes = repeated_axes(&a_type, &b_type).map_err(|_| backward.no_gradient())?;
        let wants = [backward.wants(0), backward.wants(1)];
        let of_a = match self.0 {
            Binary::Add | Binary::Subtract => Some(dy),
            Binary::Multiply | Binary::Divide if wants[0] => {
                Some(backward.apply("grad_a", *self, &[dy, b])?)
            }
            Binary::Multiply | Binary::Divide => None,
            _ => return Err(backward.no_gradient()),
        };
        if !wants[1] {
            return Ok(vec![of_a, None]);
        }
        let of_b = match self.0 {
            Binary::Add => dy,
            Binary::Subtract => backward.apply("grad_b", UnaryOp(Unary::Negate), &[dy])?,
            Binary::Multiply => backward.apply("grad_b", Self::MULTIPLY, &[dy, a])?,
            _ => {
                // d(a / b)/db = -(a / b) / b
                let ratio =
                    backward.apply("grad_b/ratio", Self::DIVIDE, &[backward.node.outputs[0], b])?;
                let product = backward.apply("grad_b/product", Self::MULTIPLY, &[ratio, dy])?;
                backward.apply("grad_b", UnaryOp(Unary::Negate), &[product])?
            }
        };
        Ok(vec![of_a, Some(collect(backward, of_b, &axes, &b_type)?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let (a, b) = (lowering.ty(node.inputs[0]).clone(), lowering.ty(node.inputs[1]).clone());
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let name = format!("Op/{}", self.0.title());
        let axes = repeated_axes(&a, &b).unwrap_or_default();
        let work = if axes.is_empty() {
            let mut work = lowering.bring(node.inputs[1], &layout, &name);
            // What outlives the program cannot be overwritten.
            let phase = if lowering.graph.tensor(node.inputs[0]).role == Role::Activation {
                elementwise::binary_in_place
            } else {
                elementwise::binary
            };
            work.push(phase(&name, self.0, a.dtype, &layout.elements));
            work
        } else {
            let values = lowering.layout_or_linear(node.inputs[1]);
            let mut work = Work::default();
            let rows = Rows::new(&a, layout.clone(), &axes);
            rows.apply(lowering, &mut work, &name, self.0, &values);
            work
        };
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }

    fn reuses(&self) -> Reuse {
        Reuse::InPlace(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::DType;

    #[test]
    fn smaller_operands_are_repeated() {
        let ty = |shape: &[u64]| TensorType::new(shape, DType::Half);
        let axes = |a: &[u64], b: &[u64]| repeated_axes(&ty(a), &ty(b));
        assert_eq!(axes(&[4, 5], &[4, 5]), Ok(vec![]));
        assert_eq!(axes(&[4, 5], &[5]), Ok(vec![0]));
        assert_eq!(axes(&[2, 4, 5], &[4, 1]), Ok(vec![0, 2]));
        assert!(axes(&[4, 5], &[4]).is_err());
        assert!(axes(&[5], &[4, 5]).is_err());
    }
}
