//! Elements selected by index or condition, and tensors of indices.

use super::{content, index};
use crate::constant::{ConstantData, ConstantTensor};
use crate::shape::{NodeView, TensorType};
use ndarray::{ArrayD, Dimension, IxDyn};

/// The values of an operator of this kind; `None` for others.
pub(super) fn evaluate(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    match view.op {
        "Gather" => gather(view),
        "GatherElements" => gather_elements(view, output),
        "GatherND" => gather_nd(view, output),
        "ScatterND" => scatter_nd(view),
        "Where" => choose(view, output),
        "NonZero" => non_zero(content(view, 0)?),
        "Trilu" => trilu(view),
        "Range" => range(view, output),
        "ConstantOfShape" => constant_of_shape(view, output),
        _ => None,
    }
}

fn gather(view: &NodeView) -> Option<ConstantData> {
    let data = content(view, 0)?;
    let chosen = content(view, 1)?;
    let axis = view.axis(view.int_or("axis", 0).ok()?, data.dims.len()).ok()?;
    // The axes of `chosen` replace the axis, so the order of the elements is the same.
    let rows = chosen.ints()?.into_iter().map(|row| index::from_start(row, data.dims[axis]));
    index::take(&data.data, &index::select(&index::positions(&data.dims)?, axis, rows)?)
}

fn gather_elements(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let data = content(view, 0)?;
    let chosen = content(view, 1)?;
    let axis = view.axis(view.int_or("axis", 0).ok()?, data.dims.len()).ok()?;
    let rows = ArrayD::from_shape_vec(index::shape(&output.dims)?, chosen.ints()?).ok()?;
    let known = index::positions(&data.dims)?;
    let mut positions = Vec::with_capacity(rows.len());
    for (place, row) in rows.indexed_iter() {
        let mut place = place.clone();
        place[axis] = index::from_start(*row, data.dims[axis])?;
        positions.push(*known.get(place)?);
    }
    index::take(&data.data, &positions)
}

/// The positions in a tensor of shape `dims` for each tuple of indices in the last dimension of
/// `chosen`.
fn tuple_positions(dims: &[u64], chosen: &ConstantTensor) -> Option<Vec<usize>> {
    let length = usize::try_from(*chosen.dims.last()?).ok()?;
    if length == 0 || length > dims.len() {
        return None;
    }
    let known = index::positions(dims)?;
    let mut positions = Vec::new();
    for tuple in chosen.ints()?.chunks(length) {
        let mut place = IxDyn::zeros(dims.len());
        for (axis, at) in tuple.iter().enumerate() {
            place[axis] = index::from_start(*at, dims[axis])?;
        }
        positions.push(*known.get(place)?);
    }
    Some(positions)
}

fn gather_nd(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let data = content(view, 0)?;
    let chosen = content(view, 1)?;
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
    let data = content(view, 0)?;
    let chosen = content(view, 1)?;
    let updates = content(view, 2)?;
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
    let condition = content(view, 0)?;
    let yes = content(view, 1)?;
    let no = content(view, 2)?;
    let ConstantData::Bools(conditions) = &condition.data else { return None };
    let find_places = |operand: &ConstantTensor| index::repeated(&operand.dims, &output.dims);
    let values = index::joined(yes.data.clone(), &no.data)?;
    let mut positions = find_places(no)? + yes.len();
    let left = find_places(yes)?;
    for ((position, left), which) in positions.iter_mut().zip(&left).zip(&find_places(condition)?) {
        if *conditions.get(*which)? {
            *position = *left;
        }
    }
    index::take(&values, &positions)
}

/// Indices of all nonzero elements, with a row per dimension.
fn non_zero(data: &ConstantTensor) -> Option<ConstantData> {
    let values = ArrayD::from_shape_vec(index::shape(&data.dims)?, data.floats()).ok()?;
    let found = values.indexed_iter().filter(|(_, value)| **value != 0.0);
    let found: Vec<IxDyn> = found.map(|(place, _)| place).collect();
    let rows = (0..data.dims.len()).flat_map(|axis| found.iter().map(move |place| place[axis]));
    let rows: Option<Vec<i64>> = rows.map(|index| i64::try_from(index).ok()).collect();
    rows.map(ConstantData::Ints)
}

fn trilu(view: &NodeView) -> Option<ConstantData> {
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
    let mut positions = Vec::with_capacity(data.len());
    for (place, position) in index::positions(&data.dims)?.indexed_iter() {
        let [.., row, column] = *place.slice() else { return None };
        let offset = i64::try_from(column).ok()? - i64::try_from(row).ok()?;
        let stays = if is_upper { offset >= diagonal } else { offset <= diagonal };
        positions.push(if stays { *position } else { data.len() });
    }
    let values = index::joined(data.data.clone(), &zero)?;
    index::take(&values, &positions)
}

fn range(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let count = *output.dims.first()?;
    match (&content(view, 0)?.data, &content(view, 2)?.data) {
        (ConstantData::Ints(start), ConstantData::Ints(step)) => {
            let start = *start.first()?;
            let step = *step.first()?;
            (0..count)
                .map(|at| start.checked_add(step.checked_mul(i64::try_from(at).ok()?)?))
                .collect::<Option<_>>()
                .map(ConstantData::Ints)
        }
        (ConstantData::Floats(start), ConstantData::Floats(step)) => {
            let start = *start.first()?;
            let step = *step.first()?;
            #[expect(clippy::cast_precision_loss, reason = "no range has 2^53 elements")]
            Some(ConstantData::Floats((0..count).map(|at| start + step * at as f64).collect()))
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
