//! Keys of phased execution and of batch serialisation, with PopART's names and defaults
//! (willow/include/popart/sessionoptions.hpp).

use super::choices::{ExecutionPhaseIoSchedule, ExecutionPhaseSchedule};
use crate::spec_keys::{SpecKeyType, spec_table};

/// The keys that only apply to phases.
pub(super) const PHASE_SETTINGS: [&str; 7] = [
    "options.execution_phase_settings.phases",
    "options.execution_phase_settings.stages",
    "options.execution_phase_settings.weight_io_schedule",
    "options.execution_phase_settings.activation_io_schedule",
    "options.execution_phase_settings.optimizer_state_io_schedule",
    "options.execution_phase_settings.accumulator_io_schedule",
    "options.execution_phase_settings.schedule",
];

spec_table! {
    /// The loads and updates of phases.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ExecutionPhaseSettings {
        /// Number of phases over which the blocks are distributed; 0 for one per stage of
        /// `auto_stage`
        phases: u32 = 0, in SpecKeyType::Integer(0, 4096) => {
            shows_in: "Execution trace: stage marks of each lane",
            popart: "executionPhaseSettings.phases",
        }
        /// Sets of IPUs that take turns. With 2, one set loads while the other computes. With 1,
        /// all IPUs compute every phase, and only I/O tiles load meanwhile, with the schedule
        /// `batch_clustered_io`
        stages: u32 = 2, in SpecKeyType::Integer(1, 2) => {
            shows_in: "Execution trace: IPUs that compute, remoteLoad in the sub-lane of the I/O \
            tiles",
            popart: "executionPhaseSettings.stages",
        }
        /// Time at which weights are loaded: in the previous phase (preload), or directly before
        /// their use (on demand)
        weight_io_schedule: ExecutionPhaseIoSchedule = ExecutionPhaseIoSchedule::Preload => {
            shows_in: "Execution trace: remoteLoad during the previous phase, or in the phase",
            popart: "executionPhaseSettings.weightIOSchedule",
        }
        /// Time at which stashed activations are loaded
        activation_io_schedule: ExecutionPhaseIoSchedule = ExecutionPhaseIoSchedule::Preload => {
            shows_in: "Execution trace: remoteLoad during the previous phase, or in the phase",
            popart: "executionPhaseSettings.activationIOSchedule",
        }
        /// Time at which optimiser state is loaded; preload requires an update without gradient
        /// accumulation
        optimizer_state_io_schedule: ExecutionPhaseIoSchedule = ExecutionPhaseIoSchedule::OnDemand => {
            shows_in: "Execution trace: remoteLoad during the previous update, or in the update; \
            Memory",
            popart: "executionPhaseSettings.optimizerStateIOSchedule",
        }
        /// Time at which gradient accumulators are loaded
        accumulator_io_schedule: ExecutionPhaseIoSchedule = ExecutionPhaseIoSchedule::Preload => {
            shows_in: "Execution trace: remoteLoad during the previous phase, or in the phase; \
            Memory",
            popart: "executionPhaseSettings.accumulatorIOSchedule",
        }
        /// Order of the updates of a phase: weight by weight; or in batches: all loads, reductions
        /// over replicas, updates and stores; or batches with the state loaded at the start of the
        /// phase. With one set of IPUs, only the last loads the next phase beside this one
        schedule: ExecutionPhaseSchedule = ExecutionPhaseSchedule::Interleaving => {
            shows_in: "Execution trace: remote buffer copies of the updates; Memory",
            popart: "executionPhaseSettings.schedule",
        }
    }
}

spec_table! {
    /// Parts of a micro-batch that are processed one after the other.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BatchSerializationSettings {
        /// Equal parts (compute batches) that a phase or stage computes one after another with the
        /// same weights; 0 or 1 for the whole micro-batch at once
        factor: u64 = 0, in SpecKeyType::Integer(0, 1024) => {
            shows_in: "Execution trace: `…/batch0`, `…/batch1`; Memory: smaller activations",
            popart: "batchSerializationSettings.factor",
        }
    }
}

impl BatchSerializationSettings {
    /// The number of parts of a micro-batch.
    pub(crate) fn compute_batches(self) -> u64 {
        self.factor.max(1)
    }
}
