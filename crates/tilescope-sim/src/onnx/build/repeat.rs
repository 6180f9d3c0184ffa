//! The nodes that connect a loop, whose body exists once, with the nodes around it.

use super::{NodeImport, OpBuilder, composed};
use crate::graph::GraphError;
use crate::operators::RepeatPartOp;
use crate::shape::{DType, TensorInfo};
use tilescope_onnx::RepeatPart;

/// The builder of all of them.
pub(super) const PART: OpBuilder = composed("Loop", build);

fn build(node: &mut NodeImport) -> Result<(), GraphError> {
    let Some(part) = node.node.repeat_part else { return super::build_unknown(node) };
    let mut operands = Vec::new();
    for input in 0..node.node.inputs.len() {
        operands.push(node.input(input)?);
    }
    let operator = match part {
        RepeatPart::State => RepeatPartOp::State,
        RepeatPart::Operand => RepeatPartOp::Operand,
        RepeatPart::Slice => RepeatPartOp::Slice,
        RepeatPart::Update => {
            let to = node.ty(operands[1]).dtype;
            operands[0] = node.cast("type", operands[0], to)?;
            RepeatPartOp::Update
        }
        RepeatPart::Buffer => {
            let dtype = node.output_type(0).unwrap_or(DType::Float);
            RepeatPartOp::Buffer(TensorInfo::new(node.output_dims(0)?, dtype))
        }
        RepeatPart::Write => {
            let to = node.ty(operands[0]).dtype;
            operands[1] = node.cast("type", operands[1], to)?;
            RepeatPartOp::Write
        }
    };
    let made = node.apply("", operator, &operands)?;
    node.set(0, made)
}
