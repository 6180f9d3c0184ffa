//! Time spent on changes of layout.

use super::insight_facts::largest;
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::label_conventions::rearranges;
use crate::trace::RunShare;
use std::collections::BTreeMap;
use tilescope_report::units::{IpuId, OperationId, percent};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "rearrangement",
    description: "time spent changing layouts",
    keys: &[],
    find,
};

/// Smaller shares are the usual cost of different plans.
const MIN_SHARE: f64 = 0.03;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let found = facts.busiest_share(|program| rearranges(&program.name));
    let Some((share, ipu)) = found.filter(|(share, _)| share.value() >= MIN_SHARE) else {
        return Vec::new();
    };
    let (operation, of_it) = worst_operation(facts, ipu);
    let name = operation.and_then(|id| facts.operations.get(id.index()));
    let most = name.map_or_else(String::new, |operation| {
        format!("; {} takes the most ({} of it)", operation.name, percent(of_it))
    });
    vec![InsightFinding {
        sentence: format!("IPU {ipu} spends {share} of the run rearranging data{most}."),
        advice: "Operands do not have the layout that the plan needs. Reorder dimensions in the \
                 model, or choose sizes that are multiples of 16 and 8."
            .to_owned(),
        formula: "cycles of steps named PreArrange, OnTileCopy, Transpose, regroup or rearranged, \
                  with their exchanges, on that IPU / cycles of the run",
        gain: InsightGain::of_time(facts.gain_of(1.0, |program| rearranges(&program.name))),
        place: ViewLocation { operation, ..ViewLocation::view("operations") },
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}

/// The operation with the most cycles of rearrangement on an IPU, and its share of all such cycles
/// there.
fn worst_operation(facts: &InsightFacts, ipu: IpuId) -> (Option<OperationId>, f64) {
    let Some(runs) = &facts.runs else { return (None, 0.0) };
    let none = runs.whole().nothing();
    let mut sums: BTreeMap<OperationId, RunShare> = BTreeMap::new();
    let mut all = none;
    let rearranging = facts.programs_that(|program| rearranges(&program.name));
    let own = runs.shares().filter(|of| of.ipu == ipu && rearranging.contains(&of.program));
    for of in own {
        all = all + of.share;
        if let Some(operation) = facts.programs.get(of.program).and_then(|own| own.operation) {
            let sum = sums.entry(operation).or_insert(none);
            *sum = *sum + of.share;
        }
    }
    match largest(&sums) {
        Some((id, share)) => (Some(id), share.times(all)),
        None => (None, 0.0),
    }
}
