//! Live variables at each step of the walk over the program.

use super::memory::tile_in_range;
use super::programs::Program;
use super::report::variable_list;
use super::report_data::{ReportData, TileScope};
use super::sequences::List;
use super::{equal_by_id, not_recorded};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use std::sync::Arc;
use tilescope_report::units::{IpuId, VariableId};

/// A step of the walk over the program.
#[pyclass(frozen, eq, hash, name = "LivenessProgramStep", module = "tilescope.pva")]
pub(crate) struct LivenessStep {
    pub(super) data: Arc<ReportData>,
    pub(super) step: u32,
}
equal_by_id!(LivenessStep, step);

impl LivenessStep {
    fn memory(&self, scope: TileScope) -> LivenessMemory {
        LivenessMemory { data: self.data.clone(), step: self.step, scope }
    }
}

#[pymethods]
impl LivenessStep {
    #[getter]
    fn program(&self) -> PyResult<Program> {
        let steps = self.data.liveness()?;
        let step = steps.get(self.step as usize).ok_or_else(|| not_recorded("program"))?;
        Program::of_step(&self.data, step.program)
    }

    #[getter(notAlwaysLiveMemory)]
    fn not_always_live_memory(&self) -> LivenessMemory {
        self.memory(TileScope::Replica)
    }

    #[pyo3(name = "notAlwaysLiveMemoryForIpu")]
    fn not_always_live_memory_for_ipu(&self, ipu: u32) -> PyResult<LivenessMemory> {
        if !self.data.target.has_ipu(IpuId(ipu)) {
            return Err(PyIndexError::new_err(format!("a replica has no IPU {ipu}")));
        }
        Ok(self.memory(TileScope::Ipu(IpuId(ipu))))
    }

    #[pyo3(name = "notAlwaysLiveMemoryForTile")]
    fn not_always_live_memory_for_tile(&self, tile: u32) -> PyResult<LivenessMemory> {
        Ok(self.memory(TileScope::Tile(tile_in_range(&self.data, tile)?)))
    }
}

/// Variables that are live at a step and not always.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct LivenessMemory {
    data: Arc<ReportData>,
    step: u32,
    scope: TileScope,
}

#[pymethods]
impl LivenessMemory {
    #[getter]
    fn bytes(&self) -> PyResult<u64> {
        let bytes = self.data.live_bytes(self.scope)?;
        bytes.get(self.step as usize).copied().ok_or_else(|| not_recorded("live bytes"))
    }

    #[getter]
    fn variables(&self) -> PyResult<List> {
        let table = self.data.variables()?;
        let is_live = |variable: &tilescope_report::Variable| {
            let life = variable.lifetime.as_ref();
            life.is_some_and(|life| life.contains(&self.step))
                && is_in(variable, self.scope, &self.data)
        };
        let found = table.variables.iter().enumerate().filter(|(_, variable)| is_live(variable));
        let ids = found.map(|(index, _)| VariableId::from_index(index)).collect();
        Ok(variable_list(&self.data, ids, self.scope))
    }
}

/// True if a variable has a part in a scope.
fn is_in(variable: &tilescope_report::Variable, scope: TileScope, data: &ReportData) -> bool {
    match scope {
        TileScope::Replica => true,
        TileScope::Ipu(ipu) => variable.tiles.overlaps(data.target.tiles_of_ipu(ipu)),
        TileScope::Tile(tile) => variable.tiles.get(tile).is_some(),
    }
}

/// Variables without a lifetime, in a scope.
pub(super) fn always_live(data: &Arc<ReportData>, scope: TileScope) -> PyResult<List> {
    let table = data.variables()?;
    let is_live = |variable: &tilescope_report::Variable| {
        variable.lifetime.is_none() && is_in(variable, scope, data)
    };
    let found = table.variables.iter().enumerate().filter(|(_, variable)| is_live(variable));
    let ids = found.map(|(index, _)| VariableId::from_index(index)).collect();
    Ok(variable_list(data, ids, scope))
}

/// A variable with its bytes on a tile, an IPU or the replica.
#[pyclass(frozen, eq, hash, module = "tilescope.pva")]
pub(crate) struct Variable {
    pub(super) data: Arc<ReportData>,
    pub(super) id: VariableId,
    pub(super) scope: TileScope,
}
equal_by_id!(Variable, id);

impl Variable {
    fn read<T>(&self, take: impl FnOnce(&tilescope_report::Variable) -> T) -> PyResult<T> {
        let table = self.data.variables()?;
        let variable = table.variables.get(self.id.index());
        variable.map(take).ok_or_else(|| not_recorded("variable"))
    }
}

#[pymethods]
impl Variable {
    #[getter]
    fn _id(&self) -> u32 {
        self.id.0
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        self.read(|variable| variable.name.clone())
    }

    /// Bytes on the requested tiles.
    #[getter]
    fn size(&self) -> PyResult<u64> {
        self.read(|variable| self.data.bytes_in(variable, self.scope))
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<pva.Variable {}: {} B>", self.name()?, self.size()?))
    }
}
