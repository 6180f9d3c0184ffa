//! Low-precision numbers, with a scale and a zero point.

use super::{ShapeRule, TensorType};
use crate::element::ElementKind;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "QuantizeLinear" => |view| {
            let written = view.element_attribute("output_dtype")?;
            let zero_point = view.optional(2).map(|zero| zero.element);
            let element = zero_point.or(written).unwrap_or(ElementKind::Uint8);
            Ok(vec![TensorType { element, ..view.like(0)? }])
        },
        "DequantizeLinear" => {
            |view| Ok(vec![TensorType { element: view.input(1)?.element, ..view.like(0)? }])
        }
        _ => return None,
    })
}
