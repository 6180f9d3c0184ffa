//! Matmuls and convolutions of a graph: planned, laid out, and lowered.
//!
//! An operand that nobody has placed yet is placed as the plan wants it. One that lies elsewhere,
//! or in another order, is rearranged, and that is part of the operation's work.

use super::context::{Lives, LowerError, Lowering};
use super::conv::{self, Innermost, OperandLayout, Operands, Source, planned_layouts};
use super::layout::{Layout, Order};
use super::work::Work;
use crate::sim::graph::{Node, TensorId, TensorType};
use crate::sim::ops::{Conv2d, Product};
use crate::sim::planner::{
    ConvParams, FieldDim, Pass, Plan, PlanError, PlanOptions, TrainingPlans,
};
use crate::units::{TileRange, TileRuns};
use std::sync::Arc;

/// Axes of the tensors of one product: where its channels and its batch are.
#[derive(Clone, Copy)]
struct Axes {
    /// Axis of channels that are summed over, in inputs and weights.
    in_channels: usize,
    /// Axis of channels that are made.
    out_channels: usize,
    /// Axis of rows or samples.
    batch: usize,
}

impl Axes {
    fn of(self, innermost: Innermost) -> usize {
        match innermost {
            Innermost::InChannels => self.in_channels,
            Innermost::OutChannels => self.out_channels,
            Innermost::Batch => self.batch,
        }
    }
}

/// `x[m,k]`, `y[m,n]`, and `[batch, channels, height, width]`: channels second, batch first.
const ACTIVATIONS: Axes = Axes { in_channels: 1, out_channels: 1, batch: 0 };

/// `w[k,n]` of a matmul.
const MATMUL_WEIGHTS: Axes = Axes { in_channels: 0, out_channels: 1, batch: 1 };

/// `w[out, in, height, width]` of a convolution.
const CONV_WEIGHTS: Axes = Axes { in_channels: 1, out_channels: 0, batch: 0 };

impl Lowering<'_> {
    /// Lowers one product of a fully-connected layer.
    ///
    /// # Errors
    /// Where no plan exists.
    pub fn matmul(&mut self, node: &Node, product: Product) -> Result<Work, LowerError> {
        let types: Vec<&TensorType> = node.inputs.iter().map(|tensor| self.ty(*tensor)).collect();
        let (a, b) = (&types[0].shape, &types[1].shape);
        let [m, k, n] = match product {
            Product::Forward => [a[0], a[1], b[1]],
            Product::InputGradient => [a[0], b[0], a[1]],
            Product::WeightGradient => [a[0], a[1], b[1]],
        };
        let params = ConvParams::matmul(types[0].dtype, 1, m, k, n);
        if !self.training {
            let plan = self.plans.plan(&self.machine, &params, &self.plan_options(Pass::MatMul));
            return self.forward(node, &*explain(node, plan)?, MATMUL_WEIGHTS);
        }
        let options = self.plan_options(Pass::FcTrainingForward);
        let plans = self.plans.fully_connected(&self.machine, &params, &options);
        let plans = explain(node, plans)?;
        match product {
            Product::Forward => self.forward(node, &plans.forward, MATMUL_WEIGHTS),
            Product::InputGradient => self.input_gradient(node, &plans),
            Product::WeightGradient => self.weight_gradient(node, &plans, MATMUL_WEIGHTS),
        }
    }

    /// Lowers a convolution.
    ///
    /// # Errors
    /// Where no plan exists.
    pub fn conv_forward(&mut self, node: &Node, conv: &Conv2d) -> Result<Work, LowerError> {
        let params = conv_params(conv, self.ty(node.inputs[0]), self.ty(node.inputs[1]));
        if !self.training {
            let options = self.plan_options(Pass::InferenceForward);
            let plan = self.plans.plan(&self.machine, &params, &options);
            return self.forward(node, &*explain(node, plan)?, CONV_WEIGHTS);
        }
        let plans = self.conv_plans(node, &params)?;
        self.forward(node, &plans.forward, CONV_WEIGHTS)
    }

    /// Lowers the gradient of a convolution's input.
    ///
    /// # Errors
    /// Where no plan exists.
    pub fn conv_input_gradient(&mut self, node: &Node, conv: &Conv2d) -> Result<Work, LowerError> {
        let params = conv_params(conv, self.ty(node.outputs[0]), self.ty(node.inputs[1]));
        let plans = self.conv_plans(node, &params)?;
        self.input_gradient(node, &plans)
    }

    /// Lowers the gradient of a convolution's weights.
    ///
    /// # Errors
    /// Where no plan exists.
    pub fn conv_weight_gradient(&mut self, node: &Node, conv: &Conv2d) -> Result<Work, LowerError> {
        let params = conv_params(conv, self.ty(node.inputs[0]), self.ty(node.outputs[0]));
        let plans = self.conv_plans(node, &params)?;
        self.weight_gradient(node, &plans, CONV_WEIGHTS)
    }

    fn plan_options(&self, pass: Pass) -> PlanOptions {
        PlanOptions {
            pass,
            partials: self.planning.partials_type,
            available_memory_proportion: self.planning.available_memory_proportion,
        }
    }

    fn conv_plans(
        &self,
        node: &Node,
        params: &ConvParams,
    ) -> Result<Arc<TrainingPlans>, LowerError> {
        let options = self.plan_options(Pass::TrainingForward);
        explain(node, self.plans.convolution(&self.machine, params, &options))
    }

    fn forward(&mut self, node: &Node, plan: &Plan, weights: Axes) -> Result<Work, LowerError> {
        let layouts = planned_layouts(&self.machine, plan);
        let input = self.source(node.inputs[0], &layouts.input, ACTIVATIONS);
        let weights = self.source(node.inputs[1], &layouts.weights, weights);
        let operands = Operands::forward(input, weights);
        let work = self.lower_pass(plan, &operands);
        self.place_result(node.outputs[0], &layouts.output, ACTIVATIONS);
        Ok(work)
    }

    fn input_gradient(&mut self, node: &Node, plans: &TrainingPlans) -> Result<Work, LowerError> {
        let layouts = planned_layouts(&self.machine, &plans.backward);
        let gradient = self.source(node.inputs[0], &layouts.input, ACTIVATIONS);
        let work = self.lower_pass(&plans.backward, &Operands::backward(plans, gradient));
        self.place_result(node.outputs[0], &layouts.output, ACTIVATIONS);
        Ok(work)
    }

    /// The gradient ends up where the weights are, so that adding it moves nothing.
    fn weight_gradient(
        &mut self,
        node: &Node,
        plans: &TrainingPlans,
        axes: Axes,
    ) -> Result<Work, LowerError> {
        let layouts = planned_layouts(&self.machine, &plans.forward);
        let work = self.lower_pass(&plans.update, &Operands::weight_update(plans));
        self.place_result(node.outputs[0], &layouts.weights, axes);
        Ok(work)
    }

    fn lower_pass(&mut self, plan: &Plan, operands: &Operands) -> Work {
        let lowered = conv::lower(&self.machine, plan, operands);
        self.note_plan(plan.describe().to_string());
        self.note_lives(Lives {
            inputs_until: lowered.used_until.to_vec(),
            outputs_from: lowered.result_from,
        });
        lowered.work
    }

    fn place_result(&mut self, tensor: TensorId, layout: &OperandLayout, axes: Axes) {
        let layout = from_planned(layout, axes, self.ty(tensor));
        self.lay_out(tensor, layout);
    }

    /// How an operand lies compared with what a plan wants. One that nobody placed is placed so.
    fn source(&mut self, tensor: TensorId, wanted: &OperandLayout, axes: Axes) -> Source<'static> {
        let ty = self.ty(tensor).clone();
        let wanted = from_planned(wanted, axes, &ty);
        let Some(have) = self.layout(tensor) else {
            self.lay_out(tensor, wanted);
            return Source::Planned;
        };
        if *have == wanted {
            return Source::Planned;
        }
        let (axis, group) = have.order.innermost(&ty.shape);
        if axis == wanted.order.innermost(&ty.shape).0 {
            Source::Elsewhere { group }
        } else {
            let group = have.group_on_tile(&ty.shape);
            Source::Transposed { group, tiles: have.elements.tile_count() }
        }
    }
}

/// A layout of the planner as a layout of the graph. The planner counts largest parts; what that
/// is more than the tensor has, the last tiles do not hold.
fn from_planned(layout: &OperandLayout, axes: Axes, ty: &TensorType) -> Layout {
    let mut left = ty.elements();
    let mut elements = TileRuns::empty();
    for (tiles, bytes) in layout.bytes.iter() {
        let share = bytes.div_ceil(ty.dtype.bytes());
        let full = u64::from(tiles.count()).min(left / share.max(1)) as u32;
        elements.push(TileRange::new(tiles.first, tiles.first + full), share);
        left -= u64::from(full) * share;
        if full < tiles.count() {
            let rest = TileRange::new(tiles.first + full, tiles.first + full + 1);
            elements.push(rest, left.min(share));
            left -= left.min(share);
        }
        if left == 0 {
            break;
        }
    }
    let order = Order::Grouped { axis: axes.of(layout.innermost), group: layout.group };
    Layout { elements, order }
}

/// The planner's view of a convolution of `x` with `w`.
fn conv_params(conv: &Conv2d, x: &TensorType, w: &TensorType) -> ConvParams {
    let dim = |axis: usize| {
        FieldDim::new(x.shape[axis], w.shape[axis])
            .padded(conv.padding, conv.padding)
            .strided(conv.stride)
    };
    ConvParams {
        input_type: x.dtype,
        output_type: x.dtype,
        batch: x.shape[0],
        conv_groups: 1,
        in_channels: x.shape[1],
        out_channels: w.shape[0],
        dims: vec![dim(2), dim(3)],
    }
}

fn explain<T>(node: &Node, planned: Result<T, PlanError>) -> Result<T, LowerError> {
    planned.map_err(|error| LowerError { operation: node.name.clone(), problem: error.to_string() })
}
