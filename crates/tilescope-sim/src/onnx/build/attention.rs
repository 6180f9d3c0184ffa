//! Attention and rotary embeddings as single nodes, from opset 23 on. They run as the operators
//! that the standard defines for them.

use super::{OpBuilder, composed};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{
    ActivationOp, BinaryOp, ConcatOp, EmbeddingOp, ImportProblem, MatMulOp, SelectOp, SliceOp,
    SoftmaxOp, TakeOp,
};
use crate::popops::elementwise::BinaryOpType;
use crate::shape::{DType, TensorId, TensorInfo};

pub(super) const OPS: &[OpBuilder] =
    &[composed("Attention", attention), composed("RotaryEmbedding", rotary)];

/// Returns an operand as `[batch, heads, tokens, channels]`.
fn of_heads(node: &mut NodeImport, input: usize, heads: &str) -> Result<TensorId, GraphError> {
    let x = node.input(input)?;
    match node.shape(x)[..] {
        [_, _, _, _] => Ok(x),
        [batch, tokens, columns] => {
            let heads = node.count(heads)?.max(1);
            let shape = [batch, tokens, heads, columns / heads];
            let x = node.reshape(&format!("operand{input}/heads"), x, &shape)?;
            node.transpose(&format!("operand{input}/transpose"), x, vec![0, 2, 1, 3])
        }
        _ => Err(node.refuse(ImportProblem::Operand("[batch, heads, tokens, channels]"))),
    }
}

/// Joins keys or values with those of earlier calls, and repeats each head for the queries that
/// share it.
fn cached(
    node: &mut NodeImport,
    (input, past, output): (usize, usize, usize),
    query_heads: u64,
) -> Result<TensorId, GraphError> {
    let mut x = of_heads(node, input, "kv_num_heads")?;
    if let Some(before) = node.optional(past)? {
        x = node.apply(&format!("operand{input}/past"), ConcatOp { axis: 2 }, &[before, x])?;
    }
    if node.has_output(output) {
        node.set(output, x)?;
    }
    let [batch, heads, tokens, channels] = node.shape(x)[..] else {
        return Err(node.refuse(ImportProblem::Operand("[batch, heads, tokens, channels]")));
    };
    if heads == query_heads {
        return Ok(x);
    }
    if heads == 0 || !query_heads.is_multiple_of(heads) {
        return Err(node.refuse(ImportProblem::Heads { queries: query_heads, keys: heads }));
    }
    let part = format!("operand{input}/shared");
    let x = node.reshape(&part, x, &[batch, heads, 1, tokens, channels])?;
    let each = [batch, heads, query_heads / heads, tokens, channels];
    let x = node.expand(&format!("{part}/repeat"), x, &each)?;
    node.reshape(&format!("{part}/heads"), x, &[batch, query_heads, tokens, channels])
}

fn attention(node: &mut NodeImport) -> Result<(), GraphError> {
    let query = of_heads(node, 0, "q_num_heads")?;
    let [batch, heads, queries, channels] = node.shape(query)[..] else {
        return Err(node.refuse(ImportProblem::Operand("[batch, heads, tokens, channels]")));
    };
    let key = cached(node, (1, 4, 1), heads)?;
    let value = cached(node, (2, 5, 2), heads)?;
    let keys = node.shape(key)[2];
    let width = node.shape(value)[3];
    let groups = batch * heads;
    let query = node.reshape("query", query, &[groups, queries, channels])?;
    let key = node.reshape("key", key, &[groups, keys, channels])?;
    let scores = node.apply("scores", MatMulOp::TRANSPOSED, &[query, key])?;
    let scale = node.float("scale", 1.0 / (channels.max(1) as f64).sqrt())?;
    let scores = node.scale("scale", scores, scale)?;
    let mut scores = node.reshape("scores/heads", scores, &[batch, heads, queries, keys])?;
    let cap = node.float("softcap", 0.0)?;
    if cap > 0.0 {
        let small = node.scale("softcap/divide", scores, 1.0 / cap)?;
        let bounded = node.apply("softcap", ActivationOp::TANH, &[small])?;
        scores = node.scale("softcap/scale", bounded, cap)?;
    }
    let scores = masked(node, scores, [queries, keys])?;
    let shares = node.apply("softmax", SoftmaxOp { axis: 3, log: false }, &[scores])?;
    if node.has_output(3) {
        node.set(3, shares)?;
    }
    let shares = node.reshape("shares", shares, &[groups, queries, keys])?;
    let value = node.reshape("value", value, &[groups, keys, width])?;
    let y = node.apply("context", MatMulOp::default(), &[shares, value])?;
    let y = node.reshape("context/heads", y, &[batch, heads, queries, width])?;
    let y = match node.output_dims(0)?.len() {
        3 => node.transpose("context/transpose", y, vec![0, 2, 1, 3])?,
        _ => y,
    };
    node.set(0, y)
}

/// Makes the scores of masked tokens small.
fn masked(
    node: &mut NodeImport,
    scores: TensorId,
    [queries, keys]: [u64; 2],
) -> Result<TensorId, GraphError> {
    let dtype = node.ty(scores).dtype;
    let mut scores = scores;
    if node.int("is_causal", 0)? != 0 {
        let causal = node.resident("causal", TensorInfo::new([queries, keys], dtype));
        scores = node.apply("causal/add", BinaryOp::ADD, &[scores, causal])?;
    }
    let Some(mask) = node.optional(3)? else { return Ok(scores) };
    if node.ty(mask).dtype == DType::Bool {
        let least = node.resident("mask/least", TensorInfo::new(Vec::new(), dtype));
        return node.apply("mask", SelectOp, &[mask, scores, least]);
    }
    let mask = node.cast("mask/type", mask, dtype)?;
    node.apply("mask", BinaryOp::ADD, &[scores, mask])
}

/// Rotates pairs of channels by an angle for each position.
fn rotary(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let shape = node.shape(x);
    let x = match shape[..] {
        [_, _, _, _] => node.transpose("tokens", x, vec![0, 2, 1, 3])?,
        [batch, tokens, columns] => {
            let heads = node.count("num_heads")?.max(1);
            node.reshape("heads", x, &[batch, tokens, heads, columns / heads])?
        }
        _ => return Err(node.refuse(ImportProblem::Operand("[batch, heads, tokens, channels]"))),
    };
    let [batch, tokens, _, channels] = node.shape(x)[..] else {
        return Err(node.refuse(ImportProblem::Operand("[batch, heads, tokens, channels]")));
    };
    let stated = u64::try_from(node.int("rotary_embedding_dim", 0)?).unwrap_or(0);
    let turned = if stated == 0 { channels } else { stated.min(channels) };
    let mut angles = Vec::new();
    for (part, input) in [("cos", 1), ("sin", 2)] {
        let table = node.input(input)?;
        let rows = match node.optional(3)? {
            Some(positions) => {
                let positions = node.cast(&format!("{part}/positions"), positions, DType::Int)?;
                let count = [node.ty(positions).elements().0];
                let positions = node.reshape(&format!("{part}/places"), positions, &count)?;
                node.apply(part, EmbeddingOp::default(), &[table, positions])?
            }
            None => table,
        };
        angles.push(node.reshape(
            &format!("{part}/tokens"),
            rows,
            &[batch, tokens, 1, turned / 2],
        )?);
    }
    let interleaved = node.int("interleaved", 0)? != 0;
    let take_half = |node: &mut NodeImport, part: &str, which: u64| {
        if interleaved {
            node.apply(part, TakeOp::stepped(3, which, 2, turned / 2), &[x])
        } else {
            let range = which * turned / 2..(which + 1) * (turned / 2);
            node.apply(part, SliceOp { axis: 3, range }, &[x])
        }
    };
    let first = take_half(node, "first", 0)?;
    let second = take_half(node, "second", 1)?;
    let [cos, sin] = [angles[0], angles[1]];
    let a = node.binary("firstCos", BinaryOpType::Multiply, [first, cos])?;
    let b = node.binary("secondSin", BinaryOpType::Multiply, [second, sin])?;
    let real = node.binary("real", BinaryOpType::Subtract, [a, b])?;
    let a = node.binary("firstSin", BinaryOpType::Multiply, [first, sin])?;
    let b = node.binary("secondCos", BinaryOpType::Multiply, [second, cos])?;
    let imaginary = node.binary("imaginary", BinaryOpType::Add, [a, b])?;
    let mut parts = vec![real, imaginary];
    if turned < channels {
        let rest = SliceOp { axis: 3, range: turned..channels };
        parts.push(node.apply("rest", rest, &[x])?);
    }
    let y = node.apply("join", ConcatOp { axis: 3 }, &parts)?;
    let y = if shape.len() == 4 { node.transpose("back", y, vec![0, 2, 1, 3])? } else { y };
    node.set(0, y)
}
