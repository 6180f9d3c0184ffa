//! Measured samples as the steps of a run, and the programs that the steps execute.
//!
//! Steps of the same kind and phase that work for the same operations with the same kernels are
//! executions of one program. A bar begins when the last tile of its IPU begins, as in every
//! report. Bars of a lane do not overlap: if tiles are in different steps at a time, the step that
//! ends later begins after the other one. Samples keep the measured cycles.

use super::steps::{StepKey, StepKeys};
use super::{MeasuredProfile, ProfileError};
use crate::model::*;
use crate::units::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// Tiles of the chip that all supported tools target (see `compilation`).
pub(super) const TILES_PER_IPU: u32 = 1472;
/// The maximum number of chips of a program: all of a pod of 64.
const MAX_IPUS: u32 = 64;
/// The number of programs above which phases are no longer distinguished.
const MAX_PROGRAMS: usize = 1 << 16;

/// The measurements, in the order of the run.
pub(super) struct MeasuredRun<'p> {
    pub(super) profile: &'p MeasuredProfile<'p>,
    /// Cycles of each sample.
    cycles: &'p [CycleRange],
    /// Samples by step, and in a step by tile and time.
    order: Vec<u32>,
    pub(super) ipus: u32,
    /// The steps, in the order of their ends.
    pub(super) steps: Vec<MeasuredStep>,
    pub(super) programs: Vec<MeasuredProgram>,
}

/// A step with all its samples.
pub(super) struct MeasuredStep {
    key: StepKey,
    pub(super) program: ProgramId,
    /// Range of its samples in `order`.
    samples: Range<usize>,
    pub(super) on_ipus: Box<[StepOnIpu]>,
}

/// The key of a program: steps with the same key are its executions.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ProgramKey {
    pub(super) kind: SampleKind,
    /// Phase and position in it; `None` if there are too many phases.
    pub(super) place: Option<(u32, u32)>,
    /// Operations and kernels, by their texts in the label table.
    pub(super) work: Vec<(u32, u32)>,
}

pub(super) struct MeasuredProgram {
    pub(super) key: ProgramKey,
    /// The operation of most samples of its first execution, by its text in the label table.
    pub(super) operation: u32,
}

impl<'p> MeasuredRun<'p> {
    pub(super) fn new(
        profile: &'p MeasuredProfile<'p>,
        keys: &StepKeys,
        cycles: &'p [CycleRange],
    ) -> Result<Self, ProfileError> {
        let last_tile = profile.samples.iter().map(|sample| sample.tile).max().unwrap_or(0);
        let ipus = last_tile / TILES_PER_IPU + 1;
        if ipus > MAX_IPUS {
            let problem = format!("tile {last_tile} is beyond the last tile of {MAX_IPUS} IPUs");
            return Err(ProfileError::Damaged(problem));
        }
        let (order, bounds) = by_step(profile, keys, cycles);
        let steps = Vec::new();
        let programs = Vec::new();
        let mut run = Self { profile, cycles, order, ipus, steps, programs };
        run.steps = keys
            .keys()
            .iter()
            .zip(bounds)
            .map(|(key, samples)| MeasuredStep {
                key: *key,
                program: ProgramId(0),
                on_ipus: run.on_ipus(&samples),
                samples,
            })
            .collect();
        run.put_in_order();
        run.find_programs()?;
        Ok(run)
    }

    /// Indices of the samples of a step, by tile and time.
    fn indexes(&self, samples: &Range<usize>) -> impl Iterator<Item = usize> + '_ {
        self.order.get(samples.clone()).unwrap_or_default().iter().map(|index| *index as usize)
    }

    pub(super) fn samples_of(&self, step: &MeasuredStep) -> impl Iterator<Item = usize> + '_ {
        self.indexes(&step.samples)
    }

    pub(super) fn kind(&self, sample: usize) -> SampleKind {
        self.profile.labels.kind(self.profile.samples[sample].label)
    }

    pub(super) fn tile(&self, sample: usize) -> TileId {
        TileId(self.profile.samples[sample].tile)
    }

    /// The start and end of a sample.
    pub(super) fn cycles_of(&self, sample: usize) -> CycleRange {
        self.cycles[sample]
    }

    /// The text of a sample's kernel in the label table.
    pub(super) fn kernel(&self, sample: usize) -> u32 {
        self.profile.labels.operation_and_kernel(self.profile.samples[sample].label).1
    }

    /// The bars of the samples of a step on each IPU, of the tiles that are not idle if there are
    /// any.
    fn on_ipus(&self, samples: &Range<usize>) -> Box<[StepOnIpu]> {
        let all_idle = self.indexes(samples).all(|sample| self.kind(sample) == SampleKind::Idle);
        let busy: Vec<usize> = self
            .indexes(samples)
            .filter(|sample| all_idle || self.kind(*sample) != SampleKind::Idle)
            .collect();
        let find_ipu = |sample: usize| IpuId(self.tile(sample).0 / TILES_PER_IPU);
        let by_ipu = busy.chunk_by(|one, next| find_ipu(*one) == find_ipu(*next));
        by_ipu.filter_map(|own| Some(self.on_ipu(find_ipu(*own.first()?), own))).collect()
    }

    fn on_ipu(&self, ipu: IpuId, samples: &[usize]) -> StepOnIpu {
        let iter_ranges = || samples.iter().map(|sample| self.cycles[*sample]);
        let iter_starts = || iter_ranges().map(|range| range.start);
        let iter_ends = || iter_ranges().map(|range| range.end);
        let longest = iter_ranges().map(|range| range.length()).max().unwrap_or_default();
        let sum: Cycles = iter_ranges().map(|range| range.length()).sum();
        let mean = sum.as_f64() / samples.len().max(1) as f64;
        let tiles = samples.chunk_by(|one, next| self.tile(*one) == self.tile(*next)).count();
        let balance = if longest.is_zero() { 1.0 } else { mean / longest.as_f64() };
        #[expect(clippy::cast_possible_truncation, reason = "a share, which has few digits")]
        let active_tile_balance = balance.min(1.0) as f32;
        StepOnIpu {
            ipu,
            sub_lane: 0,
            from_min: iter_starts().min().unwrap_or_default(),
            from_max: iter_starts().max().unwrap_or_default(),
            to_min: iter_ends().min().unwrap_or_default(),
            to_max: iter_ends().max().unwrap_or_default(),
            // An IPU has far fewer tiles.
            active_tiles: u32::try_from(tiles).unwrap_or(u32::MAX),
            active_tile_balance,
            bytes_in: Bytes::ZERO,
            bytes_out: Bytes::ZERO,
        }
    }

    /// Sorts steps by their ends, and moves the start of bars of a lane to the end of the previous
    /// one.
    fn put_in_order(&mut self) {
        let find_last = |step: &MeasuredStep, cycle: fn(&StepOnIpu) -> Cycles| {
            step.on_ipus.iter().map(cycle).max().unwrap_or_default()
        };
        self.steps.sort_by_cached_key(|step| {
            let StepKey { epoch, phase, ordinal, .. } = step.key;
            let cycles = (find_last(step, |of| of.to_max), find_last(step, |of| of.from_max));
            (cycles, epoch, phase, step.samples.start, ordinal)
        });
        let mut ends = vec![Cycles::ZERO; self.ipus as usize];
        for on_ipu in self.steps.iter_mut().flat_map(|step| step.on_ipus.iter_mut()) {
            let Some(end) = ends.get_mut(on_ipu.ipu.index()) else { continue };
            on_ipu.from_max = on_ipu.from_max.max(*end);
            on_ipu.to_max = on_ipu.to_max.max(on_ipu.from_max);
            *end = on_ipu.to_max;
        }
    }

    /// Finds the program that each step executes.
    fn find_programs(&mut self) -> Result<(), ProfileError> {
        for with_place in [true, false] {
            let mut numbers: HashMap<ProgramKey, ProgramId> = HashMap::new();
            let mut programs = Vec::new();
            let mut of_steps = Vec::new();
            for step in &self.steps {
                let key = self.program_key(step, with_place);
                let next = ProgramId::from_index(programs.len());
                of_steps.push(*numbers.entry(key.clone()).or_insert_with(|| {
                    let operation = self.usual_operation(step);
                    programs.push(MeasuredProgram { key, operation });
                    next
                }));
            }
            if programs.len() <= MAX_PROGRAMS {
                self.steps.iter_mut().zip(of_steps).for_each(|(step, of)| step.program = of);
                self.programs = programs;
                return Ok(());
            }
        }
        Err(ProfileError::Damaged(format!(
            "its steps work for more than {MAX_PROGRAMS} different operations"
        )))
    }

    fn program_key(&self, step: &MeasuredStep, with_place: bool) -> ProgramKey {
        let StepKey { phase, kind, ordinal, .. } = step.key;
        let labels: BTreeSet<u32> = self
            .samples_of(step)
            .map(|sample| self.profile.samples[sample].label)
            .filter(|label| self.profile.labels.kind(*label) == kind)
            .collect();
        let work = labels.iter().map(|label| self.profile.labels.operation_and_kernel(*label));
        let work: BTreeSet<(u32, u32)> = work.collect();
        let place = if with_place { Some((phase, ordinal)) } else { None };
        ProgramKey { kind, place, work: work.into_iter().collect() }
    }

    /// The operation with most samples in a step; the first one of several.
    fn usual_operation(&self, step: &MeasuredStep) -> u32 {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for sample in self.samples_of(step) {
            let label = self.profile.samples[sample].label;
            *counts.entry(self.profile.labels.operation_and_kernel(label).0).or_default() += 1;
        }
        let most = counts.values().max().copied();
        let usual = counts.into_iter().find(|(_, count)| Some(*count) == most);
        usual.map_or(0, |(operation, _)| operation)
    }

    /// The number of steps times IPUs.
    pub(super) fn bars(&self) -> u64 {
        self.steps.iter().map(|step| step.on_ipus.len() as u64).sum()
    }

    pub(super) fn execution(&self, step: &MeasuredStep) -> ExecutionStep {
        ExecutionStep::new(step.program, step.on_ipus.to_vec())
    }

    pub(super) fn tile_sample(&self, index: usize) -> TileSample {
        let sample = &self.profile.samples[index];
        TileSample {
            tile: TileId(sample.tile),
            label: sample.label,
            phase: sample.phase,
            epoch: sample.epoch,
            local_index: sample.local_index,
            cycles: self.cycles[index],
            exchange_cycles: Cycles(sample.exchange_cycles.into()),
            activities: self.profile.activities[sample.activities.clone()].to_vec(),
        }
    }

    /// Epochs as iterations, if there are several and their steps do not interleave.
    pub(super) fn iterations(&self) -> Vec<TraceMark> {
        let mut marks = Vec::new();
        let mut first = 0u64;
        for steps in self.steps.chunk_by(|one, next| one.key.epoch == next.key.epoch) {
            let iter_bars = || steps.iter().flat_map(|step| step.on_ipus.iter());
            let epoch = steps.first().map_or(0, |step| step.key.epoch);
            let end = first + steps.len() as u64;
            // Each lane begins with its first bar.
            let start = steps.first().into_iter().flat_map(|step| step.on_ipus.iter());
            let cycles = CycleRange::new(
                start.map(|on_ipu| on_ipu.from_max).min().unwrap_or_default(),
                iter_bars().map(|on_ipu| on_ipu.to_max).max().unwrap_or_default(),
            );
            marks.push(TraceMark {
                kind: MarkKind::Iteration,
                label: format!("epoch {epoch}"),
                ipu: None,
                pass: None,
                index: epoch.into(),
                steps: StepId(first)..StepId(end),
                cycles,
            });
            first = end;
        }
        let epochs: BTreeSet<u64> = marks.iter().map(|mark| mark.index).collect();
        let follow = marks.len() > 1 && epochs.len() == marks.len();
        if follow && self.ipus == 1 { marks } else { Vec::new() }
    }
}

/// Sorts samples by step, and within a step by tile and time. Also returns the range of each step.
fn by_step(
    profile: &MeasuredProfile<'_>,
    keys: &StepKeys,
    cycles: &[CycleRange],
) -> (Vec<u32>, Vec<Range<usize>>) {
    // Fewer than 2^32: each takes a word of a file, which is not that long.
    let mut order: Vec<u32> = (0..).take(profile.samples.len()).collect();
    let steps = keys.steps();
    order.sort_by_key(|index| {
        let at = *index as usize;
        (steps[at], profile.samples[at].tile, cycles[at].start, *index)
    });
    let mut bounds = Vec::with_capacity(keys.keys().len());
    let mut first = 0;
    for own in order.chunk_by(|one, next| steps[*one as usize] == steps[*next as usize]) {
        bounds.push(first..first + own.len());
        first += own.len();
    }
    (order, bounds)
}
