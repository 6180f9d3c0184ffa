//! What an operator knows while it is lowered: the machine, the graph, and how tensors lie.

use super::layout::Layout;
use super::work::{Place, Work};
use crate::graph::{Graph, Node, Role, TensorId, TensorType};
use crate::planner::{Machine, PlanCache, PoplibsOptions};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// An operation that cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {problem}")]
pub struct LowerError {
    /// Its name.
    pub operation: String,
    /// Why.
    pub problem: String,
}

/// When operands and results of an operation exist, in phases of its work, and what its vertices
/// need of their places. By default they exist all the time, anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lives {
    /// For each input: the phase from which on it is not read any more. Inputs that are not listed
    /// are read until the end.
    pub inputs_until: Vec<Option<usize>>,
    /// For each output: the first phase that writes it. Outputs that are not listed are written
    /// from the beginning.
    pub outputs_from: Vec<usize>,
    /// Where inputs must be.
    pub inputs_in: Place,
    /// Where outputs must be.
    pub outputs_in: Place,
}

impl Lives {
    /// For each input the phases it is needed in, of a work of so many.
    pub(crate) fn of_inputs(&self, phases: usize) -> impl Iterator<Item = Range<usize>> {
        let listed = self.inputs_until.iter().copied().chain(std::iter::repeat(None));
        listed.map(move |until| 0..until.unwrap_or(phases))
    }

    /// For each output the phases it exists in, of a work of so many.
    pub(crate) fn of_outputs(&self, phases: usize) -> impl Iterator<Item = Range<usize>> {
        let listed = self.outputs_from.iter().copied().chain(std::iter::repeat(0));
        listed.map(move |from| from..phases)
    }
}

/// Lowers the operations of one graph, one after the other.
///
/// Models repeat their layers, so most operations equal one that was lowered before: the same
/// operator on operands of the same types that lie the same way. Those share its [`Lowered`].
pub struct Lowering<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The chip, and how many of its tiles compute.
    pub machine: Machine,
    /// Tiles of each IPU that compute.
    pub tiles: u32,
    /// Whether the model is trained: layouts of weights then suit three passes.
    pub training: bool,
    /// What operations are planned with.
    pub planning: &'a PoplibsOptions,
    /// Plans made so far.
    pub plans: &'a PlanCache,
    layouts: Vec<Option<usize>>,
    known_layouts: Interner,
    lowered: HashMap<OperationKey, Remembered>,
    plan: Option<String>,
    lives: Lives,
}

/// What an operation lowers to.
#[derive(Clone, Debug, Default)]
pub struct Lowered {
    /// What the tiles do.
    pub work: Work,
    /// The planner's choice as a JSON object, where there was one.
    pub plan: Option<String>,
    /// When its operands and results exist.
    pub lives: Lives,
}

/// Everything that what an operation lowers to depends on.
#[derive(PartialEq, Eq, Hash)]
struct OperationKey {
    operator: String,
    operands: Vec<(TensorType, Option<usize>)>,
}

/// What an operation lowered to, and how its operands lie then.
struct Remembered {
    lowered: Lowered,
    layouts: Vec<Option<usize>>,
}

/// Layouts by number: equal layouts have equal numbers.
#[derive(Default)]
struct Interner {
    layouts: Vec<Layout>,
    numbers: HashMap<Layout, usize>,
}

impl Interner {
    fn number(&mut self, layout: Layout) -> usize {
        *self.numbers.entry(layout).or_insert_with_key(|layout| {
            self.layouts.push(layout.clone());
            self.layouts.len() - 1
        })
    }
}

/// Operands of a node: what it reads, then what it makes.
fn operands(node: &Node) -> impl Iterator<Item = TensorId> {
    node.inputs.iter().chain(&node.outputs).copied()
}

impl<'a> Lowering<'a> {
    /// Nothing is laid out yet but resident tensors, which the program maps linearly.
    pub fn new(
        graph: &'a Graph,
        machine: Machine,
        training: bool,
        planning: &'a PoplibsOptions,
        plans: &'a PlanCache,
    ) -> Self {
        let mut lowering = Self {
            graph,
            machine,
            tiles: machine.tiles as u32,
            training,
            planning,
            plans,
            layouts: vec![None; graph.tensors.len()],
            known_layouts: Interner::default(),
            lowered: HashMap::new(),
            plan: None,
            lives: Lives::default(),
        };
        for tensor in graph.with_role(Role::Resident) {
            lowering.layout_or_linear(tensor);
        }
        lowering
    }

    /// Makes all plans that operations of the graph will ask for, in parallel, and lays weights out
    /// for them, whoever reads them first. What cannot be planned is found again, and said, when
    /// the operation is lowered.
    pub fn plan_ahead(&mut self) {
        let planned: Vec<&Node> =
            self.graph.nodes.iter().filter(|node| node.operator.is_planned()).collect();
        let mut numbers: HashMap<(String, Vec<TensorType>), usize> = HashMap::new();
        let mut different: Vec<&Node> = Vec::new();
        let kinds = planned.iter().map(|node| {
            let key = (format!("{:?}", node.operator), self.graph.types(&node.inputs));
            *numbers.entry(key).or_insert_with(|| {
                different.push(node);
                different.len() - 1
            })
        });
        let kinds: Vec<usize> = kinds.collect();
        let weights: Vec<Option<Layout>> =
            different.par_iter().map(|node| node.operator.plan_ahead(self, node)).collect();
        let casts: HashSet<TensorId> = self
            .graph
            .nodes
            .iter()
            .filter(|node| node.operator.kind() == "cast")
            .flat_map(|node| node.outputs.iter().copied())
            .collect();
        for (node, kind) in planned.into_iter().zip(kinds) {
            let tensor = node.inputs[1];
            let kept = self.graph.tensor(tensor).role == Role::Parameter;
            if let Some(layout) = &weights[kind]
                && (kept || casts.contains(&tensor))
                && self.layout(tensor).is_none()
            {
                self.lay_out(tensor, layout.clone());
            }
        }
    }

    /// Lowers one operation of the graph, or finds one that was equal.
    ///
    /// # Errors
    /// Where no plan exists.
    pub fn lower(&mut self, node: &Node) -> Result<Lowered, LowerError> {
        let types = operands(node).map(|tensor| self.ty(tensor).clone());
        let key = OperationKey {
            operator: format!("{:?}", node.operator),
            operands: types.zip(operands(node).map(|tensor| self.layouts[tensor.0])).collect(),
        };
        if let Some(known) = self.lowered.get(&key) {
            for (tensor, layout) in operands(node).zip(&known.layouts) {
                self.layouts[tensor.0] = *layout;
            }
            return Ok(known.lowered.clone());
        }
        let work = node.operator.lower(self, node)?;
        let (plan, lives) = (self.plan.take(), std::mem::take(&mut self.lives));
        let lowered = Lowered { work, plan, lives };
        let layouts = operands(node).map(|tensor| self.layouts[tensor.0]).collect();
        self.lowered.insert(key, Remembered { lowered: lowered.clone(), layouts });
        Ok(lowered)
    }

    /// Type of a tensor.
    pub fn ty(&self, tensor: TensorId) -> &'a TensorType {
        &self.graph.tensor(tensor).ty
    }

    /// How a tensor lies, if it was laid out.
    pub fn layout(&self, tensor: TensorId) -> Option<&Layout> {
        self.layouts[tensor.0].map(|number| &self.known_layouts.layouts[number])
    }

    /// Lays a tensor out.
    pub(crate) fn lay_out(&mut self, tensor: TensorId, layout: Layout) {
        self.layouts[tensor.0] = Some(self.known_layouts.number(layout));
    }

    /// How a tensor lies; one that nobody placed yet is placed linearly.
    pub(crate) fn layout_or_linear(&mut self, tensor: TensorId) -> Layout {
        if let Some(layout) = self.layout(tensor) {
            return layout.clone();
        }
        let ty = self.ty(tensor);
        let layout = Layout::linear(ty.elements(), ty.dtype.bytes(), self.tiles);
        self.lay_out(tensor, layout.clone());
        layout
    }

    /// Notes the planner's choice for the operation being lowered, as a JSON object.
    pub(crate) fn note_plan(&mut self, plan: String) {
        self.plan = Some(plan);
    }

    /// Notes when operands and results of the operation being lowered exist.
    pub(crate) fn note_lives(&mut self, lives: Lives) {
        self.lives = lives;
    }
}
