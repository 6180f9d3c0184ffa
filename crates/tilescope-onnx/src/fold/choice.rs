//! Elements chosen by index or condition, and tensors made of indices.

use super::{content, index};
use crate::constant::{ConstantData, ConstantTensor};
use crate::shape::{NodeView, TensorType};

/// The values of an operator of this kind; none if it is none.
pub(super) fn evaluate(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    match view.op {
        "Gather" => gather(view, output),
        "GatherElements" => gather_elements(view, output),
        "GatherND" => gather_nd(view, output),
        "ScatterND" => scatter_nd(view),
        "Where" => choose(view, output),
        "NonZero" => non_zero(content(view, 0)?),
        "Trilu" => trilu(view, output),
        "Range" => range(view, output),
        "ConstantOfShape" => constant_of_shape(view, output),
        _ => None,
    }
}

fn gather(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let (data, chosen) = (content(view, 0)?, content(view, 1)?);
    let axis = view.axis(view.int_or("axis", 0).ok()?, data.dims.len()).ok()?;
    let rows = chosen.ints()?;
    let (strides, chosen_strides) = (index::strides(&data.dims), index::strides(&chosen.dims));
    let after = axis + chosen.dims.len();
    let positions = index::each(&output.dims, |indices| {
        let before = indices[..axis].iter().zip(&strides).map(|(index, stride)| index * stride);
        let behind = indices[after..].iter().zip(&strides[axis + 1..]);
        let behind = behind.map(|(index, stride)| index * stride);
        let which = indices[axis..after].iter().zip(&chosen_strides);
        let which = which.map(|(index, stride)| index * stride).sum::<usize>();
        let row = index::from_start(*rows.get(which)?, data.dims[axis])?;
        Some(before.sum::<usize>() + row * strides[axis] + behind.sum::<usize>())
    });
    index::take(&data.data, &positions.into_iter().collect::<Option<Vec<_>>>()?)
}

fn gather_elements(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let (data, chosen) = (content(view, 0)?, content(view, 1)?);
    let axis = view.axis(view.int_or("axis", 0).ok()?, data.dims.len()).ok()?;
    let (rows, strides) = (chosen.ints()?, index::strides(&data.dims));
    let mut rows = rows.iter();
    let positions = index::each(&output.dims, |indices| {
        let row = index::from_start(*rows.next()?, data.dims[axis])?;
        let places = indices.iter().enumerate().zip(&strides);
        let place = |((at, index), stride)| if at == axis { row * stride } else { index * stride };
        Some(places.map(place).sum::<usize>())
    });
    index::take(&data.data, &positions.into_iter().collect::<Option<Vec<_>>>()?)
}

/// Where each tuple of indices of the last dimension of `chosen` points to in a tensor of shape
/// `dims`.
fn tuple_positions(dims: &[u64], chosen: &ConstantTensor) -> Option<Vec<usize>> {
    let length = usize::try_from(*chosen.dims.last()?).ok()?;
    let (values, strides) = (chosen.ints()?, index::strides(dims));
    if length == 0 || length > dims.len() {
        return None;
    }
    let place = |tuple: &[i64]| {
        let places = tuple.iter().zip(dims).zip(&strides);
        places.map(|((at, dim), stride)| Some(index::from_start(*at, *dim)? * stride)).sum()
    };
    values.chunks(length).map(place).collect()
}

fn gather_nd(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let (data, chosen) = (content(view, 0)?, content(view, 1)?);
    if view.int_or("batch_dims", 0).ok()? != 0 {
        return None;
    }
    let starts = tuple_positions(&data.dims, chosen)?;
    let total = usize::try_from(output.dims.iter().product::<u64>()).ok()?;
    let length = total.checked_div(starts.len())?;
    let positions: Vec<usize> =
        starts.iter().flat_map(|start| (0..length).map(move |at| start + at)).collect();
    index::take(&data.data, &positions)
}

fn scatter_nd(view: &NodeView) -> Option<ConstantData> {
    let (data, chosen, updates) = (content(view, 0)?, content(view, 1)?, content(view, 2)?);
    if !matches!(view.attributes.text("reduction").ok()?, None | Some("none")) {
        return None;
    }
    let starts = tuple_positions(&data.dims, chosen)?;
    let length = updates.len().checked_div(starts.len())?;
    let values = index::joined(data.data.clone(), &updates.data)?;
    let mut positions: Vec<usize> = (0..data.len()).collect();
    for (tuple, start) in starts.iter().enumerate() {
        for at in 0..length {
            *positions.get_mut(start + at)? = data.len() + tuple * length + at;
        }
    }
    index::take(&values, &positions)
}

fn choose(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let (condition, yes, no) = (content(view, 0)?, content(view, 1)?, content(view, 2)?);
    let ConstantData::Bools(conditions) = &condition.data else { return None };
    let places = |operand: &ConstantTensor| index::repeated(&operand.dims, &output.dims);
    let values = index::joined(yes.data.clone(), &no.data)?;
    let (which, yes_places, no_places) = (places(condition), places(yes), places(no));
    let sides = yes_places.iter().zip(&no_places);
    let positions = which.iter().zip(sides).map(|(which, (left, right))| {
        Some(if *conditions.get(*which)? { *left } else { yes.len() + right })
    });
    index::take(&values, &positions.collect::<Option<Vec<_>>>()?)
}

/// Indices of all elements that are not zero, a row per dimension.
fn non_zero(data: &ConstantTensor) -> Option<ConstantData> {
    let values = data.floats();
    let mut values = values.iter();
    let found = index::each(&data.dims, |indices| {
        values.next().filter(|value| **value != 0.0).map(|_| indices.to_vec())
    });
    let found: Vec<Vec<usize>> = found.into_iter().flatten().collect();
    let rows = (0..data.dims.len()).flat_map(|axis| found.iter().map(move |indices| indices[axis]));
    let rows: Option<Vec<i64>> = rows.map(|index| i64::try_from(index).ok()).collect();
    rows.map(ConstantData::Ints)
}

fn trilu(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let data = content(view, 0)?;
    let is_upper = view.int_or("upper", 1).ok()? != 0;
    let diagonal = match view.optional(1) {
        Some(_) => *content(view, 1)?.ints()?.first()?,
        None => 0,
    };
    let zero = match &data.data {
        ConstantData::Ints(_) => ConstantData::Ints(vec![0]),
        ConstantData::Bools(_) => ConstantData::Bools(vec![false]),
        ConstantData::Floats(_) => ConstantData::Floats(vec![0.0]),
    };
    let mut position = 0..data.len();
    let positions = index::each(&output.dims, |indices| {
        let position = position.next()?;
        let [.., row, column] = *indices else { return None };
        let offset = i64::try_from(column).ok()? - i64::try_from(row).ok()?;
        let stays = if is_upper { offset >= diagonal } else { offset <= diagonal };
        Some(if stays { position } else { data.len() })
    });
    let values = index::joined(data.data.clone(), &zero)?;
    index::take(&values, &positions.into_iter().collect::<Option<Vec<_>>>()?)
}

fn range(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let count = *output.dims.first()?;
    match (&content(view, 0)?.data, &content(view, 2)?.data) {
        (ConstantData::Ints(start), ConstantData::Ints(step)) => {
            let (start, step) = (*start.first()?, *step.first()?);
            let value = |at: u64| start.checked_add(step.checked_mul(i64::try_from(at).ok()?)?);
            (0..count).map(value).collect::<Option<_>>().map(ConstantData::Ints)
        }
        (ConstantData::Floats(start), ConstantData::Floats(step)) => {
            let (start, step) = (*start.first()?, *step.first()?);
            #[expect(clippy::cast_precision_loss, reason = "no range has 2^53 elements")]
            let value = |at: u64| start + step * at as f64;
            Some(ConstantData::Floats((0..count).map(value).collect()))
        }
        _ => None,
    }
}

fn constant_of_shape(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let count = usize::try_from(output.dims.iter().product::<u64>()).ok()?;
    let value = match view.attributes.get("value") {
        Some(_) => view.attributes.tensor("value").ok()??.data.clone(),
        None => ConstantData::Floats(vec![0.0]),
    };
    index::take(&value, &vec![0; count])
}
