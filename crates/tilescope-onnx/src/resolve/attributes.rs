//! Name, module path and attributes of a node in its scope.

use super::scope::Scope;
use crate::attributes::{Attribute, AttributeValue, Attributes};
use crate::check;
use crate::error::OnnxError;
use crate::proto::{AttributeProto, AttributeValueProto, NodeProto};

/// The metadata key under which dynamo writes the modules of a node, the outermost first, each with
/// its path: `['', 'encoder', 'encoder.layer.0', 'linear_3']`. The last is the node itself.
const NAME_SCOPES: &str = "pkg.torch.onnx.name_scopes";

/// The maximum number of attributes of a node; above any operator's number.
const MAX_ATTRIBUTES: usize = 1000;

/// The names of a node.
#[derive(Clone)]
pub(crate) struct NodeIdentity {
    pub name: String,
    /// Its name in the user's decisions, which is the same in all iterations of a loop.
    pub decision: String,
    op: String,
    /// Modules that it belongs to.
    pub scope: Option<Vec<String>>,
}

impl NodeIdentity {
    /// The identity of a node; `number` distinguishes nodes without a name and an output.
    pub(super) fn new(node: &NodeProto, scope: &Scope, number: usize) -> Self {
        let output = node.outputs.iter().find(|output| !output.is_empty());
        let own = if node.name.is_empty() { output } else { Some(&node.name) };
        let own = match own {
            Some(name) => name.to_string(),
            None => format!("{}_{number}", node.op),
        };
        let name = scope.value_name(&own);
        let decision = scope.decision_name(&own);
        let modules = module_path(node).or_else(|| scope.modules());
        Self { name, decision, op: node.op.to_string(), scope: modules }
    }

    /// The identity of a part of it that becomes a node.
    pub(crate) fn part(&self, part: &str, op: &str) -> Self {
        let name = format!("{}/{part}", self.name);
        let decision = self.decision.clone();
        Self { name, decision, op: op.to_owned(), scope: self.scope.clone() }
    }

    /// Size of its names in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.name.len() + self.scope.iter().flatten().map(String::len).sum::<usize>()
    }

    /// Its name in messages.
    pub(crate) fn place(&self) -> String {
        check::place(&self.name, &self.op)
    }

    /// An error at this node.
    pub(crate) fn error(&self, problem: impl Into<String>) -> OnnxError {
        OnnxError::Graph { place: self.place(), problem: problem.into() }
    }
}

/// Modules of a node: from dynamo's metadata, or else from the path in its name, which the classic
/// exporter writes as `/encoder/layer.0/dense/MatMul`.
fn module_path(node: &NodeProto) -> Option<Vec<String>> {
    if let Some((_, scopes)) = node.metadata.iter().find(|(key, _)| key == NAME_SCOPES) {
        return Some(relative_paths(scopes));
    }
    let path = node.name.strip_prefix('/')?;
    let (modules, _) = path.rsplit_once('/').unwrap_or_default();
    Some(modules.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect())
}

/// The list of paths, each without the prefix that it shares with the previous one; the last path
/// is left out.
fn relative_paths(list: &str) -> Vec<String> {
    let quoted: Vec<&str> = list.split('\'').skip(1).step_by(2).collect();
    let modules = quoted.split_last().map_or(&[][..], |(_, modules)| modules);
    let mut before = "";
    let mut parts = Vec::new();
    for path in modules {
        let inside = path
            .strip_prefix(before)
            .and_then(|rest| if before.is_empty() { Some(rest) } else { rest.strip_prefix('.') });
        let part = inside.unwrap_or(path);
        if !part.is_empty() {
            parts.push(part.to_owned());
        }
        before = path;
    }
    parts
}

impl Scope<'_, '_> {
    /// The attributes of a node; references in a function are replaced by attributes of the call.
    pub(super) fn attributes(
        &self,
        node: &NodeProto,
        identity: &NodeIdentity,
    ) -> Result<Attributes, OnnxError> {
        if node.attributes.len() > MAX_ATTRIBUTES {
            return Err(identity.error(format!("it has {} attributes", node.attributes.len())));
        }
        let mut list: Vec<Attribute> = Vec::with_capacity(node.attributes.len());
        for attribute in &node.attributes {
            if list.iter().any(|known| known.name == *attribute.name) {
                let problem = format!("its attribute {:?} is set twice", attribute.name);
                return Err(identity.error(problem));
            }
            if let Some(value) = self.attribute_value(attribute) {
                list.push(Attribute { name: attribute.name.to_string(), value });
            }
        }
        Ok(Attributes::new(&identity.name, list))
    }

    fn attribute_value(&self, attribute: &AttributeProto) -> Option<AttributeValue> {
        match &attribute.value {
            AttributeValueProto::Plain(value) => Some(value.clone()),
            AttributeValueProto::Graph(_) => Some(AttributeValue::Other),
            AttributeValueProto::Reference(name) => self.argument(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_dynamo_are_split_into_modules() {
        let scopes =
            "['', 'm', 'm.encoder', 'm.encoder.layer.2', 'm.encoder.layer.2.dense', 'linear_16']";
        assert_eq!(relative_paths(scopes), ["m", "encoder", "layer.2", "dense"]);
        assert_eq!(relative_paths("['', 'add_1']"), [""; 0]);
        assert_eq!(relative_paths("[]"), [""; 0]);
    }
}
