//! Compute sets, and the vertices in them.

use super::report_data::ReportData;
use super::sequences::{List, TileValues, add_runs, object};
use super::{equal_by_id, not_recorded};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_report::ReportPart;
use tilescope_report::units::{ComputeSetId, VertexTypeId};

/// A compute set.
#[pyclass(frozen, eq, hash, module = "tilescope.pva")]
pub(crate) struct ComputeSet {
    pub(super) data: Arc<ReportData>,
    pub(super) set: ComputeSetId,
}
equal_by_id!(ComputeSet, set);

impl ComputeSet {
    fn read<T>(&self, take: impl FnOnce(&tilescope_report::ComputeSet) -> T) -> PyResult<T> {
        let sets = self.data.compute_sets()?;
        sets.get(&self.set).map(take).ok_or_else(|| not_recorded("compute set"))
    }

    /// Cycles of each tile; 0 on a tile without a vertex.
    pub(super) fn cycles(&self) -> PyResult<Vec<u64>> {
        if !self.data.report.has(ReportPart::ComputeSetCycles) {
            return Err(not_recorded("cycles of compute sets"));
        }
        let mut cycles = vec![0; self.data.tiles()];
        self.read(|set| add_runs(&mut cycles, &set.cycles, |cycles| cycles.0))?;
        Ok(cycles)
    }
}

#[pymethods]
impl ComputeSet {
    #[getter]
    fn _id(&self) -> u32 {
        self.set.0
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        self.read(|set| set.name.clone())
    }

    /// Vertices by type.
    #[getter]
    fn vertices(&self) -> PyResult<List> {
        let data = self.data.clone();
        let kinds = self.read(|set| {
            let mut kinds: Vec<VertexTypeId> = Vec::new();
            for group in &set.vertices {
                if !kinds.contains(&group.vertex_type) {
                    kinds.push(group.vertex_type);
                }
            }
            kinds
        })?;
        let set = self.set;
        Ok(List::of_ids(kinds, move |py, kind| {
            object(py, VertexInstances { data: data.clone(), set, kind })
        }))
    }

    /// Measured cycles of each tile. For a simulated program, they equal the estimates.
    #[getter(cyclesByTile)]
    fn cycles_by_tile(&self) -> PyResult<TileValues> {
        self.cycles().map(TileValues::new)
    }

    #[getter(estimatedCyclesByTile)]
    fn estimated_cycles_by_tile(&self) -> PyResult<TileValues> {
        self.cycles().map(TileValues::new)
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<pva.ComputeSet {}>", self.name()?))
    }
}

/// The vertices of one type in a compute set.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct VertexInstances {
    data: Arc<ReportData>,
    set: ComputeSetId,
    kind: VertexTypeId,
}

impl VertexInstances {
    /// Number of vertices of each type on each tile.
    fn counts(&self) -> PyResult<BTreeMap<VertexTypeId, Vec<u64>>> {
        let sets = self.data.compute_sets()?;
        let groups = sets.get(&self.set).map(|set| &set.vertices[..]).unwrap_or_default();
        let mut counts: BTreeMap<VertexTypeId, Vec<u64>> = BTreeMap::new();
        for group in groups {
            let of = counts.entry(group.vertex_type);
            let of = of.or_insert_with(|| vec![0; self.data.tiles()]);
            add_runs(of, &group.count, |count| *count);
        }
        Ok(counts)
    }
}

#[pymethods]
impl VertexInstances {
    #[getter(r#type)]
    fn kind(&self) -> VertexType {
        VertexType { data: self.data.clone(), id: self.kind }
    }

    #[getter(countByTile)]
    fn count_by_tile(&self) -> PyResult<TileValues> {
        Ok(TileValues::new(self.counts()?.remove(&self.kind).unwrap_or_default()))
    }

    /// Cycles of the tiles that run these vertices, summed over tiles. If a tile runs vertices of
    /// several types in one compute set, only their sum is known.
    #[getter(estimatedCycles)]
    fn estimated_cycles(&self) -> PyResult<u64> {
        let set = ComputeSet { data: self.data.clone(), set: self.set };
        let cycles = set.cycles()?;
        let counts = self.counts()?;
        let is_on = |kind: &VertexTypeId, tile: usize| {
            counts.get(kind).and_then(|counts| counts.get(tile)).is_some_and(|count| *count > 0)
        };
        let mut sum = 0u64;
        for (tile, cycles) in cycles.iter().enumerate().filter(|(tile, _)| is_on(&self.kind, *tile))
        {
            if counts.keys().any(|kind| *kind != self.kind && is_on(kind, tile)) {
                return Err(not_recorded("cycles of one of several vertex types of a tile"));
            }
            sum = sum.saturating_add(*cycles);
        }
        Ok(sum)
    }
}

/// A codelet.
#[pyclass(frozen, eq, hash, module = "tilescope.pva")]
pub(crate) struct VertexType {
    pub(super) data: Arc<ReportData>,
    pub(super) id: VertexTypeId,
}
equal_by_id!(VertexType, id);

#[pymethods]
impl VertexType {
    #[getter]
    fn name(&self) -> PyResult<String> {
        let types = self.data.vertex_types()?;
        let kind = types.get(self.id.index());
        kind.map(|kind| kind.name.clone()).ok_or_else(|| not_recorded("vertex type"))
    }

    /// Bytes of state of one vertex.
    #[getter]
    fn size(&self) -> PyResult<u64> {
        let types = self.data.vertex_types()?;
        let kind = types.get(self.id.index());
        kind.map(|kind| kind.state_bytes.0).ok_or_else(|| not_recorded("vertex type"))
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<pva.VertexType {}>", self.name()?))
    }
}
