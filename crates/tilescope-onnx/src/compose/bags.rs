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

/// Rows that are reduced by bags.
struct Bags {
    offsets: ValueId,
    /// The first row of each bag.
    starts: ValueId,
    /// Number of bags and of rows.
    counts: [u64; 2],
}

/// The name of `EmbeddingBag` in calls of ATen.
pub(crate) const BAG_CALL: &str = "embedding_bag";

/// Attributes are those of ATen, and `looked_up` if the first operand is the rows of the indices
/// instead of the table.
pub(super) fn called(of: &mut NodeComposition) -> Composed {
    if of.attributes.text("operator")? != Some(BAG_CALL) {
        return Ok(None);
    }
    let mode = match of.int("mode", 0)? {
        0 => BagMode::Sum,
        1 => BagMode::Mean,
        2 => BagMode::Max,
        other => return Err(of.error(format!("mode {other} is unknown"))),
    };
    let table = of.input(0)?;
    let offsets = of.input(2)?;
    let ([length, _], [starts]) = (&of.dims(table)[..], &of.dims(offsets)[..]) else {
        return Err(of.error("its table is not a matrix, or its offsets are not a list"));
    };
    let is_looked_up = of.int("looked_up", 0)? != 0;
    let count = match of.optional(1) {
        Some(indices) => of.dims(indices).iter().product(),
        None if is_looked_up => *length,
        None => return Err(of.error("it has no indices")),
    };
    let mut bags = *starts;
    if of.int("include_last_offset", 0)? != 0 {
        bags = bags.saturating_sub(1);
    }
    if count == 0 || bags == 0 {
        return Ok(None);
    }
    let flat = match of.optional(1) {
        Some(indices) => Some(of.reshape("indices", indices, &[count])?),
        None => None,
    };
    let mut rows = table;
    if let Some(flat) = flat.filter(|_| !is_looked_up) {
        rows = of.node("rows", "Gather", &[table, flat], &[])?;
    }
    let starts = of.slice("starts", offsets, 0, [0, bags])?;
    let bags = Bags { offsets, starts, counts: [bags, count] };
    let padding = of.int("padding_idx", -1)?;
    let y = match flat.filter(|_| padding >= 0) {
        Some(flat) => {
            #[expect(clippy::cast_precision_loss, reason = "no table has 2^53 rows")]
            let index = of.number(of.element(flat), padding as f64)?;
            let left_out = of.node("padding", "Equal", &[flat, index], &[])?;
            without_padding(of, rows, left_out, mode, &bags)?
        }
        None => reduced_bags(of, rows, mode, &bags)?,
    };
    let mut made = vec![None; of.outputs];
    if let Some(first) = made.first_mut() {
        *first = Some(y);
    }
    Ok(Some(made))
}

/// Bags without the rows of the padding index: they add nothing to sums, and are not counted.
fn without_padding(
    of: &mut NodeComposition,
    rows: ValueId,
    left_out: ValueId,
    mode: BagMode,
    bags: &Bags,
) -> Result<ValueId, OnnxError> {
    let [_, count] = bags.counts;
    let element = of.element(rows);
    let left_out = of.reshape("padding/rows", left_out, &[count, 1])?;
    if mode == BagMode::Max {
        let least = of.number(element, LEAST)?;
        let rows = of.node("rows/used", "Where", &[left_out, least, rows], &[])?;
        return reduced_bags(of, rows, mode, bags);
    }
    let used = of.node("used", "Not", &[left_out], &[])?;
    let used = of.cast("used/values", used, element)?;
    let rows = of.node("rows/used", "Mul", &[rows, used], &[])?;
    if mode == BagMode::Sum {
        return reduced_bags(of, rows, mode, bags);
    }
    // One more column counts the rows.
    let width = of.dims(rows).last().copied().unwrap_or(1);
    let rows = of.concat("rows/counted", &[rows, used], 1)?;
    let sums = reduced_bags(of, rows, BagMode::Sum, bags)?;
    let parts = of.split("sums/parts", sums, 1, &[width, 1])?;
    let one = of.number(element, 1.0)?;
    let lengths = of.node("lengths/least", "Max", &[parts[1], one], &[])?;
    of.node("mean", "Div", &[parts[0], lengths], &[])
}

/// A number below those of a table; the smallest float16.
const LEAST: f64 = -65504.0;

/// One row for each bag.
fn reduced_bags(
    of: &mut NodeComposition,
    rows: ValueId,
    mode: BagMode,
    bags: &Bags,
) -> Result<ValueId, OnnxError> {
    let starts = bags.starts;
    let [number, count] = bags.counts;
    let width = of.dims(rows).last().copied().unwrap_or(1);
    match (even_length(of, bags.offsets, bags.counts), mode) {
        (Some(length), _) => {
            let groups = of.reshape("bags", rows, &[number, length, width])?;
            let op = match mode {
                BagMode::Sum => "ReduceSum",
                BagMode::Mean => "ReduceMean",
                BagMode::Max => "ReduceMax",
            };
            reduced(of, "reduced", op, groups, 1)
        }
        (None, BagMode::Max) => {
            let held = members(of, starts, bags.counts)?;
            let held = of.unsqueeze("members/rows", held, &[2])?;
            let rows = of.unsqueeze("rows/bags", rows, &[0])?;
            let least = of.number(of.element(rows), LEAST)?;
            let groups = of.node("bags", "Where", &[held, rows, least], &[])?;
            reduced(of, "reduced", "ReduceMax", groups, 1)
        }
        (None, BagMode::Sum | BagMode::Mean) => {
            let begun = begun(of, starts, bags.counts)?;
            let begun = of.cast("begun/values", begun, ElementKind::Float32)?;
            let numbers = reduced(of, "numbers", "ReduceSum", begun, 0)?;
            let one = of.number(ElementKind::Float32, 1.0)?;
            let numbers = of.node("numbers/from_zero", "Sub", &[numbers, one], &[])?;
            let numbers = of.cast("numbers/type", numbers, ElementKind::Int64)?;
            let numbers = of.reshape("numbers/rows", numbers, &[count, 1])?;
            let sums = of.row_sums(rows, numbers, [number, width])?;
            if mode == BagMode::Mean { divided(of, sums, starts, bags.counts) } else { Ok(sums) }
        }
    }
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
