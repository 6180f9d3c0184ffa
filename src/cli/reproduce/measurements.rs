//! Simulates a program in memory and measures figures of its run.

use super::conditions::{RunFramework, RunTask};
use crate::cli::command::CliError;
use crate::cli::error::JobError;
use crate::cli::run_errors::run_factors;
use serde::Deserialize;
use std::convert::Infallible;
use tilescope_analysis::confidence::RunFactors;
use tilescope_report::units::{Bytes, CycleRange, Cycles, IpuId};
use tilescope_report::{
    ExecutionStep, MarkKind, MemoryCategory, ProgramKind, StreamEndpoint, TraceMark,
};
use tilescope_sim::LaneCycleSums;
use tilescope_sim::compile;
use tilescope_sim::compile::CompiledProgram;
use tilescope_sim::run::{
    DryRunSummary, HostCallInputs, StepSink, dry_run, host_call_inputs, loader_seconds, run,
};
use tilescope_sim::specification::{Spec, SpecSource};

/// A bundled spec with overrides.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpecWithOverrides {
    /// Name of the spec.
    pub spec: String,
    /// The framework that its settings come from.
    pub framework: RunFramework,
    pub task: RunTask,
    #[serde(default, rename = "set")]
    pub overrides: Vec<String>,
}

impl SpecWithOverrides {
    /// The spec with its overrides.
    pub(super) fn build(&self) -> Result<Spec, CliError> {
        let built = SpecSource::find(&self.spec, &self.overrides);
        let built = built.and_then(|source| Spec::build(&source));
        Ok(built
            .map_err(|error| JobError::InFile { file: (&self.spec).into(), error: error.into() })?)
    }
}

/// Bytes that an IPU receives and sends over links.
#[derive(Clone, Copy, Debug, Default)]
struct LinkBytes {
    bytes_in: Bytes,
    bytes_out: Bytes,
}

/// A program that was compiled and run.
pub(super) struct SimulatedProgram {
    pub spec: Spec,
    pub compiled: CompiledProgram,
    /// Length of the run.
    pub cycles: Cycles,
    /// Marks of the run.
    marks: Vec<TraceMark>,
    /// Bytes to and from each IPU over links, by iteration.
    links: Vec<Vec<LinkBytes>>,
    /// Cycles of remote buffer copies, over all IPUs.
    remote: Cycles,
    /// Cycles of the compute tiles of each IPU by program.
    lanes: LaneCycleSums,
    /// Copies of the I/O tiles of IPU 0, and periods in which its compute tiles only wait.
    io: Vec<CycleRange>,
    waits: Vec<CycleRange>,
}

impl SimulatedProgram {
    /// Compiles and runs a program.
    pub(super) fn new(program: &SpecWithOverrides) -> Result<Self, CliError> {
        let spec = program.build()?;
        let compiled = compile(&spec).map_err(|error| JobError::InFile {
            file: (&program.spec).into(),
            error: error.into(),
        })?;
        let dry_run_summary: DryRunSummary = dry_run(&compiled, &spec);
        let ipus = compiled.compilation.target.ipus_per_replica as usize;
        let mut watch = FigureMeasurementSink {
            compiled: &compiled,
            cycles: Cycles::ZERO,
            marks: Vec::new(),
            links: vec![vec![LinkBytes::default(); ipus]],
            remote: Cycles::ZERO,
            lanes: LaneCycleSums::new(&compiled.compilation),
            io: Vec::new(),
            waits: Vec::new(),
        };
        match run(&compiled, &spec, &dry_run_summary, &mut watch) {
            Ok(()) => {}
            Err(never) => match never {},
        }
        let FigureMeasurementSink { cycles, marks, links, remote, lanes, io, waits, .. } = watch;
        Ok(Self { spec, compiled, cycles, marks, links, remote, lanes, io, waits })
    }

    /// Seconds of the run.
    pub(super) fn seconds(&self) -> f64 {
        self.cycles.seconds_at(self.spec.target.chip.clock)
    }

    /// The factors between which its true time is expected.
    pub(super) fn time_factors(&self) -> Option<RunFactors> {
        run_factors(&self.compiled.compilation, self.cycles, &self.lanes.lanes)
    }

    /// Samples of a host call.
    pub(super) fn samples(&self) -> Option<f64> {
        self.compiled.compilation.batching.map(|batching| batching.samples_per_call() as f64)
    }

    /// Samples per second of a host call.
    pub(super) fn throughput(&self) -> Option<f64> {
        Some(self.samples()? / self.seconds())
    }

    /// Sequences per second of a host call, if samples are packs of them.
    pub(super) fn sequences(&self) -> Option<f64> {
        Some(self.throughput()? * self.spec.model.packing_factor)
    }

    /// Bytes of a category on all tiles of a replica.
    pub(super) fn category_bytes(&self, category: MemoryCategory) -> f64 {
        let variables = self.compiled.compilation.variables.iter();
        let mine = variables.filter(|variable| variable.category == category);
        mine.map(|variable| variable.tiles.map(|place| place.bytes).total()).sum::<Bytes>().as_f64()
    }

    /// Samples per second of the loaders without any IPU.
    pub(super) fn loader_throughput(&self) -> Option<f64> {
        let HostCallInputs { samples, bytes } = host_call_inputs(&self.compiled, &self.spec);
        Some(samples as f64 / loader_seconds(&self.spec, samples, bytes))
    }

    /// Cycles of the second iteration: the first begins with the start of the program.
    pub(super) fn iteration_cycles(&self) -> Option<f64> {
        let mut iterations = self.marks.iter().filter(|mark| mark.kind == MarkKind::Iteration);
        iterations.nth(1).map(|mark| mark.cycles.length().as_f64())
    }

    /// Bytes to and from an IPU over links in one iteration.
    pub(super) fn linked(&self, ipu: IpuId) -> (f64, f64) {
        let first = self.links.first().and_then(|links| links.get(ipu.index())).copied();
        let LinkBytes { bytes_in, bytes_out } = first.unwrap_or_default();
        (bytes_in.as_f64(), bytes_out.as_f64())
    }

    /// The first slot, counted from 1, in which every stage runs both passes.
    pub(super) fn first_full_slot(&self) -> Option<f64> {
        let iter_marks = |kind| self.marks.iter().filter(move |mark| mark.kind == kind);
        let passes = 2 * self.compiled.placement.stages.len();
        iter_marks(MarkKind::Slot)
            .position(|slot| {
                let inside = iter_marks(MarkKind::Stage).filter(|turn| {
                    turn.steps.start >= slot.steps.start && turn.steps.end <= slot.steps.end
                });
                inside.count() == passes
            })
            .map(|slot| slot as f64 + 1.0)
    }

    /// Micro-batches in the stashes of the stage on an IPU: their bytes over those of the tensors.
    pub(super) fn fifo_depth(&self, ipu: IpuId) -> Option<f64> {
        let tiles = self.compiled.compilation.target.tiles_of_ipu(ipu);
        let variables = &self.compiled.compilation.variables;
        let find_bytes = |name: &str| -> Option<u64> {
            let variable = variables.iter().find(|variable| {
                let first = variable.tiles.iter().next();
                variable.name == name && first.is_some_and(|(run, _)| tiles.contains(run.first))
            })?;
            Some(variable.tiles.map(|place| place.bytes).total().0)
        };
        let names = variables.iter().filter_map(|variable| variable.name.strip_suffix("/stash"));
        names
            .filter_map(|name| {
                Some(
                    find_bytes(&format!("{name}/stash"))? as f64
                        / find_bytes(name).filter(|b| *b > 0)? as f64,
                )
            })
            .next()
    }

    /// Cycles of the first step with this suffix in its name.
    pub(super) fn step_cycles(&self, suffix: &str) -> Option<f64> {
        let ids = (0..).map(tilescope_report::units::ProgramId);
        let mut programs = ids.zip(&self.compiled.compilation.programs);
        let (id, _) = programs.find(|(id, program)| {
            program.name.ends_with(suffix) && self.compiled.leaf_costs.contains_key(id)
        })?;
        self.compiled.leaf_costs.get(&id).map(|cost| cost.cycles.as_f64())
    }

    /// Share of the IPUs' cycles in copies from and to remote buffers.
    pub(super) fn remote_share(&self) -> f64 {
        let ipus = u64::from(self.compiled.compilation.target.ipus_per_replica);
        self.remote.as_f64() / (self.cycles * ipus).max(Cycles(1)).as_f64()
    }

    /// Share of the I/O tiles' copies during which the compute tiles do more than wait.
    pub(super) fn hidden_share(&self) -> Option<f64> {
        let all: Cycles = self.io.iter().map(|copy| copy.length()).sum();
        let shown: Cycles = self
            .io
            .iter()
            .flat_map(|copy| self.waits.iter().map(|wait| copy.intersection(*wait).length()))
            .sum();
        if all.is_zero() { None } else { Some(1.0 - shown.as_f64() / all.as_f64()) }
    }
}

/// Sums up a run during its simulation.
struct FigureMeasurementSink<'a> {
    compiled: &'a CompiledProgram,
    cycles: Cycles,
    marks: Vec<TraceMark>,
    links: Vec<Vec<LinkBytes>>,
    remote: Cycles,
    lanes: LaneCycleSums,
    io: Vec<CycleRange>,
    waits: Vec<CycleRange>,
}

impl StepSink for FigureMeasurementSink<'_> {
    type Error = Infallible;

    fn step(&mut self, step: &ExecutionStep) -> Result<(), Infallible> {
        self.lanes.add(step);
        let program = &self.compiled.compilation.programs[step.program.index()];
        for on_ipu in &step.ipus {
            self.cycles = self.cycles.max(Cycles(on_ipu.to_max.0));
            match program.kind {
                ProgramKind::GlobalExchange => {
                    if let Some(links) = self.links.last_mut() {
                        let link = &mut links[on_ipu.ipu.index()];
                        link.bytes_in += on_ipu.bytes_in;
                        link.bytes_out += on_ipu.bytes_out;
                    }
                }
                ProgramKind::StreamCopyBegin
                | ProgramKind::StreamCopyMid
                | ProgramKind::StreamCopyEnd
                    if program.stream == StreamEndpoint::RemoteBuffer =>
                {
                    self.remote += Cycles(on_ipu.range().length().0);
                }
                ProgramKind::StreamCopyBegin
                | ProgramKind::StreamCopyMid
                | ProgramKind::StreamCopyEnd
                    if on_ipu.ipu == IpuId(0) && on_ipu.sub_lane > 0 =>
                {
                    self.io.push(on_ipu.range());
                }
                ProgramKind::Sync if on_ipu.ipu == IpuId(0) => self.waits.push(on_ipu.range()),
                _ => {}
            }
        }
        Ok(())
    }

    fn mark(&mut self, mark: &TraceMark) -> Result<(), Infallible> {
        if mark.kind == MarkKind::Iteration {
            let ipus = self.links[0].len();
            self.links.push(vec![LinkBytes::default(); ipus]);
        }
        self.marks.push(mark.clone());
        Ok(())
    }
}
