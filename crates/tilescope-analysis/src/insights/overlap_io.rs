//! Host copies that could go on beside compute.

use super::insight_facts::activity;
use super::saved_time::{FindingWords, SavedTime};
use super::{InsightFacts, InsightFinding, InsightRule};
use serde_json::json;
use tilescope_report::units::percent;
use tilescope_report::{ProgramKind, ProgramNode, StepActivity};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "overlap_io",
    description: "copies from and to the host that compute waits for",
    keys: &["options.num_io_tiles", "options.overlap_io"],
    find,
};

/// Smaller shares need no I/O tiles.
const MIN_SHARE: f64 = 0.02;

/// I/O tiles that are proposed: as many as the guides begin with.
const IO_TILES: u64 = 32;

/// Whether a program is a part of a copy from or to the host.
pub(super) fn copies(program: &ProgramNode) -> bool {
    use ProgramKind::{StreamCopyBegin, StreamCopyEnd, StreamCopyMid};
    matches!(program.kind, StreamCopyBegin | StreamCopyMid | StreamCopyEnd)
        && activity(program) == StepActivity::Host
}

/// Whether copies can go on beside compute: on one IPU, or in a grouped pipeline.
fn can_overlap(facts: &InsightFacts) -> bool {
    let grouped = facts.spec("options.pipeline_schedule") == Some("grouped");
    let pipelined = facts.spec("options.execution") == Some("pipelined");
    facts.target.ipus_per_replica == 1 || (grouped && pipelined)
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let micro_batches = facts.batching.map_or(1, |batching| {
        batching.gradient_accumulation.saturating_mul(batching.device_iterations)
    });
    let has_io_tiles = facts.target.io_tiles_per_ipu > 0;
    if !can_overlap(facts) || micro_batches < 2 || has_io_tiles {
        return Vec::new();
    }
    // The first micro-batch has nothing to be copied beside, and a host that is late stays so.
    let share = (micro_batches - 1) as f64 / micro_batches as f64;
    let chains = facts.chains.as_ref();
    let gain = chains.map(|chains| {
        chains.gain(&facts.programs, |part| match part.program {
            program if is_external(program) => share * part.cycles.as_f64(),
            program if copies(program) => share * (part.cycles - chains.waiting(part)).as_f64(),
            _ => 0.0,
        })
    });
    let saved = SavedTime::of(facts, gain, MIN_SHARE, copies);
    let Some(saved) = saved.filter(|saved| saved.share >= MIN_SHARE) else { return Vec::new() };
    let words = FindingWords {
        sentence: format!(
            "IPU {} copies from and to the host for {} of the run, and computes nothing \
             meanwhile.",
            saved.ipu,
            percent(saved.share)
        ),
        advice: "With I/O tiles and overlap, copies of the next micro-batch go on beside compute."
            .to_owned(),
        formula: "run without copies with the host and the syncs before them: what is left of the \
                  critical path, and of the IPU that works longest",
    };
    let proposal = facts.proposal(
        [("options.num_io_tiles", json!(IO_TILES)), ("options.overlap_io", json!("loops"))],
        "32 tiles of each IPU compute no more, and hold a micro-batch ahead",
    );
    vec![saved.finding(&RULE, words, proposal)]
}

/// Whether a program is a sync with the host or between IPUs.
pub(super) fn is_external(program: &ProgramNode) -> bool {
    program.is_external_sync()
}
