//! Operators of an imported model that are not modelled.

use super::{InsightFacts, InsightFinding, InsightRule, InsightSubject, ViewLocation};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "unmodelled",
    description: "operators of an imported model that are not modelled",
    keys: &[],
    find,
};

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some(words) = &facts.unmodelled else { return Vec::new() };
    vec![InsightFinding {
        sentence: format!("{words}."),
        advice: "Each is estimated as one pass over its operands, which is a lower bound. Export \
                 the model with standard operators instead, or read these figures as a lower bound."
            .to_owned(),
        formula: "cycles of their steps / cycles of all steps except syncs, over all IPUs; bytes \
        of their variables / bytes of all variables, regardless of lifetimes",
        place: ViewLocation::view("operations"),
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
