//! Tensors made of shapes, ranges, constants and random numbers.

use super::{NodeView, ShapeRule, TensorType};
use crate::attributes::AttributeValue;
use crate::element::ElementKind;
use crate::error::OnnxError;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "Constant" => constant,
        "ConstantOfShape" => constant_of_shape,
        "Shape" => shape,
        "Size" => |view| {
            view.input(0)?;
            Ok(vec![TensorType { element: ElementKind::Int64, dims: Vec::new() }])
        },
        "Range" => range,
        "EyeLike" | "RandomNormalLike" | "RandomUniformLike" | "Bernoulli" => |view| {
            let like = view.like(0)?;
            let element = view.element_attribute("dtype")?.unwrap_or(like.element);
            Ok(vec![TensorType { element, ..like }])
        },
        "RandomNormal" | "RandomUniform" => random,
        "Multinomial" => multinomial,
        "BlackmanWindow" | "HammingWindow" | "HannWindow" => window,
        _ => return None,
    })
}

fn one_output(element: ElementKind, dims: Vec<u64>) -> Result<Vec<TensorType>, OnnxError> {
    Ok(vec![TensorType { element, dims }])
}

fn constant(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let attributes = view.attributes;
    if let Some(AttributeValue::Tensor { element, dims, .. }) = attributes.get("value") {
        return one_output(*element, dims.clone());
    }
    if attributes.float("value_float")?.is_some() {
        return one_output(ElementKind::Float32, Vec::new());
    }
    if attributes.int("value_int")?.is_some() {
        return one_output(ElementKind::Int64, Vec::new());
    }
    if let Some(values) = attributes.floats("value_floats")? {
        return one_output(ElementKind::Float32, vec![values.len() as u64]);
    }
    if let Some(values) = attributes.ints("value_ints")? {
        return one_output(ElementKind::Int64, vec![values.len() as u64]);
    }
    if attributes.text("value_string")?.is_some() {
        return one_output(ElementKind::Text, Vec::new());
    }
    if let Some(values) = attributes.texts("value_strings")? {
        return one_output(ElementKind::Text, vec![values.len() as u64]);
    }
    Err(view.error("it has no readable value"))
}

fn constant_of_shape(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let sizes = view.known_ints(0)?.unwrap_or_default();
    let dims = sizes.iter().map(|size| view.size((*size).into())).collect::<Result<_, _>>()?;
    let element = match view.attributes.get("value") {
        Some(AttributeValue::Tensor { element, .. }) => *element,
        _ => ElementKind::Float32,
    };
    Ok(vec![TensorType { element, dims }])
}

/// The range of dimensions that `Shape` returns: all, or from version 15 on a part of them.
pub(crate) fn shape_bounds(view: &NodeView) -> Result<std::ops::Range<usize>, OnnxError> {
    let rank = view.input(0)?.dims.len();
    let signed = i64::try_from(rank).unwrap_or(i64::MAX);
    let clamp_index = |index: i64| {
        let index = if index < 0 { index.saturating_add(signed) } else { index };
        usize::try_from(index.clamp(0, signed)).unwrap_or(rank)
    };
    let start = clamp_index(view.int_or("start", 0)?);
    let end = view.attributes.int("end")?.map_or(rank, clamp_index);
    Ok(start..end.max(start))
}

fn shape(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let count = shape_bounds(view)?.len() as u64;
    Ok(vec![TensorType { element: ElementKind::Int64, dims: vec![count] }])
}

fn range(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let get_number = |at: usize| -> Result<f64, OnnxError> {
        let to_error = || view.error(format!("its input {at} is missing"));
        let values = view.known_floats(at)?.ok_or_else(to_error)?;
        values.first().copied().ok_or_else(to_error)
    };
    let start = get_number(0)?;
    let limit = get_number(1)?;
    let step = get_number(2)?;
    let count = ((limit - start) / step).ceil().max(0.0);
    if !count.is_finite() || count > 1e12 {
        return Err(view.error(format!("a range from {start} to {limit} in steps of {step}")));
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    let count = view.size(count as i128)?;
    Ok(vec![TensorType { element: view.input(0)?.element, dims: vec![count] }])
}

fn random(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let sizes = view.attributes.ints("shape")?.unwrap_or_default();
    let dims = sizes.iter().map(|size| view.size((*size).into())).collect::<Result<_, _>>()?;
    let element = view.element_attribute("dtype")?.unwrap_or(ElementKind::Float32);
    Ok(vec![TensorType { element, dims }])
}

fn multinomial(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let batch = view.input(0)?.dims.first().copied().unwrap_or(1);
    let samples = view.size(view.int_or("sample_size", 1)?.into())?;
    let element = view.element_attribute("dtype")?.unwrap_or(ElementKind::Int32);
    Ok(vec![TensorType { element, dims: vec![batch, samples] }])
}

fn window(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let size = view.known_ints(0)?.and_then(|size| size.first().copied()).unwrap_or(0);
    let element = view.element_attribute("output_datatype")?.unwrap_or(ElementKind::Float32);
    Ok(vec![TensorType { element, dims: vec![view.size(size.into())?] }])
}
