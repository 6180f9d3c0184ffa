//! The training graph: gradients by reverse differentiation, accumulation and the optimiser.

use super::builder::{GraphBuilder, GraphError};
use super::{Graph, Node, Role, TensorId, TensorType};
use crate::report::Pass;
use crate::sim::ops::{Accumulate, Add, Operator, Optimizer};

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

impl Graph {
    /// Adds the backward pass of the loss, gradient accumulation and the weight update.
    ///
    /// Accumulators are made when several micro-batches share one update.
    ///
    /// # Errors
    /// A model without a loss, or an operator without a gradient.
    pub fn train(self, optimizer: Optimizer, accumulate: bool) -> Result<Graph, GraphError> {
        let Some(loss) = self.loss else {
            let problem = "the model has no loss, so it cannot be trained".to_string();
            return Err(GraphError { node: "loss".to_string(), problem });
        };
        let forward = self.nodes.clone();
        let mut builder = GraphBuilder::extend(self);
        let mut gradients: Vec<Option<TensorId>> = vec![None; builder.graph().tensors.len()];
        for node in forward.iter().rev() {
            differentiate(&mut builder, node, loss, &mut gradients)?;
        }
        update(&mut builder, &gradients, optimizer, accumulate)?;
        Ok(builder.finish())
    }
}

/// Adds the gradient operations of one forward node and notes the gradients of its inputs.
fn differentiate(
    builder: &mut GraphBuilder,
    node: &Node,
    loss: TensorId,
    gradients: &mut [Option<TensorId>],
) -> Result<(), GraphError> {
    let output_gradients: Vec<_> = node.outputs.iter().map(|output| gradients[output.0]).collect();
    let leads_to_loss =
        output_gradients.iter().any(Option::is_some) || node.outputs.contains(&loss);
    if !leads_to_loss {
        return Ok(());
    }
    builder.at(Pass::Backward, node.block);
    let mut backward = Backward { node, output_gradients: &output_gradients, builder };
    let found = node.operator.differentiate(&mut backward)?;
    for (input, gradient) in node.inputs.iter().zip(found) {
        let Some(gradient) = gradient else { continue };
        gradients[input.0] = Some(match gradients[input.0] {
            None => gradient,
            Some(earlier) => {
                let name = format!("{}/sum", builder.graph().tensor(*input).name);
                builder.apply(&name, Add, &[earlier, gradient])?
            }
        });
    }
    Ok(())
}

/// Adds accumulation and the optimiser for every parameter that has a gradient.
fn update(
    builder: &mut GraphBuilder,
    gradients: &[Option<TensorId>],
    optimizer: Optimizer,
    accumulate: bool,
) -> Result<(), GraphError> {
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
        for state in optimizer.states() {
            let name = format!("{state}___{}", tensor.name);
            operands.push(builder.tensor(&name, tensor.ty.clone(), Role::State));
        }
        builder.apply_all(
            &format!("{}/{}", tensor.name, optimizer.name()),
            optimizer.update(accumulate),
            &operands,
        )?;
    }
    Ok(())
}
