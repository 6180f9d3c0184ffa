//! Compute sets, their cycles and their vertices.

use super::Report;
use super::tile_patterns::{ALL_IDS, TileRunSource};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_COUNT, MAX_TILE_BYTES, MAX_TILE_CYCLES, MAX_TILE_VERTICES};
use crate::model::{ComputeSet, VertexGroup, VertexTypeInfo};
use crate::units::{ComputeSetId, Cycles, VertexTypeId};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

const COMPUTE_SET_CYCLES: TileRunSource<1> = TileRunSource {
    owners: "compute_sets",
    id: "compute_set",
    rows: "compute_set_cycles",
    rows_id: "compute_set",
    values: [("cycles", MAX_TILE_CYCLES.0)],
};

const VERTEX_TILES: TileRunSource<1> = TileRunSource {
    owners: "vertex_groups",
    id: "id",
    rows: "vertex_tiles",
    rows_id: "vertex_group",
    values: [("count", MAX_TILE_VERTICES)],
};

/// Names of compute sets.
pub(super) const SET_NAMES: SelectQuery<'static> =
    SelectQuery::all("compute_sets", &["compute_set", "name"]);

impl Report {
    /// Names of all compute sets by id, read once.
    pub(crate) fn compute_set_names(
        &self,
    ) -> Result<Arc<BTreeMap<ComputeSetId, String>>, ReportError> {
        self.compute_set_names.get(|| {
            let named = self.db.list(SET_NAMES, |cells| {
                Some((ComputeSetId(cells.small(0)?), cells.text(1).unwrap_or_default()))
            })?;
            Ok(named.into_iter().flatten().collect())
        })
    }

    /// One compute set with its cycles and vertices.
    pub fn compute_set(&self, id: ComputeSetId) -> Result<Option<ComputeSet>, ReportError> {
        let Some(name) = self.compute_set_names()?.get(&id).cloned() else { return Ok(None) };
        let only = id.0..=id.0;
        let mut cycles = self.tile_runs(&COMPUTE_SET_CYCLES, only.clone(), |[c]| Cycles(c))?;
        let cycles = cycles.remove(&id.0).unwrap_or_default();
        let vertices = self.vertices_of(only)?.remove(&id.0).unwrap_or_default();
        Ok(Some(ComputeSet { name, cycles, vertices }))
    }

    /// All compute sets with their cycles and vertices.
    pub fn compute_sets(&self) -> Result<Vec<(ComputeSetId, ComputeSet)>, ReportError> {
        let mut cycles = self.tile_runs(&COMPUTE_SET_CYCLES, ALL_IDS, |[cycles]| Cycles(cycles))?;
        let mut vertices = self.vertices_of(ALL_IDS)?;
        let names = self.compute_set_names()?;
        Ok(names
            .iter()
            .map(|(id, name)| {
                let cycles = cycles.remove(&id.0).unwrap_or_default();
                let vertices = vertices.remove(&id.0).unwrap_or_default();
                (*id, ComputeSet { name: name.clone(), cycles, vertices })
            })
            .collect())
    }

    fn vertices_of(
        &self,
        ids: RangeInclusive<u32>,
    ) -> Result<BTreeMap<u32, Vec<VertexGroup>>, ReportError> {
        let known = ["id", "compute_set"].iter().all(|column| self.db.has("vertex_groups", column));
        if !known {
            return Ok(BTreeMap::new());
        }
        let types = self.vertex_types()?.len();
        let columns = ["id", "compute_set", "vertex_type", "edges", "flops"];
        let params = [i64::from(*ids.start()), i64::from(*ids.end())];
        // Groups of a set are adjacent, so the ids of the first and the last bound them all.
        let select = SelectQuery::all("vertex_groups", &columns)
            .clauses("WHERE compute_set BETWEEN ?1 AND ?2 ORDER BY id")
            .params(&params);
        let groups = self.db.list(select, |cells| {
            let vertex_type = VertexTypeId(cells.small(2)?);
            let edges = cells.count(3, MAX_COUNT).unwrap_or(0);
            if vertex_type.index() >= types {
                return None;
            }
            let flops = cells.count(4, MAX_COUNT);
            Some((cells.small(0)?, cells.small(1)?, (vertex_type, edges, flops)))
        })?;
        let groups: Vec<_> = groups.into_iter().flatten().collect();
        let Some(first) = groups.first() else { return Ok(BTreeMap::new()) };
        let Some(last) = groups.last() else { return Ok(BTreeMap::new()) };
        let mut counts = self.tile_runs(&VERTEX_TILES, first.0..=last.0, |[count]| count)?;
        let mut sets: BTreeMap<u32, Vec<VertexGroup>> = BTreeMap::new();
        for (id, set, (vertex_type, edges, flops)) in groups {
            let count = counts.remove(&id).unwrap_or_default();
            let group = VertexGroup { vertex_type, count, edges, flops };
            sets.entry(set).or_default().push(group);
        }
        Ok(sets)
    }

    /// Vertex types, indexed by [`VertexTypeId`].
    pub fn vertex_types(&self) -> Result<Arc<Vec<VertexTypeInfo>>, ReportError> {
        self.vertex_types.get(|| {
            let columns = ["name", "code_bytes", "state_bytes", "shares_code"];
            self.db.list(SelectQuery::all("vertex_types", &columns), |cells| VertexTypeInfo {
                name: cells.text(0).unwrap_or_default(),
                code_bytes: cells.count(1, MAX_TILE_BYTES).unwrap_or_default(),
                state_bytes: cells.count(2, MAX_TILE_BYTES).unwrap_or_default(),
                shares_code: cells.int(3) == Some(1),
            })
        })
    }
}
