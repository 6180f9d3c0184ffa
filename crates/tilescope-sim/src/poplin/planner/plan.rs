//! Plan of an operation: its distribution over tiles, and the planner's cost estimate.

use super::poplibs_options::PoplibsOptions;
use super::transforms::{ConvTransform, TransformedConvParams};
use super::vertex_candidates::{ConvMethod, ConvVertexType};
use crate::poplin::params::ConvParams;
use crate::shape::DType;
use serde_json::{Value, json};
use tilescope_report::units::{Bytes, Cycles};

/// Purpose of an operation, which determines the layout changes that the planner assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvPass {
    /// Convolution that is only run forwards.
    InferenceForward,
    /// Forward pass of a trained convolution.
    TrainingForward,
    /// Input gradient of a convolution.
    TrainingBackward,
    /// Weight gradient of a convolution.
    TrainingWeightUpdate,
    MatMul,
    /// Fully connected layer that is only run forwards.
    FcInferenceForward,
    /// Forward pass of a trained fully connected layer.
    FcTrainingForward,
    /// Input gradient of a fully connected layer.
    FcTrainingBackward,
    /// Weight gradient of a fully connected layer.
    FcTrainingWeightUpdate,
}

impl ConvPass {
    /// Returns true if the pass belongs to a fully connected layer.
    pub(crate) fn is_fully_connected(self) -> bool {
        matches!(
            self,
            Self::FcInferenceForward
                | Self::FcTrainingForward
                | Self::FcTrainingBackward
                | Self::FcTrainingWeightUpdate
        )
    }

    /// Returns true if the pass is a matrix product.
    pub(crate) fn is_matmul(self) -> bool {
        self.is_fully_connected() || self == Self::MatMul
    }

    /// Returns true if the pass computes a weight gradient.
    pub(crate) fn is_weight_update(self) -> bool {
        matches!(self, Self::TrainingWeightUpdate | Self::FcTrainingWeightUpdate)
    }

    /// Name in reports, as poplibs prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::InferenceForward => "INFERENCE_FWD",
            Self::TrainingForward => "TRAINING_FWD",
            Self::TrainingBackward => "TRAINING_BWD",
            Self::TrainingWeightUpdate => "TRAINING_WU",
            Self::MatMul => "NONE_MATMUL",
            Self::FcInferenceForward => "FC_INFERENCE_FWD",
            Self::FcTrainingForward => "FC_TRAINING_FWD",
            Self::FcTrainingBackward => "FC_TRAINING_BWD",
            Self::FcTrainingWeightUpdate => "FC_TRAINING_WU",
        }
    }
}

/// Inputs of a plan besides the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvOptions {
    /// Purpose of the operation.
    pub pass: ConvPass,
    /// Planning options of the whole program.
    pub library: PoplibsOptions,
}

impl ConvOptions {
    /// Creates options with Poplar's defaults.
    pub fn new(pass: ConvPass) -> Self {
        Self { pass, library: PoplibsOptions::default() }
    }

    /// Returns the same options for another pass.
    pub(crate) fn with_pass(self, pass: ConvPass) -> Self {
        Self { pass, ..self }
    }

    /// Element type of the partials of a convolution of `input`: floats sum floats, 8-bit floats
    /// sum halves.
    pub(crate) fn partials_for(&self, input: DType) -> DType {
        match input {
            DType::Float => DType::Float,
            DType::Quarter => DType::Half,
            _ if self.library.partials_type == DType::Half => DType::Half,
            _ => DType::Float,
        }
    }
}

/// Numbers of parts of each axis over tiles, and of channels over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConvPartition {
    /// Parts of each output dimension.
    pub field: [u64; 3],
    /// Parts of each kernel dimension. The innermost is never split.
    pub kernel: [u64; 3],
    /// Parts of the batch.
    pub batch: u64,
    /// Parts of the groups.
    pub groups: u64,
    /// Parts of the input channels on different tiles.
    pub in_channels: u64,
    /// Parts of the input channels in serial iterations.
    pub in_channels_serial: u64,
    /// Parts of the output channels on different tiles.
    pub out_channels: u64,
    /// Parts of the output channels in serial iterations.
    pub out_channels_serial: u64,
}

impl ConvPartition {
    pub(crate) const WHOLE: Self = Self {
        field: [1; 3],
        kernel: [1; 3],
        batch: 1,
        groups: 1,
        in_channels: 1,
        in_channels_serial: 1,
        out_channels: 1,
        out_channels_serial: 1,
    };

    pub(crate) fn tiles(&self) -> u64 {
        self.field_parts()
            * self.kernel_parts()
            * self.batch
            * self.groups
            * self.in_channels
            * self.out_channels
    }

    /// Number of parts of the output field.
    pub(crate) fn field_parts(&self) -> u64 {
        self.field.iter().product()
    }

    /// Number of parts of the kernel.
    pub(crate) fn kernel_parts(&self) -> u64 {
        self.kernel.iter().product()
    }

    /// Iterations of the serial loop.
    pub(crate) fn serial(&self) -> u64 {
        self.in_channels_serial * self.out_channels_serial
    }

    /// Number of partial sums that are added for one output.
    pub(crate) fn reduction_depth(&self) -> u64 {
        // Sums are over input channels and kernel elements, so only their splits leave parts to
        // add.
        self.in_channels * self.kernel_parts()
    }
}

/// Order in which parts are assigned to tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinearizeTileOrder {
    /// Output channels innermost: adjacent tiles read the same input.
    Standard,
    /// The order of the backward pass of a joint plan, with the innermost dimension and input
    /// channels swapped, so that weights do not move.
    FcBackward,
    /// The order of the weight update of a joint plan, with input and output channels swapped.
    FcWeightUpdate,
}

/// The planner's cost estimate of one pass. Phases are cycles of one serial iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConvPlanEstimate {
    /// Moving split weights into slices before the loop, once.
    pub rearrange_before_slice: Cycles,
    /// Zeroing the accumulator of serial input channels, once.
    pub zero: Cycles,
    pub dynamic_slice: Cycles,
    /// Layout changes on the tile.
    pub transform_copy: Cycles,
    /// Layout changes between tiles.
    pub transform_exchange: Cycles,
    /// Exchange of the input.
    pub input_exchange: Cycles,
    /// Exchange of the weights.
    pub weight_exchange: Cycles,
    /// Exchange of partial sums to the first stage of the reduction, counted even if there is none.
    pub first_reduce_exchange: Cycles,
    /// Exchange of partial sums to later stages.
    pub later_reduce_exchange: Cycles,
    /// Padding that vertices need.
    pub tile_transform: Cycles,
    pub calculate: Cycles,
    /// Reduction, or cast if there is nothing to reduce.
    pub reduce: Cycles,
    /// Writing a slice of the output.
    pub dynamic_update: Cycles,
    /// Accumulation of serial input channels.
    pub add_in_place: Cycles,
    /// Final cast after serial input channels, once.
    pub cast: Cycles,
    /// Iterations of the serial loop.
    pub serial: u64,
    pub total_cycles: Cycles,
    /// Peak of the temporary bytes of any tile.
    pub temp_bytes: Bytes,
}

/// Memory bound under which a plan was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBound {
    /// Temporaries of a tile stay within the requested proportion.
    Within(Bytes),
    /// No plan fitted the requested proportion. The bound was doubled until one did.
    Raised(Bytes),
    /// No plan fitted, or no bound was given.
    None,
}

impl MemoryBound {
    /// Bytes of the bound, if any.
    pub fn bytes(self) -> Option<Bytes> {
        match self {
            Self::Within(bytes) | Self::Raised(bytes) => Some(bytes),
            Self::None => None,
        }
    }
}

/// Distribution of one pass over tiles.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvPlan {
    /// Canonical shape of the operation.
    pub params: ConvParams,
    /// Options of the operation.
    pub options: ConvOptions,
    /// Shape after its transform.
    pub transformed: TransformedConvParams,
    pub vertex: ConvVertexType,
    /// Split over tiles and serial iterations.
    pub partition: ConvPartition,
    /// Outputs of the innermost dimension that stay together.
    pub field_grain: u64,
    /// Order in which parts are assigned to tiles.
    pub tile_order: LinearizeTileOrder,
    /// True if forward pass, backward pass and weight update share one plan.
    pub joint: bool,
    pub estimate: ConvPlanEstimate,
    /// Memory bound under which it was found.
    pub bound: MemoryBound,
}

impl ConvPlan {
    /// Number of tiles that the plan uses.
    pub fn tiles(&self) -> u64 {
        self.partition.tiles()
    }

    /// Transform of the shape.
    pub fn transform(&self) -> &ConvTransform {
        &self.transformed.transform
    }

    /// Element type of partial sums.
    pub(crate) fn partial_type(&self) -> DType {
        self.vertex.partial_type
    }

    /// The planner's choice and its estimated phases, in the form that operations have in a report.
    pub fn describe(&self) -> Value {
        let partition = &self.partition;
        let dims = self.transform().extra_dims + self.params.dims.len();
        let mut method = json!({
            "method": self.vertex.method.name(),
            "partialsType": self.vertex.partial_type.poplar_name(),
            "convGroupsPerGroup": self.vertex.groups_per_group,
            "inChansPerGroup": self.vertex.in_chans_per_group,
            "partialChansPerGroup": self.vertex.out_chans_per_group,
        });
        match self.vertex.method {
            ConvMethod::Amp { conv_units } => method["convUnits"] = conv_units.into(),
            ConvMethod::Slic { chains } => method["convUnitChains"] = chains.into(),
            ConvMethod::Hmac | ConvMethod::Vmac | ConvMethod::OuterProduct => {}
        }
        json!({
            "pass": self.options.pass.name(),
            "shapes": self.params.to_string(),
            "vertex": method,
            "transform": self.transform().describe(),
            "partition": {
                "fieldSplit": partition.field[..dims],
                "kernelSplit": partition.kernel[..dims],
                "batchSplit": partition.batch,
                "convGroupSplit": partition.groups,
                "inChanSplit": { "parallel": partition.in_channels, "serial": partition.in_channels_serial },
                "outChanSplit": { "parallel": partition.out_channels, "serial": partition.out_channels_serial },
            },
            "tiles": self.tiles(),
            "isJointPlan": self.joint,
            "memoryBoundBytes": self.bound.bytes(),
            "estimate": self.estimate.describe(),
        })
    }
}

impl ConvTransform {
    fn describe(&self) -> Value {
        json!({
            "extraFieldDims": self.extra_dims,
            "dilatePostConv": self.dilate_after,
            "swapOperands": self.swap_operands,
            "expandDims": self.expand_dims,
            "outChanFlattenDims": self.flatten_to_channels,
            "flattenDims": self.flatten_dims,
            "combineConvGroupsFactor": self.combine_groups,
        })
    }
}

impl ConvPlanEstimate {
    /// Exchange cycles of one iteration: operands and partial sums.
    pub(crate) fn exchange(&self) -> Cycles {
        self.input_exchange
            + self.weight_exchange
            + self.first_reduce_exchange
            + self.later_reduce_exchange
    }

    fn describe(&self) -> Value {
        json!({
            "rearrangeBeforeSliceCycles": self.rearrange_before_slice,
            "memsetZeroBeforeAddInPlace": self.zero,
            "dynamicSliceCycles": self.dynamic_slice,
            "transformCopyCycles": self.transform_copy,
            "transformExchangeCycles": self.transform_exchange,
            "inputExchangeCycles": self.input_exchange,
            "weightExchangeCycles": self.weight_exchange,
            "reduceFirstStageExchangeCycles": self.first_reduce_exchange,
            "reduceRemainingStagesExchangeCycles": self.later_reduce_exchange,
            "tileLevelTransformCycles": self.tile_transform,
            "partialCalcCycles": self.calculate,
            "reduceCycles": self.reduce,
            "dynamicUpdateCycles": self.dynamic_update,
            "addInPlaceCycles": self.add_in_place,
            "castCycles": self.cast,
            "serialSplits": self.serial,
            "totalCycles": self.total_cycles,
            "totalTempBytes": self.temp_bytes,
        })
    }
}
