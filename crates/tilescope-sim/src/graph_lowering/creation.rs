//! Layouts of tensors that no operation makes. The operation that reads such a tensor creates it in
//! its preferred layout, also through views and elementwise functions (popart
//! willow/src/popx/irlowering.cpp, getCreatorEndpoints; willow/src/popx/creatorx.cpp).

use crate::graph::ModelGraph;
use crate::operators::{LoweringContext, Unwinding};
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{TensorId, TensorRole};

/// Layout that an operation prefers for a tensor, and its priority.
#[derive(Clone, Debug)]
struct CreatedLayout {
    layout: TensorLayout,
    /// True if the layouts of other operations take precedence.
    last: bool,
    /// Index of the operation in the graph.
    node: usize,
}

impl CreatedLayout {
    /// Returns true if this layout takes precedence over `other` (popart
    /// willow/src/pointercomparators.cpp, PICreatorCandidateCmp; all candidates here cover whole
    /// tensors).
    fn comes_before(&self, other: &Self) -> bool {
        (self.last, self.node) < (other.last, other.node)
    }
}

/// Returns the layouts of tensors that exist before any operation and that a reader creates.
/// `created` returns the layouts in which a node creates its operands.
pub(super) fn created_layouts(
    graph: &ModelGraph,
    context: &LoweringContext,
    created: impl Fn(usize) -> Vec<Option<TensorLayout>>,
) -> Vec<(TensorId, TensorLayout)> {
    let mut is_created: Vec<bool> = Vec::with_capacity(graph.tensors.len());
    for tensor in &graph.tensors {
        let role = tensor.role;
        is_created
            .push(matches!(role, TensorRole::Input | TensorRole::Resident | TensorRole::Parameter));
    }
    for node in graph.nodes.iter().filter(|node| node.operator.readers_create_result()) {
        is_created[node.outputs[0].0] = true;
    }
    let is_source = |tensor: TensorId| is_created[tensor.0] && context.layout(tensor).is_none();
    let reached = reached_views(graph, is_source);
    let mut wanted: Vec<Option<CreatedLayout>> = vec![None; graph.tensors.len()];
    // Readers of a result follow its operation, so in reverse order the preferred layout of a
    // result is known before its operands are visited.
    for (index, node) in graph.nodes.iter().enumerate().rev() {
        if !node.inputs.iter().any(|input| reached[input.0]) {
            continue;
        }
        let types = graph.types(&node.inputs);
        let mut own = created(index);
        own.resize(node.inputs.len(), None);
        for (place, (input, own)) in node.inputs.iter().zip(own).enumerate() {
            if !reached[input.0] {
                continue;
            }
            let last = node.operator.creates_last();
            let own = own.map(|layout| CreatedLayout { layout, last, node: index });
            let candidate = own.or_else(|| {
                let output = *node.outputs.first()?;
                let of_result = wanted[output.0].as_ref()?;
                let shape = &graph.tensor(output).ty.shape;
                let unwinding = node.operator.unwinding(&types, place);
                let layout = unwinding.operand_layout(shape, &of_result.layout)?;
                Some(CreatedLayout { layout, ..of_result.clone() })
            });
            let known = &wanted[input.0];
            if let Some(candidate) = candidate
                && known.as_ref().is_none_or(|known| candidate.comes_before(known))
            {
                wanted[input.0] = Some(candidate);
            }
        }
    }
    let sources = (0..graph.tensors.len()).map(TensorId).filter(|tensor| is_source(*tensor));
    sources.filter_map(|tensor| Some((tensor, wanted[tensor.0].take()?.layout))).collect()
}

/// For each tensor, true if it is a source or has the layout of one.
fn reached_views(graph: &ModelGraph, is_source: impl Fn(TensorId) -> bool) -> Vec<bool> {
    let mut reached: Vec<bool> =
        (0..graph.tensors.len()).map(|at| is_source(TensorId(at))).collect();
    for node in &graph.nodes {
        let [output, ..] = node.outputs[..] else { continue };
        if !node.inputs.iter().any(|input| reached[input.0]) {
            continue;
        }
        let types = graph.types(&node.inputs);
        reached[output.0] = node.inputs.iter().enumerate().any(|(place, input)| {
            reached[input.0] && node.operator.unwinding(&types, place) != Unwinding::DeadEnd
        });
    }
    reached
}
