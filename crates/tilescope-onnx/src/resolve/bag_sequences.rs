//! `EmbeddingBag` of PyTorch, which its newer exporter writes as a `Loop` that inserts the reduced
//! rows of each bag into a sequence (onnxscript/function_libs/torch_lib/ops/core.py,
//! aten_embedding_bag and aten_embedding_bag_padding_idx). The rows are looked up before the loop.

use super::bag_loops::takes_rows;
use super::inline::graph_attribute;
use super::scope::Scope;
use super::{NodeIdentity, NodeParts, Resolver};
use crate::attributes::AttributeValue;
use crate::compose;
use crate::error::OnnxError;
use crate::graph::ValueId;
use crate::proto::{AttributeValueProto, GraphProto, NodeProto};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The operators of such a loop. One that has only these cannot do anything else with the rows.
const OPERATORS: [&str; 27] = [
    "Add",
    "Cast",
    "CastLike",
    "Concat",
    "Constant",
    "Div",
    "Equal",
    "Expand",
    "Gather",
    "Greater",
    "Identity",
    "If",
    "Less",
    "Loop",
    "Not",
    "ReduceMax",
    "ReduceMean",
    "ReduceSum",
    "Reshape",
    "SequenceInsert",
    "Shape",
    "Size",
    "Slice",
    "Squeeze",
    "Sub",
    "Unsqueeze",
    "Where",
];

/// The operands of such a loop.
struct BagSequence {
    rows: ValueId,
    /// The first row of each bag, and the end of the last one.
    offsets: ValueId,
    /// The reduction, as PyTorch numbers it.
    mode: i64,
    /// Indices of the rows, and the index whose rows are left out.
    padding: Option<(ValueId, i64)>,
}

impl<'f> Resolver<'f> {
    /// The results of a loop that inserts the reduced rows of bags into a sequence. `None` for
    /// another loop.
    pub(super) fn bag_sequence(
        &mut self,
        of: (&NodeIdentity, &NodeParts),
        body: &'f GraphProto,
        states: &[Option<ValueId>],
        scope: &Scope<'f, '_>,
    ) -> Result<Option<Vec<Option<ValueId>>>, OnnxError> {
        let [Some(first), Some(second)] = *states else { return Ok(None) };
        let is_first = self.starts_bags(first, second);
        if !is_first && !self.starts_bags(second, first) {
            return Ok(None);
        }
        let Some(found) = BagSequence::of(self, body, scope) else { return Ok(None) };
        let bags = self.values[found.offsets.index()].dims[0].saturating_sub(1);
        let mut attributes =
            vec![("mode", found.mode), ("include_last_offset", 1), ("looked_up", 1)];
        let mut indices = None;
        if let Some((id, index)) = found.padding {
            attributes.push(("padding_idx", index));
            indices = Some(id);
        }
        let inputs = [Some(found.rows), indices, Some(found.offsets)];
        let made =
            self.call_bags(of, &attributes, &inputs, |of| compose::bags_in_sequence(of, bags))?;
        let Some(mut states) = made else { return Ok(None) };
        if !is_first {
            states.reverse();
        }
        Ok(Some(states))
    }

    /// True if one state is a sequence without tensors, and the other one counts from 0.
    fn starts_bags(&self, sequence: ValueId, count: ValueId) -> bool {
        self.sequences.get(&sequence).is_some_and(Vec::is_empty) && self.scalar(count) == Some(0.0)
    }

    fn rank(&self, id: ValueId) -> usize {
        self.values[id.index()].dims.len()
    }
}

impl BagSequence {
    fn of<'f>(
        resolver: &Resolver<'f>,
        body: &'f GraphProto,
        scope: &Scope<'f, '_>,
    ) -> Option<Self> {
        let mut reader = BodyReader {
            resolver,
            scope,
            makers: HashMap::new(),
            own: HashSet::new(),
            reductions: BTreeSet::new(),
            outside: [Vec::new(), Vec::new()],
            compared: Vec::new(),
            depth: 0,
        };
        reader.graph(body)?;
        let mode = match reader.reductions.iter().copied().collect::<Vec<_>>()[..] {
            ["ReduceSum"] => 0,
            // The last bag is a sum, divided by its length.
            ["ReduceMean"] | ["ReduceMean", "ReduceSum"] => 1,
            ["ReduceMax"] => 2,
            _ => return None,
        };
        let [outer, inner] = &reader.outside;
        let mut rows = Vec::new();
        let mut lists = Vec::new();
        for id in outer {
            let is_float = resolver.values[id.index()].element.is_float();
            if is_float { rows.push(*id) } else { lists.push(*id) }
        }
        let [rows] = rows[..] else { return None };
        let [offsets] = lists[..] else { return None };
        if resolver.rank(rows) != 2 || resolver.rank(offsets) != 1 {
            return None;
        }
        let padding = match (&inner[..], &reader.compared[..]) {
            ([], _) => None,
            ([indices], [index]) if resolver.rank(*indices) == 1 => Some((*indices, *index)),
            _ => return None,
        };
        Some(Self { rows, offsets, mode, padding })
    }
}

/// A walk over the body of a loop and the branches in it that may run.
struct BodyReader<'r, 'o, 'f> {
    resolver: &'r Resolver<'f>,
    scope: &'r Scope<'f, 'o>,
    /// Name -> node of the body that makes it.
    makers: HashMap<&'f str, &'f NodeProto>,
    /// Names of operands of the bodies.
    own: HashSet<&'f str>,
    reductions: BTreeSet<&'f str>,
    /// Tensors from outside that nodes take parts of, in the loop and in loops in it.
    outside: [Vec<ValueId>; 2],
    /// Known numbers that loops in it compare indices with.
    compared: Vec<i64>,
    /// Number of loops around.
    depth: usize,
}

impl<'f> BodyReader<'_, '_, 'f> {
    /// Reads a graph; `None` if it does something else.
    fn graph(&mut self, graph: &'f GraphProto) -> Option<()> {
        self.own.extend(graph.inputs.iter().map(|input| &*input.name));
        self.own.extend(graph.initializers.iter().map(|tensor| &*tensor.name));
        graph.nodes.iter().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &'f NodeProto) -> Option<()> {
        if !node.domain.is_empty() || !OPERATORS.contains(&&*node.op) {
            return None;
        }
        self.makers.extend(node.outputs.iter().map(|output| (&**output, node)));
        match &*node.op {
            "ReduceMax" | "ReduceMean" | "ReduceSum" => {
                self.reductions.insert(&node.op);
            }
            "Slice" if node.inputs.len() == 3 => self.part_of(node)?,
            "Gather" if takes_rows(node) => self.part_of(node)?,
            "Slice" | "Gather" => return None,
            "Equal" if self.depth > 0 => {
                let numbers = node.inputs.iter().filter_map(|name| self.number(name));
                #[expect(clippy::cast_possible_truncation, reason = "an index of a row")]
                let numbers: Vec<i64> = numbers.map(|number| number as i64).collect();
                self.compared.extend(numbers);
            }
            "If" => {
                let branches = match self.number(node.inputs.first()?) {
                    Some(condition) if condition != 0.0 => &["then_branch"][..],
                    Some(_) => &["else_branch"],
                    None => &["then_branch", "else_branch"],
                };
                for name in branches {
                    self.graph(graph_attribute(node, name)?)?;
                }
            }
            "Loop" => {
                self.depth += 1;
                self.graph(graph_attribute(node, "body")?)?;
                self.depth -= 1;
            }
            _ => {}
        }
        Some(())
    }

    /// Notes the tensor that a node takes a part of.
    fn part_of(&mut self, node: &NodeProto) -> Option<()> {
        let name = &**node.inputs.first()?;
        if self.is_own(name) {
            return None;
        }
        let id = self.scope.find(name)?;
        let outside = &mut self.outside[self.depth.min(1)];
        if !outside.contains(&id) {
            outside.push(id);
        }
        Some(())
    }

    fn is_own(&self, name: &str) -> bool {
        self.own.contains(name) || self.makers.contains_key(name)
    }

    /// The value of a name, if it is a known number.
    fn number(&self, name: &str) -> Option<f64> {
        if self.own.contains(name) {
            return None;
        }
        let Some(node) = self.makers.get(name) else {
            return self.resolver.scalar(self.scope.find(name)?);
        };
        match &*node.op {
            "Constant" => node.attributes.iter().find_map(|attribute| match &attribute.value {
                AttributeValueProto::Plain(AttributeValue::Int(value)) => {
                    Some(f64::from(i32::try_from(*value).ok()?))
                }
                AttributeValueProto::Plain(AttributeValue::Tensor { content, .. }) => {
                    content.as_ref()?.scalar()
                }
                _ => None,
            }),
            "Cast" | "CastLike" | "Identity" => self.number(node.inputs.first()?),
            "Equal" => {
                let [left, right] = &node.inputs[..] else { return None };
                Some(f64::from(self.number(left)? == self.number(right)?))
            }
            _ => None,
        }
    }
}
