//! Builders: the translation of each operator of ONNX, for all opsets from 7.
//!
//! An entry of a family names an operator, states if it is a single operator of the simulator or
//! composed of several, and builds it. Every list has a test that runs over all its entries.

mod activation;
mod attention;
mod conv;
mod cumulative;
mod einsum;
mod elementwise;
mod exponential;
mod gather;
mod hyperbolic;
mod index;
mod loss;
mod matmul;
mod norm;
mod pool;
mod quantize;
mod random;
mod recurrent;
mod reduce;
mod repeat;
mod resize;
mod shape;
mod slice;
mod softmax;
mod unary;
mod unknown;

pub(super) use unknown::build as build_unknown;

use super::node_import::NodeImport;
use crate::graph::GraphError;
use std::fmt;
use tilescope_onnx::OnnxNode;

/// The support for an operator of ONNX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpState {
    /// One operator of the simulator.
    Modelled,
    /// Several operators of the simulator.
    Composed,
    /// An unknown operator.
    Unknown,
}

impl OpState {
    /// The name of the state in reports and in `tilescope onnx`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Modelled => "modelled",
            Self::Composed => "composed",
            Self::Unknown => "unknown",
        }
    }
}

/// Builds one node.
pub(super) type Build = fn(&mut NodeImport) -> Result<(), GraphError>;

/// An operator of ONNX.
#[derive(Clone, Copy)]
pub(super) struct OpBuilder {
    /// Name in the standard, such as `Conv`.
    pub op: &'static str,
    pub state: OpState,
    pub build: Build,
}

impl fmt::Debug for OpBuilder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} ({})", self.op, self.state.name())
    }
}

/// An entry for an operator that the simulator has.
const fn modelled(op: &'static str, build: Build) -> OpBuilder {
    OpBuilder { op, state: OpState::Modelled, build }
}

/// An entry for an operator that several operators of the simulator replace.
const fn composed(op: &'static str, build: Build) -> OpBuilder {
    OpBuilder { op, state: OpState::Composed, build }
}

/// All operators, family by family.
const FAMILIES: &[&[OpBuilder]] = &[
    activation::OPS,
    attention::OPS,
    conv::OPS,
    cumulative::OPS,
    einsum::OPS,
    elementwise::OPS,
    exponential::OPS,
    gather::OPS,
    hyperbolic::OPS,
    index::OPS,
    loss::OPS,
    matmul::OPS,
    norm::OPS,
    pool::OPS,
    quantize::OPS,
    random::OPS,
    recurrent::OPS,
    reduce::OPS,
    resize::OPS,
    shape::OPS,
    slice::OPS,
    softmax::OPS,
    unary::OPS,
];

/// The builder of a node. `None` for an operator of another domain than the standard's.
pub(super) fn find(node: &OnnxNode) -> Option<&'static OpBuilder> {
    if node.repeat_part.is_some() {
        return Some(&repeat::PART);
    }
    if !node.domain.is_empty() {
        return None;
    }
    of_standard(&node.op)
}

fn of_standard(op: &str) -> Option<&'static OpBuilder> {
    FAMILIES.iter().copied().flatten().find(|builder| builder.op == op)
}

/// The support for an operator of the standard.
pub fn op_state(op: &str) -> OpState {
    of_standard(op).map_or(OpState::Unknown, |builder| builder.state)
}

/// Names of all operators of the list.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().copied().flatten().map(|builder| builder.op)
}
