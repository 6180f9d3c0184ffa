//! The host's timeline: loaders that prepare calls, callbacks that fill stream buffers, and the
//! links of a host.
//!
//! A loader of each instance prepares the samples of a whole call. A stream callback then fills the
//! buffer of one micro-batch, up to the prefetch depth ahead, and the links of the host transfer it
//! to the IPU-Machine. From there each IPU fetches it at its own rate. An IPU that arrives too
//! early waits in StreamCopyBegin.

mod alike_replicas;
mod epochs;
mod host_report;
mod instance;
mod loader;

pub(super) use alike_replicas::{AlikeReplicas, WaitTotals, replica_classes, replica_waits};
pub(super) use host_report::{HostCallMeasurement, host_report};
pub use loader::loader_seconds;
pub(super) use loader::loader_seconds_of;

use crate::specification::{DataLoaderMode, HostSpec, Spec};
use instance::InstanceResources;
use std::collections::{BTreeMap, VecDeque};
use tilescope_report::TargetKind;
use tilescope_report::units::{Bytes, CycleRange, Cycles, ProgramId};

/// The number of calls over which the loader's mean lead is computed.
const LOADER_SIMULATED_CALLS: u64 = 64;

/// The distance between the random number sequences of places in a round, and of slower instances.
/// It is longer than any run.
const PLACES_APART: u64 = 1 << 40;
const SPEEDS_APART: u64 = 1 << 56;

/// The data that the host has ready, and the times at which they are.
pub(crate) struct HostTimeline {
    spec: HostSpec,
    replicas: AlikeReplicas,
    prefetch_depth: u64,
    /// Cycles of the callbacks that fill all inputs of one micro-batch, for all replicas of the
    /// instance.
    callback: f64,
    /// Cycles that the host's links take for a byte of each replica.
    link_cycles_per_byte: f64,
    input_bytes: Bytes,
    samples_ready: Cycles,
    /// The time at which callbacks can begin.
    open: Cycles,
    streams: BTreeMap<ProgramId, HostStream>,
    /// The times at which the links of the host have moved all data so far, in each direction.
    link_in: Cycles,
    link_out: Cycles,
    /// The end of the last callback that was shown.
    shown_until: Cycles,
}

/// One stream from the host, or to it.
#[derive(Default)]
struct HostStream {
    /// The number of micro-batches copied so far.
    fetched: u64,
    /// The start and the end of the last callback.
    begun: Cycles,
    called: Cycles,
    /// The times at which the buffers in use were emptied.
    emptied: VecDeque<Cycles>,
    /// The time at which the last result reached the host.
    sent: Cycles,
}

impl HostTimeline {
    /// Makes the host of some replicas in a call. Its samples are ready after `samples_ready`
    /// cycles, and its micro-batches have `input_bytes`.
    pub(crate) fn new(
        spec: &Spec,
        replicas: &AlikeReplicas,
        input_bytes: Bytes,
        samples_ready: Cycles,
    ) -> Self {
        let host = spec.options.host;
        let resources = InstanceResources::new(spec);
        let clock = spec.target.chip.clock.0 as f64;
        let link_seconds = match spec.target.kind {
            TargetKind::Ipu => resources.replicas_of_host / host.shared_bytes_per_second,
            // The IPU Model runs on the host: its data cross no link.
            TargetKind::IpuModel => 0.0,
        };
        Self {
            spec: host,
            replicas: *replicas,
            prefetch_depth: spec.options.prefetch_depth,
            callback: resources.callback_seconds(&host) * replicas.factor(spec) * clock,
            link_cycles_per_byte: link_seconds * clock,
            input_bytes,
            samples_ready,
            open: Cycles::ZERO,
            streams: BTreeMap::new(),
            link_in: Cycles::ZERO,
            link_out: Cycles::ZERO,
            shown_until: Cycles::ZERO,
        }
    }

    /// The replicas that this host serves.
    pub(crate) fn replicas(&self) -> &AlikeReplicas {
        &self.replicas
    }

    /// The time at which the samples of the call are ready.
    pub(crate) fn samples_ready(&self) -> Cycles {
        self.samples_ready
    }

    /// Sets the time of the launch, after which callbacks can begin.
    pub(crate) fn launched(&mut self, at: Cycles) {
        self.open = at;
    }

    /// Cycles that the host's links take for `bytes` bytes of each replica.
    fn link_cycles(&self, bytes: Bytes) -> Cycles {
        Cycles::from_f64((bytes.as_f64() * self.link_cycles_per_byte).round())
    }

    /// Returns the time at which the IPU can begin to fetch the stream's next micro-batch, which
    /// takes `transfer` cycles. The callback is then done, and the host's links, which move data
    /// during the fetch, do not delay it.
    pub(crate) fn fill_next_buffer(
        &mut self,
        stream: ProgramId,
        bytes: Bytes,
        transfer: Cycles,
    ) -> Cycles {
        // Callbacks are measured for a whole micro-batch; a stream takes its share by bytes.
        let share = bytes.as_f64() / self.input_bytes.max(Bytes(1)).as_f64();
        let depth = self.prefetch_depth;
        let moving = self.link_cycles(bytes);
        let entry = self.streams.entry(stream).or_default();
        // A callback starts when the previous one is done and a buffer is free.
        let free = if entry.emptied.len() as u64 >= depth {
            entry.emptied.pop_front().unwrap_or_default()
        } else {
            Cycles::ZERO
        };
        // Rounds of other instances and threads have their own times.
        let drawn = entry.fetched
            + self.replicas.place * PLACES_APART
            + u64::from(self.replicas.slower) * SPEEDS_APART;
        let jitter = 1.0 + self.spec.sample_time_spread * noise(drawn);
        let start = entry.called.max(free).max(self.open);
        debug_assert!(start >= self.open, "a callback waits for its samples");
        debug_assert!(
            entry.fetched == 0 || start >= entry.called,
            "callbacks of a stream follow each other"
        );
        entry.begun = start;
        let round = self.callback * share * jitter;
        entry.called = start + Cycles::from_f64(round.round());
        // The thread serves the earlier replicas first.
        let served = (self.replicas.place + 1) as f64 / self.replicas.places as f64;
        let own = start + Cycles::from_f64((round * served).round());
        self.link_in = own.max(self.link_in) + moving;
        entry.fetched += 1;
        own.max(self.link_in.saturating_sub(transfer))
    }

    /// Records that the stream's buffer was emptied.
    pub(crate) fn buffer_emptied(&mut self, stream: ProgramId, at: Cycles) {
        let emptied = &mut self.streams.entry(stream).or_default().emptied;
        debug_assert!(
            emptied.back().is_none_or(|before| *before <= at),
            "buffers are emptied in order"
        );
        emptied.push_back(at);
    }

    /// The time at which the buffer for the stream's next result is free.
    pub(crate) fn result_buffer_free(&self, stream: ProgramId) -> Cycles {
        self.streams.get(&stream).map_or(Cycles::ZERO, |entry| entry.sent)
    }

    /// Records that the IPU writes a result of `bytes` bytes to its buffer from `begun` on. The
    /// host's links move it at the same time.
    pub(crate) fn result_written(&mut self, stream: ProgramId, bytes: Bytes, begun: Cycles) {
        self.link_out = self.link_out.max(begun) + self.link_cycles(bytes);
        self.streams.entry(stream).or_default().sent = self.link_out;
    }

    /// Returns the micro-batch of a stream's last callback and the time of the callback. `None` if
    /// callbacks take no time. Overlapping callbacks of several streams are shown one after the
    /// other.
    pub(crate) fn callback(&mut self, stream: ProgramId) -> Option<(u64, CycleRange)> {
        let entry = self.streams.get(&stream)?;
        let busy = CycleRange::new(entry.begun.max(self.shown_until), entry.called);
        // A callback that ends before the shown ones is hidden behind them.
        if entry.begun < entry.called && busy.start < busy.end {
            self.shown_until = busy.end;
            Some((entry.fetched - 1, busy))
        } else {
            None
        }
    }
}

/// Returns the seconds into a call until its samples are ready, if the device works for `device`
/// seconds and the loader for `load`: the mean over many calls.
pub(crate) fn wait_for_loader(host: &HostSpec, device: f64, load: f64) -> f64 {
    match host.loader {
        DataLoaderMode::None | DataLoaderMode::Synthetic => 0.0,
        // It begins to load when the call begins, so nothing hides its work.
        DataLoaderMode::Sync => load,
        DataLoaderMode::Async | DataLoaderMode::AsyncRebatched => {
            let mut started: VecDeque<f64> = VecDeque::new();
            let mut loaded = 0.0f64;
            let mut free = 0.0f64;
            let mut waited = 0.0;
            for call in 0..LOADER_SIMULATED_CALLS {
                // A ring of `buffer_size` calls: the next call is loaded after the oldest was
                // taken.
                let room = if started.len() as u64 >= host.buffer_size {
                    started.pop_front().unwrap_or(0.0)
                } else {
                    0.0
                };
                loaded = loaded.max(room) + load * (1.0 + host.sample_time_spread * noise(call));
                let start = free.max(loaded);
                // The first half of the calls fills the ring.
                if call >= LOADER_SIMULATED_CALLS / 2 {
                    waited += start - free;
                }
                started.push_back(start);
                free = start + device;
            }
            waited / (LOADER_SIMULATED_CALLS - LOADER_SIMULATED_CALLS / 2) as f64
        }
    }
}

/// A pseudo-random number from -1 to 1 that is the same in every run (splitmix64).
fn noise(index: u64) -> f64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specification::SpecSource;

    fn host(text: &str) -> HostSpec {
        let text = format!("[model]\nname = \"mnist\"\n[options.host]\n{text}");
        Spec::build(&SpecSource::from_text("host", &text)).expect("valid").options.host
    }

    #[test]
    fn an_asynchronous_loader_hides_work_that_takes_no_longer_than_the_device() {
        let sync = host("loader = \"sync\"");
        let ahead = host("loader = \"async\"");
        assert_eq!(wait_for_loader(&sync, 2.0, 1.0), 1.0);
        assert_eq!(wait_for_loader(&ahead, 2.0, 1.0), 0.0);
        assert!((wait_for_loader(&ahead, 1.0, 3.0) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_larger_ring_evens_out_slow_calls() {
        let wait = |size: u64| {
            let text =
                format!("loader = \"async\"\nsample_time_spread = 0.9\nbuffer_size = {size}");
            wait_for_loader(&host(&text), 1.0, 0.8)
        };
        assert!(wait(1) > wait(4), "{} {}", wait(1), wait(4));
    }

    #[test]
    fn a_callback_waits_until_a_buffer_is_empty() {
        for depth in [1, 2, 5, 256, 65_536] {
            let text = format!(
                "[model]\nname = \"mnist\"\n[options]\nprefetch_depth = {depth}\n\
                 [options.host]\nseconds_per_micro_batch = 1e-6"
            );
            let spec = Spec::build(&SpecSource::from_text("host", &text)).expect("valid");
            let bytes = Bytes(100);
            let stream = ProgramId(0);
            let replicas = AlikeReplicas::of(&spec);
            let mut host = HostTimeline::new(&spec, &replicas[0], bytes, Cycles::ZERO);
            host.launched(Cycles::ZERO);
            // The IPU arrives late each time, so the callback only waits for a free buffer.
            let emptied = |at: usize| Cycles((at as u64 + 1) * 1_000_000);
            for at in 0..10_usize {
                let ready = host.fill_next_buffer(stream, bytes, Cycles::ZERO);
                let free = at.checked_sub(depth).map_or(Cycles::ZERO, emptied);
                assert!(
                    ready >= free && ready < free + Cycles(500_000),
                    "{depth}: {at}: {ready:?}"
                );
                host.buffer_emptied(stream, emptied(at));
            }
        }
    }

    #[test]
    fn noise_has_no_bias() {
        let mean: f64 = (0..10_000).map(noise).sum::<f64>() / 10_000.0;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((0..10_000).all(|index| (-1.0..=1.0).contains(&noise(index))));
    }
}
