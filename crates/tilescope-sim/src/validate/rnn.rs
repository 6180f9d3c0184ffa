//! Recurrent layers.

use super::case::OpBenchmarkCase;
use super::config::{RowConfig, RowProblem};
use super::passes::LayerPasses;
use crate::operators::RnnOp;
use crate::popnn::rnn::RnnCellType;
use crate::shape::{DType, TensorRole};
use crate::targets::Chip;

pub(crate) fn lstm(config: &RowConfig, chip: &'static Chip) -> Result<OpBenchmarkCase, RowProblem> {
    layer(RnnCellType::Lstm, config, chip)
}

pub(crate) fn gru(config: &RowConfig, chip: &'static Chip) -> Result<OpBenchmarkCase, RowProblem> {
    layer(RnnCellType::Gru, config, chip)
}

/// Builds the passes that are run. The order of the cells only names the parts of the weights.
/// Backward passes need the values that the forward pass kept, so the tools run it first.
fn layer(
    cell: RnnCellType,
    config: &RowConfig,
    chip: &'static Chip,
) -> Result<OpBenchmarkCase, RowProblem> {
    let passes = LayerPasses::from_config(config, LayerPasses::INFERENCE)?;
    let training = passes.needs_gradient();
    let mut case = OpBenchmarkCase::new(config, chip, training)?;
    let dtype = config.dtype("data-type", DType::Half)?;
    let batch = config.number("batch-size", 1)?;
    let [steps, input, output] =
        ["sequence-size", "input-size", "output-size"].map(|key| config.required(key));
    let steps = steps?;
    let input = input?;
    let output = output?;
    let units = cell.units();
    let x = case.tensor("input", TensorRole::Input, &[steps, batch, input], dtype)?;
    let w =
        case.tensor("weights", TensorRole::Parameter, &[input + output, units * output], dtype)?;
    let bias = case.tensor("bias", TensorRole::Parameter, &[units, output], dtype)?;
    let layer = RnnOp { cell, output, keeps_intermediates: training };
    let made = case.apply_all(true, "fwd", layer, &[x, w, bias])?;
    case.read(made[0]);
    if let [y, kept] = made[..] {
        let gradient = case.like("gradient", TensorRole::Input, y);
        let operands = [gradient, x, w, bias, y, kept];
        let gradients = case.apply_all(true, "bwd", layer.gradient(passes.update), &operands)?;
        case.read(gradients[0]);
    }
    Ok(case)
}
