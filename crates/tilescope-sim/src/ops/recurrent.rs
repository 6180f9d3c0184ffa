//! Long short-term memory and gated recurrent units: one layer over a sequence.
//!
//! Operands: a sequence `[steps, batch, input]`, weights `[input + output, units * output]` and a
//! bias `[units, output]`. Results: the sequence of outputs and, in training, what the backward pass
//! needs.

use super::{Operator, expect_operands, expect_same};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::layout::{Layout, Order};
use crate::lower::recurrent::{Cell, Layer, Lowered, STATE_GRAIN};
use crate::lower::work::{Place, Temporary, Work};
use crate::lower::{Lives, LowerError, Lowering};
use crate::planner::{Machine, Pass, PlanOptions};
use tilescope_report::Category;
use tilescope_report::units::TileRuns;

/// A layer of some cell.
#[derive(Clone, Copy, Debug)]
pub struct Recurrent {
    /// What each step computes.
    pub cell: Cell,
    /// Size of the output of a step.
    pub output: u64,
    /// Whether the backward pass will need what steps compute.
    pub keep: bool,
}

impl Recurrent {
    /// Long short-term memory with outputs of this size; `training` keeps what the gradient needs.
    pub fn lstm(output: u64, training: bool) -> Self {
        Self { cell: Cell::Lstm, output, keep: training }
    }

    /// Gated recurrent units, in the same way.
    pub fn gru(output: u64, training: bool) -> Self {
        Self { cell: Cell::Gru, output, keep: training }
    }

    fn layer(&self, x: &TensorType) -> Result<Layer, String> {
        let [steps, batch, input] = x.shape[..] else {
            return Err(format!("[steps, batch, input] is expected, not {x}"));
        };
        Ok(Layer { cell: self.cell, batch, steps, input, output: self.output, dtype: x.dtype })
    }

    fn check(&self, inputs: &[TensorType]) -> Result<Layer, String> {
        expect_operands(inputs, 3)?;
        let layer = self.layer(&inputs[0])?;
        let units = self.cell.units();
        let weights =
            TensorType::new([layer.input + self.output, units * self.output], layer.dtype);
        expect_same(&inputs[1], &weights)?;
        expect_same(&inputs[2], &TensorType::new([units, self.output], layer.dtype))?;
        Ok(layer)
    }

    /// The gradient of its input and, if they are trained, of weights and bias: of the gradient of
    /// the outputs, input, weights, bias, outputs, and what the forward pass kept.
    pub(crate) fn gradient(self, trained: bool) -> impl Operator {
        RecurrentGradient { layer: self, trained }
    }

    fn lowered<'a>(
        &self,
        lowering: &Lowering,
        machine: &'a Machine,
        node: &Node,
        x: TensorId,
    ) -> Result<Lowered<'a>, LowerError> {
        let explain = |problem| LowerError { operation: node.name.clone(), problem };
        let layer = self.layer(lowering.ty(x)).map_err(explain)?;
        let options = PlanOptions { pass: Pass::FcInferenceForward, library: *lowering.planning };
        Lowered::new(machine, layer, self.keep, options, lowering.plans)
            .map_err(|error| explain(error.to_string()))
    }
}

impl Operator for Recurrent {
    fn kind(&self) -> &'static str {
        self.cell.name()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let layer = self.check(inputs)?;
        let Layer { steps, batch, dtype, .. } = layer;
        let mut results = vec![TensorType::new([steps, batch, self.output], dtype)];
        if self.keep {
            let kept = self.cell.kept();
            results.push(TensorType::new([steps, kept, batch, self.output], dtype));
        }
        Ok(results)
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        self.check(inputs).map_or(0, |layer| {
            let inner = layer.input + layer.output;
            2 * layer.steps * layer.batch * inner * self.cell.units() * layer.output
        })
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        if !self.keep {
            let problem = "the layer does not keep what its gradient needs".to_string();
            return Err(GraphError { node: backward.node.name.clone(), problem });
        }
        let (inputs, outputs) = (&backward.node.inputs, &backward.node.outputs);
        let operands = [gradient, inputs[0], inputs[1], inputs[2], outputs[0], outputs[1]];
        let operator = self.gradient(backward.wants(1));
        let made = backward.apply_all("grad", operator, &operands)?;
        Ok(made.into_iter().map(Some).chain([None, None]).take(3).collect())
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let machine = lowering.machine;
        let [x, weights, bias] = [node.inputs[0], node.inputs[1], node.inputs[2]];
        let lowered = self.lowered(lowering, &machine, node, x)?;
        let bytes = lowering.ty(x).dtype.bytes();
        let name = self.cell.name();
        let mut work = lowering.place_or_bring(x, sequence(&lowered.inputs(), bytes, 2), name);
        let stored = Layout {
            elements: lowered.weights().map(|held| held / bytes),
            order: Order::Grouped { axis: 0, group: lowered.weight_group() },
        };
        work.append(lowering.place_or_bring(weights, stored, name));
        lowering.layout_or_linear(bias);
        work.append(lowered.forward());
        lowering.lay_out(node.outputs[0], sequence(&lowered.outputs(), bytes, 2));
        if let Some(kept) = node.outputs.get(1) {
            lowering.lay_out(*kept, sequence(&lowered.kept(), bytes, 3));
        }
        Ok(work)
    }
}

/// How a sequence lies whose tiles hold so many bytes of all steps; features are innermost.
fn sequence(held: &TileRuns<u64>, element_bytes: u64, axis: usize) -> Layout {
    let elements = held.map(|bytes| bytes / element_bytes);
    Layout { elements, order: Order::Grouped { axis, group: STATE_GRAIN } }
}

/// See [`Recurrent::gradient`].
#[derive(Clone, Copy, Debug)]
struct RecurrentGradient {
    layer: Recurrent,
    trained: bool,
}

impl Operator for RecurrentGradient {
    fn kind(&self) -> &'static str {
        match self.layer.cell {
            Cell::Lstm => "lstm_grad",
            Cell::Gru => "gru_grad",
        }
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 6)?;
        expect_same(&inputs[0], &inputs[4])?;
        self.layer.check(&inputs[1..4])?;
        Ok(inputs[1..if self.trained { 4 } else { 2 }].to_vec())
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        2 * self.layer.flops(&inputs[1..4], &[])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let machine = lowering.machine;
        let [gradient, x, weights, bias] =
            [node.inputs[0], node.inputs[1], node.inputs[2], node.inputs[3]];
        let lowered = self.layer.lowered(lowering, &machine, node, x)?;
        let bytes = lowering.ty(x).dtype.bytes();
        let wanted = sequence(&lowered.outputs(), bytes, 2);
        let mut work = lowering.place_or_bring(gradient, wanted, self.layer.cell.name());
        let start = work.phases().len();
        work.append(lowered.backward());
        let update = work.phases().len();
        let mut lives = Lives { outputs_from: vec![start], ..Lives::default() };
        lowering.lay_out(node.outputs[0], sequence(&lowered.inputs(), bytes, 2));
        if let [_, of_weights, of_bias] = node.outputs[..] {
            work.append(lowered.weight_update());
            for (tensor, like) in [(of_weights, weights), (of_bias, bias)] {
                let layout = lowering.layout_or_linear(like);
                lowering.lay_out(tensor, layout);
                lives.outputs_from.push(update);
            }
        }
        work.temporaries.push(Temporary {
            name: "bwdIntermediates".to_string(),
            category: Category::Variable,
            bytes: lowered.unit_gradients(),
            place: Place::Any,
            live: start..work.phases().len(),
        });
        if self.layer.cell == Cell::Lstm {
            // The weight update of a GRU reads what its forward pass kept, that of an LSTM does not.
            lives.inputs_until = vec![None, None, None, None, None, Some(update)];
        }
        lowering.note_lives(lives);
        Ok(work)
    }
}
