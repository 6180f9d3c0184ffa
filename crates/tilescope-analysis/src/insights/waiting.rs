//! IPUs that wait for other IPUs.

use super::host_call::awaited_part;
use super::insight_facts::largest;
use super::{InsightFacts, InsightFinding, InsightRule, InsightSubject};
use crate::trace::RunShare;
use tilescope_report::units::IpuId;
use tilescope_report::{ProgramKind, ProgramNode};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "waiting",
    description: "IPUs that wait for other IPUs or the host",
    keys: &[],
    find,
};

/// Smaller shares are the cost of synchronous execution.
const MIN_SHARE: f64 = 0.1;

/// True if a program waits for other IPUs.
fn waits(program: &ProgramNode) -> bool {
    program.kind == ProgramKind::Sync
        && !program.is_internal_sync()
        && awaited_part(program).is_none()
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some(runs) = &facts.runs else { return Vec::new() };
    let external = facts.programs_that(waits);
    let ipus = runs.shares_by_ipu(|id| external.contains(&id));
    let most = largest(&ipus).filter(|(_, share)| share.value() >= MIN_SHARE);
    let Some((ipu, share)) = most else { return Vec::new() };
    let place = facts.longest_in_trace(ipu, waits);
    // The last IPU at a sync does not wait, so an IPU without waits counts as zero.
    let none = runs.whole().nothing();
    let all = (0..facts.target.ipus_per_replica).map(IpuId);
    let waits: Vec<(IpuId, RunShare)> =
        all.map(|ipu| (ipu, ipus.get(&ipu).copied().unwrap_or(none))).collect();
    let sum = ipus.values().fold(none, |sum, share| sum + *share);
    let mean = sum * (1.0 / waits.len().max(1) as f64);
    let least = waits.iter().min_by(|a, b| a.1.value().total_cmp(&b.1.value()));
    let last = least.filter(|(least, _)| *least != ipu);
    let last = last.map_or_else(String::new, |(last, share)| {
        format!(" IPU {last} spends least ({share}): the other IPUs wait for it.")
    });
    vec![InsightFinding {
        sentence: format!(
            "IPU {ipu} spends {share} of the run in external syncs (mean of all IPUs: \
             {mean}).{last}"
        ),
        advice: "IPUs wait if stages differ in length, while pipelines fill and drain, or if the \
                 host is late. See the other findings."
            .to_owned(),
        formula: "cycles of external syncs on an IPU / cycles of the run",
        place,
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
