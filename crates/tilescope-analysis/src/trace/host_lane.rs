//! Activity of the host from the point of view of IPUs: their waits for it, and its transfers.

use tilescope_report::trace::{LaneSpan, Trace};
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{ProgramKind, ReportError, StepActivity};

/// Activity of IPUs with the host at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostActivity {
    /// Several steps in one pixel, some of them copies.
    Mixed,
    /// An IPU has begun a copy and waits for the host.
    WaitingForHost,
    Transferring,
}

/// The host's lane in a window: consecutive parts without the gaps between them.
///
/// If IPUs differ, a transfer has priority over a wait.
///
/// # Errors
/// Parts of the trace that cannot be read.
pub fn host_lane(
    trace: &Trace,
    window: CycleRange,
    pixels: u32,
) -> Result<Vec<(CycleRange, HostActivity)>, ReportError> {
    let mut columns: Vec<Option<HostActivity>> = vec![None; pixels.max(1) as usize];
    let length = u128::from(window.length().max(Cycles(1)).0);
    let column = |cycle: Cycles| {
        let offset = cycle.clamp(window.start, window.end) - window.start;
        (u128::from(offset.0) * columns_of(pixels) / length) as usize
    };
    for info in trace.lanes() {
        let Some(lane) = trace.lane_of(info.ipu, info.sub_lane) else { continue };
        for span in lane.spans(window, pixels)? {
            let Some(work) = work(&span) else { continue };
            let first = column(span.range().start);
            let last = column(span.range().end);
            let end = last.max(first + 1).min(columns.len());
            for place in columns.iter_mut().take(end).skip(first) {
                *place = (*place).max(Some(work));
            }
        }
    }
    Ok(joined(&columns, window))
}

fn columns_of(pixels: u32) -> u128 {
    u128::from(pixels.max(1))
}

fn work(span: &LaneSpan) -> Option<HostActivity> {
    match span {
        LaneSpan::Step(step) if step.activity != StepActivity::Host => None,
        LaneSpan::Step(step) if step.kind == ProgramKind::StreamCopyBegin => {
            Some(HostActivity::WaitingForHost)
        }
        LaneSpan::Step(_) => Some(HostActivity::Transferring),
        LaneSpan::Bucket(bucket) => {
            if bucket.totals.cycles[StepActivity::Host] > Cycles::ZERO {
                Some(HostActivity::Mixed)
            } else {
                None
            }
        }
    }
}

/// Adjacent columns of the same activity as one range.
fn joined(columns: &[Option<HostActivity>], window: CycleRange) -> Vec<(CycleRange, HostActivity)> {
    let cycle = |column: usize| {
        let share = u128::from(window.length().0) * column as u128 / columns.len() as u128;
        window.start + Cycles(share as u64)
    };
    let mut parts: Vec<(CycleRange, HostActivity)> = Vec::new();
    for (column, work) in columns.iter().enumerate() {
        let Some(work) = work else { continue };
        let range = CycleRange::new(cycle(column), cycle(column + 1));
        match parts.last_mut() {
            Some((last, known)) if last.end == range.start && known == work => last.end = range.end,
            _ => parts.push((range, *work)),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::Report;
    use tilescope_report::units::IpuId;

    #[test]
    fn the_host_is_awaited_and_then_moves_data() {
        let mut report = ReportBuilder::new(2, 4);
        let begin = report.program(ProgramKind::StreamCopyBegin, "copyFromHost");
        let middle = report.program(ProgramKind::StreamCopyMid, "copyFromHost");
        let work = report.compute("a", 50);
        report.root(ProgramKind::Sequence, "main", &[begin, middle, work]);
        for (ipu, moved) in [(IpuId(0), 20), (IpuId(1), 30)] {
            report.run_on(begin, ipu, 0..moved);
            report.run_on(middle, ipu, moved..40);
            report.run_on(work, ipu, 40..100);
        }
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(report.write(directory.path()).unwrap()).unwrap();
        let trace = report.trace().unwrap().unwrap();
        let lane = host_lane(&trace, CycleRange::new(Cycles::ZERO, Cycles(100)), 100).unwrap();
        let expected = [
            (CycleRange::new(Cycles::ZERO, Cycles(20)), HostActivity::WaitingForHost),
            (CycleRange::new(Cycles(20), Cycles(40)), HostActivity::Transferring),
        ];
        assert_eq!(lane, expected);
        let one = host_lane(&trace, CycleRange::new(Cycles::ZERO, Cycles(100)), 1).unwrap();
        assert_eq!(one.len(), 1, "{one:?}");
    }
}
