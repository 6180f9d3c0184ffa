//! The extension module `tilescope._tilescope`: what `import tilescope` gives of reports.
//!
//! It only reads. Whatever simulates starts the program instead (`tilescope/_cli.py`), so that
//! Ctrl-C is a kill and a simulation that runs out of memory does not take a notebook along.
//!
//! A panic becomes Python's `PanicException` at the border (PyO3 catches it there), errors become
//! the exceptions of `errors`.

mod errors;
mod pva;
mod report;

use pyo3::prelude::*;

#[pymodule(name = "_tilescope")]
mod module {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::errors::ReportError;
    #[pymodule_export]
    use crate::report::{Report, open};

    /// What `tilescope.pva` is made of.
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
