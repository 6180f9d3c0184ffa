//! A plan: how an operation is spread over tiles, and what the planner expects it to cost.

use super::poplibs_options::PoplibsOptions;
use super::transforms::{ConvTransform, TransformedConvParams};
use super::vertex_candidates::{ConvMethod, ConvVertexType};
use crate::poplin::params::ConvParams;
use crate::shape::DType;
use serde_json::{Value, json};
use tilescope_report::units::{Bytes, Cycles};

/// What an operation is for; it decides which layout changes the planner expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvPass {
    /// A convolution that is only ever run forwards.
    InferenceForward,
    /// Forward pass of a trained convolution.
    TrainingForward,
    /// Input gradient of a convolution.
    TrainingBackward,
    /// Weight gradient of a convolution.
    TrainingWeightUpdate,
    MatMul,
    /// A fully connected layer that is only ever run forwards.
    FcInferenceForward,
    /// Forward pass of a trained fully connected layer.
    FcTrainingForward,
    /// Input gradient of a fully connected layer.
    FcTrainingBackward,
    /// Weight gradient of a fully connected layer.
    FcTrainingWeightUpdate,
}

impl ConvPass {
    /// Whether it belongs to a fully connected layer.
    pub(crate) fn is_fully_connected(self) -> bool {
        matches!(
            self,
            Self::FcInferenceForward
                | Self::FcTrainingForward
                | Self::FcTrainingBackward
                | Self::FcTrainingWeightUpdate
        )
    }

    /// Whether it is a matrix product.
    pub(crate) fn is_matmul(self) -> bool {
        self.is_fully_connected() || self == Self::MatMul
    }

    /// Whether it computes a weight gradient.
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

/// What a plan is made for, beside the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvOptions {
    /// What the operation is for.
    pub pass: ConvPass,
    /// What the whole program is planned with.
    pub library: PoplibsOptions,
}

impl ConvOptions {
    /// With Poplar's defaults.
    pub fn new(pass: ConvPass) -> Self {
        Self { pass, library: PoplibsOptions::default() }
    }

    /// The same for another pass.
    pub(crate) fn with_pass(self, pass: ConvPass) -> Self {
        Self { pass, ..self }
    }

    /// Partials a convolution of `input` uses: floats sum floats, 8-bit floats sum halves.
    pub(crate) fn partials_for(&self, input: DType) -> DType {
        match input {
            DType::Float => DType::Float,
            DType::Quarter => DType::Half,
            _ if self.library.partials_type == DType::Half => DType::Half,
            _ => DType::Float,
        }
    }
}

/// Into how many parts each axis is split over tiles, and channels over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConvPartition {
    /// Parts of each output dimension.
    pub field: [u64; 3],
    /// Parts of each kernel dimension; the innermost is never split.
    pub kernel: [u64; 3],
    /// Parts of the batch.
    pub batch: u64,
    /// Parts of the groups.
    pub groups: u64,
    /// Parts of the input channels, side by side.
    pub in_channels: u64,
    /// Parts of the input channels, one after the other.
    pub in_channels_serial: u64,
    /// Parts of the output channels, side by side.
    pub out_channels: u64,
    /// Parts of the output channels, one after the other.
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

    /// Parts of the output field.
    pub(crate) fn field_parts(&self) -> u64 {
        self.field.iter().product()
    }

    /// Parts of the kernel.
    pub(crate) fn kernel_parts(&self) -> u64 {
        self.kernel.iter().product()
    }

    /// Iterations of the serial loop.
    pub(crate) fn serial(&self) -> u64 {
        self.in_channels_serial * self.out_channels_serial
    }

    /// Partial sums that are added up for one output.
    pub(crate) fn reduction_depth(&self) -> u64 {
        // Sums run over input channels and kernel elements, so only their splits leave parts to
        // add.
        self.in_channels * self.kernel_parts()
    }
}

/// In which order parts are laid over tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinearizeTileOrder {
    /// Output channels innermost: neighbouring tiles read the same input.
    Standard,
    /// The backward pass of a joint plan: the innermost dimension and input channels trade
    /// places, so that weights stay where they are.
    FcBackward,
    /// The weight update of a joint plan: input and output channels trade places.
    FcWeightUpdate,
}

/// What the planner expects one pass to cost. Phases are cycles of one serial iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConvPlanEstimate {
    /// Bringing split weights into slices before the loop, once.
    pub rearrange_before_slice: Cycles,
    /// Zeroing the accumulator of serial input channels, once.
    pub zero: Cycles,
    pub dynamic_slice: Cycles,
    /// Layout changes on tile.
    pub transform_copy: Cycles,
    /// Layout changes between tiles.
    pub transform_exchange: Cycles,
    /// Input to the tiles.
    pub input_exchange: Cycles,
    /// Weights to the tiles.
    pub weight_exchange: Cycles,
    /// Partial sums to the first stage of the reduction; charged even where there is none.
    pub first_reduce_exchange: Cycles,
    /// Partial sums to later stages.
    pub later_reduce_exchange: Cycles,
    /// Padding that vertices need.
    pub tile_transform: Cycles,
    pub calculate: Cycles,
    /// Reduction, or cast where there is nothing to reduce.
    pub reduce: Cycles,
    /// Writing a slice of the output.
    pub dynamic_update: Cycles,
    /// Accumulating serial input channels.
    pub add_in_place: Cycles,
    /// Final cast after serial input channels, once.
    pub cast: Cycles,
    /// Iterations of the serial loop.
    pub serial: u64,
    pub total_cycles: Cycles,
    /// Most temporary bytes of any tile at once.
    pub temp_bytes: Bytes,
}

/// The memory bound a plan was found under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBound {
    /// Temporaries of a tile stay within the asked proportion.
    Within(Bytes),
    /// They did not; the bound was doubled until a plan fitted.
    Raised(Bytes),
    /// Nothing fitted, or no bound was given.
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

/// How one pass is spread over tiles.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvPlan {
    /// The canonical shape it was made for.
    pub params: ConvParams,
    /// What it was made for.
    pub options: ConvOptions,
    /// How the shape is changed first.
    pub transformed: TransformedConvParams,
    pub vertex: ConvVertexType,
    /// How it is split.
    pub partition: ConvPartition,
    /// Outputs of the innermost dimension that stay together.
    pub field_grain: u64,
    /// How parts are laid over tiles.
    pub tile_order: LinearizeTileOrder,
    /// Whether forward, backward and weight update share one plan.
    pub joint: bool,
    pub estimate: ConvPlanEstimate,
    /// The memory bound it was found under.
    pub bound: MemoryBound,
}

impl ConvPlan {
    /// Number of tiles the plan uses.
    pub fn tiles(&self) -> u64 {
        self.partition.tiles()
    }

    /// How the shape is changed first.
    pub fn transform(&self) -> &ConvTransform {
        &self.transformed.transform
    }

    /// Element type of partial sums.
    pub(crate) fn partial_type(&self) -> DType {
        self.vertex.partial_type
    }

    /// The planner's choice and its estimated phases, as operations carry it in a report.
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
