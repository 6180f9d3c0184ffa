//! What an ONNX file computes: its graph with every shape known, read without its weights.
//!
//! | file | what is in it |
//! |---|---|
//! | `wire`, `proto` | bytes to messages; tensor data are skipped by seeking |
//! | `check` | what must hold of names, order and version |
//! | `file` | [`OnnxFile`]: what was read, its inputs and symbolic dimensions |
//! | `suggested_size` | sizes to begin with for symbolic dimensions |
//! | `resolve` | the one walk: inlines functions and branches, folds, infers shapes |
//! | `compose` | operators that stand for several of the standard's, as a table |
//! | `shape`, `fold` | shapes by operator, a file per family; values of small tensors |
//! | `graph`, `counts` | [`OnnxGraph`]: what is left when all dimensions have values |
//! | `attributes`, `constant`, `element` | attributes of nodes, small known tensors, element types |
//! | `error` | [`OnnxError`]: what is wrong, where, and what would be right |

// A figure that is cut off without a word is a wrong figure; tests count small things.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod attributes;
mod check;
mod compose;
mod constant;
mod counts;
mod element;
mod error;
mod file;
mod fold;
mod graph;
mod proto;
mod resolve;
mod shape;
mod suggested_size;
mod wire;

#[cfg(test)]
mod tests;

pub use attributes::{Attribute, AttributeValue, Attributes};
pub use compose::composed_operators;
pub use constant::{ConstantData, ConstantTensor};
pub use element::ElementKind;
pub use error::OnnxError;
pub use file::{DimValues, Dimension, GraphInput, OnnxFile, Symbol};
pub use fold::is_foldable;
pub use graph::{OnnxGraph, OnnxNode, OnnxValue, ValueId, ValueSource};
