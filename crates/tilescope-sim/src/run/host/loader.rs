//! The time of data loaders.

use super::alike_replicas::AlikeReplicas;
use super::instance::InstanceResources;
use crate::specification::Spec;
use tilescope_report::units::Bytes;

/// Returns the seconds that the loader of the slowest instance takes for the samples of one call.
///
/// `bytes` is the size of the inputs of all replicas.
pub fn loader_seconds(spec: &Spec, samples: u64, bytes: Bytes) -> f64 {
    let groups = AlikeReplicas::of(spec);
    let each = groups.iter().map(|of| loader_seconds_of(spec, of, samples, bytes));
    each.fold(0.0, f64::max)
}

/// Returns the seconds that the loader of the instances of some replicas takes.
pub(crate) fn loader_seconds_of(
    spec: &Spec,
    replicas: &AlikeReplicas,
    samples: u64,
    bytes: Bytes,
) -> f64 {
    let host = &spec.options.host;
    let instances = f64::from(spec.options.num_instances);
    let workers = InstanceResources::new(spec).workers as f64;
    let normalising =
        if spec.options.normalise_on_ipu { 0.0 } else { host.seconds_per_normalisation };
    let each = host.seconds_per_sample + normalising;
    let preparing = samples as f64 / instances * each / workers;
    let copying = bytes.as_f64() / instances / host.copy_bytes_per_second;
    replicas.factor(spec) * (host.seconds_per_call + preparing + copying)
}
