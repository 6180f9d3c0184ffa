//! One row of `steps_by_ipu`, with the columns that are present.

use crate::limits::{MAX_CYCLES, MAX_IPUS, MAX_STEP_BYTES, MAX_STEPS, MAX_SUB_LANES};
use crate::model::StepOnIpu;
use crate::row_cells::RowCells;
use crate::trace::FixedPointBalance;
use crate::units::{Bytes, CycleRange, Cycles, IpuId, StepId};

/// The columns [`StepRow::read`] expects.
pub(super) const COLUMNS: [&str; 14] = [
    "step_id",
    "ipu",
    "cycles",
    "active_tiles",
    "cycles_base",
    "active_cycles_from_min",
    "active_cycles_from_max",
    "active_cycles_to_min",
    "active_cycles_to_max",
    "active_tile_balance",
    "tile_balance",
    "bytes_in",
    "bytes_out",
    "sub_lane",
];

/// The values of a row; offsets are still relative to the base.
pub(super) struct StepRow {
    pub(super) step: StepId,
    pub(super) ipu: IpuId,
    pub(super) sub_lane: Option<u8>,
    cycles: Option<Cycles>,
    base: Option<Cycles>,
    from_min: Option<Cycles>,
    from_max: Option<Cycles>,
    to_min: Option<Cycles>,
    to_max: Option<Cycles>,
    active_tiles: Option<u32>,
    active_tile_balance: Option<f64>,
    tile_balance: Option<f64>,
    pub(super) bytes_in: Bytes,
    pub(super) bytes_out: Bytes,
}

impl StepRow {
    /// The row, unless it has no step or IPU.
    pub(super) fn read(cells: &RowCells) -> Option<Self> {
        let read_cycles = |column| cells.count(column, MAX_CYCLES / 2);
        let from = read_cycles(5);
        let to = read_cycles(8);
        Some(Self {
            step: StepId(cells.count(0, MAX_STEPS - 1)?),
            ipu: IpuId(cells.small_up_to(1, MAX_IPUS - 1)?),
            sub_lane: cells
                .small_up_to(13, u32::from(MAX_SUB_LANES) - 1)
                .and_then(|lane| u8::try_from(lane).ok()),
            cycles: read_cycles(2),
            base: read_cycles(4),
            from_min: from,
            from_max: read_cycles(6).or(from),
            to_min: read_cycles(7).or(to),
            to_max: to.or(read_cycles(7)),
            active_tiles: cells.small(3),
            active_tile_balance: cells.real(9),
            tile_balance: cells.real(10),
            bytes_in: cells.count(11, MAX_STEP_BYTES).unwrap_or_default(),
            bytes_out: cells.count(12, MAX_STEP_BYTES).unwrap_or_default(),
        })
    }

    /// True if it has the time of the step, not only its duration.
    pub(super) fn is_placed(&self) -> bool {
        self.base.is_some() && (self.to_max.is_some() || self.cycles.is_some())
    }

    /// The bar to draw: from the last start to the last end. If only a duration is known, the step
    /// starts at `clock`, the end of the previous step. `None` if nothing is known.
    pub(super) fn bar(&self, clock: Cycles) -> Option<CycleRange> {
        let from = self.from_max.unwrap_or(Cycles::ZERO);
        let length = match (self.to_max, self.cycles) {
            (Some(to), _) => to.saturating_sub(from),
            (None, Some(cycles)) => cycles,
            (None, None) => return None,
        };
        let start = self.base.map_or(clock, |base| base + from);
        let end = start.checked_add(length).filter(|end| *end <= MAX_CYCLES)?;
        Some(CycleRange::new(start, end))
    }

    /// Active tile balance x share of active tiles, if known.
    pub(super) fn tile_balance(&self, tiles_per_ipu: u32) -> FixedPointBalance {
        let share = match self.active_tiles {
            Some(tiles) if tiles_per_ipu > 0 => f64::from(tiles) / f64::from(tiles_per_ipu),
            _ => 1.0,
        };
        FixedPointBalance::from_share(
            self.tile_balance.unwrap_or_else(|| self.active_tile_balance.unwrap_or(1.0) * share),
        )
    }

    /// The row in terms of the model, with absolute cycles.
    #[expect(clippy::cast_possible_truncation, reason = "shares are kept to seven digits")]
    pub(super) fn on_ipu(&self) -> StepOnIpu {
        let base = self.base.unwrap_or(Cycles::ZERO);
        let bar = self.bar(Cycles::ZERO).unwrap_or_default();
        StepOnIpu {
            ipu: self.ipu,
            sub_lane: self.sub_lane.unwrap_or(0),
            from_min: self.from_min.map_or(bar.start, |from| base + from).min(bar.start),
            from_max: bar.start,
            to_min: self.to_min.map_or(bar.end, |to| base + to).min(bar.end),
            to_max: bar.end,
            active_tiles: self.active_tiles.unwrap_or(0),
            active_tile_balance: self.active_tile_balance.unwrap_or(0.0) as f32,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
        }
    }
}
