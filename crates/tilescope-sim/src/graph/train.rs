//! The training graph: gradients by reverse differentiation, accumulation and the optimiser.

use super::builder::{GraphBuilder, GraphError};
use super::{Graph, Node, Role, Tensor, TensorId, TensorType};
use crate::ops::{Accumulate, BinaryOp, Operator, Optimizer, Scale};
use tilescope_report::Pass;

/// What an operator sees while it is differentiated.
pub struct Backward<'a> {
    pub node: &'a Node,
    /// Gradients of its outputs, where the loss depends on them.
    pub output_gradients: &'a [Option<TensorId>],
    /// For each tensor of the forward pass, whether a parameter is behind it.
    trained: &'a [bool],
    builder: &'a mut GraphBuilder,
}

impl Backward<'_> {
    /// The gradient of the only output.
    ///
    /// # Errors
    /// Says that the loss does not depend on the node: a defect of the model.
    pub(crate) fn gradient(&self) -> Result<TensorId, GraphError> {
        self.output_gradients.first().copied().flatten().ok_or_else(|| GraphError {
            node: self.node.name.clone(),
            problem: "the loss does not depend on this operation".to_string(),
        })
    }

    /// The error of an operator that cannot be differentiated.
    pub(crate) fn no_gradient(&self) -> GraphError {
        let problem = format!("{} has no gradient", self.node.operator.kind());
        GraphError { node: self.node.name.clone(), problem }
    }

    /// Whether a gradient of this input is of use to anyone.
    pub(crate) fn wants(&self, input: usize) -> bool {
        self.trained[self.node.inputs[input].0]
    }

    /// Type of an input.
    pub(crate) fn input_type(&self, input: usize) -> TensorType {
        self.builder.graph().tensor(self.node.inputs[input]).ty.clone()
    }

    /// Applies a gradient operator; `part` is added to the forward node's name.
    ///
    /// # Errors
    /// As [`GraphBuilder::apply`].
    pub(crate) fn apply(
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
    pub(crate) fn apply_all(
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
        let trained = self.trained();
        let mut builder = GraphBuilder::extend(self);
        let mut gradients: Vec<Option<TensorId>> = vec![None; builder.graph().tensors.len()];
        for node in forward.iter().rev() {
            let is_loss = node.outputs.iter().any(|output| losses.contains(output));
            let scaling =
                (is_loss && training.loss_scaling != 1.0).then_some(Scale(training.loss_scaling));
            if is_loss || node.outputs.iter().any(|output| gradients[output.0].is_some()) {
                let mut found = differentiate(&mut builder, node, scaling, &gradients, &trained)?;
                if training.accumulate {
                    accumulate(&mut builder, node, &mut found, &gradients)?;
                }
                for (input, gradient) in found {
                    note(&mut builder, input, gradient, &mut gradients)?;
                }
            }
        }
        update(&mut builder, &gradients, training)?;
        Ok(builder.finish())
    }

    /// For each tensor, whether a parameter is behind it: nobody asks for other gradients, such as
    /// that of a mask made from the input.
    fn trained(&self) -> Vec<bool> {
        let is_parameter = |tensor: &Tensor| tensor.role == Role::Parameter;
        let mut trained: Vec<bool> = self.tensors.iter().map(is_parameter).collect();
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

/// Adds the gradient operations of one forward node; returns the gradients of its inputs.
/// `scaling` is applied to those of a loss.
fn differentiate(
    builder: &mut GraphBuilder,
    node: &Node,
    scaling: Option<Scale>,
    gradients: &[Option<TensorId>],
    trained: &[bool],
) -> Result<Vec<(TensorId, TensorId)>, GraphError> {
    let output_gradients: Vec<_> = node.outputs.iter().map(|output| gradients[output.0]).collect();
    builder.at(Pass::Backward, node.block);
    let mut backward = Backward { node, output_gradients: &output_gradients, trained, builder };
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

/// Adds the gradients of parameters to their accumulators, use by use and at once, so that none
/// lives longer than it must. A first use makes the accumulator, which then takes its gradient's
/// place.
fn accumulate(
    builder: &mut GraphBuilder,
    node: &Node,
    found: &mut Vec<(TensorId, TensorId)>,
    gradients: &[Option<TensorId>],
) -> Result<(), GraphError> {
    let mut first_uses = Vec::new();
    for (input, gradient) in std::mem::take(found) {
        let tensor = builder.graph().tensor(input).clone();
        if tensor.role != Role::Parameter {
            first_uses.push((input, gradient));
            continue;
        }
        let (accumulator, name) = match gradients[input.0] {
            Some(accumulator) => (accumulator, format!("{}/accumulate", node.name)),
            None => {
                builder.at(Pass::Backward, tensor.block);
                let name = format!("Accum___{}", tensor.name);
                let accumulator = builder.tensor(&name, tensor.ty.clone(), Role::Accumulator);
                first_uses.push((input, accumulator));
                (accumulator, format!("{}/accumulate", tensor.name))
            }
        };
        builder.at(Pass::Backward, node.block);
        builder.apply_all(&name, Accumulate::default(), &[accumulator, gradient])?;
        builder.run_early(gradient);
    }
    *found = first_uses;
    Ok(())
}

/// Notes a gradient, added to that of earlier uses.
fn note(
    builder: &mut GraphBuilder,
    input: TensorId,
    gradient: TensorId,
    gradients: &mut [Option<TensorId>],
) -> Result<(), GraphError> {
    gradients[input.0] = Some(match gradients[input.0] {
        None => gradient,
        Some(earlier) => {
            let name = format!("{}/sum", builder.graph().tensor(input).name);
            builder.apply(&name, BinaryOp::ADD, &[earlier, gradient])?
        }
    });
    Ok(())
}

/// Adds the optimiser for every parameter that has a gradient or an accumulator.
fn update(
    builder: &mut GraphBuilder,
    gradients: &[Option<TensorId>],
    training: Training,
) -> Result<(), GraphError> {
    let Training { optimizer, accumulate, .. } = training;
    let parameters: Vec<TensorId> = builder.graph().with_role(Role::Parameter).collect();
    for parameter in parameters {
        let Some(source) = gradients[parameter.0] else { continue };
        let tensor = builder.graph().tensor(parameter).clone();
        builder.at(Pass::Update, tensor.block);
        let mut operands = vec![parameter, source];
        for (state, dtype) in optimizer.states(accumulate) {
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
