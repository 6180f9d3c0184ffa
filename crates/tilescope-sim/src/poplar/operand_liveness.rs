//! When operands and results of an operation exist.

use super::work::MemoryConstraint;
use std::ops::Range;

/// When operands and results of an operation exist, in phases of its work, and what its vertices
/// need of their places. By default they exist all the time, anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperandLiveness {
    /// For each input: the phase from which on it is not read any more. Inputs that are not listed
    /// are read until the end.
    pub inputs_until: Vec<Option<usize>>,
    /// For each output: the first phase that writes it. Outputs that are not listed are written
    /// from the beginning.
    pub outputs_from: Vec<usize>,
    /// Where inputs must be.
    pub input_constraint: MemoryConstraint,
    /// Where outputs must be.
    pub output_constraint: MemoryConstraint,
}

impl OperandLiveness {
    /// For each input the phases it is needed in, of a work of so many.
    pub(crate) fn input_phases(&self, phases: usize) -> impl Iterator<Item = Range<usize>> {
        let listed = self.inputs_until.iter().copied().chain(std::iter::repeat(None));
        listed.map(move |until| 0..until.unwrap_or(phases))
    }

    /// For each output the phases it exists in, of a work of so many.
    pub(crate) fn output_phases(&self, phases: usize) -> impl Iterator<Item = Range<usize>> {
        let listed = self.outputs_from.iter().copied().chain(std::iter::repeat(0));
        listed.map(move |from| from..phases)
    }
}
