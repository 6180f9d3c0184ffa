//! Tensors as they cross between the host and an IPU.

use super::fragments::ProgramBuilder;
use crate::shape::{DType, TensorId};
use crate::spec::{ReturnedOutputs, StreamInputType, StreamOutputType};

/// A tensor of the model as it crosses between the host and an IPU.
#[derive(Clone, Debug)]
pub struct StreamedTensor {
    pub name: String,
    /// Sizes of its dimensions, for one micro-batch.
    pub shape: Vec<u64>,
    /// Element type on the way.
    pub element_type: DType,
}

impl ProgramBuilder<'_> {
    /// Whether a result of the model goes to the host.
    pub(super) fn is_returned(&self, tensor: TensorId) -> bool {
        let losses = &self.graph.losses;
        match self.spec.options.returned_outputs {
            ReturnedOutputs::All => true,
            ReturnedOutputs::Loss => losses.contains(&tensor) || losses.is_empty(),
        }
    }

    /// Element type in which an input crosses from the host.
    pub(super) fn input_element_type(&self, tensor: TensorId) -> DType {
        let own = self.lowering.tensor_type(tensor).dtype;
        match self.spec.options.input_type {
            _ if !is_floating(own) => own,
            StreamInputType::Model => own,
            StreamInputType::Float32 => DType::Float,
            StreamInputType::Float16 => DType::Half,
            StreamInputType::UInt8 => DType::UInt8,
            StreamInputType::Int8 => DType::Int8,
        }
    }

    /// Element type in which a result goes to the host.
    pub(super) fn output_element_type(&self, tensor: TensorId) -> DType {
        let own = self.lowering.tensor_type(tensor).dtype;
        match self.spec.options.output_type {
            _ if !is_floating(own) => own,
            StreamOutputType::Model => own,
            StreamOutputType::Float32 => DType::Float,
            StreamOutputType::Float16 => DType::Half,
        }
    }

    /// A tensor of the graph as it is streamed.
    pub(super) fn streamed(&self, tensor: TensorId, element_type: DType) -> Option<StreamedTensor> {
        let of_graph = self.graph.tensor(tensor);
        let shape = self.lowering.tensor_type(tensor).shape.clone();
        Some(StreamedTensor { name: of_graph.name.clone(), shape, element_type })
    }
}

/// Whether a type is a floating-point type of models.
pub(super) fn is_floating(dtype: DType) -> bool {
    matches!(dtype, DType::Float | DType::Half)
}
