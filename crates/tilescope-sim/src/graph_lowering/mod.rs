//! Lowers the operations of a graph.

pub mod alone;

use crate::graph::{Graph, Node};
use crate::operators::{LowerError, Lowered, Lowering, OperatorKey};
use crate::poputil::layout::Layout;
use crate::shape::{Role, TensorId, TensorType};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// Lowers the operations of one graph, one after the other.
///
/// Models repeat their layers, so most operations equal one that was lowered before: the same
/// operator on operands of the same types that lie the same way. Those share its [`Lowered`].
pub struct GraphLowering<'a, 'b> {
    graph: &'a Graph,
    /// What the operators share: among others, how the tensors lie so far.
    pub context: &'b mut Lowering<'a>,
    lowered: HashMap<OperationKey, Remembered>,
}

/// Everything that what an operation lowers to depends on.
#[derive(PartialEq, Eq, Hash)]
struct OperationKey {
    operator: OperatorKey,
    operands: Vec<(TensorType, Option<usize>)>,
}

impl OperationKey {
    fn new(node: &Node, context: &Lowering) -> Self {
        let operand = |tensor| (context.ty(tensor).clone(), context.layout_number(tensor));
        let operands = node.operands().all().map(operand).collect();
        Self { operator: OperatorKey::new(&node.operator), operands }
    }
}

/// What an operation lowered to, and the numbers of its operands' layouts then.
struct Remembered {
    lowered: Lowered,
    layouts: Vec<Option<usize>>,
}

impl<'a, 'b> GraphLowering<'a, 'b> {
    /// Of a graph whose tensors lie as `context` says.
    pub fn new(graph: &'a Graph, context: &'b mut Lowering<'a>) -> Self {
        Self { graph, context, lowered: HashMap::new() }
    }

    /// Makes all plans that operations of the graph will ask for, in parallel, and lays weights out
    /// for them, whoever reads them first. What cannot be planned is found again, and said, when
    /// the operation is lowered.
    pub fn plan_ahead(&mut self) {
        let graph = self.graph;
        let planned: Vec<&Node> =
            graph.nodes.iter().filter(|node| node.operator.is_planned()).collect();
        let mut numbers: HashMap<(OperatorKey, Vec<TensorType>), usize> = HashMap::new();
        let mut different: Vec<&Node> = Vec::new();
        let kinds = planned.iter().map(|node| {
            let key = (OperatorKey::new(&node.operator), graph.types(&node.inputs));
            *numbers.entry(key).or_insert_with(|| {
                different.push(node);
                different.len() - 1
            })
        });
        let kinds: Vec<usize> = kinds.collect();
        let context: &Lowering = self.context;
        let layout = |node: &&Node| node.operator.plan_ahead(context, &node.operands());
        let weights: Vec<Option<Layout>> = different.par_iter().map(layout).collect();
        let casts: HashSet<TensorId> = graph
            .nodes
            .iter()
            .filter(|node| node.operator.is_cast())
            .flat_map(|node| node.outputs.iter().copied())
            .collect();
        for (node, kind) in planned.into_iter().zip(kinds) {
            let tensor = node.inputs[1];
            let kept = graph.tensor(tensor).role == Role::Parameter;
            if let Some(layout) = &weights[kind]
                && (kept || casts.contains(&tensor))
                && self.context.layout(tensor).is_none()
            {
                self.context.lay_out(tensor, layout.clone());
            }
        }
    }

    /// Lowers one operation of the graph, or finds one that was equal.
    ///
    /// # Errors
    /// Where no plan exists.
    pub fn lower(&mut self, node: &Node) -> Result<Lowered, LowerError> {
        let operands = node.operands();
        let key = OperationKey::new(node, self.context);
        if let Some(known) = self.lowered.get(&key) {
            for (tensor, layout) in operands.all().zip(&known.layouts) {
                self.context.lay_out_as(tensor, *layout);
            }
            return Ok(known.lowered.clone());
        }
        let lowered = node.operator.lower(self.context, &operands)?;
        let layouts = operands.all().map(|tensor| self.context.layout_number(tensor)).collect();
        self.lowered.insert(key, Remembered { lowered: lowered.clone(), layouts });
        Ok(lowered)
    }
}
