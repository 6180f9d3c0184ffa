//! The context of an operator while it is lowered: the machine, its operands, and the layouts of
//! tensors.

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

/// The state that the operators of one graph share while they are lowered: the machine, the plans,
/// and the layouts of all tensors so far.
#[derive(Clone)]
pub struct LoweringContext<'a> {
    /// The tensors of the graph.
    pub tensors: &'a [Tensor],
    /// The chip, and the number of its tiles that compute.
    pub machine: IpuTarget,
    /// The number of compute tiles of each IPU.
    pub tiles: u32,
    /// True if the model is trained. Layouts of weights then suit three passes.
    pub training: bool,
    /// The planning options of operations that have none themselves.
    pub planning: &'a PoplibsOptions,
    /// Shares of memory for temporaries, by block. Empty if all blocks have the share of
    /// `planning`.
    pub(crate) block_proportions: Vec<Proportion>,
    /// The plans made so far.
    pub plans: &'a PlanCache,
    /// For each tensor, true if one operation reads it and nothing else needs it.
    read_once: Vec<bool>,
    /// For each tensor, true if it is a weight or a view of one.
    weights: Vec<bool>,
    layouts: Vec<Option<usize>>,
    known_layouts: LayoutInterner,
}

/// The result of lowering an operation.
#[derive(Clone, Debug, Default)]
pub struct LoweredOperation {
    /// The work of the tiles.
    pub work: OperationWork,
    /// The planner's choice as a JSON object, if the operation was planned.
    pub plan: Option<String>,
    /// Lifetimes of its operands and results.
    pub liveness: OperandLiveness,
    /// The values that replicas with shares of its operands add up in the middle of the work.
    pub replica_sum: Option<ReplicaSum>,
}

/// Values that are only complete after all replicas have added up theirs, because each works on its
/// share of the operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSum {
    /// The number of work items before the sum.
    pub after: usize,
    /// Element type of the values.
    pub dtype: DType,
    /// Values on each tile.
    pub elements: TileRuns<Elements>,
}

impl From<OperationWork> for LoweredOperation {
    /// Makes an operation without a plan, whose operands and results exist all the time.
    fn from(work: OperationWork) -> Self {
        Self { work, ..Self::default() }
    }
}

/// A node of the graph in the form in which its operator sees it.
#[derive(Clone, Copy, Debug)]
pub struct NodeOperands<'a> {
    /// The path of names, such as `layer1/conv`.
    pub name: &'a str,
    /// The tensors that the node reads.
    pub inputs: &'a [TensorId],
    /// The tensors that the node writes.
    pub outputs: &'a [TensorId],
    /// The planning options of the node that differ from those of the program.
    pub planning: OperationPlanning,
    /// The block that the node belongs to.
    pub block: BlockId,
}

impl NodeOperands<'_> {
    /// The tensors that the node reads, then those that it makes.
    pub(crate) fn all(&self) -> impl Iterator<Item = TensorId> {
        self.inputs.iter().chain(self.outputs).copied()
    }
}

/// Layouts by number. Equal layouts have equal numbers.
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
    /// Makes a context in which only tensors that the program maps linearly have a layout.
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

    /// Sets, for each tensor, if one operation reads it and nothing else needs it.
    pub(crate) fn note_read_once(&mut self, read_once: Vec<bool>) {
        self.read_once = read_once;
    }

    /// Sets, for each tensor, if it is a weight or a view of one.
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

    /// The planning options of an operation.
    pub(crate) fn planning_of(&self, node: &NodeOperands) -> PoplibsOptions {
        let mut program = *self.planning;
        if let Some(share) = self.block_proportions.get(node.block.0) {
            program.available_memory_proportion = *share;
        }
        node.planning.over(&program)
    }

    /// The type of a tensor.
    pub fn tensor_type(&self, tensor: TensorId) -> &'a TensorInfo {
        &self.tensors[tensor.0].ty
    }

    /// The role of a tensor in the program.
    pub(crate) fn role(&self, tensor: TensorId) -> TensorRole {
        self.tensors[tensor.0].role
    }

    /// The number of a tensor's layout, if it has one. Equal layouts have equal numbers.
    pub(crate) fn layout_number(&self, tensor: TensorId) -> Option<usize> {
        self.layouts[tensor.0]
    }

    /// Gives a tensor the layout with this number.
    pub(crate) fn lay_out_as(&mut self, tensor: TensorId, number: Option<usize>) {
        self.layouts[tensor.0] = number;
    }

    /// The layout of a tensor, if it has one.
    pub fn layout(&self, tensor: TensorId) -> Option<&TensorLayout> {
        self.layouts[tensor.0].map(|number| &self.known_layouts.layouts[number])
    }

    /// Sets the layout of a tensor.
    pub(crate) fn set_layout(&mut self, tensor: TensorId, layout: TensorLayout) {
        self.layouts[tensor.0] = Some(self.known_layouts.number(layout));
    }

    /// Places a tensor without a layout linearly.
    pub(crate) fn lay_out(&mut self, tensor: TensorId) {
        if self.layout(tensor).is_none() {
            let ty = self.tensor_type(tensor);
            self.set_layout(
                tensor,
                TensorLayout::linear(ty.elements(), ty.dtype.bytes(), self.tiles),
            );
        }
    }

    /// The layout of a tensor, which is linear if none was set.
    pub(crate) fn layout_or_linear(&mut self, tensor: TensorId) -> TensorLayout {
        self.lay_out(tensor);
        self.layout(tensor).expect("it is laid out").clone()
    }

    /// The bytes per cycle that a tile sends or receives in an exchange.
    pub(crate) fn exchange_speed(&self) -> BytesPerCycle {
        self.machine.exchange_speed()
    }

    /// Places `tensor` in `layout` if it has no layout yet, or adds the work that moves it there.
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

    /// The phases that move `tensor` into `layout` for the operation step `name`. Empty if it
    /// already has that layout.
    pub(crate) fn relayout_tensor(
        &mut self,
        tensor: TensorId,
        layout: &TensorLayout,
        name: &str,
    ) -> OperationWork {
        let from = self.layout_or_linear(tensor);
        relayout::bring(&self.machine, self.tensor_type(tensor), &from, layout, name)
    }

    /// The phases that move a tensor into `layout` with blocks transposed on the way, for
    /// operations that require it: scaled additions and norms (poplibs lib/popops/ScaledAdd.cpp,
    /// lib/poplin/Norms.cpp).
    pub(crate) fn regroup_tensor(
        &mut self,
        tensor: TensorId,
        layout: &TensorLayout,
        name: &str,
    ) -> OperationWork {
        let from = self.layout_or_linear(tensor);
        relayout::bring_regrouped(&self.machine, self.tensor_type(tensor), &from, layout, name)
    }

    /// Adds the exchange that sends each tile of `to` its elements. They are copies of elements of
    /// a tensor with layout `from`, in an independent order.
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
            // One phase longer, because the copy that follows reads it.
            start..work.phases().len() + 1,
        ));
    }

    /// Adds the one-hot rows `[labels, classes]` of type `ty` that a loss compares with, encoded
    /// again for its gradient, in `layout`.
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
