//! What leaf programs cost in a run.

use crate::compile::{CompiledProgram, LeafProgramCost};
use std::collections::BTreeSet;
use tilescope_report::units::{Cycles, ProgramId};

/// What leaf programs cost, by their number.
#[derive(Clone)]
pub(crate) struct LeafCostTable<'a> {
    costs: Vec<Option<LeafProgramCost>>,
    /// Syncs between replicas, where these differ.
    replica_syncs: Option<&'a BTreeSet<ProgramId>>,
}

impl<'a> LeafCostTable<'a> {
    pub(crate) fn new(compiled: &'a CompiledProgram, replicas_differ: bool) -> Self {
        let mut costs = vec![None; compiled.compilation.programs.len()];
        for (program, cost) in &compiled.leaf_costs {
            costs[program.index()] = Some(*cost);
        }
        Self { costs, replica_syncs: replicas_differ.then_some(&compiled.replica_syncs) }
    }

    /// The table with other cycles: `cycles` says which, of a program and what it takes now.
    pub(crate) fn retimed(mut self, cycles: impl Fn(ProgramId, Cycles) -> Cycles) -> Self {
        for (program, cost) in self.costs.iter_mut().enumerate() {
            let Some(cost) = cost else { continue };
            cost.cycles = cycles(ProgramId::from_index(program), cost.cycles);
            cost.fastest_tile_cycles = cost.fastest_tile_cycles.min(cost.cycles);
        }
        self
    }

    /// Whether a program is a sync at which replicas can wait for each other.
    pub(crate) fn joins_replicas(&self, program: ProgramId) -> bool {
        self.replica_syncs.is_some_and(|syncs| syncs.contains(&program))
    }

    pub(crate) fn cost_of(&self, program: ProgramId) -> &LeafProgramCost {
        let cost = self.costs.get(program.index()).and_then(Option::as_ref);
        cost.unwrap_or_else(|| panic!("program {program:?} has no cost"))
    }
}
