//! The operations that delay a run: the same run with the steps of one of them shortened.

use super::{RetimedProgram, RunFigures, shortened_by};
use crate::run::{self, StepSink, retimed_cycles};
use crate::simulation::Simulation;
use crate::specification::Spec;
use std::convert::Infallible;
use tilescope_report::units::{Cycles, OperationId, ProgramId};
use tilescope_report::{ExecutionStep, TraceMark, TrainingPass};

/// The largest speedup of an operation that is tried. An operation that still delays the run then
/// always delays it.
const FASTEST: f64 = 100.0;

/// The relative precision of the factor beyond which an operation does not matter.
const FACTOR_PRECISION: f64 = 0.01;

/// An operation, and the effect of more speed on the run.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationSensitivity {
    /// The name, such as `layer2/conv`.
    pub name: String,
    pub pass: TrainingPass,
    /// Its cycles in the run, on its IPU of a replica.
    pub cycles: Cycles,
    /// The run with its steps accelerated by the requested factor.
    pub run: RunFigures,
    /// The speedup beyond which the operation does not delay the run. It is 1 if it never delays
    /// it, and `None` if it still does at a hundred times its speed.
    pub off_path_beyond: Option<f64>,
}

/// An operation with many cycles.
pub(super) struct BusyOperation {
    id: OperationId,
    cycles: Cycles,
}

/// Returns the operations with the most cycles, sorted by cycles in descending order.
pub(super) fn busiest(
    simulation: &Simulation<'_>,
    spec: &Spec,
    count: usize,
) -> Vec<BusyOperation> {
    if count == 0 {
        return Vec::new();
    }
    let Some(summary) = simulation.dry_run() else { return Vec::new() };
    let compiled = simulation.compiled();
    let programs = &compiled.compilation.programs;
    let mut sums = OperationCycles {
        of_program: programs.iter().map(|program| program.operation).collect(),
        cycles: vec![Cycles::ZERO; compiled.compilation.operations.len()],
    };
    let Ok(()) = run::run(compiled, spec, summary, &mut sums);
    let mut busy = Vec::new();
    for (index, cycles) in sums.cycles.into_iter().enumerate() {
        if !cycles.is_zero() {
            busy.push(BusyOperation { id: OperationId::from_index(index), cycles });
        }
    }
    busy.sort_by_key(|of| (std::cmp::Reverse(of.cycles), of.id));
    busy.truncate(count);
    busy
}

/// A sink that adds up the cycles of operations.
struct OperationCycles {
    of_program: Vec<Option<OperationId>>,
    cycles: Vec<Cycles>,
}

impl StepSink for OperationCycles {
    type Error = Infallible;

    fn step(&mut self, step: &ExecutionStep) -> Result<(), Infallible> {
        if let Some(operation) = self.of_program[step.program.index()] {
            let longest = step.ipus.iter().map(|on| on.range().length()).max();
            self.cycles[operation.index()] += longest.unwrap_or_default();
        }
        Ok(())
    }

    fn mark(&mut self, _: &TraceMark) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Runs the program with the steps of an operation shortened by a factor.
pub(super) fn made_faster(
    busy: &BusyOperation,
    program: &RetimedProgram<'_>,
    factor: f64,
) -> OperationSensitivity {
    let compiled = program.simulation.compiled();
    let programs = &compiled.compilation.programs;
    let shorten_to = |share: f64| {
        move |program: ProgramId, cycles: Cycles| {
            let is_own = programs[program.index()].operation == Some(busy.id);
            if is_own { shortened_by(cycles, share) } else { cycles }
        }
    };
    let operation = &compiled.compilation.operations[busy.id.index()];
    OperationSensitivity {
        name: operation.name.clone(),
        pass: operation.pass,
        cycles: busy.cycles,
        run: program.retimed(shorten_to(1.0 / factor)),
        off_path_beyond: off_path_beyond(|share| {
            retimed_cycles(compiled, program.spec, shorten_to(share))
        }),
    }
}

/// Returns the factor beyond which more speed gains nothing. `run` returns the length of the run
/// for a share of the operation's time. It never decreases as the share grows, because a run waits
/// for its last part.
fn off_path_beyond(run: impl Fn(f64) -> Cycles) -> Option<f64> {
    let without = run(0.0);
    let matters = |share: f64| run(share) > without;
    if !matters(1.0) {
        return Some(1.0);
    }
    let mut off = 1.0 / FASTEST;
    let mut on = 1.0;
    if matters(off) {
        return None;
    }
    while on / off > 1.0 + FACTOR_PRECISION {
        // The geometric mean of the factors, because small factors matter most.
        let between = (on * off).sqrt();
        if matters(between) { on = between } else { off = between }
    }
    Some(1.0 / off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_beyond_which_an_operation_does_not_matter_is_found() {
        // A path of 1,000 cycles beside a path of 900 cycles and an operation of 400.
        let run = |share: f64| Cycles(1_000.max(900 + (400.0 * share).ceil() as u64));
        let found = off_path_beyond(run).expect("it leaves the path");
        assert!((found - 4.0).abs() < 0.05, "{found}");
        assert_eq!(off_path_beyond(|_| Cycles(1_000)), Some(1.0));
        assert_eq!(off_path_beyond(|share| Cycles(900 + (400.0 * share) as u64)), None);
    }
}
