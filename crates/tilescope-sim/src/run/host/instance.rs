//! What an instance, a process on a host, has of its machine.

use crate::specification::{HostSpec, MultiThreadMode, Spec};

/// What one instance has of the hosts that the instances share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstanceResources {
    /// Replicas it works for.
    pub replicas: u64,
    /// Replicas that the links of its host feed.
    pub replicas_of_host: f64,
    /// Loader processes that have a core.
    pub workers: u64,
    /// Threads that call its stream callbacks side by side.
    pub callback_threads: u64,
}

impl InstanceResources {
    /// What each instance of a spec has. Loader processes and callback threads each have as many
    /// cores as the instance: that both work at the same time is not modelled.
    pub(crate) fn new(spec: &Spec) -> Self {
        let (options, host) = (&spec.options, &spec.options.host);
        let (hosts, instances) = (u64::from(options.num_hosts), u64::from(options.num_instances));
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

    /// Seconds of the callbacks for one micro-batch of all replicas of the instance: each thread
    /// calls those of some replicas, one after the other.
    pub(crate) fn callback_seconds(&self, host: &HostSpec) -> f64 {
        host.seconds_per_micro_batch * self.replicas.div_ceil(self.callback_threads) as f64
    }
}
