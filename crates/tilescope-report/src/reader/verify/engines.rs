//! Work of vertices compared with the peak rates of the engines of their tiles.

use super::{InvariantCheck, InvariantViolation, Report};
use crate::error::ReportError;
use crate::model::{ComputeSet, VertexGroup, VertexWork};
use crate::units::Cycles;

impl Report {
    /// Checks that no vertices do more floating point operations than the engine of their tiles can
    /// do in the cycles of their compute set.
    pub(super) fn verify_engines(
        &self,
        found: &mut Vec<InvariantViolation>,
    ) -> Result<(), ReportError> {
        let limits = self.machine_limits()?;
        let types = self.vertex_types()?;
        let mut law = InvariantCheck::new("engines_hold", found);
        for (_, set) in self.compute_sets()? {
            for group in &set.vertices {
                let kind = types.get(group.vertex_type.index());
                let Some((flops, kind)) = group.flops.zip(kind) else { continue };
                let VertexWork::Arithmetic { engine, input, partials } = kind.work() else {
                    continue;
                };
                let Some(rate) = limits.flops_per_cycle(engine, input, partials) else { continue };
                let cycles = cycles_of_tiles(&set, group);
                law.check(flops <= cycles.0.saturating_mul(rate), || {
                    let set = &set.name;
                    let kind = &kind.name;
                    format!(
                        "{set}: {kind} perform {flops} FLOPs in {cycles} tile cycles, but the peak \
                         is {rate} FLOPs per cycle"
                    )
                });
            }
        }
        Ok(())
    }
}

/// Cycles of a compute set, summed over the tiles that have vertices of a group.
fn cycles_of_tiles(set: &ComputeSet, group: &VertexGroup) -> Cycles {
    let mut sum = Cycles::ZERO;
    let mut cycles = set.cycles.iter().peekable();
    for (tiles, count) in group.count.iter() {
        while let Some((busy, each)) = cycles.peek() {
            let both = busy.intersection(tiles);
            if *count > 0 {
                sum = sum.saturating_add(each.saturating_mul(both.count().into()));
            }
            // The next vertices may be on the rest of these tiles.
            if busy.end > tiles.end {
                break;
            }
            cycles.next();
        }
    }
    sum
}
