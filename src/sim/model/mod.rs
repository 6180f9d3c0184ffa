//! The layers people name: built-in models, from their published definitions.

mod matmul_chain;
mod mnist;

use crate::sim::graph::{Graph, GraphError};
use crate::sim::spec::{Key, ModelSpec};
use std::fmt;

/// A built-in model.
#[derive(Clone, Copy)]
pub struct ModelDef {
    /// Name in a spec.
    pub name: &'static str,
    /// What it is, one line.
    pub about: &'static str,
    /// Its own sizes, as keys of `[model]`.
    pub sizes: &'static [Key],
    /// Whether it has a loss.
    pub trainable: bool,
    /// Whether it works on batches of samples.
    pub batched: bool,
    /// Builds the forward graph for one micro-batch.
    pub build: fn(&ModelSpec) -> Result<Graph, GraphError>,
}

impl fmt::Debug for ModelDef {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "model {}", self.name)
    }
}

/// Every built-in model, sorted by name.
pub const MODELS: &[ModelDef] = &[matmul_chain::MODEL, mnist::MODEL];

/// The names of all models.
pub fn names() -> Vec<&'static str> {
    MODELS.iter().map(|model| model.name).collect()
}

/// The model of that name.
pub fn find(name: &str) -> Option<&'static ModelDef> {
    MODELS.iter().find(|model| model.name == name)
}

/// The key of a size with a default.
const fn size(path: &'static str, default: &'static str, about: &'static str) -> Key {
    Key {
        path,
        form: crate::sim::spec::Form::Integer(1, crate::sim::spec::keys::LARGEST_SIZE),
        default,
        about,
        also: "",
    }
}
