//! Composed operators, which are written as several standard ones: their table, and their
//! decomposition. The parts have names, shapes and constants like nodes of the file, so readers of
//! the graph only see standard operators.

mod attention;
mod bags;
mod choice;
mod columns;
mod fused;
mod quantized;
mod quantized_ops;
mod sequence;
mod signal;

pub(crate) use bags::BAG_CALL;

use crate::attributes::{AttributeValue, Attributes};
use crate::constant::ConstantData;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::{OnnxValue, ValueId, ValueSource, full_op};
use crate::resolve::{NodeIdentity, NodeParts, Resolver};

/// Values of the outputs of a composed node, including absent ones; `None` if the node is not one
/// of the composed kind.
pub(crate) type Composed = Result<Option<Vec<Option<ValueId>>>, OnnxError>;

/// Writes the parts of a node.
pub(crate) type Compose = fn(&mut NodeComposition) -> Composed;

/// The operator set of Microsoft's runtime.
const MICROSOFT: &str = "com.microsoft";

/// The composed operators of each set, family by family.
const FAMILIES: &[(&str, &[(&str, Compose)])] = &[
    (MICROSOFT, fused::OPS),
    (MICROSOFT, attention::OPS),
    (MICROSOFT, quantized::OPS),
    (MICROSOFT, quantized_ops::OPS),
    ("org.pytorch.aten", bags::OPS),
    ("", columns::OPS),
    ("", quantized::OF_STANDARD),
    ("", sequence::OPS),
    ("", choice::OPS),
    ("", signal::OPS),
    ("", attention::OF_STANDARD),
    ("", fused::OF_STANDARD),
];

/// The composition of an operator, if it has one.
pub(crate) fn find(domain: &str, op: &str) -> Option<Compose> {
    let families = FAMILIES.iter().filter(|(of, _)| *of == domain);
    let mut entries = families.flat_map(|(_, entries)| *entries);
    entries.find(|(name, _)| *name == op).map(|(_, compose)| *compose)
}

/// Composes PyTorch's `EmbeddingBag` from its table, indices and first rows of bags.
pub(crate) fn embedding_bag(of: &mut NodeComposition) -> Composed {
    bags::called(of)
}

/// Composes an `EmbeddingBag`: a sequence of its bags, one row each, and their number.
pub(crate) fn bags_in_sequence(of: &mut NodeComposition, bags: u64) -> Composed {
    let Some(made) = bags::called(of)? else { return Ok(None) };
    let Some(y) = made.first().copied().flatten() else { return Ok(None) };
    let Some(mut made) = sequence::of_slices(of, y, bags)? else { return Ok(None) };
    let count = ConstantData::Ints(signed(&[bags]));
    let count = of.resolver.known(of.identity, ElementKind::Int64, Vec::new(), count)?;
    made.push(Some(count));
    Ok(Some(made))
}

/// Operators that may be decomposed into standard ones, with the prefix of their set.
pub fn composed_operators() -> impl Iterator<Item = String> {
    let loops = ["Loop", "Scan"].map(str::to_owned);
    FAMILIES
        .iter()
        .flat_map(|(domain, entries)| {
            let domain = *domain;
            entries.iter().map(move |(op, _)| full_op(domain, op))
        })
        .chain(loops)
}

/// A node that is being decomposed.
pub(crate) struct NodeComposition<'r, 'f> {
    pub resolver: &'r mut Resolver<'f>,
    pub identity: &'r NodeIdentity,
    pub parts: &'r NodeParts,
    pub op: &'r str,
    pub attributes: &'r Attributes,
    pub opset: u32,
    pub inputs: &'r [Option<ValueId>],
    pub outputs: usize,
}

/// The results of a node with one output.
fn only(value: ValueId) -> Composed {
    Ok(Some(vec![Some(value)]))
}

impl<'r> NodeComposition<'r, '_> {
    fn error(&self, problem: impl Into<String>) -> OnnxError {
        self.identity.error(problem)
    }

    /// An operand that must be present.
    fn input(&self, at: usize) -> Result<ValueId, OnnxError> {
        self.optional(at).ok_or_else(|| self.error(format!("its input {at} is missing")))
    }

    fn optional(&self, at: usize) -> Option<ValueId> {
        self.inputs.get(at).copied().flatten()
    }

    fn value(&self, id: ValueId) -> &OnnxValue {
        &self.resolver.values[id.index()]
    }

    fn dims(&self, id: ValueId) -> Vec<u64> {
        self.value(id).dims.clone()
    }

    fn element(&self, id: ValueId) -> ElementKind {
        self.value(id).element
    }

    /// An attribute that is a size; 0 if it is below zero.
    fn size(&self, name: &str, default: i64) -> Result<u64, OnnxError> {
        Ok(u64::try_from(self.int(name, default)?).unwrap_or(0))
    }

    fn int(&self, name: &str, default: i64) -> Result<i64, OnnxError> {
        Ok(self.attributes.int(name)?.unwrap_or(default))
    }

    fn float(&self, name: &str, default: f64) -> Result<f64, OnnxError> {
        Ok(self.attributes.float(name)?.unwrap_or(default))
    }

    /// A positive count that must be present.
    fn count(&self, name: &str) -> Result<u64, OnnxError> {
        let count = self.attributes.int(name)?.and_then(|count| u64::try_from(count).ok());
        let count = count.filter(|count| *count > 0);
        count.ok_or_else(|| self.error(format!("attribute {name} is missing")))
    }

    /// The attributes of the node, for a part with the same ones.
    fn own_attributes(&self) -> Vec<(&'r str, AttributeValue)> {
        let attributes = self.attributes;
        attributes.iter().map(|own| (own.name.as_str(), own.value.clone())).collect()
    }

    /// An axis counted from 0.
    fn axis(&self, axis: i64, rank: usize) -> Result<usize, OnnxError> {
        let signed = i64::try_from(rank).unwrap_or(i64::MAX);
        let found = if axis < 0 { axis.saturating_add(signed) } else { axis };
        let found = usize::try_from(found).ok().filter(|found| *found < rank);
        found.ok_or_else(|| self.error(format!("axis {axis} of a tensor of {rank} dimensions")))
    }

    /// The integers of a value, if known.
    fn known_ints(&self, id: ValueId) -> Option<Vec<i64>> {
        self.value(id).content.as_ref()?.ints()
    }

    /// The sizes in a value, if known.
    fn known_sizes(&self, id: ValueId) -> Option<Vec<u64>> {
        sizes(&self.known_ints(id)?)
    }

    /// Adds a part with one result.
    fn node(
        &mut self,
        part: &str,
        op: &str,
        inputs: &[ValueId],
        attributes: &[(&str, AttributeValue)],
    ) -> Result<ValueId, OnnxError> {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        self.node_of(part, op, &inputs, attributes)
    }

    /// As [`Self::node`], with operands that may be absent.
    fn node_of(
        &mut self,
        part: &str,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: &[(&str, AttributeValue)],
    ) -> Result<ValueId, OnnxError> {
        let made = self.nodes(part, op, inputs, attributes, 1)?;
        made.first().copied().ok_or_else(|| self.error("one of its parts has no result"))
    }

    /// Adds a part with several results, and operands that may be absent.
    fn nodes(
        &mut self,
        part: &str,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: &[(&str, AttributeValue)],
        outputs: usize,
    ) -> Result<Vec<ValueId>, OnnxError> {
        self.resolver.part((self.identity, self.parts), (part, op), inputs, attributes, outputs)
    }

    /// Adds known integers along one axis.
    fn ints(&mut self, values: Vec<i64>) -> Result<ValueId, OnnxError> {
        let dims = vec![values.len() as u64];
        self.resolver.known(self.identity, ElementKind::Int64, dims, ConstantData::Ints(values))
    }

    /// Adds a known single number.
    fn number(&mut self, element: ElementKind, value: f64) -> Result<ValueId, OnnxError> {
        #[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
        let data = if element.is_float() {
            ConstantData::Floats(vec![value])
        } else {
            ConstantData::Ints(vec![value as i64])
        };
        self.resolver.known(self.identity, element, Vec::new(), data)
    }

    /// Adds a constant tensor whose values do not affect the work.
    fn table(
        &mut self,
        part: &str,
        element: ElementKind,
        dims: Vec<u64>,
    ) -> Result<ValueId, OnnxError> {
        let name = format!("{}/{part}", self.identity.name);
        let identity = self.identity;
        self.resolver.value(&name, element, dims, ValueSource::Constant, || identity.place())
    }

    fn reshape(&mut self, part: &str, x: ValueId, dims: &[u64]) -> Result<ValueId, OnnxError> {
        let dims = signed(dims);
        let shape = self.ints(dims)?;
        self.node(part, "Reshape", &[x, shape], &[("allowzero", AttributeValue::Int(1))])
    }

    fn transpose(&mut self, part: &str, x: ValueId, order: &[i64]) -> Result<ValueId, OnnxError> {
        self.node(part, "Transpose", &[x], &[("perm", AttributeValue::Ints(order.to_vec()))])
    }

    fn cast(&mut self, part: &str, x: ValueId, to: ElementKind) -> Result<ValueId, OnnxError> {
        if self.element(x) == to {
            return Ok(x);
        }
        let to = i64::try_from(to.number()).unwrap_or(0);
        self.node(part, "Cast", &[x], &[("to", AttributeValue::Int(to))])
    }

    /// Adds a slice of an axis from one index up to another.
    fn slice(
        &mut self,
        part: &str,
        x: ValueId,
        axis: usize,
        [from, to]: [u64; 2],
    ) -> Result<ValueId, OnnxError> {
        if from == 0 && self.dims(x).get(axis) == Some(&to) {
            return Ok(x);
        }
        let mut operands = vec![x];
        for number in [from, to, axis as u64] {
            operands.push(self.ints(signed(&[number]))?);
        }
        self.node(part, "Slice", &operands, &[])
    }

    fn unsqueeze(&mut self, part: &str, x: ValueId, axes: &[i64]) -> Result<ValueId, OnnxError> {
        let axes = self.ints(axes.to_vec())?;
        self.node(part, "Unsqueeze", &[x, axes], &[])
    }

    fn expand(&mut self, part: &str, x: ValueId, dims: &[u64]) -> Result<ValueId, OnnxError> {
        let dims = self.ints(signed(dims))?;
        self.node(part, "Expand", &[x, dims], &[])
    }

    /// Adds rows to the rows of zeros that `numbers` name.
    fn row_sums(
        &mut self,
        rows: ValueId,
        numbers: ValueId,
        dims: [u64; 2],
    ) -> Result<ValueId, OnnxError> {
        let zero = self.number(self.element(rows), 0.0)?;
        let empty = self.expand("empty", zero, &dims)?;
        let add = [("reduction", AttributeValue::Text("add".to_owned()))];
        self.node("sums", "ScatterND", &[empty, numbers, rows], &add)
    }

    fn concat(&mut self, part: &str, of: &[ValueId], axis: i64) -> Result<ValueId, OnnxError> {
        self.node(part, "Concat", of, &[("axis", AttributeValue::Int(axis))])
    }

    /// Splits an axis into parts of these lengths.
    fn split(
        &mut self,
        part: &str,
        x: ValueId,
        axis: i64,
        lengths: &[u64],
    ) -> Result<Vec<ValueId>, OnnxError> {
        let count = lengths.len();
        let lengths = self.ints(signed(lengths))?;
        let axis = [("axis", AttributeValue::Int(axis))];
        self.nodes(part, "Split", &[Some(x), Some(lengths)], &axis, count)
    }

    /// Adds an operand, if present, to `x`.
    fn plus(&mut self, part: &str, x: ValueId, y: Option<ValueId>) -> Result<ValueId, OnnxError> {
        match y {
            Some(y) => self.node(part, "Add", &[x, y], &[]),
            None => Ok(x),
        }
    }
}

/// Integers as sizes, if none is below zero.
fn sizes(numbers: &[i64]) -> Option<Vec<u64>> {
    numbers.iter().map(|number| u64::try_from(*number).ok()).collect()
}

/// Sizes as a list of integers; they are far below the largest integer.
fn signed(sizes: &[u64]) -> Vec<i64> {
    sizes.iter().map(|size| i64::try_from(*size).unwrap_or(i64::MAX)).collect()
}
