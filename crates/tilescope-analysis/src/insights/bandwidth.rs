//! Host copies that are bound by the link.

use super::insight_facts::activity;
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use tilescope_report::units::percent;
use tilescope_report::{ProgramKind, ProgramNode, StepActivity};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "bandwidth",
    description: "time spent moving data from and to the host (StreamCopyMid)",
    find,
};

/// Smaller shares need no I/O tiles.
const MIN_SHARE: f64 = 0.02;

fn moves(program: &ProgramNode) -> bool {
    program.kind == ProgramKind::StreamCopyMid && activity(program) == StepActivity::Host
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some((share, ipu)) = facts.busiest_share(moves).filter(|(share, _)| *share >= MIN_SHARE)
    else {
        return Vec::new();
    };
    let longest = facts.longest(ipu, moves).map(|(program, _)| program);
    let name = longest.map_or_else(String::new, |id| format!(", most of it {}", facts.name(id)));
    let overlap = match facts.target.io_tiles_per_ipu {
        0 => "set num_io_tiles to overlap copies with compute, or ",
        _ => "",
    };
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Time,
        sentence: format!(
            "IPU {ipu} moves data from and to the host for {} of the run{name}.",
            percent(share)
        ),
        advice: format!("The link is the limit: {overlap}send less, e.g. uint8 or half inputs."),
        formula: "cycles of StreamCopyMid with the host on that IPU / cycles of the run",
        gain: InsightGain::Time(share),
        place: ViewLocation {
            ipu: Some(ipu),
            program: longest,
            cycles: Some(facts.typical_window()),
            ..ViewLocation::view("execution-trace")
        },
    }]
}
