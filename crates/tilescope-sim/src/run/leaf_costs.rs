//! Costs of leaf programs in a run.

use crate::compile::{CompiledProgram, LeafProgramCost};
use tilescope_report::units::{Cycles, ProgramId};

/// Costs of leaf programs, by program number.
#[derive(Clone)]
pub(crate) struct LeafCostTable {
    costs: Vec<Option<LeafProgramCost>>,
}

impl LeafCostTable {
    pub(crate) fn new(compiled: &CompiledProgram) -> Self {
        let mut costs = vec![None; compiled.compilation.programs.len()];
        for (program, cost) in &compiled.leaf_costs {
            costs[program.index()] = Some(*cost);
        }
        Self { costs }
    }

    /// Returns the table with other cycles. `cycles` maps a program and its cycles to the new
    /// cycles.
    pub(crate) fn retimed(mut self, cycles: impl Fn(ProgramId, Cycles) -> Cycles) -> Self {
        for (program, cost) in self.costs.iter_mut().enumerate() {
            let Some(cost) = cost else { continue };
            cost.cycles = cycles(ProgramId::from_index(program), cost.cycles);
            cost.fastest_tile_cycles = cost.fastest_tile_cycles.min(cost.cycles);
        }
        self
    }

    pub(crate) fn cost_of(&self, program: ProgramId) -> &LeafProgramCost {
        let cost = self.costs.get(program.index()).and_then(Option::as_ref);
        cost.unwrap_or_else(|| panic!("program {program:?} has no cost"))
    }
}
