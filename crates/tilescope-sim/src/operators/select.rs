//! A selection between two values for every element (ONNX Where, popops Select).

use super::broadcast::{broadcast_shape, reduce_to_operand};
use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    RowWindow, ShapeError, UnaryOp, expect_operands,
};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise::{self, SelectForm, UnaryOpType};
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{DType, TensorId, TensorInfo};

/// The second operand where the first one, a truth value, is true, and the third elsewhere. Smaller
/// operands are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SelectOp;

impl Operator for SelectOp {
    fn kind(&self) -> &'static str {
        "where"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 3)?;
        if inputs[0].dtype != DType::Bool || inputs[1].dtype != inputs[2].dtype {
            return Err(ShapeError::Operands {
                expected: "a condition and two values of one type",
                found: inputs.to_vec(),
            });
        }
        Ok(vec![TensorInfo::new(broadcast_shape(inputs)?, inputs[1].dtype)])
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let dy = backward.gradient()?;
        let condition = backward.node.inputs[0];
        let mut gradients = vec![None; 3];
        if backward.needs_input_gradient(1) {
            let masked = backward.apply_mask("grad_x", dy, condition)?;
            gradients[1] = Some(reduce_to_operand(backward, masked, 1)?);
        }
        if backward.needs_input_gradient(2) {
            let not = UnaryOp(UnaryOpType::LogicalNot);
            let other = backward.apply("grad_y/not", not, &[condition])?;
            let masked = backward.apply_mask("grad_y", dy, other)?;
            gradients[2] = Some(reduce_to_operand(backward, masked, 2)?);
        }
        Ok(gradients)
    }

    fn row_window(&self, inputs: &[TensorInfo]) -> Option<RowWindow> {
        let same = inputs.iter().all(|operand| operand.shape == inputs[0].shape);
        if !same {
            return None;
        }
        Some(RowWindow::POINTWISE)
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let whole = lowering.tensor_type(node.outputs[0]).clone();
        let is_whole = |lowering: &LoweringContext, tensor: TensorId| {
            lowering.tensor_type(tensor).shape == whole.shape
        };
        let [condition, x, y] = [node.inputs[0], node.inputs[1], node.inputs[2]];
        // The vertices follow the layout of the first whole operand, as in popops.
        let reference = [x, y, condition].into_iter().find(|of| is_whole(lowering, *of));
        let layout = match reference {
            Some(tensor) => lowering.layout_or_linear(tensor),
            None => TensorLayout::linear(whole.elements(), whole.dtype.bytes(), lowering.tiles),
        };
        let are_scalars = [condition, x, y].map(|operand| {
            lowering.tensor_type(operand).elements().0 == 1 && whole.elements().0 > 1
        });
        let form = match are_scalars {
            [_, true, true] => SelectForm::TwoScalars,
            [true, _, _] => SelectForm::OneCondition,
            _ => SelectForm::Elements,
        };
        let mut work = OperationWork::default();
        for operand in [condition, x, y] {
            let alone = match form {
                SelectForm::Elements => false,
                SelectForm::TwoScalars => operand != condition,
                SelectForm::OneCondition => operand == condition,
            };
            let ty = TensorInfo::new(&whole.shape[..], lowering.tensor_type(operand).dtype);
            if is_whole(lowering, operand) {
                work.append(lowering.relayout_tensor(operand, &layout, "Op/Select"));
            } else if alone {
                lowering.send_scalar(&mut work, operand, &layout, "Op/Select");
            } else {
                lowering.repeat_tensor(&mut work, operand, (&ty, &layout), "Op/Select");
            }
        }
        work.push(elementwise::select("Op/Select", form, whole.dtype, &layout.elements));
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }
}
