//! Checks that concern several keys at once: combinations that no machine runs are rejected here.

use super::choices::{
    DomainSharding, ExecutionPhaseIoSchedule, ExecutionStrategy, OutputMode, OverlapIo,
    PipelineSchedule, RecomputationType,
};
use super::options::MEMORY_PROPORTION;
use super::phase_settings::PHASE_SETTINGS;
use super::{CheckedSpecValues, Spec, SpecError, machine};
use crate::model::{ModelPrecision, OperationKind};
use crate::poplin::matmul::MatMulSerializationMode;
use crate::targets;
use tilescope_report::TargetKind;

/// The smallest number of I/O tiles that PopART accepts (willow/src/popx/irlowering.cpp).
const MIN_IO_TILES: u32 = 32;

/// Rejects combinations of values that are inconsistent.
pub(super) fn check(values: &CheckedSpecValues, spec: &Spec) -> Result<(), SpecError> {
    let problems = [
        machine::check(values, spec),
        system(spec),
        instances(spec),
        precision(spec),
        precision_of(values, spec),
        ipu_model(spec),
        accumulation(spec),
        memory_proportions(spec),
        io_tiles(spec),
        overlap(spec),
        schedule(spec),
        sharding(spec),
        domain_sharding(values, spec),
        phase_settings(values, spec),
        batch_serialization(spec),
        outputs(values, spec),
        constant_weights(spec),
        parts(values, spec),
    ];
    match problems.into_iter().flatten().next() {
        Some((key, problem)) => Err(values.refuse(key, problem)),
        None => Ok(()),
    }
}

/// A key, and the reason why its value is inconsistent with others.
pub(super) type SpecConflict = Option<(&'static str, String)>;

/// Checks that the IPUs of all replicas, rounded up to a power of two, exist in the system.
fn system(spec: &Spec) -> SpecConflict {
    let system = spec.target.system;
    let wanted = spec.total_ipus();
    if wanted <= system.ipus {
        return None;
    }
    let replicas = spec.options.replication_factor;
    let ipus = spec.target.ipus * spec.options.tensor_parallel;
    let next = match targets::smallest_system_with(system, wanted) {
        Some(next) => format!("the smallest sufficient system is {:?}", next.name),
        None => format!("no {} system has that many", system.chip.architecture),
    };
    let problem = format!(
        "{replicas} x {ipus} IPUs require {wanted}, but {:?} has {}; {next}",
        system.name, system.ipus
    );
    Some(("target.name", problem))
}

fn instances(spec: &Spec) -> SpecConflict {
    let options = &spec.options;
    let hosts = options.num_hosts;
    let instances = options.num_instances;
    let replicas = options.replication_factor;
    if !replicas.is_multiple_of(instances) {
        let problem =
            format!("{replicas} replicas cannot be divided evenly among {instances} instances");
        return Some(("options.num_instances", problem));
    }
    let slower = options.host.slower_instances;
    if slower > instances {
        let problem = format!("{slower} slower instances are more than the {instances} instances");
        return Some(("options.host.slower_instances", problem));
    }
    if instances.is_multiple_of(hosts) {
        return None;
    }
    let problem = format!(
        "{instances} instances cannot be divided evenly among {hosts} hosts; set \
         options.num_instances"
    );
    Some(("options.num_hosts", problem))
}

/// Checks that the types of a file are only requested with a file, and half precision only of a
/// model that has it.
fn precision(spec: &Spec) -> SpecConflict {
    let model = spec.model.definition;
    if model.float32_only && spec.model.number_formats != ModelPrecision::Float32 {
        let problem = format!(
            "the vertices of model {:?} exist for float32 only; set \"float32\", or remove the key",
            model.name
        );
        return Some(("model.precision", problem));
    }
    let as_is = spec.model.number_formats == ModelPrecision::AsIs && spec.model.file.is_none();
    if !as_is {
        return None;
    }
    let problem = "\"as_is\" requires an ONNX file; set \"float32\", \"mixed\" or \"float16\", or \
    set model.onnx";
    Some(("model.precision", problem.to_owned()))
}

/// Checks that precisions of operations are not set for a file, which defines the types of its
/// operations.
fn precision_of(values: &CheckedSpecValues, spec: &Spec) -> SpecConflict {
    spec.model.file.as_ref()?;
    let set = OperationKind::ALL.into_iter().find(|kind| values.is_set(kind.key()))?;
    let problem = "operations of an ONNX file compute in the types of the file. Add casts to the \
    exported model, and set model.precision = \"as_is\"";
    Some((set.key(), problem.to_owned()))
}

/// Checks the number of replicas on an IPU Model, which cannot replicate graphs (popart
/// docs/popart/performance.rst and docs/popxl/graph.rst).
fn ipu_model(spec: &Spec) -> SpecConflict {
    let replicas = spec.options.replication_factor;
    if spec.target.kind == TargetKind::IpuModel && replicas > 1 {
        let problem = format!(
            "Poplar's IPU Model supports one replica, not {replicas}; set \
             options.replication_factor = 1, or target.type = \"ipu\""
        );
        Some(("options.replication_factor", problem))
    } else {
        None
    }
}

/// Checks that gradients are accumulated in training only (popart willow/src/ir.cpp, "Gradient
/// Accumulation only available when training"; PopTorch rejects it too).
fn accumulation(spec: &Spec) -> SpecConflict {
    let steps = spec.options.gradient_accumulation;
    if !spec.model.training && steps > 1 {
        let problem = format!(
            "gradient accumulation over {steps} micro-batches requires training, but \
             model.training = false; set options.gradient_accumulation = 1, and \
             options.device_iterations to the micro-batches per call"
        );
        Some(("options.gradient_accumulation", problem))
    } else {
        None
    }
}

/// Checks that a list has a share for each IPU of a replica.
fn memory_proportions(spec: &Spec) -> SpecConflict {
    let given = spec.memory_proportions.len();
    let ipus = spec.target.ipus as usize;
    if given > 0 && given != ipus {
        let problem = format!(
            "a list needs one value per IPU of a replica: target.ipus = {ipus}, but the list has \
             {given}"
        );
        Some((MEMORY_PROPORTION, problem))
    } else {
        None
    }
}

fn io_tiles(spec: &Spec) -> SpecConflict {
    let io = spec.options.num_io_tiles;
    let tiles = spec.target.chip.tiles;
    let location = &spec.options.location;
    let moved = [
        ("options.location.optimizer_state.use_io_tiles", location.optimizer_state),
        ("options.location.weights.use_io_tiles", location.weights),
        ("options.location.accumulators.use_io_tiles", location.accumulators),
        ("options.location.activations.use_io_tiles", location.activations),
    ];
    if io == 0 {
        let asks = moved.into_iter().find(|(_, location)| location.use_io_tiles);
        return asks
            .map(|(key, _)| (key, "no I/O tiles are reserved; set options.num_io_tiles".into()));
    }
    let problem = if io < MIN_IO_TILES {
        format!("at least {MIN_IO_TILES} I/O tiles are required, not {io}")
    } else if !io.is_multiple_of(2) {
        format!("the number of I/O tiles must be even, not {io}")
    } else if io >= tiles {
        format!("{io} I/O tiles leave no compute tiles: {} has {tiles}", spec.target.chip.name)
    } else {
        return None;
    };
    Some(("options.num_io_tiles", problem))
}

/// Checks that overlapped I/O has its own tiles and a schedule that can hide it: a program on one
/// IPU, or a grouped pipeline (memory guide, section 4.4.2; SDK 2.3).
fn overlap(spec: &Spec) -> SpecConflict {
    let options = &spec.options;
    if options.overlap_io == OverlapIo::None {
        return None;
    }
    let key = "options.overlap_io";
    if options.num_io_tiles == 0 {
        return Some((key, "overlapped I/O requires I/O tiles; set options.num_io_tiles".into()));
    }
    let grouped = options.execution == ExecutionStrategy::Pipelined
        && options.pipeline_schedule == PipelineSchedule::Grouped;
    if spec.target.ipus > 1 && !grouped {
        let problem = "host copies can overlap only on one IPU or in a grouped pipeline";
        Some((key, problem.to_string()))
    } else {
        None
    }
}

fn schedule(spec: &Spec) -> SpecConflict {
    let options = &spec.options;
    let phased = options.execution == ExecutionStrategy::Phased;
    let sets = options.execution_phase_settings.stages;
    if phased && !spec.target.ipus.is_multiple_of(sets) {
        let problem = format!(
            "phases alternate between the even and the odd IPUs, but target.ipus is {}; set \
             target.ipus = {}, or options.execution = \"sharded\" to run the parts sequentially",
            spec.target.ipus,
            spec.target.ipus + 1
        );
        return Some(("options.execution", problem));
    }
    if phased && spec.target.ipus > sets && options.tensor_parallel > 1 {
        let problem = "phased execution already splits the layers of a phase over the IPUs of its \
        set";
        return Some(("options.tensor_parallel", problem.into()));
    }
    if options.recomputation != RecomputationType::None && !spec.model.training {
        let problem = "recomputation requires training; set model.training = true";
        return Some(("options.recomputation", problem.into()));
    }
    None
}

fn constant_weights(spec: &Spec) -> SpecConflict {
    if !spec.options.constant_weights {
        return None;
    }
    let problem = if spec.model.training {
        "trained weights cannot be constants; set model.training = false"
    } else if !spec.options.location.weights.on_chip {
        "constants cannot be in streaming memory; set options.location.weights.on_chip = true"
    } else {
        return None;
    };
    Some(("options.constant_weights", problem.into()))
}

/// Checks that a tensor is split over several replicas, and the tensors of one update over the same
/// replicas (PopART user guide, replicated tensor sharding).
fn sharding(spec: &Spec) -> SpecConflict {
    let options = &spec.options;
    let mut split = options.location.shardings().into_iter().filter_map(|(key, sharding)| {
        if sharding.replicated_tensor_sharding {
            Some((key, sharding.sharding_domain))
        } else {
            None
        }
    });
    let (first, domain) = split.next()?;
    if options.replicas_of(domain) < 2 {
        let problem = if options.replication_factor < 2 {
            "sharding requires more than one replica; set options.replication_factor"
        } else {
            "each instance has only one replica; set sharding_domain = \"all\""
        };
        return Some((first, problem.to_owned()));
    }
    let (other, _) = split.find(|(_, of)| *of != domain)?;
    let problem = format!("{first} uses another sharding_domain; set the same for both");
    Some((other, problem))
}

/// Checks domain sharding, which replaces stages.
fn domain_sharding(values: &CheckedSpecValues, spec: &Spec) -> SpecConflict {
    let key = "options.domain_sharding";
    let options = &spec.options;
    if options.domain_sharding != DomainSharding::Rows {
        return None;
    }
    let problem = if spec.target.ipus < 2 {
        "one IPU cannot share rows; set target.ipus"
    } else if values.is_set("options.stages") {
        "IPUs share either rows or stages; remove options.stages"
    } else if options.tensor_parallel > 1 {
        "IPUs share either rows or columns of weights; set options.tensor_parallel = 1"
    } else if options.batch_serialization_settings.compute_batches() > 1 {
        "samples are already split by rows; remove options.batch_serialization_settings"
    } else if options.execution == ExecutionStrategy::Phased {
        "domain sharding runs all IPUs at once, but with options.execution = \"phased\" they take \
         turns"
    } else {
        return None;
    };
    Some((key, problem.to_owned()))
}

/// Checks that keys of phases are only set with phases, and that the number of phases equals that
/// of explicit stages.
fn phase_settings(values: &CheckedSpecValues, spec: &Spec) -> SpecConflict {
    let set = PHASE_SETTINGS.into_iter().find(|key| values.is_set(key))?;
    if spec.options.execution != ExecutionStrategy::Phased {
        let problem = "phase settings require options.execution = \"phased\"";
        return Some((set, problem.to_owned()));
    }
    let settings = &spec.options.execution_phase_settings;
    let state = "options.execution_phase_settings.optimizer_state_io_schedule";
    if settings.optimizer_state_io_schedule == ExecutionPhaseIoSchedule::Preload
        && spec.options.gradient_accumulation > 1
    {
        let problem = "with gradient accumulation, the update follows the phases and loads its \
        state on demand";
        return Some((state, problem.to_owned()));
    }
    let phases = "options.execution_phase_settings.phases";
    if settings.phases > 0 && values.is_set("options.stages") {
        Some((phases, "options.stages already defines the phases".to_owned()))
    } else {
        None
    }
}

/// Checks that a micro-batch can be split into equal parts.
fn batch_serialization(spec: &Spec) -> SpecConflict {
    let key = "options.batch_serialization_settings.factor";
    let factor = spec.options.batch_serialization_settings.compute_batches();
    let samples = spec.model.batch_size;
    let problem = if factor == 1 {
        return None;
    } else if !samples.is_multiple_of(factor) {
        format!("{samples} samples cannot be divided into {factor} equal parts")
    } else {
        return None;
    };
    Some((key, problem))
}

fn outputs(values: &CheckedSpecValues, spec: &Spec) -> SpecConflict {
    let key = "options.output_return_period";
    if values.is_set(key) && spec.options.output_mode != OutputMode::EveryN {
        Some((key, "a period requires output_mode = \"every_n\"".to_string()))
    } else {
        None
    }
}

fn parts(values: &CheckedSpecValues, spec: &Spec) -> SpecConflict {
    let keys = ["options.serialize_matmul_factor", "options.serialize_matmul_layers"];
    if spec.options.library.serialize_matmul != MatMulSerializationMode::None {
        return None;
    }
    let set = keys.into_iter().find(|key| values.is_set(key))?;
    Some((set, "no layers are serialised; set options.serialize_matmul".to_string()))
}
