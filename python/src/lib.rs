//! The extension module `tilescope._tilescope`: reports, wrapped by the Python files beside it.
//!
//! It only reads. Functions that simulate or draw start the program instead
//! (`tilescope/_program.py`), so that Ctrl-C is a kill and a simulation that runs out of memory
//! does not end the notebook.
//!
//! Errors become the exceptions of `errors`. Panics are caught at the boundaries of Rust: by PyO3
//! for calls from Python, and by `stream` for readers of Arrow streams.

mod comparison;
mod errors;
mod pva;
mod report;
mod sql;
mod stream;
mod table;
mod threads;

use pyo3::prelude::*;

#[pymodule(name = "_tilescope")]
mod module {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::comparison::{Comparison, compare};
    #[pymodule_export]
    use crate::errors::{QueryError, ReportError};
    #[pymodule_export]
    use crate::report::{Report, open};
    #[pymodule_export]
    use crate::table::{Table, table_of_columns};

    /// The contents of `tilescope.pva`.
    #[pymodule]
    mod _pva {
        #[pymodule_export]
        use crate::pva::{
            ActiveCycles, CategoryBytes, CategoryRegion, CompilationReport, ComputeSet,
            CycleInterval, DebugContext, EquivalenceClass, ExecutionReport, Graph,
            InstrumentationSettings, IpuTiles, List, ListIterator, LivenessMemory, LivenessStep,
            LoweredVariable, LoweredVariables, MemoryCategories, Microseconds, Operation,
            OperationAnalysis, PoplarVersion, Program, PvaReport, ReportVersion, Run, Step,
            StepInterval, StepOnIpu, Target, Tile, TileMemory, TileValues, TileVertex, TotalCycles,
            UsedBytes, Variable, VertexInstances, VertexType, open_report,
        };
    }
}
