//! Rows of a table, looked up by index.

use super::{Operator, expect_operands, expect_same};
use crate::graph::{Backward, DType, GraphError, Node, TensorId, TensorType};
use crate::lower::embedding::{self, Lowered};
use crate::lower::layout::Layout;
use crate::lower::work::WorkItem;
use crate::lower::{Lives, LowerError, Lowering, elementwise, runs, work::Work};

/// `table[rows, width]` at `indices[..]`: a tensor of the shape of the indices, and the width.
#[derive(Clone, Copy, Debug)]
pub struct Embedding {
    /// Parts of the lookups that are made one after the other: less memory at a time.
    pub serialisation: u64,
}

impl Default for Embedding {
    fn default() -> Self {
        Self { serialisation: 1 }
    }
}

impl Embedding {
    fn check(&self, table: &TensorType, indices: &TensorType) -> Result<[u64; 2], String> {
        let [rows, width] = table.shape[..] else {
            return Err(format!("expected a table of rows and columns, found {table}"));
        };
        if indices.dtype != DType::Int {
            return Err(format!("indices are whole numbers, not {indices}"));
        }
        if self.serialisation == 0 || !indices.elements().is_multiple_of(self.serialisation) {
            return Err(format!("{indices} cannot be cut into {} parts", self.serialisation));
        }
        Ok([rows, width])
    }

    /// One part of the lookups.
    fn part(&self, table: &TensorType, indices: &TensorType) -> embedding::Embedding {
        let lookups = (indices.elements() / self.serialisation.max(1)).max(1);
        embedding::Embedding {
            rows: table.shape[0],
            width: table.shape[1],
            lookups,
            dtype: table.dtype,
        }
    }

    /// `body` for every part, one after the other.
    fn serialised(&self, body: Work) -> Work {
        if self.serialisation <= 1 {
            return body;
        }
        let items = vec![WorkItem::Loop { times: self.serialisation, body: body.items }];
        Work { items, temporaries: body.temporaries }
    }

    /// All rows of a layout of one part.
    fn whole(&self, part: Layout) -> Layout {
        Layout { elements: part.elements.map(|count| count * self.serialisation), ..part }
    }
}

/// A planned layout without the padding of its last columns.
fn fitted(layout: Layout, ty: &TensorType) -> Layout {
    Layout { elements: runs::trimmed(&layout.elements, ty.elements()), order: layout.order }
}

impl Operator for Embedding {
    fn kind(&self) -> &'static str {
        "embedding"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        let [_, width] = self.check(&inputs[0], &inputs[1])?;
        let mut shape = inputs[1].shape.clone();
        shape.push(width);
        Ok(vec![TensorType::new(shape, inputs[0].dtype)])
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> u64 {
        0
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        if !backward.wants(0) {
            return Ok(vec![None, None]);
        }
        let gradient = backward.gradient()?;
        let indices = backward.node.inputs[1];
        let operator = EmbeddingGradient { embedding: *self, table: backward.input_type(0) };
        Ok(vec![Some(backward.apply("grad", operator, &[indices, gradient])?), None])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let [table, indices] = [node.inputs[0], node.inputs[1]];
        let part = self.part(lowering.ty(table), lowering.ty(indices));
        let machine = lowering.machine;
        let plan = embedding::plan(&part, machine.tiles, lowering.training);
        let lowered = Lowered::new(&machine, part, plan);
        let wanted = fitted(lowered.table(), lowering.ty(table));
        let output = lowering.ty(node.outputs[0]);
        let slices = fitted(self.whole(lowered.slices()), output);
        let indices_layout = fitted(self.whole(lowered.indices()), lowering.ty(indices));
        let mut work = lowering.place_or_bring(indices, indices_layout, "multiSlice/indices");
        work.append(self.serialised(lowered.gather()));
        let made = work.phases().len() - 1;
        match lowering.layout(table) {
            None => lowering.lay_out(table, wanted),
            // Of a table that lies for another operation, only the chosen rows are moved.
            Some(held) if *held != wanted => {
                let spread =
                    Layout::linear(output.elements(), output.dtype.bytes(), lowering.tiles);
                lowering.lay_out(node.outputs[0], spread);
                work.append(lowering.bring(node.outputs[0], &slices, "gathered"));
            }
            Some(_) => {}
        }
        lowering.lay_out(node.outputs[0], slices);
        // Parts are put where the result is one after the other; else the last phase makes it.
        let from = if self.serialisation > 1 { 0 } else { made };
        lowering.note_lives(Lives { outputs_from: vec![from], ..Lives::default() });
        Ok(work)
    }
}

/// Adds a row to each row of a table that an index names, in place: table, indices, rows.
#[derive(Clone, Copy, Debug)]
pub struct MultiUpdateAdd;

impl Operator for MultiUpdateAdd {
    fn kind(&self) -> &'static str {
        "multi_update_add"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 3)?;
        let rows = Embedding::default().infer(&inputs[..2])?;
        expect_same(&inputs[2], &rows[0])?;
        Ok(Vec::new())
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        inputs[2].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let [table, indices, rows] = [node.inputs[0], node.inputs[1], node.inputs[2]];
        let part = Embedding::default().part(lowering.ty(table), lowering.ty(indices));
        let machine = lowering.machine;
        let plan = embedding::plan(&part, machine.tiles, lowering.training);
        let lowered = Lowered::new(&machine, part, plan);
        let wanted =
            [(table, lowered.table()), (indices, lowered.indices()), (rows, lowered.slices())];
        let mut work = Work::default();
        for (tensor, layout) in wanted {
            let layout = fitted(layout, lowering.ty(tensor));
            work.append(lowering.place_or_bring(tensor, layout, "multiUpdateAdd/operands"));
        }
        work.append(lowered.update().map_err(|error| LowerError {
            operation: node.name.clone(),
            problem: error.to_string(),
        })?);
        Ok(work)
    }
}

/// Gradient of the table: zeros, and the gradient of each lookup added to its row.
#[derive(Clone, Debug)]
struct EmbeddingGradient {
    embedding: Embedding,
    table: TensorType,
}

impl Operator for EmbeddingGradient {
    fn kind(&self) -> &'static str {
        "embedding_grad"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        self.embedding.check(&self.table, &inputs[0])?;
        Ok(vec![self.table.clone()])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        inputs[1].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let [indices, gradient] = [node.inputs[0], node.inputs[1]];
        let part = self.embedding.part(&self.table, lowering.ty(indices));
        let machine = lowering.machine;
        let plan = embedding::plan(&part, machine.tiles, lowering.training);
        let lowered = Lowered::new(&machine, part, plan);
        let slices = fitted(self.embedding.whole(lowered.slices()), lowering.ty(gradient));
        let mut work = lowering.place_or_bring(gradient, slices, "multiUpdateAdd/slices");
        let table = fitted(lowered.table(), &self.table);
        work.push(elementwise::fill("multiUpdateAdd/zeroTable", part.dtype, &table.elements));
        let update = lowered.update().map_err(|error| LowerError {
            operation: node.name.clone(),
            problem: error.to_string(),
        })?;
        work.append(self.embedding.serialised(update));
        lowering.lay_out(node.outputs[0], table);
        Ok(work)
    }
}
