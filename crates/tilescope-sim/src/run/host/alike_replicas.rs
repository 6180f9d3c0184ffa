//! Replicas that the host serves equally: those of equally fast instances, at the same position in
//! the round of a callback thread.

use super::instance::InstanceResources;
use crate::specification::{DataLoaderMode, Spec};
use std::ops::Range;
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{ReplicaClass, ReplicaWait};

/// Replicas that the host serves equally, one group for each speed of instances and place in a
/// round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlikeReplicas {
    /// True if their instances are the slower ones.
    pub slower: bool,
    /// Their place in the round of the callback thread that serves them, from 0.
    pub place: u64,
    /// The number of places of a round that are distinguished.
    pub places: u64,
}

impl AlikeReplicas {
    /// Returns the groups of a spec. Replica 0 is in the first.
    ///
    /// If all replicas sync together, they wait for the end of a round, so places do not matter.
    pub(crate) fn of(spec: &Spec) -> Vec<Self> {
        let options = &spec.options;
        let host = &spec.options.host;
        let loads = !matches!(host.loader, DataLoaderMode::None | DataLoaderMode::Synthetic);
        let calls_back =
            host.seconds_per_micro_batch > 0.0 && host.loader != DataLoaderMode::Synthetic;
        let resources = InstanceResources::new(spec);
        let places = if options.sync_replicas_independently && calls_back {
            resources.replicas.div_ceil(resources.callback_threads)
        } else {
            1
        };
        let slower = if loads || calls_back { options.slow_instances() } else { 0 };
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

    /// Describes the difference to other groups: the speed of the host if hosts differ, and the
    /// place in a round.
    fn why(&self, spec: &Spec, hosts_differ: bool) -> String {
        let host = if self.slower {
            format!("host {} times slower", spec.options.host.slower_instance_factor)
        } else {
            "fast host".to_owned()
        };
        let place = format!("served {} of {}", ordinal(self.place + 1), self.places);
        match (hosts_differ, self.places > 1) {
            (_, false) => host,
            (false, true) => place,
            (true, true) => format!("{host}, {place}"),
        }
    }

    /// The factor by which the host is slower for them.
    pub(crate) fn factor(&self, spec: &Spec) -> f64 {
        if self.slower { spec.options.host.slower_instance_factor } else { 1.0 }
    }
}

/// Formats an ordinal: `1st`, `2nd`, `13th`.
fn ordinal(number: u64) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// The waits of a group of replicas in a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitTotals {
    pub loader: Cycles,
    pub host: Cycles,
    pub others: Cycles,
    /// The smallest and largest number of cycles behind the first replica, at points where replicas
    /// meet.
    pub behind: Option<(Cycles, Cycles)>,
}

impl WaitTotals {
    /// Records how far these replicas arrived behind the first one at a point where all meet.
    pub(crate) fn met(&mut self, behind: Cycles, waited: Cycles) {
        let (least, most) = self.behind.unwrap_or((behind, behind));
        self.behind = Some((least.min(behind), most.max(behind)));
        self.others += waited;
    }
}

/// Consecutive replicas of a class in an instance.
struct ClassMembers {
    class: usize,
    instance: u32,
    replicas: Range<u32>,
}

/// Returns the class of each replica, in order.
fn members(spec: &Spec, classes: &[AlikeReplicas]) -> Vec<ClassMembers> {
    let options = &spec.options;
    let local = spec.options.local_replicas();
    let fast = options.num_instances - options.slow_instances();
    let threads = InstanceResources::new(spec).callback_threads;
    let speeds_differ = classes.iter().any(|of| of.slower != classes[0].slower);
    let mut members = Vec::new();
    for instance in 0..options.num_instances {
        for (class, of) in classes.iter().enumerate() {
            if speeds_differ && of.slower != (instance >= fast) {
                continue;
            }
            // A thread serves one replica of each place. The last place may have fewer.
            let first = served_before(of.place, threads, local);
            let end = if of.place + 1 == of.places {
                local
            } else {
                served_before(of.place + 1, threads, local)
            };
            let replicas = instance * local + first..instance * local + end;
            members.push(ClassMembers { class, instance, replicas });
        }
    }
    members
}

/// The number of replicas of an instance with places before `place`.
fn served_before(place: u64, threads: u64, local: u32) -> u32 {
    u32::try_from(place * threads).unwrap_or(local).min(local)
}

/// Returns the waits of every replica, in order. `totals` are those of the classes. Empty if all
/// replicas are equal.
pub(crate) fn replica_waits(spec: &Spec, totals: &[WaitTotals]) -> Vec<ReplicaWait> {
    let classes = AlikeReplicas::of(spec);
    if classes.len() < 2 {
        return Vec::new();
    }
    let mut waits = Vec::new();
    for of in members(spec, &classes) {
        let total = totals.get(of.class).copied().unwrap_or_default();
        let (least, most) = total.behind.unwrap_or_default();
        waits.push(ReplicaWait {
            first_replica: of.replicas.start,
            replicas: of.replicas.end - of.replicas.start,
            instance: of.instance,
            loader: total.loader,
            host: total.host,
            others: total.others,
            behind: CycleRange::new(least, most),
        });
    }
    waits
}

/// Returns the classes of replicas with the reason for their differences. Empty if all replicas are
/// equal.
pub(crate) fn replica_classes(spec: &Spec) -> Vec<ReplicaClass> {
    let classes = AlikeReplicas::of(spec);
    if classes.len() < 2 {
        return Vec::new();
    }
    let hosts_differ = classes.iter().any(|of| of.slower != classes[0].slower);
    let mut found = Vec::new();
    for class in &classes {
        found.push(ReplicaClass { replicas: Vec::new(), why: class.why(spec, hosts_differ) });
    }
    for of in members(spec, &classes) {
        found[of.class].replicas.extend(of.replicas);
    }
    found
}
