//! The variables that a program needs, collected while it is built.

use super::program_plan::ProgramPlan;
use super::program_tables::EmittedWork;
use super::tensor_analysis::BufferLifetimes;
use crate::poplar::work::{MemoryConstraint, OperationWork, WorkPhaseKind};
use std::ops::Range;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, IpuId, OperationId, TileRuns};

/// A temporary or persistent variable that belongs to no tensor of the graph.
#[derive(Clone, Debug)]
pub(super) struct UnplacedVariable {
    pub name: String,
    pub category: MemoryCategory,
    /// The operation that the variable was made for.
    pub operation: Option<OperationId>,
    /// Type and shape as text.
    pub shape: String,
    /// Liveness steps in which the variable is live. `None` means always.
    pub lifetime: Option<Range<u32>>,
    /// The demands of its vertices on its place.
    pub place: MemoryConstraint,
    /// Bytes on each tile of the replica.
    pub bytes: TileRuns<Bytes>,
}

/// The variables of a program.
pub(super) struct WantedVariables<'a> {
    plan: &'a ProgramPlan<'a>,
    /// The lifetimes of tensors of the graph.
    pub lifetimes: BufferLifetimes,
    /// Variables that belong to no tensor, in program order.
    pub others: Vec<UnplacedVariable>,
}

impl<'a> WantedVariables<'a> {
    pub(super) fn new(plan: &'a ProgramPlan<'a>) -> Self {
        Self { plan, lifetimes: BufferLifetimes::default(), others: Vec::new() }
    }

    /// Adds a variable of an IPU that may be anywhere on its tiles.
    pub(super) fn add(
        &mut self,
        (name, shape): (String, String),
        operation: Option<OperationId>,
        lifetime: Option<Range<u32>>,
        ipu: IpuId,
        bytes: &TileRuns<Bytes>,
    ) {
        self.others.push(UnplacedVariable {
            name,
            category: MemoryCategory::Variable,
            operation,
            shape,
            lifetime,
            place: MemoryConstraint::Any,
            bytes: bytes.shifted(self.plan.tiles_before(ipu)),
        });
    }

    /// Adds the temporaries of a work, and the constants of its vertices unless an equal work has
    /// them.
    pub(super) fn add_of_work(
        &mut self,
        (work, emitted): (&OperationWork, &EmittedWork),
        operation: OperationId,
        name: &str,
        ipu: IpuId,
    ) {
        let offset = self.plan.tiles_before(ipu);
        for temporary in &work.temporaries {
            let lifetime = phase_steps(&temporary.live, &emitted.steps);
            if lifetime.is_empty() {
                continue;
            }
            self.others.push(UnplacedVariable {
                name: format!("{name}/{}", temporary.name),
                category: temporary.category,
                operation: Some(operation),
                shape: String::new(),
                lifetime: Some(lifetime),
                place: temporary.memory_constraint,
                bytes: temporary.bytes.shifted(offset),
            });
        }
        if emitted.shares_code {
            return;
        }
        for (phase, _) in work.phases() {
            let WorkPhaseKind::Compute { vertices, .. } = &phase.kind else { continue };
            for vertex in vertices.iter().filter(|vertex| !vertex.constant_bytes.is_zero()) {
                let bytes = vertex.count.map(|count| *count * vertex.constant_bytes);
                self.others.push(UnplacedVariable {
                    name: format!("{name}/{}/worklists", phase.name),
                    category: MemoryCategory::Constant,
                    operation: Some(operation),
                    shape: String::new(),
                    lifetime: None,
                    place: MemoryConstraint::Any,
                    bytes: bytes.shifted(offset),
                });
            }
        }
    }
}

/// The liveness steps of a range of phases.
fn phase_steps(live: &Range<usize>, steps: &[u32]) -> Range<u32> {
    let first = steps.get(live.start).copied();
    let last = live.end.min(steps.len()).checked_sub(1).and_then(|last| steps.get(last)).copied();
    match (first, last) {
        (Some(first), Some(last)) if first <= last => first..last + 1,
        _ => 0..0,
    }
}
