//! One operator of a graph, lowered as those of a model are.

use super::config::Problem;
use crate::sim::graph::{GraphBuilder, Role, TensorType};
use crate::sim::lower::layout::Layout;
use crate::sim::lower::work::Work;
use crate::sim::lower::{Lowering, PlanningOptions};
use crate::sim::ops::Operator;
use crate::sim::planner::{Machine, PlanCache};

/// What `operator` does to operands that lie as said, and how its result lies.
pub fn lowered(
    machine: &Machine,
    operator: impl Operator + 'static,
    operands: Vec<(TensorType, Layout)>,
) -> Result<(Work, Layout), Problem> {
    let mut builder = GraphBuilder::new();
    builder.block("operation");
    let mut tensors = Vec::new();
    for (number, (ty, _)) in operands.iter().enumerate() {
        tensors.push(builder.tensor(&format!("operand{number}"), ty.clone(), Role::Activation));
    }
    let result = builder.apply("operation", operator, &tensors).map_err(Problem::refused)?;
    let graph = builder.finish();
    let planning = PlanningOptions::default();
    let plans = PlanCache::new();
    let mut lowering = Lowering::new(&graph, *machine, true, planning, &plans);
    for (tensor, (_, layout)) in tensors.into_iter().zip(operands) {
        lowering.lay_out(tensor, layout);
    }
    let work = lowering.lower(&graph.nodes[0]).map_err(Problem::refused)?.work;
    Ok((work, lowering.layout_or_linear(result)))
}
