//! Inlines nodes: calls of functions, and branches with known conditions.

use super::Resolver;
use super::attributes::NodeIdentity;
use super::scope::Scope;
use crate::error::OnnxError;
use crate::graph::{ValueId, ValueSource};
use crate::proto::{AttributeValueProto, FunctionProto, GraphProto, Name, NodeProto};
use std::sync::Arc;

impl<'f> Resolver<'f> {
    /// Replaces a call by the nodes of the function.
    pub(super) fn call(
        &mut self,
        function: &'f FunctionProto,
        node: &'f NodeProto,
        identity: &NodeIdentity,
        inputs: &[Option<ValueId>],
        scope: &mut Scope<'f, '_>,
    ) -> Result<(), OnnxError> {
        if inputs.len() > function.inputs.len() || node.outputs.len() > function.outputs.len() {
            return Err(identity.error(format!(
                "it has {} inputs and {} outputs, but the function {} and {}",
                inputs.len(),
                node.outputs.len(),
                function.inputs.len(),
                function.outputs.len()
            )));
        }
        let attributes = scope.attributes(node, identity)?;
        self.keep_text(identity, attributes.bytes())?;
        let mut inner = Scope::of_call(scope, function, identity, &attributes)?;
        for (at, name) in function.inputs.iter().enumerate() {
            inner.pass(Arc::clone(name), inputs.get(at).copied().flatten());
        }
        for node in &function.nodes {
            self.node(node, &mut inner)?;
        }
        let results = results(&function.outputs, &inner);
        self.take_results(node, identity, &results, scope)
    }

    /// Replaces an `If` by the nodes of one branch.
    pub(super) fn branch(
        &mut self,
        node: &'f NodeProto,
        identity: &NodeIdentity,
        inputs: &[Option<ValueId>],
        scope: &mut Scope<'f, '_>,
    ) -> Result<(), OnnxError> {
        let condition = inputs.first().copied().flatten();
        let content = condition.and_then(|id| self.values[id.index()].content.clone());
        let known = content.and_then(|content| content.scalar()).map(|condition| condition != 0.0);
        let is_taken = match known.or_else(|| self.given_branch(identity)) {
            Some(is_taken) => is_taken,
            None => {
                let key = format!("model.branch.{}", identity.decision);
                self.open.add(&key, || {
                    identity.error(format!(
                        "its condition is computed at run time: set {key} to then or else, or \
                         export the model with one branch"
                    ))
                });
                true
            }
        };
        let name = if is_taken { "then_branch" } else { "else_branch" };
        let Some(graph) = graph_attribute(node, name) else {
            return Err(identity.error(format!("it has no {name}")));
        };
        let results = self.branch_results(graph, identity, scope)?;
        *self.folded.entry(node.op.to_string()).or_insert(0) += 1;
        self.take_results(node, identity, &results, scope)
    }

    fn branch_results(
        &mut self,
        graph: &'f GraphProto,
        identity: &NodeIdentity,
        scope: &Scope<'f, '_>,
    ) -> Result<Vec<Option<ValueId>>, OnnxError> {
        let mut inner = Scope::of_branch(scope, graph, identity)?;
        self.initializers(&graph.initializers, &mut inner)?;
        for node in &graph.nodes {
            self.node(node, &mut inner)?;
        }
        let names: Vec<Name> = graph.outputs.iter().map(|info| Arc::clone(&info.name)).collect();
        Ok(results(&names, &inner))
    }

    /// Gives results the names of the caller.
    pub(super) fn take_results(
        &mut self,
        node: &NodeProto,
        identity: &NodeIdentity,
        results: &[Option<ValueId>],
        scope: &mut Scope<'f, '_>,
    ) -> Result<(), OnnxError> {
        for (at, name) in node.outputs.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let Some(id) = results.get(at).copied().flatten() else {
                return Err(identity.error(format!("no node in it computes its output {name:?}")));
            };
            let value = &mut self.values[id.index()];
            if matches!(value.source, ValueSource::Node(_)) {
                value.name = scope.value_name(name);
            }
            scope.define(Arc::clone(name), id);
        }
        Ok(())
    }
}

pub(super) fn results(names: &[Name], scope: &Scope) -> Vec<Option<ValueId>> {
    names.iter().map(|name| scope.find(name)).collect()
}

pub(super) fn graph_attribute<'f>(node: &'f NodeProto, name: &str) -> Option<&'f GraphProto> {
    let found = node.attributes.iter().find(|attribute| *attribute.name == *name)?;
    if let AttributeValueProto::Graph(graph) = &found.value { Some(graph) } else { None }
}
