//! What sequences of steps come to, for those who do not look at each step.

use super::leaf_costs::LeafCostTable;
use crate::compile::FragmentItem;
use std::collections::HashMap;
use tilescope_report::units::{Cycles, IpuId};

/// Steps that one IPU does on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepSequenceCost {
    pub ipu: IpuId,
    pub cycles: Cycles,
    /// How many they are.
    pub steps: u64,
}

/// Sums of the sequences met so far: a program runs few of them, again and again.
#[derive(Default)]
pub(crate) struct StepSequenceCache {
    known: HashMap<(usize, usize), Option<StepSequenceCost>>,
}

impl StepSequenceCache {
    /// What `items` come to; `None` where they are none, or not of one IPU alone.
    pub(crate) fn cost_of_sequence(
        &mut self,
        items: &[FragmentItem],
        costs: &LeafCostTable,
    ) -> Option<StepSequenceCost> {
        // Sequences of a compiled program do not move while it runs: their place tells them apart.
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
        let (cycles, steps) = (before.cycles + part.cycles, before.steps + part.steps);
        total = Some(StepSequenceCost { cycles, steps, ..before });
    }
    total
}
