//! Activations, norms and embeddings fused by an optimiser.

use super::{Compose, Composed, NodeComposition, only};
use crate::attributes::AttributeValue;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::ValueId;

pub(super) const OPS: &[(&str, Compose)] = &[
    ("Gelu", |of| gelu(of, "none")),
    ("BiasGelu", |of| gelu(of, "none")),
    ("FastGelu", |of| gelu(of, "tanh")),
    ("QuickGelu", swish),
    ("FusedConv", |of| activated(of, "Conv")),
    ("FusedGemm", |of| activated(of, "Gemm")),
    ("FusedMatMul", fused_matmul),
    ("SkipLayerNormalization", |of| skip_norm(of, "LayerNormalization", [3, 4])),
    ("SkipSimplifiedLayerNormalization", |of| skip_norm(of, "RMSNormalization", [9, 3])),
    ("SimplifiedLayerNormalization", |of| {
        let x = of.input(0)?;
        let scale = of.input(1)?;
        let y = norm(of, "RMSNormalization", &[Some(x), Some(scale)])?;
        only(y)
    }),
    ("EmbedLayerNormalization", embed),
];

pub(super) const OF_STANDARD: &[(&str, Compose)] = &[
    ("Swish", swish),
    ("SwiGLU", |of| {
        let gate = of.input(0)?;
        let x = of.input(1)?;
        let alpha = of.float("alpha", 1.0)?;
        let gate = gated(of, gate, alpha)?;
        let y = of.node("product", "Mul", &[gate, x], &[])?;
        only(y)
    }),
];

/// GELU, of a sum if the node has a second operand.
fn gelu(of: &mut NodeComposition, kind: &str) -> Composed {
    let x = of.input(0)?;
    let bias = of.optional(1);
    let sum = of.plus("bias", x, bias)?;
    let kind = AttributeValue::Text(kind.to_owned());
    let y = of.node("gelu", "Gelu", &[sum], &[("approximate", kind)])?;
    only(y)
}

/// x . sigmoid(alpha x).
fn swish(of: &mut NodeComposition) -> Composed {
    let default = if of.op == "QuickGelu" { 1.702 } else { 1.0 };
    let x = of.input(0)?;
    let alpha = of.float("alpha", default)?;
    let y = gated(of, x, alpha)?;
    only(y)
}

fn gated(of: &mut NodeComposition, x: ValueId, alpha: f64) -> Result<ValueId, OnnxError> {
    let mut gate = x;
    if alpha != 1.0 {
        let alpha = of.number(of.element(x), alpha)?;
        gate = of.node("alpha", "Mul", &[x, alpha], &[])?;
    }
    let gate = of.node("gate", "Sigmoid", &[gate], &[])?;
    of.node("swish", "Mul", &[x, gate], &[])
}

/// A product with an optional bias, a sum with a fourth operand, and an activation.
fn activated(of: &mut NodeComposition, op: &str) -> Composed {
    let inputs: Vec<Option<ValueId>> = of.inputs.iter().take(3).copied().collect();
    let mut attributes = of.own_attributes();
    attributes.retain(|(name, _)| !name.starts_with("activation"));
    let y = of.node_of("product", op, &inputs, &attributes)?;
    let added = of.optional(3);
    let y = of.plus("sum", y, added)?;
    let kind = of.attributes.text("activation")?.unwrap_or_default().to_owned();
    if kind.is_empty() {
        return only(y);
    }
    let numbers = match of.attributes.floats("activation_params")? {
        Some(numbers) => numbers.to_vec(),
        None => Vec::new(),
    };
    if kind == "Clip" {
        let mut operands = vec![y];
        for number in numbers {
            operands.push(of.number(of.element(y), number)?);
        }
        let y = of.node("activation", "Clip", &operands, &[])?;
        return only(y);
    }
    let names = ["alpha", "beta"].into_iter().zip(numbers);
    let own: Vec<(&str, AttributeValue)> =
        names.map(|(name, number)| (name, AttributeValue::Float(number))).collect();
    let y = of.node("activation", &kind, &[y], &own)?;
    only(y)
}

/// A matrix product, times a constant. The rows of an operand may be in its first axis, before the
/// batch, and its last two axes may be swapped.
fn fused_matmul(of: &mut NodeComposition) -> Composed {
    let mut operands = Vec::new();
    for (at, side) in ["A", "B"].into_iter().enumerate() {
        let x = of.input(at)?;
        let rank = of.dims(x).len();
        let mut order: Vec<i64> = (0..).take(rank).collect();
        if rank > 2 && of.int(&format!("transBatch{side}"), 0)? != 0 {
            order[..rank - 1].rotate_left(1);
        }
        if rank > 1 && of.int(&format!("trans{side}"), 0)? != 0 {
            order.swap(rank - 2, rank - 1);
        }
        let is_as_given = order.is_sorted();
        operands.push(if is_as_given { x } else { of.transpose(side, x, &order)? });
    }
    let y = of.node("product", "MatMul", &operands, &[])?;
    let alpha = of.float("alpha", 1.0)?;
    if alpha == 1.0 {
        return only(y);
    }
    let alpha = of.number(of.element(y), alpha)?;
    let y = of.node("alpha", "Mul", &[y, alpha], &[])?;
    only(y)
}

/// A norm over the last axis.
fn norm(
    of: &mut NodeComposition,
    op: &str,
    inputs: &[Option<ValueId>],
) -> Result<ValueId, OnnxError> {
    let epsilon = of.float("epsilon", 1e-12)?;
    let attributes =
        [("axis", AttributeValue::Int(-1)), ("epsilon", AttributeValue::Float(epsilon))];
    let made = of.nodes("norm", op, inputs, &attributes, 1)?;
    made.first().copied().ok_or_else(|| of.error("it has no result"))
}

/// The norm of a sum of two or three operands; `shift` and `bias` are input numbers. The fourth
/// output is the sum; mean and deviation are outputs of the norm.
fn skip_norm(of: &mut NodeComposition, op: &str, [shift, bias]: [usize; 2]) -> Composed {
    let x = of.input(0)?;
    let skip = of.optional(1);
    let scale = of.input(2)?;
    let sum = of.plus("skip", x, skip)?;
    let bias = of.optional(bias);
    let sum = of.plus("bias", sum, bias)?;
    let shift = of.optional(shift);
    let y = norm(of, op, &[Some(sum), Some(scale), shift][..if shift.is_some() { 3 } else { 2 }])?;
    Ok(Some(vec![Some(y), None, None, Some(sum)]))
}

/// Rows of tables of words, positions and segments, added and normalised; and the length of each
/// text.
fn embed(of: &mut NodeComposition) -> Composed {
    let words = of.input(0)?;
    let table = of.input(2)?;
    let tokens = *of.dims(words).last().ok_or_else(|| of.error("its tokens have no axes"))?;
    let mut sum = of.node("words", "Gather", &[table, words], &[])?;
    let places = of.input(3)?;
    let rows = match of.optional(8) {
        Some(positions) => of.node("places", "Gather", &[places, positions], &[])?,
        None => of.slice("places", places, 0, [0, tokens])?,
    };
    sum = of.plus("places/add", sum, Some(rows))?;
    if let (Some(segments), Some(table)) = (of.optional(1), of.optional(4)) {
        let rows = of.node("segments", "Gather", &[table, segments], &[])?;
        sum = of.plus("segments/add", sum, Some(rows))?;
    }
    let scale = of.input(5)?;
    let shift = of.optional(6);
    let y = norm(of, "LayerNormalization", &[Some(sum), Some(scale), shift])?;
    let mut lengths = None;
    if of.outputs > 1 {
        lengths = Some(match of.optional(7) {
            Some(mask) => {
                let axis = of.ints(vec![1])?;
                let none = [("keepdims", AttributeValue::Int(0))];
                let sum = of.node("lengths", "ReduceSum", &[mask, axis], &none)?;
                of.cast("lengths/type", sum, ElementKind::Int32)?
            }
            None => {
                let batch = of.dims(words)[0];
                let zero = of.number(ElementKind::Int32, 0.0)?;
                of.expand("lengths", zero, &[batch])?
            }
        });
    }
    Ok(Some(vec![Some(y), lengths, Some(sum)]))
}
