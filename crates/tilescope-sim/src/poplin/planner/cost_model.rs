//! The planner's cost estimate of a split.
//!
//! A [`ConvCostModel`] contains everything about one pass, transform and vertex that does not
//! depend on the split. [`ConvCostModel::estimate`] adds the phases for one split. Terms and their
//! quirks are those of poplibs `ConvModel.cpp`: the estimate is the criterion for choosing plans,
//! not a prediction.

use super::layout_change::{LayoutChange, LayoutChangeCost};
use super::plan::{ConvOptions, ConvPartition, ConvPass, ConvPlanEstimate, LinearizeTileOrder};
use super::transforms::TransformedConvParams;
use super::vertex_candidates::{ConvMethod, ConvVertexType, SLIC_WINDOW};
use crate::poplin::estimate::{ConvVertexContext, ConvVertexWork, reduce, vertex_cycles};
use crate::poplin::params::{ConvParams, OutputTransform};
use crate::popops::planner_cycles;
use crate::shape::DType;
use crate::targets::IpuTarget;
use tilescope_report::units::{Bytes, Cycles, Elements, Quantity};

/// Sizes of the largest part of a split operation. Channels and groups are padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConvPartSize {
    /// Output elements of each dimension.
    pub field: [u64; 3],
    /// Kernel elements of each dimension.
    pub kernel: [u64; 3],
    pub batch: u64,
    pub groups: u64,
    /// Input channels of a group.
    pub in_channels: u64,
    /// Output channels of a group.
    pub out_channels: u64,
}

impl ConvPartSize {
    /// Whole shape as one part, with whole groups of `field_grain` outputs in the innermost
    /// dimension.
    pub(crate) fn whole(padded: &ConvParams, field_grain: u64) -> Self {
        let mut field = [1; 3];
        let mut kernel = [1; 3];
        for (index, dim) in padded.dims.iter().enumerate() {
            let grain = if index + 1 == padded.dims.len() { field_grain } else { 1 };
            field[index] = dim.output().next_multiple_of(grain);
            kernel[index] = dim.kernel;
        }
        Self {
            field,
            kernel,
            batch: padded.batch,
            groups: padded.conv_groups,
            in_channels: padded.in_channels,
            out_channels: padded.out_channels,
        }
    }
}

/// Channels and groups that stay together when an operation is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConvGrainSize {
    pub groups: u64,
    pub in_channels: u64,
    pub out_channels: u64,
}

impl ConvGrainSize {
    /// Numbers that `vertex` processes at a time.
    pub(crate) fn of_vertex(vertex: &ConvVertexType) -> Self {
        Self {
            groups: vertex.groups_per_group,
            in_channels: vertex.in_chans_per_group,
            out_channels: vertex.out_chans_per_group,
        }
    }
}

/// Role of a model: its pass and its relation to the other passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConvModelRole {
    pub pass: ConvPass,
    /// True if its plan is shared with the other passes.
    pub joint: bool,
    /// Order in which its parts are assigned to tiles.
    pub order: LinearizeTileOrder,
}

/// Elements that a part reads and computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConvPartElements {
    pub inputs: Elements,
    pub weights: Elements,
    pub outputs: Elements,
    /// Partial sums: the outputs in the groups of the vertex.
    pub partials: Elements,
}

/// Cycles to bring operands to the tiles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperandExchange {
    pub inputs: Cycles,
    pub weights: Cycles,
}

/// Cost of padding operands on a tile.
#[derive(Clone, Copy, Debug, Default)]
struct PaddingCost {
    cycles: Cycles,
    bytes: Bytes,
}

/// Bytes of pointers and rearranged weights of a SLIC vertex besides its second buffer (poplibs
/// `ConvModel.cpp`).
const SLIC_POINTER_BYTES: Bytes = Bytes(200);

/// Cost model of one pass with one transform on one vertex.
#[derive(Clone, Debug)]
pub(crate) struct ConvCostModel {
    machine: IpuTarget,
    role: ConvModelRole,
    /// Shape after the transform, with channels padded to whole groups.
    pub padded: ConvParams,
    pub dims: usize,
    pub context: ConvVertexContext,
    /// The whole operation as one part.
    pub whole: ConvPartSize,
    /// Channels that stay together: those of the vertex, unless the plan was made for another pass.
    pub grain: ConvGrainSize,
    /// Outputs of the innermost dimension that stay together.
    pub field_grain: u64,
    /// Number of input elements that all outputs of each dimension need.
    needed_inputs: [u64; 3],
    dim_is_transformed: [bool; 3],
    result_type: DType,
    macs: u64,
    layout: LayoutChange,
}

impl ConvCostModel {
    /// Creates the model of `options.pass` for one transform and vertex. `original` is the shape
    /// before the transform. `field_grain` outputs of the innermost dimension stay together.
    pub(crate) fn new(
        machine: &IpuTarget,
        options: &ConvOptions,
        joint: bool,
        original: &ConvParams,
        transformed: &TransformedConvParams,
        vertex: ConvVertexType,
        field_grain: u64,
    ) -> Self {
        let shape = &transformed.shape;
        // Vertices process whole groups of channels, so the missing ones are zeros that cost
        // exchange, memory and cycles like any other.
        let padded = ConvParams {
            conv_groups: shape.conv_groups.next_multiple_of(vertex.groups_per_group),
            in_channels: shape.in_channels.next_multiple_of(vertex.in_chans_per_group),
            out_channels: shape.out_channels.next_multiple_of(vertex.out_chans_per_group),
            ..shape.clone()
        };
        let mut dim_is_transformed = [false; 3];
        for (dim, flag) in dim_is_transformed.iter_mut().enumerate().take(padded.dims.len()) {
            *flag = transformed.dim_is_transformed(dim);
        }
        let whole = ConvPartSize::whole(&padded, field_grain);
        let role = ConvModelRole { pass: options.pass, joint, order: LinearizeTileOrder::Standard };
        let mut model = Self::of_shape(machine, role, padded, dim_is_transformed, vertex, whole);
        model.field_grain = field_grain;
        model.set_result(original, transformed, shape);
        model
    }

    /// Creates the model of another pass of a joint plan. `padded` and `unpadded` are its shapes.
    pub(crate) fn joint_pass(
        machine: &IpuTarget,
        role: ConvModelRole,
        shapes: [&ConvParams; 3],
        transformed: &TransformedConvParams,
        vertex: ConvVertexType,
        whole: ConvPartSize,
        grain: ConvGrainSize,
    ) -> Self {
        let [original, padded, unpadded] = shapes;
        let padded = padded.clone();
        // poplibs starts the other passes with an empty set of transformed dimensions, regardless
        // of those of the forward pass (addBwdEstimates, addWuEstimates).
        let mut model = Self::of_shape(machine, role, padded, [false; 3], vertex, whole);
        model.grain = grain;
        model.set_result(original, transformed, unpadded);
        model
    }

    fn set_result(
        &mut self,
        original: &ConvParams,
        transformed: &TransformedConvParams,
        shape: &ConvParams,
    ) {
        self.result_type = original.output_type;
        self.context.float_output = original.output_type == DType::Float;
        let whole = self.elements(&self.whole);
        let vertex = *self.vertex();
        self.layout =
            LayoutChange::new(self.role, original, &transformed.transform, shape, &vertex, &whole);
    }

    fn of_shape(
        machine: &IpuTarget,
        role: ConvModelRole,
        padded: ConvParams,
        dim_is_transformed: [bool; 3],
        vertex: ConvVertexType,
        whole: ConvPartSize,
    ) -> Self {
        let dims = padded.dims.len();
        let mut dilation = [1; 3];
        let mut stride = [1; 3];
        let mut needed_inputs = [1; 3];
        for (dim, field) in padded.dims.iter().enumerate() {
            needed_inputs[dim] = field.output();
            // Expanding a dimension applied its dilation, padding and stride, so the vertex reads a
            // plain field.
            if !dim_is_transformed[dim] {
                dilation[dim] = field.input_transform.dilation;
                stride[dim] = field.output_transform.stride;
                needed_inputs[dim] = field.needed_inputs();
            }
        }
        let macs = padded.macs();
        let context = ConvVertexContext {
            vertex,
            dims,
            dilation,
            stride,
            innermost_stride: padded.dims[dims - 1].output_transform.stride,
            may_use_1x1: dilation == stride && writes_everything(&padded, &dim_is_transformed),
            float_output: padded.output_type == DType::Float,
        };
        Self {
            machine: *machine,
            role,
            result_type: padded.output_type,
            padded,
            dims,
            context,
            whole,
            grain: ConvGrainSize::of_vertex(&vertex),
            field_grain: 1,
            needed_inputs,
            dim_is_transformed,
            macs,
            layout: LayoutChange::default(),
        }
    }

    pub(crate) fn vertex(&self) -> &ConvVertexType {
        &self.context.vertex
    }

    /// Returns true if the vertex supports this kind of convolution (poplibs `ConvModel.cpp`
    /// addMethodConstraints).
    pub(crate) fn suits_vertex(&self) -> bool {
        let dims = &self.padded.dims;
        match self.vertex().method {
            ConvMethod::Amp { .. } | ConvMethod::Hmac | ConvMethod::Vmac => true,
            ConvMethod::Slic { .. } => {
                // Weights stay in registers while the window slides, so zeros between them would
                // have to be stored there. Strides of 1 and 2 are built into the instruction.
                let plain_kernels = dims.iter().all(|dim| {
                    let kernel = &dim.kernel_transform;
                    !dim.input_transform.flip
                        && !kernel.flip
                        && kernel.dilation == 1
                        && kernel.padding_lower == 0
                        && kernel.padding_upper == 0
                });
                plain_kernels && self.context.innermost_stride <= 2
            }
            // The vertex computes output `x` from input `x` alone, so nothing may shift or thin out
            // the field.
            ConvMethod::OuterProduct => dims.iter().all(|dim| {
                dim.output_transform == OutputTransform::NONE
                    && dim.input_transform.dilation == 1
                    && !dim.input_transform.flip
            }),
        }
    }

    /// Lower bound of the cycles of all splits: the layout changes on all tiles, and vertices at
    /// the vertex's peak rate.
    pub(crate) fn cycles_lower_bound(&self) -> Cycles {
        let tiles = u64::from(self.machine.tiles);
        self.layout_cost(tiles).cycles() + self.compute_cycles_lower_bound(tiles)
    }

    /// Lower bound of the vertex cycles over all serial iterations on `tiles` tiles. Plans with an
    /// estimate faster than the vertex's peak rate are not allowed.
    pub(crate) fn compute_cycles_lower_bound(&self, tiles: u64) -> Cycles {
        Cycles(self.macs / self.vertex().max_macs_per_cycle(&self.machine)).div_ceil(tiles)
    }

    /// Numbers of elements of a part.
    pub(crate) fn elements(&self, size: &ConvPartSize) -> ConvPartElements {
        let dims = self.dims;
        let inputs: u64 = (0..dims).map(|dim| self.part_inputs(size, dim)).product();
        let kernel: u64 = size.kernel[..dims].iter().product();
        let field: u64 = size.field[..dims].iter().product();
        let grain = self.grain.out_channels;
        let group = self.vertex().out_chans_per_group;
        let pixels = field * size.batch * size.groups;
        ConvPartElements {
            inputs: Elements(inputs * size.batch * size.in_channels * size.groups),
            weights: Elements(kernel * size.in_channels * size.out_channels * size.groups),
            outputs: Elements(pixels * size.out_channels),
            partials: Elements(pixels * (size.out_channels / grain * group)),
        }
    }

    /// Size of the largest part of `split`.
    pub(crate) fn part_size(&self, split: &ConvPartition) -> ConvPartSize {
        let whole = &self.whole;
        let grain = &self.grain;
        let mut size = ConvPartSize {
            batch: whole.batch.div_ceil(split.batch),
            groups: largest_part(whole.groups, grain.groups, split.groups),
            in_channels: largest_part(
                whole.in_channels,
                grain.in_channels,
                split.in_channels * split.in_channels_serial,
            ),
            out_channels: largest_part(
                whole.out_channels,
                grain.out_channels,
                split.out_channels * split.out_channels_serial,
            ),
            ..*whole
        };
        for dim in 0..self.dims {
            let grain = if dim + 1 == self.dims { self.field_grain } else { 1 };
            size.field[dim] = largest_part(whole.field[dim], grain, split.field[dim]);
            size.kernel[dim] = whole.kernel[dim].div_ceil(split.kernel[dim]);
        }
        size
    }

    fn part_inputs(&self, size: &ConvPartSize, dim: usize) -> u64 {
        if self.dim_is_transformed[dim] {
            return size.field[dim];
        }
        let needed = self.needed_inputs[dim];
        self.padded.dims[dim].planned_inputs(size.field[dim], size.kernel[dim], needed)
    }

    /// Cycles to bring operands to the tiles.
    pub(crate) fn operand_exchange(
        &self,
        split: &ConvPartition,
        elements: &ConvPartElements,
    ) -> OperandExchange {
        let bytes = self.padded.input_type.bytes();
        // Operands are stored in equal shares on the tiles that use them, so each tile already has
        // one share, and an operand with a single user is not exchanged at all.
        let inputs = elements.inputs - elements.inputs / split.out_channels;
        let users = split.field_parts() * split.batch;
        let weights = elements.weights - elements.weights / users;
        // Parts that differ only in output channels are on adjacent tiles and read the same input,
        // which both tiles of a pair receive in one cycle. With an odd number of parts some pairs
        // need different inputs (poplibs `ExchangeEstimator.hpp`).
        let paired =
            self.role.order == LinearizeTileOrder::Standard && split.out_channels.is_multiple_of(2);
        OperandExchange {
            inputs: self.machine.exchange_cycles(inputs * bytes, paired),
            weights: self.machine.exchange_cycles(weights * bytes, false),
        }
    }

    /// Cycles to bring partial sums to the first stage of the reduction.
    pub(crate) fn first_reduce_exchange(&self, outputs: Elements) -> Cycles {
        self.machine.exchange_cycles(outputs * self.vertex().partial_type.bytes(), false)
    }

    /// Cost of the layout changes on one of `tiles` tiles.
    pub(crate) fn layout_cost(&self, tiles: u64) -> LayoutChangeCost {
        self.layout.cost(&self.machine, tiles)
    }

    /// Work of the vertices on the fullest tile.
    pub(crate) fn vertex_work(&self, size: &ConvPartSize) -> ConvVertexWork {
        ConvVertexWork {
            batch: size.batch,
            field: size.field,
            kernel: size.kernel,
            // Grains are counted as groups even if a joint pass has a vertex with other groups, as
            // in poplibs (`ConvModel.cpp` makeConvSize).
            conv_groups: size.groups / self.grain.groups,
            in_groups: size.in_channels / self.grain.in_channels,
            out_groups: size.out_channels / self.grain.out_channels,
        }
    }

    /// Cycles of the vertices, or `None` if the split does not suit the vertex.
    pub(crate) fn compute_cycles(
        &self,
        split: &ConvPartition,
        size: &ConvPartSize,
    ) -> Option<Cycles> {
        let cycles = vertex_cycles(&self.context, &self.machine, &self.vertex_work(size))?;
        let tile_cycles = split.tiles() * split.serial() * cycles;
        // poplibs adds this only to prune its search and calls it redundant (addEstimates). It is
        // not redundant if an estimate exceeds the vertex's peak rate: such plans are excluded.
        let plausible = Cycles(self.macs / self.vertex().max_macs_per_cycle(&self.machine));
        if plausible <= tile_cycles { Some(cycles) } else { None }
    }

    /// The whole estimate: cycles that accumulate over serial iterations besides operands, vertices
    /// and the first partial exchange, and the memory.
    pub(crate) fn estimate(
        &self,
        split: &ConvPartition,
        size: &ConvPartSize,
        calculate: Cycles,
    ) -> ConvPlanEstimate {
        let machine = &self.machine;
        let vertex = self.vertex();
        let elements = self.elements(size);
        let tiles = split.tiles();
        let serial = split.serial();
        let depth = split.reduction_depth();
        let partials = vertex.partial_type;
        // All tiles with partial sums of the same outputs take part in reducing them, each with an
        // equal share.
        let outputs = elements.partials.div_ceil(depth);

        let operands = self.operand_exchange(split, &elements);
        let layout = self.layout_cost(tiles);
        let padding = self.padding_cost(split, size);
        let input_type = self.padded.input_type;
        // Slices are cut from the stored tensors, which are spread over the tiles once, before any
        // broadcast.
        let inputs_share = self.padded.input_elements().div_ceil(tiles);
        let weights_share = self.padded.weight_elements().div_ceil(tiles);
        // Serial input channels accumulate: the result starts as zeros, keeps the type of partials
        // until the last slice has been added, and is cast once after the loop.
        let serial_inputs = split.in_channels_serial > 1;
        // The weights may have the layout of another pass of the layer. The rearranged copy is live
        // during the whole loop, so below it is added to the other temporaries instead of taking
        // the maximum.
        let before_slice = serial > 1 && self.role.pass.is_fully_connected() && !self.role.joint;
        let mut estimate = ConvPlanEstimate {
            rearrange_before_slice: nonzero_if(
                before_slice,
                // One element per cycle on the tile, because the layout in which they arrive is
                // unknown.
                machine.exchange_cycles(weights_share * input_type.bytes(), false)
                    + Cycles(weights_share.0),
            ),
            zero: nonzero_if(serial_inputs, planner_cycles::zero(machine, outputs, partials)),
            // Serial output channels slice only the weights, serial input channels both operands.
            dynamic_slice: slice_cycles(
                machine,
                inputs_share,
                split.in_channels_serial,
                input_type,
            ) + slice_cycles(machine, weights_share, serial, input_type),
            transform_copy: layout.copy,
            transform_exchange: layout.exchange,
            input_exchange: operands.inputs,
            weight_exchange: operands.weights,
            // Counted even at depth 1, where nothing is sent. This quirk affects the choice of
            // plans, so it is kept. `conv` omits it from the executed work.
            first_reduce_exchange: self.first_reduce_exchange(elements.outputs),
            later_reduce_exchange: self.later_reduce_exchange(elements.outputs, depth),
            tile_transform: padding.cycles,
            calculate,
            reduce: reduce::reduce_cycles(
                machine,
                outputs,
                depth,
                split.in_channels_serial,
                partials,
                self.result_type,
            ),
            dynamic_update: slice_cycles(machine, outputs, split.out_channels_serial, partials),
            add_in_place: nonzero_if(
                serial_inputs,
                planner_cycles::add_in_place(machine, outputs, partials),
            ),
            cast: nonzero_if(
                serial_inputs,
                reduce::cast_cycles(machine, outputs, partials, self.result_type),
            ),
            serial,
            total_cycles: Cycles::ZERO,
            temp_bytes: Bytes::ZERO,
        };
        estimate.total_cycles = estimate.zero
            + estimate.rearrange_before_slice
            + estimate.cast
            + serial
                * (estimate.dynamic_slice
                    + layout.cycles()
                    + estimate.exchange()
                    + padding.cycles
                    + calculate
                    + estimate.reduce
                    + estimate.dynamic_update
                    + estimate.add_in_place);

        // Counted twice while the copy is being made: source and copy are live together.
        let sliced_weights = nonzero_if(before_slice, weights_share * input_type.bytes());
        estimate.temp_bytes = sliced_weights
            + layout
                .bytes
                .max(padding.bytes + self.conv_bytes(size, &elements))
                .max(self.reduce_bytes(outputs, depth))
                .max(sliced_weights)
            + nonzero_if(serial_inputs, outputs * partials.bytes());
        estimate
    }

    /// Temporary bytes of the convolution itself: operands and partial sums of a tile.
    pub(crate) fn conv_bytes(&self, size: &ConvPartSize, elements: &ConvPartElements) -> Bytes {
        let vertex = self.vertex();
        let operands = (elements.inputs + elements.weights) * self.padded.input_type.bytes();
        let mut partials = elements.partials * vertex.partial_type.bytes();
        if let ConvMethod::Slic { .. } = vertex.method {
            // A second buffer for one group of groups, weights being rearranged and a pointer.
            partials +=
                partials.div_ceil(size.groups / vertex.groups_per_group) + SLIC_POINTER_BYTES;
        }
        operands + partials
    }

    /// Lower bound of [`ConvCostModel::conv_bytes`] when only the dimensions before `dim` and all
    /// other axes are decided: weights, partial sums, and the inputs of decided dimensions.
    pub(crate) fn conv_bytes_lower_bound(&self, fewest: &ConvPartSize, dim: usize) -> Bytes {
        let vertex = self.vertex();
        let dims = self.dims;
        // The number of inputs of the inner dimensions depends on splits not yet chosen. One each
        // is a safe bound.
        let inputs: u64 = (0..dim).map(|dim| self.part_inputs(fewest, dim)).product();
        let inputs = inputs * fewest.batch * fewest.in_channels * fewest.groups;
        let kernel: u64 = fewest.kernel[..dims].iter().product();
        let weights = kernel * fewest.in_channels * fewest.out_channels * fewest.groups;
        let pixels = fewest.field[..dims].iter().product::<u64>() * fewest.batch * fewest.groups;
        let channels = fewest.out_channels / self.grain.out_channels * vertex.out_chans_per_group;
        (inputs + weights) * self.padded.input_type.bytes()
            + pixels * channels * vertex.partial_type.bytes()
    }

    /// Cycles to bring partial sums to all stages of the reduction except the first.
    fn later_reduce_exchange(&self, partials: Elements, depth: u64) -> Cycles {
        let stages = reduce::stages(partials, depth);
        // Every stage except the first receives the results of the one before it.
        let received = stages.iter().take(stages.len().saturating_sub(1));
        received.map(|stage| self.first_reduce_exchange(stage.outputs)).sum()
    }

    /// Temporary bytes of the reduction: the input of its intermediate stages.
    fn reduce_bytes(&self, outputs: Elements, depth: u64) -> Bytes {
        let stages = reduce::stage_depths(depth).len();
        let made = reduce::stages(outputs * depth, depth);
        let starts = std::iter::once(outputs * depth).chain(made.iter().map(|stage| stage.outputs));
        // poplibs loops only over the intermediate stages, so a reduction in one stage has no
        // temporaries (`ConvModel.cpp` addReduceCycleEstimate).
        let most =
            if depth <= 1 { Elements::ZERO } else { starts.take(stages).max().unwrap_or_default() };
        most * self.vertex().partial_type.bytes()
    }

    /// Cost of the zeros that vertices need around their operands.
    fn padding_cost(&self, split: &ConvPartition, size: &ConvPartSize) -> PaddingCost {
        let vertex = self.vertex();
        let mut kernel_padding = [0; 3];
        let mut input_padding = [0; 3];
        match vertex.method {
            ConvMethod::Amp { .. } => {
                // If input channels do not fill a unit, rows of the outermost kernel dimension do,
                // and the kernel is padded to a multiple of them.
                let height = vertex.kernel_height(&self.machine);
                self.pad_kernel(split, 0, height, &mut kernel_padding, &mut input_padding);
            }
            ConvMethod::Slic { .. } => {
                let last = self.dims - 1;
                self.pad_kernel(split, last, SLIC_WINDOW, &mut kernel_padding, &mut input_padding);
                // The vertex can neither dilate nor pad its input, so zeros are inserted
                // explicitly. Starting from the outputs of the part, not its inputs, is the
                // approximation of poplibs (truncateDilateAndPadInput).
                for (dim, padding) in input_padding.iter_mut().enumerate().take(self.dims) {
                    let transform = &self.padded.dims[dim].input_transform;
                    let padded = size.field[dim] + *padding;
                    *padding += (padded - 1) * (transform.dilation - 1)
                        + transform.padding_lower
                        + transform.padding_upper;
                }
            }
            ConvMethod::Hmac | ConvMethod::Vmac | ConvMethod::OuterProduct => {}
        }
        if kernel_padding == [0; 3] && input_padding == [0; 3] {
            return PaddingCost::default();
        }
        let kernel_zeros = size.groups
            * added_elements(&size.kernel[..self.dims], &kernel_padding)
            * size.in_channels
            * size.out_channels;
        let input_zeros = size.groups
            * size.batch
            * added_elements(&size.field[..self.dims], &input_padding)
            * size.in_channels;
        let bytes = self.padded.input_type.bytes();
        let paired =
            self.role.order == LinearizeTileOrder::Standard && split.out_channels.is_multiple_of(2);
        // Zeros are copied from a constant, so they are exchanged like data.
        let cycles = self.machine.exchange_cycles(kernel_zeros * bytes, false)
            + self.machine.exchange_cycles(input_zeros * bytes, paired);
        PaddingCost { cycles, bytes: (kernel_zeros + input_zeros) * bytes }
    }

    /// Number of kernel elements missing to a multiple of `multiple` in dimension `dim`, on the
    /// tile that misses fewest (poplibs `ConvModel.cpp` padKernelSpatialDim).
    fn pad_kernel(
        &self,
        split: &ConvPartition,
        dim: usize,
        multiple: u64,
        kernel: &mut [u64; 3],
        input: &mut [u64; 3],
    ) {
        if multiple == 1 {
            return;
        }
        let size = self.padded.dims[dim].kernel;
        let parts = split.kernel[dim];
        // The comment in poplibs intends the larger padding, but its formula takes the larger
        // remainder: of two incomplete parts that is the one with less to pad. Kept, because it
        // affects the choice of plans.
        let fullest = (size / parts % multiple).max(size.div_ceil(parts) % multiple);
        let missing = (multiple - fullest) % multiple;
        kernel[dim] += missing;
        input[dim] += missing * self.padded.dims[dim].kernel_transform.dilation;
    }
}

/// Size of the largest of `parts` parts of `size` elements in whole grains.
fn largest_part(size: u64, grain: u64, parts: u64) -> u64 {
    (size / grain).div_ceil(parts) * grain
}

/// Cycles to slice one of `parts` parts of `elements`, or to write it back. Zero for a single part.
fn slice_cycles(machine: &IpuTarget, elements: Elements, parts: u64, data_type: DType) -> Cycles {
    if parts == 1 {
        Cycles::ZERO
    } else {
        planner_cycles::dynamic_slice(machine, elements.div_ceil(parts), data_type)
    }
}

/// Returns `value` if `condition` is true, otherwise zero.
fn nonzero_if<T: Quantity>(condition: bool, value: T) -> T {
    if condition { value } else { T::ZERO }
}

/// Number of elements that padding adds to a field of the given sizes.
fn added_elements(sizes: &[u64], padding: &[u64]) -> u64 {
    let padded: u64 = sizes.iter().zip(padding).map(|(size, padding)| size + padding).product();
    padded - sizes.iter().product::<u64>()
}

/// Returns true if every kernel element contributes to all outputs, and rows are contiguous: the
/// conditions of the 1x1 vertex, applied to the whole operation.
fn writes_everything(params: &ConvParams, transformed: &[bool; 3]) -> bool {
    let Some((_, outer)) = params.dims.split_last() else { return false };
    // To save memory the 1x1 vertex has one worklist entry per worker, so all outputs must be one
    // row. It also has no pass that zeroes outputs it does not write.
    if params.batch != 1 || outer.iter().any(|dim| dim.input != 1) {
        return false;
    }
    params.dims.iter().zip(transformed).filter(|(_, transformed)| !**transformed).all(|(dim, _)| {
        let all = 0..dim.output();
        (0..dim.kernel).all(|kernel| dim.outputs_of_kernel(&all, kernel) == all)
    })
}
