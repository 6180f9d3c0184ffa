//! Contents of tiles over time, as the bound of a possible reduction of the fullest tile.
//!
//! A tile needs at least the bytes that are live on it at any one step. If a change removes bytes
//! of variables, the remainder of variables that are live at the same time is still live at the
//! same time. So the fullest tile of the changed program needs at least the largest remainder on
//! any tile.

use crate::memory::{fullest_tiles, needed};
use std::collections::BTreeSet;
use std::ops::Range;
use tilescope_report::units::{Bytes, IpuId, OperationId, TileId, TileRange, TileRuns, VariableId};
use tilescope_report::{MemoryCategory, Target, TileMemory, Variable};

/// Share of memory in use from which a tile has too little free memory for experiments.
pub(super) const NEARLY_FULL: f64 = 0.9;

/// Number of tiles to consider besides the fullest of each IPU.
const FULLEST: usize = 8;

/// A part of a variable on a tile.
#[derive(Clone, Debug)]
pub(crate) struct TileVariable {
    pub(crate) id: VariableId,
    pub(crate) name: String,
    pub(crate) category: MemoryCategory,
    pub(crate) operation: Option<OperationId>,
    /// The IPU of the tile.
    pub(crate) ipu: IpuId,
    /// Liveness steps it is live in; `None` means always.
    lifetime: Option<Range<u32>>,
    pub(crate) bytes: Bytes,
}

impl TileVariable {
    pub(crate) fn is_always_live(&self) -> bool {
        self.lifetime.is_none()
    }
}

/// The contents of a tile.
#[derive(Clone, Debug)]
struct TileContents {
    tile: TileId,
    /// Always-live bytes outside the listed variables.
    unlisted: Bytes,
    variables: Vec<TileVariable>,
}

/// The most bytes that stay live on a tile at one step, and that step.
#[derive(Clone, Copy, Debug)]
struct LeftAtPeak {
    bytes: f64,
    step: u32,
}

impl TileContents {
    fn read(
        target: &Target,
        tile: TileId,
        memory: &TileRuns<TileMemory>,
        variables: &[(VariableId, Variable)],
    ) -> Self {
        let on_tile = TileRange::single(tile);
        let part = |(id, variable): &(VariableId, Variable)| {
            let bytes = crate::liveness::bytes_on(&variable.tiles, on_tile);
            (bytes > Bytes::ZERO).then(|| TileVariable {
                id: *id,
                name: variable.name.clone(),
                category: variable.category,
                operation: variable.operation,
                ipu: target.ipu_of_tile(tile),
                lifetime: variable.lifetime.clone(),
                bytes,
            })
        };
        let variables: Vec<TileVariable> = variables.iter().filter_map(part).collect();
        let steady = variables.iter().filter(|of| of.is_always_live());
        let listed: Bytes = steady.map(|of| of.bytes).sum();
        let always = memory.get(tile).map_or(Bytes::ZERO, |of| of.always_live);
        Self { tile, unlisted: always.saturating_sub(listed), variables }
    }

    /// The remaining peak if `removed` returns the removed share of each variable.
    fn left(&self, removed: &impl Fn(&TileVariable) -> f64) -> LeftAtPeak {
        let mut always = self.unlisted.as_f64();
        let mut changes: Vec<(u32, f64)> = Vec::new();
        for of in &self.variables {
            let bytes = of.bytes.as_f64() * (1.0 - removed(of).clamp(0.0, 1.0));
            match &of.lifetime {
                None => always += bytes,
                Some(life) if life.start < life.end => {
                    changes.extend([(life.start, bytes), (life.end, -bytes)]);
                }
                Some(_) => {}
            }
        }
        // Variables that end at a step free memory for those that begin there.
        changes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut peak = LeftAtPeak { bytes: always, step: 0 };
        let mut live = always;
        for (step, bytes) in changes {
            live += bytes;
            if live > peak.bytes {
                peak = LeftAtPeak { bytes: live, step };
            }
        }
        peak
    }

    /// Variables that are live at a step.
    fn live_at(&self, step: u32) -> impl Iterator<Item = &TileVariable> {
        let is_live =
            move |of: &&TileVariable| of.lifetime.as_ref().is_none_or(|life| life.contains(&step));
        self.variables.iter().filter(is_live)
    }
}

/// The fullest tiles of a program that needs all or nearly all of the memory of a tile.
#[derive(Clone, Debug)]
pub struct FullTileContents {
    /// The fullest one first.
    tiles: Vec<TileContents>,
    /// Bytes that the fullest tile needs, including gaps.
    pub(crate) needed: Bytes,
    pub(crate) capacity: Bytes,
}

/// The bytes of some variables on the fullest tile at its peak.
#[derive(Clone, Debug)]
pub(crate) struct PartOfPeak<'a> {
    pub(crate) tile: TileId,
    pub(crate) bytes: Bytes,
    pub(crate) largest: &'a TileVariable,
}

impl FullTileContents {
    /// Reads the fullest tiles; `None` if they have enough free memory.
    pub(super) fn read(
        target: &Target,
        memory: &TileRuns<TileMemory>,
        variables: &[(VariableId, Variable)],
    ) -> Option<Self> {
        let fullest = fullest_tiles(memory, FULLEST);
        let (_, most) = *fullest.first()?;
        let capacity = target.bytes_per_tile;
        if variables.is_empty() || most.as_f64() < NEARLY_FULL * capacity.as_f64() {
            return None;
        }
        let mut seen = BTreeSet::new();
        let of_ipus = (0..target.ipus_per_replica).filter_map(|ipu| {
            let tiles = target.tiles_of_ipu(IpuId(ipu));
            let parts = memory.iter().map(|(range, of)| (range.intersection(tiles), of));
            let own = parts.filter(|(range, _)| range.count() > 0);
            own.max_by_key(|(_, of)| needed(of)).map(|(range, _)| range.first)
        });
        let tiles = fullest.iter().map(|(tile, _)| *tile).chain(of_ipus);
        let tiles: Vec<TileId> = tiles.filter(|tile| seen.insert(*tile)).collect();
        let read = |tile: TileId| TileContents::read(target, tile, memory, variables);
        Some(Self { tiles: tiles.into_iter().map(read).collect(), needed: most, capacity })
    }

    /// True if the program does not fit.
    pub(crate) fn overflows(&self) -> bool {
        self.needed > self.capacity
    }

    /// The largest possible reduction of the fullest tile, as a share of its memory, if `removed`
    /// returns the removed share of each variable.
    pub(crate) fn gain(&self, removed: impl Fn(&TileVariable) -> f64) -> f64 {
        let left = self.tiles.iter().map(|tile| tile.left(&removed).bytes).fold(0.0, f64::max);
        (1.0 - left / self.needed.as_f64().max(1.0)).clamp(0.0, 1.0)
    }

    /// The bytes of the variables that satisfy `holds` on the fullest tile at its peak; `None` if
    /// they have none.
    pub(crate) fn part_of_peak(
        &self,
        holds: impl Fn(&TileVariable) -> bool,
    ) -> Option<PartOfPeak<'_>> {
        let fullest = self.tiles.first()?;
        let step = fullest.left(&|_| 0.0).step;
        let own: Vec<&TileVariable> = fullest.live_at(step).filter(|of| holds(of)).collect();
        let largest = own.iter().max_by_key(|of| of.bytes)?;
        let bytes = own.iter().map(|of| of.bytes).sum();
        Some(PartOfPeak { tile: fullest.tile, bytes, largest })
    }
}
