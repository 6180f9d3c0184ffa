//! What an operator knows while it is lowered: the machine, its operands, and how tensors lie.

use super::serialise::Serialisation;
use crate::poplar::Lives;
use crate::poplar::work::Work;
use crate::poplin::planner::{Pass, PlanCache, PlanOptions};
use crate::popops::rearrange;
use crate::poputil::layout::Layout;
use crate::shape::{DType, Role, Tensor, TensorId, TensorType};
use crate::targets::Machine;
use std::collections::HashMap;

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
    /// How linear layers are cut into parts.
    pub serialisation: Option<Serialisation>,
    /// Whether each convolution begins at a tile of its own.
    pub conv_dithering: bool,
}

/// What an operation alone is planned with.
impl Default for PlanningOptions {
    fn default() -> Self {
        let planned = PlanOptions::new(Pass::MatMul);
        Self {
            available_memory_proportion: planned.available_memory_proportion,
            partials_type: planned.partials,
            serialisation: None,
            conv_dithering: false,
        }
    }
}

/// What the operators of one graph share while they are lowered: the machine, the plans, and how
/// every tensor lies so far.
pub struct Lowering<'a> {
    /// The tensors of the graph.
    pub tensors: &'a [Tensor],
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
    layouts: Vec<Option<usize>>,
    known_layouts: Interner,
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

impl From<Work> for Lowered {
    /// Without a plan, its operands and results there all the time.
    fn from(work: Work) -> Self {
        Self { work, ..Self::default() }
    }
}

/// The operation that an operator is asked about: a node of the graph as the operator sees it.
#[derive(Clone, Copy, Debug)]
pub struct NodeOperands<'a> {
    /// Path of names: `layer1/conv`.
    pub name: &'a str,
    /// Tensors it reads.
    pub inputs: &'a [TensorId],
    /// Tensors it writes.
    pub outputs: &'a [TensorId],
}

impl NodeOperands<'_> {
    /// What it reads, then what it makes.
    pub(crate) fn all(&self) -> impl Iterator<Item = TensorId> {
        self.inputs.iter().chain(self.outputs).copied()
    }
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

impl<'a> Lowering<'a> {
    /// Nothing is laid out yet but resident tensors, which the program maps linearly.
    pub fn new(
        tensors: &'a [Tensor],
        machine: Machine,
        training: bool,
        planning: PlanningOptions,
        plans: &'a PlanCache,
    ) -> Self {
        let mut lowering = Self {
            tensors,
            machine,
            tiles: machine.tiles as u32,
            training,
            planning,
            plans,
            layouts: vec![None; tensors.len()],
            known_layouts: Interner::default(),
        };
        for (index, tensor) in tensors.iter().enumerate() {
            if tensor.role == Role::Resident {
                lowering.layout_or_linear(TensorId(index));
            }
        }
        lowering
    }

    /// Type of a tensor.
    pub fn ty(&self, tensor: TensorId) -> &'a TensorType {
        &self.tensors[tensor.0].ty
    }

    /// What a tensor is to the program.
    pub(crate) fn role(&self, tensor: TensorId) -> Role {
        self.tensors[tensor.0].role
    }

    /// The number of a tensor's layout, if it was laid out: equal layouts have equal numbers.
    pub(crate) fn layout_number(&self, tensor: TensorId) -> Option<usize> {
        self.layouts[tensor.0]
    }

    /// Lays a tensor out like the one that `number` is of.
    pub(crate) fn lay_out_as(&mut self, tensor: TensorId, number: Option<usize>) {
        self.layouts[tensor.0] = number;
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

    /// Bytes a tile sends or receives per cycle.
    pub(crate) fn exchange_speed(&self) -> u64 {
        self.machine.exchange_speed()
    }

    /// Places `tensor` as `layout` says if nobody has placed it yet, or brings it there.
    pub(crate) fn place_or_bring(&mut self, tensor: TensorId, layout: Layout, name: &str) -> Work {
        if self.layout(tensor).is_none() {
            self.lay_out(tensor, layout);
            return Work::default();
        }
        self.bring(tensor, &layout, name)
    }

    /// The phases that bring `tensor` into `layout` for the operation step `name`; none where it
    /// lies so already.
    pub(crate) fn bring(&mut self, tensor: TensorId, layout: &Layout, name: &str) -> Work {
        let from = self.layout_or_linear(tensor);
        rearrange::bring(&self.machine, self.ty(tensor), &from, layout, name)
    }
}
