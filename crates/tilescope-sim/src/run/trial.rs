//! Trial runs of programs, for their length only.

use super::{dry_run, run_cycles};
use crate::compile::CompiledProgram;
use crate::specification::Spec;
use tilescope_report::units::Cycles;

/// The largest number of micro-batches of a trial run. Longer runs are shortened.
const MOST_MICRO_BATCHES: u64 = 1 << 14;

/// Returns the length of the run of a program.
pub(crate) fn length_of_run(program: &CompiledProgram, spec: &Spec) -> Cycles {
    run_cycles(program, spec, &dry_run(program, spec))
}

/// Returns a spec with fewer micro-batches, if the spec has too many to run all of them for each
/// program that is tried.
pub(crate) fn shortened(spec: &Spec) -> Option<Spec> {
    let options = &spec.options;
    let all = options.gradient_accumulation.saturating_mul(options.device_iterations);
    if all <= MOST_MICRO_BATCHES {
        return None;
    }
    let mut short = spec.clone();
    let most = MOST_MICRO_BATCHES;
    short.options.gradient_accumulation = options.gradient_accumulation.min(most);
    short.options.device_iterations =
        options.device_iterations.min(most / short.options.gradient_accumulation).max(1);
    Some(short)
}
