//! Programs of poolings, reductions and embeddings.

use super::config::{Config, Problem};
use super::passes::Passes;
use crate::sim::graph::DType;
use crate::sim::lower::alone::{Operand, Program};
use crate::sim::lower::embedding::{self, Embedding, Lowered};
use crate::sim::lower::layout::{Layout, Order};
use crate::sim::lower::pool::{Axis, Kind, Pass, Pooled, Pooling};
use crate::sim::lower::reduce::{self, Operation, Reduction, ResultUse};
use crate::sim::lower::runs;
use crate::sim::lower::work::{Place, Work};
use crate::sim::planner::Machine;
use crate::sim::targets::Chip;
use crate::units::TileRuns;

/// The chip and how many of its tiles are used.
pub fn machine(config: &Config, chip: &'static Chip) -> Result<Machine, Problem> {
    let tiles = config.number("tiles-per-ipu", u64::from(chip.tiles))?;
    if tiles == 0 || tiles > u64::from(chip.tiles) {
        return Err(Problem::Broken(format!(
            "tiles-per-ipu: {} has {} tiles",
            chip.name, chip.tiles
        )));
    }
    Ok(Machine { tiles, ..Machine::whole(*chip) })
}

fn exchange_speed(machine: &Machine) -> u64 {
    u64::from(machine.chip.exchange_bytes_per_cycle)
}

/// A reduction of a linear tensor.
pub fn reduction(config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    let machine = machine(config, chip)?;
    let tiles = machine.tiles as u32;
    let key = if config.text("type").is_some() { "type" } else { "data-type" };
    let dtype = config.dtype(key, DType::Half)?;
    config.present("shape")?;
    config.present("dims")?;
    let shape = config.numbers("shape")?;
    let axes: Vec<usize> = config.numbers("dims")?.iter().map(|axis| *axis as usize).collect();
    if let Some(axis) = axes.iter().find(|axis| **axis >= shape.len()) {
        return Err(Problem::Broken(format!("dims: there is no dimension {axis} in shape")));
    }
    let [update, scaled] = [config.flag("update", false)?, config.real("scale", 1.0)? != 1.0];
    let name = config.text("operation").unwrap_or("ADD");
    let operation = Operation::find(name)
        .ok_or_else(|| Problem::Broken(format!("operation: there is no reduction {name:?}")))?;
    let input = Layout::linear(elements(&shape)?, dtype.bytes(), tiles);
    let mut work = Work::default();
    let reduction = Reduction {
        name: "reduce",
        operation,
        dims: &reduce::dims(&shape, Order::Linear, &axes),
        input: &input.elements,
        dtype,
        output: dtype,
        result: ResultUse { update, scaled },
        onto: None,
        tiles,
        bytes_per_cycle: exchange_speed(&machine),
    };
    let output = reduce::add(&mut work, &reduction).map_err(Problem::refused)?;
    let live = [input.bytes(dtype.bytes()), output.map(|count| count * dtype.bytes())];
    let tensors = live.map(|bytes| Operand::always(bytes, Place::Any)).into();
    Ok(Program { works: vec![work], tensors, ..Program::new(&machine) })
}

/// Elements of a tensor, within what can be counted.
pub fn elements(shape: &[u64]) -> Result<u64, Problem> {
    const MOST: u64 = 1 << 40;
    shape
        .iter()
        .try_fold(1u64, |count, size| count.checked_mul(*size))
        .filter(|count| *count <= MOST)
        .ok_or_else(|| Problem::Refused("the tensor is too large".to_string()))
}

/// Largest window of a pooling: a tile has a list for every position in it.
const MOST_POSITIONS: u64 = 1 << 16;

/// A pooling, its gradient, or both.
pub fn pooling(config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    let machine = machine(config, chip)?;
    let tiles = machine.tiles as u32;
    let forward = forward_pooling(config)?;
    let passes = Passes::of(config, Passes::ALL)?;
    let [outer, inner] = [|axis: Axis| Some(axis.elements), Axis::windows].map(|size| {
        let field = forward.axes.map(size).into_iter().collect::<Option<Vec<u64>>>();
        let field = field.ok_or_else(|| Problem::refused("no window fits into the field"))?;
        let shape = [&[forward.batch, forward.channels][..], &field].concat();
        let bytes = forward.dtype.bytes();
        Ok(Layout::linear(elements(&shape)?, bytes, tiles).bytes(bytes))
    });
    // Activations, and where there is a gradient that of both sides.
    let (outer, inner) = (outer?, inner?);
    let live = match (passes.goes_back(), passes.forward) {
        (true, _) => vec![outer.clone(), outer, inner.clone(), inner],
        (false, _) => vec![outer, inner],
    };
    let run = |pooling: &Pooling, sources: &[TileRuns<u64>]| -> Result<Pooled, Problem> {
        let sources = sources.iter().fold(TileRuns::empty(), |sum, at| runs::add(&sum, at));
        let pooled = pooling.lower(tiles, exchange_speed(&machine), &sources);
        pooled.ok_or_else(|| Problem::refused("the pooling has no plan"))
    };
    let first = run(&forward, &live[..1])?;
    let mut program = Program::new(&machine);
    if passes.goes_back() {
        // Gradients lie as the results of the forward pass do.
        let backward = Pooling {
            pass: Pass { backward: true, ..forward.pass },
            grouping: if passes.forward { first.plan.group } else { forward.grouping },
            ..forward
        };
        program.works.push(run(&backward, &live[1..])?.work);
    }
    if passes.forward {
        program.works.insert(0, first.work);
    }
    program.tensors =
        live.into_iter().map(|bytes| Operand::always(bytes, Place::OwnElement)).collect();
    Ok(program)
}

/// The forward pass of a pooling.
fn forward_pooling(config: &Config) -> Result<Pooling, Problem> {
    let field = config.field("field")?;
    config.present("kernel")?;
    let kernel = config.along("kernel", 1, field.len())?;
    let stride = config.along("stride", 1, field.len())?;
    let [before, behind] = config.ends("padding", field.len())?;
    let positions = kernel.iter().try_fold(1u64, |product, size| product.checked_mul(*size));
    if positions.is_none_or(|positions| positions > MOST_POSITIONS) {
        let reason = format!("windows of more than {MOST_POSITIONS} elements are not simulated");
        return Err(Problem::Refused(reason));
    }
    let mut axes = [Axis::NONE; 3];
    let first = axes.len() - field.len();
    for (d, axis) in axes[first..].iter_mut().enumerate() {
        *axis = Axis {
            elements: field[d],
            kernel: kernel[d],
            stride: stride[d],
            before: before[d],
            behind: behind[d],
        };
    }
    let kind = match config.text("pooling-type") {
        None | Some("max") => Kind::Max,
        Some("avg") => Kind::Average,
        Some("sum") => Kind::Sum,
        Some(other) => return Err(Problem::Broken(format!("pooling-type: no pooling {other:?}"))),
    };
    let grouping = config.number("fwd-chans-per-group", 1)?;
    Ok(Pooling {
        pass: Pass { kind, backward: false },
        dtype: config.dtype("data-type", DType::Half)?,
        batch: config.number("batch-size", 1)?,
        channels: config.number("channels", 1)?,
        axes,
        grouping,
        forward_grouping: grouping,
    })
}

/// A gather of rows of a table, the update of those rows, or both.
pub fn embedding(config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    let machine = machine(config, chip)?;
    config.present("shape")?;
    let [rows, width] = config.numbers("shape")?[..] else {
        return Err(Problem::Broken("shape: rows and columns are expected".to_string()));
    };
    let lookups = config.required("num-indices")?;
    if elements(&[rows, width])? == 0 || elements(&[lookups, width])? == 0 {
        return Err(Problem::Refused("there is nothing to look up".to_string()));
    }
    let dtype = config.dtype("data-type", DType::Half)?;
    let embedding = Embedding { rows, width, lookups, dtype };
    let passes = Passes::of(config, Passes::ALL)?;
    let plan = embedding::plan(&embedding, machine.tiles, passes.update);
    let lowered = Lowered::new(&machine, embedding, plan);
    let slices = lowered.slices().bytes(dtype.bytes());
    let always = |bytes: TileRuns<u64>| Operand::always(bytes, Place::Any);
    let mut program = Program { code: true, ..Program::new(&machine) };
    program.tensors.push(always(lowered.table().bytes(dtype.bytes())));
    program.tensors.push(always(lowered.indices().bytes(DType::Int.bytes())));
    if passes.forward {
        let gather = lowered.gather();
        // Without a download nothing reads the rows that were looked up.
        let made = gather.phases().len() as u32 - 1;
        let (bytes, live) = (slices.clone(), Some(made..made + 1));
        program.tensors.push(Operand { bytes, place: Place::Any, live });
        program.works.push(gather);
    }
    if passes.update {
        program.tensors.push(always(slices));
        program.works.push(lowered.update().map_err(Problem::refused)?);
    }
    if program.works.is_empty() {
        return Err(Problem::Broken("an embedding has no backward pass".to_string()));
    }
    Ok(program)
}
