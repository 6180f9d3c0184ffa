//! A zoomed-out lane: the shares of activities in each column of an image.
//!
//! A bucket covers less than two pixels, so its sums are drawn at their position. Buckets that
//! cross the boundary of two columns are split by cycles, and nothing is lost or counted twice.

use rayon::prelude::*;
use tilescope_report::trace::{LaneSpan, PerActivity, StepBucket, Trace, TraceLane};
use tilescope_report::units::{CycleRange, Cycles, Quantity};
use tilescope_report::{ReportError, StepActivity};

/// Share of the working cycles in steps narrower than a pixel, in percent, from which a lane counts
/// as zoomed out.
const NARROW_PERCENT: u64 = 90;
/// The number of steps of a lane that are sampled for their lengths: runs repeat themselves.
const SAMPLED_STEPS: u64 = 1 << 20;

/// The sums of a column of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareColumn {
    /// Cycles by activity.
    pub cycles: PerActivity<Cycles>,
    /// Approximate number of steps: a step at a boundary counts on both sides.
    pub steps: u64,
}

/// A window of a lane in columns whose lengths differ by at most one cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneShares {
    window: CycleRange,
    columns: Vec<ShareColumn>,
}

impl LaneShares {
    /// The shares of spans; parts outside the window are left out, for a bucket in proportion to
    /// its cycles.
    pub fn from_spans(spans: &[LaneSpan], window: CycleRange, columns: usize) -> Self {
        let mut shares = Self { window, columns: vec![ShareColumn::default(); columns.max(1)] };
        spans.iter().for_each(|span| shares.add(span));
        shares
    }

    /// The cycles of all columns.
    pub fn window(&self) -> CycleRange {
        self.window
    }

    /// The columns, from left to right.
    pub fn columns(&self) -> &[ShareColumn] {
        &self.columns
    }

    /// The cycles of a column.
    pub fn range(&self, column: usize) -> CycleRange {
        CycleRange::new(self.start(column), self.start(column + 1))
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
        usize::try_from(behind.0 - 1).ok()
    }

    /// Cycles of a part of the window by activity; columns at its ends count in proportion to their
    /// overlap.
    pub fn cycles_in(&self, part: CycleRange) -> PerActivity<Cycles> {
        let part = part.intersection(self.window);
        let mut sum = PerActivity::default();
        let Some(first) = self.column_at(part.start) else { return sum };
        for (at, column) in self.columns.iter().enumerate().skip(first) {
            let range = self.range(at);
            if part.end <= range.start {
                break;
            }
            let inside = range.intersection(part).length();
            for (activity, cycles) in column.cycles.iter() {
                sum[activity] += cycles.share(inside.0, range.length().0.max(1));
            }
        }
        sum
    }

    /// First cycle of a column.
    fn start(&self, column: usize) -> Cycles {
        let length = self.window.length();
        self.window.start + length.share(column as u64, self.columns.len() as u64)
    }

    fn add(&mut self, span: &LaneSpan) {
        let range = span.range();
        let inside = range.intersection(self.window);
        let Some(first) = self.column_at(inside.start) else { return };
        for at in first..self.columns.len() {
            let range = self.range(at);
            if at > first && inside.end <= range.start {
                break;
            }
            let part = range.intersection(inside);
            let column = &mut self.columns[at];
            match span {
                LaneSpan::Step(step) => {
                    let sum = &mut column.cycles[step.activity];
                    *sum = sum.saturating_add(part.length());
                    column.steps += 1;
                }
                LaneSpan::Bucket(bucket) => add_bucket(column, bucket, part),
            }
        }
    }
}

/// Adds the part of a bucket within a column, as the difference of the amounts up to its end and up
/// to its start, so that rounding neither loses nor adds a cycle.
fn add_bucket(column: &mut ShareColumn, bucket: &StepBucket, part: CycleRange) {
    let StepBucket { range, totals, .. } = bucket;
    let length = range.length().0.max(1);
    let start = (part.start - range.start).0;
    let end = (part.end - range.start).0;
    for (activity, cycles) in totals.cycles.iter() {
        let inside = cycles.share(end, length) - cycles.share(start, length);
        column.cycles[activity] = column.cycles[activity].saturating_add(inside);
    }
    let steps = Cycles(totals.steps);
    column.steps += (steps.share_rounded_up(end, length) - steps.share(start, length)).0;
}

/// Reads the shares of a lane; summed over all columns they equal [`TraceLane::totals`] of the
/// window.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn lane_shares(
    lane: TraceLane<'_>,
    window: CycleRange,
    columns: usize,
) -> Result<LaneShares, ReportError> {
    let spans = lane.cut_spans(window, columns.max(1) as u32)?;
    Ok(LaneShares::from_spans(&spans, window, columns))
}

/// The length that nearly all steps do not exceed, weighted by the working cycles of IPUs: if a
/// pixel covers this length, hardly any step is wider than a pixel. Waits do not count, since they
/// may take any time.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn narrow_step_cycles(trace: &Trace) -> Result<Cycles, ReportError> {
    let read = |at: usize| match trace.lane(at) {
        Some(lane) => lane.step_lengths(0..SAMPLED_STEPS),
        None => Ok(Vec::new()),
    };
    let lanes: Result<Vec<_>, ReportError> =
        (0..trace.lanes().len()).into_par_iter().map(read).collect();
    let lanes = lanes?;
    let worked = lanes.iter().flatten().filter(|(activity, ..)| *activity != StepActivity::Sync);
    let mut lengths: Vec<(u64, u128)> = worked
        .map(|(_, longest, steps)| (*longest, u128::from(*longest) * u128::from(*steps)))
        .collect();
    lengths.sort_unstable();
    let all: u128 = lengths.iter().map(|(_, cycles)| cycles).sum();
    let mut narrow = 0;
    for (length, cycles) in lengths {
        narrow += cycles;
        if narrow * 100 >= all * u128::from(NARROW_PERCENT) {
            return Ok(Cycles(length));
        }
    }
    Ok(Cycles::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::trace::StepTotals;
    use tilescope_report::units::{IpuId, StepId};
    use tilescope_report::{ProgramKind, Report};
    use tilescope_test_tiers::cases;

    /// Steps of different lengths and activities, some after a pause.
    static TRACE: LazyLock<Trace> = LazyLock::new(|| {
        let mut report = ReportBuilder::new(1, 4);
        let mut programs = vec![report.compute("a", 1), report.exchange("b", 8)];
        for kind in [ProgramKind::Sync, ProgramKind::GlobalExchange, ProgramKind::StreamCopyMid] {
            programs.push(report.program(kind, "c"));
        }
        report.root(ProgramKind::Sequence, "main", &programs);
        let (mut clock, mut seed) = (0u64, 1u64);
        for _ in 0..3_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let program = programs[(seed >> 33) as usize % programs.len()];
            let length = (seed >> 40) % [3, 40, 900][(seed >> 20) as usize % 3];
            clock += ((seed >> 50) % 7).saturating_sub(3) * 5;
            report.run(program, clock..clock + length);
            clock += length;
        }
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(report.write(directory.path()).unwrap()).unwrap();
        report.trace().unwrap().unwrap()
    });

    fn cycles(start: u64, end: u64) -> CycleRange {
        CycleRange::new(Cycles(start), Cycles(end))
    }

    fn sum(shares: &LaneShares) -> PerActivity<Cycles> {
        let mut sum = PerActivity::default();
        for column in shares.columns() {
            column.cycles.iter().for_each(|(activity, cycles)| sum[activity] += cycles);
        }
        sum
    }

    fn bucket(range: CycleRange, busy: &[(StepActivity, u64)]) -> LaneSpan {
        let mut totals = StepTotals { steps: 1, ..StepTotals::default() };
        busy.iter().for_each(|(activity, cycles)| totals.cycles[*activity] += Cycles(*cycles));
        LaneSpan::Bucket(StepBucket { range, first_position: 0, first_step: StepId(0), totals })
    }

    #[test]
    fn a_bucket_over_an_edge_is_split_by_its_cycles() {
        let spans = [
            bucket(cycles(0, 8), &[(StepActivity::Compute, 5), (StepActivity::Sync, 3)]),
            bucket(cycles(8, 16), &[(StepActivity::Compute, 4)]),
        ];
        let shares = LaneShares::from_spans(&spans, cycles(0, 20), 2);
        let of = |column: usize, activity| shares.columns()[column].cycles[activity];
        assert_eq!(
            (of(0, StepActivity::Compute), of(1, StepActivity::Compute)),
            (Cycles(6), Cycles(3))
        );
        assert_eq!(of(0, StepActivity::Sync), Cycles(3));
        assert_eq!(shares.range(1), cycles(10, 20));
        let half = shares.cycles_in(cycles(0, 5));
        assert_eq!((half[StepActivity::Compute], half.total()), (Cycles(3), Cycles(4)));
    }

    #[test]
    fn steps_are_narrow_up_to_the_length_of_nearly_all_work() {
        let mut report = ReportBuilder::new(1, 4);
        let (work, wait) = (report.compute("a", 50), report.program(ProgramKind::Sync, "b"));
        report.root(ProgramKind::Sequence, "main", &[work, wait]);
        for at in 0..95 {
            report.run(work, at * 10..at * 10 + 10);
        }
        report.run(work, 1_000..1_050).run(wait, 2_000..90_000);
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(report.write(directory.path()).unwrap()).unwrap();
        let narrow = narrow_step_cycles(&report.trace().unwrap().unwrap()).unwrap();
        assert!((10..=12).contains(&narrow.0), "{narrow}: 950 of 1,000 cycles are in steps of 10");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn all_columns_add_up_to_the_totals_of_the_window(
            start in 0u64..400_000,
            length in 1u64..400_000,
            columns in 1usize..400,
        ) {
            let lane = TRACE.lane_of(IpuId(0), 0).unwrap();
            let window = cycles(start, start + length);
            let shares = lane_shares(lane, window, columns).unwrap();
            prop_assert_eq!(sum(&shares), lane.totals(window).unwrap().cycles);
            prop_assert_eq!(shares.cycles_in(window), sum(&shares));
            for (at, column) in shares.columns().iter().enumerate() {
                let range = shares.range(at);
                // Each activity of each bucket has a rounding error of less than a cycle.
                let most = range.length() + Cycles(3 * StepActivity::ALL.len() as u64);
                prop_assert!(column.cycles.total() <= most, "{:?} in {:?}", column, range);
            }
        }

        #[test]
        fn columns_follow_each_other_and_are_found_by_their_cycles(
            start in 0u64..1 << 60,
            length in 1u64..1 << 40,
            columns in 1usize..3_000,
            share in 0.0..1.0f64,
        ) {
            let window = cycles(start, start + length);
            let shares = LaneShares::from_spans(&[], window, columns);
            let cycle = window.start + Cycles((length as f64 * share) as u64);
            let at = shares.column_at(cycle).unwrap();
            let range = shares.range(at);
            prop_assert!(range.start <= cycle && cycle < range.end, "{:?} in {:?}", cycle, range);
            prop_assert_eq!(shares.range(0).start, window.start);
            prop_assert_eq!(shares.range(columns - 1).end, window.end);
            prop_assert_eq!(shares.column_at(window.end), None);
        }

        #[test]
        fn spans_are_distributed_over_columns_without_loss(
            lengths in prop::collection::vec((0u64..50, 1u64..5_000, 0u64..=100), 1..60),
            columns in 1usize..200,
        ) {
            let (mut clock, mut spans) = (0, Vec::new());
            for (pause, length, busy) in lengths {
                let range = cycles(clock + pause, clock + pause + length);
                clock = range.end.0;
                let (compute, sync) = (length * busy / 200, length * busy / 300);
                let busy = [(StepActivity::Compute, compute), (StepActivity::Sync, sync)];
                spans.push(bucket(range, &busy));
            }
            let shares = LaneShares::from_spans(&spans, cycles(0, clock), columns);
            let mut wanted = PerActivity::default();
            for span in &spans {
                let LaneSpan::Bucket(bucket) = span else { continue };
                bucket.totals.cycles.iter().for_each(|(a, cycles)| wanted[a] += cycles);
            }
            prop_assert_eq!(sum(&shares), wanted);
        }
    }
}
