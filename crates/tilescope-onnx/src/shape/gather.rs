//! Elements selected by index, and their number.

use super::{NodeView, ShapeRule, TensorType};
use crate::constant::ConstantData;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::OnnxValue;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "Gather" => gather,
        "GatherElements" => gather_elements,
        "GatherND" => gather_nd,
        "OneHot" => one_hot,
        "Compress" => compress,
        "NonZero" => non_zero,
        "NonMaxSuppression" | "Unique" => |view| Err(depends_on_data(view, view.input(0)?)),
        _ => return None,
    })
}

/// True if the number of results of an operator depends on its operands' values.
pub(crate) fn counts_results(op: &str) -> bool {
    matches!(op, "Compress" | "NonMaxSuppression" | "NonZero" | "Unique")
}

/// The key that gives operators of this family their number of results.
pub(crate) const MOST_KEY: &str = "model.max_results";

/// The error for a node whose shape depends on data: programs have fixed shapes, so the user must
/// give the number of results.
fn depends_on_data(view: &NodeView, data: &OnnxValue) -> OnnxError {
    view.error(format!(
        "the shape of its output depends on the values of {:?}, which are computed at run time. \
         Programs have fixed shapes: set {MOST_KEY} to the largest number of results, or export the \
         model with masks instead",
        data.name
    ))
}

fn gather(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let indices = view.input(1)?;
    let axis = view.axis(view.int_or("axis", 0)?, data.dims.len())?;
    let before = &data.dims[..axis];
    let after = &data.dims[axis + 1..];
    let dims = [before, &indices.dims, after].concat();
    Ok(vec![TensorType { element: data.element, dims }])
}

fn gather_elements(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let indices = view.input(1)?;
    if data.dims.len() != indices.dims.len() {
        let problem = format!("indices of {:?} into {:?}", indices.dims, data.dims);
        return Err(view.error(problem));
    }
    Ok(vec![TensorType { element: data.element, dims: indices.dims.clone() }])
}

fn gather_nd(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let indices = view.input(1)?;
    let batch = usize::try_from(view.int_or("batch_dims", 0)?).unwrap_or(usize::MAX);
    let to_error = || view.error(format!("indices of {:?} into {:?}", indices.dims, data.dims));
    let (length, before) = indices.dims.split_last().ok_or_else(to_error)?;
    let length = usize::try_from(*length).unwrap_or(usize::MAX);
    let after = batch.checked_add(length).and_then(|start| data.dims.get(start..));
    if before.len() < batch {
        return Err(to_error());
    }
    let dims = [before, after.ok_or_else(to_error)?].concat();
    Ok(vec![TensorType { element: data.element, dims }])
}

fn one_hot(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let mut dims = view.input(0)?.dims.clone();
    let axis = view.axis(view.int_or("axis", -1)?, dims.len() + 1)?;
    let depth = view
        .known_floats(1)?
        .and_then(|depth| depth.first().copied())
        .ok_or_else(|| view.error("its depth is missing"))?;
    if !(1.0..=1e9).contains(&depth) {
        return Err(view.error(format!("its depth is {depth}")));
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    dims.insert(axis, view.size(depth as i128)?);
    Ok(vec![TensorType { element: view.input(2)?.element, dims }])
}

fn compress(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let chosen = view.known_ints(1)?.unwrap_or_default();
    let count = chosen.iter().filter(|chosen| **chosen != 0).count() as u64;
    let dims = match view.attributes.int("axis")? {
        Some(axis) => {
            let mut dims = data.dims.clone();
            dims[view.axis(axis, data.dims.len())?] = count;
            dims
        }
        None => vec![count],
    };
    Ok(vec![TensorType { element: data.element, dims }])
}

fn non_zero(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let Some(content) = &data.content else {
        return Err(depends_on_data(view, data));
    };
    let count = match &content.data {
        ConstantData::Ints(values) => values.iter().filter(|value| **value != 0).count(),
        ConstantData::Bools(values) => values.iter().filter(|value| **value).count(),
        ConstantData::Floats(values) => values.iter().filter(|value| **value != 0.0).count(),
    };
    let dims = vec![data.dims.len() as u64, count as u64];
    Ok(vec![TensorType { element: ElementKind::Int64, dims }])
}
