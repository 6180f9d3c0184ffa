//! The operations of a report, collected while the program is compiled.

use super::program_plan::ProgramPlan;
use super::tensor_analysis::{TensorBuffer, TensorBufferKind};
use crate::error_bands::own_basis;
use crate::graph::GraphNode;
use crate::shape::{ShapeDisplay, TensorId, TensorInfo};
use std::collections::BTreeMap;
use tilescope_report::units::{IpuId, OperationId};
use tilescope_report::{ArithmeticType, ModelOperation, TrainingPass};

/// The operations so far, and the last writer of each memory.
pub(super) struct OperationTable<'a> {
    plan: &'a ProgramPlan<'a>,
    operations: Vec<ModelOperation>,
    /// The operation that last wrote each memory.
    writers: BTreeMap<TensorBuffer, OperationId>,
}

impl<'a> OperationTable<'a> {
    pub(super) fn new(plan: &'a ProgramPlan<'a>) -> Self {
        Self { plan, operations: Vec::new(), writers: BTreeMap::new() }
    }

    pub(super) fn into_operations(self) -> Vec<ModelOperation> {
        self.operations
    }

    /// The pass that an operation belongs to.
    pub(super) fn pass(&self, operation: OperationId) -> TrainingPass {
        self.operations[operation.index()].pass
    }

    /// Replaces the floating point operations of an operation.
    pub(super) fn set_flops(&mut self, operation: OperationId, flops: u64) {
        self.operations[operation.index()].flops = flops;
    }

    /// Records that an operation wrote a memory.
    pub(super) fn note_writer(&mut self, buffer: TensorBuffer, operation: OperationId) {
        self.writers.insert(buffer, operation);
    }

    /// Adds an operation and returns its id.
    pub(super) fn add(&mut self, operation: ModelOperation) -> OperationId {
        self.operations.push(operation);
        OperationId::from_index(self.operations.len() - 1)
    }

    /// Makes an operation that only moves tensors.
    pub(super) fn copy(
        &self,
        (name, kind): (String, &str),
        pass: TrainingPass,
        read: &[TensorBuffer],
        ipu: IpuId,
    ) -> ModelOperation {
        ModelOperation {
            name,
            kind: kind.to_owned(),
            source: None,
            pass,
            block: None,
            ipu: Some(ipu),
            flops: 0,
            element_type: None,
            inner_runs: None,
            cost_basis: None,
            shapes: String::new(),
            plan: None,
            inputs: self.inputs(read),
        }
    }

    /// Adds the operation of a graph node.
    pub(super) fn add_node(
        &mut self,
        node: &GraphNode,
        name: &str,
        (stage, pass): (usize, TrainingPass),
        ipu: IpuId,
        plan: Option<String>,
    ) -> OperationId {
        let program = self.plan;
        let buffers = |tensors: &[TensorId]| -> Vec<TensorBuffer> {
            let of = tensors.iter();
            of.flat_map(|tensor| program.tensors.buffers(*tensor, stage, ipu, pass)).collect()
        };
        let operands = shapes(&program.graph.types(&node.inputs));
        let results = shapes(&program.graph.types(&node.outputs));
        let arrow = if results.is_empty() { "" } else { " -> " };
        let kind = node.operator.kind();
        let operation = self.add(ModelOperation {
            name: name.to_string(),
            kind: kind.to_string(),
            source: node.source.as_deref().map(str::to_string),
            pass,
            block: program.graph.blocks.get(node.block.0).cloned(),
            ipu: Some(ipu),
            flops: program.graph.node_flops(node).saturating_mul(program.graph.runs(node)),
            element_type: self.element_type(node),
            inner_runs: None,
            cost_basis: own_basis(kind, program.graph.node_extent(node)),
            shapes: format!("{}{arrow}{}", operands.join(" x "), results.join(", ")),
            plan,
            inputs: self.inputs(&buffers(&node.inputs)),
        });
        self.writers.extend(buffers(&node.outputs).into_iter().map(|buffer| (buffer, operation)));
        operation
    }

    /// The type that a node computes in: the type of its first floating point operand or result, or
    /// else of its first operand.
    fn element_type(&self, node: &GraphNode) -> Option<ArithmeticType> {
        let graph = self.plan.graph;
        let types = graph.types(&node.inputs).into_iter();
        let types: Vec<TensorInfo> = types.chain(graph.types(&node.outputs)).collect();
        let number = types.iter().find(|of| of.dtype.is_floating_point()).or(types.first());
        number.map(|of| of.dtype.arithmetic_type())
    }

    /// Returns the operations that wrote the memories in `read`, including those on other IPUs.
    fn inputs(&self, read: &[TensorBuffer]) -> Vec<OperationId> {
        let mut inputs: Vec<OperationId> = Vec::new();
        for tensor_buffer in read {
            // A copy between stages is not an operation, so a received tensor has no writer here.
            let writer = self.writers.get(tensor_buffer).copied();
            if let Some(writer) = writer.or_else(|| self.writer_on_any_ipu(tensor_buffer.tensor))
                && !inputs.contains(&writer)
            {
                inputs.push(writer);
            }
        }
        inputs
    }

    /// The operation that last wrote the original memory of a tensor, on the first IPU that has one.
    fn writer_on_any_ipu(&self, tensor: TensorId) -> Option<OperationId> {
        let first = TensorBuffer::original(tensor, IpuId(0));
        let last = TensorBuffer::original(tensor, IpuId(u32::MAX));
        let mut writers = self.writers.range(first..=last);
        let found = writers.find(|(buffer, _)| buffer.part == TensorBufferKind::Original);
        found.map(|(_, operation)| *operation)
    }
}

fn shapes(types: &[TensorInfo]) -> Vec<String> {
    types.iter().map(|ty| ShapeDisplay(&ty.shape).to_string()).collect()
}
