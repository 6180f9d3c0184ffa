//! Programs of poolings, reductions and embeddings.

use super::config::{Config, Problem};
use super::products::padding;
use crate::sim::graph::DType;
use crate::sim::lower::alone::{Operand, Program};
use crate::sim::lower::embedding::{self, Embedding, Lowered};
use crate::sim::lower::layout::{Layout, Order};
use crate::sim::lower::pool::{Axis, Kind, Pass, Pooled, Pooling};
use crate::sim::lower::reduce::{self, Operation, Reduction};
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

/// Refuses a bias.
pub fn no_bias(config: &Config) -> Result<(), Problem> {
    if config.flag("bias", false)? {
        return Err(Problem::Refused("a bias is not simulated".to_string()));
    }
    Ok(())
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
    if config.flag("update", false)? {
        return Err(Problem::Refused("reductions that update are not simulated".to_string()));
    }
    let scale = config.text("scale").unwrap_or("1.0");
    match scale.parse::<f64>() {
        Ok(1.0) => {}
        Ok(_) => return Err(Problem::Refused("scaled reductions are not simulated".to_string())),
        Err(_) => {
            return Err(Problem::Broken(format!("scale: a number is expected, not {scale:?}")));
        }
    }
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

/// A pooling and its gradient.
pub fn pooling(config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
    let machine = machine(config, chip)?;
    let tiles = machine.tiles as u32;
    config.present("field")?;
    config.present("kernel")?;
    let dtype = config.dtype("data-type", DType::Half)?;
    let [field, kernel] = [config.pair("field", 1)?, config.pair("kernel", 1)?];
    let stride = config.pair("stride", 1)?;
    let [before, behind] = padding(config)?;
    if kernel[0].saturating_mul(kernel[1]) > MOST_POSITIONS {
        let reason = format!("windows of more than {MOST_POSITIONS} elements are not simulated");
        return Err(Problem::Refused(reason));
    }
    let axis = |at: usize| Axis {
        elements: field[at],
        kernel: kernel[at],
        stride: stride[at],
        before: before[at],
        behind: behind[at],
    };
    let kind = match config.text("pooling-type") {
        None | Some("max") => Kind::Max,
        Some("avg") => Kind::Average,
        Some("sum") => Kind::Sum,
        Some(other) => return Err(Problem::Broken(format!("pooling-type: no pooling {other:?}"))),
    };
    let grouping = config.number("fwd-chans-per-group", 1)?;
    let forward = Pooling {
        pass: Pass { kind, backward: false },
        dtype,
        batch: config.number("batch-size", 1)?,
        channels: config.number("channels", 1)?,
        axes: [axis(0), axis(1)],
        grouping,
        forward_grouping: grouping,
    };
    let windows = forward.axes.map(Axis::windows);
    let [Some(rows), Some(columns)] = windows else {
        return Err(Problem::Refused("no window fits into the field".to_string()));
    };
    let linear = |field: [u64; 2]| {
        let count = elements(&[forward.batch, forward.channels, field[0], field[1]])?;
        Ok(Layout::linear(count, dtype.bytes(), tiles).bytes(dtype.bytes()))
    };
    // Activations and their gradients on both sides.
    let (outer, inner) = (linear(field)?, linear([rows, columns])?);
    let live = vec![outer.clone(), outer, inner.clone(), inner];
    let run = |pooling: &Pooling, sources: &[TileRuns<u64>]| -> Result<Pooled, Problem> {
        let sources = sources.iter().fold(TileRuns::empty(), |sum, at| runs::add(&sum, at));
        let pooled = pooling.lower(tiles, exchange_speed(&machine), &sources);
        pooled.ok_or_else(|| Problem::Refused("the pooling has no plan".to_string()))
    };
    let first = run(&forward, &live[..1])?;
    // Gradients lie as the results of the forward pass do.
    let backward = Pooling {
        pass: Pass { backward: true, ..forward.pass },
        grouping: first.plan.group,
        ..forward
    };
    let second = run(&backward, &live[1..])?;
    let works = vec![first.work, second.work];
    let tensors = live.into_iter().map(|bytes| Operand::always(bytes, Place::OwnElement)).collect();
    Ok(Program { works, tensors, ..Program::new(&machine) })
}

/// A gather of rows of a table, and the update of those rows.
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
    let plan = embedding::plan(&embedding, machine.tiles, true);
    let lowered = Lowered::new(&machine, embedding, plan);
    let slices = lowered.slices().bytes(dtype.bytes());
    let indices = lowered.indices().bytes(DType::Int.bytes());
    let (gather, update) = (lowered.gather(), lowered.update().map_err(Problem::refused)?);
    let read = [lowered.table().bytes(dtype.bytes()), slices.clone(), indices];
    let mut tensors: Vec<Operand> =
        read.into_iter().map(|bytes| Operand::always(bytes, Place::Any)).collect();
    // Without a download nothing reads the rows that were looked up.
    let made = gather.phases().len() as u32 - 1;
    tensors.push(Operand { bytes: slices, place: Place::Any, live: Some(made..made + 1) });
    Ok(Program { works: vec![gather, update], tensors, code: true, ..Program::new(&machine) })
}
