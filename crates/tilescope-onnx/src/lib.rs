//! Reads ONNX files: the graph of a file with every shape known, without its weights.
//!
//! | file | content |
//! |---|---|
//! | `wire`, `proto` | bytes to messages; tensor data are skipped by seeking |
//! | `check` | checks of names, order and version |
//! | `file` | [`OnnxFile`]: the parsed file, its inputs and symbolic dimensions |
//! | `suggested_size` | initial sizes for symbolic dimensions |
//! | `resolve` | the only walk: inlines functions and branches, folds, infers shapes |
//! | `compose` | a table of operators that are replaced by several of the standard's |
//! | `shape`, `fold` | shapes by operator, a file per family; values of small tensors |
//! | `graph`, `counts` | [`OnnxGraph`]: the graph after all dimensions have values |
//! | `attributes`, `constant`, `element` | attributes of nodes, small known tensors, element types |
//! | `error` | [`OnnxError`]: the problem, its place and the remedy |

// A figure that is truncated silently is wrong; tests count small things.
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
pub use graph::{
    OnnxGraph, OnnxNode, OnnxRepeat, OnnxRepeatId, OnnxValue, RepeatPart, ValueId, ValueSource,
};
