//! Long short-term memory and gated recurrent units: one layer over a sequence.
//!
//! Operands: a sequence `[steps, batch, input]`, weights `[input + output, units * output]` and a
//! bias `[units, output]`. Results: the sequence of outputs and, in training, the intermediate
//! values that the backward pass needs.

use super::{
    GradientBuilder, GradientResult, GraphError, GraphProblem, LoweringContext, LoweringError,
    NodeOperands, Operator, ShapeError, expect_operands, expect_same,
};
use crate::poplar::OperandLiveness;
use crate::poplar::work::TemporaryVariable;
use crate::poplin::planner::{ConvOptions, ConvPass};
use crate::popnn::rnn::{RnnCellType, RnnLowering, RnnParams, STATE_GRAIN};
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::{TensorId, TensorInfo};
use crate::targets::IpuTarget;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Elements, TileRuns};

/// A layer of a type of cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RnnOp {
    /// The cell that each step computes.
    pub cell: RnnCellType,
    /// Size of the output of a step.
    pub output: u64,
    /// True if the backward pass needs the intermediate values of the steps.
    pub keeps_intermediates: bool,
}

impl RnnOp {
    /// Makes a long short-term memory with outputs of this size. `training` keeps the values that
    /// the gradient needs.
    pub fn lstm(output: u64, training: bool) -> Self {
        Self { cell: RnnCellType::Lstm, output, keeps_intermediates: training }
    }

    /// Makes gated recurrent units, with the same parameters as [`Self::lstm`].
    pub fn gru(output: u64, training: bool) -> Self {
        Self { cell: RnnCellType::Gru, output, keeps_intermediates: training }
    }

    fn layer(&self, x: &TensorInfo) -> Result<RnnParams, ShapeError> {
        let [steps, batch, input] = x.shape[..] else {
            return Err(ShapeError::Operand {
                expected: "[steps, batch, input]",
                found: x.clone(),
            });
        };
        Ok(RnnParams { cell: self.cell, batch, steps, input, output: self.output, dtype: x.dtype })
    }

    fn check(&self, inputs: &[TensorInfo]) -> Result<RnnParams, ShapeError> {
        expect_operands(inputs, 3)?;
        let layer = self.layer(&inputs[0])?;
        let units = self.cell.units();
        let weights =
            TensorInfo::new([layer.input + self.output, units * self.output], layer.dtype);
        expect_same(&inputs[1], &weights)?;
        expect_same(&inputs[2], &TensorInfo::new([units, self.output], layer.dtype))?;
        Ok(layer)
    }

    /// The operator of the gradient of its input and, if they are trained, of weights and bias.
    /// Operands: the gradient of the outputs, input, weights, bias, outputs, and the kept
    /// intermediate values.
    pub(crate) fn gradient(self, trained: bool) -> impl Operator {
        RnnGradOp { layer: self, trained }
    }

    fn lowered<'a>(
        &self,
        lowering: &LoweringContext,
        machine: &'a IpuTarget,
        node: &NodeOperands,
        x: TensorId,
    ) -> Result<RnnLowering<'a>, LoweringError> {
        let layer = self.layer(lowering.tensor_type(x)).map_err(|error| node.error(error))?;
        let options =
            ConvOptions { pass: ConvPass::FcInferenceForward, library: lowering.planning_of(node) };
        RnnLowering::new(machine, layer, self.keeps_intermediates, options, lowering.plans)
            .map_err(|error| node.error(error))
    }
}

impl Operator for RnnOp {
    fn kind(&self) -> &'static str {
        self.cell.name()
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        let layer = self.check(inputs)?;
        let RnnParams { steps, batch, dtype, .. } = layer;
        let mut results = vec![TensorInfo::new([steps, batch, self.output], dtype)];
        if self.keeps_intermediates {
            let kept = self.cell.kept();
            results.push(TensorInfo::new([steps, kept, batch, self.output], dtype));
        }
        Ok(results)
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        self.check(inputs).map_or(0, |layer| {
            let inner = layer.input + layer.output;
            2 * layer.steps * layer.batch * inner * self.cell.units() * layer.output
        })
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        if !self.keeps_intermediates {
            return Err(GraphError::new(backward.node.name, GraphProblem::NothingKept));
        }
        let inputs = &backward.node.inputs;
        let outputs = &backward.node.outputs;
        let operands = [gradient, inputs[0], inputs[1], inputs[2], outputs[0], outputs[1]];
        let operator = self.gradient(backward.needs_input_gradient(1));
        let made = backward.apply_all("grad", operator, &operands)?;
        Ok(made.into_iter().map(Some).chain([None, None]).take(3).collect())
    }

    fn create_operands(
        &self,
        lowering: &LoweringContext,
        node: &NodeOperands,
    ) -> Vec<Option<TensorLayout>> {
        let machine = lowering.machine;
        let [x, weights] = [node.inputs[0], node.inputs[1]];
        let Ok(layer) = self.lowered(lowering, &machine, node, x) else { return Vec::new() };
        operand_layouts(lowering, &layer, [x, weights]).map(Some).to_vec()
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<super::LoweredOperation, LoweringError> {
        let machine = lowering.machine;
        let [x, weights, bias] = [node.inputs[0], node.inputs[1], node.inputs[2]];
        let lowered = self.lowered(lowering, &machine, node, x)?;
        let name = self.cell.name();
        let [of_x, of_weights] = operand_layouts(lowering, &lowered, [x, weights]);
        let mut work = lowering.place_or_relayout(x, of_x, name);
        work.append(lowering.place_or_relayout(weights, of_weights, name));
        lowering.layout_or_linear(bias);
        work.append(lowered.forward());
        let outputs = sequence(&lowered.outputs(), lowering.tensor_type(node.outputs[0]));
        lowering.set_layout(node.outputs[0], outputs);
        if let Some(kept) = node.outputs.get(1) {
            lowering.set_layout(*kept, sequence(&lowered.kept(), lowering.tensor_type(*kept)));
        }
        Ok(work.into())
    }
}

/// The layouts of the sequence that a layer reads, and of its weights.
fn operand_layouts(
    lowering: &LoweringContext,
    layer: &RnnLowering,
    [x, weights]: [TensorId; 2],
) -> [TensorLayout; 2] {
    let [x, weights] = [x, weights].map(|tensor| lowering.tensor_type(tensor));
    let bytes = x.dtype.bytes();
    let stored = TensorLayout {
        elements: layer.weights().map(|held| Elements(*held / bytes)),
        order: ElementOrder::grouped(&weights.shape, 0, layer.weight_group()),
    };
    [sequence(&layer.inputs(), x), stored]
}

/// The layout of a sequence from the bytes of all steps on each tile. Features are innermost.
fn sequence(held: &TileRuns<Bytes>, ty: &TensorInfo) -> TensorLayout {
    let elements = held.map(|bytes| Elements(*bytes / ty.dtype.bytes()));
    let features = ty.shape.len() - 1;
    TensorLayout { elements, order: ElementOrder::grouped(&ty.shape, features, STATE_GRAIN) }
}

/// The operator of [`RnnOp::gradient`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RnnGradOp {
    layer: RnnOp,
    trained: bool,
}

impl Operator for RnnGradOp {
    fn kind(&self) -> &'static str {
        match self.layer.cell {
            RnnCellType::Lstm => "lstm_grad",
            RnnCellType::Gru => "gru_grad",
        }
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 6)?;
        expect_same(&inputs[0], &inputs[4])?;
        self.layer.check(&inputs[1..4])?;
        Ok(inputs[1..if self.trained { 4 } else { 2 }].to_vec())
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        2 * self.layer.flops(&inputs[1..4], &[])
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<super::LoweredOperation, LoweringError> {
        let machine = lowering.machine;
        let [gradient, x, weights, bias] =
            [node.inputs[0], node.inputs[1], node.inputs[2], node.inputs[3]];
        let lowered = self.layer.lowered(lowering, &machine, node, x)?;
        let wanted = sequence(&lowered.outputs(), lowering.tensor_type(gradient));
        let mut work = lowering.place_or_relayout(gradient, wanted, self.layer.cell.name());
        let start = work.phases().len();
        work.append(lowered.backward());
        let update = work.phases().len();
        let mut lives = OperandLiveness { outputs_from: vec![start], ..OperandLiveness::default() };
        let inputs = sequence(&lowered.inputs(), lowering.tensor_type(x));
        lowering.set_layout(node.outputs[0], inputs);
        if let [_, of_weights, of_bias] = node.outputs[..] {
            work.append(lowered.weight_update());
            for (tensor, like) in [(of_weights, weights), (of_bias, bias)] {
                let layout = lowering.layout_or_linear(like);
                lowering.set_layout(tensor, layout);
                lives.outputs_from.push(update);
            }
        }
        work.temporaries.push(TemporaryVariable::anywhere(
            "bwdIntermediates".to_string(),
            MemoryCategory::Variable,
            lowered.unit_gradients(),
            start..work.phases().len(),
        ));
        if self.layer.cell == RnnCellType::Lstm {
            // The weight update of a GRU reads the values that its forward pass kept. That of an
            // LSTM does not.
            lives.inputs_until = vec![None, None, None, None, None, Some(update)];
        }
        Ok(super::LoweredOperation { liveness: lives, ..work.into() })
    }
}
