//! A run without its steps: how long it is, and what the host does for it.

use super::host::{self, HostCallMeasurement, host_report, loader_seconds};
use super::{RunLength, SampleSource, StepSink, cycles_of, run_from};
use crate::compile::CompiledProgram;
use crate::spec::Spec;
use tilescope_report::units::{Bytes, Cycles};
use tilescope_report::{ExecutionStep, HostReport, TraceMark};

/// What a run will be like.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRunSummary {
    /// Bars of the trace: one per step and IPU that takes part.
    pub trace_bars: u64,
    /// Cycles until the samples of the call are there.
    pub samples_ready: Cycles,
    /// What the host does for it; none for a model that works on no samples.
    pub host: Option<HostReport>,
}

/// Runs the program without keeping its steps: how many bars they have in a trace, and how long they
/// take.
fn counted_run(compiled: &CompiledProgram, spec: &Spec, source: SampleSource) -> (u64, RunLength) {
    struct TraceBarCounter(u64);
    impl StepSink for TraceBarCounter {
        type Error = std::convert::Infallible;

        const RECORDS_EACH_STEP: bool = false;

        fn count_steps(&mut self, steps: u64) {
            self.0 += steps;
        }

        fn step(&mut self, step: &ExecutionStep) -> Result<(), Self::Error> {
            self.0 += step.ipus.len() as u64;
            Ok(())
        }

        fn mark(&mut self, _: &TraceMark) -> Result<(), Self::Error> {
            Ok(())
        }
    }
    let mut counter = TraceBarCounter(0);
    match run_from(compiled, spec, source, &mut counter) {
        Ok(length) => (counter.0, length),
        Err(never) => match never {},
    }
}

/// Length of a run, without keeping its steps.
pub(crate) fn run_cycles(
    compiled: &CompiledProgram,
    spec: &Spec,
    dry_run_summary: &DryRunSummary,
) -> Cycles {
    counted_run(compiled, spec, SampleSource::Host(dry_run_summary.samples_ready)).1.whole
}

/// Runs the program without keeping its steps: how many there are, and how long the loader makes a
/// call wait.
pub fn dry_run(compiled: &CompiledProgram, spec: &Spec) -> DryRunSummary {
    let bars = |source: SampleSource| counted_run(compiled, spec, source);
    let (mut trace_bars, length) = bars(SampleSource::Host(Cycles::ZERO));
    let clock = spec.target.chip.clock;
    let HostCallInputs { samples, bytes } = host_call_inputs(compiled, spec);
    let load = loader_seconds(spec, samples, bytes);
    let call = length.whole.seconds_at(clock);
    let waiting = host::wait_for_loader(&spec.options.host, call, load);
    let samples_ready = cycles_of(waiting, clock);
    if !samples_ready.is_zero() {
        trace_bars += u64::from(compiled.compilation.target.ipus_per_replica);
    }
    let host = spec.model.definition.batched.then(|| {
        let (_, synthetic) = bars(SampleSource::Ipu);
        let measured = HostCallMeasurement {
            call,
            handshake: length.handshake.seconds_at(clock),
            waiting: samples_ready.seconds_at(clock),
            synthetic: synthetic.whole.seconds_at(clock),
            samples,
            bytes,
        };
        host_report(compiled, spec, &measured)
    });
    DryRunSummary { trace_bars, samples_ready, host }
}

/// What one host call brings to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCallInputs {
    /// Samples of all replicas.
    pub samples: u64,
    /// Bytes of the inputs of all replicas.
    pub bytes: Bytes,
}

/// What one host call of a program brings to the device.
pub fn host_call_inputs(compiled: &CompiledProgram, spec: &Spec) -> HostCallInputs {
    let options = &spec.options;
    let micro_batches = options.gradient_accumulation
        * options.device_iterations
        * u64::from(options.replication_factor);
    let bytes: Bytes = compiled.parts.host_inputs.iter().map(|copy| copy.bytes_in).sum();
    HostCallInputs { samples: micro_batches * spec.model.batch_size, bytes: micro_batches * bytes }
}
