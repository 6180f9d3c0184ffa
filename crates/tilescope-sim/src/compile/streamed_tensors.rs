//! Tensors in the form in which they cross between the host and an IPU.

use super::program_plan::ProgramPlan;
use crate::graph::InputExchange;
use crate::shape::{DType, TensorId};
use crate::specification::{OverlapIo, ReturnedOutputs, StreamInputType, StreamOutputType};

/// A tensor of the model in the form in which it crosses between the host and an IPU.
#[derive(Clone, Debug)]
pub struct StreamedTensor {
    pub name: String,
    /// Sizes of its dimensions for one micro-batch.
    pub shape: Vec<u64>,
    /// Element type during the transfer.
    pub element_type: DType,
}

/// The tiles that make a copy with the host, and the compute that the copy may overlap with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRoute {
    /// True if the I/O tiles copy, false if the compute tiles do.
    pub io_tiles: bool,
    /// The compute that the copy overlaps with.
    pub overlap: OverlapIo,
}

impl HostRoute {
    /// A copy by the compute tiles at the time when it is needed.
    pub(super) const PLAIN: Self = Self { io_tiles: false, overlap: OverlapIo::None };
}

impl ProgramPlan<'_> {
    /// True if the host sends an input to a stage: to the stages that run the block of the input,
    /// and to those that read it at the same time. Other stages receive it from them.
    pub(super) fn is_fed(&self, stage: usize, input: TensorId) -> bool {
        let block = self.graph.tensor(input).block;
        if self.placement.runs(stage, block) {
            return true;
        }
        self.placement.work_together(stage, self.placement.stage(block))
            && self
                .graph
                .nodes
                .iter()
                .any(|node| node.inputs.contains(&input) && self.placement.runs(stage, node.block))
    }

    /// The route of results, and of inputs that the model has no settings for.
    pub(super) fn common_route(&self) -> HostRoute {
        let options = &self.spec.options;
        HostRoute { io_tiles: options.num_io_tiles > 0, overlap: options.overlap_io }
    }

    /// The route of an input.
    pub(super) fn input_route(&self, tensor: TensorId) -> HostRoute {
        let common = self.common_route();
        let Some(stated) = self.graph.input_settings.get(&tensor) else { return common };
        let overlap = match stated.exchange {
            None => common.overlap,
            Some(InputExchange::JustInTime) => OverlapIo::None,
            Some(InputExchange::OverlapInnerLoop) => OverlapIo::InnerLoop,
            Some(InputExchange::OverlapLoops | InputExchange::OverlapStep) => OverlapIo::Loops,
        };
        // Without I/O tiles a copy cannot overlap with compute.
        let io_tiles = common.io_tiles && stated.io_tiles.unwrap_or(true);
        HostRoute { io_tiles, overlap: if io_tiles { overlap } else { OverlapIo::None } }
    }

    /// True if a result of the model goes to the host.
    pub(super) fn is_returned(&self, tensor: TensorId) -> bool {
        let losses = &self.graph.losses;
        match self.spec.options.returned_outputs {
            ReturnedOutputs::All => true,
            ReturnedOutputs::Loss => losses.contains(&tensor) || losses.is_empty(),
        }
    }

    /// The element type in which an input crosses from the host.
    pub(super) fn input_element_type(&self, tensor: TensorId) -> DType {
        let own = self.dtype(tensor);
        match self.spec.options.input_type {
            _ if !is_floating(own) => own,
            StreamInputType::Model => own,
            StreamInputType::Float32 => DType::Float,
            StreamInputType::Float16 => DType::Half,
            StreamInputType::UInt8 => DType::UInt8,
            StreamInputType::Int8 => DType::Int8,
        }
    }

    /// The element type in which a result crosses to the host.
    pub(super) fn output_element_type(&self, tensor: TensorId) -> DType {
        let own = self.dtype(tensor);
        match self.spec.options.output_type {
            _ if !is_floating(own) => own,
            StreamOutputType::Model => own,
            StreamOutputType::Float32 => DType::Float,
            StreamOutputType::Float16 => DType::Half,
        }
    }

    /// The streamed form of a tensor of the graph.
    pub(super) fn streamed(&self, tensor: TensorId, element_type: DType) -> StreamedTensor {
        let shape = self.lowering.tensor_type(tensor).shape.clone();
        StreamedTensor { name: self.name(tensor).to_owned(), shape, element_type }
    }
}

/// True if the type is a floating-point type that models use.
pub(super) fn is_floating(dtype: DType) -> bool {
    matches!(dtype, DType::Float | DType::Half)
}
