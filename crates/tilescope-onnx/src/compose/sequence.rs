//! Sequences of tensors: their lengths and indices are known, so each is replaced by its tensors.

use super::{Compose, Composed, NodeComposition, only};
use crate::attributes::AttributeValue;
use crate::constant::ConstantData;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::{ValueId, ValueSource};

pub(super) const OPS: &[(&str, Compose)] = &[
    ("SequenceEmpty", |of| sequence(of, Vec::new())),
    ("SequenceConstruct", |of| {
        let elements = of.inputs.iter().flatten().copied().collect();
        sequence(of, elements)
    }),
    ("SplitToSequence", split),
    ("SequenceAt", |of| {
        let elements = elements(of)?;
        let at = place(of, 1, elements.len())?;
        only(elements[at])
    }),
    ("SequenceInsert", |of| {
        let mut elements = elements(of)?;
        let at = match of.optional(2) {
            Some(_) => place(of, 2, elements.len() + 1)?,
            None => elements.len(),
        };
        elements.insert(at, of.input(1)?);
        sequence(of, elements)
    }),
    ("SequenceErase", |of| {
        let mut elements = elements(of)?;
        let at = match of.optional(1) {
            Some(_) => place(of, 1, elements.len())?,
            None => elements.len().saturating_sub(1),
        };
        if at < elements.len() {
            elements.remove(at);
        }
        sequence(of, elements)
    }),
    ("SequenceLength", |of| {
        let length = i64::try_from(elements(of)?.len()).unwrap_or(i64::MAX);
        let data = ConstantData::Ints(vec![length]);
        let length = of.resolver.known(of.identity, ElementKind::Int64, Vec::new(), data)?;
        only(length)
    }),
    ("ConcatFromSequence", join),
];

/// A value that represents these tensors.
fn sequence(of: &mut NodeComposition, elements: Vec<ValueId>) -> Composed {
    let name = of.identity.name.clone();
    let identity = of.identity;
    let kind = elements.first().map_or(ElementKind::Float32, |first| of.element(*first));
    let source = ValueSource::Constant;
    let id = of.resolver.value(&name, kind, vec![0], source, || identity.place())?;
    of.resolver.sequences.insert(id, elements);
    only(id)
}

/// A sequence of the slices of the first axis.
pub(super) fn of_slices(of: &mut NodeComposition, x: ValueId, count: u64) -> Composed {
    let lengths = vec![1; usize::try_from(count).unwrap_or(usize::MAX).min(MOST_PARTS + 1)];
    let parts = parts_of(of, x, 0, &lengths)?;
    sequence(of, parts)
}

/// The parts of an axis.
fn parts_of(
    of: &mut NodeComposition,
    x: ValueId,
    axis: usize,
    lengths: &[u64],
) -> Result<Vec<ValueId>, OnnxError> {
    if lengths.len() > MOST_PARTS {
        return Err(of.error(format!("it has more than {MOST_PARTS} results")));
    }
    match lengths.len() {
        0 => Ok(Vec::new()),
        _ => of.split("parts", x, i64::try_from(axis).unwrap_or(0), lengths),
    }
}

/// The tensors of the first operand.
fn elements(of: &NodeComposition) -> Result<Vec<ValueId>, OnnxError> {
    let sequence = of.input(0)?;
    let elements = of.resolver.sequences.get(&sequence).cloned();
    elements.ok_or_else(|| of.error("its first input is not a sequence of known length"))
}

/// A known index into a sequence of this length; negative ones count from the end.
fn place(of: &NodeComposition, input: usize, length: usize) -> Result<usize, OnnxError> {
    let known = of.known_ints(of.input(input)?).and_then(|place| place.first().copied());
    let open = "its position in the sequence is computed at run time: export the model with \
    constant positions";
    of.axis(known.ok_or_else(|| of.error(open))?, length)
}

/// The parts of a tensor along an axis: of one element each, of a given length, or of given
/// lengths.
fn split(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let dims = of.dims(x);
    let axis = of.axis(of.int("axis", 0)?, dims.len())?;
    let size = dims[axis];
    let (lengths, is_single) = match of.optional(1) {
        None => (vec![1; usize::try_from(size).unwrap_or(0)], true),
        Some(split) => {
            let refuse = || of.error("the lengths of its parts are not constant");
            let given = of.known_sizes(split).ok_or_else(refuse)?;
            match (given[..].first(), of.dims(split).is_empty()) {
                (Some(each), true) if *each > 0 => {
                    let last = size % each;
                    let mut lengths = vec![*each; usize::try_from(size / each).unwrap_or(0)];
                    lengths.extend(if last > 0 { Some(last) } else { None });
                    (lengths, false)
                }
                _ => (given, false),
            }
        }
    };
    let parts = parts_of(of, x, axis, &lengths)?;
    if !is_single || of.int("keepdims", 1)? != 0 {
        return sequence(of, parts);
    }
    let mut single = Vec::with_capacity(parts.len());
    let mut dims = dims;
    dims.remove(axis);
    for (at, part) in parts.into_iter().enumerate() {
        single.push(of.reshape(&format!("part/{at}"), part, &dims)?);
    }
    sequence(of, single)
}

/// The maximum number of tensors of a sequence; above that of any model.
const MOST_PARTS: usize = 1 << 16;

/// All tensors along one axis, or along a new one.
fn join(of: &mut NodeComposition) -> Composed {
    let parts = elements(of)?;
    let axis = of.int("axis", 0)?;
    if of.int("new_axis", 0)? != 0 {
        let y = of.resolver.stacked((of.identity, of.parts), &parts, axis)?;
        return only(y);
    }
    if let Some(whole) = split_from(of, &parts, axis)? {
        return only(whole);
    }
    let y = match parts[..] {
        [only] => only,
        [] => return Err(of.error("it has no tensors to concatenate")),
        _ => of.node("join", "Concat", &parts, &[("axis", AttributeValue::Int(axis))])?,
    };
    only(y)
}

/// The tensor that was split along an axis into all of these parts, in this order.
fn split_from(
    of: &NodeComposition,
    parts: &[ValueId],
    axis: i64,
) -> Result<Option<ValueId>, OnnxError> {
    let Some(first) = parts.first() else { return Ok(None) };
    let Some(node) = of.resolver.maker(*first).filter(|node| node.op == "Split") else {
        return Ok(None);
    };
    let Some(whole) = node.inputs.first().copied().flatten() else { return Ok(None) };
    let rank = of.dims(whole).len();
    let own = of.axis(node.attributes.int("axis")?.unwrap_or(0), rank)?;
    let is_whole = node.outputs.iter().flatten().eq(parts) && own == of.axis(axis, rank)?;
    Ok(is_whole.then_some(whole))
}
