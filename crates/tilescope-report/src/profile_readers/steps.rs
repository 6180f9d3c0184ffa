//! Groups samples into steps: the samples of all tiles with the same epoch, phase and kind. The
//! second such sample of a tile belongs to the second such step.
//!
//! A tile that is idle in a phase in which others work takes part in their step.

use super::{MeasuredProfile, ProfileError};
use crate::model::SampleKind;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// The key of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StepKey {
    pub(super) epoch: u32,
    pub(super) phase: u32,
    pub(super) kind: SampleKind,
    /// Number of earlier steps with the same epoch, phase and kind.
    pub(super) ordinal: u32,
}

/// The steps of a profile, and the step of each sample.
pub(super) struct StepKeys {
    keys: Vec<StepKey>,
    /// Numbers of steps, by sample.
    steps: Vec<u32>,
    tiles: Vec<Range<usize>>,
}

/// The maximum number of steps of a profile: each takes memory, and as many samples as a program
/// has tiles.
const MAX_STEPS: usize = 1 << 20;

/// The kinds of step that an idle tile takes part in, in order of preference.
const BUSY_KINDS: [SampleKind; 3] =
    [SampleKind::Compute, SampleKind::Exchange, SampleKind::Synchronization];

impl StepKeys {
    pub(super) fn of(profile: &MeasuredProfile<'_>) -> Result<Self, ProfileError> {
        let tiles = tiles(profile)?;
        let busy: HashSet<(u32, u32, SampleKind)> = profile
            .samples
            .iter()
            .map(|sample| (sample.epoch, sample.phase, profile.labels.kind(sample.label)))
            .collect();
        let mut found = Self { keys: Vec::new(), steps: Vec::new(), tiles };
        let mut numbers: HashMap<StepKey, u32> = HashMap::new();
        for tile in found.tiles.clone() {
            let mut before: HashMap<(u32, u32, SampleKind), u32> = HashMap::new();
            for sample in profile.samples.get(tile).unwrap_or_default() {
                let epoch = sample.epoch;
                let phase = sample.phase;
                let own = profile.labels.kind(sample.label);
                let host =
                    BUSY_KINDS.into_iter().find(|kind| busy.contains(&(epoch, phase, *kind)));
                let (kind, ordinal) = match (own, host) {
                    (SampleKind::Idle, Some(host)) => (host, 0),
                    _ => {
                        let count = before.entry((epoch, phase, own)).or_default();
                        *count += 1;
                        (own, *count - 1)
                    }
                };
                let key = StepKey { epoch, phase, kind, ordinal };
                // Their number is at most that of samples, and each sample takes a word.
                let next = u32::try_from(found.keys.len()).unwrap_or(u32::MAX);
                let step = *numbers.entry(key).or_insert_with(|| {
                    found.keys.push(key);
                    next
                });
                found.steps.push(step);
                if found.keys.len() > MAX_STEPS {
                    let problem = format!("it has more than {MAX_STEPS} steps");
                    return Err(ProfileError::Damaged(problem));
                }
            }
        }
        Ok(found)
    }

    /// The key of each step, by its number.
    pub(super) fn keys(&self) -> &[StepKey] {
        &self.keys
    }

    /// The step of each sample.
    pub(super) fn steps(&self) -> &[u32] {
        &self.steps
    }

    /// The samples of each tile.
    pub(super) fn tiles(&self) -> impl Iterator<Item = Range<usize>> {
        self.tiles.iter().cloned()
    }

    /// The steps of some samples.
    pub(super) fn steps_of(&self, samples: Range<usize>) -> &[u32] {
        self.steps.get(samples).unwrap_or_default()
    }
}

/// The samples of each tile.
fn tiles(profile: &MeasuredProfile<'_>) -> Result<Vec<Range<usize>>, ProfileError> {
    let mut tiles = Vec::new();
    let mut known = BTreeSet::new();
    let mut first = 0;
    for own in profile.samples.chunk_by(|one, next| one.tile == next.tile) {
        let tile = own.first().map_or(0, |sample| sample.tile);
        if !known.insert(tile) {
            return Err(ProfileError::Damaged(format!("tile {tile} is listed twice")));
        }
        tiles.push(first..first + own.len());
        first += own.len();
    }
    Ok(tiles)
}
