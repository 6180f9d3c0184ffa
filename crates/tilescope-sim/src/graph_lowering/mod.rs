//! Lowering of the operations of a graph.

mod creation;
#[cfg(test)]
mod layout_laws;
pub(crate) mod op_benchmark;
mod repeat_states;

use crate::graph::{GraphNode, ModelGraph};
use crate::operators::{
    LoweredOperation, LoweringContext, LoweringError, OperatorKey, PlannedSizes,
};
use crate::poplin::planner::PoplibsOptions;
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::TensorInfo;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use tilescope_report::units::Cycles;

/// Lowers the operations of one graph, one after the other.
///
/// Models repeat their layers, so most operations equal one that was lowered before: the same
/// operator on operands of the same types and layouts. These share its [`LoweredOperation`].
pub struct GraphLowering<'a, 'b> {
    graph: &'a ModelGraph,
    /// State that operators share, such as the layouts of the tensors so far.
    pub context: &'b mut LoweringContext<'a>,
    lowered: HashMap<LoweringCacheKey, LoweringCacheEntry>,
}

/// Ratio of cycles from which padding is recommended. Plans of neighbouring sizes differ by less
/// unless memory is the limit.
const WORTH_PADDING: u64 = 2;

/// Operation that would be faster with sizes rounded up to whole grains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorthPadding {
    pub operation: String,
    /// Estimated cycles with its own sizes.
    pub cycles: Cycles,
    /// Estimated cycles with padded sizes.
    pub padded: Cycles,
}

impl WorthPadding {
    /// Returns the cycles of a planned operation that is short of memory, if padding its sizes is
    /// worth it.
    fn of_node(context: &LoweringContext, node: &GraphNode) -> Option<Self> {
        let operands = node.operands();
        let operator = &node.operator;
        let given = operator.planned_cost(context, &operands, PlannedSizes::AsTheyAre)?;
        if given.short_of_memory == 0 {
            return None;
        }
        let padded = operator.planned_cost(context, &operands, PlannedSizes::WholeGrains)?.cycles;
        if given.cycles <= WORTH_PADDING * padded {
            return None;
        }
        Some(Self { operation: node.name.clone(), cycles: given.cycles, padded })
    }
}

/// Everything that the lowering of an operation depends on.
#[derive(PartialEq, Eq, Hash)]
struct LoweringCacheKey {
    operator: OperatorKey,
    planning: PoplibsOptions,
    /// For each operand: its type, the number of its layout, and flags for being overwritable and
    /// being a weight.
    operands: Vec<(TensorInfo, Option<usize>, [bool; 2])>,
}

impl LoweringCacheKey {
    fn new(node: &GraphNode, context: &LoweringContext) -> Self {
        let mut operands = Vec::new();
        for tensor in node.operands().all() {
            let layout = context.layout_number(tensor);
            let kind = [context.dies(tensor), context.is_weight(tensor)];
            operands.push((context.tensor_type(tensor).clone(), layout, kind));
        }
        let operator = OperatorKey::new(&node.operator);
        let planning = context.planning_of(&node.operands());
        Self { operator, planning, operands }
    }
}

/// Result of lowering an operation, with the numbers of its operands' layouts at that time.
struct LoweringCacheEntry {
    lowered: Arc<LoweredOperation>,
    layouts: Vec<Option<usize>>,
}

/// Inputs of a plan: operator, options, operand types, and a flag for each operand that is a
/// weight.
type PlannedKey = (OperatorKey, PoplibsOptions, Vec<TensorInfo>, Vec<bool>);

/// Planned operations of a graph without duplicates. Equal layers would otherwise search for the
/// same plan at the same time.
struct PlannedNodes<'a> {
    /// Index into `different` of each planned operation, by its index in the graph.
    kinds: HashMap<usize, usize>,
    different: Vec<&'a GraphNode>,
}

impl<'a> PlannedNodes<'a> {
    fn of(graph: &'a ModelGraph, context: &LoweringContext) -> Self {
        let mut numbers: HashMap<PlannedKey, usize> = HashMap::new();
        let mut kinds = HashMap::new();
        let mut different = Vec::new();
        for (place, node) in graph.nodes.iter().enumerate() {
            if !node.operator.is_planned() {
                continue;
            }
            let operator = OperatorKey::new(&node.operator);
            let planning = context.planning_of(&node.operands());
            let weights = node.inputs.iter().map(|input| context.is_weight(*input)).collect();
            let key = (operator, planning, graph.types(&node.inputs), weights);
            let kind = *numbers.entry(key).or_insert_with(|| {
                different.push(node);
                different.len() - 1
            });
            kinds.insert(place, kind);
        }
        Self { kinds, different }
    }
}

impl<'a, 'b> GraphLowering<'a, 'b> {
    /// Creates the lowering of a graph whose tensors have the layouts in `context`.
    pub fn new(graph: &'a ModelGraph, context: &'b mut LoweringContext<'a>) -> Self {
        context.note_read_once(graph.read_once());
        context.note_weights(graph.weights());
        Self { graph, context, lowered: HashMap::new() }
    }

    /// Computes all plans that operations of the graph need, in parallel, and lays out sources as
    /// their readers create them, independent of the order of readers. Planning errors are ignored
    /// here and reported when the operation is lowered.
    pub fn plan_ahead(&mut self) {
        let graph = self.graph;
        let context: &LoweringContext = self.context;
        let PlannedNodes { kinds, different } = PlannedNodes::of(graph, context);
        let create = |node: &&GraphNode| node.operator.create_operands(context, &node.operands());
        let planned: Vec<Vec<Option<TensorLayout>>> = different.par_iter().map(create).collect();
        let created = creation::created_layouts(graph, context, |node| match kinds.get(&node) {
            Some(kind) => planned[*kind].clone(),
            None => create(&&graph.nodes[node]),
        });
        for (tensor, layout) in created {
            self.context.set_layout(tensor, layout);
        }
        repeat_states::lay_out_states(graph, self.context);
    }

    /// Returns the products and convolutions that are expected to take more than [`WORTH_PADDING`]
    /// times the cycles of slightly larger ones, because their sizes have too few divisors for the
    /// splits that memory requires. Of several equal operations, only the first is returned.
    pub fn worth_padding(&self) -> Vec<WorthPadding> {
        let context: &LoweringContext = self.context;
        let PlannedNodes { different, .. } = PlannedNodes::of(self.graph, context);
        different.par_iter().filter_map(|node| WorthPadding::of_node(context, node)).collect()
    }

    /// Returns true if a linear layer is computed in serial parts.
    pub fn serializes_a_layer(&self) -> bool {
        let PlannedNodes { different, .. } = PlannedNodes::of(self.graph, self.context);
        let context: &LoweringContext = self.context;
        different.iter().any(|node| node.operator.serial_parts(context, &node.operands()) > 1)
    }

    /// Lowers one operation of the graph, or returns the result of an equal one.
    ///
    /// # Errors
    ///
    /// Fails if no plan exists.
    pub fn lower(&mut self, node: &GraphNode) -> Result<Arc<LoweredOperation>, LoweringError> {
        let operands = node.operands();
        let key = LoweringCacheKey::new(node, self.context);
        if let Some(known) = self.lowered.get(&key) {
            // Lowering also lays out operands that had no layout. A cached result must have the
            // same effect.
            for (tensor, layout) in operands.all().zip(&known.layouts) {
                self.context.lay_out_as(tensor, *layout);
            }
            return Ok(Arc::clone(&known.lowered));
        }
        let lowered = Arc::new(node.operator.lower(self.context, &operands)?);
        let layouts = operands.all().map(|tensor| self.context.layout_number(tensor)).collect();
        self.lowered.insert(key, LoweringCacheEntry { lowered: Arc::clone(&lowered), layouts });
        Ok(lowered)
    }
}
