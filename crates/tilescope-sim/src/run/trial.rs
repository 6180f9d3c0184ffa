//! Runs of programs that are tried, only to see how long they take.

use super::{dry_run, run_cycles};
use crate::compile::CompiledProgram;
use crate::specification::Spec;
use tilescope_report::units::Cycles;

/// Micro-batches of the longest run that a program is tried with. Longer ones are cut.
const MOST_MICRO_BATCHES: u64 = 1 << 14;

/// Length of the run of a program.
pub(crate) fn length_of_run(program: &CompiledProgram, spec: &Spec) -> Cycles {
    run_cycles(program, spec, &dry_run(program, spec))
}

/// A spec of fewer micro-batches, where it has too many to run through them for each program that is
/// tried.
pub(crate) fn shortened(spec: &Spec) -> Option<Spec> {
    let options = &spec.options;
    let all = options.gradient_accumulation.saturating_mul(options.device_iterations);
    (all > MOST_MICRO_BATCHES).then(|| {
        let mut short = spec.clone();
        let most = MOST_MICRO_BATCHES;
        short.options.gradient_accumulation = options.gradient_accumulation.min(most);
        short.options.device_iterations =
            options.device_iterations.min(most / short.options.gradient_accumulation).max(1);
        short
    })
}
