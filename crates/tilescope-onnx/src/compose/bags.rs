//! `EmbeddingBag` of PyTorch, which its exporters write as a call of ATen or as a loop over the bags:
//! rows of a table are looked up, and those of each bag are reduced to one.

use super::{Compose, Composed, NodeComposition, signed};
use crate::attributes::AttributeValue;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::ValueId;

pub(super) const OPS: &[(&str, Compose)] = &[("ATen", called)];

/// The reduction of the rows of a bag to one row (aten/src/ATen/native/EmbeddingBag.cpp).
#[derive(Clone, Copy, PartialEq, Eq)]
enum BagMode {
    Sum,
    Mean,
    Max,
}

pub(super) fn called(of: &mut NodeComposition) -> Composed {
    if of.attributes.text("operator")? != Some("embedding_bag") {
        return Ok(None);
    }
    let mode = match of.int("mode", 0)? {
        0 => BagMode::Sum,
        1 => BagMode::Mean,
        2 => BagMode::Max,
        other => return Err(of.error(format!("mode {other} is unknown"))),
    };
    let table = of.input(0)?;
    let indices = of.input(1)?;
    let offsets = of.input(2)?;
    let count: u64 = of.dims(indices).iter().product();
    let ([_, width], [starts]) = (&of.dims(table)[..], &of.dims(offsets)[..]) else {
        return Err(of.error("its table is not a matrix, or its offsets are not a list"));
    };
    let width = *width;
    let mut bags = *starts;
    if of.int("include_last_offset", 0)? != 0 {
        bags = bags.saturating_sub(1);
    }
    if count == 0 || bags == 0 {
        return Ok(None);
    }
    let flat = of.reshape("indices", indices, &[count])?;
    let rows = of.node("rows", "Gather", &[table, flat], &[])?;
    let starts = of.slice("starts", offsets, 0, [0, bags])?;
    let y = match (even_length(of, offsets, [bags, count]), mode) {
        (Some(length), _) => {
            let groups = of.reshape("bags", rows, &[bags, length, width])?;
            let op = match mode {
                BagMode::Sum => "ReduceSum",
                BagMode::Mean => "ReduceMean",
                BagMode::Max => "ReduceMax",
            };
            reduced(of, "reduced", op, groups, 1)?
        }
        (None, BagMode::Max) => {
            let held = members(of, starts, [bags, count])?;
            let held = of.unsqueeze("members/rows", held, &[2])?;
            let rows = of.unsqueeze("rows/bags", rows, &[0])?;
            let least = of.number(of.element(rows), -65504.0)?;
            let groups = of.node("bags", "Where", &[held, rows, least], &[])?;
            reduced(of, "reduced", "ReduceMax", groups, 1)?
        }
        (None, BagMode::Sum | BagMode::Mean) => {
            let begun = begun(of, starts, [bags, count])?;
            let begun = of.cast("begun/values", begun, ElementKind::Float32)?;
            let numbers = reduced(of, "numbers", "ReduceSum", begun, 0)?;
            let one = of.number(ElementKind::Float32, 1.0)?;
            let numbers = of.node("numbers/from_zero", "Sub", &[numbers, one], &[])?;
            let numbers = of.cast("numbers/type", numbers, ElementKind::Int64)?;
            let numbers = of.reshape("numbers/rows", numbers, &[count, 1])?;
            let zero = of.number(of.element(rows), 0.0)?;
            let empty = of.expand("empty", zero, &[bags, width])?;
            let add = [("reduction", AttributeValue::Text("add".to_owned()))];
            let sums = of.node("sums", "ScatterND", &[empty, numbers, rows], &add)?;
            if mode == BagMode::Mean { divided(of, sums, starts, [bags, count])? } else { sums }
        }
    };
    let mut made = vec![None; of.outputs];
    if let Some(first) = made.first_mut() {
        *first = Some(y);
    }
    Ok(Some(made))
}

/// The length of all bags, if the offsets are known and all have the same, as for a matrix of
/// indices.
fn even_length(of: &NodeComposition, offsets: ValueId, [bags, count]: [u64; 2]) -> Option<u64> {
    let length = count / bags;
    let known = of.known_ints(offsets)?;
    for (bag, start) in (0..bags).zip(known) {
        if u64::try_from(start) != Ok(bag * length) {
            return None;
        }
    }
    count.is_multiple_of(bags).then_some(length)
}

fn reduced(
    of: &mut NodeComposition,
    part: &str,
    op: &str,
    x: ValueId,
    axis: i64,
) -> Result<ValueId, OnnxError> {
    let axes = of.ints(vec![axis])?;
    of.node(part, op, &[x, axes], &[("keepdims", AttributeValue::Int(0))])
}

/// For each bag and row, true if the bag begins at or before the row.
fn begun(
    of: &mut NodeComposition,
    starts: ValueId,
    [bags, count]: [u64; 2],
) -> Result<ValueId, OnnxError> {
    let starts = of.cast("starts/type", starts, ElementKind::Int64)?;
    compared(of, ("begun", "GreaterOrEqual"), starts, [bags, count])
}

/// For each bag and row, the comparison of the number of the row with a bound of the bag.
fn compared(
    of: &mut NodeComposition,
    (part, op): (&str, &str),
    bounds: ValueId,
    [bags, count]: [u64; 2],
) -> Result<ValueId, OnnxError> {
    let rows = of.ints((0..i64::try_from(count).unwrap_or(0)).collect())?;
    let rows = of.reshape(&format!("{part}/rows"), rows, &[1, count])?;
    let bounds = of.reshape(&format!("{part}/bags"), bounds, &[bags, 1])?;
    of.node(part, op, &[rows, bounds], &[])
}

/// For each bag and row, true if the row is in the bag: the bag has begun, and the next one has not.
fn members(
    of: &mut NodeComposition,
    starts: ValueId,
    [bags, count]: [u64; 2],
) -> Result<ValueId, OnnxError> {
    let ends = bag_ends(of, starts, [bags, count])?;
    let is_before = compared(of, ("before_end", "Less"), ends, [bags, count])?;
    let begun = begun(of, starts, [bags, count])?;
    of.node("members", "And", &[begun, is_before], &[])
}

/// The first row after each bag.
fn bag_ends(
    of: &mut NodeComposition,
    starts: ValueId,
    [bags, count]: [u64; 2],
) -> Result<ValueId, OnnxError> {
    let starts = of.cast("ends/type", starts, ElementKind::Int64)?;
    let end = of.ints(signed(&[count]))?;
    if bags == 1 {
        return Ok(end);
    }
    let behind = of.slice("ends/behind", starts, 0, [1, bags])?;
    of.concat("ends", &[behind, end], 0)
}

/// Sums of bags divided by the number of their rows; the mean of an empty bag is zero.
fn divided(
    of: &mut NodeComposition,
    sums: ValueId,
    starts: ValueId,
    [bags, count]: [u64; 2],
) -> Result<ValueId, OnnxError> {
    let ends = bag_ends(of, starts, [bags, count])?;
    let starts = of.cast("lengths/type", starts, ElementKind::Int64)?;
    let lengths = of.node("lengths", "Sub", &[ends, starts], &[])?;
    let lengths = of.cast("lengths/values", lengths, of.element(sums))?;
    let one = of.number(of.element(sums), 1.0)?;
    let lengths = of.node("lengths/least", "Max", &[lengths, one], &[])?;
    let lengths = of.reshape("lengths/bags", lengths, &[bags, 1])?;
    of.node("mean", "Div", &[sums, lengths], &[])
}
