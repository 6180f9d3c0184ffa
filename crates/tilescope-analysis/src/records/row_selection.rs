//! Selections of rows of a table.

use tilescope_report::Target;
use tilescope_report::units::{CycleRange, Cycles, IpuId, TileRange};

/// A property to select rows by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFilter {
    /// Rows that share a cycle with a range.
    Cycles,
    /// Rows of some IPUs.
    Ipus,
    /// Rows of some tiles.
    Tiles,
}

impl RowFilter {
    /// The property in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Ipus => "IPUs",
            Self::Tiles => "tiles",
        }
    }
}

/// A selection of rows; all rows by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSelection {
    /// Only these IPUs.
    pub ipus: Option<Vec<u32>>,
    /// Only rows that share a cycle with this half-open range.
    pub cycles: Option<(u64, u64)>,
    /// Only these tiles, numbered over the IPUs of a replica.
    pub tiles: Option<TileRange>,
}

impl RowSelection {
    /// The properties that rows are selected by.
    pub fn filters(&self) -> impl Iterator<Item = RowFilter> {
        let asked = [
            (RowFilter::Cycles, self.cycles.is_some()),
            (RowFilter::Ipus, self.ipus.is_some()),
            (RowFilter::Tiles, self.tiles.is_some()),
        ];
        asked.into_iter().filter(|(_, asked)| *asked).map(|(filter, _)| filter)
    }

    /// The range of cycles, if one is selected.
    pub fn window(&self) -> Option<CycleRange> {
        self.cycles.map(|(start, end)| CycleRange::new(Cycles(start), Cycles(end)))
    }

    pub(super) fn has_ipu(&self, ipu: IpuId) -> bool {
        self.ipus.as_ref().is_none_or(|ipus| ipus.contains(&ipu.0))
    }

    /// True if any of these tiles is selected by tile number and by IPU.
    pub(super) fn has_tile_of(&self, tiles: TileRange, target: &Target) -> bool {
        let wanted = self.tiles.map_or(tiles, |wanted| tiles.intersection(wanted));
        let Some(ipus) = &self.ipus else { return wanted.count() > 0 };
        ipus.iter().any(|ipu| {
            let own = target.tiles_of_ipu(IpuId(*ipu));
            wanted.intersection(own).count() > 0
        })
    }
}
