//! Lifetime of the operands and results of an operation.

use super::work::MemoryConstraint;
use std::ops::Range;

/// Lifetime of the operands and results of an operation, in phases of its work, and placement
/// constraints of its vertices. By default they are live during all phases, without constraints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperandLiveness {
    /// For each input, the first phase that no longer reads it. Inputs that are not listed are read
    /// until the end.
    pub inputs_until: Vec<Option<usize>>,
    /// For each output, the first phase that writes it. Outputs that are not listed are written
    /// from the beginning.
    pub outputs_from: Vec<usize>,
    /// Placement constraint of the inputs.
    pub input_constraint: MemoryConstraint,
    /// Placement constraint of the outputs.
    pub output_constraint: MemoryConstraint,
}

impl OperandLiveness {
    /// For each input, the phases that need it, in a work of `phases` phases.
    pub(crate) fn input_phases(&self, phases: usize) -> impl Iterator<Item = Range<usize>> {
        let listed = self.inputs_until.iter().copied().chain(std::iter::repeat(None));
        listed.map(move |until| 0..until.unwrap_or(phases))
    }

    /// For each output, the phases in which it exists, in a work of `phases` phases.
    pub(crate) fn output_phases(&self, phases: usize) -> impl Iterator<Item = Range<usize>> {
        let listed = self.outputs_from.iter().copied().chain(std::iter::repeat(0));
        listed.map(move |from| from..phases)
    }
}
