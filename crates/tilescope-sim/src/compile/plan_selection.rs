//! `plan_selection = "simulated"`, which is tried on the whole graph before it is kept.

use super::block_costs;
use crate::graph::ModelGraph;
use crate::poplin::PlanCache;
use crate::poplin::planner::PlanSelection;
use crate::specification::Spec;
use tilescope_report::units::Cycles;

/// Cycles of all operations of a micro-batch, with plans selected in each of the two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlanSelectionTrial {
    pub estimate: Cycles,
    pub simulated: Cycles,
}

impl PlanSelectionTrial {
    /// Tries both ways. Returns `None` if the spec selects the best estimate anyway.
    pub(crate) fn new(spec: &Spec, graph: &ModelGraph, plans: &PlanCache) -> Option<Self> {
        if spec.options.library.plan_selection == PlanSelection::Estimate {
            return None;
        }
        let [estimate, simulated] =
            [PlanSelection::Estimate, PlanSelection::Simulated].map(|selection| {
                let spec = with_selection(spec, selection);
                block_costs(&spec, graph, plans).iter().sum()
            });
        Some(Self { estimate, simulated })
    }

    /// The selection that takes fewer cycles. A product can be faster by itself and yet leave its
    /// result, or require its operands, in a layout in which the surrounding operations are slower.
    pub(crate) fn faster(self) -> PlanSelection {
        if self.simulated < self.estimate {
            PlanSelection::Simulated
        } else {
            PlanSelection::Estimate
        }
    }
}

/// Returns the spec with another selection of plans.
pub(super) fn with_selection(spec: &Spec, selection: PlanSelection) -> Spec {
    let mut spec = spec.clone();
    spec.options.library.plan_selection = selection;
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{ProgramExtent, ProgramSource, build_graph};
    use crate::specification::SpecSource;

    fn spec(overrides: &[&str]) -> Spec {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let source = SpecSource::find("offload", &overrides).expect("a bundled spec");
        Spec::build(&source).expect("valid")
    }

    /// The kept selection takes no more cycles than the plans of the best estimate, and the report
    /// states the cycles of both.
    #[test]
    fn selected_plans_are_no_slower_than_estimated_ones() {
        let plans = PlanCache::new();
        let small = ["model.layers=2", "model.width=384"];
        let given = spec(&small);
        let (graph, _) = build_graph(&given).expect("a graph");
        assert_eq!(PlanSelectionTrial::new(&given, &graph, &plans), None);

        let asked = spec(&[&small[..], &["options.plan_selection=simulated"]].concat());
        let trial = PlanSelectionTrial::new(&asked, &graph, &plans).expect("it is tried");
        let kept = with_selection(&asked, trial.faster());
        let cycles: Cycles = block_costs(&kept, &graph, &plans).iter().sum();
        assert_eq!(cycles, trial.estimate.min(trial.simulated));
        let compiled =
            ProgramSource::new(&asked).and_then(|source| source.compile(ProgramExtent::Whole));
        let notes = compiled.expect("compiles").compilation.notes;
        assert!(notes.iter().any(|note| note.contains("chosen by simulated cycles")), "{notes:?}");
    }
}
