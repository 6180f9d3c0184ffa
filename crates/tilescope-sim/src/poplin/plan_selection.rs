//! Selection of the plan of an operation: the one with the best estimate, as in poplibs, or among
//! the best few the one with the fewest cycles after lowering.

use super::conv::{self, ConvPassOperands, OperandSource, ResultDestination};
use super::params::{ConvParams, PlanError};
use super::planner::{
    self, ConvOptions, ConvPass, ConvPlan, ConvTrainingPlans, FullyConnectedPlans, PlanSelection,
    cheapest_fully_connected_plans, cheapest_plans,
};
use crate::targets::IpuTarget;
use rayon::prelude::*;
use tilescope_report::units::Cycles;

/// Number of plans that are lowered to choose one of them.
const LOWERED_PLANS: usize = 10;

/// Returns the plan for one pass.
pub(super) fn plan(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
) -> Result<ConvPlan, PlanError> {
    if options.library.plan_selection == PlanSelection::Estimate {
        return planner::plan(machine, params, options);
    }
    let plans = cheapest_plans(machine, params, options, LOWERED_PLANS)?;
    let fastest = fastest(plans, |plan| forward_cycles(machine, plan));
    // If there is none, the planner returns the reason.
    fastest.map_or_else(|| planner::plan(machine, params, options), |(plan, _)| Ok(plan))
}

/// Returns the plans of a convolution and its gradients, each pass chosen after those before it.
pub(super) fn plan_convolution(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
) -> Result<ConvTrainingPlans, PlanError> {
    if options.library.plan_selection == PlanSelection::Estimate {
        return planner::plan_convolution(machine, params, options);
    }
    let forward = plan(machine, params, &options.with_pass(ConvPass::TrainingForward))?;
    let gradient = params.gradient()?;
    // See `planner::plan_convolution`.
    let backward = if gradient == forward.params {
        vec![forward.clone()]
    } else {
        let options = options.with_pass(ConvPass::TrainingBackward);
        cheapest_plans(machine, &gradient, &options, LOWERED_PLANS)?
    };
    let update_options = options.with_pass(ConvPass::TrainingWeightUpdate);
    let update = cheapest_plans(machine, &params.weight_update()?, &update_options, LOWERED_PLANS)?;
    let chosen = fastest_passes(machine, [vec![forward], backward, update]);
    chosen
        .map_or_else(|| planner::plan_convolution(machine, params, options), |(plans, _)| Ok(plans))
}

/// Returns the plans of a fully connected layer: the joint plan with the fewest cycles of all three
/// passes, or three separate plans if these take fewer.
pub(super) fn plan_fully_connected(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
) -> Result<ConvTrainingPlans, PlanError> {
    if options.library.plan_selection == PlanSelection::Estimate {
        return planner::plan_fully_connected(machine, params, options);
    }
    let FullyConnectedPlans { joint, separate } =
        cheapest_fully_connected_plans(machine, params, options, LOWERED_PLANS)?;
    let joint = fastest(joint, |plans| training_cycles(machine, plans));
    let separate = fastest_passes(machine, separate);
    // A joint plan wins a tie, because no weights move between its passes.
    let chosen = joint.into_iter().chain(separate).min_by_key(|(_, cycles)| *cycles);
    chosen.map_or_else(
        || planner::plan_fully_connected(machine, params, options),
        |(plans, _)| Ok(plans),
    )
}

/// Returns the plan with the fewest cycles, and these cycles. Of equal plans, the first has the
/// best estimate and is returned.
fn fastest<T: Send>(
    plans: Vec<T>,
    cycles: impl Fn(&T) -> Cycles + Sync + Send,
) -> Option<(T, Cycles)> {
    let lowered = plans.into_par_iter().map(|plan| {
        let cycles = cycles(&plan);
        (plan, cycles)
    });
    let lowered: Vec<(T, Cycles)> = lowered.collect();
    lowered.into_iter().min_by_key(|(_, cycles)| *cycles)
}

/// Returns the fastest plan of the forward pass, then those of the backward pass and of the weight
/// update given the choices before them.
fn fastest_passes(
    machine: &IpuTarget,
    [forward, backward, update]: [Vec<ConvPlan>; 3],
) -> Option<(ConvTrainingPlans, Cycles)> {
    let (forward, forward_cycles) = fastest(forward, |plan| forward_cycles(machine, plan))?;
    let (backward, backward_cycles) =
        fastest(backward, |plan| backward_cycles(machine, &forward, plan))?;
    let mut candidates = Vec::new();
    for update in update {
        let forward = forward.clone();
        let backward = backward.clone();
        candidates.push(ConvTrainingPlans { forward, backward, update });
    }
    let (plans, update_cycles) = fastest(candidates, |plans| update_cycles(machine, plans))?;
    Some((plans, forward_cycles + backward_cycles + update_cycles))
}

fn training_cycles(machine: &IpuTarget, plans: &ConvTrainingPlans) -> Cycles {
    forward_cycles(machine, &plans.forward)
        + backward_cycles(machine, &plans.forward, &plans.backward)
        + update_cycles(machine, plans)
}

/// Cycles of a forward pass with operands in the planned layout.
fn forward_cycles(machine: &IpuTarget, plan: &ConvPlan) -> Cycles {
    conv::forward(machine, plan, OperandSource::Planned, OperandSource::Planned)
        .cycles(&machine.chip)
}

/// Cycles of a backward pass that transposes the weights of `forward`.
fn backward_cycles(machine: &IpuTarget, forward: &ConvPlan, plan: &ConvPlan) -> Cycles {
    let operands = ConvPassOperands {
        input: OperandSource::Planned,
        weights: OperandSource::ForwardWeights(forward),
        result: ResultDestination::Planned,
    };
    conv::lower(machine, plan, &operands).work.cycles(&machine.chip)
}

/// Cycles of a weight update that moves its result to the weights of the forward pass.
fn update_cycles(machine: &IpuTarget, plans: &ConvTrainingPlans) -> Cycles {
    let operands = ConvPassOperands::weight_update(plans);
    conv::lower(machine, &plans.update, &operands).work.cycles(&machine.chip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poplin::planner::PoplibsOptions;
    use crate::shape::DType;
    use crate::targets::MK2;

    fn options(plan_selection: PlanSelection) -> ConvOptions {
        let library = PoplibsOptions { plan_selection, ..PoplibsOptions::default() };
        ConvOptions { library, ..ConvOptions::new(ConvPass::FcTrainingForward) }
    }

    /// The choice by simulated cycles is never slower than the best estimate, also for a whole
    /// layer, and it is faster for some sizes.
    #[test]
    fn selection_by_simulated_cycles_never_takes_more_of_them() {
        let machine = IpuTarget { tiles: 64, ..IpuTarget::all_tiles_of(MK2) };
        let estimate = options(PlanSelection::Estimate);
        let simulated = options(PlanSelection::Simulated);
        let mut faster = 0;
        for (m, k, n) in [(64, 128, 256), (33, 70, 130), (128, 512, 96), (7, 1000, 10)] {
            let params = ConvParams::matmul(DType::Half, 1, m, k, n);
            let cycles = |options| {
                let plan = plan(&machine, &params, options).expect("a plan");
                forward_cycles(&machine, &plan)
            };
            assert!(cycles(&simulated) <= cycles(&estimate), "{params:?}");
            let layer = |options| {
                let plans = plan_fully_connected(&machine, &params, options).expect("plans");
                (plans.forward.joint, training_cycles(&machine, &plans))
            };
            let given = layer(&estimate);
            let chosen = layer(&simulated);
            // Three separate plans are chosen one after the other, so only joint plans are compared
            // as a whole.
            assert!(!given.0 || chosen.1 <= given.1, "{params:?}: {given:?}, {chosen:?}");
            faster += u64::from(chosen.1 < given.1);
        }
        assert!(faster > 0, "the ten best plans differ");
    }
}
