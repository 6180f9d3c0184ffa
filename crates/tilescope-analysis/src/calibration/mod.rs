//! A measured run beside its simulation: the cycles of each operation in both, the constants of the
//! cost model that explain the difference, and the measurement predicted for a changed program.
//!
//! Programs are aligned as in comparisons. The cycles of a program are the mean of its steps over
//! all IPUs; the simulation's are scaled to the executions of the measurement, so that a shorter
//! simulation gives the same figures.

mod fit;
mod prediction;

pub use fit::{
    ConstantFit, ConstantState, FitConstant, FitResult, HeldOutError, MIN_OPERATIONS, fit,
};
pub use prediction::{OperationPrediction, Prediction, PredictionBasis, predict};

use crate::compare::ProgramPairs;
use crate::program_names::without_counter_prefix;
use std::collections::BTreeMap;
use tilescope_report::units::ProgramId;
use tilescope_report::{
    ModelOperation, ProgramKind, ProgramNode, Report, ReportError, ReportOrigin, ReportPart,
};

/// The steps of a run by program and kind: in files that use one name for all parts of a copy, a
/// program has steps of several kinds.
type ProgramSteps = BTreeMap<(ProgramId, ProgramKind), StepSum>;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct StepSum {
    steps: u64,
    cycles: f64,
}

impl StepSum {
    fn mean(self) -> f64 {
        self.cycles / self.steps.max(1) as f64
    }
}

/// A program that both runs have, with the cycles of all its steps in the measured run.
#[derive(Clone, Debug, PartialEq)]
pub struct AlignedProgram {
    /// The program in the simulation.
    pub simulated_program: ProgramId,
    pub kind: ProgramKind,
    pub steps: u64,
    pub measured: f64,
    /// Simulated cycles, scaled to the executions in the measurement.
    pub simulated: f64,
    /// Index of its operation in [`MeasuredBesideSimulated::operations`].
    pub operation: usize,
}

impl AlignedProgram {
    /// True if its cycles depend on the machine alone: the begin of a copy with the host waits for
    /// the host.
    pub fn is_of_machine(&self) -> bool {
        self.kind != ProgramKind::StreamCopyBegin
    }
}

/// An operation, or a copy or sync without one, with the cycles of all its steps over all IPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationResidual {
    pub name: String,
    pub measured: f64,
    pub simulated: f64,
    /// True if part of it waits for the host.
    pub waits_for_host: bool,
}

impl OperationResidual {
    /// Measured over simulated; `None` if the simulation has no cycles of it.
    pub fn ratio(&self) -> Option<f64> {
        if self.simulated > 0.0 { Some(self.measured / self.simulated) } else { None }
    }

    /// Measured minus simulated.
    pub fn residual(&self) -> f64 {
        self.measured - self.simulated
    }
}

/// A program that only one run has, and its cycles there.
#[derive(Clone, Debug, PartialEq)]
pub struct UnalignedProgram {
    pub name: String,
    pub cycles: f64,
}

/// Both runs, after alignment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredBesideSimulated {
    pub operations: Vec<OperationResidual>,
    pub programs: Vec<AlignedProgram>,
    /// Programs that only the measurement has, the largest first.
    pub only_measured: Vec<UnalignedProgram>,
    pub only_simulated: Vec<UnalignedProgram>,
    /// Steps of aligned programs in the measurement for each one in the simulation.
    pub repeats: f64,
}

impl MeasuredBesideSimulated {
    /// Aligns a measured run with its simulation.
    ///
    /// # Errors
    /// Parts of the files that cannot be read.
    pub fn read(measured: &Report, simulated: &Report) -> Result<Self, ReportError> {
        // Foreign files give the kinds of programs only through their steps.
        let of_measured = program_steps(measured)?;
        let of_simulated = program_steps(simulated)?;
        let programs = measured.programs()?;
        let simulations = simulated.programs()?;
        let pairs = ProgramPairs::new(&programs, &simulations);
        let names =
            OperationNames { measured: measured.operations()?, simulated: simulated.operations()? };
        let mut found = Self::default();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut missing: BTreeMap<String, f64> = BTreeMap::new();
        let mut seen: Vec<(ProgramId, ProgramKind)> = Vec::new();
        let mut simulated_steps = 0;
        for ((id, kind), sum) in &of_measured {
            let Some(program) = programs.get(*id) else { continue };
            let partner = pairs.to_target(*id);
            let partner = partner.and_then(|id| Some((id, of_simulated.get(&(id, *kind))?)));
            let Some((other, simulation)) = partner else {
                *missing.entry(program_title(program)).or_default() += sum.cycles;
                continue;
            };
            seen.push((other, *kind));
            simulated_steps += simulation.steps;
            let name = names.name(program, simulations.get(other));
            let operation = *places.entry(name.clone()).or_insert_with(|| {
                found.operations.push(OperationResidual { name, ..OperationResidual::default() });
                found.operations.len() - 1
            });
            found.programs.push(AlignedProgram {
                simulated_program: other,
                kind: *kind,
                steps: sum.steps,
                measured: sum.cycles,
                simulated: simulation.mean() * sum.steps as f64,
                operation,
            });
        }
        for program in &found.programs {
            let operation = &mut found.operations[program.operation];
            operation.measured += program.measured;
            operation.simulated += program.simulated;
            operation.waits_for_host |= !program.is_of_machine();
        }
        found.only_measured = unaligned(missing);
        let steps: u64 = found.programs.iter().map(|program| program.steps).sum();
        found.repeats = steps as f64 / simulated_steps.max(1) as f64;
        seen.sort_unstable();
        let mut missing: BTreeMap<String, f64> = BTreeMap::new();
        for (key, sum) in of_simulated.iter().filter(|(key, _)| seen.binary_search(key).is_err()) {
            if let Some(program) = simulations.get(key.0) {
                *missing.entry(program_title(program)).or_default() += sum.cycles;
            }
        }
        found.only_simulated = unaligned(missing);
        Ok(found)
    }

    /// Cycles of the aligned programs in another simulation of the same spec, scaled to the
    /// executions in the measurement. Programs that the other simulation lacks keep their cycles
    /// from the first one.
    ///
    /// # Errors
    /// Parts of the files that cannot be read.
    pub fn in_other_simulation(
        &self,
        simulated: &Report,
        other: &Report,
    ) -> Result<Vec<f64>, ReportError> {
        let steps = program_steps(other)?;
        let pairs = ProgramPairs::new(&*simulated.programs()?, &*other.programs()?);
        let mut cycles = Vec::new();
        for program in &self.programs {
            let partner = pairs.to_target(program.simulated_program);
            let sum = partner.and_then(|id| steps.get(&(id, program.kind)));
            cycles.push(match sum {
                Some(sum) => sum.mean() * program.steps as f64,
                None => program.simulated,
            });
        }
        Ok(cycles)
    }

    /// The operations, the one with the largest residual first.
    pub fn by_residual(&self) -> Vec<&OperationResidual> {
        let mut all: Vec<&OperationResidual> = self.operations.iter().collect();
        all.sort_by(|a, b| {
            let by_size = b.residual().abs().total_cmp(&a.residual().abs());
            by_size.then_with(|| a.name.cmp(&b.name))
        });
        all
    }
}

/// True if a report was recorded from a run by another tool.
pub fn is_measured(report: &Report) -> bool {
    let recorded = report.origin() == ReportOrigin::Foreign || report.has_tile_samples();
    recorded && report.has(ReportPart::Execution)
}

fn unaligned(cycles: BTreeMap<String, f64>) -> Vec<UnalignedProgram> {
    let mut all: Vec<UnalignedProgram> =
        cycles.into_iter().map(|(name, cycles)| UnalignedProgram { name, cycles }).collect();
    all.sort_by(|a, b| b.cycles.total_cmp(&a.cycles).then_with(|| a.name.cmp(&b.name)));
    all
}

/// The names of operations in both reports.
struct OperationNames {
    measured: std::sync::Arc<Vec<ModelOperation>>,
    simulated: std::sync::Arc<Vec<ModelOperation>>,
}

impl OperationNames {
    /// The operation of a program: its name in the simulation, or else in the measurement, or else
    /// the program's own name.
    fn name(&self, measured: &ProgramNode, simulated: Option<&ProgramNode>) -> String {
        let in_simulation = simulated.and_then(|program| operation_of(program, &self.simulated));
        match in_simulation.or_else(|| operation_of(measured, &self.measured)) {
            Some(operation) => operation.name.clone(),
            None => program_title(measured),
        }
    }
}

fn operation_of<'a>(
    program: &ProgramNode,
    operations: &'a [ModelOperation],
) -> Option<&'a ModelOperation> {
    operations.get(program.operation?.index())
}

/// The title of a program without an operation: all parts of a copy share one name.
fn program_title(program: &ProgramNode) -> String {
    let name = without_counter_prefix(&program.name);
    let name = ["/ExchangePre", "/GlobalPre"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name);
    match (program.kind, name) {
        (ProgramKind::Sync, name) => format!("{name} sync").trim_start().to_owned(),
        (kind, "") => kind.name().to_owned(),
        (_, name) => name.to_owned(),
    }
}

/// The steps of all lanes by program.
fn program_steps(report: &Report) -> Result<ProgramSteps, ReportError> {
    let mut steps = ProgramSteps::new();
    let Some(trace) = report.trace()? else { return Ok(steps) };
    for lane in (0..trace.lanes().len()).filter_map(|index| trace.lane(index)) {
        for sums in lane.program_sums()?.iter() {
            let Some(program) = sums.program else { continue };
            let sum = steps.entry((program, sums.kind())).or_default();
            sum.steps += sums.steps;
            sum.cycles += sums.cycles.as_f64();
        }
    }
    Ok(steps)
}
