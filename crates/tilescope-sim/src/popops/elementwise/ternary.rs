//! Elementwise vertices of three operands: select and clamp (poplibs
//! lib/popops/popopsCycleEstimators.cpp, of the commit used for the op benchmarks). Each belongs to
//! one worker. A tile's elements are distributed over its workers in whole vectors
//! (lib/popops/ElementWise.cpp, ternaryOp).

use super::vector_width;
use crate::poplar::work::{VertexInstances, WorkPhase};
use crate::poputil::split_regions::{SplitBounds, split_evenly};
use crate::shape::DType;
use crate::targets::WORKERS;
use tilescope_report::units::{Cycles, Elements, TileRuns};

/// Operands of a select that are broadcast to all elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelectForm {
    /// No operand.
    Elements,
    /// Both values to choose from.
    TwoScalars,
    /// The condition.
    OneCondition,
}

impl SelectForm {
    fn vertex(self) -> &'static str {
        match self {
            Self::Elements => "Select",
            Self::TwoScalars => "BroadcastSelect",
            Self::OneCondition => "BroadcastSelectorSelect",
        }
    }

    /// Cycles of a worker with `count` elements.
    fn worker(self, dtype: DType, count: u64) -> u64 {
        let bytes = dtype.bytes().0;
        match (self, bytes) {
            (Self::Elements, _) => 5 + 6 + 5 * count,
            (Self::TwoScalars, 4) => 10 + 5 + 4 * count + 3,
            (Self::TwoScalars, 2) if count.is_multiple_of(2) => 10 + 30 + 4 * count,
            (Self::TwoScalars, 2) => 10 + 23 + 4 * count,
            (Self::TwoScalars, _) => 10 + 40 + count / 4 * 17 + 26,
            (Self::OneCondition, _) => {
                let bytes = count * bytes;
                12 + 12 + 23 + bytes / 4 + bytes % 4 * 5
            }
        }
    }
}

/// Phase in which vertices of workers share the elements of each tile.
fn by_worker(
    name: &str,
    vertex: String,
    edges: u64,
    (dtype, elements): (DType, &TileRuns<Elements>),
    worker: impl Fn(u64) -> u64,
) -> WorkPhase {
    // Stores of less than a word would overwrite part of a neighbour's word.
    let grain = vector_width(dtype).max(4 / dtype.bytes().0);
    let bounds = SplitBounds { grain, most: WORKERS, least: 2 * grain };
    let cycles = elements.map(|count| {
        let shares = split_evenly(count.0, bounds).map(|part| part.end - part.start);
        Cycles(WORKERS * shares.map(&worker).max().unwrap_or(0))
    });
    let count = elements.map(|count| split_evenly(count.0, bounds).count() as u64);
    WorkPhase::of_vertices(name, VertexInstances::of_edges(vertex, count, edges), cycles)
}

/// Phase that chooses between two values for every element.
pub(crate) fn select(
    name: &str,
    form: SelectForm,
    dtype: DType,
    elements: &TileRuns<Elements>,
) -> WorkPhase {
    let vertex = format!("popops::{}<{}>", form.vertex(), dtype.poplar_name());
    by_worker(name, vertex, 4, (dtype, elements), |count| form.worker(dtype, count))
}

/// Phase that clamps every element between two bounds in place (BroadcastClampInPlace).
pub(crate) fn clamp_in_place(name: &str, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
    let vertex = format!("popops::BroadcastClampInPlace<{}>", dtype.poplar_name());
    by_worker(name, vertex, 3, (dtype, elements), |count| {
        let loops = match dtype {
            DType::Float | DType::Half => 2 * count.div_ceil(vector_width(dtype)),
            _ => 7 * count,
        };
        5 + 6 + loops
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poplar::work::WorkPhaseKind;
    use tilescope_report::units::TileRange;

    #[test]
    fn workers_share_the_elements_of_a_tile() {
        let cycles = |phase: WorkPhase| match phase.kind {
            WorkPhaseKind::Compute { cycles, vertices } => {
                (cycles.max(), vertices[0].count.total())
            }
            WorkPhaseKind::Exchange { .. } => panic!("a compute set"),
        };
        let held = |count| TileRuns::uniform(TileRange::first_tiles(1), Elements(count));
        let choose = |form, count| cycles(select("Op", form, DType::Half, &held(count)));
        assert_eq!(choose(SelectForm::Elements, 600), (Cycles(6 * (11 + 5 * 100)), 6));
        assert_eq!(choose(SelectForm::TwoScalars, 600), (Cycles(6 * (40 + 4 * 100)), 6));
        assert_eq!(choose(SelectForm::OneCondition, 600), (Cycles(6 * (47 + 50)), 6));
        assert_eq!(choose(SelectForm::Elements, 5), (Cycles(6 * (11 + 5 * 5)), 1));
        let clamped = cycles(clamp_in_place("Op", DType::Float, &held(600)));
        assert_eq!(clamped, (Cycles(6 * (11 + 2 * 50)), 6));
    }
}
