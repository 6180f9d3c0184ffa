//! Sums, products and extremes over axes.

use super::{content, index};
use crate::constant::{ConstantData, ConstantTensor};
use crate::shape::{self, NodeView, TensorType};
use ndarray::{ArrayD, Axis};

/// The values of a reduction; `None` for other operators.
pub(super) fn evaluate(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    match view.op {
        "ReduceSum" | "ReduceProd" | "ReduceMax" | "ReduceMin" | "ReduceMean" => {
            reduce(view, output)
        }
        "CumSum" => cumulative_sum(view),
        _ => None,
    }
}

/// For each element of the operand, the element of the output that it contributes to.
fn targets(view: &NodeView, data: &ConstantTensor) -> Option<ArrayD<usize>> {
    let (axes, _) = shape::reduced_axes(view).ok()?;
    let dims: Vec<u64> = data
        .dims
        .iter()
        .enumerate()
        .map(|(axis, dim)| if axes.contains(&axis) { 1 } else { *dim })
        .collect();
    index::repeated(&dims, &data.dims)
}

fn reduce(view: &NodeView, output: &TensorType) -> Option<ConstantData> {
    let data = content(view, 0)?;
    let count = usize::try_from(output.dims.iter().product::<u64>()).ok()?;
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (position, target) in targets(view, data)?.into_iter().enumerate() {
        groups.get_mut(target)?.push(position);
    }
    let groups = groups.iter();
    match &data.data {
        ConstantData::Ints(values) => groups
            .map(|group| {
                let mut chosen = group.iter().map(|position| values[*position]);
                match view.op {
                    "ReduceSum" => chosen.try_fold(0_i64, i64::checked_add),
                    "ReduceProd" => chosen.try_fold(1_i64, i64::checked_mul),
                    "ReduceMax" => chosen.max(),
                    "ReduceMin" => chosen.min(),
                    _ => None,
                }
            })
            .collect::<Option<_>>()
            .map(ConstantData::Ints),
        ConstantData::Floats(values) => {
            let fold_group = |group: &Vec<usize>| {
                let chosen = group.iter().map(|position| values[*position]);
                match view.op {
                    "ReduceSum" => chosen.sum(),
                    "ReduceProd" => chosen.product(),
                    "ReduceMax" => chosen.fold(f64::NEG_INFINITY, f64::max),
                    "ReduceMin" => chosen.fold(f64::INFINITY, f64::min),
                    #[expect(clippy::cast_precision_loss, reason = "at most 2^16 elements")]
                    _ => chosen.sum::<f64>() / group.len() as f64,
                }
            };
            Some(ConstantData::Floats(groups.map(fold_group).collect()))
        }
        ConstantData::Bools(_) => None,
    }
}

/// Cumulative sums of integers along one axis.
fn cumulative_sum(view: &NodeView) -> Option<ConstantData> {
    let data = content(view, 0)?;
    let axis = *content(view, 1)?.ints()?.first()?;
    let axis = view.axis(axis, data.dims.len()).ok()?;
    let get_flag = |name: &str| view.int_or(name, 0).ok().map(|value| value != 0);
    let is_exclusive = get_flag("exclusive")?;
    let is_reversed = get_flag("reverse")?;
    let ConstantData::Ints(values) = &data.data else { return None };
    let mut sums = ArrayD::from_shape_vec(index::shape(&data.dims)?, values.clone()).ok()?;
    for mut lane in sums.lanes_mut(Axis(axis)) {
        if is_reversed {
            lane.invert_axis(Axis(0));
        }
        let mut sum = 0_i64;
        for value in lane {
            let with = sum.checked_add(*value)?;
            *value = if is_exclusive { sum } else { with };
            sum = with;
        }
    }
    Some(ConstantData::Ints(sums.into_iter().collect()))
}
