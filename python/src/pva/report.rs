//! `openReport`, and the parts of a `Report`.

use super::execution::ExecutionReport;
use super::liveness::{LivenessStep, Variable, always_live};
use super::lowered_variables::LoweredVariables;
use super::memory::{IpuTiles, Tile, tile_in_range};
use super::not_recorded;
use super::program_vertices::ComputeSet;
use super::programs::Program;
use super::report_data::{ReportData, TileScope};
use super::sequences::{List, object};
use super::target::{Graph, Target, enum_member};
use crate::errors::report_error;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use tilescope_report::units::{IpuId, TileId, VariableId};
use tilescope_report::{ReportPart, TargetKind};

/// Opens a `profile.pop`, or the directory that contains one. Debug information is in the same
/// file: `debug` is accepted for compatibility and ignored.
#[pyfunction(name = "openReport")]
#[pyo3(signature = (profile, debug = None))]
pub(crate) fn open_report(
    py: Python<'_>,
    profile: PathBuf,
    debug: Option<PathBuf>,
) -> PyResult<PvaReport> {
    let _ = debug;
    let data = py
        .detach(|| ReportData::new(tilescope_report::Report::open(&profile)?))
        .map_err(report_error)?;
    Ok(PvaReport { data: Arc::new(data) })
}

/// An open report.
#[pyclass(frozen, name = "Report", module = "tilescope.pva")]
pub(crate) struct PvaReport {
    pub(super) data: Arc<ReportData>,
}

#[pymethods]
impl PvaReport {
    /// Version of the file's format.
    #[getter]
    fn version(&self) -> PyResult<ReportVersion> {
        let format = self.data.report.meta().get("format").cloned().unwrap_or_default();
        let mut parts = format.split('.').map(|part| part.parse().ok());
        let mut take_next = || parts.next().flatten();
        let (Some(major), Some(minor)) = (take_next(), take_next()) else {
            return Err(not_recorded("version of the format"));
        };
        Ok(ReportVersion { major, minor, point: 0, is_unstable_format: false })
    }

    /// The version of the compiler; here, of the simulator.
    #[getter(poplarVersion)]
    fn poplar_version(&self) -> PyResult<PoplarVersion> {
        let generator = self.data.report.meta().get("generator").cloned();
        let string = generator.ok_or_else(|| not_recorded("version of Poplar"))?;
        let number = string.rsplit(' ').next().unwrap_or_default().to_owned();
        let mut parts = number.split('.').map(|part| part.parse().unwrap_or(0));
        let mut take_next = || parts.next().unwrap_or(0);
        let major = take_next();
        let minor = take_next();
        let point = take_next();
        Ok(PoplarVersion { string, major, minor, point, package_hash: String::new() })
    }

    #[getter(instrumentationSettings)]
    fn instrumentation_settings(&self) -> InstrumentationSettings {
        InstrumentationSettings { data: self.data.clone() }
    }

    #[getter]
    fn compilation(&self) -> CompilationReport {
        CompilationReport { data: self.data.clone() }
    }

    #[getter]
    fn execution(&self) -> ExecutionReport {
        ExecutionReport { data: self.data.clone() }
    }

    fn __repr__(&self) -> String {
        format!("<pva.Report {}>", self.data.report.path().display())
    }
}

/// Version of the format of a report.
#[pyclass(frozen, get_all, module = "tilescope.pva")]
pub(crate) struct ReportVersion {
    major: u32,
    minor: u32,
    point: u32,
    #[pyo3(name = "isUnstableFormat")]
    is_unstable_format: bool,
}

/// Version of the compiler of the program.
#[pyclass(frozen, get_all, module = "tilescope.pva")]
pub(crate) struct PoplarVersion {
    string: String,
    major: u32,
    minor: u32,
    point: u32,
    #[pyo3(name = "packageHash")]
    package_hash: String,
}

/// The kinds of measurements in the report.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct InstrumentationSettings {
    data: Arc<ReportData>,
}

impl InstrumentationSettings {
    fn level(&self, py: Python<'_>, known: &str) -> PyResult<Py<PyAny>> {
        let has_cycles = self.data.report.has(ReportPart::Execution);
        enum_member(py, "_InstrumentationLevel", if has_cycles { known } else { "Off" })
    }
}

#[pymethods]
impl InstrumentationSettings {
    /// Compute sets have cycles for each tile.
    #[getter]
    fn compute(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.level(py, "Tile")
    }

    /// Copies between IPUs and with the host have one figure for each IPU.
    #[getter(externalExchange)]
    fn external_exchange(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.level(py, "Unknown")
    }
}

/// Everything that is known without running the program.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct CompilationReport {
    data: Arc<ReportData>,
}

#[pymethods]
impl CompilationReport {
    #[getter]
    fn target(&self) -> Target {
        Target { data: self.data.clone() }
    }

    #[getter]
    fn graph(&self) -> PyResult<Graph> {
        Ok(Graph { counts: self.data.report.graph().map_err(report_error)? })
    }

    /// IPUs of a replica.
    #[getter]
    fn ipus(&self) -> List {
        let data = self.data.clone();
        List::new(data.target.ipus_per_replica as usize, move |py, at| {
            object(py, IpuTiles { data: data.clone(), ipu: IpuId(at as u32) })
        })
    }

    /// Tiles of a replica, IPU by IPU.
    #[getter]
    fn tiles(&self) -> List {
        let data = self.data.clone();
        List::new(data.tiles(), move |py, at| {
            object(py, Tile { data: data.clone(), tile: TileId(at as u32) })
        })
    }

    #[getter(computeSets)]
    fn compute_sets(&self) -> PyResult<List> {
        let data = self.data.clone();
        let ids: Vec<_> = data.compute_sets()?.keys().copied().collect();
        Ok(List::of_ids(ids, move |py, set| object(py, ComputeSet { data: data.clone(), set })))
    }

    /// Each program once, also where it is called several times.
    #[getter]
    fn programs(&self) -> PyResult<List> {
        let data = self.data.clone();
        let table = data.programs()?;
        let ids = table.iter().map(|(id, _)| id).filter(|id| table.body(*id) == *id);
        Ok(List::of_ids(ids.collect(), move |py, id| object(py, Program::new(&data, id))))
    }

    /// The walk over the program, with each loop body once.
    #[getter(livenessProgramSteps)]
    fn liveness_program_steps(&self) -> PyResult<List> {
        let data = self.data.clone();
        Ok(List::new(data.liveness()?.len(), move |py, at| {
            object(py, LivenessStep { data: data.clone(), step: at as u32 })
        }))
    }

    /// Variables without a lifetime, with their bytes on all tiles.
    #[getter(alwaysLiveVariables)]
    fn always_live_variables(&self) -> PyResult<List> {
        always_live(&self.data, TileScope::Replica)
    }

    /// Variables without a lifetime on one tile, with their bytes there.
    #[pyo3(name = "alwaysLiveVariablesForTile")]
    fn always_live_variables_for_tile(&self, tile: u32) -> PyResult<List> {
        always_live(&self.data, TileScope::Tile(tile_in_range(&self.data, tile)?))
    }

    #[getter(loweredVariables)]
    fn lowered_variables(&self) -> LoweredVariables {
        LoweredVariables { data: self.data.clone() }
    }
}

/// A list of variables, with their bytes in a scope.
pub(super) fn variable_list(
    data: &Arc<ReportData>,
    ids: Vec<VariableId>,
    scope: TileScope,
) -> List {
    let data = data.clone();
    List::of_ids(ids, move |py, id| object(py, Variable { data: data.clone(), id, scope }))
}

/// True if code is generated for the target.
pub(super) fn has_code(data: &ReportData) -> bool {
    data.target.kind == TargetKind::Ipu
}
