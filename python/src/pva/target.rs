//! `Target` and `Graph`: the machine, and the sizes of the compiled graph.

use super::report_data::ReportData;
use pyo3::prelude::*;
use std::sync::Arc;
use tilescope_report::{GraphCounts, TargetKind};

/// A member of an enum defined in `tilescope/pva.py`.
pub(super) fn enum_member(py: Python<'_>, class: &str, name: &str) -> PyResult<Py<PyAny>> {
    Ok(py.import("tilescope.pva")?.getattr(class)?.getattr(name)?.unbind())
}

/// The machine: one replica if the name says so, otherwise all of it.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct Target {
    pub(super) data: Arc<ReportData>,
}

impl Target {
    fn ipu_bytes(&self) -> u64 {
        let target = &self.data.target;
        target.bytes_per_tile.0.saturating_mul(u64::from(target.tiles_per_ipu))
    }
}

#[pymethods]
impl Target {
    /// A member of `Target.Type`.
    #[getter(r#type)]
    fn kind(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let name = match self.data.target.kind {
            TargetKind::Ipu => "Ipu",
            TargetKind::IpuModel => "IpuModel",
        };
        enum_member(py, "_TargetType", name)
    }

    /// A member of `IPU.Architecture`. A Bow has the architecture of a Mk2.
    #[getter]
    fn architecture(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let name = match self.data.target.architecture.as_str() {
            "Mk1" => "Ipu1",
            "Mk2" | "Bow" => "Ipu2",
            _ => "Unknown",
        };
        enum_member(py, "_Architecture", name)
    }

    #[getter(numIPUs)]
    fn num_ipus(&self) -> u32 {
        self.data.target.num_ipus
    }

    #[getter(numTiles)]
    fn num_tiles(&self) -> u64 {
        u64::from(self.data.target.num_ipus) * u64::from(self.data.target.tiles_per_ipu)
    }

    #[getter(tilesPerIpu)]
    fn tiles_per_ipu(&self) -> u32 {
        self.data.target.tiles_per_ipu
    }

    #[getter(bytesPerTile)]
    fn bytes_per_tile(&self) -> u64 {
        self.data.target.bytes_per_tile.0
    }

    #[getter(bytesPerIPU)]
    fn bytes_per_ipu(&self) -> u64 {
        self.ipu_bytes()
    }

    #[getter(totalMemory)]
    fn total_memory(&self) -> u64 {
        self.ipu_bytes().saturating_mul(u64::from(self.data.target.num_ipus))
    }

    /// The clock of the tiles, in hertz.
    #[getter(clockFrequency)]
    fn clock_frequency(&self) -> u64 {
        self.data.target.clock.0
    }

    #[getter(numReplicas)]
    fn num_replicas(&self) -> u32 {
        self.data.target.replicas
    }

    #[getter(ipusPerReplica)]
    fn ipus_per_replica(&self) -> u32 {
        self.data.target.ipus_per_replica
    }

    #[getter(tilesPerReplica)]
    fn tiles_per_replica(&self) -> u32 {
        self.data.target.tiles_per_replica()
    }

    #[getter(memoryPerReplica)]
    fn memory_per_replica(&self) -> u64 {
        self.ipu_bytes().saturating_mul(u64::from(self.data.target.ipus_per_replica))
    }
}

/// Sizes of the compiled graph of one replica.
#[pyclass(frozen, module = "tilescope.pva")]
pub(crate) struct Graph {
    pub(super) counts: GraphCounts,
}

#[pymethods]
impl Graph {
    #[getter(numComputeSets)]
    fn num_compute_sets(&self) -> u64 {
        self.counts.compute_sets
    }

    #[getter(numVertices)]
    fn num_vertices(&self) -> u64 {
        self.counts.vertices
    }

    #[getter(numEdges)]
    fn num_edges(&self) -> u64 {
        self.counts.edges
    }

    #[getter(numVars)]
    fn num_vars(&self) -> u64 {
        self.counts.variables
    }
}
