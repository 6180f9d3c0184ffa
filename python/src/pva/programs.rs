//! Nodes of the compiled program.

use super::lowered_variables::LoweredVariable;
use super::program_vertices::ComputeSet;
use super::report::has_code;
use super::report_data::ReportData;
use super::sequences::{List, TileValues, add_runs, object};
use super::target::enum_member;
use super::{equal_by_id, not_recorded};
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use tilescope_report::units::{ProgramId, VariableId};
use tilescope_report::{ExchangeTraffic, ProgramKind};

/// The member of `Program.Type` for a kind of program, which is also part of the name of `visit…`
/// methods.
fn type_name(kind: ProgramKind) -> &'static str {
    match kind {
        // A switch here selects the same case on all tiles.
        ProgramKind::Switch => "OnEveryTileSwitch",
        kind => kind.name(),
    }
}

/// A node of the compiled program. Of outlined code there is one, however often it is called; the
/// report has one for each call, so that steps belong to their own operations.
#[pyclass(frozen, eq, hash, module = "tilescope.pva")]
pub(crate) struct Program {
    data: Arc<ReportData>,
    id: ProgramId,
    /// The call of outlined code that it was reached by; nothing where all calls are meant.
    call: Option<ProgramId>,
}
equal_by_id!(Program, id);

impl Program {
    /// A program that holds its code, with all calls of it.
    pub(super) fn new(data: &Arc<ReportData>, id: ProgramId) -> Self {
        Self { data: data.clone(), id, call: None }
    }

    /// The program that a step runs.
    pub(super) fn of_step(data: &Arc<ReportData>, call: ProgramId) -> PyResult<Self> {
        let id = data.programs()?.body(call);
        Ok(Self { data: data.clone(), id, call: Some(call) })
    }

    /// Liveness steps that run it, in order.
    fn steps(&self) -> PyResult<Vec<u32>> {
        let steps_of = self.data.steps_of_programs()?;
        let further = self.data.further_calls()?;
        let further = further.get(&self.id).map_or(&[][..], Vec::as_slice);
        let calls: Vec<ProgramId> = match self.call {
            Some(call) => vec![call],
            None => further.iter().copied().chain([self.id]).collect(),
        };
        let steps = calls.iter().filter_map(|call| steps_of.get(call));
        let mut steps: Vec<u32> = steps.flatten().copied().collect();
        steps.sort_unstable();
        Ok(steps)
    }

    fn kind(&self) -> PyResult<ProgramKind> {
        self.data.node(self.id, |node| node.kind)
    }

    fn exchange<T>(&self, take: impl FnOnce(&ExchangeTraffic) -> T) -> PyResult<T> {
        let exchanges = self.data.exchanges()?;
        let found = exchanges.get(&self.id).map(take);
        found.ok_or_else(|| not_recorded("exchange of a program that moves no data"))
    }

    /// The program and all its descendants, without duplicates.
    fn descendants(&self) -> PyResult<BTreeSet<ProgramId>> {
        let programs = self.data.programs()?;
        let mut found = BTreeSet::new();
        let mut open = vec![self.id];
        while let Some(id) = open.pop() {
            if found.insert(id) {
                let children = programs.get(id).map(|node| &node.children[..]);
                open.extend(children.unwrap_or_default());
            }
        }
        Ok(found)
    }
}

#[pymethods]
impl Program {
    #[getter]
    fn _id(&self) -> u32 {
        self.id.0
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        self.data.node(self.id, |node| node.name.clone())
    }

    /// A member of `Program.Type`.
    #[getter(r#type)]
    fn program_type(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        enum_member(py, "_ProgramType", type_name(self.kind()?))
    }

    #[getter]
    fn children(&self) -> PyResult<List> {
        let data = self.data.clone();
        let ids = self.data.node(self.id, |node| node.children.clone())?;
        Ok(List::of_ids(ids, move |py, id| object(py, Self::new(&data, id))))
    }

    /// The compute set of an `OnTileExecute`.
    #[getter]
    fn computeset(&self) -> PyResult<ComputeSet> {
        let set = self.data.node(self.id, |node| node.compute_set)?;
        let set = set.ok_or_else(|| not_recorded("compute set of a program that executes none"))?;
        Ok(ComputeSet { data: self.data.clone(), set })
    }

    /// Lowered variables that it uses: of a step's program those of the step, else those of all calls.
    #[getter]
    fn vars(&self) -> PyResult<List> {
        lowered_list(&self.data, &used_variables(&self.data, &self.steps()?)?)
    }

    /// Control code with that of the programs below it, each counted once.
    #[getter(controlCodeByTile)]
    fn control_code_by_tile(&self) -> PyResult<TileValues> {
        let recorded = self.data.control_code()?;
        let Some(code) = &*recorded else { return Err(not_recorded("control code of programs")) };
        let mut bytes = vec![0; self.data.tiles()];
        for id in self.descendants()? {
            for tiles in code.get(&id).into_iter().flatten() {
                add_runs(&mut bytes, tiles, |bytes| bytes.0);
            }
        }
        Ok(TileValues::new(bytes))
    }

    /// Exchange code.
    #[getter(codeBytesByTile)]
    fn code_bytes_by_tile(&self) -> PyResult<TileValues> {
        let mut bytes = vec![0; self.data.tiles()];
        let has_code = has_code(&self.data);
        self.exchange(|exchange| {
            if has_code {
                add_runs(&mut bytes, &exchange.tiles, |tile| tile.code_bytes.0);
            }
        })?;
        Ok(TileValues::new(bytes))
    }

    /// Cycles in which each tile sends or receives.
    #[getter(estimatedCyclesByTile)]
    fn estimated_cycles_by_tile(&self) -> PyResult<TileValues> {
        exchange_cycles(&self.data, self.id)?
            .map(TileValues::new)
            .ok_or_else(|| not_recorded("cycles of an exchange by tile"))
    }

    /// Calls the visitor's method for programs of this type, only for this program.
    fn accept(slf: Bound<'_, Self>, visitor: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = format!("visit{}", type_name(slf.get().kind()?));
        visitor.call_method1(name, (slf,))?;
        Ok(())
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<pva.Program {} {} {}>", self.id.0, type_name(self.kind()?), self.name()?))
    }
}

/// Cycles of each tile in an exchange between tiles, if they were recorded.
pub(super) fn exchange_cycles(data: &ReportData, id: ProgramId) -> PyResult<Option<Vec<u64>>> {
    let body = data.programs()?.body(id);
    let exchanges = data.exchanges()?;
    let known = exchanges.get(&body).filter(|exchange| !exchange.cycles.is_empty());
    Ok(known.map(|exchange| {
        let mut cycles = vec![0; data.tiles()];
        add_runs(&mut cycles, &exchange.cycles, |cycles| cycles.0);
        cycles
    }))
}

/// Variables that any of these liveness steps uses, in order; `steps` must be sorted.
pub(super) fn used_variables(data: &ReportData, steps: &[u32]) -> PyResult<Vec<VariableId>> {
    let recorded = data.uses()?;
    let Some(uses) = &*recorded else { return Err(not_recorded("variables of programs")) };
    let is_used = |of: &Vec<std::ops::Range<u32>>| {
        of.iter().any(|range| {
            let next = steps.partition_point(|step| *step < range.start);
            steps.get(next).is_some_and(|step| *step < range.end)
        })
    };
    let found = uses.0.iter().enumerate().filter(|(_, of)| is_used(of));
    Ok(found.map(|(index, _)| VariableId::from_index(index)).collect())
}

/// The parts of variables on all their tiles.
pub(super) fn lowered_list(data: &Arc<ReportData>, ids: &[VariableId]) -> PyResult<List> {
    let table = data.variables()?;
    let data = data.clone();
    // The index in the list at which the parts of each variable begin.
    let mut starts: Vec<(usize, VariableId)> = Vec::with_capacity(ids.len());
    let mut count = 0;
    for id in ids {
        let parts = table.part_range(*id);
        starts.push((count, *id));
        count += parts.len();
    }
    Ok(List::new(count, move |py, at| {
        let after = starts.partition_point(|(start, _)| *start <= at);
        let found = after.checked_sub(1).and_then(|place| starts.get(place));
        let (start, id) = found.copied().ok_or_else(|| not_recorded("variable"))?;
        object(py, LoweredVariable::new(&data, &table, id, at - start)?)
    }))
}
