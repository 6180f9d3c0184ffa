//! Pipeline schedules: the time of each pass of each stage.
//!
//! A schedule assigns every pass of every stage a slot relative to the start of a micro-batch.
//! Micro-batches start at a fixed distance in slots. In PopART's form of the grouped schedule of
//! `S` stages, the backward pass of stage `s` follows `2(S-1) - s` slots after the start, and the
//! last stage runs both passes in one slot:
//!
//! ```text
//!  slot   0   1   2   3      4      5      6      7
//!  IPU0   F0  F1  F2  F3     F4     F5     F6 B0  F7 B1
//!  IPU1       F0  F1  F2     F3     F4 B0  F5 B1  F6 B2
//!  IPU2           F0  F1     F2 B0  F3 B1  F4 B2  F5 B3
//!  IPU3               F0 B0  F1 B1  F2 B2  F3 B3  F4 B4
//! ```
//!
//! Source: popart willow/src/transforms/pipeline.cpp and docs/notes/transforms/pipelining.md. In
//! the form of Graphcore's memory guide (section 4.2) the last stage keeps its micro-batch for two
//! slots, so that `2S + 1` slots fill the pipeline. In TensorFlow's form each pass of the last stage
//! has a slot of its own, so that the backward pass of stage `s` follows `2S - 1 - s` slots after
//! the start (graphcore/tensorflow driver/visitors/pipeline_visitor_utils.h, `ScheduleOffsets` and
//! `ConstructRampUpSchedule`). Its queues hold `2 (S - s) - 1` micro-batches
//! (driver/passes/pipeline_fifo_inserter.cc) besides the one that they pass on. The interleaved
//! schedule is TensorFlow's, with one pass per IPU and slot.

use super::{PipelinePhase, ScheduleSlot, StageTurn};
use crate::specification::{PipelineSchedule, StashConvention};
use tilescope_report::TrainingPass;

/// The slots of the passes of a micro-batch, counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PipelineTiming {
    pub stages: usize,
    /// Slots from the start of one micro-batch to the start of the next.
    pub spacing: u64,
    /// Slots from the first pass of a micro-batch to its last.
    pub length: u64,
    schedule: PipelineSchedule,
    convention: StashConvention,
    training: bool,
}

impl PipelineTiming {
    /// Makes the timing of a schedule.
    pub(crate) fn new(
        stages: usize,
        schedule: PipelineSchedule,
        convention: StashConvention,
        training: bool,
    ) -> Self {
        let up = stages as u64;
        let length = match (training, schedule, convention) {
            (false, ..) => up,
            (true, PipelineSchedule::Grouped, StashConvention::Popart) => 2 * up - 1,
            (true, PipelineSchedule::Grouped, StashConvention::MemoryGuide) => 2 * up + 1,
            (true, PipelineSchedule::Grouped, StashConvention::Tensorflow)
            | (true, PipelineSchedule::Interleaved | PipelineSchedule::Sequential, _) => 2 * up,
        };
        let spacing = match (training, schedule) {
            (_, PipelineSchedule::Sequential) => length,
            (true, PipelineSchedule::Interleaved) => 2,
            _ => 1,
        };
        debug_assert!(
            stages > 0 && spacing <= length,
            "micro-batches overlap or follow each other"
        );
        Self { stages, spacing, length, schedule, convention, training }
    }

    /// The slot of a stage's pass, counted from the start of its micro-batch.
    pub(crate) fn slot(&self, stage: usize, pass: TrainingPass) -> u64 {
        match pass {
            TrainingPass::Forward => stage as u64,
            _ => self.length - 1 - stage as u64,
        }
    }

    /// The smallest number of micro-batches that fill the pipeline.
    pub(crate) fn fewest_micro_batches(&self) -> u64 {
        self.length.div_ceil(self.spacing)
    }

    /// Micro-batches that the stash of a stage holds. A single one needs no stash, because
    /// the backward pass comes before the next forward pass.
    pub(crate) fn stash_depth(&self, stage: usize) -> u64 {
        if !self.training {
            return 1;
        }
        let to_the_end = (self.stages - stage) as u64;
        match (self.schedule, self.convention) {
            (PipelineSchedule::Sequential, _) => 1,
            (PipelineSchedule::Grouped, StashConvention::Popart) => 2 * (to_the_end - 1) + 1,
            (PipelineSchedule::Grouped, StashConvention::MemoryGuide) => 2 * to_the_end + 1,
            (PipelineSchedule::Grouped, StashConvention::Tensorflow) => 2 * to_the_end,
            (
                PipelineSchedule::Interleaved,
                StashConvention::Popart | StashConvention::Tensorflow,
            ) => to_the_end,
            (PipelineSchedule::Interleaved, StashConvention::MemoryGuide) => self.stages as u64 + 1,
        }
    }

    /// Returns the slots of one iteration over `micro_batches`: ramp-up, main and ramp-down.
    pub(crate) fn slots(&self, micro_batches: u64) -> Vec<ScheduleSlot> {
        let last = self.spacing * (micro_batches - 1) + self.length;
        let slots: Vec<ScheduleSlot> =
            (0..last).map(|at| self.slot_at(at, micro_batches)).collect();
        let passes = if self.training { 2 } else { 1 };
        debug_assert_eq!(
            slots.iter().map(|slot| slot.turns.len() as u64).sum::<u64>(),
            self.stages as u64 * passes * micro_batches,
            "every stage has a turn for every pass of every micro-batch"
        );
        slots
    }

    fn slot_at(&self, at: u64, micro_batches: u64) -> ScheduleSlot {
        let passes: &[TrainingPass] = if self.training {
            &[TrainingPass::Forward, TrainingPass::Backward]
        } else {
            &[TrainingPass::Forward]
        };
        let mut turns = Vec::new();
        for stage in 0..self.stages {
            for pass in passes.iter().copied() {
                let Some(start) = at.checked_sub(self.slot(stage, pass)) else { continue };
                let micro_batch = start / self.spacing;
                if start.is_multiple_of(self.spacing) && micro_batch < micro_batches {
                    turns.push(StageTurn { stage, pass, micro_batch });
                }
            }
        }
        let phase = if at + self.spacing < self.length {
            PipelinePhase::RampUp
        } else if at < self.spacing * micro_batches {
            PipelinePhase::Main
        } else {
            PipelinePhase::RampDown
        };
        ScheduleSlot { phase, turns, stage_copies_follow: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    const CONVENTIONS: [StashConvention; 3] =
        [StashConvention::Popart, StashConvention::MemoryGuide, StashConvention::Tensorflow];

    /// The slot in which a stage makes a pass for a micro-batch.
    fn when(slots: &[ScheduleSlot], stage: usize, pass: TrainingPass, micro_batch: u64) -> usize {
        let wanted = StageTurn { stage, pass, micro_batch };
        slots.iter().position(|slot| slot.turns.contains(&wanted)).expect("every turn is taken")
    }

    fn any_form() -> impl Strategy<Value = PipelineTiming> {
        let schedule = prop_oneof![
            Just(PipelineSchedule::Grouped),
            Just(PipelineSchedule::Interleaved),
            Just(PipelineSchedule::Sequential)
        ];
        let convention = proptest::sample::select(CONVENTIONS.to_vec());
        (1usize..9, schedule, convention).prop_map(|(stages, schedule, convention)| {
            PipelineTiming::new(stages, schedule, convention, true)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn each_micro_batch_goes_up_and_down_the_stages_within_its_stash(
            form in any_form(), extra in 0u64..8
        ) {
            let micro_batches = form.fewest_micro_batches() + extra;
            let slots = form.slots(micro_batches);
            let stages = form.stages;
            for micro_batch in 0..micro_batches {
                let at = |stage, pass| when(&slots, stage, pass, micro_batch);
                for stage in 1..stages {
                    prop_assert_eq!(at(stage, TrainingPass::Forward), at(stage - 1, TrainingPass::Forward) + 1);
                    prop_assert_eq!(at(stage - 1, TrainingPass::Backward), at(stage, TrainingPass::Backward) + 1);
                }
                for stage in 0..stages {
                    // Forward passes that begin before this backward pass ends fit in the stash.
                    let back = at(stage, TrainingPass::Backward);
                    let begun = (micro_batch..micro_batches)
                        .take_while(|later| when(&slots, stage, TrainingPass::Forward, *later) <= back)
                        .count() as u64;
                    prop_assert!(begun <= form.stash_depth(stage).max(1));
                }
            }
        }

        #[test]
        fn all_passes_happen_once(form in any_form(), extra in 0u64..8) {
            let micro_batches = form.fewest_micro_batches() + extra;
            let turns: usize =
                form.slots(micro_batches).iter().map(|slot| slot.turns.len()).sum();
            prop_assert_eq!(turns as u64, 2 * form.stages as u64 * micro_batches);
        }
    }

    #[test]
    fn all_stages_are_busy_exactly_in_the_main_phase() {
        for stages in [2usize, 4, 8] {
            for convention in CONVENTIONS {
                let form = PipelineTiming::new(stages, PipelineSchedule::Grouped, convention, true);
                for slot in form.slots(30) {
                    let full = slot.turns.len() == 2 * stages;
                    assert_eq!(full, slot.phase == PipelinePhase::Main);
                }
            }
        }
    }

    #[test]
    fn interleaved_ipus_make_one_pass_at_a_time() {
        let form =
            PipelineTiming::new(4, PipelineSchedule::Interleaved, StashConvention::Popart, true);
        for slot in form.slots(10) {
            let mut stages: Vec<usize> = slot.turns.iter().map(|turn| turn.stage).collect();
            stages.dedup();
            assert_eq!(stages.len(), slot.turns.len(), "{slot:?}");
        }
    }
}
