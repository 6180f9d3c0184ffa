//! A run without its steps: its length, and the work of the host for it.

use super::host::{
    self, AlikeReplicas, HostCallMeasurement, host_report, loader_seconds_of, replica_classes,
    replica_waits,
};
use super::leaf_costs::LeafCostTable;
use super::{RunLength, SampleSource, StepSink, cycles_of, run_from};
use crate::compile::CompiledProgram;
use crate::specification::Spec;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, Cycles, ProgramId};
use tilescope_report::{ExecutionStep, HostReport, ReplicaClasses, TraceMark};

/// The summary of a run before it is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRunSummary {
    /// Bars of the trace: one per step, class of replicas, and IPU that takes part.
    pub trace_bars: u64,
    /// Cycles until the samples of the call are ready, for each class of replicas. Replica 0 is in
    /// the first class.
    pub samples_ready: Vec<Cycles>,
    /// The work of the host. `None` for a model that does not work on samples.
    pub host: Option<HostReport>,
    /// Classes of replicas that differ from each other.
    pub replica_classes: ReplicaClasses,
}

/// Runs the program without keeping its steps. Returns the number of their bars in a trace, and
/// their length.
fn counted_run(
    compiled: &CompiledProgram,
    spec: &Spec,
    costs: &LeafCostTable,
    source: SampleSource<'_>,
) -> (u64, RunLength) {
    struct TraceBarCounter(u64);
    impl StepSink for TraceBarCounter {
        type Error = std::convert::Infallible;

        const RECORDS_EACH_STEP: bool = false;

        fn count_steps(&mut self, steps: u64) {
            self.0 += steps;
        }

        fn step(&mut self, step: &ExecutionStep) -> Result<(), Self::Error> {
            self.0 += step.parts().count() as u64;
            Ok(())
        }

        fn mark(&mut self, _: &TraceMark) -> Result<(), Self::Error> {
            Ok(())
        }
    }
    let mut counter = TraceBarCounter(0);
    match run_from(compiled, spec, costs.clone(), source, &mut counter) {
        Ok(length) => (counter.0, length),
        Err(never) => match never {},
    }
}

/// Returns the length of a run, without keeping its steps.
pub(crate) fn run_cycles(
    compiled: &CompiledProgram,
    spec: &Spec,
    dry_run_summary: &DryRunSummary,
) -> Cycles {
    let source = SampleSource::Host(&dry_run_summary.samples_ready);
    counted_run(compiled, spec, &LeafCostTable::new(compiled), source).1.whole
}

/// Returns the length of a run whose steps take other cycles than in the compiled program. `cycles`
/// maps a program and its cycles to the new cycles. Loader and host are those of the changed run.
pub(crate) fn retimed_cycles(
    compiled: &CompiledProgram,
    spec: &Spec,
    cycles: impl Fn(ProgramId, Cycles) -> Cycles,
) -> Cycles {
    let costs = LeafCostTable::new(compiled).retimed(cycles);
    let (_, length, samples_ready) = first_run(compiled, spec, &costs);
    if samples_ready.iter().all(|cycles| cycles.is_zero()) {
        return length.whole;
    }
    counted_run(compiled, spec, &costs, SampleSource::Host(&samples_ready)).1.whole
}

/// Runs with samples that are ready at once. Returns the bars and the length of the run, and the
/// times at which the loader has the samples of a call of that length.
fn first_run(
    compiled: &CompiledProgram,
    spec: &Spec,
    costs: &LeafCostTable,
) -> (u64, RunLength, Vec<Cycles>) {
    let groups = AlikeReplicas::of(spec);
    let at_once = vec![Cycles::ZERO; groups.len()];
    let (trace_bars, length) = counted_run(compiled, spec, costs, SampleSource::Host(&at_once));
    let clock = spec.target.chip.clock;
    let call = length.whole.seconds_at(clock);
    let waits = waits_for_loaders(spec, &groups, call, host_call_inputs(compiled, spec));
    let samples_ready = waits.into_iter().map(|seconds| cycles_of(seconds, clock)).collect();
    (trace_bars, length, samples_ready)
}

/// Runs the program without keeping its steps. The summary has the number of bars in a trace, and
/// the time that a call waits for the loader.
pub fn dry_run(compiled: &CompiledProgram, spec: &Spec) -> DryRunSummary {
    let costs = LeafCostTable::new(compiled);
    let (mut trace_bars, mut length, samples_ready) = first_run(compiled, spec, &costs);
    let clock = spec.target.chip.clock;
    let own = samples_ready.first().copied().unwrap_or_default();
    // Replicas that sync with the host together begin when the last one has its samples.
    let waiting = if spec.options.sync_replicas_independently {
        own
    } else {
        samples_ready.iter().copied().max().unwrap_or_default()
    };
    if samples_ready.len() > 1 {
        let source = SampleSource::Host(&samples_ready);
        (trace_bars, length) = counted_run(compiled, spec, &costs, source);
    } else if !waiting.is_zero() {
        trace_bars += u64::from(compiled.compilation.target.ipus_per_replica);
        length.whole += waiting;
    }
    let mut host = None;
    if spec.model.definition.batched {
        let (_, synthetic) = counted_run(compiled, spec, &costs, SampleSource::Ipu);
        let inputs = host_call_inputs(compiled, spec);
        let measured = HostCallMeasurement {
            call: (length.whole - waiting).seconds_at(clock),
            handshake: length.handshake.saturating_sub(waiting - own).seconds_at(clock),
            waiting: waiting.seconds_at(clock),
            synthetic: synthetic.whole.seconds_at(clock),
            samples: inputs.samples,
            bytes: inputs.bytes,
        };
        let report = host_report(compiled, spec, &measured);
        host = Some(HostReport { replicas: replica_waits(spec, &length.waits), ..report });
    }
    let replica_classes = ReplicaClasses { classes: replica_classes(spec), joins: length.joins };
    DryRunSummary { trace_bars, samples_ready, host, replica_classes }
}

/// Seconds that each group of replicas waits for the loader of its instance, in calls that
/// otherwise take `call` seconds. Replicas with a faster loader work at the pace of the slowest,
/// because they meet.
fn waits_for_loaders(
    spec: &Spec,
    groups: &[AlikeReplicas],
    call: f64,
    HostCallInputs { samples, bytes }: HostCallInputs,
) -> Vec<f64> {
    let host = &spec.options.host;
    let loads = groups.iter().map(|of| loader_seconds_of(spec, of, samples, bytes));
    let loads: Vec<f64> = loads.collect();
    let slowest = loads.iter().copied().fold(0.0, f64::max);
    let longest = host::wait_for_loader(host, call, slowest);
    let mut waits = Vec::new();
    for load in loads {
        let faster = load < slowest;
        waits.push(if faster {
            host::wait_for_loader(host, call + longest, load)
        } else {
            longest
        });
    }
    waits
}

/// The inputs of one host call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCallInputs {
    /// Samples of all replicas.
    pub samples: u64,
    /// Bytes of the inputs of all replicas.
    pub bytes: Bytes,
}

/// Returns the inputs of one host call of a program.
pub fn host_call_inputs(compiled: &CompiledProgram, spec: &Spec) -> HostCallInputs {
    let options = &spec.options;
    let micro_batches = options.gradient_accumulation
        * options.device_iterations
        * u64::from(options.replication_factor);
    let bytes = micro_batches * input_bytes(compiled);
    HostCallInputs { samples: micro_batches * spec.model.batch_size, bytes }
}

/// Bytes of the inputs of a micro-batch. Inputs that several IPUs receive count once.
pub(super) fn input_bytes(compiled: &CompiledProgram) -> Bytes {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut bytes = Bytes::ZERO;
    for copy in &compiled.parts.host_inputs {
        let stage = match &copy.tensor {
            Some(tensor) => *first.entry(&tensor.name).or_insert(copy.stage),
            None => copy.stage,
        };
        if stage == copy.stage {
            bytes += copy.bytes_in;
        }
    }
    bytes
}
