//! Compute sets, their cycles and their vertices.

use super::Report;
use super::tile_run_collector::{TileRunCollector, strided_runs_at};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_COUNT, MAX_TILE_BYTES, MAX_TILE_CYCLES, MAX_TILE_VERTICES};
use crate::model::{ComputeSet, VertexGroup, VertexTypeInfo};
use crate::units::{ComputeSetId, Cycles, TileRuns, VertexTypeId};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The largest id a file can have, as a bound that includes everything.
const ALL_IDS: (i64, i64) = (0, u32::MAX as i64);

impl Report {
    /// Names of all compute sets by id, read once.
    pub(crate) fn compute_set_names(
        &self,
    ) -> Result<Arc<BTreeMap<ComputeSetId, String>>, ReportError> {
        self.compute_set_names.get(|| {
            let columns = ["compute_set", "name"];
            let named = self.db.list(SelectQuery::all("compute_sets", &columns), |cells| {
                Some((ComputeSetId(cells.small(0)?), cells.text(1).unwrap_or_default()))
            })?;
            Ok(named.into_iter().flatten().collect())
        })
    }

    /// One compute set with its cycles and vertices.
    pub fn compute_set(&self, id: ComputeSetId) -> Result<Option<ComputeSet>, ReportError> {
        let Some(name) = self.compute_set_names()?.get(&id).cloned() else { return Ok(None) };
        let within = (i64::from(id.0), i64::from(id.0));
        let cycles = self.cycles_of(within)?.remove(&id.0).unwrap_or_default();
        let vertices = self.vertices_of(within)?.remove(&id.0).unwrap_or_default();
        Ok(Some(ComputeSet { name, cycles, vertices }))
    }

    /// All compute sets with their cycles and vertices.
    pub fn compute_sets(&self) -> Result<Vec<(ComputeSetId, ComputeSet)>, ReportError> {
        let (mut cycles, mut vertices) = (self.cycles_of(ALL_IDS)?, self.vertices_of(ALL_IDS)?);
        let names = self.compute_set_names()?;
        let set = |(id, name): (&ComputeSetId, &String)| {
            let cycles = cycles.remove(&id.0).unwrap_or_default();
            let vertices = vertices.remove(&id.0).unwrap_or_default();
            (*id, ComputeSet { name: name.clone(), cycles, vertices })
        };
        Ok(names.iter().map(set).collect())
    }

    fn cycles_of(&self, ids: (i64, i64)) -> Result<BTreeMap<u32, TileRuns<Cycles>>, ReportError> {
        let table = "compute_set_cycles";
        let tiles = self.target()?.tiles_per_replica();
        if !self.db.has(table, "compute_set") || !self.db.has(table, "first_tile") {
            return Ok(BTreeMap::new());
        }
        let columns = ["compute_set", "first_tile", "end_tile", "every", "times", "cycles"];
        let select = SelectQuery::all(table, &columns).keys(ids.0, ids.1);
        let mut sets: BTreeMap<u32, TileRunCollector<Cycles>> = BTreeMap::new();
        self.db.read(select, |cells| {
            if let Some(set) = cells.small(0) {
                let cycles = cells.count(5, MAX_TILE_CYCLES).unwrap_or_default();
                sets.entry(set).or_default().push(strided_runs_at(cells, 1, tiles), cycles);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(sets.into_iter().map(|(set, runs)| (set, runs.finish(&self.db, table))).collect())
    }

    fn vertices_of(&self, ids: (i64, i64)) -> Result<BTreeMap<u32, Vec<VertexGroup>>, ReportError> {
        let known = [("vertex_groups", "id"), ("vertex_groups", "compute_set")];
        let known = known.into_iter().chain([("vertex_tiles", "vertex_group")]);
        if !known.chain([("vertex_tiles", "first_tile")]).all(|(t, c)| self.db.has(t, c)) {
            return Ok(BTreeMap::new());
        }
        let types = self.vertex_types()?.len();
        let columns = ["id", "compute_set", "vertex_type", "edges"];
        let params = [ids.0, ids.1];
        // Groups of a set lie side by side, so the ids of the first and the last bound them all.
        let select = SelectQuery::all("vertex_groups", &columns)
            .clauses("WHERE compute_set BETWEEN ?1 AND ?2 ORDER BY id")
            .params(&params);
        let groups = self.db.list(select, |cells| {
            let vertex_type = VertexTypeId(cells.small(2)?);
            let edges = cells.count(3, MAX_COUNT).unwrap_or(0);
            (vertex_type.index() < types).then_some(())?;
            Some((cells.small(0)?, cells.small(1)?, vertex_type, edges))
        })?;
        let groups: Vec<_> = groups.into_iter().flatten().collect();
        let (Some(first), Some(last)) = (groups.first(), groups.last()) else {
            return Ok(BTreeMap::new());
        };
        let mut counts = self.vertex_counts((first.0.into(), last.0.into()))?;
        let mut sets: BTreeMap<u32, Vec<VertexGroup>> = BTreeMap::new();
        for (id, set, vertex_type, edges) in groups {
            let count = counts.remove(&id).unwrap_or_default();
            sets.entry(set).or_default().push(VertexGroup { vertex_type, count, edges });
        }
        Ok(sets)
    }

    fn vertex_counts(&self, ids: (i64, i64)) -> Result<BTreeMap<u32, TileRuns<u64>>, ReportError> {
        let table = "vertex_tiles";
        let tiles = self.target()?.tiles_per_replica();
        let columns = ["vertex_group", "first_tile", "end_tile", "every", "times", "count"];
        let select = SelectQuery::all(table, &columns).keys(ids.0, ids.1);
        let mut groups: BTreeMap<u32, TileRunCollector<u64>> = BTreeMap::new();
        self.db.read(select, |cells| {
            if let Some(group) = cells.small(0) {
                let count = cells.count(5, MAX_TILE_VERTICES).unwrap_or(0);
                groups.entry(group).or_default().push(strided_runs_at(cells, 1, tiles), count);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(groups.into_iter().map(|(group, runs)| (group, runs.finish(&self.db, table))).collect())
    }

    /// Vertex types; [`VertexTypeId`] counts into this.
    pub fn vertex_types(&self) -> Result<Arc<Vec<VertexTypeInfo>>, ReportError> {
        self.vertex_types.get(|| {
            let columns = ["name", "code_bytes", "state_bytes"];
            self.db.list(SelectQuery::all("vertex_types", &columns), |cells| VertexTypeInfo {
                name: cells.text(0).unwrap_or_default(),
                code_bytes: cells.count(1, MAX_TILE_BYTES).unwrap_or_default(),
                state_bytes: cells.count(2, MAX_TILE_BYTES).unwrap_or_default(),
            })
        })
    }
}
