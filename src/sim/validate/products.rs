//! Programs of matrix products, fully connected layers and convolutions.

use super::config::{Config, Problem};
use super::tensors::{machine, no_bias};
use crate::sim::graph::DType;
use crate::sim::lower::alone::{Operand, Program};
use crate::sim::lower::conv::{self, Source, planned_layouts};
use crate::sim::lower::products::result_place;
use crate::sim::lower::work::{Phase, Place, Work};
use crate::sim::planner::{
    ConvParams, FieldDim, Machine, Pass, PlanError, PlanOptions, TrainingPlans, plan,
    plan_convolution, plan_fully_connected,
};
use crate::sim::targets::Chip;
use crate::units::{TileRange, TileRuns};

fn options(config: &Config, pass: Pass) -> Result<PlanOptions, Problem> {
    let partials = config.dtype("partials-type", DType::Float)?;
    Ok(PlanOptions { partials, ..PlanOptions::new(pass) })
}

fn refused(error: PlanError) -> Problem {
    Problem::refused(error)
}

/// Bytes of a tensor without a layout of its own, spread over all tiles.
fn evenly(machine: &Machine, bytes: u64) -> TileRuns<u64> {
    TileRuns::uniform(TileRange::new(0, machine.tiles as u32), bytes.div_ceil(machine.tiles))
}

/// The scaled add of a result to what lies as `bytes` do.
fn added(machine: &Machine, dtype: DType, bytes: &TileRuns<u64>) -> Work {
    let phase = conv::scaled_add(machine, "UpdateWeights".to_string(), dtype, bytes);
    Work { items: vec![phase], temporaries: Vec::new() }
}

/// `C += A x B`, all operands placed as the plan wants them.
pub fn gemm(config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    let machine = machine(config, chip)?;
    let dtype = config.dtype("data-type", DType::Half)?;
    let [m, k, n] = [config.required("m")?, config.required("k")?, config.required("n")?];
    let params = ConvParams::matmul(dtype, 1, m, k, n);
    let plan = plan(&machine, &params, &options(config, Pass::MatMul)?).map_err(refused)?;
    let layouts = planned_layouts(&machine, &plan);
    let sum = evenly(&machine, params.output_elements() * dtype.bytes());
    let product = conv::forward(&machine, &plan, Source::Planned, Source::Planned);
    Ok(Program {
        works: vec![product, added(&machine, dtype, &sum)],
        tensors: vec![
            Operand::always(layouts.input.bytes, Place::Any),
            Operand::always(layouts.weights.bytes, Place::Any),
            Operand::always(sum, Place::Any),
        ],
        code: true,
        ..Program::new(&machine)
    })
}

/// Forward, backward and weight update of a fully connected layer.
pub fn fully_connected(config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    no_bias(config)?;
    let machine = machine(config, chip)?;
    let dtype = config.dtype("data-type", DType::Half)?;
    let groups = config.number("num-groups", 1)?;
    let batch = config.number("batch-size", 1)?;
    let [inputs, outputs] = [config.required("input-size")?, config.required("output-size")?];
    let params = ConvParams::matmul(dtype, groups, batch, inputs, outputs);
    let options = options(config, Pass::FcTrainingForward)?;
    let plans = plan_fully_connected(&machine, &params, &options).map_err(refused)?;
    Ok(Program { code: false, ..training(&machine, &plans) })
}

/// Forward, backward and weight update of a convolution.
pub fn convolution(config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    no_bias(config)?;
    let machine = machine(config, chip)?;
    let dtype = config.dtype("data-type", DType::Half)?;
    config.present("field")?;
    let [field, kernel] = [config.pair("field", 1)?, config.pair("kernel-size", 1)?];
    let [stride, dilation] = [config.pair("stride", 1)?, config.pair("kernel-dilation", 1)?];
    let [lower, upper] = padding(config)?;
    let dim = |d: usize| {
        FieldDim::new(field[d], kernel[d])
            .padded(lower[d], upper[d])
            .strided(stride[d])
            .kernel_dilated(dilation[d])
    };
    let params = ConvParams {
        input_type: dtype,
        output_type: dtype,
        batch: config.number("batch-size", 1)?,
        conv_groups: config.number("conv-groups", 1)?,
        in_channels: config.required("input-channels")?,
        out_channels: config.required("output-channels")?,
        dims: vec![dim(0), dim(1)],
    };
    let options = options(config, Pass::TrainingForward)?;
    let plans = plan_convolution(&machine, &params, &options).map_err(refused)?;
    Ok(Program { code: true, ..training(&machine, &plans) })
}

/// Padding in front of and behind the field.
pub fn padding(config: &Config) -> Result<[[u64; 2]; 2], Problem> {
    if config.text("padding").is_some() {
        return Ok([config.pair("padding", 0)?; 2]);
    }
    Ok([config.pair("padding-lower", 0)?, config.pair("padding-upper", 0)?])
}

/// The three passes of a layer. The tools keep activations and their gradients on both sides, so
/// that the host can read and write them between passes.
fn training(machine: &Machine, plans: &TrainingPlans) -> Program {
    let forward = planned_layouts(machine, &plans.forward);
    let backward = planned_layouts(machine, &plans.backward);
    let dtype = plans.forward.params.output_type;
    let weights = forward.weights.bytes;
    let works = vec![
        conv::forward(machine, &plans.forward, Source::Planned, Source::Planned),
        conv::backward(machine, plans, Source::Planned),
        conv::weight_update(machine, plans),
        added(machine, dtype, &weights),
    ];
    let before = works[0].phases().len() + works[1].phases().len();
    let made = works[2].phases().iter().rposition(makes_result).unwrap_or(0);
    let end = works.iter().map(|work| work.phases().len()).sum::<usize>();
    let mut tensors: Vec<Operand> = [weights, forward.input.bytes, backward.input.bytes]
        .into_iter()
        .map(|bytes| Operand::always(bytes, Place::Any))
        .collect();
    for (plan, result) in [(&plans.forward, forward.output), (&plans.backward, backward.output)] {
        // Zeros that a stride leaves between results are no result of the plan, but the tool
        // keeps them.
        let whole = plan.params.output_elements() * dtype.bytes();
        let zeros = whole.saturating_sub(result.bytes.total());
        tensors.push(Operand::always(result.bytes, result_place(plan)));
        tensors.push(Operand::always(evenly(machine, zeros), Place::Any));
    }
    tensors.push(Operand {
        bytes: planned_layouts(machine, &plans.update).output.bytes,
        place: result_place(&plans.update),
        live: Some((before + made) as u32..end as u32),
    });
    Program { works, tensors, ..Program::new(machine) }
}

/// Whether a phase makes the result of a pass, as far as no later one does.
fn makes_result((phase, _): &(&Phase, u64)) -> bool {
    let last = phase.name.rsplit('/').next().unwrap_or_default();
    last == "Convolve" || last == "Cast" || last.starts_with("Reduce")
}
