//! Lowers the operations of a graph.

mod creation;
#[cfg(test)]
mod layout_laws;
pub(crate) mod op_benchmark;

use crate::graph::{GraphNode, ModelGraph};
use crate::operators::{
    LoweredOperation, LoweringContext, LoweringError, OperatorKey, PlannedSizes,
};
use crate::poplin::planner::PoplibsOptions;
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::TensorInfo;
use rayon::prelude::*;
use std::collections::HashMap;
use tilescope_report::units::Cycles;

/// Lowers the operations of one graph, one after the other.
///
/// Models repeat their layers, so most operations equal one that was lowered before: the same
/// operator on operands of the same types that lie the same way. Those share its [`LoweredOperation`].
pub struct GraphLowering<'a, 'b> {
    graph: &'a ModelGraph,
    /// What the operators share: among others, how the tensors lie so far.
    pub context: &'b mut LoweringContext<'a>,
    lowered: HashMap<LoweringCacheKey, LoweringCacheEntry>,
}

/// From how many times the cycles on padding is advised: plans of neighbouring sizes differ by less
/// where memory does not decide.
const WORTH_PADDING: u64 = 2;

/// An operation that would be faster if its sizes were whole grains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorthPadding {
    pub operation: String,
    /// Expected of its sizes.
    pub cycles: Cycles,
    /// Expected of the padded ones.
    pub padded: Cycles,
}

/// Everything that what an operation lowers to depends on.
#[derive(PartialEq, Eq, Hash)]
struct LoweringCacheKey {
    operator: OperatorKey,
    planning: PoplibsOptions,
    /// Of each operand its type, the number of its layout, and whether it may be overwritten or is a
    /// weight.
    operands: Vec<(TensorInfo, Option<usize>, [bool; 2])>,
}

impl LoweringCacheKey {
    fn new(node: &GraphNode, context: &LoweringContext) -> Self {
        let operand = |tensor| {
            let layout = context.layout_number(tensor);
            let kind = [context.dies(tensor), context.is_weight(tensor)];
            (context.tensor_type(tensor).clone(), layout, kind)
        };
        let operands = node.operands().all().map(operand).collect();
        let operator = OperatorKey::new(&node.operator);
        let planning = context.planning_of(&node.operands());
        Self { operator, planning, operands }
    }
}

/// What an operation lowered to, and the numbers of its operands' layouts then.
struct LoweringCacheEntry {
    lowered: LoweredOperation,
    layouts: Vec<Option<usize>>,
}

/// The inputs of a plan: an operator, its options, and the types of its operands and which of them
/// are weights.
type PlannedKey = (OperatorKey, PoplibsOptions, Vec<TensorInfo>, Vec<bool>);

/// The planned operations of a graph. Each plan is asked for once, or equal layers would search for
/// it at the same time.
struct PlannedNodes<'a> {
    /// By place in the graph, which of the different ones an operation equals.
    kinds: HashMap<usize, usize>,
    different: Vec<&'a GraphNode>,
}

impl<'a> PlannedNodes<'a> {
    fn of(graph: &'a ModelGraph, context: &LoweringContext) -> Self {
        let mut numbers: HashMap<PlannedKey, usize> = HashMap::new();
        let (mut kinds, mut different) = (HashMap::new(), Vec::new());
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
    /// Of a graph whose tensors lie as `context` says.
    pub fn new(graph: &'a ModelGraph, context: &'b mut LoweringContext<'a>) -> Self {
        context.note_read_once(graph.read_once());
        context.note_weights(graph.weights());
        Self { graph, context, lowered: HashMap::new() }
    }

    /// Makes all plans that operations of the graph will ask for, in parallel, and lays tensors out
    /// that no operation makes as their readers create them, whoever reads them first. What cannot be
    /// planned is found again, and said, when the operation is lowered.
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
    }

    /// Products and convolutions that are expected to take more than [`WORTH_PADDING`] times the
    /// cycles of slightly larger ones: their sizes have too few divisors for the parts that memory
    /// asks for. Of equal ones the first.
    pub fn worth_padding(&self) -> Vec<WorthPadding> {
        let context: &LoweringContext = self.context;
        let PlannedNodes { different, .. } = PlannedNodes::of(self.graph, context);
        let worth = |node: &&GraphNode| {
            let operands = node.operands();
            let cost = |sizes| node.operator.planned_cost(context, &operands, sizes);
            let given = cost(PlannedSizes::AsTheyAre).filter(|cost| cost.short_of_memory > 0)?;
            let padded = cost(PlannedSizes::WholeGrains)?.cycles;
            (given.cycles > WORTH_PADDING * padded).then(|| WorthPadding {
                operation: node.name.clone(),
                cycles: given.cycles,
                padded,
            })
        };
        different.par_iter().filter_map(worth).collect()
    }

    /// True if a linear layer is computed in parts one after the other.
    pub fn serializes_a_layer(&self) -> bool {
        let PlannedNodes { different, .. } = PlannedNodes::of(self.graph, self.context);
        let context: &LoweringContext = self.context;
        let parts = |node: &&GraphNode| node.operator.serial_parts(context, &node.operands());
        different.iter().any(|node| parts(node) > 1)
    }

    /// Lowers one operation of the graph, or finds one that was equal.
    ///
    /// # Errors
    /// Where no plan exists.
    pub fn lower(&mut self, node: &GraphNode) -> Result<LoweredOperation, LoweringError> {
        let operands = node.operands();
        let key = LoweringCacheKey::new(node, self.context);
        if let Some(known) = self.lowered.get(&key) {
            // Lowering also lays out operands that lay nowhere yet. An operation that is found has
            // to leave the same behind.
            for (tensor, layout) in operands.all().zip(&known.layouts) {
                self.context.lay_out_as(tensor, *layout);
            }
            return Ok(known.lowered.clone());
        }
        let lowered = node.operator.lower(self.context, &operands)?;
        let layouts = operands.all().map(|tensor| self.context.layout_number(tensor)).collect();
        self.lowered.insert(key, LoweringCacheEntry { lowered: lowered.clone(), layouts });
        Ok(lowered)
    }
}
