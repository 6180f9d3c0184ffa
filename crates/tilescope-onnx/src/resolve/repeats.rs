//! Loops whose iterations are all alike: the body is resolved once, and its nodes repeat.
//!
//! PopART runs a `Loop` in the same way: its body is one function in a `Repeat`, the results of an
//! iteration are copied to the operands of the next one, and parts of scanned tensors are sliced
//! and updated in place (popart willow/src/popx/op/loopx.cpp, willow/src/op/loop.cpp).

use super::attributes::NodeIdentity;
use super::loops::COMPOSED_OPSET;
use super::scope::Scope;
use super::{MAX_INLINED, NodeParts, Resolver};
use crate::attributes::{AttributeValue, Attributes};
use crate::constant::ConstantData;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::{OnnxNode, OnnxRepeat, OnnxRepeatId, RepeatPart, ValueId, ValueSource};
use crate::proto::{AttributeValueProto, GraphProto, NodeProto, ValueInfoProto};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The maximum number of iterations of a repeat. A run executes each of them.
const MAX_TRIPS: u64 = 1 << 20;

/// Attributes that place a node. All nodes of a repeat are in one place.
const PLACES: [&str; 3] = ["__pipeline_stage", "__ipu_number", "__execution_phase"];

/// Operators whose results are views of their operands.
const VIEWS: [&str; 9] = [
    "Concat",
    "Flatten",
    "Identity",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
];

/// A loop that may become a repeat.
pub(super) struct RepeatRequest<'r, 'f> {
    pub of: (&'r NodeIdentity, &'r NodeParts),
    pub body: &'f GraphProto,
    pub trips: u64,
    /// First values of the tensors that an iteration passes to the next one.
    pub states: &'r [Option<ValueId>],
    /// For a `Loop`, whose body reads its number of iterations and a condition: true if the user
    /// set the number of iterations, whatever the condition is.
    pub counts: Option<bool>,
    /// Tensors that the iterations read parts of, with the axis of the parts.
    pub operands: &'r [(ValueId, usize)],
    /// Axes along which results of iterations are stacked; the first if not listed.
    pub result_axes: &'r [i64],
}

/// A value that passes from one iteration to the next.
#[derive(Clone, Copy)]
struct LoopState {
    first: ValueId,
    /// The tensor that the body reads and an update overwrites. `None` for a constant that all
    /// iterations pass on unchanged.
    tensor: Option<ValueId>,
}

/// The tensors that the body of a repeat reads.
struct LoopOperands {
    states: Vec<LoopState>,
    /// The number of the iteration.
    number: ValueId,
    /// Tensors whose parts the iterations read.
    scanned: Vec<ValueId>,
}

impl<'f> RepeatRequest<'_, 'f> {
    /// The inputs of the body for the states, and those after them.
    fn state_inputs(&self) -> &'f [ValueInfoProto] {
        let first = if self.counts.is_some() { 2 } else { 0 };
        &self.body.inputs[first..]
    }
}

/// The extent of a graph before a loop was added to it.
struct GraphMark {
    values: usize,
    nodes: usize,
    repeats: usize,
    asked: BTreeSet<String>,
    folded: BTreeMap<String, u64>,
    composed: BTreeMap<String, u64>,
    repeat: Option<OnnxRepeatId>,
    text_bytes: usize,
    visited: usize,
    inlined: usize,
}

/// The result of an attempt to resolve a body once.
enum Attempt {
    Done(Vec<Option<ValueId>>),
    /// The constants at these positions of the states change from iteration to iteration.
    Changing(Vec<usize>),
    /// The iterations differ in more than values.
    Unlike,
}

impl<'f> Resolver<'f> {
    /// Adds a loop as a repeat. Returns its results, or `None` if its iterations are not alike and
    /// it must be unrolled.
    pub(super) fn repeated(
        &mut self,
        of: &RepeatRequest<'_, 'f>,
        scope: &Scope<'f, '_>,
    ) -> Option<Vec<Option<ValueId>>> {
        let given: Vec<ValueId> = of.states.iter().copied().collect::<Option<_>>()?;
        let read = given.iter().copied().chain(of.operands.iter().map(|(id, _)| *id));
        let is_plain = |id: ValueId| {
            self.values[id.index()].elements() > 0 && !self.sequences.contains_key(&id)
        };
        let can_repeat = !self.given.unrolls
            && (2..=MAX_TRIPS).contains(&of.trips)
            && !places_nodes(&of.body.nodes)
            && read.clone().all(is_plain);
        if !can_repeat {
            return None;
        }
        let mut is_constant: Vec<bool> =
            given.iter().map(|id| self.values[id.index()].content.is_some()).collect();
        // Nodes of rejected attempts count, so that nested loops cannot be tried without end.
        while self.rejected < MAX_INLINED {
            let mark = self.mark();
            let attempt = self.body_once(of, &given, &is_constant, scope);
            match attempt {
                Ok(Attempt::Done(results)) => return Some(results),
                Ok(Attempt::Changing(places)) => {
                    self.reset_to(mark);
                    for place in places {
                        is_constant[place] = false;
                    }
                }
                // An error of the body itself comes again when the loop is unrolled.
                Ok(Attempt::Unlike) | Err(_) => {
                    self.reset_to(mark);
                    return None;
                }
            }
        }
        None
    }

    fn mark(&self) -> GraphMark {
        GraphMark {
            values: self.values.len(),
            nodes: self.nodes.len(),
            repeats: self.repeats.len(),
            asked: self.asked.clone(),
            folded: self.folded.clone(),
            composed: self.composed.clone(),
            repeat: self.repeat,
            text_bytes: self.text_bytes,
            visited: self.visited,
            inlined: self.inlined,
        }
    }

    fn reset_to(&mut self, mark: GraphMark) {
        self.rejected += 1 + self.inlined - mark.inlined;
        self.values.truncate(mark.values);
        self.nodes.truncate(mark.nodes);
        self.repeats.truncate(mark.repeats);
        self.sequences.retain(|id, _| id.index() < mark.values);
        self.asked = mark.asked;
        self.folded = mark.folded;
        self.composed = mark.composed;
        self.repeat = mark.repeat;
        self.text_bytes = mark.text_bytes;
        self.visited = mark.visited;
        self.inlined = mark.inlined;
    }

    /// Adds the nodes of a repeat. Constants that all iterations pass on stay constants.
    fn body_once(
        &mut self,
        of: &RepeatRequest<'_, 'f>,
        given: &[ValueId],
        is_constant: &[bool],
        scope: &Scope<'f, '_>,
    ) -> Result<Attempt, OnnxError> {
        let (identity, _) = of.of;
        let first_value = self.values.len();
        let operands = self.loop_operands(of, given, is_constant)?;
        let mut shared = Scope::of_branch(scope, of.body, identity)?;
        self.initializers(&of.body.initializers, &mut shared)?;
        let before = self.nodes.len();
        let outer = self.begin_repeat(identity, of.trips)?;
        let made = self.body_nodes(of, &operands, &shared)?;
        let goes_on = match of.counts {
            None | Some(true) => true,
            Some(false) => self.scalar(made[0]).is_some_and(|value| value != 0.0),
        };
        let made = &made[usize::from(of.counts.is_some())..];
        let is_sequence = made.iter().any(|id| self.sequences.contains_key(id));
        if !goes_on || is_sequence {
            return Ok(Attempt::Unlike);
        }
        let (next, scanned) = made.split_at(given.len());
        if let Some(difference) = self.difference(&operands.states, next) {
            return Ok(difference);
        }
        let buffers = self.buffers(of, scanned)?;
        let mut stacks = Vec::with_capacity(scanned.len());
        for (at, (buffer, value)) in buffers.iter().zip(scanned).enumerate() {
            let name = format!("scanned_{at}/update");
            let ty = self.type_of(*buffer);
            let inputs = [*buffer, *value, operands.number];
            stacks.push(self.repeat_part(of.of, RepeatPart::Write, &name, &inputs, ty)?);
        }
        let last = self.updates(of.of, &operands, next)?;
        self.repeat = outer;
        self.put_before(before, first_value, &buffers);
        let mut results: Vec<Option<ValueId>> = last.into_iter().map(Some).collect();
        for (at, stack) in stacks.into_iter().enumerate() {
            let rank = self.values[stack.index()].dims.len();
            let axis = of.result_axes.get(at).copied().unwrap_or(0);
            let axis = super::loops::from_front(axis, rank)
                .ok_or_else(|| identity.error("a scan axis does not exist"))?;
            let name = format!("scanned_{at}");
            results.push(Some(self.with_axis_moved(of.of, &name, stack, (0, axis))?));
        }
        Ok(Attempt::Done(results))
    }

    /// Adds the nodes before a repeat: its states, and the tensors that it reads parts of.
    fn loop_operands(
        &mut self,
        of: &RepeatRequest<'_, 'f>,
        given: &[ValueId],
        is_constant: &[bool],
    ) -> Result<LoopOperands, OnnxError> {
        let (identity, _) = of.of;
        let mut states = Vec::with_capacity(given.len());
        for ((first, keep), input) in given.iter().zip(is_constant).zip(of.state_inputs()) {
            let tensor = if *keep { None } else { Some(self.state(of.of, &input.name, *first)?) };
            states.push(LoopState { first: *first, tensor });
        }
        let zero = self.known(identity, ElementKind::Int64, Vec::new(), int(0))?;
        let number = self.state(of.of, "iteration", zero)?;
        let mut scanned = Vec::with_capacity(of.operands.len());
        for ((id, axis), input) in of.operands.iter().zip(&of.body.inputs[given.len()..]) {
            let id = self.with_axis_moved(of.of, &input.name, *id, (*axis, 0))?;
            let ty = self.type_of(id);
            let name = format!("{}/scanned", input.name);
            scanned.push(self.repeat_part(of.of, RepeatPart::Operand, &name, &[id], ty)?);
        }
        Ok(LoopOperands { states, number, scanned })
    }

    /// Adds the nodes of the body. Returns its results.
    fn body_nodes(
        &mut self,
        of: &RepeatRequest<'_, 'f>,
        operands: &LoopOperands,
        shared: &Scope<'f, '_>,
    ) -> Result<Vec<ValueId>, OnnxError> {
        let (identity, _) = of.of;
        let body = of.body;
        let mut inner = Scope::of_body(shared, body, identity)?;
        if of.counts.is_some() {
            let yes = ConstantData::Bools(vec![true]);
            let yes = self.known(identity, ElementKind::Bool, Vec::new(), yes)?;
            inner.pass(Arc::clone(&body.inputs[0].name), Some(operands.number));
            inner.pass(Arc::clone(&body.inputs[1].name), Some(yes));
        }
        for (input, state) in of.state_inputs().iter().zip(&operands.states) {
            inner.pass(Arc::clone(&input.name), Some(state.tensor.unwrap_or(state.first)));
        }
        for (input, whole) in body.inputs[operands.states.len()..].iter().zip(&operands.scanned) {
            let (element, dims) = self.type_of(*whole);
            let ty = (element, dims[1..].to_vec());
            let inputs = [*whole, operands.number];
            let part = self.repeat_part(of.of, RepeatPart::Slice, &input.name, &inputs, ty)?;
            inner.pass(Arc::clone(&input.name), Some(part));
        }
        self.turn(body, identity, &mut inner)
    }

    /// The way in which the next values of states differ from what they must be.
    fn difference(&self, states: &[LoopState], next: &[ValueId]) -> Option<Attempt> {
        let mut changing = Vec::new();
        for (place, (state, next)) in states.iter().zip(next).enumerate() {
            let [was, is] = [state.first, *next].map(|id| &self.values[id.index()]);
            if (was.element, &was.dims) != (is.element, &is.dims) {
                return Some(Attempt::Unlike);
            }
            if state.tensor.is_none() && was.content != is.content {
                changing.push(place);
            }
        }
        if changing.is_empty() { None } else { Some(Attempt::Changing(changing)) }
    }

    /// Overwrites the states with their next values at the end of an iteration, and counts it.
    /// Returns the last values of the states.
    fn updates(
        &mut self,
        of: (&NodeIdentity, &NodeParts),
        operands: &LoopOperands,
        next: &[ValueId],
    ) -> Result<Vec<ValueId>, OnnxError> {
        let number = operands.number;
        let one = self.known(of.0, ElementKind::Int64, Vec::new(), int(1))?;
        let inputs = [Some(number), Some(one)];
        for counted in self.part(of, ("iteration/next", "Add"), &inputs, &[], 1)? {
            self.update(of, counted, number)?;
        }
        let mut held = Vec::with_capacity(next.len());
        for (state, next) in operands.states.iter().zip(next) {
            // A state that becomes the next value of another must not be overwritten before that.
            let is_of_other = self.views_another(*next, state.tensor, &operands.states);
            held.push(if is_of_other { self.state(of, "held", *next)? } else { *next });
        }
        let mut last = Vec::with_capacity(next.len());
        for (state, next) in operands.states.iter().zip(held) {
            last.push(match state.tensor {
                None => state.first,
                Some(tensor) => self.update(of, next, tensor)?,
            });
        }
        Ok(last)
    }

    /// True if a value is a state other than `own`, or a view of one, which has no memory of its own.
    fn views_another(&self, id: ValueId, own: Option<ValueId>, states: &[LoopState]) -> bool {
        let mut left = vec![id];
        let mut seen = BTreeSet::new();
        while let Some(id) = left.pop() {
            if states.iter().any(|of| of.tensor == Some(id)) {
                if own != Some(id) {
                    return true;
                }
                continue;
            }
            let ValueSource::Node(node) = self.values[id.index()].source else { continue };
            let node = &self.nodes[node];
            if node.domain.is_empty() && VIEWS.contains(&&*node.op) && seen.insert(id) {
                left.extend(node.inputs.iter().flatten());
            }
        }
        false
    }

    /// Overwrites a state with its next value, unless it does not change.
    fn update(
        &mut self,
        of: (&NodeIdentity, &NodeParts),
        next: ValueId,
        state: ValueId,
    ) -> Result<ValueId, OnnxError> {
        if next == state {
            return Ok(state);
        }
        let name = format!("{}/next", self.values[state.index()].name);
        let ty = self.type_of(state);
        self.named_part(of, RepeatPart::Update, &name, &[next, state], ty)
    }

    /// Begins the nodes of a repeat. Returns the repeat around it.
    fn begin_repeat(
        &mut self,
        identity: &NodeIdentity,
        trips: u64,
    ) -> Result<Option<OnnxRepeatId>, OnnxError> {
        let outer = self.repeat;
        let id = u32::try_from(self.repeats.len());
        let id = id.map_err(|_| identity.error("there are too many loops"))?;
        self.repeats.push(OnnxRepeat { name: identity.name.clone(), trips, outer });
        self.repeat = Some(OnnxRepeatId(id));
        Ok(outer)
    }

    /// Adds the tensors that hold the results of all iterations. Their nodes are outside the
    /// repeat, but come after it until their types are known.
    fn buffers(
        &mut self,
        of: &RepeatRequest<'_, 'f>,
        scanned: &[ValueId],
    ) -> Result<Vec<ValueId>, OnnxError> {
        let inside = self.repeat;
        self.repeat = inside.and_then(|id| self.repeats[id.index()].outer);
        let mut buffers = Vec::with_capacity(scanned.len());
        for (at, value) in scanned.iter().enumerate() {
            let (element, mut dims) = self.type_of(*value);
            dims.insert(0, of.trips);
            let name = format!("scanned_{at}/buffer");
            let ty = (element, dims);
            buffers.push(self.repeat_part(of.of, RepeatPart::Buffer, &name, &[], ty)?);
        }
        self.repeat = inside;
        Ok(buffers)
    }

    /// Moves the nodes that make some values to a place before other nodes, whose values begin at
    /// `first_value`.
    fn put_before(&mut self, place: usize, first_value: usize, values: &[ValueId]) {
        debug_assert!(place <= self.nodes.len(), "nodes only move forwards");
        let mut moved = vec![false; self.nodes.len()];
        for id in values {
            if let ValueSource::Node(node) = self.values[id.index()].source {
                moved[node] = true;
            }
        }
        let nodes = self.nodes.split_off(place);
        let (first, rest): (Vec<_>, Vec<_>) = (place..).zip(nodes).partition(|(at, _)| moved[*at]);
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        for (old, node) in first.into_iter().chain(rest) {
            numbers.insert(old, self.nodes.len());
            self.nodes.push(node);
        }
        for value in &mut self.values[first_value..] {
            if let ValueSource::Node(node) = &mut value.source {
                *node = numbers.get(node).copied().unwrap_or(*node);
            }
        }
    }

    fn type_of(&self, id: ValueId) -> (ElementKind, Vec<u64>) {
        let value = &self.values[id.index()];
        (value.element, value.dims.clone())
    }

    /// Adds a tensor that begins with a value and can change.
    fn state(
        &mut self,
        of: (&NodeIdentity, &NodeParts),
        name: &str,
        first: ValueId,
    ) -> Result<ValueId, OnnxError> {
        let ty = self.type_of(first);
        self.repeat_part(of, RepeatPart::State, name, &[first], ty)
    }

    /// Returns a value with one axis moved to another place.
    fn with_axis_moved(
        &mut self,
        of: (&NodeIdentity, &NodeParts),
        name: &str,
        id: ValueId,
        (from, to): (usize, usize),
    ) -> Result<ValueId, OnnxError> {
        if from == to {
            return Ok(id);
        }
        let mut order: Vec<usize> = (0..self.values[id.index()].dims.len()).collect();
        order.remove(from);
        order.insert(to, from);
        let order = order.into_iter().filter_map(|axis| i64::try_from(axis).ok()).collect();
        let order = [("perm", AttributeValue::Ints(order))];
        let name = format!("{name}/transposed");
        let made = self.part(of, (&name, "Transpose"), &[Some(id)], &order, 1)?;
        made.first().copied().ok_or_else(|| of.0.error("it has no result"))
    }

    /// Adds a node that connects a repeat with others. `part` names it below the loop.
    fn repeat_part(
        &mut self,
        of: (&NodeIdentity, &NodeParts),
        task: RepeatPart,
        part: &str,
        inputs: &[ValueId],
        ty: (ElementKind, Vec<u64>),
    ) -> Result<ValueId, OnnxError> {
        self.named_part(of, task, &format!("{}/{part}", of.0.name), inputs, ty)
    }

    fn named_part(
        &mut self,
        (identity, parts): (&NodeIdentity, &NodeParts),
        task: RepeatPart,
        name: &str,
        inputs: &[ValueId],
        (element, dims): (ElementKind, Vec<u64>),
    ) -> Result<ValueId, OnnxError> {
        self.keep_inlined(identity)?;
        self.keep_text(identity, name.len())?;
        let source = ValueSource::Node(self.nodes.len());
        let output = self.value(name, element, dims, source, || identity.place())?;
        let (op, _) = parts.source.split_once('@').unwrap_or((&parts.source, ""));
        self.nodes.push(OnnxNode {
            name: name.to_owned(),
            op: op.to_owned(),
            domain: String::new(),
            opset: COMPOSED_OPSET,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![Some(output)],
            attributes: Attributes::new(name, Vec::new()),
            metadata: Arc::clone(&parts.metadata),
            scope: identity.scope.clone(),
            source: Some(Arc::clone(&parts.source)),
            repeat: self.repeat,
            repeat_part: Some(task),
        });
        Ok(output)
    }
}

fn int(value: i64) -> ConstantData {
    ConstantData::Ints(vec![value])
}

/// True if a node, or one in its branches, has an annotation that places it.
fn places_nodes(nodes: &[NodeProto]) -> bool {
    nodes.iter().flat_map(|node| &node.attributes).any(|attribute| match &attribute.value {
        AttributeValueProto::Graph(graph) => places_nodes(&graph.nodes),
        _ => PLACES.contains(&&*attribute.name),
    })
}
