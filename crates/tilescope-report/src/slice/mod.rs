//! A part of a run as a separate report: steps and marks of some cycles, on some IPUs, with the
//! whole compiled program.
//!
//! A step that shares a cycle with the window is in the slice as a whole, as in every other query
//! for the steps of a window. Cycles count from the first of them. Marks keep the part that covers
//! steps of the slice. Data that a step reads may have been written before the slice, so the data
//! flow of a slice is not checked. Figures about whole host calls are left out of a slice that cuts
//! one.

mod foreign;
mod kept_steps;
mod marks;

use crate::error::ReportError;
use crate::model::{ExecutionStep, SliceOrigin, StepOnIpu};
use crate::reader::{Report, ReportOrigin};
use crate::trace::{LaneInfo, Trace};
use crate::units::{CycleRange, Cycles, IpuId, ReplicaClassId, StepId};
use crate::writer::{ReportMeta, ReportWriter, StepLayout};
use kept_steps::KeptSteps;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of step ids read at a time.
const BATCH: u64 = 1 << 12;

/// The selection of the part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceSelection {
    /// Steps that share a cycle with this window.
    pub window: CycleRange,
    /// Only these IPUs; `None` selects all.
    pub ipus: Option<Vec<u32>>,
}

/// A lane, with its steps in the slice.
struct SlicedLane {
    positions: Range<u64>,
    /// Ids of the first and the last of them.
    ids: (StepId, StepId),
}

/// The cut, lane by lane.
struct SlicePlan {
    trace: Trace,
    /// Every lane, with positions of its steps in the slice; the range is empty if there are none.
    lanes: Vec<(LaneInfo, Range<u64>)>,
    sliced: BTreeMap<(ReplicaClassId, IpuId, u8), SlicedLane>,
    /// The cycle that becomes cycle 0 of the slice.
    origin: Cycles,
    /// The cycles from the first start to the last end of any step.
    range: CycleRange,
    /// Range of the ids of steps in the slice.
    ids: Range<StepId>,
}

impl SlicePlan {
    fn has(&self, class: ReplicaClassId, on_ipu: &StepOnIpu, step: StepId) -> bool {
        let lane = self.sliced.get(&(class, on_ipu.ipu, on_ipu.sub_lane));
        lane.is_some_and(|lane| (lane.ids.0..=lane.ids.1).contains(&step))
    }

    fn bars(&self) -> u64 {
        self.sliced.values().map(|lane| lane.positions.end - lane.positions.start).sum()
    }
}

impl Report {
    /// Writes a part of the run as a report in `directory`. Returns its path. `progress` gets a
    /// share from 0 to 1. Setting `cancel` aborts with [`ReportError::Cancelled`] and leaves
    /// nothing behind.
    ///
    /// # Errors
    /// The run has no step in the window, a part of it cannot be read, or the directory cannot be
    /// written.
    pub fn write_slice(
        &self,
        selection: &SliceSelection,
        directory: &Path,
        progress: &mut dyn FnMut(f64),
        cancel: &Arc<AtomicBool>,
    ) -> Result<PathBuf, ReportError> {
        self.prepare_trace(&mut |_| {}, cancel)?;
        let plan = self.plan_slice(selection)?;
        let origin = SliceOrigin {
            report: self.path().display().to_string(),
            cycles: (selection.window.start.0, selection.window.end.0),
            first_cycle: plan.origin.0,
            ipus: selection.ipus.clone(),
        };
        let mut slice = Slicing { report: self, plan: &plan, progress, cancel };
        match self.origin() {
            ReportOrigin::Tilescope => slice.write(&origin, directory),
            ReportOrigin::Foreign => slice.write_foreign(&origin, directory),
        }
    }

    /// True if it is a part of another report.
    pub fn is_slice(&self) -> bool {
        self.meta().contains_key("slice")
    }

    /// The report that this one is a slice of, if the entry can be parsed.
    pub fn slice_origin(&self) -> Option<SliceOrigin> {
        serde_json::from_str(self.meta().get("slice")?).ok()
    }

    fn plan_slice(&self, selection: &SliceSelection) -> Result<SlicePlan, ReportError> {
        let nothing =
            |problem: String| ReportError::EmptySlice { problem, path: self.path().into() };
        let Some(trace) = self.trace()? else {
            return Err(nothing("the program was only compiled".to_owned()));
        };
        let mut plan = SlicePlan {
            trace: trace.clone(),
            lanes: Vec::new(),
            sliced: BTreeMap::new(),
            origin: Cycles::MAX,
            range: CycleRange::default(),
            ids: StepId(u64::MAX)..StepId(0),
        };
        for class in trace.classes() {
            for (index, info) in class.lanes().iter().enumerate() {
                let Some(lane) = class.lane(index) else { continue };
                let chosen = selection.ipus.as_ref();
                let positions = if chosen.is_none_or(|ipus| ipus.contains(&info.ipu.0)) {
                    lane.touching(selection.window)?
                } else {
                    0..0
                };
                plan.lanes.push((*info, positions.clone()));
                let Some(last) = positions.end.checked_sub(1).filter(|_| !positions.is_empty())
                else {
                    continue;
                };
                let Some(first) = lane.step(positions.start)? else { continue };
                let Some(last) = lane.step(last)? else { continue };
                let ids = (first.step, last.step);
                plan.ids = plan.ids.start.min(ids.0)..plan.ids.end.max(ids.1 + 1);
                let range = CycleRange::new(first.range.start, last.range.end);
                plan.range = if plan.sliced.is_empty() { range } else { plan.range.union(range) };
                let start =
                    self.part(info, first.step)?.map_or(first.range.start, |of| of.from_min);
                plan.origin = plan.origin.min(start);
                let lane = SlicedLane { positions, ids };
                plan.sliced.insert((info.class, info.ipu, info.sub_lane), lane);
            }
        }
        if plan.sliced.is_empty() {
            let CycleRange { start, end } = selection.window;
            let run = trace.range();
            let of_run = format!("the run is {}..{}", run.start.0, run.end.0);
            let problem = format!("no step shares a cycle with {}..{}: {of_run}", start.0, end.0);
            return Err(nothing(problem));
        }
        Ok(plan)
    }

    /// The part of a step on a lane.
    fn part(&self, lane: &LaneInfo, step: StepId) -> Result<Option<StepOnIpu>, ReportError> {
        let details = self.step_of_class(lane.class, step)?;
        let mut parts = details.into_iter().flat_map(|details| details.ipus);
        Ok(parts.find(|part| (part.ipu, part.sub_lane) == (lane.ipu, lane.sub_lane)))
    }
}

/// A slice under construction.
struct Slicing<'a> {
    report: &'a Report,
    plan: &'a SlicePlan,
    progress: &'a mut dyn FnMut(f64),
    cancel: &'a Arc<AtomicBool>,
}

impl Slicing<'_> {
    fn write(&mut self, origin: &SliceOrigin, directory: &Path) -> Result<PathBuf, ReportError> {
        let report = self.report;
        let mut compilation = report.compilation()?;
        if self.cuts_a_run()? {
            // Samples and host figures describe whole host calls.
            compilation.batching = None;
            compilation.host = None;
        }
        compilation.notes.push(origin.sentence());
        let generator = report.meta().get("generator").cloned().unwrap_or_default();
        let spec = report.spec().map(str::to_owned);
        let meta = ReportMeta { generator, spec, imported: report.imported_model() };
        let mut writer = ReportWriter::create(directory, &meta)?;
        writer.slice_of(origin)?;
        writer.step_layout(StepLayout::for_bars(self.plan.bars()))?;
        writer.compilation(&compilation)?;
        drop(compilation);
        let kept = self.steps(&mut writer)?;
        self.marks(&mut writer, &kept)?;
        writer.finish()
    }

    /// Writes the steps under new ids.
    fn steps(&mut self, writer: &mut ReportWriter) -> Result<KeptSteps, ReportError> {
        let mut kept = KeptSteps::default();
        let Range { start: first, end } = self.plan.ids.clone();
        let mut next = first;
        while next < end {
            let batch = next..StepId(next.0.saturating_add(BATCH)).min(end);
            for (id, step) in self.batch(&batch)? {
                writer.step(&step)?;
                kept.push(id);
            }
            next = batch.end;
            let done = (next.0 - first.0) as f64 / (end.0 - first.0) as f64;
            (self.progress)(done);
            self.go_on()?;
        }
        Ok(kept)
    }

    /// Steps of the slice with these ids, with their parts inside the slice.
    fn batch(&self, ids: &Range<StepId>) -> Result<BTreeMap<StepId, ExecutionStep>, ReportError> {
        let mut steps: BTreeMap<StepId, ExecutionStep> = BTreeMap::new();
        for class in self.plan.trace.classes().map(|trace| trace.class()) {
            for details in self.report.steps_of_class(class, ids.clone(), usize::MAX)? {
                let Some(program) = details.program else { continue };
                let parts = details.ipus.into_iter();
                let parts = parts.filter(|part| self.plan.has(class, part, details.id));
                let parts: Vec<StepOnIpu> = parts.map(|part| self.moved(part)).collect();
                if parts.is_empty() {
                    continue;
                }
                let step = steps
                    .entry(details.id)
                    .or_insert_with(|| ExecutionStep::new(program, Vec::new()));
                match class {
                    ReplicaClassId(0) => step.ipus = parts,
                    _ => step.other_replicas.extend(parts.into_iter().map(|part| (class, part))),
                }
            }
        }
        for step in steps.values_mut() {
            step.ipus.sort_by_key(|part| (part.ipu, part.sub_lane));
            step.other_replicas.sort_by_key(|(class, part)| (*class, part.ipu, part.sub_lane));
        }
        Ok(steps)
    }

    /// The same part in cycles of the slice.
    fn moved(&self, part: StepOnIpu) -> StepOnIpu {
        let origin = self.plan.origin;
        StepOnIpu {
            from_min: part.from_min.saturating_sub(origin),
            from_max: part.from_max.saturating_sub(origin),
            to_min: part.to_min.saturating_sub(origin),
            to_max: part.to_max.saturating_sub(origin),
            ..part
        }
    }

    fn go_on(&self) -> Result<(), ReportError> {
        if self.cancel.load(Ordering::Relaxed) { Err(ReportError::Cancelled) } else { Ok(()) }
    }
}
