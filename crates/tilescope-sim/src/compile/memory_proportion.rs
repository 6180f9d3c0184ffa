//! `available_memory_proportion`: the smallest that is as fast where it is "auto", and that of the IPU
//! where there is one for each.

use super::lowering;
use super::plan_selection::with_selection;
use crate::graph::ModelGraph;
use crate::graph_lowering::GraphLowering;
use crate::operators::PlannedCost;
use crate::poplin::PlanCache;
use crate::poplin::planner::PlanSelection;
use crate::schedule::StagePlacement;
use crate::shape::BlockId;
use crate::spec::{Proportion, Spec};
use tilescope_report::units::Cycles;

/// The spec with the proportion that was found; `None` where it gives one.
///
/// Of whole percents up to poplibs' default, it is the smallest with which all products and
/// convolutions of the graph are expected to take at most 1 % more cycles than with the default,
/// and no more of them need memory above the bound. Fewer bytes never make an estimate better, so
/// halving the range finds it.
pub(super) fn with_found(spec: &Spec, graph: &ModelGraph, plans: &PlanCache) -> Option<Spec> {
    if spec.options.library.available_memory_proportion != Proportion::Auto {
        return None;
    }
    let with = |percent: u32| {
        let mut spec = spec.clone();
        spec.options.library.available_memory_proportion = Proportion::found(percent);
        spec
    };
    // Cycles of other plans than those with the best estimate need not fall with more memory.
    let cost_with = |percent: u32| {
        planned_cost(&with_selection(&with(percent), PlanSelection::Estimate), graph, plans)
    };
    let best = cost_with(Proportion::POPLIBS_PERCENT);
    let (mut too_small, mut found) = (0, Proportion::POPLIBS_PERCENT);
    while found - too_small > 1 {
        let middle = u32::midpoint(too_small, found);
        if is_as_fast(cost_with(middle), best) {
            found = middle;
        } else {
            too_small = middle;
        }
    }
    Some(with(found))
}

/// The proportion of each block, where the IPUs have their own: that of its IPU. Of several IPUs that
/// run a block side by side the smallest, for they run it alike.
pub(super) fn of_blocks(
    spec: &Spec,
    graph: &ModelGraph,
    placement: &StagePlacement,
) -> Vec<Proportion> {
    let of_ipus = &spec.memory_proportions;
    if of_ipus.is_empty() {
        return Vec::new();
    }
    let mut proportions = Vec::with_capacity(graph.blocks.len());
    for block in 0..graph.blocks.len() {
        let stages = &placement.stages[placement.stages_of(BlockId(block))];
        let shares = stages.iter().map(|stage| of_ipus[stage.ipu.index()]);
        proportions.push(Proportion::new(shares.fold(1.0, f64::min)));
    }
    proportions
}

fn planned_cost(spec: &Spec, graph: &ModelGraph, plans: &PlanCache) -> PlannedCost {
    let mut context = lowering(spec, graph, plans);
    GraphLowering::new(graph, &mut context).planned_cost()
}

fn is_as_fast(cost: PlannedCost, best: PlannedCost) -> bool {
    let most = Cycles(best.cycles.0 + best.cycles.0 / 100);
    cost.cycles <= most && cost.above_bound <= best.above_bound
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::build_graph;
    use crate::spec::SpecSource;

    fn spec(proportion: &str) -> Spec {
        let overrides = [
            "model.layers=2".to_string(),
            "model.width=1024".to_string(),
            format!("options.available_memory_proportion={proportion}"),
        ];
        let source = SpecSource::find("offload", &overrides).expect("a bundled spec");
        Spec::build(&source).expect("valid")
    }

    #[test]
    fn it_is_the_smallest_that_is_as_fast() {
        let plans = PlanCache::new();
        let given = spec("0.6");
        let (graph, _) = build_graph(&given).expect("a graph");
        assert!(with_found(&given, &graph, &plans).is_none(), "one that is given stays");
        let found = with_found(&spec("auto"), &graph, &plans).expect("one is found");
        let Proportion::Found(share) = found.options.library.available_memory_proportion else {
            panic!("it is found");
        };
        assert!((0.01..0.6).contains(&share), "{share}");
        let cost = |share: f64| planned_cost(&spec(&share.to_string()), &graph, &plans);
        let best = cost(0.6);
        assert!(is_as_fast(cost(share), best));
        assert!(share < 0.015 || !is_as_fast(cost(share - 0.01), best), "{share}");
    }
}
