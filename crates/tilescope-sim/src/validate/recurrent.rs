//! Recurrent layers.

use super::case::Case;
use super::config::{Config, Problem};
use super::passes::Passes;
use crate::graph::{DType, Role};
use crate::lower::recurrent::Cell;
use crate::ops::Recurrent;
use crate::targets::Chip;

pub(crate) fn lstm(config: &Config, chip: &'static Chip) -> Result<Case, Problem> {
    layer(Cell::Lstm, config, chip)
}

pub(crate) fn gru(config: &Config, chip: &'static Chip) -> Result<Case, Problem> {
    layer(Cell::Gru, config, chip)
}

/// The passes that are run. The order of the cells only names the parts of the weights. Backward
/// passes alone need what the forward pass kept: the tools run it before.
fn layer(cell: Cell, config: &Config, chip: &'static Chip) -> Result<Case, Problem> {
    let passes = Passes::of(config, Passes::INFERENCE)?;
    let training = passes.goes_back();
    let mut case = Case::new(config, chip, training)?;
    let dtype = config.dtype("data-type", DType::Half)?;
    let batch = config.number("batch-size", 1)?;
    let [steps, input, output] =
        ["sequence-size", "input-size", "output-size"].map(|key| config.required(key));
    let (steps, input, output) = (steps?, input?, output?);
    let units = cell.units();
    let x = case.tensor("input", Role::Input, &[steps, batch, input], dtype)?;
    let w = case.tensor("weights", Role::Parameter, &[input + output, units * output], dtype)?;
    let bias = case.tensor("bias", Role::Parameter, &[units, output], dtype)?;
    let layer = Recurrent { cell, output, keep: training };
    let made = case.apply_all(true, "fwd", layer, &[x, w, bias])?;
    case.read(made[0]);
    if let [y, kept] = made[..] {
        let gradient = case.like("gradient", Role::Input, y);
        let operands = [gradient, x, w, bias, y, kept];
        let gradients = case.apply_all(true, "bwd", layer.gradient(passes.update), &operands)?;
        case.read(gradients[0]);
    }
    Ok(case)
}
