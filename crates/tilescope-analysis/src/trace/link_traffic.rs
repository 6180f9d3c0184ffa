//! Traffic over the links of an IPU over time: bytes of exchanges between IPUs, in columns of an
//! image.
//!
//! A report states the bytes that a step sends and receives, but not their times: a step counts
//! evenly over its cycles, so that a column has the mean of its steps. Sums over columns equal
//! those of the lane exactly: nothing is lost or counted twice at a boundary.

use std::ops::Sub;
use tilescope_report::trace::{LaneSpan, TraceLane};
use tilescope_report::units::{Bytes, CycleRange, Cycles, Quantity};
use tilescope_report::{ReportError, StepActivity};

/// Traffic over the links of an IPU in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkColumn {
    /// Bytes sent by the IPU.
    pub sent: Bytes,
    /// Bytes received by the IPU.
    pub received: Bytes,
    /// Cycles in which exchanges between IPUs run.
    pub exchanging: Cycles,
}

impl LinkColumn {
    fn add(&mut self, other: Self) {
        self.sent = self.sent.saturating_add(other.sent);
        self.received = self.received.saturating_add(other.received);
        self.exchanging = self.exchanging.saturating_add(other.exchanging);
    }

    /// The part between two positions within `length` cycles, as the difference of the amounts up
    /// to both, so that rounding loses nothing.
    fn part(self, start: u64, end: u64, length: u64) -> Self {
        fn part<Q: Quantity + Sub<Output = Q>>(of: Q, start: u64, end: u64, length: u64) -> Q {
            of.share(end, length) - of.share(start, length)
        }
        Self {
            sent: part(self.sent, start, end, length),
            received: part(self.received, start, end, length),
            exchanging: part(self.exchanging, start, end, length),
        }
    }
}

/// A window of the links of an IPU in columns whose lengths differ by at most one cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTraffic {
    pub window: CycleRange,
    pub columns: Vec<LinkColumn>,
}

impl LinkTraffic {
    /// The cycles of a column.
    pub fn range(&self, column: usize) -> CycleRange {
        let count = self.columns.len().max(1) as u64;
        let start = |column: usize| {
            self.window.start + self.window.length().share((column as u64).min(count), count)
        };
        CycleRange::new(start(column), start(column + 1))
    }

    /// The column that contains a cycle of the window.
    pub fn column_at(&self, cycle: Cycles) -> Option<usize> {
        if cycle < self.window.start || self.window.end <= cycle {
            return None;
        }
        let length = self.window.length().0;
        let count = self.columns.len() as u64;
        let offset = (cycle - self.window.start).0;
        // The last column that starts at or before the cycle.
        let behind = Cycles(count).share_rounded_up(offset + 1, length);
        usize::try_from(behind.0).ok()?.checked_sub(1)
    }

    /// The sum of all columns that overlap a part of the window.
    pub fn sum(&self, part: CycleRange) -> LinkColumn {
        let mut sum = LinkColumn::default();
        let part = part.intersection(self.window);
        let Some(first) = self.column_at(part.start) else { return sum };
        for (at, column) in self.columns.iter().enumerate().skip(first) {
            if self.range(at).start >= part.end {
                break;
            }
            sum.add(*column);
        }
        sum
    }

    fn add(&mut self, range: CycleRange, moved: LinkColumn) {
        let inside = range.intersection(self.window);
        let Some(first) = self.column_at(inside.start).filter(|_| moved != LinkColumn::default())
        else {
            return;
        };
        if range.is_empty() {
            return self.columns[first].add(moved);
        }
        let length = range.length().0;
        for at in first..self.columns.len() {
            let part = self.range(at).intersection(inside);
            if at > first && part.is_empty() {
                break;
            }
            let start = (part.start - range.start).0;
            let end = (part.end - range.start).0;
            self.columns[at].add(moved.part(start, end, length));
        }
    }
}

/// Reads the traffic over the links of an IPU from the lanes of its groups of tiles: O(columns) at
/// any zoom.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn link_traffic<'a>(
    lanes: impl IntoIterator<Item = TraceLane<'a>>,
    window: CycleRange,
    columns: usize,
) -> Result<LinkTraffic, ReportError> {
    let mut traffic = LinkTraffic { window, columns: vec![LinkColumn::default(); columns.max(1)] };
    for lane in lanes {
        for span in lane.spans(window, columns.max(1) as u32)? {
            traffic.add(span.range(), of_span(&span));
        }
    }
    Ok(traffic)
}

/// The traffic between IPUs of a step, or of all steps of a bucket.
fn of_span(span: &LaneSpan) -> LinkColumn {
    const LINKS: StepActivity = StepActivity::GlobalExchange;
    match span {
        LaneSpan::Step(step) if step.activity == LINKS => LinkColumn {
            sent: step.bytes_out,
            received: step.bytes_in,
            exchanging: step.range.length(),
        },
        LaneSpan::Step(_) => LinkColumn::default(),
        LaneSpan::Bucket(bucket) => {
            let totals = &bucket.totals;
            LinkColumn {
                sent: totals.bytes_out[LINKS],
                received: totals.bytes_in[LINKS],
                exchanging: totals.cycles[LINKS],
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::units::IpuId;
    use tilescope_report::{ProgramKind, Report};

    /// A compute step followed by an exchange of 1,000 bytes, repeated.
    fn report(steps: u64) -> (tempfile::TempDir, Report) {
        let mut builder = ReportBuilder::new(1, 4);
        let work = builder.compute("a", 90);
        let copy = builder.program(ProgramKind::GlobalExchange, "copy");
        builder.root(ProgramKind::Sequence, "main", &[work, copy]);
        for at in 0..steps {
            builder.run(work, at * 100..at * 100 + 90).run(copy, at * 100 + 90..at * 100 + 100);
            let bar = &mut builder.steps.last_mut().unwrap().ipus[0];
            (bar.bytes_in, bar.bytes_out) = (Bytes(700), Bytes(1_000));
        }
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        (directory, report)
    }

    fn traffic(report: &Report, window: (u64, u64), columns: usize) -> LinkTraffic {
        let trace = report.trace().unwrap().unwrap();
        let window = CycleRange::new(Cycles(window.0), Cycles(window.1));
        link_traffic(trace.lane_of(IpuId(0), 0), window, columns).unwrap()
    }

    #[test]
    fn columns_add_up_to_what_the_lane_moves_at_any_zoom() {
        let (_directory, report) = report(1_000);
        for columns in [1, 3, 7, 100, 333, 4_000] {
            let traffic = traffic(&report, (0, 100_000), columns);
            assert_eq!(traffic.columns.len(), columns);
            let sum = traffic.sum(traffic.window);
            let all = (Bytes(1_000_000), Bytes(700_000), Cycles(10_000));
            assert_eq!((sum.sent, sum.received, sum.exchanging), all, "{columns}");
        }
    }

    #[test]
    fn a_wide_step_has_its_bytes_where_it_runs() {
        let (_directory, report) = report(2);
        let traffic = traffic(&report, (0, 200), 200);
        let sent: Vec<u64> = traffic.columns.iter().map(|column| column.sent.0).collect();
        for (cycle, sent) in sent.into_iter().enumerate() {
            assert_eq!(sent, if cycle % 100 >= 90 { 100 } else { 0 }, "{cycle}");
        }
        assert_eq!(traffic.column_at(Cycles(95)), Some(95));
        assert_eq!(traffic.column_at(Cycles(200)), None);
    }

    #[test]
    fn windows_within_a_step_count_its_part() {
        let (_directory, report) = report(1);
        let sum = traffic(&report, (95, 100), 5).sum(CycleRange::new(Cycles(0), Cycles(100)));
        assert_eq!((sum.sent, sum.received), (Bytes(500), Bytes(350)));
    }
}
