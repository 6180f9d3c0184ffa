//! Construction of the training graph: gradients by reverse differentiation, accumulation and the
//! optimiser.

use super::builder::GraphBuilder;
use super::{GraphNode, GraphProblem, ModelGraph, NodeOptions};
use crate::operators::{
    AccumulateOp, BinaryOp, GradientBuilder, GraphError, OperationSink, Optimizer, ScaleOp,
    UpdateForm,
};
use crate::shape::{BlockId, Tensor, TensorId, TensorInfo, TensorRole};
use tilescope_report::TrainingPass;

/// Training settings of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingConfig {
    pub optimizer: Optimizer,
    /// True if all parameters share the rate of Adam, as in TensorFlow.
    pub shares_rate: bool,
    /// True if several micro-batches share one update, so that gradients are accumulated.
    pub accumulate: bool,
    /// Factor of the loss that keeps small gradients above zero. 1 means no scaling.
    pub loss_scaling: f64,
}

impl ModelGraph {
    /// Adds the backward pass of the losses, gradient accumulation and the weight update.
    ///
    /// # Errors
    ///
    /// Fails for a model without a loss and for an operator without a gradient.
    pub fn train(self, training: TrainingConfig) -> Result<ModelGraph, GraphError> {
        if self.losses.is_empty() {
            return Err(GraphError::new("loss", GraphProblem::NoLoss));
        }
        let forward = self.nodes.clone();
        let losses = self.losses.clone();
        let trained = self.tensors_requiring_gradient();
        if let Some(loss) = losses.first().filter(|_| losses.iter().all(|loss| !trained[loss.0])) {
            let name = &self.tensor(*loss).name;
            return Err(GraphError::new(name, GraphProblem::NothingTrained));
        }
        let mut builder = GraphBuilder::extend(self);
        let mut gradients: Vec<Option<TensorId>> = vec![None; builder.graph().tensors.len()];
        for node in forward.iter().rev() {
            let ends_here = node.outputs.iter().any(|output| losses.contains(output));
            let is_loss = ends_here && node.operator.is_loss();
            if ends_here && !is_loss {
                begin(&mut builder, node, &losses, &mut gradients);
            }
            let scaling = if is_loss && training.loss_scaling != 1.0 {
                Some(ScaleOp::by(training.loss_scaling))
            } else {
                None
            };
            if !is_loss && add_in_place(&mut builder, node, &mut gradients)? {
                continue;
            }
            if is_loss || node.outputs.iter().any(|output| gradients[output.0].is_some()) {
                let mut found = differentiate(&mut builder, node, scaling, &gradients, &trained)?;
                if training.accumulate {
                    accumulate(&mut builder, node, &mut found, &gradients)?;
                }
                for (input, gradient) in found {
                    add_to_gradient(&mut builder, (input, node.block), gradient, &mut gradients)?;
                }
            }
        }
        debug_assert!(
            gradients.iter().enumerate().all(|(tensor, gradient)| {
                let graph = builder.graph();
                gradient.is_none_or(|gradient| {
                    graph.tensors[tensor].ty.shape == graph.tensor(gradient).ty.shape
                })
            }),
            "a gradient has the shape of its tensor"
        );
        update(&mut builder, &gradients, training)?;
        Ok(builder.finish())
    }

    /// For each tensor, true if it depends on a parameter. Other gradients, such as that of a mask
    /// computed from the input, are not needed.
    fn tensors_requiring_gradient(&self) -> Vec<bool> {
        let mut trained: Vec<bool> =
            self.tensors.iter().map(|tensor| tensor.role == TensorRole::Parameter).collect();
        for node in &self.nodes {
            if node.inputs.iter().any(|input| trained[input.0]) {
                for output in &node.outputs {
                    trained[output.0] = true;
                }
            }
        }
        trained
    }
}

/// Begins the backward pass at a loss that no loss operation computes. The gradient of the loss by
/// itself is a constant, the loss scaling (popart willow/src/transforms/autodiff).
fn begin(
    builder: &mut GraphBuilder,
    node: &GraphNode,
    losses: &[TensorId],
    gradients: &mut [Option<TensorId>],
) {
    builder.set_pass_and_block(TrainingPass::Backward, node.block);
    for output in node.outputs.iter().filter(|output| losses.contains(output)) {
        let Tensor { name, ty, .. } = builder.graph().tensor(*output).clone();
        let seed = builder.tensor(&format!("Gradient___{name}"), ty, TensorRole::Resident);
        // If other operations also read the loss, their gradients are added when they are reached.
        gradients[output.0].get_or_insert(seed);
    }
}

/// Adds the gradient operations of one forward node and returns the gradients of its inputs.
/// `scaling` is applied to the gradients of a loss.
fn differentiate(
    builder: &mut GraphBuilder,
    node: &GraphNode,
    scaling: Option<ScaleOp>,
    gradients: &[Option<TensorId>],
    trained: &[bool],
) -> Result<Vec<(TensorId, TensorId)>, GraphError> {
    let output_gradients: Vec<_> = node.outputs.iter().map(|output| gradients[output.0]).collect();
    builder.set_pass_and_block(TrainingPass::Backward, node.block);
    builder.set_origin(node.source.clone(), node.options);
    builder.set_compute_batch(node.compute_batch);
    let wanted: Vec<bool> = node.inputs.iter().map(|input| trained[input.0]).collect();
    let mut backward = GradientBuilder {
        node: node.operands(),
        output_gradients: &output_gradients,
        wanted: &wanted,
        graph: builder,
    };
    let gradients = node.operator.differentiate(&mut backward)?;
    let of_inputs = node.inputs.iter().zip(gradients);
    let mut found: Vec<_> = of_inputs
        .filter_map(|(input, gradient)| Some((*input, gradient?)))
        .filter(|(input, _)| trained[input.0])
        .collect();
    if let Some(scaling) = scaling {
        for (_, gradient) in &mut found {
            *gradient = builder.apply(&format!("{}/scaling", node.name), scaling, &[*gradient])?;
        }
    }
    Ok(found)
}

/// Adds the gradients of parameters to their accumulators immediately after each use, so that no
/// gradient is live longer than necessary. The first use creates the accumulator, which then takes
/// the place of the gradient.
fn accumulate(
    builder: &mut GraphBuilder,
    node: &GraphNode,
    found: &mut Vec<(TensorId, TensorId)>,
    gradients: &[Option<TensorId>],
) -> Result<(), GraphError> {
    let mut first_uses = Vec::new();
    for (input, gradient) in std::mem::take(found) {
        let tensor = builder.graph().tensor(input).clone();
        if tensor.role != TensorRole::Parameter {
            first_uses.push((input, gradient));
            continue;
        }
        let (accumulator, name) = match gradients[input.0] {
            Some(accumulator) => (accumulator, format!("{}/accumulate", node.name)),
            None => {
                builder.set_pass_and_block(TrainingPass::Backward, tensor.block);
                let name = format!("Accum___{}", tensor.name);
                let accumulator = builder.tensor(&name, tensor.ty.clone(), TensorRole::Accumulator);
                first_uses.push((input, accumulator));
                (accumulator, format!("{}/accumulate", tensor.name))
            }
        };
        builder.set_pass_and_block(TrainingPass::Backward, node.block);
        builder.apply_all(&name, AccumulateOp::default(), &[accumulator, gradient])?;
        builder.move_last_node_after(gradient);
    }
    *found = first_uses;
    Ok(())
}

/// Adds the gradient of a node in place to the gradient from other readers of its operand, if the
/// node has an operator for that and such a gradient exists.
fn add_in_place(
    builder: &mut GraphBuilder,
    node: &GraphNode,
    gradients: &mut [Option<TensorId>],
) -> Result<bool, GraphError> {
    let (Some(operator), [input], [output]) =
        (node.operator.gradient_addition(), &node.inputs[..], &node.outputs[..])
    else {
        return Ok(false);
    };
    let (Some(others), Some(gradient)) = (gradients[input.0], gradients[output.0]) else {
        return Ok(false);
    };
    builder.set_pass_and_block(TrainingPass::Backward, node.block);
    builder.set_origin(node.source.clone(), node.options);
    builder.set_compute_batch(node.compute_batch);
    let sum = builder.add(&format!("{}/grad", node.name), operator, &[others, gradient])?;
    gradients[input.0] = Some(sum[0]);
    Ok(true)
}

/// Records a gradient of `input` that a node of `block` computes, added to that of earlier uses.
fn add_to_gradient(
    builder: &mut GraphBuilder,
    (input, block): (TensorId, BlockId),
    gradient: TensorId,
    gradients: &mut [Option<TensorId>],
) -> Result<(), GraphError> {
    gradients[input.0] = Some(match gradients[input.0] {
        None => gradient,
        Some(earlier) => {
            let graph = builder.graph();
            let name = format!("{}/sum", graph.tensor(input).name);
            let block = block_of_sum(graph, input, [earlier, gradient], block);
            builder.set_pass_and_block(TrainingPass::Backward, block);
            builder.apply(&name, BinaryOp::ADD, &[earlier, gradient])?
        }
    });
    Ok(())
}

/// Returns the block in which two gradients of a tensor are added, given that the second was made
/// in `block`. If IPUs share rows, this is on the IPU that holds both gradients, in the later of
/// their steps. Otherwise both are sent to the IPU of the tensor. They are also sent there if two
/// IPUs make them in one step of a phase, because neither holds both before the step ends.
fn block_of_sum(
    graph: &ModelGraph,
    of: TensorId,
    gradients: [TensorId; 2],
    block: BlockId,
) -> BlockId {
    let [first, second] = gradients.map(|gradient| graph.tensor(gradient).block);
    if graph.row_shards < 2 {
        let step = graph.phase_step(first);
        let beside = first != block && step.is_some() && step == graph.phase_step(block);
        // The backward pass visits the blocks in reverse.
        return if beside { graph.tensor(of).block } else { first.min(block) };
    }
    if first.0 % graph.row_shards == second.0 % graph.row_shards {
        // The backward pass visits the steps in reverse.
        first.min(second)
    } else {
        graph.tensor(of).block
    }
}

/// Adds the optimiser for every parameter that has a gradient or an accumulator.
fn update(
    builder: &mut GraphBuilder,
    gradients: &[Option<TensorId>],
    training: TrainingConfig,
) -> Result<(), GraphError> {
    let TrainingConfig { optimizer, shares_rate, accumulate, loss_scaling } = training;
    let mut computes_rate = true;
    builder.set_origin(None, NodeOptions::default());
    builder.set_compute_batch(0);
    let parameters: Vec<TensorId> = builder.graph().with_role(TensorRole::Parameter).collect();
    for parameter in parameters {
        let Some(source) = gradients[parameter.0] else { continue };
        let tensor = builder.graph().tensor(parameter).clone();
        builder.set_pass_and_block(TrainingPass::Update, tensor.block);
        let mut operands = vec![parameter, source];
        for (state, dtype) in optimizer.states(accumulate) {
            let name = format!("{state}___{}", tensor.name);
            let ty = TensorInfo::new(tensor.ty.shape.clone(), dtype.unwrap_or(tensor.ty.dtype));
            operands.push(builder.tensor(&name, ty, TensorRole::OptimizerState));
        }
        let form = if shares_rate { UpdateForm::Shared { computes_rate } } else { UpdateForm::Own };
        builder.apply_all(
            &format!("{}/{}", tensor.name, optimizer.name()),
            optimizer.update(form, accumulate, loss_scaling != 1.0),
            &operands,
        )?;
        computes_rate = false;
    }
    Ok(())
}
