//! Time that goes to remote buffers.

use super::facts::activity;
use super::{Facts, Finding, Gain, Place, Rule, Subject};
use tilescope_report::units::percent;
use tilescope_report::{Activity, Program};

pub(crate) const RULE: Rule =
    Rule { name: "remote_buffers", looks_for: "time spent on remote buffers", find };

/// Smaller shares are well spent.
const WORTH: f64 = 0.02;

fn remote(program: &Program) -> bool {
    activity(program) == Activity::RemoteBuffer
}

fn find(facts: &Facts) -> Vec<Finding> {
    let Some((share, ipu)) = facts.busiest_share(remote).filter(|(share, _)| *share >= WORTH)
    else {
        return Vec::new();
    };
    vec![Finding {
        rule: RULE.name,
        subject: Subject::Time,
        sentence: format!(
            "IPU {ipu} reads and writes remote buffers for {} of the run.",
            percent(share)
        ),
        advice: "Keep what fits on the IPU, offload optimiser state only, or overlap the copies \
                 with I/O tiles."
            .to_owned(),
        formula: "cycles of stream copies with remote buffers on that IPU / cycles of the run",
        gain: Gain::Time(share),
        place: Place {
            program: facts.longest(ipu, remote).map(|(program, _)| program),
            ..Place::view("execution-trace")
        },
    }]
}
