//! Epochs: the number of calls for a data set, the samples that are left out, and the time.

use crate::specification::{DataLoaderMode, Spec};
use tilescope_report::HostEpoch;

/// Returns the first epoch and those that follow it. A call takes `call` seconds, and the loader
/// prepares its samples in `load` seconds. Empty if the size of the data set is not known.
pub(crate) fn epochs(spec: &Spec, samples_per_call: u64, call: f64, load: f64) -> Vec<HostEpoch> {
    let host = &spec.options.host;
    let (calls, samples) = calls_of_epoch(spec, samples_per_call);
    if host.dataset_samples == 0 || calls == 0 {
        return Vec::new();
    }
    let starting = host.seconds_per_worker_start * host.num_workers as f64;
    let (first, later) = match host.loader {
        DataLoaderMode::None | DataLoaderMode::Synthetic => (0.0, 0.0),
        // The time of a call that waits for its samples already includes the wait.
        DataLoaderMode::Sync => (starting, if host.persistent_workers { 0.0 } else { starting }),
        DataLoaderMode::Async | DataLoaderMode::AsyncRebatched => {
            let first = if host.early_preload { 0.0 } else { starting + load };
            let again = if host.persistent_workers { load } else { starting + load };
            (first, if host.load_indefinitely { 0.0 } else { again })
        }
    };
    let calling = calls as f64 * call;
    let left_out = host.dataset_samples - samples;
    let first = HostEpoch { epochs: 1, calls, samples, left_out, seconds: first + calling };
    if host.epochs <= 1 {
        return vec![first];
    }
    let later = HostEpoch { epochs: host.epochs - 1, seconds: later + calling, ..first };
    vec![first, later]
}

/// The calls of an epoch, and the number of samples of the data set that they process.
fn calls_of_epoch(spec: &Spec, samples_per_call: u64) -> (u64, u64) {
    let host = &spec.options.host;
    if !host.drop_last {
        return (host.dataset_samples.div_ceil(samples_per_call), host.dataset_samples);
    }
    // Workers that each process a part of a stream leave out the end of their part.
    let handed_over = match host.loader {
        _ if !host.iterable_dataset => host.dataset_samples,
        DataLoaderMode::None | DataLoaderMode::Synthetic => host.dataset_samples,
        DataLoaderMode::Async | DataLoaderMode::Sync | DataLoaderMode::AsyncRebatched => {
            let instances = u64::from(spec.options.num_instances);
            let batch = match host.loader {
                DataLoaderMode::AsyncRebatched => host.rebatched_worker_size,
                _ => samples_per_call / instances,
            };
            let workers = host.num_workers * instances;
            let part = host.dataset_samples / workers;
            part / batch.max(1) * batch * workers
        }
    };
    let calls = handed_over / samples_per_call;
    (calls, calls * samples_per_call)
}
