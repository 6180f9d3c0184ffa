//! From checked values to the specification the simulator works with.

use super::choices::{
    AutoStage, DataLoaderMode, ExecutionStrategy, OutputMode, OverlapIo, PipelineSchedule,
    RecomputationType, SerializeMatMulOption, StashConvention, StreamInputType, SyncPattern,
};
use super::error::SpecError;
use super::keys;
use super::value::SpecValue;
use super::{CheckedSpecValues, Spec, checks};
use crate::model::ModelDef;
use crate::operators::{MatMulSerialization, MatMulSerializationMode};
use crate::shape::DType;
use crate::targets::{self, Chip, SystemDef};
use std::collections::BTreeMap;
use tilescope_report::TargetKind;

/// The model and how it is used.
#[derive(Clone, Debug)]
pub struct ModelSpec {
    pub definition: &'static ModelDef,
    /// Samples of one forward pass.
    pub batch_size: u64,
    /// Sequences in a sample, on average.
    pub packing_factor: f64,
    /// Whether it is trained.
    pub training: bool,
    /// Element type of activations, and of all that is computed.
    pub precision: DType,
    /// Element type of weights.
    pub parameter_type: DType,
    pub optimizer: String,
    /// Factor of the loss.
    pub loss_scaling: f64,
    /// The model's own sizes, by the last part of their key.
    pub sizes: BTreeMap<&'static str, u64>,
}

impl ModelSpec {
    /// One of the model's own sizes.
    pub(crate) fn size(&self, name: &str) -> u64 {
        *self
            .sizes
            .get(name)
            .unwrap_or_else(|| panic!("model {} lists no size {name}", self.definition.name))
    }
}

/// The `[target]` table of a spec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetSpec {
    pub system: &'static SystemDef,
    pub chip: &'static Chip,
    /// Hardware or IPU Model.
    pub kind: TargetKind,
    /// IPUs of one replica.
    pub ipus: u32,
}

/// Where a kind of tensor lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorLocation {
    /// In tile memory, not in streaming memory.
    pub on_chip: bool,
    /// The I/O tiles load and store it.
    pub use_io_tiles: bool,
    /// Fewest elements of a tensor that leaves the chip.
    pub min_elements_for_off_chip: u64,
}

impl TensorLocation {
    /// Whether a tensor of this many elements lives in streaming memory.
    pub(crate) fn is_off_chip(&self, elements: u64) -> bool {
        !self.on_chip && elements >= self.min_elements_for_off_chip
    }
}

/// Where the kinds of tensors live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorLocations {
    pub optimizer_state: TensorLocation,
    pub weights: TensorLocation,
    pub accumulators: TensorLocation,
    /// Activations stashed for the backward pass.
    pub activations: TensorLocation,
    /// Whether optimiser state is split over the replicas.
    pub replicated_tensor_sharding: bool,
    /// Fewest elements of a tensor that is split.
    pub min_elements_for_rts: u64,
}

/// The host: what it does and how long it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostSpec {
    /// Where samples come from.
    pub loader: DataLoaderMode,
    /// Loader processes of an instance.
    pub num_workers: u64,
    /// Time one worker takes for one sample.
    pub seconds_per_sample: f64,
    /// Time of a loader per host call besides its samples.
    pub seconds_per_call: f64,
    /// Rate at which a loader copies samples.
    pub copy_bytes_per_second: f64,
    /// Calls a loader may run ahead.
    pub buffer_size: u64,
    /// Spread of the time of a micro-batch, as a share of its mean.
    pub sample_time_spread: f64,
    /// Time of the callback that fills a micro-batch's buffers.
    pub seconds_per_micro_batch: f64,
    /// Time the framework holds every device iteration up.
    pub seconds_per_iteration: f64,
    /// Rate between host and one IPU, where the system's own is not meant.
    pub bytes_per_second: Option<f64>,
}

/// A pipeline stage: blocks that run on one IPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageSpec {
    pub blocks: Vec<String>,
    /// IPU of the replica.
    pub ipu: u32,
}

/// How the model is run.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecOptions {
    /// Pipelined, sharded or phased.
    pub execution: ExecutionStrategy,
    /// Stages as written; empty means one per block. Names are checked against the model later.
    pub stages: Vec<StageSpec>,
    /// Stages where none are written.
    pub auto_stage: AutoStage,
    pub pipeline_schedule: PipelineSchedule,
    /// Whose count of slots and stashes is meant.
    pub stash_convention: StashConvention,
    /// What the backward pass computes again.
    pub recomputation: RecomputationType,
    /// Micro-batches per weight update.
    pub gradient_accumulation: u64,
    /// Loops per host call.
    pub device_iterations: u64,
    /// Copies of the program.
    pub replication_factor: u32,
    /// IPUs that linear layers are split over.
    pub tensor_parallel: u32,
    /// Host processes that share the replicas.
    pub num_instances: u32,
    /// Which IPUs a sync for the host stops.
    pub sync_pattern: SyncPattern,
    /// I/O tiles per IPU.
    pub num_io_tiles: u32,
    /// Host copies beside compute.
    pub overlap_io: OverlapIo,
    /// Micro-batches the host prepares ahead.
    pub prefetch_depth: u64,
    /// Which results are sent.
    pub output_mode: OutputMode,
    /// Micro-batches from one sent result to the next.
    pub output_return_period: u64,
    /// Element type of samples on their way.
    pub input_type: StreamInputType,
    /// Whether the IPU scales and shifts samples.
    pub normalise_on_ipu: bool,
    /// Bound on temporaries of planned operations, as a share of tile memory.
    pub available_memory_proportion: f64,
    /// How linear layers are cut into parts.
    pub serialisation: Option<MatMulSerialization>,
    /// Whether each convolution begins at a tile of its own.
    pub conv_dithering: bool,
    /// Element type of partial sums.
    pub partials_type: DType,
    /// Whether halves are rounded at random.
    pub stochastic_rounding: bool,
    pub location: TensorLocations,
    pub host: HostSpec,
}

/// Puts the specification together and checks what concerns several keys.
pub(super) fn assemble(values: &CheckedSpecValues) -> Result<Spec, SpecError> {
    let spec = Spec {
        model: model(values),
        target: target(values),
        options: options(values)?,
        text: text(values),
        effective_values: effective(values),
        locations: values.locations(),
    };
    checks::check(values, &spec)?;
    Ok(spec)
}

fn dtype(values: &CheckedSpecValues, path: &str) -> DType {
    if values.text(path) == "float16" { DType::Half } else { DType::Float }
}

fn model(values: &CheckedSpecValues) -> ModelSpec {
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
        packing_factor: values.real("model.packing_factor"),
        training: values.flag("model.training") && values.model.trainable,
        precision,
        parameter_type,
        optimizer: values.text("model.optimizer"),
        loss_scaling: values.real("model.loss_scaling"),
        sizes: sizes.collect(),
    }
}

fn target(values: &CheckedSpecValues) -> TargetSpec {
    let name = values.text("target.name");
    let system = targets::find_system(&name)
        .unwrap_or_else(|| panic!("KEYS lists system {name}, SYSTEMS does not"));
    TargetSpec {
        system,
        chip: system.chip,
        kind: match values.text("target.type").as_str() {
            "ipu_model" => TargetKind::IpuModel,
            _ => TargetKind::Ipu,
        },
        ipus: values.integer("target.ipus") as u32,
    }
}

fn options(values: &CheckedSpecValues) -> Result<SpecOptions, SpecError> {
    Ok(SpecOptions {
        execution: ExecutionStrategy::read(values, "options.execution"),
        stages: stages(values)?,
        auto_stage: AutoStage::read(values, "options.auto_stage"),
        pipeline_schedule: PipelineSchedule::read(values, "options.pipeline_schedule"),
        stash_convention: StashConvention::read(values, "options.stash_convention"),
        recomputation: RecomputationType::read(values, "options.recomputation"),
        gradient_accumulation: values.integer("options.gradient_accumulation"),
        device_iterations: values.integer("options.device_iterations"),
        replication_factor: values.integer("options.replication_factor") as u32,
        tensor_parallel: values.integer("options.tensor_parallel") as u32,
        num_instances: values.integer("options.num_instances") as u32,
        sync_pattern: SyncPattern::read(values, "options.sync_pattern"),
        num_io_tiles: values.integer("options.num_io_tiles") as u32,
        overlap_io: OverlapIo::read(values, "options.overlap_io"),
        prefetch_depth: values.integer("options.prefetch_depth"),
        output_mode: OutputMode::read(values, "options.output_mode"),
        output_return_period: values.integer("options.output_return_period"),
        input_type: StreamInputType::read(values, "options.input_type"),
        normalise_on_ipu: values.flag("options.normalise_on_ipu"),
        available_memory_proportion: values.real("options.available_memory_proportion"),
        serialisation: serialisation(values),
        conv_dithering: values.flag("options.conv_dithering"),
        partials_type: dtype(values, "options.partials_type"),
        stochastic_rounding: values.flag("options.stochastic_rounding"),
        location: locations(values),
        host: host(values),
    })
}

fn serialisation(values: &CheckedSpecValues) -> Option<MatMulSerialization> {
    let dim = match SerializeMatMulOption::read(values, "options.serialize_matmul") {
        SerializeMatMulOption::None => return None,
        SerializeMatMulOption::InputChannels => MatMulSerializationMode::InputChannels,
        SerializeMatMulOption::ReducingDim => MatMulSerializationMode::ReducingDim,
        SerializeMatMulOption::OutputChannels => MatMulSerializationMode::OutputChannels,
    };
    Some(MatMulSerialization { dim, parts: values.integer("options.serialize_matmul_factor") })
}

fn locations(values: &CheckedSpecValues) -> TensorLocations {
    let location = |what: &str| {
        let path = |key: &str| format!("options.location.{what}.{key}");
        TensorLocation {
            on_chip: values.flag(&path("on_chip")),
            use_io_tiles: values.flag(&path("use_io_tiles")),
            min_elements_for_off_chip: values.integer(&path("min_elements_for_off_chip")),
        }
    };
    let state = "options.location.optimizer_state";
    TensorLocations {
        optimizer_state: location("optimizer_state"),
        weights: location("weights"),
        accumulators: location("accumulators"),
        activations: location("activations"),
        replicated_tensor_sharding: values.flag(&format!("{state}.replicated_tensor_sharding")),
        min_elements_for_rts: values.integer(&format!("{state}.min_elements_for_rts")),
    }
}

fn host(values: &CheckedSpecValues) -> HostSpec {
    let real = |key: &str| values.real(&format!("options.host.{key}"));
    HostSpec {
        loader: DataLoaderMode::read(values, "options.host.loader"),
        num_workers: values.integer("options.host.num_workers"),
        seconds_per_sample: real("seconds_per_sample"),
        seconds_per_call: real("seconds_per_call"),
        copy_bytes_per_second: real("copy_bytes_per_second"),
        buffer_size: values.integer("options.host.buffer_size"),
        sample_time_spread: real("sample_time_spread"),
        seconds_per_micro_batch: real("seconds_per_micro_batch"),
        seconds_per_iteration: real("seconds_per_iteration"),
        bytes_per_second: Some(real("bytes_per_second")).filter(|rate| *rate > 0.0),
    }
}

/// Reads the stages: each item a block, a list of blocks, or a table with `blocks` and `ipu`.
/// Stages without an IPU take the position in the list.
fn stages(values: &CheckedSpecValues) -> Result<Vec<StageSpec>, SpecError> {
    let path = "options.stages";
    let SpecValue::Array(items) = values.get(path) else { return Ok(Vec::new()) };
    let stage = |(position, item): (usize, &SpecValue)| {
        let wrong = || {
            let expected = "a block name, a list of block names, or { blocks = [...], ipu = N }";
            values.refuse(
                path,
                format!("stage {position}: expected {expected}, found {}", item.describe()),
            )
        };
        let (blocks, ipu) = match item {
            SpecValue::Table(entries) => {
                if let Some((key, _)) =
                    entries.iter().find(|(key, _)| key != "blocks" && key != "ipu")
                {
                    let problem = format!("stage {position}: unknown key {key:?}");
                    return Err(values.refuse(path, problem).nearest(key, &["blocks", "ipu"]));
                }
                let find = |name: &str| entries.iter().find(|(key, _)| key == name).map(|(_, v)| v);
                let ipu = match find("ipu") {
                    Some(SpecValue::Integer(ipu)) if (0..64).contains(ipu) => *ipu as u32,
                    None => position as u32,
                    Some(_) => return Err(wrong()),
                };
                (find("blocks").cloned().ok_or_else(wrong)?, ipu)
            }
            other => (other.clone(), position as u32),
        };
        let blocks = match blocks {
            SpecValue::String(block) => vec![block],
            SpecValue::Array(names) => names
                .into_iter()
                .map(
                    |name| if let SpecValue::String(name) = name { Ok(name) } else { Err(wrong()) },
                )
                .collect::<Result<_, _>>()?,
            _ => return Err(wrong()),
        };
        if blocks.is_empty() {
            return Err(values.refuse(path, format!("stage {position} has no blocks")));
        }
        Ok(StageSpec { blocks, ipu })
    };
    items.iter().enumerate().map(stage).collect()
}

/// The keys that were set, as TOML, in the order of the key list.
fn text(values: &CheckedSpecValues) -> String {
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
fn effective(values: &CheckedSpecValues) -> Vec<(String, String)> {
    keys::for_model(values.model).map(|key| (key.path.to_string(), values.text(key.path))).collect()
}
