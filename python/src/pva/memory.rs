//! Tiles, IPUs and the contents of their memory.

use super::program_vertices::VertexType;
use super::report_data::ReportData;
use super::sequences::{List, object};
use super::{equal_by_id, not_recorded};
use pyo3::exceptions::{PyAttributeError, PyIndexError};
use pyo3::prelude::*;
use std::sync::Arc;
use tilescope_report::units::{Bytes, IpuId, TileId, VertexTypeId};
use tilescope_report::{MemoryCategory, MemoryRegion, ReportPart};

/// A tile of the replica by its number.
pub(super) fn tile_in_range(data: &ReportData, tile: u32) -> PyResult<TileId> {
    let tile = TileId(tile);
    data.target.has_tile(tile).then_some(tile).ok_or_else(|| {
        PyIndexError::new_err(format!("tile {tile}: a replica has {} tiles", data.tiles()))
    })
}

/// An IPU of the replica.
#[pyclass(frozen, eq, hash, name = "IPU", module = "tilescope.pva")]
pub(crate) struct IpuTiles {
    pub(super) data: Arc<ReportData>,
    pub(super) ipu: IpuId,
}
equal_by_id!(IpuTiles, ipu);

#[pymethods]
impl IpuTiles {
    #[getter]
    fn tiles(&self) -> List {
        let data = self.data.clone();
        let tiles = data.target.tiles_of_ipu(self.ipu);
        List::new(tiles.count() as usize, move |py, at| {
            object(py, Tile { data: data.clone(), tile: tiles.first + at as u32 })
        })
    }
}

/// A tile of the replica.
#[pyclass(frozen, eq, hash, module = "tilescope.pva")]
pub(crate) struct Tile {
    pub(super) data: Arc<ReportData>,
    pub(super) tile: TileId,
}
equal_by_id!(Tile, tile);

#[pymethods]
impl Tile {
    #[getter]
    fn memory(&self) -> TileMemory {
        TileMemory { data: self.data.clone(), tile: self.tile }
    }
}

/// Memory of a tile.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct TileMemory {
    data: Arc<ReportData>,
    tile: TileId,
}

/// Bytes that are used at any time, with and without gaps.
#[pyclass(frozen, get_all, module = "tilescope.pva")]
pub(crate) struct UsedBytes {
    #[pyo3(name = "includingGaps")]
    including_gaps: u64,
    #[pyo3(name = "excludingGaps")]
    excluding_gaps: u64,
}

impl TileMemory {
    fn sums(&self) -> PyResult<tilescope_report::TileMemory> {
        if !self.data.report.has(ReportPart::TileMemory) {
            return Err(not_recorded("memory of tiles"));
        }
        Ok(self.data.tile_memory()?.get(self.tile).copied().unwrap_or_default())
    }

    /// Used bytes of a region, and the part of it below the highest used address of the tile.
    fn region(&self, region: MemoryRegion) -> PyResult<UsedBytes> {
        if !self.data.report.has(ReportPart::Regions) {
            return Err(not_recorded("regions of memory"));
        }
        let sums = self.sums()?;
        let target = &self.data.target;
        let (start, end) = match region {
            MemoryRegion::NonInterleaved => (Bytes::ZERO, target.interleaved_offset),
            MemoryRegion::Interleaved => (target.interleaved_offset, target.bytes_per_tile),
            MemoryRegion::Overflowed => (target.bytes_per_tile, Bytes(u64::MAX)),
        };
        let used = match region {
            MemoryRegion::NonInterleaved => sums.non_interleaved,
            MemoryRegion::Interleaved => sums.interleaved,
            MemoryRegion::Overflowed => sums.overflowed,
        };
        let including_gaps = sums.including_gaps.min(end).saturating_sub(start).0;
        Ok(UsedBytes { including_gaps, excluding_gaps: used.0 })
    }
}

#[pymethods]
impl TileMemory {
    #[getter]
    fn total(&self) -> PyResult<UsedBytes> {
        let sums = self.sums()?;
        let including_gaps = sums.including_gaps.0;
        let excluding_gaps = sums.excluding_gaps().0;
        Ok(UsedBytes { including_gaps, excluding_gaps })
    }

    #[getter(nonInterleaved)]
    fn non_interleaved(&self) -> PyResult<UsedBytes> {
        self.region(MemoryRegion::NonInterleaved)
    }

    #[getter]
    fn interleaved(&self) -> PyResult<UsedBytes> {
        self.region(MemoryRegion::Interleaved)
    }

    #[getter]
    fn overflowed(&self) -> PyResult<UsedBytes> {
        self.region(MemoryRegion::Overflowed)
    }

    #[getter(alwaysLiveBytes)]
    fn always_live_bytes(&self) -> PyResult<u64> {
        Ok(self.sums()?.always_live.0)
    }

    /// The most bytes of other variables that are live at any step.
    #[getter(notAlwaysLiveBytes)]
    fn not_always_live_bytes(&self) -> PyResult<u64> {
        Ok(self.sums()?.peak_not_always_live.0)
    }

    #[getter]
    fn category(&self) -> MemoryCategories {
        MemoryCategories { data: self.data.clone(), tile: self.tile }
    }

    /// Vertex types with code on the tile.
    #[getter]
    fn vertices(&self) -> PyResult<List> {
        let data = self.data.clone();
        let on_tiles = self.data.vertex_tiles()?;
        let found = on_tiles
            .0
            .iter()
            .filter(|(_, on)| on.get(self.tile.index()) == Some(&true))
            .map(|(id, _)| *id)
            .collect();
        Ok(List::of_ids(found, move |py, id| object(py, TileVertex { data: data.clone(), id })))
    }
}

/// A vertex type with code on a tile. Code that several types share is listed with the first.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct TileVertex {
    data: Arc<ReportData>,
    id: VertexTypeId,
}

#[pymethods]
impl TileVertex {
    #[getter(r#type)]
    fn kind(&self) -> VertexType {
        VertexType { data: self.data.clone(), id: self.id }
    }

    #[getter(codeBytes)]
    fn code_bytes(&self) -> PyResult<u64> {
        let types = self.data.vertex_types()?;
        types.get(self.id.index()).map(|kind| kind.code_bytes.0).ok_or_else(|| not_recorded("code"))
    }
}

/// Memory of a tile by category: an attribute for each category of libpva.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct MemoryCategories {
    data: Arc<ReportData>,
    tile: TileId,
}

#[pymethods]
impl MemoryCategories {
    fn __getattr__(&self, name: &str) -> PyResult<CategoryBytes> {
        let named = MemoryCategory::ALL.into_iter().find(|category| category.name() == name);
        let Some(category) = named else {
            let text = format!("'MemoryCategories' object has no attribute '{name}'");
            return Err(PyAttributeError::new_err(text));
        };
        if !self.data.report.has(ReportPart::Categories) {
            return Err(not_recorded("categories of memory"));
        }
        let categories = self.data.tile_categories()?;
        let shares = categories.get(self.tile).map_or(&[][..], Vec::as_slice);
        let mut found = CategoryBytes::default();
        for share in shares.iter().filter(|share| share.category == category) {
            let region = &mut found.regions[share.region as usize];
            let sum =
                if share.overlapped { &mut region.overlapped } else { &mut region.non_overlapped };
            *sum += share.bytes.0;
        }
        Ok(found)
    }

    fn __dir__(&self) -> Vec<&'static str> {
        MemoryCategory::ALL.map(MemoryCategory::name).to_vec()
    }
}

/// Bytes of one category on a tile.
#[pyclass(frozen, module = "tilescope.pva")]
#[derive(Default)]
pub(crate) struct CategoryBytes {
    regions: [CategoryRegion; 3],
}

/// Bytes of a category in one region.
#[pyclass(frozen, get_all, module = "tilescope.pva")]
#[derive(Clone, Copy, Default)]
pub(crate) struct CategoryRegion {
    /// Addresses that only one variable uses.
    #[pyo3(name = "nonOverlapped")]
    non_overlapped: u64,
    /// Addresses that several variables use at different times.
    overlapped: u64,
}

#[pymethods]
impl CategoryBytes {
    #[getter]
    fn total(&self) -> u64 {
        self.regions.iter().map(|region| region.non_overlapped + region.overlapped).sum()
    }

    #[getter(nonInterleaved)]
    fn non_interleaved(&self) -> CategoryRegion {
        self.regions[MemoryRegion::NonInterleaved as usize]
    }

    #[getter]
    fn interleaved(&self) -> CategoryRegion {
        self.regions[MemoryRegion::Interleaved as usize]
    }

    #[getter]
    fn overflowed(&self) -> CategoryRegion {
        self.regions[MemoryRegion::Overflowed as usize]
    }
}
