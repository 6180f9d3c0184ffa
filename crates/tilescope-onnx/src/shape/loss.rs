//! Losses of training.

use super::{NodeView, ShapeRule, TensorType};
use crate::error::OnnxError;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "NegativeLogLikelihoodLoss" | "SoftmaxCrossEntropyLoss" => loss,
        _ => return None,
    })
}

/// The loss, of each label or reduced to one number, and the logarithms of the probabilities.
fn loss(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let scores = view.input(0)?;
    let labels = view.input(1)?;
    let mut expected = scores.dims.clone();
    if expected.len() < 2 {
        return Err(view.error(format!("scores of shape {expected:?}")));
    }
    expected.remove(1);
    if labels.dims != expected {
        let problem = format!("labels of shape {:?} for scores of {:?}", labels.dims, scores.dims);
        return Err(view.error(problem));
    }
    let dims = match view.attributes.text("reduction")? {
        Some("none") => labels.dims.clone(),
        _ => Vec::new(),
    };
    Ok(vec![TensorType { element: scores.element, dims }, view.like(0)?])
}
