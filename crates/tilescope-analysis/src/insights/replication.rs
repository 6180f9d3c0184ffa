//! The cost of replication per replica.

use super::{InsightFacts, InsightFinding, InsightRule, InsightSubject, ViewLocation};
use tilescope_report::units::{Bytes, percent};
use tilescope_report::{MemoryCategory, ProgramKind};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "replication",
    description: "the cost of replication per replica",
    keys: &[],
    find,
};

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let replicas = facts.target.replicas;
    if replicas < 2 {
        return Vec::new();
    }
    let code = facts.bytes_of(&[MemoryCategory::GlobalExchangeCode]);
    let share_of_code = code.as_f64() / (facts.used_bytes().max(Bytes(1))).as_f64();
    let exchange = facts.busiest_share(|program| program.kind == ProgramKind::GlobalExchange);
    let time = match exchange {
        Some((share, _)) => format!(", and exchange between IPUs {share} of the run"),
        None => String::new(),
    };
    vec![InsightFinding {
        sentence: format!(
            "With {replicas} replicas, global exchange code takes {} per replica ({} of the memory \
             in use){time}.",
            facts.numbers.bytes(code.0),
            percent(share_of_code),
        ),
        advice: match facts.spec("model.training") {
            Some("false") => "Inference needs no exchange between replicas.",
            _ => "With more gradient accumulation, replicas reduce gradients less often.",
        }
        .to_owned(),
        formula: "bytes of global exchange code of one replica; cycles of GlobalExchange on the IPU \
                  with most of them / cycles of the run",
        place: ViewLocation::view("exchange-code"),
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
