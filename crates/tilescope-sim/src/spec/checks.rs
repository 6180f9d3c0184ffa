//! What concerns several keys at once: combinations that no machine runs are refused here.

use super::choices::{
    ExecutionStrategy, OutputMode, OverlapIo, PipelineSchedule, RecomputationType,
};
use super::{CheckedSpecValues, Spec, SpecError};
use crate::poplin::matmul::MatMulSerializationMode;
use crate::targets;

/// Fewest I/O tiles PopART takes (willow/src/popx/irlowering.cpp).
const MIN_IO_TILES: u32 = 32;

/// Refuses what does not go together.
pub(super) fn check(values: &CheckedSpecValues, spec: &Spec) -> Result<(), SpecError> {
    let problems = [
        system(spec),
        instances(spec),
        io_tiles(spec),
        overlap(spec),
        schedule(spec),
        outputs(values, spec),
        parts(values, spec),
    ];
    match problems.into_iter().flatten().next() {
        Some((key, problem)) => Err(values.refuse(key, problem)),
        None => Ok(()),
    }
}

type SpecConflict = Option<(&'static str, String)>;

/// All replicas must find room: their IPUs, rounded up to a power of two.
fn system(spec: &Spec) -> SpecConflict {
    let system = spec.target.system;
    let wanted = spec.total_ipus();
    if wanted <= system.ipus {
        return None;
    }
    let replicas = spec.options.replication_factor;
    let ipus = spec.target.ipus * spec.options.tensor_parallel;
    let next = match targets::smallest_system_with(system, wanted) {
        Some(next) => format!("the next system that fits is {:?}", next.name),
        None => format!("no system of {} has as many", system.chip.architecture),
    };
    let problem = format!(
        "{replicas} x {ipus} IPUs take {wanted}, and {:?} has {}; {next}",
        system.name, system.ipus
    );
    Some(("target.name", problem))
}

fn instances(spec: &Spec) -> SpecConflict {
    let (instances, replicas) = (spec.options.num_instances, spec.options.replication_factor);
    (!replicas.is_multiple_of(instances)).then(|| {
        let problem = format!("{instances} instances cannot share {replicas} replicas evenly");
        ("options.num_instances", problem)
    })
}

fn io_tiles(spec: &Spec) -> SpecConflict {
    let (io, tiles) = (spec.options.num_io_tiles, spec.target.chip.tiles);
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
            .map(|(key, _)| (key, "there are no I/O tiles; set options.num_io_tiles".into()));
    }
    let problem = if io < MIN_IO_TILES {
        format!("at least {MIN_IO_TILES} I/O tiles are needed, not {io}")
    } else if !io.is_multiple_of(2) {
        format!("an even number of I/O tiles is needed, not {io}")
    } else if io >= tiles {
        format!("{io} I/O tiles leave none for compute: {} has {tiles}", spec.target.chip.name)
    } else {
        return None;
    };
    Some(("options.num_io_tiles", problem))
}

/// Overlap needs tiles of its own and a schedule it can hide in: a program on one IPU or a grouped
/// pipeline (memory guide, section 4.4.2; SDK 2.3).
fn overlap(spec: &Spec) -> SpecConflict {
    let options = &spec.options;
    if options.overlap_io == OverlapIo::None {
        return None;
    }
    let key = "options.overlap_io";
    if options.num_io_tiles == 0 {
        return Some((key, "overlap needs I/O tiles; set options.num_io_tiles".into()));
    }
    let grouped = options.execution == ExecutionStrategy::Pipelined
        && options.pipeline_schedule == PipelineSchedule::Grouped;
    (spec.target.ipus > 1 && !grouped).then(|| {
        let problem = "host copies overlap only on one IPU or in a grouped pipeline";
        (key, problem.to_string())
    })
}

fn schedule(spec: &Spec) -> SpecConflict {
    let options = &spec.options;
    let phased = options.execution == ExecutionStrategy::Phased;
    if phased && !spec.target.ipus.is_multiple_of(2) {
        let problem = "phases alternate between two sets of as many IPUs; target.ipus must be even";
        return Some(("options.execution", problem.into()));
    }
    if phased && spec.target.ipus > 2 && options.tensor_parallel > 1 {
        let problem = "the layers of a phase are split over the IPUs of its set already";
        return Some(("options.tensor_parallel", problem.into()));
    }
    if options.recomputation != RecomputationType::None && !spec.model.training {
        let problem = "there is nothing to recompute: the model is not trained";
        return Some(("options.recomputation", problem.into()));
    }
    let location = &options.location;
    if location.sharding.replicated_tensor_sharding && options.replication_factor < 2 {
        let key = "options.location.optimizer_state.replicated_tensor_sharding";
        return Some((
            key,
            "sharding needs more than one replica; set options.replication_factor".into(),
        ));
    }
    None
}

fn outputs(values: &CheckedSpecValues, spec: &Spec) -> SpecConflict {
    let key = "options.output_return_period";
    (values.is_set(key) && spec.options.output_mode != OutputMode::EveryN)
        .then(|| (key, "a period only applies to output_mode = \"every_n\"".to_string()))
}

fn parts(values: &CheckedSpecValues, spec: &Spec) -> SpecConflict {
    let key = "options.serialize_matmul_factor";
    (values.is_set(key) && spec.options.library.serialize_matmul == MatMulSerializationMode::None)
        .then(|| (key, "nothing is serialised; set options.serialize_matmul".to_string()))
}
