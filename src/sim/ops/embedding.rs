//! Rows of a table by their indices: embeddings, and picking tokens of sequences.

use super::{Operator, expect_operands};
use crate::sim::graph::{Backward, DType, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::embedding::{self, Lowered};
use crate::sim::lower::layout::Layout;
use crate::sim::lower::{LowerError, Lowering, elementwise, runs, work::Work};

/// The rows of a table `[rows, width]` that the indices `[lookups]` name: `[lookups, width]`.
#[derive(Clone, Copy, Debug)]
pub struct Gather;

/// What is looked up in `table` by `indices`, if they are that.
fn seen(table: &TensorType, indices: &TensorType) -> Result<embedding::Embedding, String> {
    match (&table.shape[..], &indices.shape[..]) {
        ([rows, width], [lookups]) if indices.dtype == DType::Int => Ok(embedding::Embedding {
            rows: *rows,
            width: *width,
            lookups: *lookups,
            dtype: table.dtype,
        }),
        _ => Err(format!(
            "a table [rows, width] and int32 indices [lookups] are expected, not {table} and {indices}"
        )),
    }
}

/// Deals a table to the tiles.
fn deal<'a>(
    lowering: &'a Lowering,
    node: &Node,
    table: &TensorType,
    indices: &TensorType,
) -> Result<Lowered<'a>, LowerError> {
    let embedding = seen(table, indices)
        .map_err(|problem| LowerError { operation: node.name.clone(), problem })?;
    let plan = embedding::plan(&embedding, lowering.machine.tiles, lowering.training);
    Ok(Lowered::new(&lowering.machine, embedding, plan))
}

/// A planned layout without the padding of its last columns.
fn fitted(layout: Layout, ty: &TensorType) -> Layout {
    Layout { elements: runs::trimmed(&layout.elements, ty.elements()), order: layout.order }
}

impl Operator for Gather {
    fn kind(&self) -> &'static str {
        "gather"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        let seen = seen(&inputs[0], &inputs[1])?;
        Ok(vec![TensorType::new([seen.lookups, seen.width], seen.dtype)])
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> u64 {
        0
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let operator = GatherGradient { table: backward.input_type(0) };
        let indices = backward.node.inputs[1];
        Ok(vec![Some(backward.apply("grad", operator, &[indices, gradient])?), None])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let [table, indices] = [lowering.ty(node.inputs[0]), lowering.ty(node.inputs[1])];
        let output = lowering.ty(node.outputs[0]);
        let dealt = deal(lowering, node, table, indices)?;
        let (wanted, slices) = (fitted(dealt.table(), table), fitted(dealt.slices(), output));
        let indices = dealt.indices();
        let mut work = dealt.gather();
        match lowering.layout(node.inputs[0]) {
            None => lowering.lay_out(node.inputs[0], wanted),
            // Of a table that lies for another operation, only the chosen rows are moved.
            Some(held) if *held != wanted => {
                let spread =
                    Layout::linear(output.elements(), output.dtype.bytes(), lowering.tiles);
                lowering.lay_out(node.outputs[0], spread);
                work.items.extend(lowering.bring(node.outputs[0], &slices, "gathered").items);
            }
            Some(_) => {}
        }
        if lowering.layout(node.inputs[1]).is_none() {
            lowering.lay_out(node.inputs[1], indices);
        }
        lowering.lay_out(node.outputs[0], slices);
        Ok(work)
    }
}

/// Gradient of the table: each row the sum of the gradients of its uses.
#[derive(Clone, Debug)]
struct GatherGradient {
    table: TensorType,
}

impl Operator for GatherGradient {
    fn kind(&self) -> &'static str {
        "gather_grad"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        Ok(vec![self.table.clone()])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        inputs[1].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let indices = lowering.ty(node.inputs[0]);
        let gradient = lowering.ty(node.inputs[1]);
        let dealt = deal(lowering, node, &self.table, indices)?;
        let table = fitted(dealt.table(), &self.table);
        let slices = fitted(dealt.slices(), gradient);
        let update = dealt.update().map_err(|error| LowerError {
            operation: node.name.clone(),
            problem: error.to_string(),
        })?;
        let mut work = lowering.bring(node.inputs[1], &slices, "multiUpdateAdd");
        work.push(elementwise::fill("multiUpdateAdd/zero", self.table.dtype, &table.elements));
        work.append(update);
        lowering.lay_out(node.outputs[0], table);
        Ok(work)
    }
}
