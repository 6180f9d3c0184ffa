//! Layouts of the tensors that pass from one iteration of a repeat to the next.

use super::GraphLowering;
use crate::graph::ModelGraph;
use crate::operators::{LoweringContext, LoweringError};
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::TensorId;
use std::collections::HashMap;
use tilescope_report::units::Cycles;

/// A state of a repeat with its next value.
struct UpdatedState {
    /// Index of the outermost repeat around the update.
    repeat: usize,
    state: TensorId,
    next: TensorId,
}

impl UpdatedState {
    fn all(graph: &ModelGraph) -> Vec<Self> {
        let mut found = Vec::new();
        for node in &graph.nodes {
            let copied = node.operator.copied_operand();
            let overwritten = node.operator.overwritten_operand();
            if let (Some(repeat), Some(next), Some(state)) =
                (graph.repeat_inside(None, node), copied, overwritten)
            {
                let [state, next] = [state, next].map(|place| node.inputs[place]);
                found.push(Self { repeat: repeat.0, state, next });
            }
        }
        found
    }
}

/// Gives states the layout of their next values where that shortens the iterations. The readers of
/// a state in the body create it otherwise, and every update rearranges the next value.
pub(super) fn lay_out_states<'a>(graph: &'a ModelGraph, context: &mut LoweringContext<'a>) {
    let updated = UpdatedState::all(graph);
    if updated.is_empty() {
        return;
    }
    let mut as_read = context.clone();
    // The lowering itself reports errors.
    let Ok(cycles) = cycles_of_repeats(graph, &mut as_read) else { return };
    let mut of_next: HashMap<TensorId, TensorLayout> = HashMap::new();
    let mut as_made = context.clone();
    for UpdatedState { state, next, .. } in &updated {
        if let Some(layout) = as_read.layout(*next) {
            as_made.set_layout(*state, layout.clone());
            of_next.insert(*state, layout.clone());
        }
    }
    let Ok(others) = cycles_of_repeats(graph, &mut as_made) else { return };
    for UpdatedState { repeat, state, .. } in &updated {
        if others[*repeat] < cycles[*repeat]
            && let Some(layout) = of_next.remove(state)
        {
            context.set_layout(*state, layout);
        }
    }
}

/// Cycles of the nodes of each outermost repeat, for all iterations.
fn cycles_of_repeats<'a>(
    graph: &'a ModelGraph,
    context: &mut LoweringContext<'a>,
) -> Result<Vec<Cycles>, LoweringError> {
    let chip = context.machine.chip;
    let mut cycles = vec![Cycles::ZERO; graph.repeats.len()];
    let mut lowering = GraphLowering { graph, context, lowered: HashMap::new() };
    for node in &graph.nodes {
        let lowered = lowering.lower(node)?;
        if let Some(repeat) = graph.repeat_inside(None, node) {
            cycles[repeat.0] += graph.runs(node) * lowered.work.cycles(&chip);
        }
    }
    Ok(cycles)
}
