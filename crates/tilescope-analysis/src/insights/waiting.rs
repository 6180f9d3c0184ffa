//! IPUs that wait for other IPUs.

use super::host_call::awaited_part;
use super::{InsightFacts, InsightFinding, InsightRule, InsightSubject};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tilescope_report::units::{Cycles, IpuId, ProgramId, percent};
use tilescope_report::{ProgramKind, ProgramNode};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "waiting",
    description: "IPUs that wait for other IPUs or the host",
    keys: &[],
    find,
};

/// Less is the price of working in step.
const MIN_SHARE: f64 = 0.1;

/// Whether a program waits for other IPUs.
fn waits(program: &ProgramNode) -> bool {
    program.kind == ProgramKind::Sync
        && !program.is_internal_sync()
        && awaited_part(program).is_none()
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some(runs) = &facts.runs else { return Vec::new() };
    let external = |id: &ProgramId| facts.programs.get(*id).is_some_and(waits);
    let mut ipus: BTreeMap<IpuId, Cycles> = BTreeMap::new();
    for ((ipu, ..), of) in runs.steps.iter().filter(|((_, id, _), _)| external(id)) {
        *ipus.entry(*ipu).or_default() += of.cycles;
    }
    let most = ipus.iter().max_by_key(|(ipu, cycles)| (**cycles, Reverse(**ipu)));
    let Some((ipu, cycles)) = most.filter(|(_, cycles)| facts.share(**cycles) >= MIN_SHARE) else {
        return Vec::new();
    };
    let share = facts.share(*cycles);
    let place = facts.longest_in_trace(*ipu, waits);
    let mean =
        ipus.values().sum::<Cycles>().as_f64() / f64::from(facts.target.ipus_per_replica.max(1));
    // Whoever comes to a sync last does not wait: an IPU without any counts as none.
    let all = (0..facts.target.ipus_per_replica).map(IpuId);
    let waits = all.map(|ipu| (ipus.get(&ipu).copied().unwrap_or(Cycles::ZERO), ipu));
    let least = waits.min().filter(|(_, least)| least != ipu);
    let last = least.map_or_else(String::new, |(cycles, last)| {
        let share = percent(facts.share(cycles));
        format!(" IPU {last} waits least, for {share}: it is the one that others wait for.")
    });
    vec![InsightFinding {
        sentence: format!(
            "IPU {ipu} waits in external syncs for {} of the run; all IPUs on average {}.{last}",
            percent(share),
            percent(facts.share(Cycles(mean as u64))),
        ),
        advice: "IPUs wait when stages differ, pipelines fill and drain, or the host is late: see \
             the other findings."
            .to_owned(),
        formula: "cycles of external syncs on an IPU / cycles of the run",
        place,
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
