//! Loops whose iterations are known before the program runs. A loop whose iterations are all alike
//! becomes a repeat. Others are unrolled: copies of their bodies follow one another, with the same
//! weights. The user's decisions on branches and iterations are looked up here, too.

use super::attributes::NodeIdentity;
use super::inline::{graph_attribute, results};
use super::repeats::RepeatRequest;
use super::scope::Scope;
use super::{MAX_INLINED, NodeDraft, Resolver};
use crate::attributes::{Attribute, AttributeValue, Attributes};
use crate::constant::{ConstantData, ConstantTensor};
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::{OnnxNode, ValueId, ValueSource};
use crate::proto::{GraphProto, Name, NodeProto};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Version of the standard operators that replace others.
pub(crate) const COMPOSED_OPSET: u32 = 23;

impl<'f> Resolver<'f> {
    /// The user's choice of the branch of an `If`: true for the first.
    pub(super) fn given_branch(&mut self, identity: &NodeIdentity) -> Option<bool> {
        let given = self.given;
        self.decision(identity, &given.branches)
    }

    /// The user's decision on a node: on one iteration of a loop, or on all.
    fn decision<V: Copy>(
        &mut self,
        identity: &NodeIdentity,
        given: &BTreeMap<String, V>,
    ) -> Option<V> {
        self.asked.insert(identity.decision.clone());
        if let Some(value) = given.get(&identity.name) {
            self.asked.insert(identity.name.clone());
            return Some(*value);
        }
        given.get(&identity.decision).copied()
    }

    /// The maximum number of results of operators whose number of results depends on data.
    pub(crate) fn max_results(&self) -> Option<u64> {
        self.given.max_results.or(self.open.max_results)
    }

    /// Refuses decisions that no node used.
    pub(super) fn check_given(&self) -> Result<(), OnnxError> {
        let given = self.given.branches.keys().chain(self.given.trips.keys());
        for name in given {
            if !self.asked.contains(name) {
                let known: Vec<String> = self.asked.iter().cloned().collect();
                return Err(OnnxError::UnknownDecision { name: name.clone(), known });
            }
        }
        Ok(())
    }

    /// The node that makes a value.
    pub(crate) fn maker(&self, id: ValueId) -> Option<&OnnxNode> {
        match self.values[id.index()].source {
            ValueSource::Node(node) => self.nodes.get(node),
            _ => None,
        }
    }

    /// Adds a known tensor.
    pub(crate) fn known(
        &mut self,
        identity: &NodeIdentity,
        element: ElementKind,
        dims: Vec<u64>,
        data: ConstantData,
    ) -> Result<ValueId, OnnxError> {
        let name = format!("{}/constant_{}", identity.name, self.values.len());
        let content = ConstantTensor { dims: dims.clone(), data };
        let id = self.value(&name, element, dims, ValueSource::Constant, || identity.place())?;
        self.values[id.index()].content = Some(Arc::new(content));
        Ok(id)
    }

    /// Adds a standard node that replaces another, or a part of it.
    pub(crate) fn part(
        &mut self,
        of: (&NodeIdentity, &NodeParts),
        (part, op): (&str, &str),
        inputs: &[Option<ValueId>],
        attributes: &[(&str, AttributeValue)],
        outputs: usize,
    ) -> Result<Vec<ValueId>, OnnxError> {
        let (identity, parts) = of;
        let identity = identity.part(part, op);
        let list = attributes
            .iter()
            .map(|(name, value)| Attribute { name: (*name).to_owned(), value: value.clone() });
        let attributes = Attributes::new(&identity.name, list.collect());
        let mut names = vec![Some(identity.name.clone())];
        names.extend((1..outputs).map(|at| Some(format!("{}_{at}", identity.name))));
        names.truncate(outputs);
        let draft = NodeDraft {
            op,
            domain: "",
            opset: COMPOSED_OPSET,
            attributes,
            metadata: &parts.metadata,
            outputs: names,
            source: Some(Arc::clone(&parts.source)),
            identity,
        };
        Ok(self.add(draft, inputs.to_vec(), &|_| None)?.into_iter().flatten().collect())
    }

    /// Unrolls a `Loop` with its known number of iterations, or the user's.
    pub(super) fn counted_loop(
        &mut self,
        node: &'f NodeProto,
        identity: &NodeIdentity,
        inputs: &[Option<ValueId>],
        scope: &mut Scope<'f, '_>,
    ) -> Result<(), OnnxError> {
        let body = self.body(node, identity)?;
        let carried = inputs.get(2..).unwrap_or_default();
        if body.inputs.len() != carried.len() + 2 || body.outputs.len() <= carried.len() {
            return Err(identity.error("operands and results of its body do not match"));
        }
        let decisions = self.given;
        let mut given = self.decision(identity, &decisions.trips);
        let most = inputs.first().copied().flatten().map(|id| self.scalar(id));
        #[expect(clippy::cast_possible_truncation, reason = "a float converts to its nearest")]
        #[expect(clippy::cast_sign_loss, reason = "below zero there is no turn")]
        let known = most.flatten().map(|most| most.max(0.0) as u64);
        let key = format!("model.trips.{}", identity.decision);
        let is_open = || {
            identity.error(format!(
                "its trip count is computed at run time: set {key} to a number, or export the \
                 model with a constant trip count"
            ))
        };
        if most == Some(None) && given.is_none() {
            self.open.add(&key, is_open);
            given = Some(1);
        }
        let parts = NodeParts::of(node, scope);
        let starts = condition_holds(self, inputs.get(1).copied().flatten());
        if starts
            && most.is_none()
            && let Some(values) = self.bag_sequence((identity, &parts), body, carried, scope)?
        {
            return self.take_loop_results(node, identity, &values, scope);
        }
        let trips = given.or(known.filter(|_| starts));
        if let Some(trips) = trips {
            if carried.is_empty()
                && let Some(values) = self.bag_loop((identity, &parts), body, trips, scope)?
            {
                return self.take_loop_results(node, identity, &values, scope);
            }
            let request = RepeatRequest {
                of: (identity, &parts),
                body,
                trips,
                states: carried,
                counts: Some(given.is_some()),
                operands: &[],
                result_axes: &[],
            };
            if let Some(values) = self.repeated(&request, scope) {
                return self.take_loop_results(node, identity, &values, scope);
            }
        }
        let mut shared = Scope::of_branch(scope, body, identity)?;
        self.initializers(&body.initializers, &mut shared)?;
        let mut values = carried.to_vec();
        let mut condition = inputs.get(1).copied().flatten();
        let mut stacks: Vec<Vec<ValueId>> =
            vec![Vec::new(); body.outputs.len() - 1 - carried.len()];
        let mut turn = 0;
        loop {
            let goes_on = match condition {
                None => Some(true),
                Some(id) => self.scalar(id).map(|value| value != 0.0),
            };
            let is_over = match given {
                Some(trips) => turn >= trips,
                None => known.is_some_and(|most| turn >= most) || goes_on == Some(false),
            };
            if is_over {
                break;
            }
            if given.is_none() && (goes_on.is_none() || known.is_none() && condition.is_none()) {
                self.open.add(&key, is_open);
                given = Some(turn);
                continue;
            }
            if turn > MAX_INLINED as u64 {
                return Err(identity.error(format!("it has more than {MAX_INLINED} iterations")));
            }
            let mut inner = Scope::of_turn(&shared, body, identity, turn)?;
            let number = i64::try_from(turn).unwrap_or(i64::MAX);
            let number = ConstantData::Ints(vec![number]);
            let number = self.known(identity, ElementKind::Int64, Vec::new(), number)?;
            let condition_in = match condition {
                Some(id) => id,
                None => {
                    let data = ConstantData::Bools(vec![true]);
                    self.known(identity, ElementKind::Bool, Vec::new(), data)?
                }
            };
            inner.pass(Arc::clone(&body.inputs[0].name), Some(number));
            inner.pass(Arc::clone(&body.inputs[1].name), Some(condition_in));
            for (input, value) in body.inputs[2..].iter().zip(&values) {
                inner.pass(Arc::clone(&input.name), *value);
            }
            let made = self.turn(body, identity, &mut inner)?;
            condition = Some(made[0]);
            let (next, scanned) = made[1..].split_at(carried.len());
            values = next.iter().copied().map(Some).collect();
            for (stack, value) in stacks.iter_mut().zip(scanned) {
                stack.push(*value);
            }
            turn += 1;
        }
        for stack in &stacks {
            values.push(Some(self.stacked((identity, &parts), stack, 0)?));
        }
        self.take_loop_results(node, identity, &values, scope)
    }

    /// Unrolls a `Scan`, with an iteration for each part of its operands.
    pub(super) fn scan(
        &mut self,
        node: &'f NodeProto,
        identity: &NodeIdentity,
        inputs: &[Option<ValueId>],
        scope: &mut Scope<'f, '_>,
    ) -> Result<(), OnnxError> {
        let body = self.body(node, identity)?;
        let attributes = scope.attributes(node, identity)?;
        if scope.opset("") < 9 {
            return Err(identity.error(
                "Scan of opset 8 is not supported: export the model with opset 9 or later",
            ));
        }
        let scanned =
            attributes.int("num_scan_inputs")?.and_then(|count| usize::try_from(count).ok());
        let states = scanned.and_then(|scanned| inputs.len().checked_sub(scanned));
        let fits = |states: &usize| {
            *states < inputs.len()
                && body.inputs.len() == inputs.len()
                && body.outputs.len() >= *states
        };
        let Some(states) = states.filter(fits) else {
            return Err(identity.error("operands and results of its body do not match"));
        };
        let get_listed = |name: &str, at: usize| -> Result<i64, OnnxError> {
            Ok(attributes.ints(name)?.and_then(|list| list.get(at)).copied().unwrap_or(0))
        };
        let mut operands = Vec::new();
        let mut trips = None;
        for (at, id) in inputs[states..].iter().enumerate() {
            let Some(id) = *id else { return Err(identity.error("an operand is missing")) };
            let rank = self.values[id.index()].dims.len();
            let axis = from_front(get_listed("scan_input_axes", at)?, rank);
            let axis = axis.ok_or_else(|| identity.error("a scan axis does not exist"))?;
            let size = self.values[id.index()].dims[axis];
            if trips.is_some_and(|trips| trips != size) {
                return Err(identity.error("its operands have different lengths"));
            }
            trips = Some(size);
            operands.push((id, axis, get_listed("scan_input_directions", at)? != 0));
        }
        let trips = trips.unwrap_or(0);
        let parts = NodeParts::of(node, scope);
        let results = body.outputs.len() - states;
        let axes: Result<Vec<i64>, OnnxError> =
            (0..results).map(|at| get_listed("scan_output_axes", at)).collect();
        let scanned: Vec<(ValueId, usize)> =
            operands.iter().map(|(id, axis, _)| (*id, *axis)).collect();
        // The direction of a scan changes neither the work nor the memory of an iteration.
        let request = RepeatRequest {
            of: (identity, &parts),
            body,
            trips,
            states: &inputs[..states],
            counts: None,
            operands: &scanned,
            result_axes: &axes?,
        };
        if let Some(values) = self.repeated(&request, scope) {
            return self.take_loop_results(node, identity, &values, scope);
        }
        if trips > MAX_INLINED as u64 {
            return Err(identity.error(format!("it has more than {MAX_INLINED} iterations")));
        }
        let mut shared = Scope::of_branch(scope, body, identity)?;
        self.initializers(&body.initializers, &mut shared)?;
        let mut values = inputs[..states].to_vec();
        let mut stacks: Vec<Vec<ValueId>> = vec![Vec::new(); body.outputs.len() - states];
        for turn in 0..trips {
            let mut inner = Scope::of_turn(&shared, body, identity, turn)?;
            for (input, value) in body.inputs.iter().zip(&values) {
                inner.pass(Arc::clone(&input.name), *value);
            }
            for (input, (id, axis, is_backwards)) in body.inputs[states..].iter().zip(&operands) {
                let place = if *is_backwards { trips - 1 - turn } else { turn };
                let place = ConstantData::Ints(vec![i64::try_from(place).unwrap_or(0)]);
                let place = self.known(identity, ElementKind::Int64, Vec::new(), place)?;
                let part = format!("{turn}/{}", input.name);
                let axis = AttributeValue::Int(i64::try_from(*axis).unwrap_or(0));
                let operands = [Some(*id), Some(place)];
                let of = (identity, &parts);
                let made = self.part(of, (&part, "Gather"), &operands, &[("axis", axis)], 1)?;
                inner.pass(Arc::clone(&input.name), made.first().copied());
            }
            let made = self.turn(body, identity, &mut inner)?;
            let (next, scanned) = made.split_at(states);
            values = next.iter().copied().map(Some).collect();
            for (stack, value) in stacks.iter_mut().zip(scanned) {
                stack.push(*value);
            }
        }
        for (at, stack) in stacks.iter_mut().enumerate() {
            if get_listed("scan_output_directions", at)? != 0 {
                stack.reverse();
            }
            let axis = get_listed("scan_output_axes", at)?;
            values.push(Some(self.stacked((identity, &parts), stack, axis)?));
        }
        self.take_loop_results(node, identity, &values, scope)
    }

    fn body(
        &self,
        node: &'f NodeProto,
        identity: &NodeIdentity,
    ) -> Result<&'f GraphProto, OnnxError> {
        graph_attribute(node, "body").ok_or_else(|| identity.error("it has no body"))
    }

    /// Counts a loop, and gives its results to the nodes after it.
    fn take_loop_results(
        &mut self,
        node: &NodeProto,
        identity: &NodeIdentity,
        values: &[Option<ValueId>],
        scope: &mut Scope<'f, '_>,
    ) -> Result<(), OnnxError> {
        *self.composed.entry(node.op.to_string()).or_insert(0) += 1;
        self.take_results(node, identity, values, scope)
    }

    /// The only element of a value, if known.
    pub(super) fn scalar(&self, id: ValueId) -> Option<f64> {
        self.values[id.index()].content.as_ref()?.scalar()
    }

    /// Adds the nodes of one iteration. Returns their results.
    pub(super) fn turn(
        &mut self,
        body: &'f GraphProto,
        identity: &NodeIdentity,
        inner: &mut Scope<'f, '_>,
    ) -> Result<Vec<ValueId>, OnnxError> {
        for node in &body.nodes {
            self.node(node, inner)?;
        }
        let names: Vec<Name> = body.outputs.iter().map(|info| Arc::clone(&info.name)).collect();
        let made: Option<Vec<ValueId>> = results(&names, inner).into_iter().collect();
        made.ok_or_else(|| identity.error("no node in its body computes one of its results"))
    }

    /// Stacks tensors of one shape along a new axis.
    pub(crate) fn stacked(
        &mut self,
        of: (&NodeIdentity, &NodeParts),
        values: &[ValueId],
        axis: i64,
    ) -> Result<ValueId, OnnxError> {
        if values.is_empty() {
            return Err(of.0.error("it stacks results of zero iterations"));
        }
        let axes = self.known(of.0, ElementKind::Int64, vec![1], ConstantData::Ints(vec![axis]))?;
        let name = self.values.len();
        let mut parts = Vec::with_capacity(values.len());
        for (at, value) in values.iter().enumerate() {
            let part = format!("stack_{name}/{at}");
            let operands = [Some(*value), Some(axes)];
            parts.extend(self.part(of, (&part, "Unsqueeze"), &operands, &[], 1)?);
        }
        let parts: Vec<Option<ValueId>> = parts.into_iter().map(Some).collect();
        let part = format!("stack_{name}");
        let attributes = [("axis", AttributeValue::Int(axis))];
        let made = self.part(of, (&part, "Concat"), &parts, &attributes, 1)?;
        made.first().copied().ok_or_else(|| of.0.error("it has no result"))
    }
}

/// Properties that the parts of a node share.
pub(crate) struct NodeParts {
    pub metadata: crate::proto::Properties,
    /// Operator and version.
    pub source: Arc<str>,
}

impl NodeParts {
    fn of(node: &NodeProto, scope: &Scope) -> Self {
        let source = format!("{}@{}", node.op, scope.opset("")).into();
        Self { metadata: Arc::clone(&node.metadata), source }
    }
}

/// True if a loop has no condition, or one that is known to hold.
fn condition_holds(resolver: &Resolver, condition: Option<ValueId>) -> bool {
    condition.is_none_or(|id| resolver.scalar(id).is_some_and(|value| value != 0.0))
}

pub(super) fn from_front(axis: i64, rank: usize) -> Option<usize> {
    let signed = i64::try_from(rank).ok()?;
    usize::try_from(if axis < 0 { axis + signed } else { axis }).ok().filter(|axis| *axis < rank)
}
