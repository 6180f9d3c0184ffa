//! Matrix products.

use super::{NodeView, ShapeRule, TensorType, broadcast};
use crate::attributes::Attributes;
use crate::error::OnnxError;
use std::collections::BTreeMap;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "MatMul" => |view| {
            let element = view.input(0)?.element;
            Ok(vec![TensorType { element, dims: product_dims(view)? }])
        },
        "Gemm" => gemm,
        "Einsum" => einsum,
        "Attention" => attention,
        _ => return None,
    })
}

/// The shape of a product as in numpy's `matmul`: vectors are rows or columns, leading dimensions
/// broadcast.
fn product_dims(view: &NodeView) -> Result<Vec<u64>, OnnxError> {
    let a = &view.input(0)?.dims;
    let b = &view.input(1)?.dims;
    let to_error = || view.error(format!("shapes {a:?} and {b:?} cannot be multiplied"));
    let Some((&columns, a_rows)) = a.split_last() else { return Err(to_error()) };
    let Some((&last, b_rest)) = b.split_last() else { return Err(to_error()) };
    let (rows, b_columns) = match b_rest.split_last() {
        Some((&rows, _)) => (rows, Some(last)),
        None => (last, None),
    };
    if columns != rows {
        return Err(to_error());
    }
    let (a_row, a_groups) =
        a_rows.split_last().map_or((None, &[][..]), |(row, rest)| (Some(*row), rest));
    let b_groups = b_rest.split_last().map_or(&[][..], |(_, rest)| rest);
    let mut dims = broadcast(a_groups, b_groups).ok_or_else(to_error)?;
    dims.extend(a_row.into_iter().chain(b_columns));
    Ok(dims)
}

fn gemm(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let a = view.input(0)?;
    let b = view.input(1)?;
    let get_matrix = |dims: &[u64], transposed: &str| match dims {
        [rows, columns] if view.int_or(transposed, 0)? == 0 => Ok((*rows, *columns)),
        [rows, columns] => Ok((*columns, *rows)),
        other => Err(view.error(format!("{other:?} is not a matrix"))),
    };
    let (rows, inner) = get_matrix(&a.dims, "transA")?;
    let (b_inner, columns) = get_matrix(&b.dims, "transB")?;
    if inner != b_inner {
        let problem = format!("{rows} by {inner} times {b_inner} by {columns}");
        return Err(view.error(problem));
    }
    let dims = vec![rows, columns];
    if let Some(bias) = view.optional(2)
        && broadcast(&dims, &bias.dims).as_ref() != Some(&dims)
    {
        return Err(view.error(format!("a bias of shape {:?} for {dims:?}", bias.dims)));
    }
    Ok(vec![TensorType { element: a.element, dims }])
}

/// The labels of an `Einsum`.
pub(crate) struct EinsumLabels {
    /// Labels of each operand.
    pub operands: Vec<Vec<char>>,
    /// Labels of the output.
    pub output: Vec<char>,
    /// Label -> size, including the leading dimensions of `...`.
    pub sizes: BTreeMap<char, u64>,
}

/// A label for a dimension of `...`: a character that no equation has.
fn ellipsis_label(at: usize) -> char {
    u32::try_from(at).ok().and_then(|at| char::from_u32(0xe000 + at)).unwrap_or('\u{e000}')
}

impl EinsumLabels {
    /// The labels of an equation, with sizes from the operands' shapes.
    pub(crate) fn new(equation: &str, shapes: &[&[u64]]) -> Option<Self> {
        // Labels are letters; those for dimensions of `...` cannot be written by users.
        if !equation.is_ascii() {
            return None;
        }
        let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match equation.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (equation.as_str(), None),
        };
        let terms: Vec<&str> = left.split(',').collect();
        if terms.len() != shapes.len() {
            return None;
        }
        let mut operands = Vec::new();
        let mut hidden = 0;
        for (term, shape) in terms.iter().zip(shapes) {
            let labels = term.chars().filter(|c| *c != '.').count();
            let extra = shape.len().checked_sub(labels)?;
            if extra > 0 && !term.contains("...") {
                return None;
            }
            hidden = hidden.max(extra);
            operands.push(labels_of(term, extra));
        }
        // The dimensions of `...` are counted from the last.
        for (labels, shape) in operands.iter_mut().zip(shapes) {
            let own = labels.iter().filter(|c| **c >= ellipsis_label(0)).count();
            let shift = hidden - own;
            let of_dots = labels.iter_mut().filter(|c| **c >= ellipsis_label(0));
            for (at, label) in of_dots.enumerate() {
                *label = ellipsis_label(shift + at);
            }
            if labels.len() != shape.len() {
                return None;
            }
        }
        let sizes = label_sizes(&operands, shapes)?;
        let output = match right {
            Some(right) => labels_of(right, hidden),
            None => implied_output(&operands, hidden),
        };
        if output.iter().all(|label| sizes.contains_key(label)) {
            Some(Self { operands, output, sizes })
        } else {
            None
        }
    }
}

fn label_sizes(operands: &[Vec<char>], shapes: &[&[u64]]) -> Option<BTreeMap<char, u64>> {
    let mut sizes: BTreeMap<char, u64> = BTreeMap::new();
    for (labels, shape) in operands.iter().zip(shapes) {
        for (label, size) in labels.iter().zip(*shape) {
            let known = sizes.entry(*label).or_insert(*size);
            match (*known, *size) {
                (known, size) if known == size => {}
                (1, size) => *known = size,
                (_, 1) => {}
                _ => return None,
            }
        }
    }
    Some(sizes)
}

/// The labels of a term, with one for each dimension of `...`.
fn labels_of(term: &str, hidden: usize) -> Vec<char> {
    let Some((before, after)) = term.split_once("...") else { return term.chars().collect() };
    before.chars().chain((0..hidden).map(ellipsis_label)).chain(after.chars()).collect()
}

/// The output of an equation without `->`: labels that occur once, in alphabetical order.
fn implied_output(operands: &[Vec<char>], hidden: usize) -> Vec<char> {
    let mut counts: BTreeMap<char, usize> = BTreeMap::new();
    for label in operands.iter().flatten().filter(|label| **label < ellipsis_label(0)) {
        *counts.entry(*label).or_insert(0) += 1;
    }
    let once = counts.into_iter().filter(|(_, count)| *count == 1).map(|(label, _)| label);
    (0..hidden).map(ellipsis_label).chain(once).collect()
}

fn einsum(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let equation = view.attributes.text("equation")?.unwrap_or_default();
    let shapes: Vec<&[u64]> = view.inputs.iter().flatten().map(|value| &*value.dims).collect();
    let labels = EinsumLabels::new(equation, &shapes);
    let labels = labels.ok_or_else(|| view.error(format!("{equation:?} of {shapes:?}")))?;
    let dims =
        labels.output.iter().map(|label| labels.sizes.get(label).copied().unwrap_or(1)).collect();
    Ok(vec![TensorType { element: view.input(0)?.element, dims }])
}

/// `Attention` of version 23: operands of rank 4 (batch, heads, sequence, head size), or of rank 3
/// with the heads folded into the last dimension.
fn attention(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let sizes = AttentionDims::new(view)?;
    let element = view.input(0)?.element;
    let make_type = |dims: Vec<u64>| TensorType { element, dims };
    let AttentionDims { batch, query_heads, key_heads, queries, keys, head, value_head } = sizes;
    let output = if view.input(0)?.dims.len() == 3 {
        vec![batch, queries, query_heads.saturating_mul(value_head)]
    } else {
        vec![batch, query_heads, queries, value_head]
    };
    Ok(vec![
        make_type(output),
        make_type(vec![batch, key_heads, keys, head]),
        make_type(vec![batch, key_heads, keys, value_head]),
        make_type(vec![batch, query_heads, queries, keys]),
    ])
}

/// Sizes of an `Attention`.
pub(crate) struct AttentionDims {
    pub batch: u64,
    pub query_heads: u64,
    pub key_heads: u64,
    pub queries: u64,
    /// Number of keys, including those of earlier calls.
    pub keys: u64,
    pub head: u64,
    pub value_head: u64,
}

impl AttentionDims {
    fn new(view: &NodeView) -> Result<Self, OnnxError> {
        let shapes = [view.input(0)?, view.input(1)?, view.input(2)?].map(|value| &*value.dims);
        let past = view.optional(4).map(|past| &*past.dims);
        Self::of_shapes(shapes, past, view.attributes)?.ok_or_else(|| {
            view.error("its operands have neither four dimensions nor three and numbers of heads")
        })
    }

    /// Sizes from the shapes of queries, keys, values and earlier keys; `None` if they do not fit
    /// an attention.
    pub(crate) fn of_shapes(
        [query, key, value]: [&[u64]; 3],
        past: Option<&[u64]>,
        attributes: &Attributes,
    ) -> Result<Option<Self>, OnnxError> {
        let past = past.and_then(|past| past.get(2)).copied().unwrap_or(0);
        let get_heads = |name: &str| -> Result<Option<u64>, OnnxError> {
            let heads = attributes.int(name)?.and_then(|heads| u64::try_from(heads).ok());
            Ok(heads.filter(|heads| *heads > 0))
        };
        Ok(match (query, key, value) {
            (
                &[batch, query_heads, queries, head],
                &[_, key_heads, keys, _],
                &[_, _, _, value_head],
            ) => {
                let keys = keys.saturating_add(past);
                Some(Self { batch, query_heads, key_heads, queries, keys, head, value_head })
            }
            (&[batch, queries, columns], &[_, keys, _], &[_, _, value_columns]) => {
                let query_heads = get_heads("q_num_heads")?;
                let key_heads = get_heads("kv_num_heads")?;
                let Some(query_heads) = query_heads else { return Ok(None) };
                let Some(key_heads) = key_heads else { return Ok(None) };
                let head = columns / query_heads;
                let value_head = value_columns / key_heads;
                let keys = keys.saturating_add(past);
                Some(Self { batch, query_heads, key_heads, queries, keys, head, value_head })
            }
            _ => None,
        })
    }

    /// Multiplications of queries with keys and of their weights with values.
    pub(crate) fn macs(&self) -> Option<u64> {
        let sizes = [self.query_heads, self.queries, self.keys];
        let scores =
            sizes.iter().try_fold(self.batch, |product, size| product.checked_mul(*size))?;
        scores.checked_mul(self.head.checked_add(self.value_head)?)
    }
}
