//! The share of an instance, a process on a host, in its machine.

use crate::specification::{HostSpec, MultiThreadMode, Spec};

/// The share of one instance in the hosts that the instances share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstanceResources {
    /// The number of replicas that it works for.
    pub replicas: u64,
    /// The number of replicas that the links of its host feed.
    pub replicas_of_host: f64,
    /// The number of loader processes that have a core.
    pub workers: u64,
    /// The number of threads that call its stream callbacks in parallel.
    pub callback_threads: u64,
}

impl InstanceResources {
    /// Returns the share of each instance of a spec. Loader processes and callback threads can each
    /// use all cores of the instance: the model ignores that both work at the same time.
    pub(crate) fn new(spec: &Spec) -> Self {
        let options = &spec.options;
        let host = &spec.options.host;
        let hosts = u64::from(options.num_hosts);
        let instances = u64::from(options.num_instances);
        let replicas = u64::from(spec.options.local_replicas());
        let cores = (host.cores * hosts / instances).max(1);
        let threads = match (host.num_worker_threads, host.stream_callbacks_multi_thread_mode) {
            (_, MultiThreadMode::SingleThread) => 1,
            (0, MultiThreadMode::Dedicated | MultiThreadMode::Collaborative) => replicas,
            (threads, MultiThreadMode::Dedicated) => threads,
            (threads, MultiThreadMode::Collaborative) => threads + 1,
        };
        Self {
            replicas,
            replicas_of_host: f64::from(options.replication_factor) / hosts as f64,
            workers: host.num_workers.min(cores),
            callback_threads: threads.min(cores),
        }
    }

    /// Seconds of the callbacks for one micro-batch of all replicas of the instance. Each thread
    /// calls those of some replicas, one after the other.
    pub(crate) fn callback_seconds(&self, host: &HostSpec) -> f64 {
        host.seconds_per_micro_batch * self.replicas.div_ceil(self.callback_threads) as f64
    }
}
