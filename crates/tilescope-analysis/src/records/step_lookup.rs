//! Steps that are requested one by one, as joins do.
//!
//! Reading a step decodes all those around it. They are kept, so that a join in the order of steps
//! decodes each part of a lane once.

use super::step_merge::{MergedStep, batch_of};
use super::{RecordError, RecordReader};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;
use tilescope_report::trace::Trace;
use tilescope_report::units::StepId;

/// The steps around the most recently requested ones.
#[derive(Default)]
pub(super) struct StepLookup {
    /// Those of each lane, with and without the data of rows.
    held: Mutex<HashMap<(usize, bool), HeldSteps>>,
}

/// Consecutive steps of a lane.
struct HeldSteps {
    /// The ids among which these are all steps of the lane.
    ids: Range<StepId>,
    steps: Vec<MergedStep>,
}

impl StepLookup {
    /// The step with an id on a lane, if it is there.
    pub(super) fn step(
        &self,
        run: &RecordReader,
        trace: &Trace,
        (lane, id): (usize, StepId),
        as_rows: bool,
    ) -> Result<Option<MergedStep>, RecordError> {
        let Ok(mut held) = self.held.lock() else { return Err(RecordError::Interrupted) };
        let key = (lane, as_rows);
        if !held.get(&key).is_some_and(|held| held.ids.contains(&id)) {
            let Some(found) = read_around(run, trace, (lane, id), as_rows)? else {
                return Ok(None);
            };
            held.insert(key, found);
        }
        let steps = held.get(&key).map_or(&[][..], |held| &held.steps);
        let at = steps.binary_search_by_key(&id, |(step, _)| step.step);
        Ok(at.ok().and_then(|at| steps.get(at)).copied())
    }
}

/// Reads the steps of a lane around an id; `None` without the lane.
fn read_around(
    run: &RecordReader,
    trace: &Trace,
    (at, id): (usize, StepId),
    as_rows: bool,
) -> Result<Option<HeldSteps>, RecordError> {
    let Some(lane) = trace.lane(at) else { return Ok(None) };
    let batch = batch_of(trace.lanes().len());
    let position = lane.positions_of(&(id..StepId(id.0.saturating_add(1))))?.start;
    let start = position - position % batch;
    run.check_time(usize::try_from(batch).unwrap_or(0))?;
    let steps = if as_rows {
        lane.rows_at(start..start + batch)?
    } else {
        lane.steps_at(start..start + batch)?.into_iter().map(|step| (step, None)).collect()
    };
    let first = steps.first().map_or(id, |(step, _)| step.step.min(id));
    let end = match steps.last() {
        Some((last, _)) if last.position + 1 < lane.info().steps => StepId(last.step.0 + 1),
        _ => StepId(u64::MAX),
    };
    Ok(Some(HeldSteps { ids: first..end, steps }))
}
