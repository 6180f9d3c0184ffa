//! Between which bounds the time of a program lies that is in no report.

use tilescope_analysis::confidence::{ErrorProneRun, LaneCycles, RunFactors};
use tilescope_report::units::{Cycles, ProgramId};
use tilescope_report::{CompilationReport, ProgramNodeTable};

/// Of a run of `length` with so many cycles of the compute tiles of each IPU by program; `None`
/// where nothing is known of errors.
pub(super) fn run_factors(
    compilation: &CompilationReport,
    length: Cycles,
    lanes: &[Vec<Cycles>],
) -> Option<RunFactors> {
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
    run.time_factors()
}
