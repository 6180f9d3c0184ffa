//! Insights: possible improvements of a program, ranked by their gain.
//!
//! Each rule is a file and a line in [`RULES`], or a row of `time_shares`: a pure function from the
//! [`InsightFacts`] of a report to findings. A finding is one sentence with the figure that proves
//! it, the upper bound of the gain, its derivation, and the location in a view. A rule that does
//! not apply, or whose facts were not recorded, returns no findings.

mod accumulation;
mod dithering;
mod exchange_code;
mod exported_form;
mod float32;
mod full_tiles;
mod host_call;
mod host_wait;
mod insight_facts;
mod low_balance;
mod memory_proportion;
mod micro_batch;
mod more_replicas;
mod offloading;
mod out_of_memory;
mod outlining;
mod peak;
mod proposal;
mod rearrangement;
mod recomputation;
mod replication;
mod run_chains;
mod saved_memory;
mod saved_time;
mod schedule;
mod sharded_optimizer;
mod smaller_micro_batch;
mod stage_balance;
mod strided_copies;
mod tensor_sharding;
mod tile_contents;
mod tile_memory_overview;
mod time_shares;
mod tried_proposals;
mod unmodelled;
mod unused_tiles;
mod update_schedule;
mod verdict;
mod waiting;
mod worst_tiles;

pub use insight_facts::{InsightFacts, PeakMemoryTile};
pub use more_replicas::{DIVIDED_REPLICAS, divided_replicas};
pub use proposal::{Proposal, SpecChanges};
pub use tile_memory_overview::{
    FullestTile, TileMemoryBin, TileMemoryOverview, tile_memory_overview,
};
pub use tried_proposals::{
    TRIED_FILE, TrialsSoFar, TriedFileError, TriedFinding, TriedFindings, TriedProposal,
    combination, insights_with_tried, sort_by_measured, with_tried, with_tried_so_far,
};

pub use verdict::InsightVerdict;

use crate::trace::RunShare;
use crate::view_location::ViewLocation;
use serde::{Deserialize, Serialize};
use tilescope_report::units::{Bytes, NumberFormat, percent};
use tilescope_report::{Report, ReportError};

/// The subject of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InsightSubject {
    /// Memory of the program, and the question whether it fits.
    Memory,
    /// Time of the run.
    #[default]
    Time,
}

/// Upper bound of the gain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "of", content = "share")]
pub enum InsightGain {
    /// The program cannot run without the change.
    Everything,
    /// A share of the run's time.
    Time(RunShare),
    /// A share of the memory of the tiles in question.
    Memory(f64),
    /// A gain that cannot be quantified.
    Unknown,
}

impl InsightGain {
    /// Creates a gain of a share of the time; unknown if nothing was executed.
    pub(crate) fn of_time(share: Option<RunShare>) -> Self {
        share.map_or(Self::Unknown, Self::Time)
    }

    /// The gain as a share of time or memory; `None` if it is not a number.
    pub fn share(self) -> Option<f64> {
        match self {
            Self::Time(share) => Some(share.value()),
            Self::Memory(share) => Some(share),
            Self::Everything | Self::Unknown => None,
        }
    }

    /// The rank of the gain; larger is more important. Gains of memory are weighted by the fullness
    /// of the fullest tile: with plenty of free memory they are worth nothing.
    pub(crate) fn rank(self, fullness: f64) -> f64 {
        match self {
            Self::Everything => f64::INFINITY,
            Self::Time(share) => share.value(),
            Self::Memory(share) => share * fullness.clamp(0.0, 1.0),
            Self::Unknown => 0.0,
        }
    }

    /// The gain as text: `up to 12.3 % of the time`.
    pub fn text(self) -> String {
        match self {
            Self::Everything => "makes it run".to_owned(),
            Self::Time(share) => format!("up to {share} of the time"),
            Self::Memory(share) => format!("up to {} of the memory", percent(share)),
            Self::Unknown => "not estimated".to_owned(),
        }
    }
}

/// A finding of one rule: the problem, the advice and the possible gain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InsightFinding {
    /// Name of the rule.
    pub rule: &'static str,
    pub subject: InsightSubject,
    /// One sentence with the figure that proves it.
    pub sentence: String,
    pub advice: String,
    /// The formula of its figures.
    pub formula: &'static str,
    pub gain: InsightGain,
    /// The change, if keys of the spec can make it.
    #[serde(flatten)]
    pub proposal: Option<Proposal>,
    /// The outcome of a trial of the proposal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<TriedProposal>,
    pub place: ViewLocation,
}

impl InsightFinding {
    /// Creates a finding of `rule` with empty texts, no proposal and an unknown gain.
    fn about(subject: InsightSubject, rule: &InsightRule) -> Self {
        Self {
            rule: rule.name,
            subject,
            sentence: String::new(),
            advice: String::new(),
            formula: "",
            gain: InsightGain::Unknown,
            proposal: None,
            measured: None,
            place: ViewLocation::default(),
        }
    }
}

/// A rule that looks for one kind of finding.
pub struct InsightRule {
    /// Short key: `out_of_memory`.
    pub name: &'static str,
    /// The problem as text.
    pub description: &'static str,
    /// Keys of a spec that its proposals may set; empty for rules without proposals.
    pub keys: &'static [&'static str],
    pub find: fn(&InsightFacts) -> Vec<InsightFinding>,
}

/// All rules, in the order of evaluation.
pub static RULES: &[InsightRule] = &[
    out_of_memory::RULE,
    full_tiles::RULE,
    peak::RULE,
    worst_tiles::RULE,
    offloading::RULE,
    tensor_sharding::RULE,
    smaller_micro_batch::RULE,
    memory_proportion::RULE,
    dithering::RULE,
    outlining::RULE,
    schedule::RULE,
    stage_balance::RULE,
    more_replicas::RULE,
    accumulation::RULE,
    host_call::RULE,
    time_shares::OVERLAP_IO,
    host_wait::RULE,
    time_shares::INPUT_TYPE,
    time_shares::OUTPUT_MODE,
    time_shares::SYNC_PATTERN,
    update_schedule::RULE,
    sharded_optimizer::RULE,
    time_shares::COLLECTIVES,
    time_shares::RECOMPUTED_PASSES,
    micro_batch::RULE,
    time_shares::PRECISION,
    time_shares::PARTIALS,
    time_shares::REMOTE_BUFFERS,
    rearrangement::RULE,
    strided_copies::RULE,
    exchange_code::RULE,
    low_balance::RULE,
    float32::RULE,
    replication::RULE,
    unused_tiles::RULE,
    recomputation::RULE,
    waiting::RULE,
    exported_form::RULE,
    unmodelled::RULE,
];

/// All findings of all rules, the most important first, with figures in the format `numbers`.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn insights(
    report: &Report,
    numbers: NumberFormat,
) -> Result<Vec<InsightFinding>, ReportError> {
    let facts = InsightFacts::gather(report, numbers)?;
    Ok(ranked(&facts))
}

/// All findings about some facts: those on the main question of the program first
/// ([`InsightVerdict`]), and among these the most important first; equal findings keep the order of
/// their rules.
pub fn ranked(facts: &InsightFacts) -> Vec<InsightFinding> {
    let mut found: Vec<InsightFinding> = RULES.iter().flat_map(|rule| (rule.find)(facts)).collect();
    merge_duplicates(&mut found);
    let most = facts.fullest(1).first().map_or(Bytes::ZERO, |(_, bytes)| *bytes);
    let fullness = most.as_f64() / facts.target.bytes_per_tile.0.max(1) as f64;
    let first = verdict::first_subject(facts.outcome);
    found.sort_by(|a, b| {
        // Findings that prevent execution come first, even if the file contains a run.
        let is_aside = |finding: &InsightFinding| {
            finding.subject != first && finding.gain != InsightGain::Everything
        };
        let order = b.gain.rank(fullness).total_cmp(&a.gain.rank(fullness));
        is_aside(a).cmp(&is_aside(b)).then(order)
    });
    found
}

/// Removes findings about memory with the same proposal as a finding about time: one trial answers
/// both.
fn merge_duplicates(found: &mut Vec<InsightFinding>) {
    let changes = |finding: &InsightFinding| {
        finding.proposal.as_ref().map(|proposal| proposal.changes.clone())
    };
    let about_time = found.iter().filter(|finding| finding.subject == InsightSubject::Time);
    let about_time: Vec<SpecChanges> = about_time.filter_map(changes).collect();
    let is_new = |finding: &InsightFinding| {
        changes(finding).is_none_or(|changes| !about_time.contains(&changes))
    };
    found.retain(|finding| finding.subject == InsightSubject::Time || is_new(finding));
}

/// `1 tile`, `7 tiles`
fn pluralised(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", tilescope_report::units::grouped(count))
}
