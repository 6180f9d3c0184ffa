//! Trials of proposals: the measured gain of each, stored beside the report.

use super::{
    InsightFinding, InsightGain, InsightSubject, Proposal, SpecChanges, ViewLocation, insights,
};
use crate::confidence::ChangeBand;
use serde::{Deserialize, Serialize};
use tilescope_report::units::{NumberFormat, percent};
use tilescope_report::{Report, ReportError};

/// Name of the file beside `profile.pop`.
pub const TRIED_FILE: &str = "tilescope-tried.json";

/// Version of the file; files of other versions are ignored.
const FORMAT: u32 = 1;

/// The rule name of several proposals together.
const COMBINATION: &str = "combination";

/// The outcome of a trial: the spec was simulated with and without the proposal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum TriedProposal {
    /// Both simulations ran.
    Ran {
        /// Change of the time of a sample, as a share: below 0 if it is faster.
        time: f64,
        /// The same for the memory of the fullest tile.
        memory: f64,
        /// The 90 % interval of the change of time; `None` if errors are not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interval: Option<ChangeBand>,
    },
    /// The program fits in memory only with the proposal.
    NowFits { memory: f64 },
    /// The program does not fit in memory; the share is the growth of the fullest tile.
    DoesNotFit { memory: f64 },
    /// The changed spec is invalid.
    Refused { problem: String },
    /// The simulation did not end normally.
    Died { problem: String },
}

impl TriedProposal {
    /// Smaller gains do not count: a run varies by as much with its length.
    pub const LEAST_GAIN: f64 = 0.005;

    /// The gain in time of a sample, or in memory of the fullest tile; `None` if there is none.
    pub fn gain(&self, subject: InsightSubject) -> Option<f64> {
        if let Self::NowFits { .. } = self {
            return Some(1.0);
        }
        self.saved(subject).filter(|saved| *saved >= Self::LEAST_GAIN)
    }

    /// The measured saving of time of a sample, or of memory of the fullest tile, below 0 for a
    /// loss; `None` if it is not a number.
    pub fn saved(&self, subject: InsightSubject) -> Option<f64> {
        match (self, subject) {
            (Self::Ran { time, .. }, InsightSubject::Time) => Some(-time),
            // A program that fitted before but does not fit now has grown, so one that shrinks did
            // not fit before either.
            (Self::Ran { memory, .. } | Self::DoesNotFit { memory }, InsightSubject::Memory) => {
                Some(-memory)
            }
            _ => None,
        }
    }

    /// The 90 % interval of [`TriedProposal::saved`], the smaller saving first; `None` if it is not
    /// known.
    pub fn saved_interval(&self, subject: InsightSubject) -> Option<(f64, f64)> {
        match (self, subject) {
            (Self::Ran { interval: Some(band), .. }, InsightSubject::Time) => {
                Some((-band.high, -band.low))
            }
            _ => None,
        }
    }

    /// The increase of the time of a sample, as a share, with a small minimum.
    fn price(&self) -> f64 {
        match self {
            Self::Ran { time, .. } => time.max(0.0) + Self::LEAST_GAIN,
            _ => Self::LEAST_GAIN,
        }
    }

    /// Returns true if a sample takes longer.
    pub fn loses_time(&self) -> bool {
        matches!(self, Self::Ran { time, .. } if *time >= Self::LEAST_GAIN)
    }

    /// `tried: -28.9 % time per sample, fullest tile +0.2 %`
    pub fn text(&self, subject: InsightSubject) -> String {
        let gain = if self.gain(subject).is_some() { "" } else { "no gain: " };
        match self {
            Self::Ran { time, memory, interval } => {
                let interval = interval.map_or_else(String::new, |band| {
                    let low = signed_percent(band.low);
                    let high = signed_percent(band.high);
                    format!(" (90 % interval {low} to {high})")
                });
                let time = format!("{} time per sample{interval}", signed_percent(*time));
                let memory = format!("fullest tile {}", signed_percent(*memory));
                match subject {
                    InsightSubject::Time => format!("tested: {gain}{time}, {memory}"),
                    InsightSubject::Memory => format!("tested: {gain}{memory}, {time}"),
                }
            }
            Self::NowFits { memory } => {
                format!("tested: makes it fit, fullest tile {}", signed_percent(*memory))
            }
            Self::DoesNotFit { memory } if self.gain(subject).is_some() => {
                format!(
                    "tested: fullest tile {}, still does not fit in memory",
                    signed_percent(*memory)
                )
            }
            Self::DoesNotFit { memory } => {
                format!("tested: does not fit in memory, fullest tile {}", signed_percent(*memory))
            }
            Self::Refused { problem } => format!("tested: refused: {problem}"),
            Self::Died { problem } => format!("test failed: {problem}"),
        }
    }
}

/// A change with its sign: `-28.9 %`.
fn signed_percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

/// A finding with a trial of its proposal, as printed by `tilescope insights --prove --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedFinding {
    pub rule: String,
    /// The intended gain.
    #[serde(default)]
    pub subject: InsightSubject,
    pub sentence: String,
    pub changes: SpecChanges,
    pub cost: String,
    pub measured: TriedProposal,
}

/// The trials that have ended while others run: a line of `tilescope insights --prove` for the
/// window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialsSoFar {
    pub tried: Vec<TriedFinding>,
    /// The number of proposals to try, combinations excepted.
    pub all: usize,
}

impl TrialsSoFar {
    /// The ended trials among findings.
    pub fn of(found: &[InsightFinding]) -> Self {
        let all = found.iter().filter(|finding| finding.proposal.is_some()).count();
        Self { tried: TriedFindings::of("", found).tried, all }
    }
}

/// Trials with the spec of a report. They hold only for this spec and this version of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedFindings {
    format: u32,
    program: String,
    spec: String,
    pub tried: Vec<TriedFinding>,
}

/// The reason that a file of trials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TriedFileError {
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error("{TRIED_FILE} cannot be read: {0}")]
    Json(#[from] serde_json::Error),
}

impl TriedFindings {
    /// The trials among the findings about a report with this spec.
    pub fn of(spec: &str, found: &[InsightFinding]) -> Self {
        let tried = |finding: &InsightFinding| {
            let proposal = finding.proposal.clone()?;
            Some(TriedFinding {
                rule: finding.rule.to_owned(),
                subject: finding.subject,
                sentence: finding.sentence.clone(),
                changes: proposal.changes,
                cost: proposal.cost,
                measured: finding.measured.clone()?,
            })
        };
        let program = env!("CARGO_PKG_VERSION").to_owned();
        let tried = found.iter().filter_map(tried).collect();
        Self { format: FORMAT, program, spec: spec.to_owned(), tried }
    }

    /// Reads the trials for a report, if there are any that hold.
    ///
    /// # Errors
    /// A file that cannot be read or parsed.
    pub fn read(report: &Report) -> Result<Option<Self>, TriedFileError> {
        let Some(text) = report.sidecar_text(TRIED_FILE)? else { return Ok(None) };
        let found: Self = serde_json::from_str(&text)?;
        let is_of_report = found.format == FORMAT
            && found.program == env!("CARGO_PKG_VERSION")
            && report.spec() == Some(found.spec.as_str());
        Ok(is_of_report.then_some(found))
    }
}

/// All findings about a report with the results of earlier trials, and the error if a file of
/// trials cannot be read.
///
/// # Errors
/// Parts of the report that cannot be read.
pub fn insights_with_tried(
    report: &Report,
    numbers: NumberFormat,
) -> Result<(Vec<InsightFinding>, Option<TriedFileError>), ReportError> {
    let (tried, problem) = match TriedFindings::read(report) {
        Ok(kept) => (kept.map_or_else(Vec::new, |kept| kept.tried), None),
        Err(error) => (Vec::new(), Some(error)),
    };
    Ok((with_tried(insights(report, numbers)?, &tried), problem))
}

/// Findings with the results of trials that have ended while others run, in their given order: they
/// stay where users read them.
pub fn with_tried_so_far(
    found: Vec<InsightFinding>,
    tried: &[TriedFinding],
) -> Vec<InsightFinding> {
    let mut found = found;
    for finding in &mut found {
        let changes = finding.proposal.as_ref().map(|proposal| &proposal.changes);
        let own = tried.iter().find(|of| of.rule == finding.rule && Some(&of.changes) == changes);
        finding.measured = own.map(|of| of.measured.clone());
    }
    found
}

/// Findings with the results of trials, in the order of [`sort_by_measured`]; tried combinations
/// come first.
pub fn with_tried(found: Vec<InsightFinding>, tried: &[TriedFinding]) -> Vec<InsightFinding> {
    let mut found = with_tried_so_far(found, tried);
    sort_by_measured(&mut found);
    let together = tried.iter().filter(|of| of.rule == COMBINATION).map(|of| {
        let proposal = Proposal { changes: of.changes.clone(), cost: of.cost.clone() };
        let measured = Some(of.measured.clone());
        InsightFinding { measured, ..combination(of.subject, of.sentence.clone(), proposal) }
    });
    together.chain(found).collect()
}

/// Sorts findings by their measured results. Changes that make the program fit come first. Findings
/// on the main question of the program follow: the largest gains first, then those without a trial
/// in their given order. Next come the other findings in the same order, about memory if the
/// program fits and about time if it does not, and last all trials without a gain. Gains of memory
/// are ranked relative to the time that they cost.
pub fn sort_by_measured(found: &mut [InsightFinding]) {
    let is_out_of_memory = found.iter().any(|finding| finding.gain == InsightGain::Everything);
    let first = if is_out_of_memory { InsightSubject::Memory } else { InsightSubject::Time };
    let place = |finding: &InsightFinding| {
        let aside = if finding.subject == first { 0 } else { 2 };
        match (&finding.measured, finding.measured_gain()) {
            (Some(TriedProposal::NowFits { memory }), _) => (0, *memory),
            (Some(tried), Some(gain)) => (1 + aside, -gain / tried.price()),
            (None, _) => (2 + aside, 0.0),
            (Some(_), None) => (5, 0.0),
        }
    };
    found.sort_by(|a, b| {
        let a = place(a);
        let b = place(b);
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
}

/// Creates a finding of several proposals together.
pub fn combination(
    subject: InsightSubject,
    sentence: String,
    proposal: Proposal,
) -> InsightFinding {
    InsightFinding {
        rule: COMBINATION,
        subject,
        sentence,
        advice: "Change all of these keys together.".to_owned(),
        formula: "simulated with all changes applied",
        gain: InsightGain::Unknown,
        proposal: Some(proposal),
        measured: None,
        place: ViewLocation::view("summary"),
    }
}

impl InsightFinding {
    /// The measured gain of a trial, as a share of the time of a sample or of the memory of the
    /// fullest tile, depending on the subject; `None` without a gain or a trial.
    pub fn measured_gain(&self) -> Option<f64> {
        self.measured.as_ref()?.gain(self.subject)
    }

    /// Returns true if a trial of the proposal had a gain and cost no time.
    pub fn is_plain_gain(&self) -> bool {
        let lost = self.measured.as_ref().is_some_and(TriedProposal::loses_time);
        self.measured_gain().is_some() && !lost
    }

    /// The possible gain as text, or the measured one if none was estimated: `up to 12.3 % of the
    /// time`.
    pub fn gain_text(&self) -> String {
        let of = match self.subject {
            InsightSubject::Time => "time",
            InsightSubject::Memory => "memory",
        };
        match (&self.measured, self.measured_gain()) {
            _ if self.gain != InsightGain::Unknown => self.gain.text(),
            (Some(TriedProposal::NowFits { .. }), _) => InsightGain::Everything.text(),
            (_, Some(gain)) => format!("{} of the {of}", percent(gain)),
            _ => self.gain.text(),
        }
    }

    /// Returns true if a trial of the proposal had no gain.
    pub fn had_no_gain(&self) -> bool {
        self.measured.as_ref().is_some_and(|tried| tried.gain(self.subject).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn finding(key: &str, measured: Option<TriedProposal>) -> InsightFinding {
        let changes = SpecChanges::from([(key.to_owned(), json!(1))]);
        let proposal = Proposal { changes, cost: "nothing".to_owned() };
        let made = combination(InsightSubject::Time, key.to_owned(), proposal);
        InsightFinding { rule: "rule", measured, ..made }
    }

    fn ran(time: f64) -> Option<TriedProposal> {
        Some(TriedProposal::Ran { time, memory: 0.0, interval: None })
    }

    /// Stored findings are unchanged when they are read again.
    #[test]
    fn stored_trials_are_read_again() {
        let together = InsightFinding {
            measured: ran(-0.5),
            ..combination(InsightSubject::Time, "both".into(), {
                Proposal { changes: SpecChanges::new(), cost: String::new() }
            })
        };
        let found = [
            together,
            finding("large", ran(-0.3)),
            finding("small", ran(-0.1)),
            finding("untried", None),
            finding("vain", ran(0.1)),
        ];
        let kept = serde_json::to_string(&TriedFindings::of("spec", &found)).expect("JSON");
        let kept: TriedFindings = serde_json::from_str(&kept).expect("the same");
        assert_eq!(kept, TriedFindings::of("spec", &found));
        let mut untried: Vec<InsightFinding> = found[1..].to_vec();
        untried.reverse();
        for finding in &mut untried {
            finding.measured = None;
        }
        assert_eq!(with_tried(untried, &kept.tried), found);
    }

    fn sentences(found: &[InsightFinding]) -> Vec<&str> {
        found.iter().map(|finding| finding.sentence.as_str()).collect()
    }

    /// While trials run, findings stay in their order; afterwards the largest gain is first.
    #[test]
    fn findings_keep_their_order_until_all_trials_have_ended() {
        let untried = vec![finding("small", None), finding("large", None)];
        let tried = [finding("small", ran(-0.1)), finding("large", ran(-0.3))];
        let tried = TriedFindings::of("spec", &tried).tried;
        let while_trials_run = with_tried_so_far(untried.clone(), &tried);
        assert_eq!(sentences(&while_trials_run), ["small", "large"]);
        assert_eq!(sentences(&with_tried(untried, &tried)), ["large", "small"]);
    }

    /// The interval of a gain is that of the time, with the signs of a gain.
    #[test]
    fn intervals_of_time_are_those_of_gains_in_time() {
        use InsightSubject::{Memory, Time};
        let interval = Some(ChangeBand { low: -0.3, high: -0.1 });
        let tried = TriedProposal::Ran { time: -0.2, memory: 0.0, interval };
        assert_eq!(
            (tried.saved_interval(Time), tried.saved_interval(Memory)),
            (Some((0.1, 0.3)), None)
        );
        let words = "tested: -20.0 % time per sample (90 % interval -30.0 % to -10.0 %), \
                     fullest tile +0.0 %";
        assert_eq!(tried.text(Time), words);
    }

    /// Findings about memory are judged by memory, including whether the program fits.
    #[test]
    fn findings_about_memory_are_judged_by_memory() {
        use InsightSubject::{Memory, Time};
        let ran = TriedProposal::Ran { time: 0.5, memory: -0.25, interval: None };
        assert_eq!((ran.gain(Time), ran.gain(Memory)), (None, Some(0.25)));
        assert_eq!(ran.text(Memory), "tested: fullest tile -25.0 %, +50.0 % time per sample");
        let smaller = TriedProposal::DoesNotFit { memory: -0.25 };
        assert_eq!((smaller.gain(Time), smaller.gain(Memory)), (None, Some(0.25)));
        assert!(smaller.text(Memory).ends_with("still does not fit in memory"));
        let larger = TriedProposal::DoesNotFit { memory: 0.25 };
        assert_eq!(larger.gain(Memory), None);
        let fits = TriedProposal::NowFits { memory: -0.1 };
        assert_eq!(fits.gain(Memory), Some(1.0));
        assert!(fits.text(Memory).contains("makes it fit"));
    }
}
