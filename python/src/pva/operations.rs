//! `OperationAnalysis`: programs by the operation of the model that they belong to.

use super::programs::{Program, lowered_list, used_variables};
use super::report::PvaReport;
use super::report_data::ReportData;
use super::sequences::{List, object};
use super::{equal_by_id, not_recorded};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tilescope_report::ModelOperation;
use tilescope_report::units::{OperationId, ProgramId};

/// Programs of each operation, in order.
type ProgramsOfOperations = BTreeMap<OperationId, Vec<ProgramId>>;

/// The operations of a report.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct OperationAnalysis {
    data: Arc<ReportData>,
    programs: Arc<OnceLock<ProgramsOfOperations>>,
}

#[pymethods]
impl OperationAnalysis {
    #[new]
    fn new(report: &PvaReport) -> Self {
        Self { data: report.data.clone(), programs: Arc::default() }
    }

    #[getter]
    fn operations(&self) -> PyResult<List> {
        let table = self.data.programs()?;
        self.programs.get_or_init(|| {
            let mut programs = ProgramsOfOperations::new();
            for (id, node) in table.iter() {
                let of = node.operation.map(|operation| programs.entry(operation).or_default());
                of.into_iter().for_each(|of| of.push(id));
            }
            programs
        });
        let data = self.data.clone();
        let programs = self.programs.clone();
        Ok(List::new(data.operations()?.len(), move |py, at| {
            let id = OperationId::from_index(at);
            let programs = programs.clone();
            object(py, Operation { data: data.clone(), id, programs })
        }))
    }
}

/// An operation of the model.
#[pyclass(frozen, eq, hash, module = "tilescope.pva")]
pub(crate) struct Operation {
    data: Arc<ReportData>,
    id: OperationId,
    programs: Arc<OnceLock<ProgramsOfOperations>>,
}
equal_by_id!(Operation, id);

impl Operation {
    /// Its programs, including separate ones for outlined code.
    fn own_programs(&self) -> &[ProgramId] {
        let programs = self.programs.get().and_then(|programs| programs.get(&self.id));
        programs.map_or(&[], Vec::as_slice)
    }

    /// Liveness steps of its programs, in order.
    fn steps(&self) -> PyResult<Vec<u32>> {
        let steps_of = self.data.steps_of_programs()?;
        let own = self.own_programs().iter().filter_map(|id| steps_of.get(id));
        let mut steps: Vec<u32> = own.flatten().copied().collect();
        steps.sort_unstable();
        Ok(steps)
    }
}

#[pymethods]
impl Operation {
    #[getter]
    fn name(&self) -> PyResult<String> {
        self.debug_context().operation(|operation| operation.name.clone())
    }

    #[getter(debugContext)]
    fn debug_context(&self) -> DebugContext {
        DebugContext { data: self.data.clone(), id: self.id }
    }

    /// Contexts that a function has replaced by that of its first use: always empty, because
    /// operations that run a function have contexts of their own here.
    #[getter(replacedDebugContext)]
    fn replaced_debug_context(&self) -> List {
        let data = self.data.clone();
        List::of_ids(Vec::new(), move |py, id| object(py, DebugContext { data: data.clone(), id }))
    }

    /// Programs that contain its code. Code that several operations share belongs to the first of
    /// them, so that sums over operations count no program twice.
    fn programs(&self) -> PyResult<List> {
        let data = self.data.clone();
        let table = self.data.programs()?;
        let mut ids: Vec<ProgramId> =
            self.own_programs().iter().map(|id| table.body(*id)).collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(List::of_ids(ids, move |py, id| object(py, Program::new(&data, id))))
    }

    /// Lowered variables that its programs use.
    #[getter]
    fn vars(&self) -> PyResult<List> {
        lowered_list(&self.data, &used_variables(&self.data, &self.steps()?)?)
    }

    /// Its first step in `livenessProgramSteps`.
    #[getter(firstStepIndex)]
    fn first_step_index(&self) -> PyResult<u32> {
        self.steps()?.first().copied().ok_or_else(|| not_recorded("step of the operation"))
    }

    /// Its last step in `livenessProgramSteps`.
    #[getter(lastStepIndex)]
    fn last_step_index(&self) -> PyResult<u32> {
        self.steps()?.last().copied().ok_or_else(|| not_recorded("step of the operation"))
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<pva.Operation {}>", self.name()?))
    }
}

/// The framework whose terms debug contexts use.
const LAYER: &str = "poptorch";

/// The origin of an operation, in terms of the framework.
#[pyclass(frozen, eq, hash, module = "tilescope.pva")]
pub(crate) struct DebugContext {
    data: Arc<ReportData>,
    id: OperationId,
}
equal_by_id!(DebugContext, id);

impl DebugContext {
    fn operation<T>(&self, take: impl FnOnce(&ModelOperation) -> T) -> PyResult<T> {
        let operations = self.data.operations()?;
        let operation = operations.get(self.id.index());
        operation.map(take).ok_or_else(|| not_recorded("operation"))
    }
}

#[pymethods]
impl DebugContext {
    #[getter]
    fn id(&self) -> u32 {
        self.id.0
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        self.operation(|operation| operation.name.clone())
    }

    /// Parent contexts: always empty.
    #[getter]
    fn parents(&self) -> List {
        let data = self.data.clone();
        List::of_ids(Vec::new(), move |py, id| object(py, Self { data: data.clone(), id }))
    }

    /// Its framework, as JSON.
    #[getter]
    fn layer(&self) -> String {
        serde_json::json!({ "layer": LAYER }).to_string()
    }

    /// The fields that PopTorch and PopART write for an operation: `layer`, `opName`, `op_name`,
    /// `op_type`, `source`, `instanceId`, and `inputs`, the operations whose results it reads.
    #[getter]
    fn json(&self) -> PyResult<String> {
        let operations = self.data.operations()?;
        self.operation(|operation| {
            serde_json::json!({
                "layer": LAYER,
                "opName": operation.name,
                "op_name": operation.name,
                "op_type": operation.kind,
                "source": operation.source,
                "instanceId": self.id.0.to_string(),
                "inputs": operation.inputs.iter().filter_map(|id| operations.get(id.index()).map(|input| input.name.as_str())).collect::<Vec<_>>(),
            })
            .to_string()
        })
    }
}
