//! The replicas of a program: which of their IPUs wait for each other, and what they exchange.

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

/// The parts of GS2 in as few rows as show none of them beside another one's members: a part
/// reaches from its first to its last IPU.
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

/// All exchanges of a kind between replicas, as the IPUs of one of them see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectiveTotals {
    /// `reduceScatter`, `allGather`
    pub kind: String,
    /// Programs that are part of one.
    pub programs: u64,
    /// Executions of them in the run, over the IPUs; none where nothing was run.
    pub executions: u64,
    /// Cycles of these.
    pub cycles: Cycles,
    /// Bytes that they received and sent.
    pub bytes: Bytes,
}

/// The replicas of a program.
#[derive(Clone, Debug)]
pub struct ReplicaOverview {
    pub target: Arc<Target>,
    /// Whether all replicas do the same, as the simulator has it; else one of them was profiled, or
    /// `waits` says how they differ.
    pub alike: bool,
    /// Which of them are alike, where they differ and have lanes of their own.
    pub classes: ReplicaClasses,
    /// What the replicas wait for; empty where all are alike, and where nothing is known of it.
    pub waits: Vec<ReplicaWaitSummary>,
    /// None where the report does not say it.
    pub groups: Option<SyncGroupMembers>,
    /// By kind.
    pub collectives: Vec<CollectiveTotals>,
    /// How their data go round; empty where the report does not say it.
    pub rings: Vec<ReplicaRing>,
    /// What each replica sends, receives and passes on; empty where that is not known.
    pub links: Vec<ReplicaLinkTotals>,
}

/// Reads what is known of replicas.
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
    let (collectives, rings) = (collectives(report)?, report.replica_rings()?);
    let links = replica_links(report)?;
    Ok(ReplicaOverview { groups, collectives, rings, links, alike, classes, waits, target })
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
    fn parts_that_reach_over_each_other_stand_in_rows_of_their_own() {
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
