//! Operators whose output has the shape of their operands, or the one that they broadcast to.

use super::{NodeView, ShapeRule, TensorType, broadcast};
use crate::element::ElementKind;
use crate::error::OnnxError;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "Abs" | "Acos" | "Acosh" | "Asin" | "Asinh" | "Atan" | "Atanh" | "BitwiseNot" | "Ceil"
        | "Celu" | "Clip" | "Cos" | "Cosh" | "CumSum" | "Elu" | "Erf" | "Exp" | "Floor"
        | "Gelu" | "Hardmax" | "HardSigmoid" | "HardSwish" | "Identity" | "LeakyRelu" | "Log"
        | "LogSoftmax" | "Mish" | "Neg" | "Not" | "PRelu" | "Reciprocal" | "Relu"
        | "ReverseSequence" | "RotaryEmbedding" | "Round" | "Scatter" | "ScatterElements"
        | "ScatterND" | "Selu" | "Shrink" | "Sigmoid" | "Sign" | "Sin" | "Sinh" | "Softmax"
        | "Softplus" | "Softsign" | "Sqrt" | "Tan" | "Tanh" | "ThresholdedRelu" | "Trilu" => {
            |view| Ok(vec![view.like(0)?])
        }
        "Add" | "BitShift" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" | "Div" | "Max" | "Mean"
        | "Min" | "Mod" | "Mul" | "Pow" | "Sub" | "Sum" => |view| {
            let element = view.input(0)?.element;
            Ok(vec![TensorType { element, dims: repeated(view)? }])
        },
        "And" | "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "Or" | "Xor" => {
            |view| Ok(vec![TensorType { element: ElementKind::Bool, dims: repeated(view)? }])
        }
        "IsInf" | "IsNaN" => {
            |view| Ok(vec![TensorType { element: ElementKind::Bool, ..view.like(0)? }])
        }
        "Where" => |view| {
            let element = view.input(1)?.element;
            Ok(vec![TensorType { element, dims: repeated(view)? }])
        },
        "Cast" => |view| {
            let element = view
                .element_attribute("to")?
                .ok_or_else(|| view.error("its target type is missing"))?;
            Ok(vec![TensorType { element, ..view.like(0)? }])
        },
        "CastLike" => {
            |view| Ok(vec![TensorType { element: view.input(1)?.element, ..view.like(0)? }])
        }
        "Dropout" => |view| {
            // The mask had the data's type before version 10.
            let like = view.like(0)?;
            let element = if view.opset < 10 { like.element } else { ElementKind::Bool };
            Ok(vec![like.clone(), TensorType { element, ..like }])
        },
        _ => return None,
    })
}

/// The shape that all operands broadcast to.
fn repeated(view: &NodeView) -> Result<Vec<u64>, OnnxError> {
    let mut dims = view.input(0)?.dims.clone();
    for operand in view.inputs.iter().skip(1).flatten() {
        dims = broadcast(&dims, &operand.dims).ok_or_else(|| {
            let shapes: Vec<_> = view.inputs.iter().flatten().map(|value| &value.dims).collect();
            view.error(format!("shapes do not match: {shapes:?}"))
        })?;
    }
    Ok(dims)
}
