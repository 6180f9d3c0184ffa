//! What sequences of steps come to, for those who do not look at each step.

use super::Costs;
use crate::compile::Item;
use std::collections::HashMap;

/// Steps that one IPU does on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sum {
    pub ipu: u32,
    pub cycles: u64,
    /// How many they are.
    pub steps: u64,
}

/// Sums of the sequences met so far: a program runs few of them, again and again.
#[derive(Default)]
pub(crate) struct Sums {
    known: HashMap<(usize, usize), Option<Sum>>,
}

impl Sums {
    /// What `items` come to; `None` where they are none, or not of one IPU alone.
    pub(crate) fn of(&mut self, items: &[Item], costs: &Costs) -> Option<Sum> {
        // Sequences of a compiled program do not move while it runs: their place tells them apart.
        let place = (items.as_ptr().addr(), items.len());
        *self.known.entry(place).or_insert_with(|| sum(items, costs))
    }
}

fn sum(items: &[Item], costs: &Costs) -> Option<Sum> {
    let mut total: Option<Sum> = None;
    for item in items {
        let part = match item {
            Item::Leaf(program) => {
                let cost = costs.of(*program);
                Sum { ipu: cost.ipu, cycles: cost.cycles, steps: 1 }
            }
            Item::Loop { times, body } => {
                let once = sum(body, costs)?;
                Sum { cycles: once.cycles * times, steps: once.steps * times, ..once }
            }
            Item::HostSync { .. } => return None,
        };
        let before = total.unwrap_or(Sum { cycles: 0, steps: 0, ..part });
        if before.ipu != part.ipu {
            return None;
        }
        let (cycles, steps) = (before.cycles + part.cycles, before.steps + part.steps);
        total = Some(Sum { cycles, steps, ..before });
    }
    total
}
