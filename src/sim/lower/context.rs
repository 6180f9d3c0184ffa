//! What an operator knows while it is lowered: the machine, the graph, and how tensors lie.

use super::layout::Layout;
use crate::sim::graph::{DType, Graph, Role, TensorId, TensorType};
use crate::sim::planner::{Machine, PlanCache};

/// An operation that cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {problem}")]
pub struct LowerError {
    /// Its name.
    pub operation: String,
    /// Why.
    pub problem: String,
}

/// Bounds and types that planned operations obey.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanningOptions {
    /// Share of a tile's memory that temporaries of one operation may fill.
    pub available_memory_proportion: f64,
    /// Element type of partial sums.
    pub partials_type: DType,
}

/// When operands and results of an operation exist, in phases of its work; by default all the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lives {
    /// For each input: the phase from which on it is not read any more. Inputs that are not listed
    /// are read until the end.
    pub inputs_until: Vec<Option<usize>>,
    /// The first phase that writes outputs.
    pub outputs_from: usize,
}

/// Lowers the operations of one graph, one after the other.
pub struct Lowering<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The chip, and how many of its tiles compute.
    pub machine: Machine,
    /// Tiles of each IPU that compute.
    pub tiles: u32,
    /// Whether the model is trained: layouts of weights then suit three passes.
    pub training: bool,
    /// Planning bounds.
    pub planning: PlanningOptions,
    /// Plans made so far.
    pub plans: &'a PlanCache,
    layouts: Vec<Option<Layout>>,
    plan: Option<String>,
    lives: Lives,
}

impl<'a> Lowering<'a> {
    /// Nothing is laid out yet but resident tensors, which the program maps linearly.
    pub fn new(
        graph: &'a Graph,
        machine: Machine,
        training: bool,
        planning: PlanningOptions,
        plans: &'a PlanCache,
    ) -> Self {
        let layouts = vec![None; graph.tensors.len()];
        let tiles = machine.tiles as u32;
        let mut lowering = Self {
            graph,
            machine,
            tiles,
            training,
            planning,
            plans,
            layouts,
            plan: None,
            lives: Lives::default(),
        };
        for tensor in graph.with_role(Role::Resident) {
            lowering.layout_or_linear(tensor);
        }
        lowering
    }

    /// Type of a tensor.
    pub fn ty(&self, tensor: TensorId) -> &'a TensorType {
        &self.graph.tensor(tensor).ty
    }

    /// How a tensor lies, if it was laid out.
    pub fn layout(&self, tensor: TensorId) -> Option<&Layout> {
        self.layouts[tensor.0].as_ref()
    }

    /// Lays a tensor out.
    pub fn lay_out(&mut self, tensor: TensorId, layout: Layout) {
        self.layouts[tensor.0] = Some(layout);
    }

    /// How a tensor lies; one that nobody placed yet is placed linearly.
    pub fn layout_or_linear(&mut self, tensor: TensorId) -> Layout {
        let ty = self.ty(tensor);
        let tiles = self.tiles;
        self.layouts[tensor.0]
            .get_or_insert_with(|| Layout::linear(ty.elements(), ty.dtype.bytes(), tiles))
            .clone()
    }

    /// Notes the planner's choice for the operation being lowered, as a JSON object.
    pub fn note_plan(&mut self, plan: String) {
        self.plan = Some(plan);
    }

    /// The planner's choice for the operation just lowered, if it was planned.
    pub fn take_plan(&mut self) -> Option<String> {
        self.plan.take()
    }

    /// Notes when operands and results of the operation being lowered exist.
    pub fn note_lives(&mut self, lives: Lives) {
        self.lives = lives;
    }

    /// When operands and results of the operation just lowered exist.
    pub fn take_lives(&mut self) -> Lives {
        std::mem::take(&mut self.lives)
    }
}
