//! The host part of the report: the loader alone, synthetic data and real data side by side, the
//! parts of a call, and its inputs and results.

use super::alike_replicas::AlikeReplicas;
use super::epochs::epochs;
use super::instance::InstanceResources;
use super::loader::loader_seconds;
use crate::compile::CompiledProgram;
use crate::specification::{DataLoaderMode, OutputMode, Spec};
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, IpuId};
use tilescope_report::{
    HostBottleneck, HostCallPart, HostCallTime, HostDataSource, HostRate, HostReport, HostTensor,
    TargetKind,
};

/// The duration of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostCallMeasurement {
    /// Seconds of a call, without the time that its IPUs wait for the loader.
    pub call: f64,
    /// Seconds of the control copies at the start of the call.
    pub handshake: f64,
    /// Seconds that the IPUs wait for the loader before the call.
    pub waiting: f64,
    /// Seconds of a call whose samples the IPUs make.
    pub synthetic: f64,
    /// Samples of a call, over all replicas.
    pub samples: u64,
    /// Bytes of its inputs, over all replicas.
    pub bytes: Bytes,
}

/// Returns the host part of the report for a model that works on samples.
pub(crate) fn host_report(
    compiled: &CompiledProgram,
    spec: &Spec,
    measured: &HostCallMeasurement,
) -> HostReport {
    let load = loader_seconds(spec, measured.samples, measured.bytes);
    let whole = measured.waiting + measured.call;
    HostReport {
        rates: rates(compiled, spec, measured, load),
        call: call_times(spec, measured),
        tensors: tensors(compiled, spec),
        epochs: epochs(spec, measured.samples, whole, load),
        replicas: Vec::new(),
    }
}

/// A call mainly waits if it takes this multiple of the work of its IPUs.
const WAITS: f64 = 1.1;

fn has_loader(spec: &Spec) -> bool {
    match spec.options.host.loader {
        DataLoaderMode::None | DataLoaderMode::Synthetic => false,
        DataLoaderMode::Sync | DataLoaderMode::Async | DataLoaderMode::AsyncRebatched => true,
    }
}

fn rates(
    compiled: &CompiledProgram,
    spec: &Spec,
    measured: &HostCallMeasurement,
    load: f64,
) -> Vec<HostRate> {
    let framework = framework_seconds(spec);
    let ipu = (HostBottleneck::Ipu, measured.synthetic - framework);
    let around = (HostBottleneck::HostCall, framework);
    let mut rates = Vec::new();
    let mut add_rate = |source, seconds: f64, busy: &[(HostBottleneck, f64)]| {
        let longest = busy.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((busiest, work)) = longest.filter(|_| seconds > 0.0) {
            // IPUs that could process much more are limited by their waits.
            let waits = *busiest == HostBottleneck::Ipu && seconds - framework > WAITS * work;
            let bottleneck = if waits { HostBottleneck::HostCopies } else { *busiest };
            let samples_per_second = measured.samples as f64 / seconds;
            rates.push(HostRate { source, samples_per_second, bottleneck });
        }
    };
    let loader = (HostBottleneck::Loader, load);
    if has_loader(spec) {
        add_rate(HostDataSource::LoaderAlone, load, &[loader]);
    }
    add_rate(HostDataSource::SyntheticData, measured.synthetic, &[ipu, around]);
    if spec.options.host.loader != DataLoaderMode::Synthetic {
        let loading = if has_loader(spec) { load } else { 0.0 };
        let busy = [
            ipu,
            around,
            (HostBottleneck::Loader, loading),
            (HostBottleneck::HostLink, link_seconds(compiled, spec)),
            (HostBottleneck::Callbacks, callback_seconds(compiled, spec)),
        ];
        add_rate(HostDataSource::RealData, measured.waiting + measured.call, &busy);
    }
    rates
}

/// Seconds of the framework and the launch before and after a run.
fn framework_seconds(spec: &Spec) -> f64 {
    let host = &spec.options.host;
    host.seconds_per_framework_call + host.seconds_per_launch + host.seconds_per_return
}

/// Micro-batches of a replica in a call.
fn micro_batches(spec: &Spec) -> u64 {
    spec.options.gradient_accumulation * spec.options.device_iterations
}

/// Micro-batches of a replica whose results a call returns.
fn returned_micro_batches(spec: &Spec) -> u64 {
    match spec.output_mode() {
        OutputMode::Default | OutputMode::All => micro_batches(spec),
        OutputMode::Final | OutputMode::Sum => 1,
        OutputMode::EveryN => micro_batches(spec) / spec.options.output_return_period,
    }
}

/// Seconds of a call in which the busiest link moves data: that of a host in one direction, or that
/// of an IPU.
fn link_seconds(compiled: &CompiledProgram, spec: &Spec) -> f64 {
    if spec.target.kind == TargetKind::IpuModel {
        return 0.0;
    }
    let times = [micro_batches(spec), returned_micro_batches(spec)].map(|count| count as f64);
    let copies = [&compiled.parts.host_inputs, &compiled.parts.host_outputs];
    let replicas = InstanceResources::new(spec).replicas_of_host;
    let host_rate = spec.options.host.shared_bytes_per_second;
    let ipu_rate = compiled.system.host_bytes_per_cycle;
    let clock = spec.target.chip.clock.0 as f64;
    let mut of_ipus: BTreeMap<IpuId, f64> = BTreeMap::new();
    let mut longest = 0.0_f64;
    for (copies, times) in copies.into_iter().zip(times) {
        let mut of_host = 0.0;
        for copy in copies {
            let bytes = (copy.bytes_in + copy.bytes_out).as_f64() * times;
            of_host += bytes;
            *of_ipus.entry(copy.ipu).or_default() += bytes;
        }
        longest = longest.max(of_host * replicas / host_rate);
    }
    of_ipus.into_values().map(|bytes| bytes / ipu_rate / clock).fold(longest, f64::max)
}

/// Seconds of a call in which the callbacks of an instance work.
fn callback_seconds(compiled: &CompiledProgram, spec: &Spec) -> f64 {
    if compiled.parts.host_inputs.is_empty() {
        return 0.0;
    }
    let groups = AlikeReplicas::of(spec);
    let slowest = groups.iter().map(|of| of.factor(spec)).fold(1.0, f64::max);
    let each = InstanceResources::new(spec).callback_seconds(&spec.options.host);
    slowest * each * micro_batches(spec) as f64
}

/// The parts of a call, in order. Parts that take no time are omitted.
fn call_times(spec: &Spec, measured: &HostCallMeasurement) -> Vec<HostCallTime> {
    let host = &spec.options.host;
    let program = measured.call - measured.handshake - framework_seconds(spec);
    let parts = [
        (HostCallPart::Loader, measured.waiting),
        (HostCallPart::Framework, host.seconds_per_framework_call),
        (HostCallPart::Launch, host.seconds_per_launch),
        (HostCallPart::Handshake, measured.handshake),
        (HostCallPart::Program, program),
        (HostCallPart::Results, host.seconds_per_return),
    ];
    let taken = parts.into_iter().filter(|(_, seconds)| *seconds > 0.0);
    taken.map(|(part, seconds)| HostCallTime { part, seconds }).collect()
}

/// The inputs and results of one call of an instance: the micro-batches of its replicas, one after
/// the other in the first dimension.
fn tensors(compiled: &CompiledProgram, spec: &Spec) -> Vec<HostTensor> {
    let local = u64::from(spec.options.local_replicas());
    let of_input = micro_batches(spec) * local;
    let of_output = returned_micro_batches(spec) * local;
    let inputs = compiled.parts.host_inputs.iter().map(|copy| (copy, true, of_input));
    let outputs = compiled.parts.host_outputs.iter().map(|copy| (copy, false, of_output));
    let mut tensors = Vec::new();
    for (copy, is_input, micro_batches) in inputs.chain(outputs) {
        let Some(streamed) = &copy.tensor else { continue };
        let mut shape = streamed.shape.clone();
        match shape.first_mut() {
            Some(first) => *first *= micro_batches,
            None => shape.push(micro_batches),
        }
        tensors.push(HostTensor {
            name: streamed.name.clone(),
            is_input,
            element_type: streamed.element_type.name().to_owned(),
            bytes: (copy.bytes_in + copy.bytes_out) * micro_batches,
            shape,
        });
    }
    tensors
}
