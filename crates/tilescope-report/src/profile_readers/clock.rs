//! Converts counters of tiles to cycles of one run.
//!
//! Each tile has its own counter of 32 bits, which wraps after seconds. A sample begins within half
//! the counter's range of the end of the previous one, and ends within one range of its own start.
//! Between tiles, samples of one step are within half the range of each other.
//!
//! Most tools align counters to one origin. Without alignment, tiles would leave a barrier before
//! others arrive at it. In that case every tile is shifted so that all leave the median barrier
//! together.

use super::steps::StepKeys;
use super::{MeasuredProfile, ProfileError, RawSample};
use crate::limits::MAX_CYCLES;
use crate::model::SampleKind;
use crate::units::{CycleRange, Cycles};
use std::collections::HashMap;
use std::ops::Range;

/// Cycles after which a counter wraps.
const WRAP: i64 = 1 << 32;

/// The largest variation, in cycles, of the delay with which a tile leaves barriers relative to
/// another one.
const MAX_BARRIER_JITTER: i64 = 1024;

/// Cycles of every sample, in the order of the profile's samples.
pub(super) fn cycles(
    profile: &mut MeasuredProfile<'_>,
    keys: &StepKeys,
) -> Result<Vec<CycleRange>, ProfileError> {
    let mut starts = unwrapped(profile);
    join_wraps(keys, &mut starts);
    if let Some(barriers) = broken_barriers(profile, keys, &starts) {
        let note = match origins(profile, keys, &barriers, &starts) {
            Some(origins) => {
                for (tile, origin) in keys.tiles().zip(&origins) {
                    let own = starts.get_mut(tile).unwrap_or_default();
                    own.iter_mut().for_each(|start| *start -= origin);
                }
                let moved = origins.iter().filter(|origin| **origin != 0).count();
                format!(
                    "The counters of {moved} tiles had other origins. They were shifted so that \
                     tiles leave barriers together."
                )
            }
            None => "Tiles leave barriers before other tiles arrive.".to_owned(),
        };
        profile.notes.push(note);
    }
    to_origin(profile, &mut starts);
    let lengths = profile.samples.iter().map(length);
    let ranges = starts.iter().zip(lengths).map(|(start, length)| {
        let end = u64::try_from(start + length).ok().filter(|end| *end <= MAX_CYCLES.0);
        let end = end.ok_or_else(|| ProfileError::Damaged(too_long()))?;
        Ok(CycleRange::new(Cycles(end - length.unsigned_abs()), Cycles(end)))
    });
    ranges.collect()
}

fn too_long() -> String {
    format!("its samples span more than {} cycles", MAX_CYCLES.0)
}

/// Cycles of a sample, modulo the range of its counter.
fn length(sample: &RawSample) -> i64 {
    sample.end.wrapping_sub(sample.start).into()
}

fn is_sync(profile: &MeasuredProfile<'_>, sample: &RawSample) -> bool {
    profile.labels.kind(sample.label) == SampleKind::Synchronization
}

/// Starts of samples, with the wraps of each tile's counter removed.
fn unwrapped(profile: &MeasuredProfile<'_>) -> Vec<i64> {
    let mut before: Option<(u32, i64, u32)> = None;
    let find_start = |sample: &RawSample| {
        let start = match before {
            Some((tile, end, counter)) if tile == sample.tile => {
                // Signed: an overlap with the previous sample is not taken for a wrap.
                end + i64::from(sample.start.wrapping_sub(counter) as i32)
            }
            _ => sample.start.into(),
        };
        before = Some((sample.tile, start + length(sample), sample.end));
        start
    };
    profile.samples.iter().map(find_start).collect()
}

/// Shifts tiles by whole ranges of the counter to bring samples of the same steps closest together.
fn join_wraps(keys: &StepKeys, starts: &mut [i64]) {
    let mut known: HashMap<u32, i64> = HashMap::new();
    for tile in keys.tiles() {
        let own = starts.get_mut(tile.clone()).unwrap_or_default();
        let steps = keys.steps_of(tile.clone());
        let shared = own.iter().zip(steps).find_map(|(start, step)| {
            known.get(step).map(|other| (start - other + WRAP / 2).div_euclid(WRAP) * WRAP)
        });
        own.iter_mut().for_each(|start| *start -= shared.unwrap_or(0));
        for (start, step) in own.iter().zip(steps) {
            known.entry(*step).or_insert(*start);
        }
    }
}

/// A barrier: the arrival of the last tile and the departure of the first.
#[derive(Clone, Copy)]
struct Barrier {
    last_start: i64,
    first_end: i64,
    /// The departure of the first tile of the profile.
    reference: i64,
}

/// The barriers by step, if tiles leave some of them before others arrive.
fn broken_barriers(
    profile: &MeasuredProfile<'_>,
    keys: &StepKeys,
    starts: &[i64],
) -> Option<HashMap<u32, Barrier>> {
    let mut barriers: HashMap<u32, Barrier> = HashMap::new();
    let samples = profile.samples.iter().zip(starts).zip(keys.steps());
    for ((sample, start), step) in samples {
        if !is_sync(profile, sample) {
            continue;
        }
        let end = start + length(sample);
        let new = Barrier { last_start: *start, first_end: end, reference: end };
        let barrier = barriers.entry(*step).or_insert(new);
        barrier.last_start = barrier.last_start.max(*start);
        barrier.first_end = barrier.first_end.min(end);
    }
    let is_broken = |step| {
        let barrier: Option<&Barrier> = barriers.get(step);
        barrier.is_some_and(|barrier| barrier.first_end < barrier.last_start)
    };
    if keys.steps().iter().any(is_broken) { Some(barriers) } else { None }
}

/// The offsets of the tiles' counters from that of the first tile: the medians of their delays at
/// barriers. `None` if the delays of a tile vary too much, so that the counters cannot be the
/// reason.
fn origins(
    profile: &MeasuredProfile<'_>,
    keys: &StepKeys,
    barriers: &HashMap<u32, Barrier>,
    starts: &[i64],
) -> Option<Vec<i64>> {
    let find_origin = |tile: Range<usize>| {
        let samples = profile.samples.get(tile.clone())?.iter();
        let own = samples.zip(starts.get(tile.clone())?).zip(keys.steps_of(tile));
        let syncs = own.filter(|((sample, _), _)| is_sync(profile, sample));
        let late = syncs.filter_map(|((sample, start), step)| {
            Some(start + length(sample) - barriers.get(step)?.reference)
        });
        let mut late: Vec<i64> = late.collect();
        late.sort_unstable();
        let Some(&median) = late.get(late.len() / 2) else { return Some(0) };
        let differs = late.iter().any(|late| (late - median).abs() > MAX_BARRIER_JITTER);
        if !differs { Some(median) } else { None }
    };
    keys.tiles().map(find_origin).collect()
}

/// Lets the run begin at 0 if its counters had been running for long.
fn to_origin(profile: &mut MeasuredProfile<'_>, starts: &mut [i64]) {
    let ends = starts.iter().zip(&profile.samples).map(|(start, sample)| start + length(sample));
    let first = starts.iter().min().copied();
    let last = ends.max();
    let Some(first) = first else { return };
    let Some(last) = last else { return };
    // A run that starts shortly after 0 was measured from 0 on; it keeps the cycles that the tool
    // shows.
    if first < 0 || first > last - first {
        starts.iter_mut().for_each(|start| *start -= first);
        profile
            .notes
            .push(format!("Cycles count from the first sample, at {first} of the counter."));
    }
}
