//! The replicas of a program: the IPUs that wait for each other, and the data they exchange.

use crate::host::{ReplicaWaitSummary, host};
use crate::label_conventions::collective;
use crate::replica_rings::{ReplicaLinkTotals, replica_links};
use crate::trace::program_runs;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_report::units::{Bytes, Cycles, IpuId};
use tilescope_report::{
    ProgramKind, ProgramNode, ReplicaClasses, ReplicaRing, Report, ReportError, ReportOrigin,
    SyncGroupMembers, Target,
};

/// The groups of GS2 in the smallest number of rows without overlap: a group extends from its first
/// to its last IPU.
pub fn gs2_rows(groups: &SyncGroupMembers) -> Vec<Vec<&[IpuId]>> {
    let mut rows: Vec<(Option<IpuId>, Vec<&[IpuId]>)> = Vec::new();
    for part in &groups.gs2 {
        let (Some(first), Some(last)) = (part.iter().min(), part.iter().max()) else {
            continue;
        };
        match rows.iter_mut().find(|(end, _)| end.is_none_or(|end| end < *first)) {
            Some((end, row)) => {
                *end = Some(*last);
                row.push(part);
            }
            None => rows.push((Some(*last), vec![part])),
        }
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Totals of all exchanges of a kind between replicas, for the IPUs of one replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectiveTotals {
    /// The kind: `reduceScatter`, `allGather`.
    pub kind: String,
    /// Number of programs that belong to such collectives.
    pub programs: u64,
    /// Their executions in the run, summed over the IPUs; `None` if nothing was executed.
    pub executions: u64,
    /// Cycles of these executions.
    pub cycles: Cycles,
    /// Bytes that they received and sent.
    pub bytes: Bytes,
}

/// The replicas of a program.
#[derive(Clone, Debug)]
pub struct ReplicaOverview {
    pub target: Arc<Target>,
    /// True if all replicas are equal, as in the simulator by default; otherwise only one of them
    /// was profiled, or `waits` states the differences.
    pub alike: bool,
    /// The classes of equal replicas, if replicas differ and have separate lanes.
    pub classes: ReplicaClasses,
    /// Number of host processes, which serve equal numbers of replicas; `None` if the report does
    /// not state it.
    pub instances: Option<u32>,
    /// Number of hosts, which run equal numbers of these processes.
    pub hosts: u32,
    /// The waits of replicas; empty if all are equal, or if they are not known.
    pub waits: Vec<ReplicaWaitSummary>,
    /// Sync groups; `None` if the report does not state them.
    pub groups: Option<SyncGroupMembers>,
    /// Totals by kind.
    pub collectives: Vec<CollectiveTotals>,
    /// The rings of replicas; empty if the report does not state them.
    pub rings: Vec<ReplicaRing>,
    /// The sent, received and forwarded data of each replica; empty if not known.
    pub links: Vec<ReplicaLinkTotals>,
}

/// Reads the known data about replicas.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn replicas(report: &Report) -> Result<ReplicaOverview, ReportError> {
    let target = report.target()?;
    let groups = report.sync_groups()?;
    let waits = host(report)?.map_or(Vec::new(), |host| host.replicas);
    let classes = report.replica_classes()?;
    let same = waits.is_empty() && !classes.differ();
    let alike = report.origin() == ReportOrigin::Tilescope && same;
    let collectives = collectives(report)?;
    let rings = report.replica_rings()?;
    let links = replica_links(report)?;
    let options: BTreeMap<String, String> = report.options()?.into_iter().collect();
    let instances: Option<u32> =
        options.get("options.num_instances").and_then(|count| count.parse().ok());
    let hosts: Option<u32> = options.get("options.num_hosts").and_then(|count| count.parse().ok());
    Ok(ReplicaOverview {
        groups,
        collectives,
        rings,
        links,
        alike,
        classes,
        instances: instances.filter(|count| *count > 0),
        hosts: hosts.unwrap_or(1),
        waits,
        target,
    })
}

fn collectives(report: &Report) -> Result<Vec<CollectiveTotals>, ReportError> {
    let programs = report.programs()?;
    let mut kinds: BTreeMap<&str, CollectiveTotals> = BTreeMap::new();
    for (_, program) in programs.iter() {
        if let Some(kind) = kind_of(program) {
            let new = || CollectiveTotals { kind: kind.to_owned(), ..CollectiveTotals::default() };
            kinds.entry(kind).or_insert_with(new).programs += 1;
        }
    }
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(trace) = report.trace()? {
        for ((_, id, _), run) in program_runs(&trace)?.steps {
            let kind = programs.get(id).and_then(kind_of);
            if let Some(totals) = kind.and_then(|kind| kinds.get_mut(kind)) {
                totals.executions += run.steps;
                totals.cycles = totals.cycles.saturating_add(run.cycles);
                totals.bytes += run.bytes;
            }
        }
    }
    Ok(kinds.into_values().collect())
}

/// The kind of collective that a program is a step of.
fn kind_of(program: &ProgramNode) -> Option<&str> {
    match program.kind {
        ProgramKind::GlobalExchange => collective(&program.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_groups_are_in_separate_rows() {
        let rows = |parts: &[&[u32]]| {
            let part = |ipus: &&[u32]| ipus.iter().copied().map(IpuId).collect::<Vec<_>>();
            let gs2 = parts.iter().map(part).collect();
            let members = SyncGroupMembers { gs1: Vec::new(), gs2 };
            gs2_rows(&members).iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(rows(&[&[0], &[1], &[2]]), [3], "each waits by itself");
        assert_eq!(rows(&[&[0, 2], &[1, 3]]), [1, 1], "two alternate");
        assert_eq!(rows(&[&[0, 1, 2, 3]]), [1]);
    }
}
