//! Time that some programs take, and what is gained if a change takes part of it away: what findings
//! about shares of the run have in common.

use super::{
    InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, Proposal, ViewLocation,
};
use crate::trace::RunShare;
use tilescope_report::ProgramNode;
use tilescope_report::units::IpuId;

/// Time that some programs take, of which a change can take a part away.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SavedTime {
    /// The IPU on which these programs take longest.
    pub(super) ipu: IpuId,
    /// The share of the run that they take there.
    pub(super) share: RunShare,
    /// The share of the run that is gained at most.
    gain: RunShare,
    place: ViewLocation,
}

/// What a finding says.
pub(super) struct FindingWords {
    pub(super) sentence: String,
    pub(super) advice: String,
    pub(super) formula: &'static str,
}

impl SavedTime {
    /// The time of the programs that `holds` is true of; none where nobody executes them, or `gain`
    /// is below `least`.
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

    /// The same for programs that are in no typical iteration, as those of weight updates: the trace
    /// shows all of the run.
    pub(super) fn anywhere(mut self) -> Self {
        self.place.cycles = None;
        self
    }

    /// The same of which the change at hand gains a part only.
    pub(super) fn in_part(mut self, part: f64) -> Self {
        self.gain = self.gain * part;
        self
    }

    /// The finding of a rule about it.
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
