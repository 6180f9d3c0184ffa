//! `tilescope.pva`: libpva's object model over our reports.
//!
//! Every object is a handle: the open report and the id of an item in it. Data are read on first
//! access and cached with the report. Figures describe one replica, as in the file; only
//! `Target.numIPUs`, `numTiles` and `totalMemory` describe the whole machine.
//!
//! Data that a report did not record are missing attributes: clients of libpva handle
//! `AttributeError`.

mod execution;
mod liveness;
mod lowered_variables;
mod memory;
mod operations;
mod program_vertices;
mod programs;
mod report;
mod report_data;
mod sequences;
mod target;

pub(crate) use execution::{
    ActiveCycles, CycleInterval, ExecutionReport, Microseconds, Run, Step, StepOnIpu, TotalCycles,
};
pub(crate) use liveness::{LivenessMemory, LivenessStep, Variable};
pub(crate) use lowered_variables::{
    EquivalenceClass, LoweredVariable, LoweredVariables, StepInterval,
};
pub(crate) use memory::{
    CategoryBytes, CategoryRegion, IpuTiles, MemoryCategories, Tile, TileMemory, TileVertex,
    UsedBytes,
};
pub(crate) use operations::{DebugContext, Operation, OperationAnalysis};
pub(crate) use program_vertices::{ComputeSet, VertexInstances, VertexType};
pub(crate) use programs::Program;
pub(crate) use report::{
    CompilationReport, InstrumentationSettings, PoplarVersion, PvaReport, ReportVersion,
    open_report,
};
pub(crate) use sequences::{List, ListIterator, TileValues};
pub(crate) use target::{Graph, Target};

use pyo3::PyErr;
use pyo3::exceptions::PyAttributeError;

/// The exception for data that a report did not record.
fn not_recorded(what: &str) -> PyErr {
    PyAttributeError::new_err(format!("{what}: not recorded in this report"))
}

/// Implements equality and hashes of handles by report and id.
macro_rules! equal_by_id {
    ($handle:ident, $id:ident) => {
        impl PartialEq for $handle {
            fn eq(&self, other: &Self) -> bool {
                std::sync::Arc::ptr_eq(&self.data, &other.data) && self.$id == other.$id
            }
        }

        impl std::hash::Hash for $handle {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                std::hash::Hash::hash(&self.$id, state);
            }
        }
    };
}
use equal_by_id;
