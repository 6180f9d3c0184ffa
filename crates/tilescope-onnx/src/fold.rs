//! Evaluates small tensors: exporters compute lengths, axes and masks with chains of operators.

mod arithmetic;
mod choice;
mod index;
mod movement;
mod reduce;

use crate::constant::{ConstantData, ConstantTensor};
use crate::element::ElementKind;
use crate::shape::{self, NodeView, TensorType};

/// The maximum number of elements of a tensor that is evaluated.
const MAX_ELEMENTS: u64 = 1 << 16;

/// True if the result of an operator depends only on shapes, not on values.
pub(crate) fn reads_only_shapes(op: &str) -> bool {
    matches!(op, "Shape" | "Size")
}

/// True if an operator without operands gives the same result in every run.
pub(crate) fn makes_constants(op: &str) -> bool {
    op == "Constant"
}

/// True if equal operands give equal results.
pub(crate) fn is_pure(op: &str) -> bool {
    let is_random = matches!(
        op,
        "Bernoulli"
            | "Dropout"
            | "Multinomial"
            | "RandomNormal"
            | "RandomNormalLike"
            | "RandomUniform"
            | "RandomUniformLike"
    );
    !is_random && shape::is_known(op)
}

/// True if an operator of this name may disappear once all sizes are known, because it is folded
/// from shapes and constants or decided by them.
#[must_use]
pub fn is_foldable(op: &str) -> bool {
    matches!(op, "Constant" | "If") || is_pure(op)
}

/// Contents of a node's outputs, of at most `left` elements together. `None` if an operand's
/// content is not known, or no code here evaluates the operator. The outputs are constants
/// nevertheless, with known shapes only.
pub(crate) fn evaluate(
    view: &NodeView,
    types: &[TensorType],
    left: u64,
) -> Option<Vec<Option<ConstantTensor>>> {
    let sizes = types.iter().map(|kind| {
        let elements = kind.dims.iter().try_fold(1_u64, |all, dim| all.checked_mul(*dim));
        elements.filter(|elements| *elements <= MAX_ELEMENTS)
    });
    if sizes.sum::<Option<u64>>().is_none_or(|elements| elements > left) {
        return None;
    }
    let data = match view.op {
        "Shape" | "Size" => vec![shape_values(view)?],
        "Constant" => vec![constant(view)?],
        "Split" => movement::split(view, types)?,
        _ => vec![single(view, types.first()?)?],
    };
    Some(
        data.into_iter()
            .zip(types)
            .map(|(data, kind)| {
                let tensor =
                    ConstantTensor { dims: kind.dims.clone(), data: of_type(data, kind.element)? };
                // If a rule and its evaluation disagree, the content is dropped rather than wrong.
                if tensor.len() as u64 == kind.dims.iter().product::<u64>() {
                    Some(tensor)
                } else {
                    None
                }
            })
            .collect(),
    )
}

fn single(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    arithmetic::evaluate(view, output)
        .or_else(|| movement::evaluate(view, output))
        .or_else(|| choice::evaluate(view, output))
        .or_else(|| reduce::evaluate(view, output))
}

/// The known content of an operand.
fn content<'a>(view: &NodeView<'a>, at: usize) -> Option<&'a ConstantTensor> {
    view.optional(at)?.content.as_deref()
}

fn shape_values(view: &NodeView) -> Option<ConstantData> {
    let data = view.optional(0)?;
    if view.op == "Size" {
        return Some(ConstantData::Ints(vec![i64::try_from(data.elements()).ok()?]));
    }
    let dims = data.dims.get(shape::shape_bounds(view).ok()?)?;
    dims.iter().map(|dim| i64::try_from(*dim).ok()).collect::<Option<_>>().map(ConstantData::Ints)
}

fn constant(view: &NodeView) -> Option<ConstantData> {
    let attributes = view.attributes;
    if let Some(tensor) = attributes.tensor("value").ok()? {
        return Some(tensor.data.clone());
    }
    if let Some(value) = attributes.int("value_int").ok()? {
        return Some(ConstantData::Ints(vec![value]));
    }
    if let Some(values) = attributes.ints("value_ints").ok()? {
        return Some(ConstantData::Ints(values.to_vec()));
    }
    if let Some(value) = attributes.float("value_float").ok()? {
        return Some(ConstantData::Floats(vec![value]));
    }
    Some(ConstantData::Floats(attributes.floats("value_floats").ok()??.to_vec()))
}

/// Values converted to this type: integers wrap, floats are rounded.
fn of_type(data: ConstantData, element: ElementKind) -> Option<ConstantData> {
    Some(match data {
        ConstantData::Ints(values) if element.is_integer() => {
            ConstantData::Ints(values.into_iter().map(|value| wrapped(value, element)).collect())
        }
        ConstantData::Floats(values) if element == ElementKind::Float32 =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "what a 32-bit float holds")]
            ConstantData::Floats(values.into_iter().map(|value| (value as f32).into()).collect())
        }
        ConstantData::Floats(values) if element.is_float() => ConstantData::Floats(values),
        ConstantData::Bools(values) if element == ElementKind::Bool => ConstantData::Bools(values),
        _ => return None,
    })
}

/// An integer wrapped to its type.
#[expect(clippy::cast_possible_truncation, reason = "wrapping is what these types do")]
#[expect(clippy::cast_sign_loss, reason = "as above")]
fn wrapped(value: i64, element: ElementKind) -> i64 {
    match element {
        ElementKind::Int8 => (value as i8).into(),
        ElementKind::Uint8 => (value as u8).into(),
        ElementKind::Int16 => (value as i16).into(),
        ElementKind::Uint16 => (value as u16).into(),
        ElementKind::Int32 => (value as i32).into(),
        ElementKind::Uint32 => (value as u32).into(),
        _ => value,
    }
}
