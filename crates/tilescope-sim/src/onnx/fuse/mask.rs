//! Masks that stay as narrow as the values that they are made of.
//!
//! Exporters write a mask of keys as a mask of queries and keys: they expand it, or join it with a
//! mask that is true everywhere. All its rows are then equal, and the addition to the scores
//! repeats them anyway, as popops does with one row for all queries (poputil::broadcastToMatch). A
//! mask of weights that is computed as (1 - mask) . -10000 is a product and a sum of constants.

use super::pattern::{FusedNode, GraphView};
use tilescope_onnx::{ConstantData, OnnxGraph, OnnxNode, ValueId};

/// Operators that repeat operands which are narrower than their result.
const REPEATING: [&str; 24] = [
    "Add",
    "And",
    "Cast",
    "Div",
    "Equal",
    "Expand",
    "Greater",
    "GreaterOrEqual",
    "Identity",
    "IsNaN",
    "Less",
    "LessOrEqual",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "Pow",
    "Sub",
    "Sum",
    "Where",
    "Xor",
];

/// `(1 - mask) . constant` as one node.
pub(super) fn find_inverted(graph: &GraphView, last: usize) -> Option<FusedNode> {
    if graph.node(last).op != "Mul" {
        return None;
    }
    graph.either_way(last).into_iter().find_map(|[inverse, by]| {
        let sub = graph.only_maker(inverse, "Sub")?;
        let fits = graph.is_about(graph.input(sub, 0)?, 1.0)
            && graph.is_constant(by)
            && graph.scalar(by).is_some_and(|by| by < 0.0 && by.is_finite());
        let inputs = vec![graph.input(sub, 1)?, by];
        if fits { Some(FusedNode::new("InvertedMask", inputs, vec![sub, last])) } else { None }
    })
}

fn repeats(node: &OnnxNode) -> bool {
    node.domain.is_empty() && REPEATING.contains(&node.op.as_str())
}

/// The shape of the result of operands with these compatible shapes.
fn broadcast<'a>(operands: impl Iterator<Item = &'a [u64]>) -> Vec<u64> {
    let mut result: Vec<u64> = Vec::new();
    for dims in operands {
        if dims.len() > result.len() {
            let missing = dims.len() - result.len();
            result.splice(0..0, std::iter::repeat_n(1, missing));
        }
        let skipped = result.len() - dims.len();
        for (size, own) in result[skipped..].iter_mut().zip(dims) {
            if *size == 1 {
                *size = *own;
            }
        }
    }
    result
}

/// Adds leading ones to `dims` up to this rank.
fn of_rank(dims: &[u64], rank: usize) -> Vec<u64> {
    let missing = rank.saturating_sub(dims.len());
    std::iter::repeat_n(1, missing).chain(dims.iter().copied()).collect()
}

/// The narrowest known shapes of values.
struct NarrowValues<'a> {
    file: &'a OnnxGraph,
    /// The narrowest shape of each value that can be narrower than in the file.
    narrowest: Vec<Option<Vec<u64>>>,
}

impl NarrowValues<'_> {
    fn narrowest(&self, value: ValueId) -> &[u64] {
        self.narrowest[value.index()].as_deref().unwrap_or(&self.file.value(value).dims)
    }

    /// True if a value is known to be true everywhere.
    fn is_all_true(&self, value: ValueId) -> bool {
        let content = self.file.value(value).content.as_deref();
        content.is_some_and(|content| match &content.data {
            ConstantData::Bools(values) => values.iter().all(|value| *value),
            ConstantData::Ints(_) | ConstantData::Floats(_) => false,
        })
    }

    /// The operands that determine a result, without the sizes of an expansion and without masks
    /// that are true everywhere.
    fn operands(&self, node: &OnnxNode) -> Vec<ValueId> {
        let all: Vec<ValueId> = node.inputs.iter().flatten().copied().collect();
        match node.op.as_str() {
            "Expand" => all.into_iter().take(1).collect(),
            "And" => {
                let kept: Vec<ValueId> =
                    all.iter().copied().filter(|operand| !self.is_all_true(*operand)).collect();
                if kept.is_empty() { all } else { kept }
            }
            _ => all,
        }
    }

    /// The shape of a node's result for the narrowest possible operands.
    fn narrowest_result(&self, node: &OnnxNode) -> Option<Vec<u64>> {
        let output = node.outputs.first().copied().flatten()?;
        let operands = self.operands(node);
        let dims = broadcast(operands.iter().map(|operand| self.narrowest(*operand)));
        Some(of_rank(&dims, self.file.value(output).dims.len()))
    }
}

/// Returns the graph with narrow masks, and the number of removed operations that only repeat.
/// `None` if nothing can be narrowed.
pub(super) fn narrowed(file: &OnnxGraph) -> Option<(OnnxGraph, u64)> {
    let mut values = NarrowValues { file, narrowest: vec![None; file.values.len()] };
    for node in file.nodes.iter().filter(|node| repeats(node)) {
        let Some(output) = node.outputs.first().copied().flatten() else { continue };
        let dims = values.narrowest_result(node);
        if let Some(dims) = dims.filter(|dims| *dims != file.value(output).dims) {
            values.narrowest[output.index()] = Some(dims);
        }
    }
    if values.narrowest.iter().all(Option::is_none) {
        return None;
    }
    let mut shapes = wanted_shapes(&values);
    let mut graph = file.clone();
    let mut left_out = 0;
    for node in graph.nodes.iter_mut().filter(|node| repeats(node)) {
        let Some(output) = node.outputs.first().copied().flatten() else { continue };
        let shape =
            |value: ValueId| shapes[value.index()].as_ref().unwrap_or(&file.value(value).dims);
        let wanted = shape(output).clone();
        let all: Vec<ValueId> = node.inputs.iter().flatten().copied().collect();
        let only = match (node.op.as_str(), &values.operands(node)[..]) {
            ("And" | "Expand", [only]) => Some(*only),
            _ => None,
        };
        let as_wide = only.map(|only| of_rank(shape(only), wanted.len()));
        let made = match &as_wide {
            Some(own) if broadcast([own, &wanted].into_iter().map(Vec::as_slice)) == *own => {
                own.clone()
            }
            Some(own) if node.op == "Expand" => {
                broadcast([own, &wanted].into_iter().map(Vec::as_slice))
            }
            _ => of_rank(&broadcast(all.iter().map(|of| shape(*of).as_slice())), wanted.len()),
        };
        if let (Some(only), true) = (only, as_wide.as_ref() == Some(&made)) {
            node.op = "Identity".to_string();
            node.inputs = vec![Some(only)];
            left_out += 1;
        }
        shapes[output.index()] = Some(made);
    }
    for (value, dims) in graph.values.iter_mut().zip(shapes) {
        if let Some(dims) = dims {
            value.dims = dims;
        }
    }
    Some((graph, left_out))
}

/// The shapes that readers need of values. A value is as narrow as it can be if all its readers
/// repeat it, or if other operands are as wide as the result has to be. A value stays wider if one
/// of its operands is wide for another reader.
fn wanted_shapes(values: &NarrowValues) -> Vec<Option<Vec<u64>>> {
    let file = values.file;
    // True for axes, counted from the end, on which a reader needs the value to be as wide as in
    // the file.
    let mut wide: Vec<Vec<bool>> = vec![Vec::new(); file.values.len()];
    let mut whole: Vec<bool> = vec![false; file.values.len()];
    for output in &file.outputs {
        whole[output.index()] = true;
    }
    for node in file.nodes.iter().filter(|node| !repeats(node)) {
        for input in node.inputs.iter().flatten() {
            whole[input.index()] = true;
        }
    }
    let mut shapes: Vec<Option<Vec<u64>>> = vec![None; file.values.len()];
    for node in file.nodes.iter().rev() {
        for output in node.outputs.iter().flatten() {
            let at = output.index();
            if let Some(narrow) = &values.narrowest[at]
                && !whole[at]
            {
                let dims = &file.value(*output).dims;
                let own: Vec<u64> = (0..dims.len())
                    .map(|axis| {
                        let behind = dims.len() - 1 - axis;
                        let needed = wide[at].get(behind).copied().unwrap_or(false);
                        if needed { dims[axis] } else { narrow[axis] }
                    })
                    .collect();
                if own != *dims {
                    shapes[at] = Some(own);
                }
            }
        }
        if !repeats(node) || node.op == "Expand" {
            continue;
        }
        let Some(output) = node.outputs.first().copied().flatten() else { continue };
        let made = shapes[output.index()].as_deref().unwrap_or(&file.value(output).dims).to_vec();
        let operands: Vec<ValueId> = node.inputs.iter().flatten().copied().collect();
        for (behind, size) in made.iter().rev().enumerate().filter(|(_, size)| **size > 1) {
            // One operand must be as wide as the result. An operand that is wide in any case is
            // enough.
            if operands.iter().any(|of| size_from_end(values.narrowest(*of), behind) == *size) {
                continue;
            }
            for operand in &operands {
                let axes = &mut wide[operand.index()];
                if size_from_end(&file.value(*operand).dims, behind) == *size {
                    if axes.len() <= behind {
                        axes.resize(behind + 1, false);
                    }
                    axes[behind] = true;
                }
            }
        }
    }
    shapes
}

/// The size of an axis counted from the end, which is 1 for missing axes.
fn size_from_end(dims: &[u64], behind: usize) -> u64 {
    dims.iter().rev().nth(behind).copied().unwrap_or(1)
}
