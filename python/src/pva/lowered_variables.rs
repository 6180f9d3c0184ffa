//! Lowered variables: the parts of variables on tiles.

use super::liveness::Variable;
use super::memory::tile_in_range;
use super::report_data::{ReportData, TileScope, VariableTable};
use super::sequences::{List, object};
use super::{equal_by_id, not_recorded};
use pyo3::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use tilescope_report::units::{TileId, VariableId};

/// All lowered variables.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct LoweredVariables {
    pub(super) data: Arc<ReportData>,
}

#[pymethods]
impl LoweredVariables {
    /// All lowered variables, by id.
    #[getter(allBriefVars)]
    fn all_brief_vars(&self) -> PyResult<List> {
        let data = self.data.clone();
        let table = self.data.variables()?;
        Ok(List::new(table.parts() as usize, move |py, at| {
            let part = u32::try_from(at).unwrap_or(u32::MAX);
            let id = table.variable_of(part).ok_or_else(|| not_recorded("lowered variable"))?;
            let place = part - table.part_range(id).start;
            object(py, LoweredVariable::new(&data, &table, id, place as usize)?)
        }))
    }

    /// The lowered variables on one tile.
    #[pyo3(name = "forTile")]
    fn for_tile(&self, tile: u32) -> PyResult<List> {
        let tile = tile_in_range(&self.data, tile)?;
        let data = self.data.clone();
        let table = self.data.variables()?;
        let ids = (0..table.variables.len()).map(VariableId::from_index);
        let here: Vec<(VariableId, u32)> =
            ids.filter_map(|id| Some((id, table.part_on(id, tile)?))).collect();
        Ok(List::of_ids(here, move |py, (id, part)| {
            let bytes = data
                .variables()?
                .variables
                .get(id.index())
                .and_then(|variable| Some(variable.tiles.get(tile)?.bytes.0));
            let bytes = bytes.unwrap_or_default();
            object(py, LoweredVariable { data: data.clone(), part, variable: id, tile, bytes })
        }))
    }
}

/// The part of a variable on a tile.
#[pyclass(frozen, eq, hash, module = "tilescope.pva")]
pub(crate) struct LoweredVariable {
    data: Arc<ReportData>,
    /// Its number among all parts, by variable and tile.
    part: u32,
    variable: VariableId,
    tile: TileId,
    bytes: u64,
}
equal_by_id!(LoweredVariable, part);

impl LoweredVariable {
    /// The part of a variable with index `place` in the order of its tiles.
    pub(super) fn new(
        data: &Arc<ReportData>,
        table: &VariableTable,
        variable: VariableId,
        place: usize,
    ) -> PyResult<Self> {
        let parts = table.parts_of(variable);
        let found = parts.get(place).copied();
        let (tile, bytes) = found.ok_or_else(|| not_recorded("lowered variable"))?;
        let part = table.part_range(variable).start + place as u32;
        Ok(Self { data: data.clone(), part, variable, tile, bytes })
    }

    fn read<T>(&self, take: impl FnOnce(&tilescope_report::Variable) -> T) -> PyResult<T> {
        let table = self.data.variables()?;
        let variable = table.variables.get(self.variable.index());
        variable.map(take).ok_or_else(|| not_recorded("variable"))
    }
}

#[pymethods]
impl LoweredVariable {
    #[getter]
    fn _id(&self) -> u32 {
        self.part
    }

    #[getter]
    fn id(&self) -> u32 {
        self.part
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        self.read(|variable| variable.name.clone())
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    #[getter(tileId)]
    fn tile_id(&self) -> u32 {
        self.tile.0
    }

    #[getter(alwaysLive)]
    fn always_live(&self) -> PyResult<bool> {
        self.read(|variable| variable.lifetime.is_none())
    }

    /// The class of variables that are live in the same steps.
    #[getter(equivalenceClass)]
    fn equivalence_class(&self) -> PyResult<EquivalenceClass> {
        let table = self.data.variables()?;
        let class = table.classes.get(self.variable.index()).copied();
        let id = class.ok_or_else(|| not_recorded("lifetime"))?;
        let steps = table.lifetimes.get(id as usize).cloned().unwrap_or_default();
        Ok(EquivalenceClass { id, steps })
    }

    #[getter(hasUnloweredVar)]
    fn has_unlowered_var(&self) -> bool {
        true
    }

    /// The variable that it is a part of, with the bytes of this tile.
    #[getter(unloweredVar)]
    fn unlowered_var(&self) -> Variable {
        let scope = TileScope::Tile(self.tile);
        Variable { data: self.data.clone(), id: self.variable, scope }
    }

    fn __repr__(&self) -> PyResult<String> {
        let name = self.name()?;
        let bytes = self.bytes;
        let tile = self.tile;
        Ok(format!("<pva.LoweredVariable {name}: {bytes} B on tile {tile}>"))
    }
}

/// Variables of one lifetime.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct EquivalenceClass {
    #[pyo3(get)]
    id: u32,
    steps: Range<u32>,
}

#[pymethods]
impl EquivalenceClass {
    /// Liveness steps in which they are live: here, always one interval.
    #[getter]
    fn steps(&self) -> List {
        let Range { start, end } = self.steps.clone();
        List::new(1, move |py, _| object(py, StepInterval { start, end }))
    }
}

/// Liveness steps from `start` up to but not including `end`.
#[pyclass(frozen, get_all, module = "tilescope.pva")]
pub(crate) struct StepInterval {
    start: u32,
    end: u32,
}
