//! The path from a spec to a report on disk.

use super::balance;
use super::compile::{CompileError, CompiledProgram, ProgramExtent, ProgramSource};
use super::memory_proportion::with_found;
use super::run::{self, DryRunSummary, StepSink};
use super::specification::Spec;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use tilescope_report::units::{Bytes, Cycles, IpuId, ReplicaClassId, grouped};
use tilescope_report::{
    CompilationReport, ExecutionStep, Recorder, ReportError, ReportMeta, ReportWriter, RunningCost,
    StepLayout, TraceMark,
};

/// Records (steps x IPUs) of the longest run that is simulated without confirmation: about 1 GB of
/// report.
pub const MOST_RECORDS: u64 = 1 << 30;

/// Micro-batches of the longest run that is counted to find its length. Beyond this limit, even
/// writing down the schedule would take minutes, and a shorter run is counted instead.
pub(crate) const MOST_COUNTED_MICRO_BATCHES: u64 = 1 << 16;

/// Micro-batches of that shorter run, which are enough to fill any pipeline.
const SHORT_RUN_MICRO_BATCHES: u64 = 256;

/// Records per second that a simulation writes in a release build on two cores
/// (`cargo bench --bench simulate`, BERT-Large on 16 IPUs).
const RECORDS_PER_SECOND: u64 = 8_000_000;

/// The reason why a simulation wrote no report.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The spec cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The report cannot be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The run is longer than allowed.
    #[error(
        "the run would have about {} records, more than the limit of {}: lower \
         options.gradient_accumulation ({}) or options.device_iterations ({}); a report of one \
         weight update shows the cost of each",
        grouped(forecast.records), grouped(*most), grouped(*accumulation), grouped(*iterations)
    )]
    TooLong {
        /// The expected size of the run.
        forecast: RunForecast,
        /// The number of records that are allowed.
        most: u64,
        /// Micro-batches per weight update.
        accumulation: u64,
        /// Weight updates per host call.
        iterations: u64,
    },
}

/// The expected size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunForecast {
    /// Records of the trace: one per step and IPU.
    pub records: u64,
    /// The form in which records are kept.
    pub layout: StepLayout,
}

impl RunForecast {
    /// The approximate size of the execution in a report, without the compiled program.
    pub fn bytes(self) -> Bytes {
        Bytes(self.records.saturating_mul(self.layout.bytes_per_bar()))
    }

    /// The approximate number of seconds that the run takes in a release build.
    pub fn seconds(self) -> u64 {
        self.records / RECORDS_PER_SECOND
    }
}

/// The figures of a program that are known without a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramFigures {
    /// Length of the run. `None` for a program that does not fit in memory.
    pub cycles: Option<Cycles>,
    /// Samples of a host call.
    pub samples: u64,
    /// Bytes that the fullest tile needs, including gaps.
    pub fullest_tile: Bytes,
    /// IPUs of all replicas, rounded up as systems provide them.
    pub ipus: u32,
}

/// A compiled spec, ready to be run.
pub struct Simulation<'a> {
    spec: &'a Spec,
    compiled: CompiledProgram,
    /// The summary of the run. `None` for a program that does not fit in memory.
    run: Option<DryRunSummary>,
    /// The form in which steps and marks are kept.
    layout: StepLayout,
}

impl<'a> Simulation<'a> {
    /// Compiles `spec`, and predicts the length of its run, which may have at most `most_records`
    /// records.
    ///
    /// # Errors
    /// Returns [`SimulateError::Compile`], or [`SimulateError::TooLong`] before any long
    /// computation begins.
    pub fn compile(spec: &'a Spec, most_records: u64) -> Result<Self, SimulateError> {
        let accumulation = spec.options.gradient_accumulation;
        let iterations = spec.options.device_iterations;
        let check_length = |records: u64| {
            let forecast = RunForecast { records, layout: StepLayout::for_bars(records) };
            let too_long =
                SimulateError::TooLong { forecast, most: most_records, accumulation, iterations };
            if records > most_records { Err(too_long) } else { Ok(()) }
        };
        if accumulation.saturating_mul(iterations) > MOST_COUNTED_MICRO_BATCHES {
            check_length(records_of_long_run(spec)?)?;
        }
        let mut compiled = compile(spec)?;
        let fits = compiled.tiles_out_of_memory() == 0;
        let run = if fits { Some(run::dry_run(&compiled, spec)) } else { None };
        check_length(run.as_ref().map_or(0, |run| run.trace_bars))?;
        if let Some(run) = &run {
            compiled.compilation.host = run.host.clone();
            compiled.compilation.replica_classes = run.replica_classes.clone();
        }
        let layout = StepLayout::for_bars(run.as_ref().map_or(0, |run| run.trace_bars));
        Ok(Self { spec, compiled, run, layout })
    }

    /// Changes the form of steps and marks. Rows are for scripts that read them with any SQLite,
    /// chunks are smaller. [`StepLayout::for_bars`] is the default.
    #[must_use]
    pub fn with_layout(self, layout: StepLayout) -> Self {
        Self { layout, ..self }
    }

    /// The number of tiles that need more memory than they have. If there are any, the program is
    /// not run.
    pub fn tiles_out_of_memory(&self) -> u64 {
        self.compiled.tiles_out_of_memory()
    }

    /// Adds a note to the report.
    pub fn add_note(&mut self, note: String) {
        self.compiled.compilation.notes.push(note);
    }

    /// The stages in the order of the forward pass: names of their blocks, and the first IPU of
    /// each.
    pub fn stages(&self) -> impl Iterator<Item = (&[String], IpuId)> {
        let placement = &self.compiled.placement;
        let first = placement.peers().iter().map(|peers| &placement.stages[peers.start]);
        first.map(|stage| (stage.blocks.as_slice(), stage.ipu))
    }

    /// A warning if half of the IPUs of a replica or more have no stage: `4 of 8 IPUs have no
    /// stage, …`.
    pub fn idle_ipus(&self) -> Option<String> {
        let stages = &self.compiled.placement.stages;
        let used: BTreeSet<IpuId> = stages.iter().map(|stage| stage.ipu).collect();
        let used = u32::try_from(used.len()).unwrap_or(u32::MAX);
        let all = self.spec.target.ipus * self.spec.options.tensor_parallel;
        // A device always has a power of two of IPUs.
        if used == 0 || used.checked_next_power_of_two().is_none_or(|fits| fits >= all) {
            return None;
        }
        let blocks: BTreeSet<&String> = stages.iter().flat_map(|stage| &stage.blocks).collect();
        Some(format!(
            "{} of {all} IPUs have no stage: the {} stages have {} blocks; set target.ipus = {}, \
             and options.replication_factor = {} to use all of them",
            all - used,
            stages.len(),
            blocks.len(),
            used / self.spec.options.tensor_parallel.max(1),
            self.spec.options.replication_factor * (all / used),
        ))
    }

    /// Bytes that the fullest tile needs, including gaps.
    pub fn fullest_tile(&self) -> Bytes {
        self.compiled.fullest_tile()
    }

    /// The compiled program.
    pub(crate) fn compiled(&self) -> &CompiledProgram {
        &self.compiled
    }

    /// The summary of the run. `None` for a program that does not fit in memory.
    pub(crate) fn dry_run(&self) -> Option<&DryRunSummary> {
        self.run.as_ref()
    }

    /// The expected size of the run. Zero records for a program that does not fit in memory.
    pub fn forecast(&self) -> RunForecast {
        let records = self.run.as_ref().map_or(0, |run| run.trace_bars);
        RunForecast { records, layout: self.layout }
    }

    /// The power and price of the machine, part by part.
    pub fn running_costs(&self) -> &[RunningCost] {
        &self.compiled.compilation.running_costs
    }

    /// Runs the program without a report.
    pub fn figures(&self) -> ProgramFigures {
        let compilation = &self.compiled.compilation;
        let cycles =
            self.run.as_ref().map(|summary| run::run_cycles(&self.compiled, self.spec, summary));
        let samples = compilation.batching.map_or(1, |batching| batching.samples_per_call());
        let ipus = self.spec.total_ipus();
        ProgramFigures { cycles, samples, fullest_tile: self.fullest_tile(), ipus }
    }

    /// Runs the program and adds up the cycles of the compute tiles of each IPU by program. Returns
    /// `None` if the program does not fit in memory.
    pub fn lane_cycles(&self) -> Option<Vec<Vec<Cycles>>> {
        let mut sums = LaneCycleSums::new(&self.compiled.compilation);
        match run::run(&self.compiled, self.spec, self.run.as_ref()?, &mut sums) {
            Ok(()) => Some(sums.lanes),
            Err(never) => match never {},
        }
    }

    /// The compilation in the form of a report.
    pub fn compilation(&self) -> &CompilationReport {
        &self.compiled.compilation
    }

    /// Runs the program and writes the report to `directory`. Returns the path of the file.
    ///
    /// A program that does not fit in memory is compiled but not run: its report has no execution.
    /// `progress` receives the share that is done, from one thread at a time.
    ///
    /// # Errors
    /// Returns an error of writing. No partial report remains, and an older report stays unchanged.
    pub fn write(
        &self,
        directory: &Path,
        mut progress: impl FnMut(f64) + Send,
    ) -> Result<PathBuf, SimulateError> {
        progress(0.0);
        let meta = ReportMeta {
            generator: format!("tilescope {}", env!("CARGO_PKG_VERSION")),
            spec: Some(self.spec.text.clone()),
            imported: self.compiled.imported.as_deref().cloned(),
        };
        let mut writer = ReportWriter::create(directory, &meta)?;
        match &self.run {
            Some(summary) => {
                writer.record(&self.compiled.compilation, self.layout, |recorder| {
                    let mut sink = RecorderSink { recorder, progress: &mut progress };
                    run::run(&self.compiled, self.spec, summary, &mut sink)
                })?;
            }
            None => writer.compilation(&self.compiled.compilation)?,
        }
        let path = writer.finish()?;
        progress(1.0);
        Ok(path)
    }
}

/// Compiles a spec. If the spec leaves the memory proportion or the split open, the function first
/// searches for them.
///
/// # Errors
/// Returns a [`CompileError`]. A program that does not fit in memory is not an error: see
/// [`CompiledProgram::tiles_out_of_memory`].
pub fn compile(spec: &Spec) -> Result<CompiledProgram, CompileError> {
    let spec = with_found(spec, compile_given)?;
    compile_given(&spec, ProgramExtent::Whole)
}

/// Compiles a spec with a fixed memory proportion.
fn compile_given(spec: &Spec, extent: ProgramExtent) -> Result<CompiledProgram, CompileError> {
    let source = ProgramSource::new(spec)?;
    match balance::balanced_program(&source)? {
        Some(program) => Ok(program),
        None => source.compile(extent),
    }
}

/// Estimates the records of a run with too many micro-batches to count, from the records of a
/// shorter run, scaled by the number of micro-batches.
fn records_of_long_run(spec: &Spec) -> Result<u64, CompileError> {
    let mut short = spec.clone();
    let options = &mut short.options;
    let all = u128::from(options.gradient_accumulation) * u128::from(options.device_iterations);
    options.gradient_accumulation = options.gradient_accumulation.min(SHORT_RUN_MICRO_BATCHES);
    options.device_iterations = 1;
    let counted = u128::from(options.gradient_accumulation);
    let compiled = compile(&short)?;
    if compiled.tiles_out_of_memory() > 0 {
        return Ok(0);
    }
    let records = u128::from(run::dry_run(&compiled, &short).trace_bars) * all / counted;
    Ok(u64::try_from(records).unwrap_or(u64::MAX))
}

/// Compiles and runs `spec`, and writes the report to `directory`. Returns the path of the file.
///
/// `progress` receives the share that is done, from one thread at a time.
///
/// # Errors
/// Returns a [`SimulateError`]. No partial report remains, and an older report stays unchanged.
pub fn simulate(
    spec: &Spec,
    directory: &Path,
    progress: impl FnMut(f64) + Send,
) -> Result<PathBuf, SimulateError> {
    Simulation::compile(spec, MOST_RECORDS)?.write(directory, progress)
}

/// Cycles of the compute tiles of each IPU by program.
pub struct LaneCycleSums {
    pub lanes: Vec<Vec<Cycles>>,
}

impl LaneCycleSums {
    /// Makes sums of zero for a program.
    #[must_use]
    pub fn new(compilation: &CompilationReport) -> Self {
        let ipus = compilation.target.ipus_per_replica as usize;
        Self { lanes: vec![vec![Cycles::ZERO; compilation.programs.len()]; ipus] }
    }

    /// Adds the cycles of a step.
    pub fn add(&mut self, step: &ExecutionStep) {
        for on_ipu in step.ipus.iter().filter(|on_ipu| on_ipu.sub_lane == 0) {
            let lane = self.lanes.get_mut(on_ipu.ipu.index());
            if let Some(cycles) = lane.and_then(|lane| lane.get_mut(step.program.index())) {
                *cycles += on_ipu.range().length();
            }
        }
    }
}

impl StepSink for LaneCycleSums {
    type Error = Infallible;

    fn step(&mut self, step: &ExecutionStep) -> Result<(), Infallible> {
        self.add(step);
        Ok(())
    }

    fn mark(&mut self, _: &TraceMark) -> Result<(), Infallible> {
        Ok(())
    }
}

/// A sink that passes steps and marks to the report.
struct RecorderSink<'a> {
    recorder: &'a mut Recorder,
    progress: &'a mut (dyn FnMut(f64) + Send),
}

impl StepSink for RecorderSink<'_> {
    type Error = ReportError;

    fn step(&mut self, step: &ExecutionStep) -> Result<(), ReportError> {
        self.recorder.step(step)
    }

    fn wait_for_tiles(&mut self, ipu: IpuId, waiting: u8, awaited: u8) {
        self.recorder.wait_for_tiles(ipu, waiting, awaited);
    }

    fn mark(&mut self, mark: &TraceMark) -> Result<(), ReportError> {
        self.recorder.mark(mark)
    }

    fn mark_of_class(
        &mut self,
        class: ReplicaClassId,
        mark: &TraceMark,
    ) -> Result<(), ReportError> {
        self.recorder.mark_of_class(class, mark)
    }

    fn progress(&mut self, share: f64) {
        (self.progress)(share);
    }
}
