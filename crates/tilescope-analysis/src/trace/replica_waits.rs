//! The time that replicas wait, and the replicas whose waits differ from those of most others.

use tilescope_report::trace::Trace;
use tilescope_report::units::{CycleRange, Cycles, ReplicaClassId};
use tilescope_report::{ReplicaClasses, ReportError, StepActivity};

/// The least difference from the median wait that is worth a mark, as a share of the run.
const LEAST_DIFFERENCE: f64 = 0.01;

/// The multiple of the median deviation from which a wait is an outlier.
const MOST_DEVIATIONS: f64 = 3.0;

/// The place of a replica's wait among those of all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaWaitRank {
    /// The replica with the median wait.
    Median,
    /// A wait near the median.
    Usual,
    /// A wait far from the median.
    Outlier,
}

/// The share of the run that replicas spend in syncs, mean over their IPUs. The replica that waits
/// least is the one that the others wait for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaWaits {
    /// The share of each class of replicas.
    by_class: Vec<f64>,
    /// The first replica with the median wait.
    median: u32,
    /// The smallest difference from the median that makes an outlier.
    least_difference: f64,
}

impl ReplicaWaits {
    /// Reads the waits of replicas that differ; `None` if they do not. O(lanes log steps).
    ///
    /// # Errors
    /// Parts of the trace that cannot be read.
    pub fn read(trace: &Trace, classes: &ReplicaClasses) -> Result<Option<Self>, ReportError> {
        if !classes.differ() {
            return Ok(None);
        }
        let run = trace.range();
        let mut by_class = Vec::with_capacity(classes.classes.len());
        for class in trace.classes() {
            by_class.push(wait_of(&class, run)?);
        }
        Ok(Self::of(by_class, classes))
    }

    fn of(by_class: Vec<f64>, classes: &ReplicaClasses) -> Option<Self> {
        let mut all: Vec<(f64, u32)> = Vec::new();
        for (wait, class) in by_class.iter().zip(&classes.classes) {
            all.extend(class.replicas.iter().map(|replica| (*wait, *replica)));
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let wait = all.get(all.len() / 2)?.0;
        let median = all.iter().find(|(of, _)| *of == wait)?.1;
        let mut deviations: Vec<f64> = all.iter().map(|(of, _)| (of - wait).abs()).collect();
        deviations.sort_by(f64::total_cmp);
        let usual = deviations.get(deviations.len() / 2)?;
        let least_difference = (MOST_DEVIATIONS * usual).max(LEAST_DIFFERENCE);
        Some(Self { by_class, median, least_difference })
    }

    /// The share of the run that a replica waits.
    pub fn share(&self, class: ReplicaClassId) -> f64 {
        self.by_class.get(class.index()).copied().unwrap_or(0.0)
    }

    /// The place of a replica's wait among those of all replicas.
    pub fn rank(&self, replica: u32, classes: &ReplicaClasses) -> ReplicaWaitRank {
        let median = self.share(classes.class_of(self.median));
        let difference = (self.share(classes.class_of(replica)) - median).abs();
        if replica == self.median {
            ReplicaWaitRank::Median
        } else if difference >= self.least_difference {
            ReplicaWaitRank::Outlier
        } else {
            ReplicaWaitRank::Usual
        }
    }
}

/// The mean share of the run that the compute tiles of a class of replicas spend in syncs.
fn wait_of(trace: &Trace, run: CycleRange) -> Result<f64, ReportError> {
    let mut waits = Cycles::ZERO;
    let mut lanes = 0.0;
    for info in trace.lanes().iter().filter(|info| info.sub_lane == 0) {
        if let Some(lane) = trace.lane_of(info.ipu, info.sub_lane) {
            waits = waits.saturating_add(lane.totals(run)?.cycles[StepActivity::Sync]);
            lanes += 1.0;
        }
    }
    Ok(waits.as_f64() / (run.length().as_f64() * lanes).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tilescope_report::ReplicaClass;

    fn ranks(waits: &[(f64, &[u32])]) -> Vec<ReplicaWaitRank> {
        let mut classes = Vec::new();
        for (_, replicas) in waits {
            classes.push(ReplicaClass { replicas: replicas.to_vec(), why: String::new() });
        }
        let classes = ReplicaClasses { classes, joins: BTreeSet::new() };
        let by_class = waits.iter().map(|(wait, _)| *wait).collect();
        let found = ReplicaWaits::of(by_class, &classes).unwrap();
        let count: usize = waits.iter().map(|(_, replicas)| replicas.len()).sum();
        (0..count as u32).map(|replica| found.rank(replica, &classes)).collect()
    }

    #[test]
    fn the_median_is_one_replica_and_outliers_wait_much_more_or_less() {
        use ReplicaWaitRank::{Median, Outlier, Usual};
        assert_eq!(
            ranks(&[(0.4, &[0, 1, 2]), (0.1, &[3]), (0.405, &[4])]),
            [Median, Usual, Usual, Outlier, Usual]
        );
        // Waits that all differ have none far from the others.
        let spread = ranks(&[(0.1, &[0]), (0.2, &[1]), (0.3, &[2]), (0.4, &[3]), (0.5, &[4])]);
        assert_eq!(spread, [Usual, Usual, Median, Usual, Usual]);
        assert_eq!(ranks(&[(0.3, &[0]), (0.9, &[1])])[1], Median);
    }
}
