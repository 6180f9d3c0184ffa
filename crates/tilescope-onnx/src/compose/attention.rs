//! Attention and rotary embeddings of Microsoft's runtime, in terms of the standard's.

use super::{Compose, Composed, NodeComposition, only, signed};
use crate::attributes::AttributeValue;
use crate::constant::ConstantData;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::ValueId;

pub(super) const OPS: &[(&str, Compose)] = &[
    ("Attention", packed),
    ("MultiHeadAttention", multi_head),
    ("GroupQueryAttention", grouped),
    ("RotaryEmbedding", rotary),
];

pub(super) const OF_STANDARD: &[(&str, Compose)] =
    &[("Attention", with_lengths), ("TensorScatter", tensor_scatter)];

/// A standard attention.
struct Heads {
    operands: [ValueId; 3],
    query_heads: u64,
    key_heads: u64,
    mask: Option<ValueId>,
    past: [Option<ValueId>; 2],
    is_causal: bool,
}

/// The result, and the keys and values of all calls.
fn attention(of: &mut NodeComposition, heads: Heads) -> Result<Vec<ValueId>, OnnxError> {
    let Heads { operands: [query, key, value], query_heads, key_heads, mask, past, is_causal } =
        heads;
    let count = |heads: u64| AttributeValue::Int(i64::try_from(heads).unwrap_or(i64::MAX));
    let mut attributes = vec![
        ("q_num_heads", count(query_heads)),
        ("kv_num_heads", count(key_heads)),
        ("is_causal", AttributeValue::Int(is_causal.into())),
        ("softcap", AttributeValue::Float(of.float("softcap", 0.0)?)),
    ];
    let scale = of.float("scale", 0.0)?;
    if scale != 0.0 {
        attributes.push(("scale", AttributeValue::Float(scale)));
    }
    let inputs = [Some(query), Some(key), Some(value), mask, past[0], past[1]];
    of.nodes("attention", "Attention", &inputs, &attributes, 3)
}

/// A boolean mask of the keys to attend to, `[batch, 1, 1, keys]`, from lengths.
fn mask_of_lengths(
    of: &mut NodeComposition,
    lengths: ValueId,
    [batch, keys]: [u64; 2],
) -> Result<ValueId, OnnxError> {
    let places: Vec<i64> = signed(&(0..keys).collect::<Vec<u64>>());
    let element = of.element(lengths);
    let places = of.resolver.known(of.identity, element, vec![keys], ConstantData::Ints(places))?;
    let lengths = of.reshape("mask/lengths", lengths, &[batch, 1, 1, 1])?;
    of.node("mask", "Less", &[places, lengths], &[])
}

/// A standard mask from one that is 1 for keys to attend to.
fn key_mask(
    of: &mut NodeComposition,
    mask: Option<ValueId>,
    [batch, keys]: [u64; 2],
) -> Result<Option<ValueId>, OnnxError> {
    let Some(mask) = mask else { return Ok(None) };
    let dims = of.dims(mask);
    let shaped = match dims[..] {
        // Lengths; the starts after them are for texts that are padded at the left.
        [count] if count == batch => return mask_of_lengths(of, mask, [batch, keys]).map(Some),
        [count] if count == 2 * batch || count == 3 * batch + 2 => {
            let lengths = of.slice("mask/ends", mask, 0, [0, batch])?;
            return mask_of_lengths(of, lengths, [batch, keys]).map(Some);
        }
        [_, columns] => of.reshape("mask/keys", mask, &[batch, 1, 1, columns])?,
        [_, rows, columns] => of.reshape("mask/keys", mask, &[batch, 1, rows, columns])?,
        _ => return Err(of.error(format!("a mask of shape {dims:?} is not modelled"))),
    };
    of.cast("mask/type", shaped, ElementKind::Bool).map(Some)
}

/// One mask from two: a boolean one and one that is added to scores.
fn both_masks(
    of: &mut NodeComposition,
    known: Option<ValueId>,
    added: Option<ValueId>,
) -> Result<Option<ValueId>, OnnxError> {
    let Some(allowed) = known else { return Ok(known.or(added)) };
    let Some(added) = added else { return Ok(known.or(added)) };
    let element = of.element(added);
    if element == ElementKind::Bool {
        return of.node("mask/both", "And", &[allowed, added], &[]).map(Some);
    }
    let least = of.number(element, -10000.0)?;
    of.node("mask/both", "Where", &[allowed, added, least], &[]).map(Some)
}

/// Keys and values of earlier calls along the first axis of one tensor.
fn past_pair(
    of: &mut NodeComposition,
    past: Option<ValueId>,
) -> Result<[Option<ValueId>; 2], OnnxError> {
    let Some(past) = past else { return Ok([None, None]) };
    let dims = of.dims(past);
    let [2, ref each @ ..] = dims[..] else {
        return Err(of.error(format!("shape {dims:?} is not valid for past keys and values")));
    };
    let each = each.to_vec();
    let mut parts = Vec::new();
    for (at, part) in of.split("past", past, 0, &[1, 1])?.into_iter().enumerate() {
        parts.push(Some(of.reshape(&format!("past/{at}"), part, &each)?));
    }
    Ok([parts[0], parts[1]])
}

/// `Attention`: includes the products that compute queries, keys and values.
fn packed(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let weights = of.input(1)?;
    let heads = of.count("num_heads")?;
    let made = of.node("projection", "MatMul", &[x, weights], &[])?;
    let bias = of.optional(2);
    let made = of.plus("bias", made, bias)?;
    let dims = of.dims(made);
    let [batch, tokens, columns] = dims[..] else {
        return Err(
            of.error(format!("its operand has shape {dims:?}; expected [batch, tokens, columns]"))
        );
    };
    let widths: Vec<u64> = match of.attributes.ints("qkv_hidden_sizes")? {
        Some(sizes) => sizes.iter().map(|size| u64::try_from(*size).unwrap_or(0)).collect(),
        None => vec![columns / 3; 3],
    };
    let parts = of.split("parts", made, 2, &widths)?;
    let [query, key, value] = parts[..] else {
        return Err(of.error("it must have three operands"));
    };
    let past_id = of.optional(4);
    let past = past_pair(of, past_id)?;
    let before = past[0].map_or(0, |past| of.dims(past)[2]);
    if of.int("do_rotary", 0)? != 0 {
        return Err(of.error("rotary embeddings within Attention are not modelled"));
    }
    let mask = of.optional(3);
    let added = of.optional(5);
    let mask = key_mask(of, mask, [batch, before + tokens])?;
    let mask = both_masks(of, mask, added)?;
    let is_causal = of.int("unidirectional", 0)? != 0;
    let operands = [query, key, value];
    let heads = Heads { operands, query_heads: heads, key_heads: heads, mask, past, is_causal };
    let made = attention(of, heads)?;
    if of.outputs < 2 {
        return only(made[0]);
    }
    let mut both = Vec::new();
    for (at, part) in made[1..].iter().enumerate() {
        both.push(of.unsqueeze(&format!("present/{at}"), *part, &[0])?);
    }
    let present = of.concat("present", &both, 0)?;
    Ok(Some(vec![Some(made[0]), Some(present)]))
}

/// `MultiHeadAttention`: with separate operands, or packed into the first ones.
fn multi_head(of: &mut NodeComposition) -> Composed {
    let heads = of.count("num_heads")?;
    let query = of.input(0)?;
    let dims = of.dims(query);
    let key = of.optional(1);
    let value = of.optional(2);
    let [mut query, key, value] = match (dims.len(), key, value) {
        (5, None, None) => {
            let batch = dims[0];
            let tokens = dims[1];
            let head = dims[4];
            let parts = of.split("packed", query, 3, &[1, 1, 1])?;
            let mut made = Vec::new();
            for (at, part) in parts.into_iter().enumerate() {
                let shape = [batch, tokens, heads * head];
                made.push(of.reshape(&format!("packed/{at}"), part, &shape)?);
            }
            [made[0], made[1], made[2]]
        }
        (_, Some(key), None) => {
            let packed = of.dims(key);
            let [batch, tokens, _, 2, head] = packed[..] else {
                return Err(of.error("keys and values are neither separate nor packed"));
            };
            let parts = of.split("packed", key, 3, &[1, 1])?;
            let shape = [batch, tokens, heads * head];
            let key = of.reshape("packed/key", parts[0], &shape)?;
            [query, key, of.reshape("packed/value", parts[1], &shape)?]
        }
        (_, Some(key), Some(value)) => [query, key, value],
        _ => return Err(of.error("keys and values are missing")),
    };
    let mut key = key;
    let mut value = value;
    if let Some(bias) = of.optional(3) {
        // Keys and values of a cross attention come from an earlier call, and include their biases.
        let width = of.dims(bias)[0];
        let columns = of.dims(query).last().copied().unwrap_or(0);
        let widths = [columns, columns, width.saturating_sub(2 * columns)];
        let parts = of.split("biases", bias, 0, &widths)?;
        query = of.plus("bias/query", query, Some(parts[0]))?;
        if of.dims(key).len() == 3 {
            key = of.plus("bias/key", key, Some(parts[1]))?;
            value = of.plus("bias/value", value, Some(parts[2]))?;
        }
    }
    let batch = of.dims(query)[0];
    if of.dims(key).len() == 4 {
        // Queries must have the same number of axes.
        let dims = of.dims(query);
        let split = [batch, dims[1], heads, dims[2] / heads];
        let apart = of.reshape("query/heads", query, &split)?;
        query = of.transpose("query/turn", apart, &[0, 2, 1, 3])?;
    }
    let past = [of.optional(6), of.optional(7)];
    let before = past[0].map_or(0, |past| of.dims(past)[2]);
    let tokens = of.dims(key)[if of.dims(key).len() == 4 { 2 } else { 1 }];
    let mask = of.optional(4);
    let added = of.optional(5);
    let mask = key_mask(of, mask, [batch, before + tokens])?;
    let mask = both_masks(of, mask, added)?;
    let is_causal = of.int("unidirectional", 0)? != 0;
    let operands = [query, key, value];
    let parts = Heads { operands, query_heads: heads, key_heads: heads, mask, past, is_causal };
    let made = attention(of, parts)?;
    let mut y = made[0];
    if of.dims(y).len() == 4 {
        let dims = of.dims(y);
        let turned = of.transpose("back/turn", y, &[0, 2, 1, 3])?;
        y = of.reshape("back", turned, &[dims[0], dims[2], dims[1] * dims[3]])?;
    }
    Ok(Some(vec![Some(y), Some(made[1]), Some(made[2])]))
}

/// `GroupQueryAttention`: several queries share keys and values, which may be rotated by their
/// positions first. Keys outside of a local window are not skipped.
fn grouped(of: &mut NodeComposition) -> Composed {
    let heads = of.count("num_heads")?;
    let key_heads = of.count("kv_num_heads")?;
    let mut operands = vec![of.input(0)?];
    match (of.optional(1), of.optional(2)) {
        (Some(key), Some(value)) => operands.extend([key, value]),
        _ => {
            let columns = of.dims(operands[0]).last().copied().unwrap_or(0);
            let head = columns / (heads + 2 * key_heads);
            let widths = [heads * head, key_heads * head, key_heads * head];
            operands = of.split("packed", operands[0], 2, &widths)?;
        }
    }
    let [mut query, mut key, value] = operands[..] else {
        return Err(of.error("it must have three operands"));
    };
    let dims = of.dims(query);
    let [batch, tokens, _] = dims[..] else {
        return Err(
            of.error(format!("its operand has shape {dims:?}; expected [batch, tokens, columns]"))
        );
    };
    let mut past = [of.optional(3), of.optional(4)];
    let mut before = past[0].map_or(0, |past| of.dims(past)[2]);
    // A cache that is updated in place keeps its length, which includes the new tokens.
    let total = of.optional(6).and_then(|id| of.known_ints(id)?.first().copied());
    let total = total.and_then(|total| u64::try_from(total).ok());
    if let Some(total) = total.filter(|total| *total == before && *total >= tokens) {
        before = total - tokens;
        for (at, past) in past.iter_mut().enumerate() {
            let Some(all) = *past else { continue };
            *past = Some(of.slice(&format!("past/{at}"), all, 2, [0, before])?);
        }
    }
    if of.int("do_rotary", 0)? != 0 {
        let mut tables = Vec::new();
        for (part, input) in [("cos", 7), ("sin", 8)] {
            let table = of.input(input)?;
            let rows = of.slice(part, table, 0, [before, before + tokens])?;
            let width = of.dims(rows)[1];
            tables.push(of.expand(&format!("{part}/all"), rows, &[batch, tokens, width])?);
        }
        let interleaved = AttributeValue::Int(of.int("rotary_interleaved", 0)?);
        for (part, x, count) in [("query", &mut query, heads), ("key", &mut key, key_heads)] {
            let count = AttributeValue::Int(i64::try_from(count).unwrap_or(i64::MAX));
            let turned = 2 * of.dims(tables[0])[2];
            let turned = AttributeValue::Int(i64::try_from(turned).unwrap_or(0));
            let attributes = [
                ("num_heads", count),
                ("interleaved", interleaved.clone()),
                ("rotary_embedding_dim", turned),
            ];
            let part = format!("{part}/rotary");
            *x = of.node(&part, "RotaryEmbedding", &[*x, tables[0], tables[1]], &attributes)?;
        }
    }
    let mask = of.optional(10);
    let operands = [query, key, value];
    let parts = Heads { operands, query_heads: heads, key_heads, mask, past, is_causal: true };
    let made = attention(of, parts)?;
    Ok(Some(made.into_iter().map(Some).collect()))
}

/// `RotaryEmbedding`: positions are given for each token, or for the first one.
fn rotary(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let places = of.input(1)?;
    let cos = of.input(2)?;
    let sin = of.input(3)?;
    let dims = of.dims(x);
    let [batch, tokens] = match dims[..] {
        [batch, tokens, _] => [batch, tokens],
        [batch, _, tokens, _] => [batch, tokens],
        _ => return Err(of.error(format!("its operand is {dims:?}"))),
    };
    let places = match of.dims(places)[..] {
        [_, _] => places,
        _ => {
            let steps = of.ints(signed(&(0..tokens).collect::<Vec<u64>>()))?;
            let sum = of.node("places", "Add", &[places, steps], &[])?;
            of.expand("places/all", sum, &[batch, tokens])?
        }
    };
    let turned = of.int("rotary_embedding_dim", 0)?;
    let mut heads = of.int("num_heads", 0)?;
    if heads == 0 && dims.len() == 3 {
        let head = 2 * of.dims(cos).last().copied().unwrap_or(1).max(1);
        heads = i64::try_from(dims[2] / head).unwrap_or(i64::MAX);
    }
    let attributes = [
        ("num_heads", AttributeValue::Int(heads)),
        ("rotary_embedding_dim", AttributeValue::Int(turned)),
        ("interleaved", AttributeValue::Int(of.int("interleaved", 0)?)),
    ];
    let y = of.node("rotary", "RotaryEmbedding", &[x, cos, sin, places], &attributes)?;
    only(y)
}

/// `Attention` of version 24 or later: the number of keys without padding may be an operand.
fn with_lengths(of: &mut NodeComposition) -> Composed {
    let Some(lengths) = of.optional(6) else { return Ok(None) };
    let [query, key, value] = [of.input(0)?, of.input(1)?, of.input(2)?];
    let key_dims = of.dims(key);
    let keys = key_dims[if key_dims.len() == 4 { 2 } else { 1 }];
    let mask = mask_of_lengths(of, lengths, [key_dims[0], keys])?;
    let given = of.optional(3);
    let mask = both_masks(of, Some(mask), given)?;
    let attributes = of.own_attributes();
    let inputs = [Some(query), Some(key), Some(value), mask];
    let made = of.nodes("attention", "Attention", &inputs, &attributes, of.outputs.min(4))?;
    Ok(Some(made.into_iter().map(Some).collect()))
}

/// Writes new rows of a cache at the position of each sample.
fn tensor_scatter(of: &mut NodeComposition) -> Composed {
    let cache = of.input(0)?;
    let update = of.input(1)?;
    let dims = of.dims(cache);
    let new = of.dims(update);
    let axis = of.axis(of.int("axis", -2)?, dims.len())?;
    if new.len() != dims.len() || axis == 0 || new[axis] > dims[axis] {
        return Err(
            of.error(format!("new rows of shape {new:?} do not fit a cache of shape {dims:?}"))
        );
    }
    let rows = new[axis];
    let Some(places) = of.optional(2) else {
        let rest = of.slice("rest", cache, axis, [rows, dims[axis]])?;
        let y = of.concat("join", &[update, rest], i64::try_from(axis).unwrap_or(0))?;
        return only(y);
    };
    // Rows are the second axis, after the samples.
    let rank = dims.len();
    let order: Vec<u64> = [0, axis as u64]
        .into_iter()
        .chain((1..rank as u64).filter(|at| *at != axis as u64))
        .collect();
    let order = signed(&order);
    let mut back = vec![0; rank];
    for (at, from) in order.iter().enumerate() {
        back[usize::try_from(*from).unwrap_or(0)] = i64::try_from(at).unwrap_or(0);
    }
    let batch = dims[0];
    let count = rows;
    let table = of.transpose("cache", cache, &order)?;
    let rows = of.transpose("update", update, &order)?;
    let column = of.reshape("places", places, &[batch, 1])?;
    let column = of.cast("places/type", column, ElementKind::Int64)?;
    let steps = of.ints(signed(&(0..count).collect::<Vec<u64>>()))?;
    let places = of.node("places/all", "Add", &[column, steps], &[])?;
    let places = of.unsqueeze("places/pairs", places, &[2])?;
    let samples =
        signed(&(0..batch).flat_map(|at| (0..count).map(move |_| at)).collect::<Vec<u64>>());
    let samples = of.ints(samples)?;
    let samples = of.reshape("samples", samples, &[batch, count, 1])?;
    let indices = of.concat("indices", &[samples, places], 2)?;
    let made = of.node("scatter", "ScatterND", &[table, indices, rows], &[])?;
    let y = of.transpose("back", made, &back)?;
    only(y)
}
