//! Replicas that the host serves alike: those of instances that are as fast, at the same place in the
//! round of a callback thread.

use super::instance::InstanceResources;
use crate::spec::{DataLoaderMode, Spec};
use tilescope_report::ReplicaWait;
use tilescope_report::units::{CycleRange, Cycles};

/// Replicas that the host serves alike, one group for each speed of instances and place in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlikeReplicas {
    /// Whether their instances are the slower ones.
    pub slower: bool,
    /// Their place in the round of the callback thread that serves them, from 0.
    pub place: u64,
    /// Places of a round that replicas are told apart by.
    pub places: u64,
}

impl AlikeReplicas {
    /// The groups of a spec; replica 0 is in the first.
    ///
    /// Where all replicas sync together they wait for the end of a round, so that places do not
    /// matter.
    pub(crate) fn of(spec: &Spec) -> Vec<Self> {
        let (options, host) = (&spec.options, &spec.options.host);
        let loads = !matches!(host.loader, DataLoaderMode::None | DataLoaderMode::Synthetic);
        let calls_back =
            host.seconds_per_micro_batch > 0.0 && host.loader != DataLoaderMode::Synthetic;
        let resources = InstanceResources::new(spec);
        let places = match options.sync_replicas_independently && calls_back {
            true => resources.replicas.div_ceil(resources.callback_threads),
            false => 1,
        };
        let slower = match loads || calls_back {
            true if host.slower_instance_factor > 1.0 => host.slower_instances,
            _ => 0,
        };
        let speeds: &[bool] = match slower {
            0 => &[false],
            all if all == options.num_instances => &[true],
            _ => &[false, true],
        };
        let groups = speeds.iter().flat_map(|slower| {
            (0..places).map(move |place| Self { slower: *slower, place, places })
        });
        groups.collect()
    }

    /// How many times as long the host takes for them.
    pub(crate) fn factor(&self, spec: &Spec) -> f64 {
        if self.slower { spec.options.host.slower_instance_factor } else { 1.0 }
    }
}

/// What a group of replicas waits for in a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitTotals {
    pub loader: Cycles,
    pub host: Cycles,
    pub others: Cycles,
    /// Least and most cycles behind the first, where replicas meet.
    pub behind: Option<(Cycles, Cycles)>,
}

impl WaitTotals {
    /// Notes how far behind the first replica these came to where all meet.
    pub(crate) fn met(&mut self, behind: Cycles, waited: Cycles) {
        let (least, most) = self.behind.unwrap_or((behind, behind));
        self.behind = Some((least.min(behind), most.max(behind)));
        self.others += waited;
    }
}

/// What every replica waits for, in their order; `totals` are those of the groups. Nothing where all
/// are alike.
pub(crate) fn replica_waits(spec: &Spec, totals: &[WaitTotals]) -> Vec<ReplicaWait> {
    let groups = AlikeReplicas::of(spec);
    if groups.len() < 2 {
        return Vec::new();
    }
    let (options, local) = (&spec.options, spec.options.local_replicas());
    let fast = options.num_instances - options.host.slower_instances.min(options.num_instances);
    let threads = InstanceResources::new(spec).callback_threads;
    let mut waits = Vec::new();
    for instance in 0..options.num_instances {
        let mine = groups.iter().zip(totals).filter(|(group, _)| {
            groups.iter().all(|of| of.slower == group.slower) || group.slower == (instance >= fast)
        });
        for (group, total) in mine {
            let first = group.place * threads;
            let end = if group.place + 1 == group.places { local.into() } else { first + threads };
            let replicas = end.min(local.into()).saturating_sub(first);
            let (least, most) = total.behind.unwrap_or_default();
            waits.push(ReplicaWait {
                first_replica: instance * local + u32::try_from(first).unwrap_or(u32::MAX),
                replicas: u32::try_from(replicas).unwrap_or(u32::MAX),
                instance,
                loader: total.loader,
                host: total.host,
                others: total.others,
                behind: CycleRange::new(least, most),
            });
        }
    }
    waits
}
