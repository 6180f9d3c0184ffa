//! Programs of matrix products, fully connected layers and convolutions.

use super::config::{Config, Problem};
use super::node::lowered;
use super::passes::Passes;
use super::tensors::machine;
use crate::sim::graph::{DType, TensorType};
use crate::sim::lower::alone::{Operand, Program};
use crate::sim::lower::conv::{self, OperandLayout, Source, planned_layouts};
use crate::sim::lower::elementwise;
use crate::sim::lower::layout::Layout;
use crate::sim::lower::products::{activations, result_place};
use crate::sim::lower::reduce::Operation;
use crate::sim::lower::work::{Phase, Place, Work, WorkItem};
use crate::sim::ops::{BiasAdd, Reduce};
use crate::sim::planner::{
    ConvParams, FieldDim, Machine, OperandTransform, OutputTransform, Pass, Plan, PlanError,
    PlanOptions, TrainingPlans, plan, plan_convolution, plan_fully_connected,
};
use crate::sim::targets::Chip;
use crate::units::{TileRange, TileRuns};

/// Types and bounds that a plan obeys.
pub fn options(config: &Config, pass: Pass) -> Result<PlanOptions, Problem> {
    let partials = config.dtype("partials-type", DType::Float)?;
    let share = config.real("available-memory-proportion", 0.6)?;
    if !(0.0..=1.0).contains(&share) {
        let problem = format!("available-memory-proportion: {share} is no share of memory");
        return Err(Problem::Broken(problem));
    }
    Ok(PlanOptions { available_memory_proportion: share, partials, pass })
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

/// `C = beta C + alpha A x B`, all operands placed as the plan wants them.
pub fn gemm(config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    let machine = machine(config, chip)?;
    let dtype = config.dtype("data-type", DType::Half)?;
    let [m, k, n] = [config.required("m")?, config.required("k")?, config.required("n")?];
    let params = ConvParams::matmul(dtype, 1, m, k, n);
    let plan = plan(&machine, &params, &options(config, Pass::MatMul)?).map_err(refused)?;
    let layouts = planned_layouts(&machine, &plan);
    let sum = evenly(&machine, params.output_elements() * dtype.bytes());
    let product = conv::forward(&machine, &plan, Source::Planned, Source::Planned);
    // Any factor of the product is part of the scaled add.
    config.real("alpha", 1.0)?;
    let add = if config.real("beta", 1.0)? == 1.0 {
        added(&machine, dtype, &sum)
    } else {
        let elements = sum.map(|bytes| bytes / dtype.bytes());
        let phase = elementwise::axpby("aXPlusbY", dtype, &elements);
        Work { items: vec![WorkItem::Phase(phase)], temporaries: Vec::new() }
    };
    Ok(Program {
        works: vec![product, add],
        tensors: vec![
            Operand::always(layouts.input.bytes, Place::Any),
            Operand::always(layouts.weights.bytes, Place::Any),
            Operand::always(sum, Place::Any),
        ],
        code: true,
        ..Program::new(&machine)
    })
}

/// A fully connected layer.
pub fn fully_connected(config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    let machine = machine(config, chip)?;
    let dtype = config.dtype("data-type", DType::Half)?;
    let groups = config.number("num-groups", 1)?;
    let batch = config.number("batch-size", 1)?;
    let [inputs, outputs] = [config.required("input-size")?, config.required("output-size")?];
    let params = ConvParams::matmul(dtype, groups, batch, inputs, outputs);
    let passes = Passes::of(config, Passes::ALL)?;
    let plans = if passes.inference {
        let options = options(config, Pass::FcInferenceForward)?;
        Plans::Inference(Box::new(plan(&machine, &params, &options).map_err(refused)?))
    } else {
        let options = options(config, Pass::FcTrainingForward)?;
        Plans::Training(Box::new(
            plan_fully_connected(&machine, &params, &options).map_err(refused)?,
        ))
    };
    let layer = Layer { machine: &machine, plans, passes, bias: config.flag("bias", false)? };
    Ok(Program { code: false, ..layer.program()? })
}

/// A convolution.
pub fn convolution(config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    let machine = machine(config, chip)?;
    let dtype = config.dtype("data-type", DType::Half)?;
    let input_type = config.dtype("input-type", dtype)?;
    let params = ConvParams {
        input_type,
        output_type: config.dtype("output-type", dtype)?,
        batch: config.number("batch-size", 1)?,
        conv_groups: config.number("conv-groups", 1)?,
        in_channels: config.required("input-channels")?,
        out_channels: config.required("output-channels")?,
        dims: field_dims(config)?,
    };
    let passes = Passes::of(config, Passes::ALL)?;
    let plans = if passes.inference {
        let options = options(config, Pass::InferenceForward)?;
        Plans::Inference(Box::new(plan(&machine, &params, &options).map_err(refused)?))
    } else {
        let options = options(config, Pass::TrainingForward)?;
        Plans::Training(Box::new(plan_convolution(&machine, &params, &options).map_err(refused)?))
    };
    let layer = Layer { machine: &machine, plans, passes, bias: config.flag("bias", false)? };
    Ok(Program { code: true, ..layer.program()? })
}

/// Sizes and transforms along each dimension of the field.
fn field_dims(config: &Config) -> Result<Vec<FieldDim>, Problem> {
    let field = config.field("field")?;
    let count = field.len();
    let along = |key: &str, default: u64| config.along(key, default, count);
    let kernel = along("kernel-size", 1)?;
    let [input_dilation, kernel_dilation] =
        [along("in-dilation", 1)?, along("kernel-dilation", 1)?];
    let stride = along("stride", 1)?;
    let flips = [along("flip-input", 0)?, along("flip-kernel", 0)?];
    let ends = |key: &str| config.ends(key, count);
    let [padding, truncation] = [ends("padding")?, ends("truncation")?];
    let [kernel_padding, kernel_truncation] = [ends("kernel-padding")?, ends("kernel-truncation")?];
    let [output_padding, output_truncation] = [ends("output-padding")?, ends("output-truncation")?];
    let operand = |d: usize, dilation: &[u64], ends: [&[Vec<u64>; 2]; 2], flip: &[u64]| {
        let [padding, truncation] = ends;
        OperandTransform {
            truncation_lower: truncation[0][d],
            truncation_upper: truncation[1][d],
            dilation: dilation[d],
            padding_lower: padding[0][d],
            padding_upper: padding[1][d],
            flip: flip[d] != 0,
        }
    };
    let dim = |d: usize| FieldDim {
        input: field[d],
        kernel: kernel[d],
        input_transform: operand(d, &input_dilation, [&padding, &truncation], &flips[0]),
        kernel_transform: operand(
            d,
            &kernel_dilation,
            [&kernel_padding, &kernel_truncation],
            &flips[1],
        ),
        output_transform: OutputTransform {
            truncation_lower: output_truncation[0][d],
            truncation_upper: output_truncation[1][d],
            stride: stride[d],
            padding_lower: output_padding[0][d],
            padding_upper: output_padding[1][d],
        },
    };
    Ok((0..count).map(dim).collect())
}

/// Plans of a layer.
enum Plans {
    /// Of one that only runs forwards.
    Inference(Box<Plan>),
    /// Of all passes, whichever are run: weights and input are placed for training.
    Training(Box<TrainingPlans>),
}

/// A layer with weights, as the tools run it.
struct Layer<'a> {
    machine: &'a Machine,
    plans: Plans,
    passes: Passes,
    bias: bool,
}

impl Layer<'_> {
    /// The passes that are run. The tools keep activations and their gradients on both sides, so
    /// that the host can read and write them between passes.
    fn program(&self) -> Result<Program, Problem> {
        let Self { machine, passes, .. } = *self;
        let plan = match &self.plans {
            Plans::Inference(plan) => plan,
            Plans::Training(plans) => &plans.forward,
        };
        let layouts = planned_layouts(machine, plan);
        let mut program = Program::new(machine);
        for bytes in [layouts.weights.bytes.clone(), layouts.input.bytes] {
            program.tensors.push(Operand::always(bytes, Place::Any));
        }
        let result = plan.params.output_elements() * plan.params.output_type.bytes();
        if passes.forward {
            program.works.push(conv::forward(machine, plan, Source::Planned, Source::Planned));
            program.tensors.extend(self.results(plan, layouts.output.bytes.clone()));
        } else {
            program.tensors.push(Operand::always(evenly(machine, result), Place::Any));
        }
        if self.bias {
            self.add_bias(&mut program, plan, &layouts.output)?;
        }
        if let Plans::Training(plans) = &self.plans
            && passes.goes_back()
        {
            self.go_back(&mut program, plans, layouts.weights.bytes)?;
        }
        Ok(program)
    }

    /// The gradients.
    fn go_back(
        &self,
        program: &mut Program,
        plans: &TrainingPlans,
        weights: TileRuns<u64>,
    ) -> Result<(), Problem> {
        let machine = self.machine;
        let backward = planned_layouts(machine, &plans.backward);
        program.tensors.push(Operand::always(backward.input.bytes.clone(), Place::Any));
        if self.passes.backward {
            program.works.push(conv::backward(machine, plans, Source::Planned));
            program.tensors.extend(self.results(&plans.backward, backward.output.bytes));
        }
        if !self.passes.update {
            return Ok(());
        }
        let dtype = plans.update.params.output_type;
        let phases =
            |program: &Program| program.works.iter().map(|work| work.phases().len()).sum::<usize>();
        let update = conv::weight_update(machine, plans);
        let made = update.phases().iter().rposition(makes_result).unwrap_or(0);
        let start = phases(program) + made;
        program.works.extend([update, added(machine, dtype, &weights)]);
        program.tensors.push(Operand {
            bytes: planned_layouts(machine, &plans.update).output.bytes,
            place: result_place(&plans.update),
            live: Some(start as u32..phases(program) as u32),
        });
        if self.bias {
            self.update_bias(program, &plans.forward, &backward.input)?;
        }
        Ok(())
    }

    /// The result of a pass, and zeros that a stride leaves between: they are no result of the
    /// plan, but the tool keeps them.
    fn results(&self, plan: &Plan, result: TileRuns<u64>) -> [Operand; 2] {
        let whole = plan.params.output_elements() * plan.params.output_type.bytes();
        let zeros = whole.saturating_sub(result.total());
        [
            Operand::always(result, result_place(plan)),
            Operand::always(evenly(self.machine, zeros), Place::Any),
        ]
    }

    /// Results as a tensor, channels second, and the bias of all channels.
    fn result_types(&self, plan: &Plan) -> [TensorType; 2] {
        let params = &plan.params;
        let channels = params.out_channels * params.conv_groups;
        let results = [params.batch, channels, params.output_field()];
        [results.to_vec(), vec![channels]].map(|shape| TensorType::new(shape, params.output_type))
    }

    fn linear(&self, ty: &TensorType) -> Layout {
        Layout::linear(ty.elements(), ty.dtype.bytes(), self.machine.tiles as u32)
    }

    /// Adds the bias to the result, if there is one.
    fn add_bias(
        &self,
        program: &mut Program,
        plan: &Plan,
        result: &OperandLayout,
    ) -> Result<(), Problem> {
        let [results, bias] = self.result_types(plan);
        let lies = self.linear(&bias);
        let bytes = lies.bytes(bias.dtype.bytes());
        program.tensors.push(Operand::always(bytes, Place::Any));
        if self.passes.forward {
            let layout = activations(result, &results);
            let operands = vec![(results, layout), (bias, lies)];
            program.works.push(lowered(self.machine, BiasAdd { axis: 1 }, operands)?.0);
        }
        Ok(())
    }

    /// Sums the gradient of the result up and adds it to the bias.
    fn update_bias(
        &self,
        program: &mut Program,
        plan: &Plan,
        gradient: &OperandLayout,
    ) -> Result<(), Problem> {
        let [results, bias] = self.result_types(plan);
        let layout = activations(gradient, &results);
        let sum = Reduce { operation: Operation::Add, axes: vec![0, 2] };
        program.works.push(lowered(self.machine, sum, vec![(results, layout)])?.0);
        let bytes = self.linear(&bias).bytes(bias.dtype.bytes());
        program.works.push(added(self.machine, bias.dtype, &bytes));
        Ok(())
    }
}

/// Whether a phase makes the result of a pass, as far as no later one does.
fn makes_result((phase, _): &(&Phase, u64)) -> bool {
    let last = phase.name.rsplit('/').next().unwrap_or_default();
    last == "Convolve" || last == "Cast" || last.starts_with("Reduce")
}
