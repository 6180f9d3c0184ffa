//! Totals of sequences of steps, for sinks that do not need each step.

use super::leaf_costs::LeafCostTable;
use crate::compile::FragmentItem;
use std::collections::HashMap;
use tilescope_report::units::{Cycles, IpuId};

/// Steps that one IPU runs alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepSequenceCost {
    pub ipu: IpuId,
    pub cycles: Cycles,
    /// The number of steps.
    pub steps: u64,
}

/// Totals of the sequences so far. A program runs few different sequences, many times.
#[derive(Default)]
pub(crate) struct StepSequenceCache {
    known: HashMap<(usize, usize), Option<StepSequenceCost>>,
}

impl StepSequenceCache {
    /// Returns the totals of `items`. `None` if there are no steps, or if they are not of a single
    /// IPU.
    pub(crate) fn cost_of_sequence(
        &mut self,
        items: &[FragmentItem],
        costs: &LeafCostTable,
    ) -> Option<StepSequenceCost> {
        // Sequences of a compiled program do not move during a run, so their address identifies
        // them.
        let place = (items.as_ptr().addr(), items.len());
        *self.known.entry(place).or_insert_with(|| sum(items, costs))
    }
}

fn sum(items: &[FragmentItem], costs: &LeafCostTable) -> Option<StepSequenceCost> {
    let mut total: Option<StepSequenceCost> = None;
    for item in items {
        let part = match item {
            FragmentItem::Leaf(program) => {
                let cost = costs.cost_of(*program);
                StepSequenceCost { ipu: cost.ipu, cycles: cost.cycles, steps: 1 }
            }
            FragmentItem::Loop { times, body } => {
                let once = sum(body, costs)?;
                StepSequenceCost { cycles: once.cycles * *times, steps: once.steps * times, ..once }
            }
            FragmentItem::HostSync { .. }
            | FragmentItem::SetSync { .. }
            | FragmentItem::ReplicaSync { .. }
            | FragmentItem::IoStream { .. }
            | FragmentItem::WaitForIo(_) => return None,
        };
        let before = total.unwrap_or(StepSequenceCost { cycles: Cycles::ZERO, steps: 0, ..part });
        if before.ipu != part.ipu {
            return None;
        }
        let cycles = before.cycles + part.cycles;
        let steps = before.steps + part.steps;
        total = Some(StepSequenceCost { cycles, steps, ..before });
    }
    total
}
