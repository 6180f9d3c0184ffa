//! Time of some programs, and the gain if a change removes a part of it: the common part of
//! findings about shares of the run.

use super::{
    InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, Proposal, ViewLocation,
};
use crate::trace::RunShare;
use tilescope_report::ProgramNode;
use tilescope_report::units::IpuId;

/// Time of some programs that a change can partly save.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SavedTime {
    /// The IPU with the longest time of these programs.
    pub(super) ipu: IpuId,
    /// Their share of the run on that IPU.
    pub(super) share: RunShare,
    /// The largest possible gain, as a share of the run.
    gain: RunShare,
    place: ViewLocation,
}

/// The texts of a finding.
pub(super) struct FindingWords {
    pub(super) sentence: String,
    pub(super) advice: String,
    pub(super) formula: &'static str,
}

impl SavedTime {
    /// The time of the programs that satisfy `holds`; `None` if they are not executed, or `gain` is
    /// below `least`.
    pub(super) fn of(
        facts: &InsightFacts,
        gain: Option<RunShare>,
        least: f64,
        holds: impl Fn(&ProgramNode) -> bool,
    ) -> Option<Self> {
        let gain = gain.filter(|gain| gain.value() >= least)?;
        let (share, ipu) = facts.busiest_share(&holds)?;
        Some(Self { ipu, share, gain, place: facts.longest_in_trace(ipu, holds) })
    }

    /// The same for programs outside a typical iteration, such as those of weight updates: the
    /// location is the whole run.
    pub(super) fn anywhere(mut self) -> Self {
        self.place.cycles = None;
        self
    }

    /// The same for a change that gains only a part of it.
    pub(super) fn in_part(mut self, part: f64) -> Self {
        self.gain = self.gain * part;
        self
    }

    /// Creates the finding of a rule.
    pub(super) fn finding(
        self,
        rule: &InsightRule,
        words: FindingWords,
        proposal: Option<Proposal>,
    ) -> InsightFinding {
        InsightFinding {
            sentence: words.sentence,
            advice: words.advice,
            formula: words.formula,
            gain: InsightGain::Time(self.gain),
            proposal,
            place: self.place,
            ..InsightFinding::about(InsightSubject::Time, rule)
        }
    }
}
