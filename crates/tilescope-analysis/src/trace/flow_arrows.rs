//! Data flow between IPUs: the step that sends data, and the next step that uses it.

use std::collections::BTreeMap;
use tilescope_report::trace::{LaneStep, Trace, TraceLane};
use tilescope_report::units::{Bytes, CycleRange, IpuId, ProgramId, StepId};
use tilescope_report::{ProgramKind, Report, ReportError};

/// Number of steps after an exchange that are searched for the one that uses the data.
const STEPS_TO_CONSUMER: u32 = 16;

/// Bytes that a program moves from one IPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterIpuTransfer {
    pub from: IpuId,
    pub to: IpuId,
    /// Bytes; `None` if only the participants are known.
    pub bytes: Option<Bytes>,
}

/// Transfers of programs between IPUs, as far as a report names both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterIpuTransfers(BTreeMap<ProgramId, Vec<InterIpuTransfer>>);

impl InterIpuTransfers {
    /// Reads the routes of all programs.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read(report: &Report) -> Result<Self, ReportError> {
        let target = report.target()?;
        let mut links: BTreeMap<ProgramId, Vec<InterIpuTransfer>> = BTreeMap::new();
        for route in report.routes()? {
            let Some(ends) = route.ends() else { continue };
            let [from, to] = ends.map(|tiles| target.ipu_of_tile(tiles.first));
            if from == to {
                continue;
            }
            let bytes = route.bytes();
            let known = links.entry(route.program).or_default();
            match known.iter_mut().find(|link| (link.from, link.to) == (from, to)) {
                Some(link) => link.bytes = link.bytes.map(|sum| sum + bytes),
                None => known.push(InterIpuTransfer { from, to, bytes: Some(bytes) }),
            }
        }
        Ok(Self(links))
    }

    /// The transfers of a program, if the report names both ends.
    pub fn transfers_of_program(&self, program: ProgramId) -> &[InterIpuTransfer] {
        self.0.get(&program).map_or(&[], Vec::as_slice)
    }

    /// The transfers of a step; if the report does not name them, from every sending IPU of the
    /// step to every other receiving one.
    fn transfers_of_step(
        &self,
        program: Option<ProgramId>,
        parts: &BTreeMap<IpuId, LaneStep>,
    ) -> Vec<InterIpuTransfer> {
        if let Some(known) = program.and_then(|program| self.0.get(&program)) {
            return known.clone();
        }
        let mut transfers = Vec::new();
        for (from, sender) in parts {
            for (to, receiver) in parts {
                let moves = sender.bytes_out > Bytes::ZERO && receiver.bytes_in > Bytes::ZERO;
                if moves && from != to {
                    transfers.push(InterIpuTransfer { from: *from, to: *to, bytes: None });
                }
            }
        }
        transfers
    }
}

/// A transfer with the steps that send and use the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowArrow {
    pub step: StepId,
    /// The IPUs and bytes of the transfer.
    pub link: InterIpuTransfer,
    /// The exchange on the sending IPU.
    pub sent: CycleRange,
    /// The first step on the receiving IPU that works after the exchange; the exchange itself if
    /// none is near.
    pub used: CycleRange,
}

/// The arrows of exchanges between IPUs.
///
/// # Errors
/// Parts of the trace that cannot be read.
pub fn arrows(
    trace: &Trace,
    links: &InterIpuTransfers,
    steps: &[StepId],
) -> Result<Vec<FlowArrow>, ReportError> {
    let mut arrows = Vec::new();
    for step in steps {
        let mut parts = BTreeMap::new();
        let mut behind = BTreeMap::new();
        for info in trace.lanes().iter().filter(|info| info.sub_lane == 0) {
            let lane = trace.lane_of(info.ipu, 0);
            let found = lane.map(|lane| lane.find_with_next(*step, STEPS_TO_CONSUMER));
            let found = found.transpose()?.unwrap_or_default();
            let part = found.first().filter(|part| part.kind == ProgramKind::GlobalExchange);
            if let Some(part) = part.copied() {
                parts.insert(info.ipu, part);
                behind.insert(info.ipu, found);
            }
        }
        let program = parts.values().find_map(|part| part.program);
        for link in links.transfers_of_step(program, &parts) {
            let (Some(from), Some(to)) = (parts.get(&link.from), parts.get(&link.to)) else {
                continue;
            };
            let behind = behind.get(&link.to).into_iter().flatten().skip(1);
            let used = behind.copied().find(is_consumer);
            let used = used.map_or(to.range, |used| used.range);
            arrows.push(FlowArrow { step: *step, link, sent: from.range, used });
        }
    }
    Ok(arrows)
}

/// The first of the next steps on a lane after `step` that computes or moves data within its IPU.
///
/// # Errors
/// Parts of the trace that cannot be read.
pub fn first_consumer(
    lane: TraceLane<'_>,
    step: &LaneStep,
) -> Result<Option<LaneStep>, ReportError> {
    let mut position = step.position;
    for _ in 0..STEPS_TO_CONSUMER {
        let Some(next) = lane.next(position)? else { return Ok(None) };
        if is_consumer(&next) {
            return Ok(Some(next));
        }
        position = next.position;
    }
    Ok(None)
}

fn is_consumer(step: &LaneStep) -> bool {
    matches!(step.kind, ProgramKind::OnTileExecute | ProgramKind::DoExchange)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::units::Cycles;
    use tilescope_report::{ExecutionStep, StepOnIpu};

    /// IPU 0 sends to IPU 1, which waits and then works.
    fn sent() -> (Report, tempfile::TempDir) {
        let mut report = ReportBuilder::new(2, 4);
        let copy = report.program(ProgramKind::GlobalExchange, "inter-ipu-copy");
        let sync = report.program(ProgramKind::Sync, "External");
        let work = report.compute("a", 50);
        report.root(ProgramKind::Sequence, "main", &[copy, sync, work]);
        let mut from = report.bar(IpuId(0), 10..20);
        let mut to = report.bar(IpuId(1), 10..20);
        (from.bytes_out, to.bytes_in) = (Bytes(64), Bytes(64));
        report.steps.push(ExecutionStep::new(copy, vec![from, to]));
        for ipu in [IpuId(0), IpuId(1)] {
            report.run_on(sync, ipu, 20..25);
            report.run_on(work, ipu, 25..75);
        }
        let directory = tempfile::tempdir().unwrap();
        (Report::open(report.write(directory.path()).unwrap()).unwrap(), directory)
    }

    #[test]
    fn an_arrow_leads_to_the_first_step_that_works() {
        let (report, _directory) = sent();
        let trace = report.trace().unwrap().unwrap();
        let links = InterIpuTransfers::read(&report).unwrap();
        let found = arrows(&trace, &links, &[StepId(0)]).unwrap();
        let link = InterIpuTransfer { from: IpuId(0), to: IpuId(1), bytes: None };
        let (sent, used) =
            (CycleRange::new(Cycles(10), Cycles(20)), CycleRange::new(Cycles(25), Cycles(75)));
        assert_eq!(found, [FlowArrow { step: StepId(0), link, sent, used }]);
        assert_eq!(arrows(&trace, &links, &[StepId(1)]).unwrap(), []);
    }

    #[test]
    fn a_step_on_one_ipu_has_no_arrow() {
        let step = |bytes_in| StepOnIpu { bytes_in, bytes_out: Bytes(5), ..sample() };
        let mut report = ReportBuilder::new(1, 4);
        let copy = report.program(ProgramKind::GlobalExchange, "copy");
        report.root(ProgramKind::Sequence, "main", &[copy]);
        report.steps.push(ExecutionStep::new(copy, vec![step(Bytes(5))]));
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(report.write(directory.path()).unwrap()).unwrap();
        let trace = report.trace().unwrap().unwrap();
        assert_eq!(arrows(&trace, &InterIpuTransfers::default(), &[StepId(0)]).unwrap(), []);
    }

    fn sample() -> StepOnIpu {
        ReportBuilder::new(1, 4).bar(IpuId(0), 0..9)
    }
}
