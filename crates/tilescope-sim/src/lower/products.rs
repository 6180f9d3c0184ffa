//! Matmuls and convolutions of a graph: planned, laid out, and lowered.
//!
//! An operand that nobody has placed yet is placed as the plan wants it. One that lies elsewhere,
//! or in another order, is rearranged, and that is part of the operation's work.

use super::context::{Lives, LowerError, Lowering};
use super::conv::{
    self, Innermost, OperandLayout, Operands, Source, Start, planned_layouts, result_place,
};
use super::layout::{Layout, Order};
use super::runs;
use super::serialise::{Cut, Serialisation};
use super::work::{Place, Work};
use crate::graph::{Node, Role, TensorId, TensorType};
use crate::ops::{Convolution, MatMul, Product, Sizes};
use crate::planner::{ConvParams, Pass, Plan, PlanError, PlanOptions, TrainingPlans};
use std::sync::Arc;
use tilescope_report::units::{TileRange, TileRuns};

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

    /// The same axes behind `leading` others.
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
struct ProductAxes {
    activations: Axes,
    weights: Axes,
}

/// `x[m,k]`, `y[m,n]`, and `[batch, channels, height, width]`: channels second, batch first.
const ACTIVATIONS: Axes = Axes { in_channels: 1, out_channels: 1, batch: 0 };

/// `w[k,n]` of a matmul.
const MATMUL_WEIGHTS: Axes = Axes { in_channels: 0, out_channels: 1, batch: 1 };

/// `w[n,k]` of a matmul with a transpose, `w[out, in, height, width]` of a convolution.
const TURNED_WEIGHTS: Axes = Axes { in_channels: 1, out_channels: 0, batch: 0 };

const CONV: ProductAxes = ProductAxes { activations: ACTIVATIONS, weights: TURNED_WEIGHTS };

/// How the operands of a product lie.
#[derive(Clone, Copy)]
struct Form {
    axes: ProductAxes,
    /// The part of a layer that is done at a time.
    cut: Cut,
    /// Where its tiles begin.
    start: Start,
}

/// Plans of a product.
enum Planned {
    /// Of a product that is only ever run forwards.
    Inference(Arc<Plan>),
    /// Of all three passes.
    Training(Arc<TrainingPlans>),
}

impl Lowering<'_> {
    /// Plans the products of a layer, or of a part of it where it is cut.
    ///
    /// # Errors
    /// Where no plan exists.
    fn matmul_plans(&self, node: &Node, matmul: &MatMul) -> Result<(Planned, Cut), LowerError> {
        let types: Vec<TensorType> =
            node.inputs.iter().map(|tensor| self.ty(*tensor).clone()).collect();
        let sizes = matmul.sizes(&types);
        let sizes =
            sizes.map_err(|problem| LowerError { operation: node.name.clone(), problem })?;
        let cut = Serialisation::chosen(self.planning).and_then(|serial| serial.cut(sizes));
        let (Sizes { groups, m, k, n }, cut) = cut.unwrap_or((sizes, Cut::NONE));
        let params = ConvParams::matmul(types[0].dtype, groups, m, k, n);
        if self.training {
            let options = self.plan_options(Pass::FcTrainingForward);
            let plans = self.plans.fully_connected(&self.machine, &params, &options);
            return explain(node, plans).map(|plans| (Planned::Training(plans), cut));
        }
        let layer = self.graph.tensor(node.inputs[1]).role == Role::Parameter;
        let pass = if layer { Pass::FcInferenceForward } else { Pass::MatMul };
        let plan = self.plans.plan(&self.machine, &params, &self.plan_options(pass));
        explain(node, plan).map(|plan| (Planned::Inference(plan), cut))
    }

    /// Makes the plans of a layer, for later; returns how its weights will have to lie. Whoever
    /// lowers the node hears of errors.
    pub(crate) fn plan_matmul(&self, node: &Node, matmul: &MatMul) -> Option<Layout> {
        let (planned, cut) = self.matmul_plans(node, matmul).ok()?;
        let axes = self.matmul_axes(node, matmul)?;
        let form = Form { axes, cut, start: self.first_tile() };
        (matmul.product == Product::Forward).then(|| self.weights(node, &planned, form))
    }

    /// How the weights of a planned product have to lie.
    fn weights(&self, node: &Node, planned: &Planned, form: Form) -> Layout {
        let plan = match planned {
            Planned::Inference(plan) => plan,
            Planned::Training(plans) => &plans.forward,
        };
        let wanted = planned_layouts(&self.machine, plan).weights.of_parts(form.cut.w);
        form.start.layout(from_planned(&wanted, form.axes.weights, self.ty(node.inputs[1])))
    }

    /// Axes of the operands of a layer.
    fn matmul_axes(&self, node: &Node, matmul: &MatMul) -> Option<ProductAxes> {
        let leading = self.ty(node.inputs[0]).shape.len().checked_sub(2)?;
        let weights = if matmul.transposed { TURNED_WEIGHTS } else { MATMUL_WEIGHTS };
        Some(ProductAxes {
            activations: ACTIVATIONS.behind(leading),
            weights: weights.behind(leading),
        })
    }

    /// Lowers one product of a fully-connected layer.
    ///
    /// # Errors
    /// Where no plan exists.
    pub(crate) fn matmul(&mut self, node: &Node, matmul: &MatMul) -> Result<Work, LowerError> {
        let (planned, cut) = self.matmul_plans(node, matmul)?;
        let axes = self.matmul_axes(node, matmul).ok_or_else(|| LowerError {
            operation: node.name.clone(),
            problem: "its operands are no matrices".to_string(),
        })?;
        let form = Form { axes, cut, start: self.first_tile() };
        let work = match planned {
            Planned::Inference(plan) => self.forward(node, &plan, form),
            Planned::Training(plans) => match matmul.product {
                Product::Forward => self.forward(node, &plans.forward, form),
                Product::InputGradient => self.input_gradient(node, &plans, form),
                Product::WeightGradient => self.weight_gradient(node, &plans, form),
            },
        }?;
        if cut == Cut::NONE {
            return Ok(work);
        }
        // Operands are read, and results written, in every part.
        self.note_lives(Lives::default());
        Ok(self.in_parts(node, matmul.product, cut, work))
    }

    /// Makes the plans of a convolution, for later; returns how its weights will have to lie.
    /// Whoever lowers the node hears of errors.
    pub(crate) fn plan_conv(&self, node: &Node, conv: &Convolution) -> Option<Layout> {
        let planned = self.conv_forward_plans(node, conv).ok()?;
        Some(self.weights(node, &planned, self.conv_form(node, conv)))
    }

    /// Plans a convolution from its forward pass.
    fn conv_forward_plans(&self, node: &Node, conv: &Convolution) -> Result<Planned, LowerError> {
        let params = conv.params(self.ty(node.inputs[0]), self.ty(node.inputs[1]));
        if self.training {
            return self.conv_plans(node, &params).map(Planned::Training);
        }
        let options = self.plan_options(Pass::InferenceForward);
        explain(node, self.plans.plan(&self.machine, &params, &options)).map(Planned::Inference)
    }

    /// Lowers a convolution.
    ///
    /// # Errors
    /// Where no plan exists.
    pub(crate) fn conv_forward(
        &mut self,
        node: &Node,
        conv: &Convolution,
    ) -> Result<Work, LowerError> {
        let form = self.conv_form(node, conv);
        match self.conv_forward_plans(node, conv)? {
            Planned::Inference(plan) => self.forward(node, &plan, form),
            Planned::Training(plans) => self.forward(node, &plans.forward, form),
        }
    }

    /// Lowers the gradient of a convolution's input.
    ///
    /// # Errors
    /// Where no plan exists.
    pub(crate) fn conv_input_gradient(
        &mut self,
        node: &Node,
        conv: &Convolution,
    ) -> Result<Work, LowerError> {
        let params = conv.params(self.ty(node.outputs[0]), self.ty(node.inputs[1]));
        let plans = self.conv_plans(node, &params)?;
        let form = self.form_of(&params);
        self.input_gradient(node, &plans, form)
    }

    /// Lowers the gradient of a convolution's weights.
    ///
    /// # Errors
    /// Where no plan exists.
    pub(crate) fn conv_weight_gradient(
        &mut self,
        node: &Node,
        conv: &Convolution,
    ) -> Result<Work, LowerError> {
        let params = conv.params(self.ty(node.inputs[0]), self.ty(node.outputs[0]));
        let plans = self.conv_plans(node, &params)?;
        let form = self.form_of(&params);
        self.weight_gradient(node, &plans, form)
    }

    fn plan_options(&self, pass: Pass) -> PlanOptions {
        PlanOptions { pass, library: *self.planning }
    }

    fn conv_plans(
        &self,
        node: &Node,
        params: &ConvParams,
    ) -> Result<Arc<TrainingPlans>, LowerError> {
        let options = self.plan_options(Pass::TrainingForward);
        explain(node, self.plans.convolution(&self.machine, params, &options))
    }

    fn forward(&mut self, node: &Node, plan: &Plan, form: Form) -> Result<Work, LowerError> {
        let Form { axes, cut, .. } = form;
        let layouts = planned_layouts(&self.machine, plan);
        let input = layouts.input.of_parts(cut.x);
        let input = self.source(node.inputs[0], &input, axes.activations, form.start);
        let weights = layouts.weights.of_parts(cut.w);
        let weights = self.source(node.inputs[1], &weights, axes.weights, form.start);
        let work = self.lower_pass(plan, &Operands::forward(input, weights), form.start);
        let output = layouts.output.of_parts(cut.y);
        self.place_result(node.outputs[0], &output, axes.activations, form.start);
        Ok(work)
    }

    /// Weights that lie as the forward pass wants them are turned from there; others, such as one
    /// of two activations, from where they are.
    fn input_gradient(
        &mut self,
        node: &Node,
        plans: &TrainingPlans,
        form: Form,
    ) -> Result<Work, LowerError> {
        let Form { axes, cut, start } = form;
        let layouts = planned_layouts(&self.machine, &plans.backward);
        let gradient = layouts.input.of_parts(cut.y);
        let gradient = self.source(node.inputs[0], &gradient, axes.activations, start);
        let forward = planned_layouts(&self.machine, &plans.forward).weights.of_parts(cut.w);
        let operands = match self.source(node.inputs[1], &forward, axes.weights, start) {
            Source::Planned => Operands::backward(plans, gradient),
            _ => {
                let turned = Axes {
                    in_channels: axes.weights.out_channels,
                    out_channels: axes.weights.in_channels,
                    ..axes.weights
                };
                let weights = layouts.weights.of_parts(cut.w);
                let weights = self.source(node.inputs[1], &weights, turned, start);
                Operands::forward(gradient, weights)
            }
        };
        let work = self.lower_pass(&plans.backward, &operands, start);
        let result = layouts.output.of_parts(cut.x);
        self.place_result(node.outputs[0], &result, axes.activations, start);
        Ok(work)
    }

    /// The gradient ends up where the weights are, so that adding it moves nothing.
    fn weight_gradient(
        &mut self,
        node: &Node,
        plans: &TrainingPlans,
        form: Form,
    ) -> Result<Work, LowerError> {
        let layouts = planned_layouts(&self.machine, &plans.forward);
        let work = self.lower_pass(&plans.update, &Operands::weight_update(plans), form.start);
        let result = layouts.weights.of_parts(form.cut.w);
        self.place_result(node.outputs[0], &result, form.axes.weights, form.start);
        Ok(work)
    }

    /// How the operands of a convolution of `forward` shape lie.
    fn form_of(&self, forward: &ConvParams) -> Form {
        let first = self.first_tile();
        let start = match self.planning.conv_dithering {
            true => Start::dithered(forward, self.training, self.machine.tiles as u32),
            false => first,
        };
        Form { axes: CONV, cut: Cut::NONE, start }
    }

    fn conv_form(&self, node: &Node, conv: &Convolution) -> Form {
        self.form_of(&conv.params(self.ty(node.inputs[0]), self.ty(node.inputs[1])))
    }

    fn first_tile(&self) -> Start {
        Start::first(self.machine.tiles as u32)
    }

    fn lower_pass(&mut self, plan: &Plan, operands: &Operands, start: Start) -> Work {
        let lowered = conv::lower(&self.machine, plan, operands);
        self.note_plan(plan.describe().to_string());
        self.note_lives(Lives {
            inputs_until: lowered.used_until.to_vec(),
            outputs_from: vec![lowered.result_from],
            inputs_in: Place::Any,
            outputs_in: result_place(plan),
        });
        start.work(lowered.work)
    }

    /// Lays a result out as its plan leaves it. Zeros that a stride leaves between are no result of
    /// the plan: they are spread over all tiles.
    fn place_result(&mut self, tensor: TensorId, layout: &OperandLayout, axes: Axes, start: Start) {
        let ty = self.ty(tensor);
        let mut layout = start.layout(from_planned(layout, axes, ty));
        let zeros = ty.elements().saturating_sub(layout.elements.total());
        let spread = Layout::linear(zeros, ty.dtype.bytes(), self.tiles);
        layout.elements = runs::add(&layout.elements, &spread.elements);
        self.lay_out(tensor, layout);
    }

    /// How an operand lies compared with what a plan wants. One that nobody placed is placed so.
    fn source(
        &mut self,
        tensor: TensorId,
        wanted: &OperandLayout,
        axes: Axes,
        start: Start,
    ) -> Source<'static> {
        let ty = self.ty(tensor).clone();
        let wanted = start.layout(from_planned(wanted, axes, &ty));
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

fn explain<T>(node: &Node, planned: Result<T, PlanError>) -> Result<T, LowerError> {
    planned.map_err(|error| LowerError { operation: node.name.clone(), problem: error.to_string() })
}
