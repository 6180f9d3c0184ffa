//! The arrows between slices: data that go from one IPU to another, and stream copies from their
//! handshake over the transfer to their end.

use std::collections::BTreeMap;
use std::ops::Range;
use tilescope_analysis::trace::{InterIpuTransfers, first_consumer};
use tilescope_report::trace::{LaneStep, TraceLane};
use tilescope_report::units::{IpuId, StepId};
use tilescope_report::{ProgramKind, ProgramNodeTable, ReportError};

/// Numbers of arrows at one slice.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SliceFlows {
    /// Arrows that begin here.
    pub(crate) starting: Vec<u64>,
    /// Arrows that pass through.
    pub(crate) passing: Vec<u64>,
    /// Arrows that end here.
    pub(crate) ending: Vec<u64>,
}

impl SliceFlows {
    fn clear(&mut self) {
        self.starting.clear();
        self.passing.clear();
        self.ending.clear();
    }
}

/// Facts that are the same for all lanes.
pub(crate) struct FlowFacts<'a> {
    pub(crate) programs: &'a ProgramNodeTable,
    pub(crate) transfers: &'a InterIpuTransfers,
    /// Returns true for IPUs whose lanes are written.
    pub(crate) has_ipu: &'a dyn Fn(IpuId) -> bool,
    pub(crate) ipus: u64,
    pub(crate) steps: u64,
}

/// Follows the steps of one lane.
pub(crate) struct LaneFlows<'a> {
    facts: &'a FlowFacts<'a>,
    lane: TraceLane<'a>,
    /// Positions of the steps that are written.
    selected: Range<u64>,
    /// Arrows that end at later steps, by position.
    arriving: BTreeMap<u64, Vec<u64>>,
    /// The stream copy in progress.
    copy: Option<StepId>,
    found: SliceFlows,
}

impl<'a> LaneFlows<'a> {
    pub(crate) fn new(facts: &'a FlowFacts<'a>, lane: TraceLane<'a>, selected: Range<u64>) -> Self {
        let arriving = BTreeMap::new();
        let copy = None;
        let found = SliceFlows::default();
        Self { facts, lane, selected, arriving, copy, found }
    }

    /// The arrows at the next step.
    pub(crate) fn at(&mut self, step: &LaneStep) -> Result<&SliceFlows, ReportError> {
        self.found.clear();
        match step.kind {
            ProgramKind::GlobalExchange => self.exchange(step)?,
            ProgramKind::StreamCopyBegin => {
                self.copy = Some(step.step);
                self.found.starting.push(self.copy_number(step.step));
            }
            ProgramKind::StreamCopyMid => {
                let number = self.copy.map(|copy| self.copy_number(copy));
                self.found.passing.extend(number);
            }
            ProgramKind::StreamCopyEnd => {
                let number = self.copy.take().map(|copy| self.copy_number(copy));
                self.found.ending.extend(number);
            }
            _ => {}
        }
        if !self.arriving.is_empty() {
            self.found.ending.extend(self.arriving.remove(&step.position).into_iter().flatten());
        }
        Ok(&self.found)
    }

    fn exchange(&mut self, step: &LaneStep) -> Result<(), ReportError> {
        let info = self.lane.info();
        let Some(program) = step.program else { return Ok(()) };
        let transfers = self.facts.transfers.transfers_of_program(program);
        if transfers.is_empty() || info.sub_lane > 0 {
            // Sender and receiver are not known, only that they take part in one step.
            let node = self.facts.programs.get(program);
            if node.is_some_and(|node| node.ipu.is_none()) {
                self.found.passing.push(self.number(step.step, 0));
            }
            return Ok(());
        }
        let is_written = |ipu: &IpuId| (self.facts.has_ipu)(*ipu);
        for link in transfers.iter().filter(|link| is_written(&link.from) && is_written(&link.to)) {
            let pair = 2 + u64::from(link.from.0) * self.facts.ipus + u64::from(link.to.0);
            let number = self.number(step.step, pair);
            if link.from == info.ipu {
                self.found.starting.push(number);
            }
            if link.to == info.ipu {
                let used = first_consumer(self.lane, step)?.map(|used| used.position);
                match used.filter(|used| self.selected.contains(used)) {
                    Some(used) => self.arriving.entry(used).or_default().push(number),
                    None => self.found.ending.push(number),
                }
            }
        }
        Ok(())
    }

    /// The number of the arrows of a stream copy on this lane.
    fn copy_number(&self, begin: StepId) -> u64 {
        let info = self.lane.info();
        let lane = u64::from(info.ipu.0) * 8 + u64::from(info.sub_lane);
        self.number(begin, 2 + self.facts.ipus * self.facts.ipus + lane)
    }

    /// A number unique to an arrow of the trace; `of` is 0 for all participants of a step.
    fn number(&self, step: StepId, of: u64) -> u64 {
        let class = u64::from(self.lane.info().class.0);
        // Pairs of IPUs, and lanes.
        let kinds = 2 + self.facts.ipus * (self.facts.ipus + 8);
        let numbered = class.wrapping_mul(kinds).wrapping_add(of);
        numbered.wrapping_mul(self.facts.steps.max(1)).wrapping_add(step.0).wrapping_add(1)
    }
}
