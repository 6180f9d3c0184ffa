//! What an operator knows while it is lowered: the machine, its operands, and how tensors lie.

use crate::cost_constants::TRANSPOSING_MESSAGES;
use crate::poplar::OperandLiveness;
use crate::poplar::exchange::{self, TileMessages};
use crate::poplar::work::{OperationWork, TemporaryVariable};
use crate::poplin::PlanCache;
use crate::poplin::planner::{OperationPlanning, PoplibsOptions};
use crate::popops::{one_hot, relayout};
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{BlockId, DType, Tensor, TensorId, TensorInfo, TensorRole};
use crate::spec_keys::Proportion;
use crate::targets::{BytesPerCycle, IpuTarget};
use std::collections::HashMap;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Elements, TileRuns};

/// What the operators of one graph share while they are lowered: the machine, the plans, and how
/// every tensor lies so far.
#[derive(Clone)]
pub struct LoweringContext<'a> {
    /// The tensors of the graph.
    pub tensors: &'a [Tensor],
    /// The chip, and how many of its tiles compute.
    pub machine: IpuTarget,
    /// Tiles of each IPU that compute.
    pub tiles: u32,
    /// Whether the model is trained: layouts of weights then suit three passes.
    pub training: bool,
    /// What operations are planned with that say nothing else of themselves.
    pub planning: &'a PoplibsOptions,
    /// Shares of memory that temporaries may fill, by block; empty where all have that of `planning`.
    pub(crate) block_proportions: Vec<Proportion>,
    /// Plans made so far.
    pub plans: &'a PlanCache,
    /// By tensor, whether one operation reads it and nothing else needs it.
    read_once: Vec<bool>,
    /// By tensor, whether it is a weight or a view of one.
    weights: Vec<bool>,
    layouts: Vec<Option<usize>>,
    known_layouts: LayoutInterner,
}

/// What an operation lowers to.
#[derive(Clone, Debug, Default)]
pub struct LoweredOperation {
    /// What the tiles do.
    pub work: OperationWork,
    /// The planner's choice as a JSON object, where there was one.
    pub plan: Option<String>,
    /// When its operands and results exist.
    pub liveness: OperandLiveness,
    /// What replicas that work on shares of its operands add up in the middle of it.
    pub replica_sum: Option<ReplicaSum>,
}

/// Values that are only complete once all replicas have added up theirs, where each works on its
/// share of the operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSum {
    /// Items of the work that come before.
    pub after: usize,
    /// Type of the values.
    pub dtype: DType,
    /// Values on each tile.
    pub elements: TileRuns<Elements>,
}

impl From<OperationWork> for LoweredOperation {
    /// Without a plan, its operands and results there all the time.
    fn from(work: OperationWork) -> Self {
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
    /// How it is planned, where not as the program says.
    pub planning: OperationPlanning,
    /// The block it belongs to.
    pub block: BlockId,
}

impl NodeOperands<'_> {
    /// What it reads, then what it makes.
    pub(crate) fn all(&self) -> impl Iterator<Item = TensorId> {
        self.inputs.iter().chain(self.outputs).copied()
    }
}

/// Layouts by number: equal layouts have equal numbers.
#[derive(Clone, Default)]
struct LayoutInterner {
    layouts: Vec<TensorLayout>,
    numbers: HashMap<TensorLayout, usize>,
}

impl LayoutInterner {
    fn number(&mut self, layout: TensorLayout) -> usize {
        *self.numbers.entry(layout).or_insert_with_key(|layout| {
            self.layouts.push(layout.clone());
            self.layouts.len() - 1
        })
    }
}

impl<'a> LoweringContext<'a> {
    /// Nothing is laid out yet but tensors that the program maps linearly.
    pub fn new(
        tensors: &'a [Tensor],
        machine: IpuTarget,
        training: bool,
        planning: &'a PoplibsOptions,
        plans: &'a PlanCache,
    ) -> Self {
        let mut lowering = Self {
            tensors,
            machine,
            tiles: machine.tiles,
            training,
            planning,
            block_proportions: Vec::new(),
            plans,
            read_once: vec![false; tensors.len()],
            weights: tensors.iter().map(|of| of.role == TensorRole::Parameter).collect(),
            layouts: vec![None; tensors.len()],
            known_layouts: LayoutInterner::default(),
        };
        for (index, tensor) in tensors.iter().enumerate() {
            if tensor.role == TensorRole::Mapped {
                lowering.lay_out(TensorId(index));
            }
        }
        lowering
    }

    /// Notes by tensor whether one operation reads it and nothing else needs it.
    pub(crate) fn note_read_once(&mut self, read_once: Vec<bool>) {
        self.read_once = read_once;
    }

    /// Notes by tensor whether it is a weight or a view of one.
    pub(crate) fn note_weights(&mut self, weights: Vec<bool>) {
        self.weights = weights;
    }

    /// True for a weight or a view of one.
    pub(crate) fn is_weight(&self, tensor: TensorId) -> bool {
        self.weights[tensor.0]
    }

    /// True if the operation that reads a tensor may overwrite it.
    pub(crate) fn dies(&self, tensor: TensorId) -> bool {
        self.read_once[tensor.0]
    }

    /// What an operation is planned with.
    pub(crate) fn planning_of(&self, node: &NodeOperands) -> PoplibsOptions {
        let mut program = *self.planning;
        if let Some(share) = self.block_proportions.get(node.block.0) {
            program.available_memory_proportion = *share;
        }
        node.planning.over(&program)
    }

    /// Type of a tensor.
    pub fn tensor_type(&self, tensor: TensorId) -> &'a TensorInfo {
        &self.tensors[tensor.0].ty
    }

    /// What a tensor is to the program.
    pub(crate) fn role(&self, tensor: TensorId) -> TensorRole {
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
    pub fn layout(&self, tensor: TensorId) -> Option<&TensorLayout> {
        self.layouts[tensor.0].map(|number| &self.known_layouts.layouts[number])
    }

    /// Lays a tensor out.
    pub(crate) fn set_layout(&mut self, tensor: TensorId, layout: TensorLayout) {
        self.layouts[tensor.0] = Some(self.known_layouts.number(layout));
    }

    /// Places a tensor linearly that nobody placed yet.
    pub(crate) fn lay_out(&mut self, tensor: TensorId) {
        if self.layout(tensor).is_none() {
            let ty = self.tensor_type(tensor);
            self.set_layout(
                tensor,
                TensorLayout::linear(ty.elements(), ty.dtype.bytes(), self.tiles),
            );
        }
    }

    /// How a tensor lies; one that nobody placed yet is placed linearly.
    pub(crate) fn layout_or_linear(&mut self, tensor: TensorId) -> TensorLayout {
        self.lay_out(tensor);
        self.layout(tensor).expect("it is laid out").clone()
    }

    /// What a tile sends or receives in an exchange.
    pub(crate) fn exchange_speed(&self) -> BytesPerCycle {
        self.machine.exchange_speed()
    }

    /// Places `tensor` as `layout` says if nobody has placed it yet, or brings it there.
    pub(crate) fn place_or_relayout(
        &mut self,
        tensor: TensorId,
        layout: TensorLayout,
        name: &str,
    ) -> OperationWork {
        if self.layout(tensor).is_none() {
            self.set_layout(tensor, layout);
            return OperationWork::default();
        }
        self.relayout_tensor(tensor, &layout, name)
    }

    /// The phases that bring `tensor` into `layout` for the operation step `name`; none where it
    /// lies so already.
    pub(crate) fn relayout_tensor(
        &mut self,
        tensor: TensorId,
        layout: &TensorLayout,
        name: &str,
    ) -> OperationWork {
        let from = self.layout_or_linear(tensor);
        relayout::bring(&self.machine, self.tensor_type(tensor), &from, layout, name)
    }

    /// The same with blocks transposed on the way, for operations that call for it: scaled additions
    /// and norms (poplibs lib/popops/ScaledAdd.cpp, lib/poplin/Norms.cpp).
    pub(crate) fn regroup_tensor(
        &mut self,
        tensor: TensorId,
        layout: &TensorLayout,
        name: &str,
    ) -> OperationWork {
        let from = self.layout_or_linear(tensor);
        relayout::bring_regrouped(&self.machine, self.tensor_type(tensor), &from, layout, name)
    }

    /// Adds the exchange that sends each tile of `to` its elements, which copies of those of a tensor
    /// that lies like `from` are, in an order of their own.
    pub(crate) fn exchange_copies(
        &self,
        work: &mut OperationWork,
        (ty, from): (&TensorInfo, &TensorLayout),
        to: &TensorLayout,
        name: &str,
    ) {
        let bytes = ty.dtype.bytes();
        let received = to.bytes(bytes);
        let start = work.phases().len();
        work.push_some(exchange::phase(
            name,
            &received,
            &from.bytes(bytes),
            TileMessages::each_way(TRANSPOSING_MESSAGES.count()),
            self.tiles,
            self.exchange_speed(),
        ));
        work.temporaries.push(TemporaryVariable::anywhere(
            format!("{name}/gathered"),
            MemoryCategory::Rearrangement,
            received,
            // One phase longer: the copy that follows reads it.
            start..work.phases().len() + 1,
        ));
    }

    /// Adds the rows `[labels, classes]` of type `ty` that a loss compares with, encoded again for
    /// its gradient, where `layout` has them.
    pub(crate) fn encode_labels(
        &self,
        work: &mut OperationWork,
        ty: &TensorInfo,
        layout: &TensorLayout,
        name: &str,
    ) {
        let labels = TensorLayout::linear(Elements(ty.shape[0]), DType::Int.bytes(), self.tiles);
        one_hot::encode(work, &self.machine, ty, &labels, layout, name);
    }
}
