//! Matmuls and convolutions of a graph: planned, laid out and lowered.
//!
//! An operand without a layout gets the layout of the plan. An operand with another place or order
//! is rearranged, which is part of the operation's work.

use super::{
    ConvOp, LoweredOperation, LoweringContext, LoweringError, LoweringProblem, LoweringResult,
    MatMulOp, MatMulPhase, NodeOperands,
};
use crate::poplar::work::MemoryConstraint;
use crate::poplar::{OperandLiveness, tile_runs};
use crate::poplin::conv::{
    ConvPassOperands, ConvStartTile, InnermostDim, OperandLayout, OperandSource, TensorPlace,
    TensorPlaces, planned_layouts, result_memory_constraint,
};
use crate::poplin::matmul::{MatMulSerialParts, MatMulSerialization, MatMulSizes};
use crate::poplin::planner::{ConvOptions, ConvPass, ConvPlan, ConvTrainingPlans, PoplibsOptions};
use crate::poplin::{ConvParams, PlanError, conv};
use crate::poputil::element_order;
use crate::poputil::tensor_layout::{ElementOrder, Innermost, TensorLayout};
use crate::shape::{TensorId, TensorInfo};
use std::sync::Arc;
use tilescope_report::units::{Elements, TileRange, TileRuns};

/// The axes of channels and batch of a tensor of a product.
#[derive(Clone, Copy)]
struct ProductTensorAxes {
    /// The axis of channels that are summed over, in inputs and weights.
    in_channels: usize,
    /// The axis of channels that are made.
    out_channels: usize,
    /// The axis of rows or samples.
    batch: usize,
}

/// The axes of an operand as a pass reads it.
#[derive(Clone, Copy)]
struct SummedAxes {
    /// The axis that the pass sums over.
    axis: usize,
    /// The axis of its rows.
    rows: usize,
}

impl SummedAxes {
    /// The axes of the same operand for a pass that sums over its rows.
    fn turned(self) -> Self {
        Self { axis: self.rows, rows: self.axis }
    }
}

impl ProductTensorAxes {
    fn index_of(self, innermost: InnermostDim) -> usize {
        match innermost {
            InnermostDim::InChannels => self.in_channels,
            InnermostDim::OutChannels => self.out_channels,
            InnermostDim::Batch => self.batch,
        }
    }

    /// The axes of an operand of the forward pass. Rows of weights are their output channels.
    fn summed(self) -> SummedAxes {
        let is_input = self.in_channels == self.out_channels;
        let rows = if is_input { self.batch } else { self.out_channels };
        SummedAxes { axis: self.in_channels, rows }
    }

    /// The same axes after `leading` others.
    const fn behind(self, leading: usize) -> Self {
        Self {
            in_channels: self.in_channels + leading,
            out_channels: self.out_channels + leading,
            batch: self.batch + leading,
        }
    }
}

/// Axes of the operands of a product.
#[derive(Clone, Copy)]
struct ProductOperandAxes {
    activations: ProductTensorAxes,
    weights: ProductTensorAxes,
}

/// The axes of `x[m,k]`, `y[m,n]`, and `[batch, channels, height, width]`: channels second, batch
/// first.
const ACTIVATIONS_AXES: ProductTensorAxes =
    ProductTensorAxes { in_channels: 1, out_channels: 1, batch: 0 };

/// The axes of `w[k,n]` of a matmul.
const MATMUL_WEIGHTS_AXES: ProductTensorAxes =
    ProductTensorAxes { in_channels: 0, out_channels: 1, batch: 1 };

/// The axes of `w[n,k]` of a matmul with a transpose, and of `w[out, in, height, width]` of a
/// convolution.
const TRANSPOSED_WEIGHTS_AXES: ProductTensorAxes =
    ProductTensorAxes { in_channels: 1, out_channels: 0, batch: 0 };

const CONV_AXES: ProductOperandAxes =
    ProductOperandAxes { activations: ACTIVATIONS_AXES, weights: TRANSPOSED_WEIGHTS_AXES };

/// The placement of the operands of a product.
#[derive(Clone, Copy)]
struct ProductPlacement {
    axes: ProductOperandAxes,
    /// The part of a layer that is computed at a time.
    cut: MatMulSerialParts,
    /// The first of its tiles.
    start: ConvStartTile,
}

/// The plans of a product.
pub(super) enum ProductPlans {
    /// The plan of a product that only has a forward pass.
    Inference(Arc<ConvPlan>),
    /// The plans of all three passes.
    Training(Arc<ConvTrainingPlans>),
}

impl LoweringContext<'_> {
    /// The sizes of the products of a layer, or of a part of it if it is split.
    ///
    /// # Errors
    /// Returns an error for operands that do not fit together.
    pub(super) fn matmul_params(
        &self,
        node: &NodeOperands,
        matmul: &MatMulOp,
    ) -> Result<(ConvParams, MatMulSerialParts), LoweringError> {
        let types: Vec<TensorInfo> =
            node.inputs.iter().map(|tensor| self.tensor_type(*tensor).clone()).collect();
        let sizes = matmul.sizes(&types);
        let sizes = sizes.map_err(|error| node.error(error))?;
        let PoplibsOptions { serialize_matmul, serialize_matmul_factor, .. } =
            self.planning_of(node);
        let serial = MatMulSerialization { mode: serialize_matmul, parts: serialize_matmul_factor };
        let cut = serial.split_sizes(sizes);
        let (MatMulSizes { groups, m, k, n }, cut) =
            cut.unwrap_or((sizes, MatMulSerialParts::NONE));
        Ok((ConvParams::matmul(types[0].dtype, groups, m, k, n), cut))
    }

    /// Plans the products of a layer.
    ///
    /// # Errors
    /// Returns an error if no plan exists.
    pub(super) fn matmul_plans(
        &self,
        node: &NodeOperands,
        params: &ConvParams,
    ) -> Result<ProductPlans, LoweringError> {
        if self.training {
            let options = self.plan_options(node, ConvPass::FcTrainingForward);
            let plans = self.plans.fully_connected(&self.machine, params, &options);
            return explain(node, plans).map(ProductPlans::Training);
        }
        let layer = self.is_weight(node.inputs[1]);
        let pass = if layer { ConvPass::FcInferenceForward } else { ConvPass::MatMul };
        let plan = self.plans.plan(&self.machine, params, &self.plan_options(node, pass));
        explain(node, plan).map(ProductPlans::Inference)
    }

    /// Makes the plans of a layer for later, and returns the layouts in which it creates its
    /// operands. A product of the forward pass creates them (popart
    /// willow/src/patterns/matmulgradpattern.cpp). Errors are reported when the node is lowered.
    pub(crate) fn create_matmul_operands(
        &self,
        node: &NodeOperands,
        matmul: &MatMulOp,
    ) -> Vec<Option<TensorLayout>> {
        let Ok((params, cut)) = self.matmul_params(node, matmul) else { return Vec::new() };
        let Ok(planned) = self.matmul_plans(node, &params) else { return Vec::new() };
        let Some(axes) = self.matmul_axes(node, matmul) else { return Vec::new() };
        if matmul.product != MatMulPhase::Forward {
            return Vec::new();
        }
        let form = ProductPlacement { axes, cut, start: self.first_tile() };
        self.created_operands(node, &planned, form)
    }

    /// The layouts of the operands of a planned product.
    fn created_operands(
        &self,
        node: &NodeOperands,
        planned: &ProductPlans,
        form: ProductPlacement,
    ) -> Vec<Option<TensorLayout>> {
        let plan = match planned {
            ProductPlans::Inference(plan) => plan,
            ProductPlans::Training(plans) => &plans.forward,
        };
        let layouts = planned_layouts(&self.machine, plan);
        let operands = [
            (layouts.input.of_parts(form.cut.x), form.axes.activations),
            (layouts.weights.of_parts(form.cut.w), form.axes.weights),
        ];
        let placed = operands.iter().zip(node.inputs).map(|((layout, axes), tensor)| {
            let ty = self.tensor_type(*tensor);
            Some(form.start.shift_layout(to_tensor_layout(layout, *axes, ty)))
        });
        placed.collect()
    }

    /// The axes of the operands of a layer.
    fn matmul_axes(&self, node: &NodeOperands, matmul: &MatMulOp) -> Option<ProductOperandAxes> {
        let leading = self.tensor_type(node.inputs[0]).shape.len().checked_sub(2)?;
        let weights = if matmul.transposed { TRANSPOSED_WEIGHTS_AXES } else { MATMUL_WEIGHTS_AXES };
        Some(ProductOperandAxes {
            activations: ACTIVATIONS_AXES.behind(leading),
            weights: weights.behind(leading),
        })
    }

    /// Lowers one product of a fully-connected layer.
    ///
    /// # Errors
    /// Returns an error if no plan exists.
    pub(crate) fn matmul(&mut self, node: &NodeOperands, matmul: &MatMulOp) -> LoweringResult {
        let (params, cut) = self.matmul_params(node, matmul)?;
        let planned = self.matmul_plans(node, &params)?;
        let axes = self
            .matmul_axes(node, matmul)
            .ok_or_else(|| node.error(LoweringProblem::NoMatrices))?;
        let form = ProductPlacement { axes, cut, start: self.first_tile() };
        let product = match planned {
            ProductPlans::Inference(plan) => self.forward(node, &plan, form),
            ProductPlans::Training(plans) => match matmul.product {
                MatMulPhase::Forward => self.forward(node, &plans.forward, form),
                MatMulPhase::InputGradient => self.input_gradient(node, &plans, form),
                MatMulPhase::WeightGradient => self.weight_gradient(node, &plans, form),
            },
        }?;
        if cut == MatMulSerialParts::NONE {
            return Ok(product);
        }
        let work = self.loop_over_serial_parts(node, matmul.product, cut, product.work);
        // Operands are read, and results written, in every part.
        Ok(LoweredOperation { work, liveness: OperandLiveness::default(), ..product })
    }

    /// Makes the plans of a convolution for later, and returns the layouts in which it creates its
    /// operands. Errors are reported when the node is lowered.
    pub(crate) fn create_conv_operands(
        &self,
        node: &NodeOperands,
        conv: &ConvOp,
    ) -> Vec<Option<TensorLayout>> {
        let Ok(planned) = self.conv_forward_plans(node, &self.conv_params(node, conv)) else {
            return Vec::new();
        };
        self.created_operands(node, &planned, self.conv_form(node, conv))
    }

    /// Plans a convolution from its forward pass.
    pub(super) fn conv_forward_plans(
        &self,
        node: &NodeOperands,
        params: &ConvParams,
    ) -> Result<ProductPlans, LoweringError> {
        if self.training {
            return self.conv_plans(node, params).map(ProductPlans::Training);
        }
        let options = self.plan_options(node, ConvPass::InferenceForward);
        explain(node, self.plans.plan(&self.machine, params, &options)).map(ProductPlans::Inference)
    }

    /// Lowers a convolution.
    ///
    /// # Errors
    /// Returns an error if no plan exists.
    pub(crate) fn conv_forward(&mut self, node: &NodeOperands, conv: &ConvOp) -> LoweringResult {
        let form = self.conv_form(node, conv);
        match self.conv_forward_plans(node, &self.conv_params(node, conv))? {
            ProductPlans::Inference(plan) => self.forward(node, &plan, form),
            ProductPlans::Training(plans) => self.forward(node, &plans.forward, form),
        }
    }

    /// Lowers the gradient of a convolution's input.
    ///
    /// # Errors
    /// Returns an error if no plan exists.
    pub(crate) fn conv_input_gradient(
        &mut self,
        node: &NodeOperands,
        conv: &ConvOp,
    ) -> LoweringResult {
        let params =
            conv.params(self.tensor_type(node.outputs[0]), self.tensor_type(node.inputs[1]));
        let plans = self.conv_plans(node, &params)?;
        let form = self.conv_placement(node, &params);
        self.input_gradient(node, &plans, form)
    }

    /// Lowers the gradient of a convolution's weights.
    ///
    /// # Errors
    /// Returns an error if no plan exists.
    pub(crate) fn conv_weight_gradient(
        &mut self,
        node: &NodeOperands,
        conv: &ConvOp,
    ) -> LoweringResult {
        let params =
            conv.params(self.tensor_type(node.inputs[0]), self.tensor_type(node.outputs[0]));
        let plans = self.conv_plans(node, &params)?;
        let form = self.conv_placement(node, &params);
        self.weight_gradient(node, &plans, form)
    }

    fn plan_options(&self, node: &NodeOperands, pass: ConvPass) -> ConvOptions {
        ConvOptions { pass, library: self.planning_of(node) }
    }

    fn conv_plans(
        &self,
        node: &NodeOperands,
        params: &ConvParams,
    ) -> Result<Arc<ConvTrainingPlans>, LoweringError> {
        let options = self.plan_options(node, ConvPass::TrainingForward);
        explain(node, self.plans.convolution(&self.machine, params, &options))
    }

    fn forward(
        &mut self,
        node: &NodeOperands,
        plan: &ConvPlan,
        form: ProductPlacement,
    ) -> LoweringResult {
        let ProductPlacement { axes, cut, .. } = form;
        let layouts = planned_layouts(&self.machine, plan);
        let input = layouts.input.of_parts(cut.x);
        let input = self.operand_source(node.inputs[0], &input, axes.activations, form.start);
        let weights = layouts.weights.of_parts(cut.w);
        let weights = self.operand_source(node.inputs[1], &weights, axes.weights, form.start);
        let operands = [
            self.place(node.inputs[0], axes.activations.summed(), form),
            self.place(node.inputs[1], axes.weights.summed(), form),
        ];
        let places = TensorPlaces { operands, ..TensorPlaces::default() };
        let product =
            self.lower_pass(plan, &ConvPassOperands::forward(input, weights), places, form.start);
        let output = layouts.output.of_parts(cut.y);
        self.place_result(node.outputs[0], &output, axes.activations, form.start);
        Ok(product)
    }

    /// Weights in the layout of the forward pass are transposed from there. Others, such as one of
    /// two activations, are transposed from their own layout.
    fn input_gradient(
        &mut self,
        node: &NodeOperands,
        plans: &ConvTrainingPlans,
        form: ProductPlacement,
    ) -> LoweringResult {
        let ProductPlacement { axes, cut, start } = form;
        let layouts = planned_layouts(&self.machine, &plans.backward);
        let gradient = layouts.input.of_parts(cut.y);
        let gradient = self.operand_source(node.inputs[0], &gradient, axes.activations, start);
        let forward = planned_layouts(&self.machine, &plans.forward).weights.of_parts(cut.w);
        let operands = match self.operand_source(node.inputs[1], &forward, axes.weights, start) {
            OperandSource::Planned => ConvPassOperands::backward(plans, gradient),
            _ => {
                let turned = ProductTensorAxes {
                    in_channels: axes.weights.out_channels,
                    out_channels: axes.weights.in_channels,
                    ..axes.weights
                };
                let weights = layouts.weights.of_parts(cut.w);
                let weights = self.operand_source(node.inputs[1], &weights, turned, start);
                ConvPassOperands::forward(gradient, weights)
            }
        };
        let operand_places = [
            self.place(node.inputs[0], axes.activations.summed(), form),
            self.place(node.inputs[1], axes.weights.summed().turned(), form),
        ];
        let places = TensorPlaces { operands: operand_places, ..TensorPlaces::default() };
        let product = self.lower_pass(&plans.backward, &operands, places, start);
        let result = layouts.output.of_parts(cut.x);
        self.place_result(node.outputs[0], &result, axes.activations, start);
        Ok(product)
    }

    /// The gradient gets the layout of the weights, so that adding it moves nothing.
    fn weight_gradient(
        &mut self,
        node: &NodeOperands,
        plans: &ConvTrainingPlans,
        form: ProductPlacement,
    ) -> LoweringResult {
        let layouts = planned_layouts(&self.machine, &plans.forward);
        let axes = form.axes.activations.summed().turned();
        let [input, gradient] = [0, 1].map(|at| self.place(node.inputs[at], axes, form));
        let places = TensorPlaces {
            operands: [input, gradient],
            result: self.made_gradient(node.outputs[0], &plans.update, form),
            ..TensorPlaces::default()
        };
        let operands = ConvPassOperands::weight_update(plans);
        let product = self.lower_pass(&plans.update, &operands, places, form.start);
        let result = layouts.weights.of_parts(form.cut.w);
        self.place_result(node.outputs[0], &result, form.axes.weights, form.start);
        Ok(product)
    }

    /// The placement of the operands of a convolution with the `forward` shape.
    fn conv_placement(&self, node: &NodeOperands, forward: &ConvParams) -> ProductPlacement {
        let first = self.first_tile();
        let start = if self.planning_of(node).conv_dithering {
            ConvStartTile::dithered(forward, self.training, self.machine.tiles)
        } else {
            first
        };
        ProductPlacement { axes: CONV_AXES, cut: MatMulSerialParts::NONE, start }
    }

    fn conv_form(&self, node: &NodeOperands, conv: &ConvOp) -> ProductPlacement {
        self.conv_placement(node, &self.conv_params(node, conv))
    }

    /// The planner's view of a convolution.
    pub(super) fn conv_params(&self, node: &NodeOperands, conv: &ConvOp) -> ConvParams {
        conv.params(self.tensor_type(node.inputs[0]), self.tensor_type(node.inputs[1]))
    }

    fn first_tile(&self) -> ConvStartTile {
        ConvStartTile::first(self.machine.tiles)
    }

    fn lower_pass(
        &self,
        plan: &ConvPlan,
        operands: &ConvPassOperands,
        places: TensorPlaces,
        start: ConvStartTile,
    ) -> LoweredOperation {
        let places = TensorPlaces { start: Some(start), ..places };
        let lowered = conv::lower_placed(&self.machine, plan, operands, places);
        let lives = OperandLiveness {
            inputs_until: lowered.used_until.to_vec(),
            outputs_from: vec![lowered.result_from],
            input_constraint: MemoryConstraint::Any,
            output_constraint: result_memory_constraint(plan),
        };
        let plan = Some(plan.describe().to_string());
        let work = start.shift_work(lowered.work);
        LoweredOperation { plan, liveness: lives, ..work.into() }
    }

    /// The place of an operand that a pass sums along an axis. `None` if it has none, or if a pass
    /// reads only a part of it.
    fn place(
        &self,
        tensor: TensorId,
        axes: SummedAxes,
        form: ProductPlacement,
    ) -> Option<TensorPlace> {
        let layout = self.layout(tensor).filter(|_| form.cut == MatMulSerialParts::NONE)?;
        let elements = form.start.own_runs(&layout.elements);
        let layout = TensorLayout { elements, order: layout.order.clone() };
        let SummedAxes { axis, rows } = axes;
        Some(TensorPlace { ty: self.tensor_type(tensor).clone(), layout, axis, rows })
    }

    /// The place of a weight gradient where the pass makes it, before it moves to the weights.
    fn made_gradient(
        &self,
        tensor: TensorId,
        update: &ConvPlan,
        form: ProductPlacement,
    ) -> Option<TensorPlace> {
        if form.cut != MatMulSerialParts::NONE {
            return None;
        }
        let weights = form.axes.weights;
        let made = ProductTensorAxes { batch: weights.in_channels, ..weights };
        let ty = self.tensor_type(tensor).clone();
        let layout = planned_layouts(&self.machine, update).output;
        let layout = to_tensor_layout(&layout, made, &ty);
        Some(TensorPlace { ty, layout, axis: weights.in_channels, rows: weights.out_channels })
    }

    /// Sets the layout of a result to that of its plan. Zeros that a stride leaves between elements
    /// are not a result of the plan: they are spread over all tiles.
    fn place_result(
        &mut self,
        tensor: TensorId,
        layout: &OperandLayout,
        axes: ProductTensorAxes,
        start: ConvStartTile,
    ) {
        let ty = self.tensor_type(tensor);
        let mut layout = start.shift_layout(to_tensor_layout(layout, axes, ty));
        let zeros = ty.elements().saturating_sub(layout.elements.total());
        let spread = TensorLayout::linear(zeros, ty.dtype.bytes(), self.tiles);
        layout.elements = tile_runs::add_per_tile(&layout.elements, &spread.elements);
        self.set_layout(tensor, layout);
    }

    /// Compares the layout of an operand with that of the plan. An operand without a layout gets
    /// that of the plan.
    fn operand_source(
        &mut self,
        tensor: TensorId,
        wanted: &OperandLayout,
        axes: ProductTensorAxes,
        start: ConvStartTile,
    ) -> OperandSource<'static> {
        let ty = self.tensor_type(tensor).clone();
        let innermost = axes.index_of(wanted.innermost);
        let wanted = start.shift_layout(to_tensor_layout(wanted, axes, &ty));
        let Some(have) = self.layout(tensor) else {
            self.set_layout(tensor, wanted);
            return OperandSource::Planned;
        };
        if *have == wanted {
            return OperandSource::Planned;
        }
        let Innermost { step, group } = have.order.innermost(&ty.shape);
        if step == Some(element_order::axis_step(&ty.shape, innermost)) {
            OperandSource::SameInnermost { group }
        } else {
            let group = have.group_on_tile(&ty.shape);
            OperandSource::Transposed { group, tiles: have.elements.tile_count().into() }
        }
    }
}

/// Converts a layout of the planner to a layout of the graph. The planner assumes parts of the
/// maximum size. The last tiles do not hold the excess over the elements of the tensor.
fn to_tensor_layout(
    layout: &OperandLayout,
    axes: ProductTensorAxes,
    ty: &TensorInfo,
) -> TensorLayout {
    let mut left = ty.elements();
    let mut elements = TileRuns::empty();
    for (tiles, bytes) in layout.bytes.iter() {
        let share = Elements(bytes.next_multiple_of(ty.dtype.bytes()) / ty.dtype.bytes());
        let full = u32::try_from(left / share.max(Elements(1)));
        let full = full.map_or(tiles.count(), |full| full.min(tiles.count()));
        elements.push(TileRange::new(tiles.first, tiles.first + full), share);
        left -= u64::from(full) * share;
        if full < tiles.count() {
            let rest = TileRange::new(tiles.first + full, tiles.first + full + 1);
            elements.push(rest, left.min(share));
            left -= left.min(share);
        }
        if left.is_zero() {
            break;
        }
    }
    let order = ElementOrder::grouped(&ty.shape, axes.index_of(layout.innermost), layout.group);
    TensorLayout { elements, order }
}

fn explain<T>(node: &NodeOperands, planned: Result<T, PlanError>) -> Result<T, LoweringError> {
    planned.map_err(|error| node.error(error))
}
