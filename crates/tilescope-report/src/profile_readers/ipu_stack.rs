//! `profile.capnp` of ipu-stack (<https://github.com/osmarks/ipu-stack>): the hardware counters of
//! every tile, at the start and end of every step.
//!
//! A Cap'n Proto message, standard framing. By ordinal:
//!
//! | struct | fields |
//! |---|---|
//! | Profile | 0 schemaVersion u32, 1 clockHz u64, 2 tiles: list of TileProfile |
//! | TileProfile | 0 physicalTile u32, 1 samples: list of CycleSample |
//! | CycleSample | 0 step: Step, 1 startCycle u32, 2 endCycle u32 |
//! | Step | 0 localIndex u32, 1 phase u32, 2 epoch u32, 3 operation, 4 kind, 5 kernel, 6 metadata: list of Metadata, 7 exchangeActivities: list of ExchangeActivity, 8 exchangeEventCycles u32 |
//! | Metadata | 0 name, 1 value |
//! | ExchangeActivity | 0 kind, 1 startCycle u32, 2 endCycle u32 |

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::capnp::{CapnpError, MAX_HEADER_BYTES, Message, Struct, promised_bytes};
use super::labels::LabelTable;
use super::{MeasuredProfile, ProfileError, ProfileReader, RawSample};
use crate::model::{ExchangeActivity, ExchangeActivityKind, SampleKind};
use crate::units::Hertz;
use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::Path;

/// The reader of ipu-stack profiles.
pub(super) const READER: ProfileReader = ProfileReader {
    tool: "ipu-stack",
    file_name: "profile.capnp",
    head_bytes: MAX_HEADER_BYTES,
    recognizes,
    read,
};

/// Versions of the schema in use; later ones may add fields.
const KNOWN_VERSIONS: RangeInclusive<u32> = 1..=5;
/// A larger number means another schema, not a version of this one.
const MAX_VERSION: u32 = 64;

/// The minimum number of bytes of a sample, with the fields of the first version in its step.
const LEAST_SAMPLE_BYTES: usize = 48;

/// True for a `.capnp` file, or one that has the length in its header.
fn recognizes(path: &Path, head: &[u8], size: u64) -> bool {
    let named = path.extension().is_some_and(|ending| ending == OsStr::new("capnp"));
    named || promised_bytes(head) == Some(size)
}

impl From<CapnpError> for ProfileError {
    fn from(error: CapnpError) -> Self {
        Self::Damaged(format!("not a complete Cap'n Proto message, {error}"))
    }
}

fn read(bytes: &[u8]) -> Result<MeasuredProfile<'_>, ProfileError> {
    let message = Message::new(bytes)?;
    let root = message.root()?;
    let version = root.u32(0);
    let clock = root.u64(1);
    if version == 0 || version > MAX_VERSION {
        return Err(ProfileError::Other(format!(
            "its schema version is {version}; profiles have 1 to 5"
        )));
    }
    let mut profile = MeasuredProfile {
        generator: format!("ipu-stack (profile.capnp, schema version {version})"),
        clock: Hertz(clock),
        samples: Vec::new(),
        labels: LabelTable::default(),
        activities: Vec::new(),
        notes: Vec::new(),
    };
    if !KNOWN_VERSIONS.contains(&version) {
        profile.notes.push(format!(
            "The profile has schema version {version}, newer than 5: later additions are left out."
        ));
    }
    let most = bytes.len() / LEAST_SAMPLE_BYTES;
    for tile in root.list(0)?.iter() {
        read_tile(&tile?, most, &mut profile)?;
    }
    Ok(profile)
}

fn read_tile<'a>(
    tile: &Struct<'_, 'a>,
    most: usize,
    profile: &mut MeasuredProfile<'a>,
) -> Result<(), ProfileError> {
    let number = tile.u32(0);
    for sample in tile.list(0)?.iter() {
        let sample = sample?;
        if profile.samples.len() >= most {
            let problem = "it has more samples than a file of this size can hold";
            return Err(ProfileError::Damaged(problem.to_owned()));
        }
        let step = sample.structure(0)?.ok_or_else(|| {
            ProfileError::Damaged(format!("a sample of tile {number} has no step"))
        })?;
        let label = read_label(&step, number, profile)?;
        let first = profile.activities.len();
        read_activities(&step, number, profile)?;
        profile.samples.push(RawSample {
            tile: number,
            label,
            local_index: step.u32(0),
            phase: step.u32(1),
            epoch: step.u32(2),
            start: sample.u32(0),
            end: sample.u32(1),
            exchange_cycles: step.u32(4),
            activities: first..profile.activities.len(),
        });
    }
    Ok(())
}

fn read_label<'a>(
    step: &Struct<'_, 'a>,
    tile: u32,
    profile: &mut MeasuredProfile<'a>,
) -> Result<u32, ProfileError> {
    let kind = match step.u16(6) {
        0 => SampleKind::Exchange,
        1 => SampleKind::Compute,
        2 => SampleKind::Synchronization,
        3 => SampleKind::Idle,
        other => {
            let problem = format!("a sample of tile {tile} has kind {other}; kinds are 0 to 3");
            return Err(ProfileError::Damaged(problem));
        }
    };
    profile.labels.begin(kind, step.text(0)?, step.text(1)?);
    for pair in step.list(2)?.iter() {
        let pair = pair?;
        profile.labels.metadata(pair.text(0)?, pair.text(1)?);
    }
    profile.labels.end()
}

fn read_activities(
    step: &Struct<'_, '_>,
    tile: u32,
    profile: &mut MeasuredProfile<'_>,
) -> Result<(), ProfileError> {
    for activity in step.list(3)?.iter() {
        let activity = activity?;
        let number = activity.u16(0);
        let kind =
            ExchangeActivityKind::ALL.get(usize::from(number)).copied().ok_or_else(|| {
                let of = format!("an exchange activity of tile {tile} has kind {number}");
                ProfileError::Damaged(format!("{of}; kinds are 0 to 2"))
            })?;
        let start = activity.u32(1);
        let end = activity.u32(2);
        profile.activities.push(ExchangeActivity { kind, start, end });
    }
    Ok(())
}
