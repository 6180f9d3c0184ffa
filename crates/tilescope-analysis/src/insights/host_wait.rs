//! IPUs that wait for the host to be ready.

use super::facts::activity;
use super::{Facts, Finding, Gain, Place, Rule, Subject};
use tilescope_report::units::percent;
use tilescope_report::{Activity, Program, ProgramKind};

pub(crate) const RULE: Rule = Rule {
    name: "host_wait",
    looks_for: "time spent waiting for the host (StreamCopyBegin)",
    find,
};

/// Smaller shares are the price of talking at all.
const WORTH: f64 = 0.02;

/// Whether a program waits for the host.
pub(crate) fn waits(program: &Program) -> bool {
    program.kind == ProgramKind::StreamCopyBegin && activity(program) == Activity::Host
}

fn find(facts: &Facts) -> Vec<Finding> {
    let Some((share, ipu)) = facts.busiest_share(waits).filter(|(share, _)| *share >= WORTH) else {
        return Vec::new();
    };
    vec![Finding {
        rule: RULE.name,
        subject: Subject::Time,
        sentence: format!(
            "IPU {ipu} waits for the host in StreamCopyBegin for {} of the run.",
            percent(share)
        ),
        advice: "The host is not ready in time: prepare batches ahead, use more loader workers, \
                 or run more device iterations per call."
            .to_owned(),
        formula: "cycles of StreamCopyBegin with the host on that IPU / cycles of the run",
        gain: Gain::Time(share),
        place: Place {
            program: facts.longest(ipu, waits).map(|(program, _)| program),
            ..Place::view("execution-trace")
        },
    }]
}
