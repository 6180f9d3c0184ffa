//! From checked values to the specification the simulator works with.

use super::error::SpecError;
use super::keys;
use super::value::Value;
use super::{Spec, Values};
use crate::report::TargetKind;
use crate::sim::graph::DType;
use crate::sim::model::ModelDef;
use crate::sim::targets::{self, Chip};
use std::collections::BTreeMap;

/// The model and how it is used.
#[derive(Clone, Debug)]
pub struct ModelSpec {
    /// Its definition.
    pub definition: &'static ModelDef,
    /// Samples of one forward pass.
    pub batch_size: u64,
    /// Whether it is trained.
    pub training: bool,
    /// Element type of activations, and of all that is computed.
    pub precision: DType,
    /// Element type of weights.
    pub parameter_type: DType,
    /// Optimiser, by name.
    pub optimizer: String,
    /// Factor of the loss.
    pub loss_scaling: f64,
    /// The model's own sizes, by the last part of their key.
    pub sizes: BTreeMap<&'static str, u64>,
}

impl ModelSpec {
    /// One of the model's own sizes.
    pub fn size(&self, name: &str) -> u64 {
        *self
            .sizes
            .get(name)
            .unwrap_or_else(|| panic!("model {} lists no size {name}", self.definition.name))
    }
}

/// The machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetSpec {
    /// The chip.
    pub chip: &'static Chip,
    /// Hardware or IPU Model.
    pub kind: TargetKind,
    /// IPUs.
    pub ipus: u32,
}

/// How stages share the IPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Several micro-batches in flight.
    Pipelined,
    /// One micro-batch at a time.
    Sharded,
}

/// Order of passes in a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Forward passes together, then backward passes.
    Grouped,
}

/// Which micro-batches send results to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMode {
    /// All of them.
    All,
    /// The last one of a host call.
    Final,
}

/// A pipeline stage: blocks that run on one IPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Blocks in order.
    pub blocks: Vec<String>,
    /// IPU of the replica.
    pub ipu: u32,
}

/// How the model is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Pipelined or sharded.
    pub execution: Execution,
    /// Stages as written; empty means one per block. Names are checked against the model later.
    pub stages: Vec<Stage>,
    /// Pipeline schedule.
    pub pipeline_schedule: Schedule,
    /// Micro-batches per weight update.
    pub gradient_accumulation: u64,
    /// Loops per host call.
    pub device_iterations: u64,
    /// Copies of the program.
    pub replication_factor: u32,
    /// I/O tiles per IPU.
    pub num_io_tiles: u32,
    /// Which results are sent.
    pub output_mode: OutputMode,
    /// Bound on temporaries of planned operations, as a share of tile memory.
    pub available_memory_proportion: f64,
    /// Element type of partial sums.
    pub partials_type: DType,
}

/// Puts the specification together and checks what concerns several keys.
pub(super) fn assemble(values: &Values) -> Result<Spec, SpecError> {
    let spec = Spec {
        model: model(values),
        target: target(values),
        options: options(values)?,
        text: text(values),
        effective: effective(values),
        locations: values.locations(),
    };
    check_io_tiles(values, &spec)?;
    Ok(spec)
}

fn dtype(values: &Values, path: &str) -> DType {
    if values.text(path) == "float16" { DType::Half } else { DType::Float }
}

fn model(values: &Values) -> ModelSpec {
    let sizes = values.model.sizes.iter().map(|key| {
        let name = key.path.rsplit('.').next().unwrap_or(key.path);
        (name, values.integer(key.path))
    });
    let (precision, parameter_type) = match values.text("model.precision").as_str() {
        "float16" => (DType::Half, DType::Half),
        "mixed" => (DType::Half, DType::Float),
        _ => (DType::Float, DType::Float),
    };
    ModelSpec {
        definition: values.model,
        batch_size: values.integer("model.batch_size"),
        training: values.flag("model.training") && values.model.trainable,
        precision,
        parameter_type,
        optimizer: values.text("model.optimizer"),
        loss_scaling: values.real("model.loss_scaling"),
        sizes: sizes.collect(),
    }
}

fn target(values: &Values) -> TargetSpec {
    let name = values.text("target.name");
    TargetSpec {
        chip: targets::chip(&name)
            .unwrap_or_else(|| panic!("KEYS lists chip {name}, CHIPS does not")),
        kind: match values.text("target.type").as_str() {
            "ipu_model" => TargetKind::IpuModel,
            _ => TargetKind::Ipu,
        },
        ipus: values.integer("target.ipus") as u32,
    }
}

fn options(values: &Values) -> Result<Options, SpecError> {
    Ok(Options {
        execution: match values.text("options.execution").as_str() {
            "sharded" => Execution::Sharded,
            _ => Execution::Pipelined,
        },
        stages: stages(values)?,
        pipeline_schedule: Schedule::Grouped,
        gradient_accumulation: values.integer("options.gradient_accumulation"),
        device_iterations: values.integer("options.device_iterations"),
        replication_factor: values.integer("options.replication_factor") as u32,
        num_io_tiles: values.integer("options.num_io_tiles") as u32,
        output_mode: match values.text("options.output_mode").as_str() {
            "final" => OutputMode::Final,
            _ => OutputMode::All,
        },
        available_memory_proportion: values.real("options.available_memory_proportion"),
        partials_type: dtype(values, "options.partials_type"),
    })
}

/// Reads the stages: each item a block, a list of blocks, or a table with `blocks` and `ipu`.
/// Stages without an IPU take the position in the list.
fn stages(values: &Values) -> Result<Vec<Stage>, SpecError> {
    let path = "options.stages";
    let Value::List(items) = values.get(path) else { return Ok(Vec::new()) };
    let stage = |(position, item): (usize, &Value)| {
        let wrong = || {
            let expected = "a block name, a list of block names, or { blocks = [...], ipu = N }";
            values.refuse(
                path,
                format!("stage {position}: {expected} is expected, not {}", item.describe()),
            )
        };
        let (blocks, ipu) = match item {
            Value::Table(entries) => {
                if let Some((key, _)) =
                    entries.iter().find(|(key, _)| key != "blocks" && key != "ipu")
                {
                    let problem = format!("stage {position}: unknown key {key:?}");
                    return Err(values.refuse(path, problem).nearest(key, &["blocks", "ipu"]));
                }
                let find = |name: &str| entries.iter().find(|(key, _)| key == name).map(|(_, v)| v);
                let ipu = match find("ipu") {
                    Some(Value::Integer(ipu)) if (0..64).contains(ipu) => *ipu as u32,
                    None => position as u32,
                    Some(_) => return Err(wrong()),
                };
                (find("blocks").cloned().ok_or_else(wrong)?, ipu)
            }
            other => (other.clone(), position as u32),
        };
        let blocks = match blocks {
            Value::Text(block) => vec![block],
            Value::List(names) => names
                .into_iter()
                .map(|name| if let Value::Text(name) = name { Ok(name) } else { Err(wrong()) })
                .collect::<Result<_, _>>()?,
            _ => return Err(wrong()),
        };
        if blocks.is_empty() {
            return Err(values.refuse(path, format!("stage {position} has no blocks")));
        }
        Ok(Stage { blocks, ipu })
    };
    items.iter().enumerate().map(stage).collect()
}

fn check_io_tiles(values: &Values, spec: &Spec) -> Result<(), SpecError> {
    let (io, tiles) = (spec.options.num_io_tiles, spec.target.chip.tiles);
    if io == 0 {
        return Ok(());
    }
    // PopART: at least 32, an even number, fewer than the chip has (willow/src/popx/irlowering.cpp).
    let problem = if io < 32 {
        format!("at least 32 I/O tiles are needed, not {io}")
    } else if !io.is_multiple_of(2) {
        format!("an even number of I/O tiles is needed, not {io}")
    } else if io >= tiles {
        format!("{io} I/O tiles leave none to compute: {} has {tiles}", spec.target.chip.name)
    } else {
        return Ok(());
    };
    Err(values.refuse("options.num_io_tiles", problem))
}

/// The keys that were set, as TOML, in the order of the key list.
fn text(values: &Values) -> String {
    let mut text = String::new();
    for section in ["model", "target", "options"] {
        let keys = keys::for_model(values.model)
            .filter(|key| key.path.split('.').next() == Some(section) && values.is_set(key.path));
        let lines: Vec<String> = keys
            .map(|key| {
                let name = key.path.split_once('.').map_or(key.path, |(_, name)| name);
                format!("{name} = {}\n", values.get(key.path))
            })
            .collect();
        if !lines.is_empty() {
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}[{section}]\n{}", lines.concat()));
        }
    }
    text
}

/// Every key that applies with its value, for the options table of a report.
fn effective(values: &Values) -> Vec<(String, String)> {
    keys::for_model(values.model).map(|key| (key.path.to_string(), values.text(key.path))).collect()
}
