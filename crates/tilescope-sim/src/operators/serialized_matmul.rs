//! The loop over the parts of a serialised linear layer.

use super::{LoweringContext, MatMulPhase, NodeOperands};
use crate::poplar::work::{OperationWork, OperationWorkItem, TemporaryVariable, WorkPhase};
use crate::poplin::matmul::MatMulSerialParts;
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp};
use crate::popops::planner_cycles::dynamic_slice;
use crate::shape::TensorId;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Elements, TileRuns};

impl LoweringContext<'_> {
    /// Adds the loop over the parts of a product, around the `work` of one part.
    pub(super) fn loop_over_serial_parts(
        &mut self,
        node: &NodeOperands,
        product: MatMulPhase,
        cut: MatMulSerialParts,
        work: OperationWork,
    ) -> OperationWork {
        let (operands, result) = cut.operand_and_result_parts(product);
        let mut body = OperationWork::default();
        let mut temporaries = Vec::new();
        for ((tensor, parts), name) in node.inputs.iter().zip(operands).zip(["input", "weights"]) {
            if parts > 1 {
                let name = format!("serialSlice/{name}");
                body.push(self.slices(*tensor, parts, &name, "DynamicSlice1d"));
                temporaries.push((name, self.part_bytes(*tensor, parts), 0));
            }
        }
        let before = body.phases().len();
        body.append(work);
        let made = node.outputs[0];
        let dtype = self.tensor_type(made).dtype;
        let elements = self.part_elements(made, result);
        temporaries.push(("serialResult".to_string(), self.part_bytes(made, result), before));
        let mut whole = OperationWork::default();
        if result > 1 {
            body.push(self.slices(made, result, "serialUpdate", "DynamicUpdateSlice1D"));
        } else {
            whole.push(elementwise::fill("serialResult/zero", dtype, &elements));
            let name = "serialResult/add";
            body.push(elementwise::in_place(
                name,
                ElementwiseOp::Binary(BinaryOpType::Add),
                dtype,
                &elements,
            ));
        }
        let end = body.phases().len();
        body.temporaries.extend(temporaries.into_iter().map(|(name, bytes, from)| {
            TemporaryVariable::anywhere(name, MemoryCategory::Variable, bytes, from..end)
        }));
        let start = whole.phases().len();
        whole.items.push(OperationWorkItem::Loop { times: cut.parts(), body: body.items });
        whole.temporaries.extend(body.temporaries.into_iter().map(|each| each.shifted_by(start)));
        whole
    }

    /// Elements of one part on each tile. Every tile holds its share of all parts.
    fn part_elements(&mut self, tensor: TensorId, parts: u64) -> TileRuns<Elements> {
        self.layout_or_linear(tensor).elements.map(|count| count.div_ceil(parts))
    }

    fn part_bytes(&mut self, tensor: TensorId, parts: u64) -> TileRuns<Bytes> {
        let bytes = self.tensor_type(tensor).dtype.bytes();
        self.part_elements(tensor, parts).map(|count| *count * bytes)
    }

    /// The phase that copies one part out of a tensor, or into it.
    fn slices(&mut self, tensor: TensorId, parts: u64, name: &str, vertex: &str) -> WorkPhase {
        let dtype = self.tensor_type(tensor).dtype;
        let machine = self.machine;
        let elements = self.part_elements(tensor, parts);
        let vertex = format!("popops::{vertex}<{}>", dtype.poplar_name());
        elementwise::phase(name, vertex, 2, &elements, |count| {
            dynamic_slice(&machine, *count, dtype)
        })
    }
}
