//! Element-wise operations of two operands: one operator for all of popops' binary vertices. Either
//! operand may be smaller. Its dimensions of size 1 and its missing outer ones are repeated.

use super::broadcast::{broadcast_shape, reduce_to_operand, repeated_axes};
use super::{
    GradientBuilder, GradientResult, GraphError, LoweringContext, LoweringResult, NodeOperands,
    Operator, OutputAlias, RowWindow, ShapeError, UnaryOp, Unwinding, expect_operands,
};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp, UnaryOpType};
use crate::popops::rows::TensorRows;
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{DType, TensorId, TensorInfo, TensorRole};
use std::cmp::Reverse;

/// An operation of an element with its partner. Comparisons and logical operations make truth
/// values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BinaryOp(pub(crate) BinaryOpType);

impl BinaryOp {
    /// The sum, `a + b`.
    pub const ADD: Self = Self(BinaryOpType::Add);
    pub(crate) const SUBTRACT: Self = Self(BinaryOpType::Subtract);
    pub(crate) const MULTIPLY: Self = Self(BinaryOpType::Multiply);
    /// The quotient, `a / b`.
    pub(crate) const DIVIDE: Self = Self(BinaryOpType::Divide);

    /// Adds the requested gradients of the operands, before they are summed over repeated axes.
    fn operand_gradients(
        self,
        backward: &mut GradientBuilder,
        dy: TensorId,
        [wants_a, wants_b]: [bool; 2],
    ) -> Result<[Option<TensorId>; 2], GraphError> {
        let [a, b] = [backward.node.inputs[0], backward.node.inputs[1]];
        let y = backward.node.outputs[0];
        let mut apply = |part: &str, operator: Self, operands: [TensorId; 2]| {
            backward.apply(part, operator, &operands)
        };
        let mut of_a = None;
        let mut of_b = None;
        match self.0 {
            BinaryOpType::Add => (of_a, of_b) = (Some(dy), Some(dy)),
            BinaryOpType::Subtract => {
                of_a = Some(dy);
                if wants_b {
                    of_b = Some(backward.apply("grad_b", UnaryOp(UnaryOpType::Negate), &[dy])?);
                }
            }
            BinaryOpType::Multiply => {
                if wants_a {
                    of_a = Some(apply("grad_a", Self::MULTIPLY, [dy, b])?);
                }
                if wants_b {
                    of_b = Some(apply("grad_b", Self::MULTIPLY, [dy, a])?);
                }
            }
            BinaryOpType::Divide => {
                if wants_a {
                    of_a = Some(apply("grad_a", Self::DIVIDE, [dy, b])?);
                }
                if wants_b {
                    // `d(a / b)/db = -(a / b) / b`
                    let ratio = apply("grad_b/ratio", Self::DIVIDE, [y, b])?;
                    let product = apply("grad_b/product", Self::MULTIPLY, [ratio, dy])?;
                    of_b =
                        Some(backward.apply("grad_b", UnaryOp(UnaryOpType::Negate), &[product])?);
                }
            }
            BinaryOpType::Maximum | BinaryOpType::Minimum => {
                // If both are equal, the first operand is the result.
                let [first, second] = if self.0 == BinaryOpType::Maximum {
                    [BinaryOpType::GreaterThanEqual, BinaryOpType::LessThan]
                } else {
                    [BinaryOpType::LessThanEqual, BinaryOpType::GreaterThan]
                };
                let mut mask_by = |part: &str, chosen: BinaryOpType| {
                    let mask = backward.apply(&format!("{part}/mask"), Self(chosen), &[a, b])?;
                    backward.apply_mask(part, dy, mask)
                };
                if wants_a {
                    of_a = Some(mask_by("grad_a", first)?);
                }
                if wants_b {
                    of_b = Some(mask_by("grad_b", second)?);
                }
            }
            BinaryOpType::Power => {
                if wants_a {
                    // `b a^b / a`
                    let slope = apply("grad_a/slope", Self::MULTIPLY, [y, b])?;
                    let ratio = apply("grad_a/ratio", Self::DIVIDE, [slope, a])?;
                    of_a = Some(apply("grad_a", Self::MULTIPLY, [ratio, dy])?);
                }
                if wants_b {
                    // `a^b ln a`
                    let log = backward.apply("grad_b/log", UnaryOp(UnaryOpType::Log), &[a])?;
                    let slope = backward.apply("grad_b/slope", Self::MULTIPLY, &[y, log])?;
                    of_b = Some(backward.apply("grad_b", Self::MULTIPLY, &[slope, dy])?);
                }
            }
            BinaryOpType::Remainder if !wants_b => of_a = Some(dy),
            BinaryOpType::Atan2 => {
                let square = UnaryOp(UnaryOpType::Square);
                let of_first = backward.apply("grad/square_a", square, &[a])?;
                let of_second = backward.apply("grad/square_b", square, &[b])?;
                let sum = backward.apply("grad/sum", Self::ADD, &[of_first, of_second])?;
                let ratio = backward.apply("grad/ratio", Self::DIVIDE, &[dy, sum])?;
                if wants_a {
                    of_a = Some(backward.apply("grad_a", Self::MULTIPLY, &[ratio, b])?);
                }
                if wants_b {
                    let product = [ratio, a];
                    let product = backward.apply("grad_b/product", Self::MULTIPLY, &product)?;
                    let negate = UnaryOp(UnaryOpType::Negate);
                    of_b = Some(backward.apply("grad_b", negate, &[product])?);
                }
            }
            _ => return Err(backward.no_gradient_error(self.kind())),
        }
        Ok([of_a.filter(|_| wants_a), of_b.filter(|_| wants_b)])
    }

    /// Lowers the operation of the larger operand, of type `ty` and layout `layout`, and a smaller
    /// one that repeats.
    fn lower_repeated(
        self,
        lowering: &mut LoweringContext,
        work: &mut OperationWork,
        (ty, layout): (&TensorInfo, &TensorLayout),
        smaller: TensorId,
        in_place: bool,
    ) {
        let values = lowering.layout_or_linear(smaller);
        let axes = repeated_axes(&ty.shape, lowering.tensor_type(smaller));
        let rows = TensorRows::new(ty, layout.clone(), &axes);
        let name = format!("Op/{}", self.0.title());
        let apply =
            if in_place { TensorRows::apply_broadcast } else { TensorRows::apply_broadcast_apart };
        apply(&rows, &lowering.machine, work, &name, self.0, &values);
    }
}

/// Orders the operands of an element-wise operation: the result has the layout of the first.
/// Operands that may be overwritten come first (popart willow/src/patterns/inplace.cpp), then the
/// one whose fullest tile holds least, then the one on the most tiles (poplibs
/// lib/popops/ElementWiseUtil.cpp, createOutputForElementWiseOp). The original order has no
/// influence.
fn operands_by_place(lowering: &mut LoweringContext, operands: [TensorId; 2]) -> [TensorId; 2] {
    let preference = operands.map(|tensor| {
        let layout = lowering.layout_or_linear(tensor);
        let first_found = Reverse(lowering.layout_number(tensor));
        let elements = &layout.elements;
        (lowering.dies(tensor), Reverse(elements.max()), elements.tile_count(), first_found)
    });
    let [a, b] = operands;
    if preference[1] > preference[0] { [b, a] } else { [a, b] }
}

impl Operator for BinaryOp {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        if inputs[0].dtype != inputs[1].dtype {
            return Err(ShapeError::OperandsDiffer(inputs[0].clone(), inputs[1].clone()));
        }
        let dtype = if self.0.is_predicate() { DType::Bool } else { inputs[0].dtype };
        Ok(vec![TensorInfo::new(broadcast_shape(inputs)?, dtype)])
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        outputs[0].elements().0
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let dy = backward.gradient()?;
        let wants = [backward.needs_input_gradient(0), backward.needs_input_gradient(1)];
        let gradients = self.operand_gradients(backward, dy, wants)?;
        let mut found = Vec::new();
        for (input, gradient) in gradients.into_iter().enumerate() {
            found.push(match gradient {
                Some(gradient) => Some(reduce_to_operand(backward, gradient, input)?),
                None => None,
            });
        }
        Ok(found)
    }

    fn row_window(&self, inputs: &[TensorInfo]) -> Option<RowWindow> {
        let shape = broadcast_shape(inputs).ok()?;
        if inputs[0].shape != shape {
            return None;
        }
        Some(RowWindow::POINTWISE)
    }

    fn unwinding(&self, inputs: &[TensorInfo], input: usize) -> Unwinding {
        // A repeated operand has fewer elements than the result (popart
        // willow/src/popx/op/elementwisex.cpp).
        let is_whole = broadcast_shape(inputs).is_ok_and(|shape| inputs[input].shape == shape);
        if is_whole { Unwinding::InOrder } else { Unwinding::DeadEnd }
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let [a, b] = [0, 1].map(|input| lowering.tensor_type(node.inputs[input]).clone());
        let output = lowering.tensor_type(node.outputs[0]);
        let whole = TensorInfo::new(&output.shape[..], a.dtype);
        let same_type = output.dtype == a.dtype;
        let name = format!("Op/{}", self.0.title());
        let mut work = OperationWork::default();
        let layout = match (a.shape == whole.shape, b.shape == whole.shape) {
            (true, true) => {
                let [result, other] = operands_by_place(lowering, [node.inputs[0], node.inputs[1]]);
                let layout = lowering.layout_or_linear(result);
                work = lowering.relayout_tensor(other, &layout, &name);
                // A tensor that outlives the program cannot be overwritten.
                let in_place = lowering.role(result) == TensorRole::Activation && same_type;
                let phase = if in_place { elementwise::in_place } else { elementwise::apart };
                work.push(phase(&name, ElementwiseOp::Binary(self.0), a.dtype, &layout.elements));
                layout
            }
            (true, false) => {
                let layout = lowering.layout_or_linear(node.inputs[0]);
                let larger = (&whole, &layout);
                self.lower_repeated(lowering, &mut work, larger, node.inputs[1], same_type);
                layout
            }
            (false, true) if self.0.is_commutative() => {
                let layout = lowering.layout_or_linear(node.inputs[1]);
                let larger = (&whole, &layout);
                self.lower_repeated(lowering, &mut work, larger, node.inputs[0], same_type);
                layout
            }
            // popops copies a repeated first operand to the layout of the result
            // (lib/popops/ElementWise.cpp, binaryOpGeneral).
            (false, full) => {
                let layout = if full {
                    lowering.layout_or_linear(node.inputs[1])
                } else {
                    let bytes = whole.dtype.bytes();
                    TensorLayout::linear(whole.elements(), bytes, lowering.tiles)
                };
                let larger = (&whole, &layout);
                lowering.repeat_tensor(&mut work, node.inputs[0], larger, &name);
                if full {
                    work.push(elementwise::apart(
                        &name,
                        ElementwiseOp::Binary(self.0),
                        a.dtype,
                        &layout.elements,
                    ));
                } else {
                    self.lower_repeated(lowering, &mut work, larger, node.inputs[1], same_type);
                }
                layout
            }
        };
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::InPlaceOfAny
    }
}
