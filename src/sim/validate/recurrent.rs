//! Programs of recurrent layers.

use super::config::{Config, Problem};
use super::passes::Passes;
use super::products::options;
use super::tensors::{elements, machine};
use crate::sim::graph::DType;
use crate::sim::lower::alone::{Operand, Program};
use crate::sim::lower::recurrent::{Cell, Layer, Lowered};
use crate::sim::lower::work::Place;
use crate::sim::planner::{Pass, PlanCache};
use crate::sim::targets::Chip;
use crate::units::TileRuns;

/// An LSTM layer.
pub fn lstm(config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    program(Cell::Lstm, config, chip)
}

/// A GRU layer.
pub fn gru(config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    program(Cell::Gru, config, chip)
}

/// The passes that are run. The order of the cells only names the parts of the weights.
fn program(cell: Cell, config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    let machine = machine(config, chip)?;
    let passes = Passes::of(config, Passes::INFERENCE)?;
    let training = passes.goes_back();
    let layer = Layer {
        cell,
        batch: config.number("batch-size", 1)?,
        steps: config.required("sequence-size")?,
        input: config.required("input-size")?,
        output: config.required("output-size")?,
        dtype: config.dtype("data-type", DType::Half)?,
    };
    if [layer.batch, layer.steps, layer.input, layer.output].contains(&0) {
        return Err(Problem::Refused("a layer without elements".to_string()));
    }
    elements(&[layer.steps, layer.batch, layer.input])?;
    elements(&[layer.steps, layer.batch, layer.output])?;
    let options = options(config, Pass::FcInferenceForward)?;
    let lowered = Lowered::new(&machine, layer, training, options, &PlanCache::new())
        .map_err(Problem::refused)?;
    let always = |bytes: TileRuns<u64>| Operand::always(bytes, Place::Any);
    let mut tensors = vec![lowered.weights(), lowered.inputs(), lowered.outputs()]
        .into_iter()
        .map(always)
        .collect::<Vec<_>>();
    // Backward passes alone need what the forward pass kept: the tools run it before.
    let mut works = vec![lowered.forward()];
    if training {
        let forward = works[0].phases().len() as u32;
        works.push(lowered.backward());
        let backward = works[1].phases().len() as u32;
        let mut update = 0;
        if passes.update {
            works.push(lowered.weight_update());
            update = works[2].phases().len() as u32;
        }
        // Gradients of outputs come from the host, gradients of inputs go there.
        tensors.push(always(lowered.outputs()));
        tensors.push(always(lowered.inputs()));
        let span = |bytes, live| Operand { bytes, place: Place::Any, live: Some(live) };
        tensors.push(span(lowered.kept(), 0..forward + backward));
        tensors.push(span(lowered.unit_gradients(), forward..forward + backward + update));
    }
    Ok(Program { works, tensors, ..Program::new(&machine) })
}
