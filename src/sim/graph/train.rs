//! The training graph: gradients by reverse differentiation, accumulation and the optimiser.

use super::builder::{GraphBuilder, GraphError};
use super::{Graph, Node, Role, TensorId, TensorType};
use crate::report::Pass;
use crate::sim::ops::{Accumulate, BinaryOp, Operator, Optimizer, Scale};

/// What an operator sees while it is differentiated.
pub struct Backward<'a> {
    /// The forward node.
    pub node: &'a Node,
    /// Gradients of its outputs, where the loss depends on them.
    pub output_gradients: &'a [Option<TensorId>],
    builder: &'a mut GraphBuilder,
}

impl Backward<'_> {
    /// The gradient of the only output.
    ///
    /// # Errors
    /// Says that the loss does not depend on the node: a defect of the model.
    pub fn gradient(&self) -> Result<TensorId, GraphError> {
        self.output_gradients.first().copied().flatten().ok_or_else(|| GraphError {
            node: self.node.name.clone(),
            problem: "the loss does not depend on this operation".to_string(),
        })
    }

    /// The error of an operator that cannot be differentiated.
    pub fn no_gradient(&self) -> GraphError {
        let problem = format!("{} has no gradient", self.node.operator.kind());
        GraphError { node: self.node.name.clone(), problem }
    }

    /// Whether a gradient of this input is of use to anyone.
    pub fn wants(&self, input: usize) -> bool {
        let tensor = self.builder.graph().tensor(self.node.inputs[input]);
        matches!(tensor.role, Role::Activation | Role::Parameter)
    }

    /// Type of an input.
    pub fn input_type(&self, input: usize) -> TensorType {
        self.builder.graph().tensor(self.node.inputs[input]).ty.clone()
    }

    /// Applies a gradient operator; `part` is added to the forward node's name.
    ///
    /// # Errors
    /// As [`GraphBuilder::apply`].
    pub fn apply(
        &mut self,
        part: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<TensorId, GraphError> {
        self.builder.apply(&format!("{}/{part}", self.node.name), operator, inputs)
    }

    /// Applies a gradient operator with several outputs.
    ///
    /// # Errors
    /// As [`GraphBuilder::apply_all`].
    pub fn apply_all(
        &mut self,
        part: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<Vec<TensorId>, GraphError> {
        self.builder.apply_all(&format!("{}/{part}", self.node.name), operator, inputs)
    }
}

/// How a graph is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// The optimiser.
    pub optimizer: Optimizer,
    /// Whether several micro-batches share one update: gradients are then accumulated.
    pub accumulate: bool,
    /// Factor of the loss that keeps small gradients above zero; 1 for none.
    pub loss_scaling: f64,
}

impl Graph {
    /// Adds the backward pass of the losses, gradient accumulation and the weight update.
    ///
    /// # Errors
    /// A model without a loss, or an operator without a gradient.
    pub fn train(self, training: Training) -> Result<Graph, GraphError> {
        if self.losses.is_empty() {
            let problem = "the model has no loss, so it cannot be trained".to_string();
            return Err(GraphError { node: "loss".to_string(), problem });
        }
        let (forward, losses) = (self.nodes.clone(), self.losses.clone());
        let mut builder = GraphBuilder::extend(self);
        let mut gradients: Vec<Option<TensorId>> = vec![None; builder.graph().tensors.len()];
        for node in forward.iter().rev() {
            let is_loss = node.outputs.iter().any(|output| losses.contains(output));
            let scaling =
                (is_loss && training.loss_scaling != 1.0).then_some(Scale(training.loss_scaling));
            if is_loss || node.outputs.iter().any(|output| gradients[output.0].is_some()) {
                differentiate(&mut builder, node, scaling, &mut gradients)?;
            }
        }
        update(&mut builder, &gradients, training)?;
        Ok(builder.finish())
    }
}

/// Adds the gradient operations of one forward node and notes the gradients of its inputs;
/// `scaling` is applied to those of a loss.
fn differentiate(
    builder: &mut GraphBuilder,
    node: &Node,
    scaling: Option<Scale>,
    gradients: &mut [Option<TensorId>],
) -> Result<(), GraphError> {
    let output_gradients: Vec<_> = node.outputs.iter().map(|output| gradients[output.0]).collect();
    builder.at(Pass::Backward, node.block);
    let mut backward = Backward { node, output_gradients: &output_gradients, builder };
    let found = node.operator.differentiate(&mut backward)?;
    for (input, gradient) in node.inputs.iter().zip(found) {
        let Some(mut gradient) = gradient else { continue };
        if let Some(scaling) = scaling {
            gradient = builder.apply(&format!("{}/scaling", node.name), scaling, &[gradient])?;
        }
        gradients[input.0] = Some(match gradients[input.0] {
            None => gradient,
            Some(earlier) => {
                let name = format!("{}/sum", builder.graph().tensor(*input).name);
                builder.apply(&name, BinaryOp::ADD, &[earlier, gradient])?
            }
        });
    }
    Ok(())
}

/// Adds accumulation and the optimiser for every parameter that has a gradient.
fn update(
    builder: &mut GraphBuilder,
    gradients: &[Option<TensorId>],
    training: Training,
) -> Result<(), GraphError> {
    let Training { optimizer, accumulate, .. } = training;
    let parameters: Vec<TensorId> = builder.graph().with_role(Role::Parameter).collect();
    for parameter in parameters {
        let Some(gradient) = gradients[parameter.0] else { continue };
        let tensor = builder.graph().tensor(parameter).clone();
        let mut source = gradient;
        if accumulate {
            builder.at(Pass::Backward, tensor.block);
            let accumulator = builder.tensor(
                &format!("Accum___{}", tensor.name),
                tensor.ty.clone(),
                Role::Accumulator,
            );
            builder.apply_all(
                &format!("{}/accumulate", tensor.name),
                Accumulate,
                &[accumulator, gradient],
            )?;
            source = accumulator;
        }
        builder.at(Pass::Update, tensor.block);
        let mut operands = vec![parameter, source];
        for (state, dtype) in optimizer.states() {
            let name = format!("{state}___{}", tensor.name);
            let ty = TensorType::new(tensor.ty.shape.clone(), dtype.unwrap_or(tensor.ty.dtype));
            operands.push(builder.tensor(&name, ty, Role::State));
        }
        builder.apply_all(
            &format!("{}/{}", tensor.name, optimizer.name()),
            optimizer.update(accumulate),
            &operands,
        )?;
    }
    Ok(())
}
