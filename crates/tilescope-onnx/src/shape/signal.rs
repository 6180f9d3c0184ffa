//! Fourier transforms.

use super::{NodeView, ShapeRule, TensorType};
use crate::error::OnnxError;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "DFT" => dft,
        "STFT" => stft,
        _ => return None,
    })
}

/// The axis was an attribute before version 20. The last dimension is that of real and imaginary
/// part.
fn dft(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let mut kind = view.like(0)?;
    let rank = kind.dims.len();
    let axis = match view.opset {
        ..20 => view.int_or("axis", 1)?,
        _ => view.known_ints(2)?.and_then(|axes| axes.first().copied()).unwrap_or(-2),
    };
    let axis = view.axis(axis, rank)?;
    if axis + 1 >= rank {
        return Err(view.error(format!("axis {axis} of {:?} is that of the parts", kind.dims)));
    }
    if let Some(length) = view.known_ints(1)?.and_then(|lengths| lengths.first().copied()) {
        kind.dims[axis] = view.size(length.into())?;
    }
    let one_sided = view.int_or("onesided", 0)? != 0;
    let inverse = view.int_or("inverse", 0)? != 0;
    if one_sided && !inverse {
        kind.dims[axis] = kind.dims[axis] / 2 + 1;
    }
    // Of half a spectrum comes a real signal.
    kind.dims[rank - 1] = if one_sided && inverse { 1 } else { 2 };
    Ok(vec![kind])
}

/// `[batch, frames, bins, 2]` of `[batch, length, parts]`.
fn stft(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let mut kind = view.like(0)?;
    let missing = |what: &str| view.error(format!("it does not say {what}"));
    let number = |input: usize| -> Result<Option<i64>, OnnxError> {
        Ok(view.known_ints(input)?.and_then(|numbers| numbers.first().copied()))
    };
    let step = number(1)?.and_then(|step| u64::try_from(step).ok()).filter(|step| *step > 0);
    let step = step.ok_or_else(|| missing("how far frames are apart"))?;
    let window = view.optional(2).and_then(|window| window.dims.first().copied());
    let frame = match number(3)? {
        Some(length) => view.size(length.into())?,
        None => window.ok_or_else(|| missing("how long a frame is"))?,
    };
    let [batch, length, ..] = kind.dims[..] else {
        return Err(view.error(format!("{:?} are no signals", kind.dims)));
    };
    let last = length.checked_sub(frame).ok_or_else(|| {
        view.error(format!("a frame of {frame} is longer than a signal of {length}"))
    })?;
    let one_sided = view.int_or("onesided", 1)? != 0;
    let bins = if one_sided { frame / 2 + 1 } else { frame };
    kind.dims = vec![batch, last / step + 1, bins, 2];
    Ok(vec![kind])
}
