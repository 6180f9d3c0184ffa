//! Normalisations of batches, layers and groups.

use super::{NodeView, ShapeRule, TensorType};
use crate::element::ElementKind;
use crate::error::OnnxError;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "BatchNormalization" => batch_normalization,
        "LayerNormalization" => layer_normalization,
        "GroupNormalization"
        | "InstanceNormalization"
        | "LpNormalization"
        | "LRN"
        | "MeanVarianceNormalization"
        | "RMSNormalization"
        | "SimplifiedLayerNormalization" => |view| Ok(vec![view.like(0)?]),
        _ => return None,
    })
}

/// The output, and statistics per channel: running ones from version 14 on, before that also saved
/// ones.
fn batch_normalization(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let statistics = view.like(3)?;
    let channels = view.input(0)?.dims.get(1).copied().unwrap_or(1);
    for at in 1..=4 {
        let dims = &view.input(at)?.dims;
        if *dims != [channels] {
            return Err(view.error(format!("its input {at} is {dims:?}, for {channels} channels")));
        }
    }
    let mut types = vec![view.like(0)?];
    types.extend(std::iter::repeat_n(statistics, 4));
    Ok(types)
}

/// The output, and mean and reciprocal deviation over all axes from `axis` on.
fn layer_normalization(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let output = view.like(0)?;
    let axis = view.axis(view.int_or("axis", -1)?, output.dims.len())?;
    let kept = output.dims.iter().enumerate();
    let dims = kept.map(|(at, dim)| if at < axis { *dim } else { 1 }).collect();
    let element = view.element_attribute("stash_type")?.unwrap_or(ElementKind::Float32);
    let statistics = TensorType { element, dims };
    Ok(vec![output, statistics.clone(), statistics])
}
