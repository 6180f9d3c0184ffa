//! Bounds on the time of a program without a report.

use tilescope_analysis::confidence::{ErrorProneRun, LaneCycles, RunFactors};
use tilescope_report::units::{Cycles, ProgramId};
use tilescope_report::{CompilationReport, ProgramNodeTable};

/// The factors of a run of `length`, with the cycles of the compute tiles of each IPU by program;
/// `None` if no errors are known.
pub(super) fn run_factors(
    compilation: &CompilationReport,
    length: Cycles,
    lanes: &[Vec<Cycles>],
) -> Option<RunFactors> {
    run_errors(compilation, length, lanes, |run| run.time_factors())
}

/// The answer of `asked` about the errors of the same run.
pub(super) fn run_errors<T>(
    compilation: &CompilationReport,
    length: Cycles,
    lanes: &[Vec<Cycles>],
    asked: fn(&ErrorProneRun<'_>) -> Option<T>,
) -> Option<T> {
    let programs = &compilation.programs;
    let lanes = lanes.iter().map(|lane| {
        let ids = (0..).map(ProgramId).zip(programs).zip(lane);
        ids.map(|((id, program), cycles)| (Some(id), program.kind, *cycles)).collect()
    });
    let run = ErrorProneRun {
        bands: &compilation.error_bands,
        errors: &compilation.program_errors,
        programs: &ProgramNodeTable::of_nodes(programs),
        operations: &compilation.operations,
        length,
        lanes: &lanes.collect::<Vec<LaneCycles>>(),
    };
    asked(&run)
}
