//! Results whose number depends on data, with the maximum given by the user; and `Einsum` equations
//! that leave axes unnamed.

use super::{Compose, Composed, NodeComposition, only, signed};
use crate::attributes::AttributeValue;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::ValueId;
use crate::shape::EinsumLabels;

pub(super) const OPS: &[(&str, Compose)] = &[
    ("Compress", compress),
    ("Einsum", einsum),
    ("NonMaxSuppression", suppressed),
    ("NonZero", non_zero),
    ("Unique", unique),
];

/// Positions of at most the given number of nonzero elements: the largest of truth values, whose
/// index is divided into one index per axis.
fn non_zero(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let Some(most) = of.resolver.max_results().filter(|_| of.value(x).content.is_none()) else {
        return Ok(None);
    };
    let dims = of.dims(x);
    let count: u64 = dims.iter().product();
    let flags = of.cast("flags", x, ElementKind::Bool)?;
    let flags = of.cast("values", flags, ElementKind::Float32)?;
    let flat = of.reshape("flat", flags, &[count])?;
    let k = of.ints(signed(&[most.min(count)]))?;
    let found = of.nodes("largest", "TopK", &[Some(flat), Some(k)], &[], 2)?;
    let mut rest = of.cast("places", found[1], ElementKind::Int32)?;
    let mut rows = Vec::new();
    for (axis, size) in dims.iter().enumerate().rev() {
        let row = if axis == 0 {
            rest
        } else {
            #[expect(clippy::cast_precision_loss, reason = "no axis has 2^53 elements")]
            let size = of.number(ElementKind::Int32, *size as f64)?;
            let row = of.node(&format!("axis/{axis}"), "Mod", &[rest, size], &[])?;
            rest = of.node(&format!("axis/{axis}/rest"), "Div", &[rest, size], &[])?;
            row
        };
        let row = of.cast(&format!("axis/{axis}/type"), row, ElementKind::Int64)?;
        rows.insert(0, of.unsqueeze(&format!("axis/{axis}/row"), row, &[0])?);
    }
    let y = of.concat("rows", &rows, 0)?;
    only(y)
}

/// The first of the true elements of a list, at most `most`: their indices.
fn true_places(
    of: &mut NodeComposition,
    part: &str,
    flags: ValueId,
    most: u64,
) -> Result<ValueId, OnnxError> {
    let flags = of.cast(&format!("{part}/values"), flags, ElementKind::Float32)?;
    let k = of.ints(signed(&[most]))?;
    let found = of.nodes(part, "TopK", &[Some(flags), Some(k)], &[], 2)?;
    Ok(found[1])
}

/// Slices of an axis, or elements of the flattened tensor, that a condition chooses: known ones, or
/// at most the given number.
fn compress(of: &mut NodeComposition) -> Composed {
    let mut x = of.input(0)?;
    let condition = of.input(1)?;
    let axis = match of.attributes.int("axis")? {
        Some(axis) => of.axis(axis, of.dims(x).len())?,
        None => {
            let count = of.dims(x).iter().product();
            x = of.reshape("flat", x, &[count])?;
            0
        }
    };
    let places = match (of.known_ints(condition), of.resolver.max_results()) {
        (Some(chosen), _) => {
            let mut places = Vec::new();
            for (place, chosen) in (0..).zip(chosen) {
                if chosen != 0 {
                    places.push(place);
                }
            }
            of.ints(places)?
        }
        (None, Some(most)) => {
            // The condition may be shorter than the axis.
            let most = most.min(of.dims(condition).iter().product());
            true_places(of, "chosen", condition, most)?
        }
        (None, None) => return Ok(None),
    };
    let axis = i64::try_from(axis).unwrap_or(0);
    let y = of.node("rows", "Gather", &[x, places], &[("axis", AttributeValue::Int(axis))])?;
    only(y)
}

/// The longest slices that `Unique` compares: each element takes one more sort.
const LONGEST_SLICE: u64 = 256;

/// At most the given number of different elements of a tensor, or slices of an axis: the first of
/// each run of equal ones once all are sorted.
fn unique(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let Some(most) = of.resolver.max_results().filter(|_| of.value(x).content.is_none()) else {
        return Ok(None);
    };
    let dims = of.dims(x);
    let axis = match of.attributes.int("axis")? {
        Some(axis) => Some(of.axis(axis, dims.len())?),
        None => None,
    };
    let all: u64 = dims.iter().product();
    let count = axis.map_or(all, |axis| dims[axis]);
    if all == 0 {
        return Ok(None);
    }
    let length = all / count;
    if length > LONGEST_SLICE {
        return Err(of.error(format!(
            "its slices have {length} elements; slices of up to {LONGEST_SLICE} are compared"
        )));
    }
    let mut order: Vec<usize> = (0..dims.len()).collect();
    if let Some(axis) = axis {
        order[..=axis].rotate_right(1);
    }
    let front = if axis.is_some_and(|axis| axis > 0) {
        of.transpose("front", x, &axes(&order))?
    } else {
        x
    };
    let sorted = sorted_slices(of, front, [count, length])?;
    let before = of.slice("before", sorted[0], 0, [0, count - 1])?;
    let behind = of.slice("behind", sorted[0], 0, [1, count])?;
    let mut equal = of.node("equal", "Equal", &[before, behind], &[])?;
    if length > 1 {
        let elements = of.cast("equal/values", equal, ElementKind::Float32)?;
        let axis = of.ints(vec![1])?;
        let keep = [("keepdims", AttributeValue::Int(0))];
        let slices = of.node("equal/slices", "ReduceMin", &[elements, axis], &keep)?;
        equal = of.cast("equal/type", slices, ElementKind::Bool)?;
    }
    let differ = of.node("differ", "Not", &[equal], &[])?;
    let differ = of.cast("differ/values", differ, ElementKind::Float32)?;
    let one = of.number(ElementKind::Float32, 1.0)?;
    let one = of.reshape("first", one, &[1])?;
    let flags = of.concat("flags", &[one, differ], 0)?;
    let most = most.min(count);
    let places = true_places(of, "runs", flags, most)?;
    let mut y = of.node("values", "Gather", &[sorted[0], places], &[])?;
    if axis.is_some() {
        let mut shape: Vec<u64> = order.iter().map(|axis| dims[*axis]).collect();
        shape[0] = most;
        y = of.reshape("slices", y, &shape)?;
    }
    if let Some(axis) = axis.filter(|axis| *axis > 0) {
        let mut back: Vec<usize> = (0..dims.len()).collect();
        back[..=axis].rotate_left(1);
        y = of.transpose("back", y, &axes(&back))?;
    }
    let mut made = vec![Some(y)];
    if of.outputs > 1 {
        made.push(Some(of.node("indices", "Gather", &[sorted[1], places], &[])?));
    }
    if of.outputs > 2 {
        // Each element belongs to the run that began last.
        let axis = of.ints(vec![0])?;
        let axis = of.reshape("runs/axis", axis, &[])?;
        let number = of.node("runs/number", "CumSum", &[flags, axis], &[])?;
        let one = of.number(ElementKind::Float32, 1.0)?;
        let number = of.node("runs/from_zero", "Sub", &[number, one], &[])?;
        let number = of.cast("runs/type", number, ElementKind::Int64)?;
        let inverse = of.node("inverse", "ScatterElements", &[number, sorted[1], number], &[])?;
        made.push(Some(inverse));
    }
    if of.outputs > 3 {
        let end = of.ints(signed(&[count]))?;
        let behind = of.slice("runs/behind", places, 0, [1, most])?;
        let ends = of.concat("runs/ends", &[behind, end], 0)?;
        made.push(Some(of.node("counts", "Sub", &[ends, places], &[])?));
    }
    Ok(Some(made))
}

/// The slices of the first axis in ascending order, and their positions before. Sorts by each
/// element, the last one first; equal ones keep their order.
fn sorted_slices(
    of: &mut NodeComposition,
    x: ValueId,
    [count, length]: [u64; 2],
) -> Result<[ValueId; 2], OnnxError> {
    let k = of.ints(signed(&[count]))?;
    let rising = [("largest", AttributeValue::Int(0))];
    if length == 1 {
        let flat = of.reshape("flat", x, &[count])?;
        let sorted = of.nodes("sorted", "TopK", &[Some(flat), Some(k)], &rising, 2)?;
        return Ok([sorted[0], sorted[1]]);
    }
    let rows = of.reshape("rows", x, &[count, length])?;
    let mut places: Option<ValueId> = None;
    for at in (0..length).rev() {
        let part = format!("sorted/{at}");
        let column = of.slice(&format!("{part}/column"), rows, 1, [at, at + 1])?;
        let mut keys = of.reshape(&format!("{part}/flat"), column, &[count])?;
        if let Some(places) = places {
            keys = of.node(&format!("{part}/keys"), "Gather", &[keys, places], &[])?;
        }
        let sorted = of.nodes(&part, "TopK", &[Some(keys), Some(k)], &rising, 2)?;
        places = Some(match places {
            Some(places) => {
                of.node(&format!("{part}/places"), "Gather", &[places, sorted[1]], &[])?
            }
            None => sorted[1],
        });
    }
    let places = places.ok_or_else(|| of.error("its slices have no elements"))?;
    let sorted = of.node("sorted", "Gather", &[rows, places], &[])?;
    Ok([sorted, places])
}

/// Axes as a permutation.
fn axes(order: &[usize]) -> Vec<i64> {
    order.iter().map(|axis| i64::try_from(*axis).unwrap_or(i64::MAX)).collect()
}

/// At most the given number of boxes of each class that do not overlap a better one: the best by
/// score, comparing all pairs at once. A serial program would not drop a box because of one that is
/// itself dropped.
fn suppressed(of: &mut NodeComposition) -> Composed {
    let Some(most) = of.resolver.max_results() else { return Ok(None) };
    let boxes = of.input(0)?;
    let scores = of.input(1)?;
    let shape = of.dims(boxes);
    let of_scores = of.dims(scores);
    let ([batch, count, 4], [_, classes, _]) = (&shape[..], &of_scores[..]) else {
        return Err(
            of.error(format!("boxes of shape {shape:?} do not fit scores of shape {of_scores:?}"))
        );
    };
    let batch = *batch;
    let classes = *classes;
    let groups = batch * classes;
    let each = most.div_ceil(groups.max(1)).min(*count);
    let k = of.ints(signed(&[each]))?;
    let best = of.nodes("best", "TopK", &[Some(scores), Some(k)], &[], 2)?;
    let places = of.reshape("places", best[1], &[batch, classes * each, 1])?;
    let wide = of.expand("places/box", places, &[batch, classes * each, 4])?;
    let axis = [("axis", AttributeValue::Int(1))];
    let chosen = of.node("boxes", "GatherElements", &[boxes, wide], &axis)?;
    let chosen = of.reshape("boxes/group", chosen, &[groups, each, 4])?;
    let sides = of.split("sides", chosen, 2, &[1; 4])?;
    let mut overlap: Option<ValueId> = None;
    let mut area: Option<ValueId> = None;
    for (part, [low, high]) in [("y", [sides[0], sides[2]]), ("x", [sides[1], sides[3]])] {
        let add_transposed = |of: &mut NodeComposition, name: &str, x: ValueId| {
            of.transpose(&format!("{part}/{name}/turn"), x, &[0, 2, 1])
        };
        let low_across = add_transposed(of, "low", low)?;
        let high_across = add_transposed(of, "high", high)?;
        let from = of.node(&format!("{part}/from"), "Max", &[low, low_across], &[])?;
        let to = of.node(&format!("{part}/to"), "Min", &[high, high_across], &[])?;
        let length = of.node(&format!("{part}/length"), "Sub", &[to, from], &[])?;
        let length = of.node(&format!("{part}/inside"), "Relu", &[length], &[])?;
        let side = of.node(&format!("{part}/side"), "Sub", &[high, low], &[])?;
        overlap = Some(product(of, &format!("{part}/overlap"), overlap, length)?);
        area = Some(product(of, &format!("{part}/area"), area, side)?);
    }
    let Some(overlap) = overlap else { return Ok(None) };
    let Some(area) = area else { return Ok(None) };
    let across = of.transpose("area/turn", area, &[0, 2, 1])?;
    let both = of.node("area/both", "Add", &[area, across], &[])?;
    let union = of.node("union", "Sub", &[both, overlap], &[])?;
    let ratio = of.node("ratio", "Div", &[overlap, union], &[])?;
    let better = of.node("better", "Trilu", &[ratio], &[("upper", AttributeValue::Int(0))])?;
    let axes = of.ints(vec![2])?;
    let keep = [("keepdims", AttributeValue::Int(0))];
    let worst = of.node("worst", "ReduceMax", &[better, axes], &keep)?;
    let limit = match of.optional(3) {
        Some(limit) => of.reshape("limit", limit, &[])?,
        None => of.number(of.element(worst), 0.0)?,
    };
    let kept = of.node("kept", "LessOrEqual", &[worst, limit], &[])?;
    let none = of.number(ElementKind::Int64, -1.0)?;
    let places = of.reshape("places/group", places, &[groups, each])?;
    let places = of.node("chosen", "Where", &[kept, places, none], &[])?;
    let rows = of.reshape("rows", places, &[groups * each, 1])?;
    let y = of.expand("triples", rows, &[groups * each, 3])?;
    only(y)
}

fn product(
    of: &mut NodeComposition,
    part: &str,
    known: Option<ValueId>,
    by: ValueId,
) -> Result<ValueId, OnnxError> {
    match known {
        Some(known) => of.node(part, "Mul", &[known, by], &[]),
        None => Ok(by),
    }
}

/// An equation with a letter for each axis of `...`. Axes of one element that others repeat are
/// left out of their operand.
fn einsum(of: &mut NodeComposition) -> Composed {
    let equation = of.attributes.text("equation")?.unwrap_or_default().to_owned();
    let operands: Vec<ValueId> = of.inputs.iter().flatten().copied().collect();
    let shapes: Vec<Vec<u64>> = operands.iter().map(|id| of.dims(*id)).collect();
    let views: Vec<&[u64]> = shapes.iter().map(Vec::as_slice).collect();
    let Some(labels) = EinsumLabels::new(&equation, &views) else { return Ok(None) };
    let is_repeated = |label: &char, size: u64| size == 1 && labels.sizes.get(label) != Some(&1);
    let is_plain = !equation.contains('.')
        && labels.operands.iter().zip(&shapes).all(|(own, shape)| {
            own.iter().zip(shape).all(|(label, size)| !is_repeated(label, *size))
        });
    if is_plain {
        return Ok(None);
    }
    let mut free = ('a'..='z').chain('A'..='Z').filter(|letter| !equation.contains(*letter));
    let mut letters = std::collections::BTreeMap::new();
    for label in labels.sizes.keys() {
        let letter = if label.is_ascii() { Some(*label) } else { free.next() };
        letters.insert(*label, letter.ok_or_else(|| of.error("it has more axes than letters"))?);
    }
    let mut inputs = Vec::new();
    let mut terms = Vec::new();
    for (at, ((own, shape), id)) in labels.operands.iter().zip(&shapes).zip(operands).enumerate() {
        let kept: Vec<(char, u64)> = own
            .iter()
            .zip(shape)
            .filter(|(label, size)| !is_repeated(label, **size))
            .map(|(label, size)| (letters[label], *size))
            .collect();
        let dims: Vec<u64> = kept.iter().map(|(_, size)| *size).collect();
        let is_whole = dims.len() == shape.len();
        inputs.push(if is_whole { id } else { of.reshape(&format!("operand/{at}"), id, &dims)? });
        terms.push(kept.iter().map(|(letter, _)| *letter).collect::<String>());
    }
    let output: String = labels.output.iter().map(|label| letters[label]).collect();
    let equation = AttributeValue::Text(format!("{}->{output}", terms.join(",")));
    let y = of.node("sum", "Einsum", &inputs, &[("equation", equation)])?;
    only(y)
}
