//! Names of a graph, a function or a branch, and their values.

use crate::attributes::{AttributeValue, Attributes};
use crate::check;
use crate::error::OnnxError;
use crate::graph::ValueId;
use crate::proto::{
    AttributeValueProto, DimensionProto, FunctionProto, GraphProto, Name, ValueInfoProto,
};
use crate::resolve::attributes::NodeIdentity;
use crate::shape::TensorType;
use std::collections::{BTreeMap, HashMap};

/// The deepest nesting of functions and branches; above any exporter's.
const MAX_DEPTH: u32 = 64;

/// Names of a graph, a function or a branch.
pub(super) struct Scope<'f, 'o> {
    /// Name -> value; `None` for an optional input that the caller left out.
    names: HashMap<Name, Option<ValueId>>,
    /// The enclosing scope of a branch. Functions have no access to their caller.
    outer: Option<&'o Scope<'f, 'o>>,
    /// The prefix of names of an inlined function, `call/`.
    prefix: String,
    /// The prefix of names in the user's decisions, without numbers of iterations.
    decision_prefix: String,
    /// Modules of the call that is being inlined.
    call_modules: Option<Vec<String>>,
    /// Domain and version of the sets of operators.
    opsets: &'f [(Name, i64)],
    /// Types that the file states.
    infos: HashMap<&'f str, &'f ValueInfoProto>,
    /// Attributes of the call, and defaults of the function.
    arguments: BTreeMap<String, AttributeValue>,
    depth: u32,
}

impl<'f, 'o> Scope<'f, 'o> {
    pub(super) fn of_model(opsets: &'f [(Name, i64)], graph: &'f GraphProto) -> Self {
        let prefix = String::new();
        let decision_prefix = String::new();
        let arguments = BTreeMap::new();
        let names = HashMap::new();
        let infos = infos(graph);
        Self {
            names,
            outer: None,
            prefix,
            decision_prefix,
            call_modules: None,
            opsets,
            infos,
            arguments,
            depth: 0,
        }
    }

    /// The scope of a branch, with access to all of `outer`.
    pub(super) fn of_branch(
        outer: &'o Scope<'f, 'o>,
        graph: &'f GraphProto,
        identity: &NodeIdentity,
    ) -> Result<Self, OnnxError> {
        Ok(Self {
            names: HashMap::new(),
            outer: Some(outer),
            prefix: outer.prefix.clone(),
            decision_prefix: outer.decision_prefix.clone(),
            call_modules: outer.call_modules.clone(),
            opsets: outer.opsets,
            infos: infos(graph),
            arguments: outer.arguments.clone(),
            depth: outer.deeper(identity)?,
        })
    }

    /// The scope of one iteration of a loop, whose names are distinguished by `turn`.
    pub(super) fn of_turn(
        outer: &'o Scope<'f, 'o>,
        graph: &'f GraphProto,
        identity: &NodeIdentity,
        turn: u64,
    ) -> Result<Self, OnnxError> {
        let prefix = format!("{}/{turn}/", identity.name);
        let decision_prefix = format!("{}/", identity.decision);
        Ok(Self { prefix, decision_prefix, ..Self::of_branch(outer, graph, identity)? })
    }

    /// The scope of the body of a loop that exists once.
    pub(super) fn of_body(
        outer: &'o Scope<'f, 'o>,
        graph: &'f GraphProto,
        identity: &NodeIdentity,
    ) -> Result<Self, OnnxError> {
        let prefix = format!("{}/", identity.name);
        let decision_prefix = format!("{}/", identity.decision);
        Ok(Self { prefix, decision_prefix, ..Self::of_branch(outer, graph, identity)? })
    }

    /// The scope of a called function.
    pub(super) fn of_call(
        caller: &Scope<'f, '_>,
        function: &'f FunctionProto,
        identity: &NodeIdentity,
        attributes: &Attributes,
    ) -> Result<Self, OnnxError> {
        let mut arguments = BTreeMap::new();
        for default in &function.defaults {
            if let AttributeValueProto::Plain(value) = &default.value {
                arguments.insert(default.name.to_string(), value.clone());
            }
        }
        for given in attributes.iter() {
            arguments.insert(given.name.clone(), given.value.clone());
        }
        let own = !function.opset_imports.is_empty();
        let mut modules = identity.scope.clone().unwrap_or_default();
        let name = identity.name.rsplit('/').next().unwrap_or(&identity.name);
        modules.push(name.to_owned());
        Ok(Self {
            names: HashMap::new(),
            outer: None,
            prefix: format!("{}/", identity.name),
            decision_prefix: format!("{}/", identity.decision),
            call_modules: Some(modules),
            opsets: if own { &function.opset_imports } else { caller.opsets },
            infos: HashMap::new(),
            arguments,
            depth: caller.deeper(identity)?,
        })
    }

    /// True for the scope of a function or branch.
    pub(super) fn is_inner(&self) -> bool {
        self.depth > 0
    }

    fn deeper(&self, identity: &NodeIdentity) -> Result<u32, OnnxError> {
        if self.depth >= MAX_DEPTH {
            let problem = format!("functions and branches are nested more than {MAX_DEPTH} deep");
            return Err(identity.error(problem));
        }
        Ok(self.depth + 1)
    }

    /// Gives a value a name.
    pub(super) fn define(&mut self, name: Name, value: ValueId) {
        self.names.insert(name, Some(value));
    }

    /// Binds a function's input to the caller's value.
    pub(super) fn pass(&mut self, name: Name, value: Option<ValueId>) {
        self.names.insert(name, value);
    }

    /// The value of a name: `Some(None)` for an optional input that was left out.
    pub(super) fn operand(&self, name: &str) -> Option<Option<ValueId>> {
        let own = self.names.get(name).copied();
        own.or_else(|| self.outer.and_then(|outer| outer.operand(name)))
    }

    /// The value of a name.
    pub(super) fn find(&self, name: &str) -> Option<ValueId> {
        self.operand(name).flatten()
    }

    /// A name of this scope, made unique among all scopes.
    pub(super) fn value_name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A name of this scope in the user's decisions.
    pub(super) fn decision_name(&self, name: &str) -> String {
        format!("{}{name}", self.decision_prefix)
    }

    /// Modules of the call that is being inlined.
    pub(super) fn modules(&self) -> Option<Vec<String>> {
        self.call_modules.clone()
    }

    /// Version of an operator set; 0 if the file does not state it.
    pub(super) fn opset(&self, domain: &str) -> u32 {
        let found = self.opsets.iter().find(|(name, _)| check::standard_domain(name) == domain);
        found.and_then(|(_, version)| u32::try_from(*version).ok()).unwrap_or(0)
    }

    /// An attribute of the call.
    pub(super) fn argument(&self, name: &str) -> Option<AttributeValue> {
        self.arguments.get(name).cloned()
    }

    /// The type that the file states for a value, if all its dimensions have values.
    pub(super) fn written_type(
        &self,
        name: &str,
        symbols: &BTreeMap<String, u64>,
    ) -> Option<TensorType> {
        let (element, dims) = self.infos.get(name)?.tensor.as_ref()?;
        let dims = dims
            .as_ref()?
            .iter()
            .map(|dim| match dim {
                DimensionProto::Value(size) => u64::try_from(*size).ok(),
                DimensionProto::Symbol(name) => symbols.get(&**name).copied(),
                DimensionProto::Open => None,
            })
            .collect::<Option<_>>()?;
        Some(TensorType { element: *element, dims })
    }
}

fn infos(graph: &GraphProto) -> HashMap<&str, &ValueInfoProto> {
    graph.value_infos.iter().chain(&graph.outputs).map(|info| (&*info.name, info)).collect()
}
