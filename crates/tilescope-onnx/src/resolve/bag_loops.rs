//! `EmbeddingBag` of PyTorch, which its exporter writes as a `Loop` over the bags: each iteration
//! looks up the rows between two offsets and reduces them to one (torch/onnx/symbolic_opset11.py,
//! embedding_bag). The number of rows of a bag depends on data, but not the number of all rows.

use super::loops::COMPOSED_OPSET;
use super::scope::Scope;
use super::{NodeIdentity, NodeParts, Resolver};
use crate::attributes::{Attribute, AttributeValue, Attributes};
use crate::compose::{self, Composed, NodeComposition};
use crate::error::OnnxError;
use crate::graph::ValueId;
use crate::proto::{AttributeValueProto, GraphProto, NodeProto};

/// Operators that change neither the values nor the order of the elements of a number or a list.
const PASSED: [&str; 5] = ["Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"];

/// The operands of a loop over bags.
struct BagLoop {
    table: ValueId,
    indices: ValueId,
    /// The first row of each bag, possibly with the end of the last one.
    starts: ValueId,
    /// The reduction, as PyTorch numbers it.
    mode: i64,
}

impl<'f> Resolver<'f> {
    /// The results of a loop over the bags of an `EmbeddingBag`. `None` for another loop.
    pub(super) fn bag_loop(
        &mut self,
        of: (&NodeIdentity, &NodeParts),
        body: &'f GraphProto,
        trips: u64,
        scope: &Scope<'f, '_>,
    ) -> Result<Option<Vec<Option<ValueId>>>, OnnxError> {
        let Some(found) = BagLoop::of(body, scope) else { return Ok(None) };
        let dims = |id: ValueId| &self.values[id.index()].dims;
        let &[starts] = &dims(found.starts)[..] else { return Ok(None) };
        if dims(found.table).len() != 2 || !(trips..=trips.saturating_add(1)).contains(&starts) {
            return Ok(None);
        }
        // The list may have the end of the last bag, too.
        let has_end = i64::from(starts > trips);
        let inputs = [Some(found.table), Some(found.indices), Some(found.starts)];
        let attributes = [("mode", found.mode), ("include_last_offset", has_end)];
        self.call_bags(of, &attributes, &inputs, compose::embedding_bag)
    }

    /// Composes ATen's call of an `EmbeddingBag` with these attributes in place of a loop.
    pub(super) fn call_bags(
        &mut self,
        (identity, parts): (&NodeIdentity, &NodeParts),
        attributes: &[(&str, i64)],
        inputs: &[Option<ValueId>],
        compose: impl FnOnce(&mut NodeComposition) -> Composed,
    ) -> Composed {
        let call = AttributeValue::Text(compose::BAG_CALL.to_owned());
        let mut list = vec![Attribute { name: "operator".to_owned(), value: call }];
        for (name, value) in attributes {
            list.push(Attribute { name: (*name).to_owned(), value: AttributeValue::Int(*value) });
        }
        compose(&mut NodeComposition {
            resolver: self,
            identity,
            parts,
            op: "ATen",
            attributes: &Attributes::new(&identity.name, list),
            opset: COMPOSED_OPSET,
            inputs,
            outputs: 1,
        })
    }
}

impl BagLoop {
    fn of(body: &GraphProto, scope: &Scope) -> Option<Self> {
        let ([number, _], [_, row]) = (&body.inputs[..], &body.outputs[..]) else { return None };
        let reduction = maker(body, &row.name)?;
        let mode = match &*reduction.op {
            "ReduceSum" => 0,
            "ReduceMean" => 1,
            "ReduceMax" => 2,
            _ => return None,
        };
        let lookup = maker(body, reduction.inputs.first()?).filter(|node| takes_rows(node))?;
        let bag = maker(body, lookup.inputs.get(1)?).filter(|node| *node.op == *"Slice")?;
        let mut bounds = Vec::new();
        for bound in bag.inputs.get(1..3)? {
            let taken = maker(body, bound).filter(|node| takes_rows(node))?;
            if passed_from(body, taken.inputs.get(1)?) != &*number.name {
                return None;
            }
            bounds.push(scope.find(taken.inputs.first()?)?);
        }
        let table = scope.find(lookup.inputs.first()?)?;
        let indices = scope.find(bag.inputs.first()?)?;
        Some(Self { table, indices, starts: *bounds.first()?, mode })
    }
}

/// The node that makes a value of a body, without nodes that pass it on.
fn maker<'g>(body: &'g GraphProto, name: &'g str) -> Option<&'g NodeProto> {
    made_by(body, passed_from(body, name))
}

fn made_by<'g>(body: &'g GraphProto, name: &str) -> Option<&'g NodeProto> {
    body.nodes.iter().find(|node| node.outputs.iter().any(|output| **output == *name))
}

/// The value that nodes pass on under this name.
fn passed_from<'g>(body: &'g GraphProto, name: &'g str) -> &'g str {
    let mut name = name;
    // A body that was checked has no circle, but each node passes a value on only once.
    for _ in &body.nodes {
        match made_by(body, name).and_then(|node| Some((node, node.inputs.first()?))) {
            Some((node, operand)) if PASSED.contains(&&*node.op) => name = operand,
            _ => break,
        }
    }
    name
}

/// True for a `Gather` along the first axis.
pub(super) fn takes_rows(node: &NodeProto) -> bool {
    let other = node.attributes.iter().any(|attribute| match &attribute.value {
        AttributeValueProto::Plain(AttributeValue::Int(axis)) => *axis != 0,
        _ => true,
    });
    *node.op == *"Gather" && !other
}
