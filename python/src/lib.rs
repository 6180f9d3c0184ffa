//! The extension module `tilescope._tilescope`: what `import tilescope` gives of reports.
//!
//! It only reads. Whatever simulates starts the program instead (`tilescope/_cli.py`), so that
//! Ctrl-C is a kill and a simulation that runs out of memory does not take a notebook along.
//!
//! A panic becomes Python's `PanicException` at the border (PyO3 catches it there), errors become
//! the exceptions of `errors`.

mod errors;
mod report;

use pyo3::prelude::*;

#[pymodule(name = "_tilescope")]
mod module {
    #[pymodule_export]
    use crate::errors::ReportError;
    #[pymodule_export]
    use crate::report::{Report, open};
}
