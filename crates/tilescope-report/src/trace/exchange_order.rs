//! Counts of the busy steps before each exchange of a lane. The arrival of tiles at an exchange
//! follows from the previous step, so that a long run can be analysed without reading all its
//! steps.

// Sums come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::program_totals::{program_code, program_from_code};
use super::recent_places::RecentPlaces;
use super::step_record::{StepClass, StepRecord};
use crate::codec::{self, VarintReader, write_varint};
use crate::limits::MAX_STEPS;
use crate::model::ProgramKind;
use crate::units::ProgramId;
use foldhash::HashMap;

/// The number of steps above which the sums of a lane are stored: shorter lanes are read in a
/// millisecond.
pub(super) const LONG_LANE: u64 = 1 << 16;
/// The maximum number of sums of a lane; with more, its steps are read instead.
const MAX_SUMS: usize = 1 << 18;
/// The largest unpacked list, in bytes.
const MAX_BYTES: usize = 1 << 23;

/// Executions of an exchange that follow the same busy step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeFollowing {
    pub exchange: ProgramId,
    pub kind: ProgramKind,
    /// The program, if known, and the kind of the last step before the exchange in which tiles did
    /// more than wait; `None` at the start of the lane.
    pub before: Option<(Option<ProgramId>, ProgramKind)>,
    pub executions: u64,
}

type BusyStep = (Option<ProgramId>, StepClass);

/// The last step in which tiles do more than wait.
fn last_busy(records: &[StepRecord]) -> Option<BusyStep> {
    let is_busy = |record: &&StepRecord| {
        !matches!(record.class.kind(), ProgramKind::Sync | ProgramKind::WriteUndef)
    };
    records.iter().rfind(is_busy).map(|record| (record.program, record.class))
}

/// Counts exchanges of a lane by the preceding step.
#[derive(Default)]
pub(super) struct ExchangeOrder {
    before: Option<BusyStep>,
    /// Sums, in the order of their first execution.
    sums: Vec<(Option<BusyStep>, BusyStep, u64)>,
    places: HashMap<(Option<BusyStep>, BusyStep), usize>,
    recent: RecentPlaces,
    /// True if some sums were dropped.
    is_cut: bool,
}

impl ExchangeOrder {
    /// Adds the next steps.
    pub(super) fn push_all(&mut self, records: &[StepRecord]) {
        for (at, record) in records.iter().enumerate() {
            if record.class.kind().moves_data() && record.program.is_some() {
                let earlier = records.get(..at).unwrap_or_default();
                let before = last_busy(earlier).or(self.before);
                self.count((before, (record.program, record.class)));
            }
        }
        self.before = last_busy(records).or(self.before);
    }

    fn count(&mut self, key: (Option<BusyStep>, BusyStep)) {
        let Self { sums, places, recent, .. } = self;
        let fresh = sums.len();
        let place = recent.find(
            key.1.0,
            |at| sums.get(at).is_some_and(|(before, own, _)| (*before, *own) == key),
            || match places.get(&key) {
                None if fresh >= MAX_SUMS => None,
                None => {
                    places.insert(key, fresh);
                    Some(fresh)
                }
                Some(place) => Some(*place),
            },
        );
        if place == Some(fresh) {
            sums.push((key.0, key.1, 0));
        }
        match place.and_then(|place| sums.get_mut(place)) {
            Some((.., executions)) => *executions += 1,
            None => self.is_cut = true,
        }
    }

    /// The counted exchanges as bytes, not packed yet; `None` if some are missing.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        if self.is_cut {
            return None;
        }
        let mut raw = Vec::new();
        write_varint(&mut raw, self.sums.len() as u64);
        for (before, (program, class), executions) in &self.sums {
            write_varint(&mut raw, before.map_or(0, |(_, class)| class.code() + 1));
            if let Some((program, _)) = before {
                write_varint(&mut raw, program_code(*program));
            }
            write_varint(&mut raw, program_code(*program));
            write_varint(&mut raw, class.code());
            write_varint(&mut raw, *executions);
        }
        Some(raw)
    }
}

/// The list in a blob; `None` if it is damaged.
pub(super) fn decode(blob: &[u8]) -> Option<Vec<ExchangeFollowing>> {
    decode_raw(&codec::unpack(blob, MAX_BYTES)?)
}

/// The same for a list that is not packed.
pub(super) fn decode_raw(raw: &[u8]) -> Option<Vec<ExchangeFollowing>> {
    let mut cursor = VarintReader::new(raw);
    let count = usize::try_from(cursor.take()?).ok()?;
    if count > cursor.left() {
        return None;
    }
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let before = match cursor.take()?.checked_sub(1) {
            None => None,
            Some(class) => {
                let kind = StepClass::from_code(class)?.kind();
                Some((program_from_code(cursor.take()?)?, kind))
            }
        };
        let exchange = program_from_code(cursor.take()?)??;
        let kind = StepClass::from_code(cursor.take()?)?.kind();
        let executions = cursor.take().filter(|executions| *executions <= MAX_STEPS)?;
        all.push(ExchangeFollowing { exchange, kind, before, executions });
    }
    if cursor.is_done() { Some(all) } else { None }
}
