//! A step on a lane, as stored in the index.

use super::answers::FixedPointBalance;
use crate::model::{ProgramKind, StepActivity, StepOnIpu, StreamEndpoint, tile_balance};
use crate::units::{Bytes, CycleRange, Cycles, IpuId, ProgramId, StepId};

/// Kind, activity and stream endpoint of a step in one small number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StepClass(u8);

/// The activity of each class, which is needed for every step.
const ACTIVITIES: [StepActivity; 2 * ProgramKind::ALL.len()] = {
    let mut all = [StepActivity::Other; 2 * ProgramKind::ALL.len()];
    let mut class = 0;
    while class < all.len() {
        let stream =
            if class % 2 == 0 { StreamEndpoint::Host } else { StreamEndpoint::RemoteBuffer };
        all[class] = StepActivity::from_program_kind(ProgramKind::ALL[class / 2], stream);
        class += 1;
    }
    all
};

impl StepClass {
    pub(crate) fn new(kind: ProgramKind, stream: StreamEndpoint) -> Self {
        let known = (0u8..).zip(ProgramKind::ALL).find(|(_, known)| *known == kind);
        Self(known.map_or(0, |(at, _)| at) * 2 + u8::from(stream == StreamEndpoint::RemoteBuffer))
    }

    /// The class of a step of `kind` with this activity.
    pub(super) fn from_activity(kind: ProgramKind, activity: StepActivity) -> Self {
        let remote = activity == StepActivity::RemoteBuffer;
        Self::new(kind, if remote { StreamEndpoint::RemoteBuffer } else { StreamEndpoint::Host })
    }

    pub(crate) fn from_code(code: u64) -> Option<Self> {
        let code = u8::try_from(code).ok()?;
        if usize::from(code) < 2 * ProgramKind::ALL.len() { Some(Self(code)) } else { None }
    }

    pub(crate) fn code(self) -> u64 {
        u64::from(self.0)
    }

    pub(crate) fn kind(self) -> ProgramKind {
        ProgramKind::ALL.get(usize::from(self.0 / 2)).copied().unwrap_or(ProgramKind::Unknown)
    }

    pub(crate) fn stream(self) -> StreamEndpoint {
        if self.0.is_multiple_of(2) { StreamEndpoint::Host } else { StreamEndpoint::RemoteBuffer }
    }

    pub(super) fn activity(self) -> StepActivity {
        ACTIVITIES.get(usize::from(self.0)).copied().unwrap_or(StepActivity::Other)
    }
}

/// A step on a lane, as stored in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepRecord {
    pub(crate) step: StepId,
    pub(crate) range: CycleRange,
    pub(crate) program: Option<ProgramId>,
    pub(crate) class: StepClass,
    pub(crate) balance: FixedPointBalance,
    pub(crate) bytes_in: Bytes,
    pub(crate) bytes_out: Bytes,
}

/// The facts of a [`StepOnIpu`] that a record omits; stored only in reports without rows of steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepRecordDetails {
    /// Cycles between the first and the last start.
    pub(super) from_spread: Cycles,
    /// Cycles between the first and the last end.
    pub(super) to_spread: Cycles,
    pub(super) active_tiles: u32,
    /// Bits of the active tile balance.
    pub(super) balance_bits: u32,
}

impl StepRecordDetails {
    pub(crate) fn from_step(on_ipu: &StepOnIpu) -> Self {
        Self {
            from_spread: on_ipu.from_max - on_ipu.from_min,
            to_spread: on_ipu.to_max - on_ipu.to_min,
            active_tiles: on_ipu.active_tiles,
            balance_bits: on_ipu.active_tile_balance.to_bits(),
        }
    }

    /// True if they can belong to `record`, on an IPU with `tiles_per_ipu` tiles.
    pub(super) fn are_of(&self, record: &StepRecord, tiles_per_ipu: u32) -> bool {
        let CycleRange { start, end } = record.range;
        let active = f32::from_bits(self.balance_bits);
        let balance = tile_balance(active, self.active_tiles, tiles_per_ipu);
        let in_order = self.from_spread <= start
            && self.to_spread <= end.saturating_sub(start.saturating_sub(self.from_spread));
        in_order
            && self.active_tiles <= tiles_per_ipu
            && (0.0..=1.0).contains(&active)
            && FixedPointBalance::from_share(balance) == record.balance
    }

    /// Reconstructs the step on its IPU.
    pub(crate) fn on_ipu(&self, ipu: IpuId, sub_lane: u8, record: &StepRecord) -> StepOnIpu {
        let CycleRange { start, end } = record.range;
        StepOnIpu {
            ipu,
            sub_lane,
            from_min: start.saturating_sub(self.from_spread),
            from_max: start,
            to_min: end.saturating_sub(self.to_spread),
            to_max: end,
            active_tiles: self.active_tiles,
            active_tile_balance: f32::from_bits(self.balance_bits),
            bytes_in: record.bytes_in,
            bytes_out: record.bytes_out,
        }
    }
}
