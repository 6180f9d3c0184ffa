//! Tensors as they cross between the host and an IPU.

use super::program_plan::ProgramPlan;
use crate::graph::{GraphNode, InputExchange};
use crate::shape::{DType, TensorId};
use crate::specification::{OverlapIo, ReturnedOutputs, StreamInputType, StreamOutputType};

/// A tensor of the model as it crosses between the host and an IPU.
#[derive(Clone, Debug)]
pub struct StreamedTensor {
    pub name: String,
    /// Sizes of its dimensions, for one micro-batch.
    pub shape: Vec<u64>,
    /// Element type on the way.
    pub element_type: DType,
}

/// The tiles that do a copy with the host, and the compute that it may overlap with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRoute {
    /// The I/O tiles, not those that compute.
    pub io_tiles: bool,
    /// The compute that it overlaps with.
    pub overlap: OverlapIo,
}

impl HostRoute {
    /// By the compute tiles, when it is needed.
    pub(super) const PLAIN: Self = Self { io_tiles: false, overlap: OverlapIo::None };
}

impl ProgramPlan<'_> {
    /// True if the host sends an input to a stage: to those that run its block, and to those that
    /// read it at the same time. Others get it from them.
    pub(super) fn is_fed(&self, stage: usize, input: TensorId) -> bool {
        let block = self.graph.tensor(input).block;
        if self.placement.runs(stage, block) {
            return true;
        }
        let reads = |node: &GraphNode| {
            node.inputs.contains(&input) && self.placement.runs(stage, node.block)
        };
        self.placement.work_together(stage, self.placement.stage(block))
            && self.graph.nodes.iter().any(reads)
    }

    /// How copies come that the model says nothing of, and how results go.
    pub(super) fn common_route(&self) -> HostRoute {
        let options = &self.spec.options;
        HostRoute { io_tiles: options.num_io_tiles > 0, overlap: options.overlap_io }
    }

    /// How an input comes.
    pub(super) fn input_route(&self, tensor: TensorId) -> HostRoute {
        let common = self.common_route();
        let Some(stated) = self.graph.input_settings.get(&tensor) else { return common };
        let overlap = match stated.exchange {
            None => common.overlap,
            Some(InputExchange::JustInTime) => OverlapIo::None,
            Some(InputExchange::OverlapInnerLoop) => OverlapIo::InnerLoop,
            Some(InputExchange::OverlapLoops | InputExchange::OverlapStep) => OverlapIo::Loops,
        };
        // Without I/O tiles nobody could do it, and nobody else could do it beside compute.
        let io_tiles = common.io_tiles && stated.io_tiles.unwrap_or(true);
        HostRoute { io_tiles, overlap: if io_tiles { overlap } else { OverlapIo::None } }
    }

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

    /// Element type in which a result goes to the host.
    pub(super) fn output_element_type(&self, tensor: TensorId) -> DType {
        let own = self.dtype(tensor);
        match self.spec.options.output_type {
            _ if !is_floating(own) => own,
            StreamOutputType::Model => own,
            StreamOutputType::Float32 => DType::Float,
            StreamOutputType::Float16 => DType::Half,
        }
    }

    /// A tensor of the graph as it is streamed.
    pub(super) fn streamed(&self, tensor: TensorId, element_type: DType) -> StreamedTensor {
        let shape = self.lowering.tensor_type(tensor).shape.clone();
        StreamedTensor { name: self.name(tensor).to_owned(), shape, element_type }
    }
}

/// Whether a type is a floating-point type of models.
pub(super) fn is_floating(dtype: DType) -> bool {
    matches!(dtype, DType::Float | DType::Half)
}
