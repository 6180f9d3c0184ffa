//! Answers of lanes are compared with those from all steps one by one.

use crate::report_support::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tempfile::tempdir;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::trace::*;
use tilescope_report::units::Cycles;
use tilescope_report::units::*;
use tilescope_report::*;
use tilescope_test_tiers::{cases, up_to};

/// A report with its steps, lane by lane, as written.
struct Sample {
    trace: Trace,
    lanes: BTreeMap<(IpuId, u8), Vec<LaneStep>>,
}

fn sample(report: &ReportBuilder) -> Sample {
    let directory = tempdir().unwrap();
    report.write(directory.path()).unwrap();
    let trace = Report::open(directory.path()).unwrap().trace().unwrap().unwrap();
    let tiles = f64::from(report.parts.target.tiles_per_ipu);
    let mut lanes: BTreeMap<(IpuId, u8), Vec<LaneStep>> = BTreeMap::new();
    for (id, step) in report.steps.iter().enumerate() {
        let program = &report.parts.programs[step.program.index()];
        for bar in &step.ipus {
            let lane = lanes.entry((bar.ipu, bar.sub_lane)).or_default();
            let share = f64::from(bar.active_tiles) / tiles;
            let balance = f64::from(bar.active_tile_balance) * share;
            lane.push(LaneStep {
                position: lane.len() as u64,
                step: StepId(id as u64),
                range: bar.range(),
                kind: program.kind,
                activity: StepActivity::from_program_kind(program.kind, program.stream),
                program: Some(step.program),
                tile_balance: FixedPointBalance::from_share(balance),
                bytes_in: bar.bytes_in,
                bytes_out: bar.bytes_out,
            });
        }
    }
    Sample { trace, lanes }
}

/// True if a step shares a cycle with a window; a step of no cycles counts as one.
fn touches(step: &LaneStep, window: CycleRange) -> bool {
    let end = step.range.end.max(step.range.start + Cycles(1));
    CycleRange::new(step.range.start, end).overlaps(window)
}

/// Sums over `window`, from all steps.
fn slow_totals(steps: &[LaneStep], window: CycleRange) -> (u64, [[u64; 7]; 3], Option<Cycles>) {
    let (mut count, mut sums, mut longest) = (0, [[0; 7]; 3], None);
    for step in steps.iter().filter(|step| touches(step, window)) {
        let cycles = step.range.intersection(window).length();
        let at = step.activity as usize;
        count += 1;
        sums[0][at] += cycles.0;
        sums[1][at] += step.bytes_in.0;
        sums[2][at] += step.bytes_out.0;
        longest = longest.max(Some(cycles));
    }
    (count, sums, longest)
}

fn check_totals(lane: TraceLane, steps: &[LaneStep], window: CycleRange) {
    let totals = lane.totals(window).unwrap();
    let (count, sums, longest) = slow_totals(steps, window);
    assert_eq!(totals.steps, count, "{window:?}");
    for activity in StepActivity::ALL {
        let (bytes_in, bytes_out) = (totals.bytes_in[activity], totals.bytes_out[activity]);
        let fast = [totals.cycles[activity].0, bytes_in.0, bytes_out.0];
        assert_eq!(fast, sums.map(|part| part[activity as usize]), "{activity:?} {window:?}");
    }
    assert_eq!(totals.longest.map(|longest| longest.cycles), longest);
    let busy = totals.cycles.total();
    let weight = |step: &LaneStep| {
        step.range.intersection(window).length().as_f64() * step.tile_balance.share()
    };
    let balance: f64 = steps.iter().filter(|step| touches(step, window)).map(weight).sum();
    match totals.tile_balance(&StepActivity::ALL) {
        Some(mean) => {
            let difference = (mean * busy.as_f64() - balance).abs();
            assert!(difference <= 1e-6 * (1.0 + balance), "{mean} x {busy} is not {balance}");
        }
        None => assert_eq!(busy, Cycles::ZERO),
    }
}

/// Checks that every step that touches the window is in exactly one span, wide ones unchanged.
fn check_spans(lane: TraceLane, steps: &[LaneStep], window: CycleRange, pixels: u32) {
    let spans = lane.spans(window, pixels).unwrap();
    assert!(spans.len() <= 2 * pixels.max(1) as usize + 1, "{} spans", spans.len());
    let pixel = window.length().div_ceil(u64::from(pixels.max(1))).max(Cycles(1));
    let touching: Vec<&LaneStep> = steps.iter().filter(|step| touches(step, window)).collect();
    let mut at = 0;
    let mut end = 0;
    for span in &spans {
        assert!(span.range().start >= Cycles(end), "spans do not overlap");
        end = span.range().end.0;
        let inside = &touching[at..at + span.steps() as usize];
        at += inside.len();
        let (first, last) = (inside.first().unwrap(), inside.last().unwrap());
        match span {
            LaneSpan::Step(step) => {
                assert_eq!(&step, first);
                assert!(step.range.length() >= pixel);
            }
            LaneSpan::Bucket(bucket) => {
                assert!(inside.iter().all(|step| step.range.length() < pixel));
                assert_eq!(bucket.range, CycleRange::new(first.range.start, last.range.end));
                assert!(bucket.range.intersection(window).length() < 2 * pixel);
                assert_eq!(
                    (bucket.first_position, bucket.first_step),
                    (first.position, first.step)
                );
                let whole: Vec<LaneStep> = inside.iter().map(|step| **step).collect();
                let everything = CycleRange::new(Cycles::ZERO, Cycles(u64::MAX));
                let (_, sums, longest) = slow_totals(&whole, everything);
                for (activity, cycles) in bucket.totals.cycles.iter() {
                    assert_eq!(cycles, Cycles(sums[0][activity as usize]));
                }
                let found = bucket.totals.longest.unwrap();
                assert_eq!(Some(found.cycles), longest);
                let first_longest =
                    whole.iter().find(|step| Some(step.range.length()) == longest).unwrap();
                assert_eq!(found.program, first_longest.program);
            }
        }
    }
    assert_eq!(at, touching.len(), "every step that touches {window:?} is in a span");
}

fn check_lookups(lane: TraceLane, steps: &[LaneStep], cycle: u64, window: CycleRange) {
    let running =
        steps.iter().find(|step| touches(step, CycleRange::new(Cycles(cycle), Cycles(cycle + 1))));
    assert_eq!(lane.step_at(Cycles(cycle)).unwrap().as_ref(), running, "at {cycle}");
    let touching: Vec<LaneStep> =
        steps.iter().filter(|step| touches(step, window)).copied().collect();
    assert_eq!(lane.steps_in(window, usize::MAX).unwrap(), touching);
    assert_eq!(lane.steps_in(window, 3).unwrap(), touching[..touching.len().min(3)]);
    let probe = &steps[(cycle % steps.len() as u64) as usize];
    assert_eq!(lane.find(probe.step).unwrap().as_ref(), Some(probe));
    let missing = probe.step + 1;
    let expected = steps.iter().find(|step| step.step == missing);
    assert_eq!(lane.find(missing).unwrap().as_ref(), expected);
    let next = steps.get(probe.position as usize + 1);
    assert_eq!(lane.next(probe.position).unwrap().as_ref(), next);
    let previous = probe.position.checked_sub(1).map(|position| &steps[position as usize]);
    assert_eq!(lane.previous(probe.position).unwrap().as_ref(), previous);
}

/// Compares totals by program with those from all steps one by one.
fn check_program_totals(lane: TraceLane, steps: &[LaneStep], window: CycleRange) {
    let positions = lane.touching(window).unwrap();
    let mut slow: BTreeMap<(Option<ProgramId>, &str), [u64; 6]> = BTreeMap::new();
    for step in &steps[positions.start as usize..positions.end as usize] {
        let cycles = step.range.length().0;
        let moved = step.bytes_in.max(step.bytes_out).0;
        let sums = slow.entry((step.program, step.kind.name())).or_insert([0; 6]);
        let own = [1, cycles, cycles * cycles, step.bytes_in.0, step.bytes_out.0, moved];
        sums.iter_mut().zip(own).for_each(|(sum, value)| *sum += value);
    }
    let found = lane.program_totals(positions.clone()).unwrap();
    assert_eq!(found.len(), slow.len(), "{window:?}");
    for totals in found {
        let squares = u64::try_from(totals.squared_cycles).unwrap();
        let bytes = [totals.bytes_in, totals.bytes_out, totals.bytes_moved].map(|bytes| bytes.0);
        let sums = [totals.steps, totals.cycles.0, squares, bytes[0], bytes[1], bytes[2]];
        assert_eq!(slow[&(totals.program, totals.kind().name())], sums, "{window:?}");
        let own = |step: &&LaneStep| (step.program, step.kind) == (totals.program, totals.kind());
        let part = &steps[positions.start as usize..positions.end as usize];
        let lengths = || part.iter().filter(own).map(|step| step.range.length().0);
        let moved = || part.iter().filter(own).map(|step| step.bytes_in.max(step.bytes_out));
        let ends = (totals.least_bytes_moved, totals.most_bytes_moved);
        assert_eq!(Some(ends), moved().min().zip(moved().max()));
        assert_eq!(totals.lengths.shortest(), lengths().min());
        assert_eq!(totals.lengths.longest(), lengths().max());
        assert_eq!(totals.lengths.iter().map(|(_, count)| count).sum::<u64>(), totals.steps);
        assert_eq!(Some(totals.first_position), part.iter().find(own).map(|step| step.position));
    }
}

/// Compares sums over a whole lane with those over its steps.
fn check_whole_lane(lane: TraceLane) {
    let info = lane.info();
    let window = CycleRange::new(info.range.start, info.range.end + Cycles(1));
    assert_eq!(lane.all_totals().unwrap(), lane.totals(window).unwrap());
    let totals = lane.program_totals(0..info.steps).unwrap();
    let sums: Vec<ProgramStepSums> = totals.iter().map(ProgramStepSums::from).collect();
    assert_eq!(*lane.program_sums().unwrap(), sums);
}

fn check(report: &ReportBuilder, rng: &mut Dice, windows: usize) {
    let sample = sample(report);
    assert_eq!(sample.trace.lanes().len(), sample.lanes.len());
    for (&(ipu, sub_lane), steps) in &sample.lanes {
        let lane = sample.trace.lane_of(ipu, sub_lane).unwrap();
        assert_eq!(lane.info().steps, steps.len() as u64);
        check_whole_lane(lane);
        let end = lane.info().range.end + Cycles(50);
        for i in 0..windows {
            // Edges often coincide with those of steps, to find off-by-one errors.
            let mut edge = || match rng.below(3) {
                0 => rng.below((end + Cycles(1)).0),
                1 => rng.pick(steps).range.start.0,
                _ => rng.pick(steps).range.end.0,
            };
            let (a, b) = (edge(), edge());
            let window = if i == 0 {
                CycleRange::new(Cycles::ZERO, end)
            } else {
                CycleRange::new(Cycles(a.min(b)), Cycles(a.max(b)))
            };
            let pixels = [0, 1, 7, 100, 2000, 1 << 20][rng.below(6) as usize];
            check_totals(lane, steps, window);
            check_program_totals(lane, steps, window);
            check_spans(lane, steps, window, pixels);
            check_lookups(lane, steps, a, window);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(40), failure_persistence: None, ..Default::default() })]

    #[test]
    fn short_lanes_answer_exactly(seed in any::<u64>(), steps in 1u64..200) {
        let report = random_report(seed, steps);
        prop_assume!(report.steps.iter().any(|step| !step.ipus.is_empty()));
        check(&report, &mut Dice::new(seed), 20);
    }
}

/// A lane that ends with a step of no cycles, as found with a random seed.
#[test]
fn a_lane_that_ends_with_an_empty_step_answers_exactly() {
    let seed = 4_524_222_421_537_753_188;
    check(&random_report(seed, 9), &mut Dice::new(seed), 20);
}

#[test]
fn long_lanes_answer_exactly() {
    for seed in [1, 2, 3].into_iter().take(up_to(1)) {
        check(&random_report(seed, 40_000), &mut Dice::new(seed), 25);
    }
}

/// Sums of a lane are stored in segments of 262,144 steps.
#[test]
fn sums_of_a_lane_of_several_segments_are_those_of_its_steps() {
    let mut report = ReportBuilder::new(1, 1);
    report.layout = StepLayout::Columns;
    let works = [report.compute("often", 3), report.compute("at the end", 5)];
    let steps = (1 << 18) + 10;
    for at in 0..steps {
        report.run(works[usize::from(at + 3 > steps)], 4 * at..4 * at + 3);
    }
    let directory = tempdir().unwrap();
    report.write(directory.path()).unwrap();
    let trace = Report::open(directory.path()).unwrap().trace().unwrap().unwrap();
    let lane = trace.lane(0).unwrap();
    assert_eq!(lane.info().steps, steps);
    check_whole_lane(lane);
}

#[test]
fn edge_windows_are_fine() {
    let mut report = ReportBuilder::new(1, 1);
    let work = report.compute("work", 10);
    report.run(work, 0..0).run(work, 0..10).run(work, 10..10).run(work, 20..30).run(work, 30..30);
    let sample = sample(&report);
    let lane = sample.trace.lane(0).unwrap();
    let steps = &sample.lanes[&(IpuId(0), 0)];
    for (start, end) in
        [(0, 0), (0, 1), (10, 10), (10, 11), (11, 20), (29, 30), (30, 99), (0, u64::MAX)]
    {
        let window = CycleRange::new(Cycles(start), Cycles(end));
        check_totals(lane, steps, window);
        check_program_totals(lane, steps, window);
        check_spans(lane, steps, window, 5);
        check_lookups(lane, steps, start.min(1000), window);
    }
    assert!(sample.trace.lane(1).is_none() && sample.trace.lane_of(IpuId(1), 0).is_none());
    assert_eq!(sample.trace.range(), CycleRange::new(Cycles::ZERO, Cycles(30)));
    assert_eq!(sample.trace.bars(), 5);
}

#[test]
fn wide_steps_stay_and_narrow_neighbours_merge() {
    let mut report = ReportBuilder::new(1, 1);
    let work = report.compute("work", 10);
    let sync = report.program(ProgramKind::Sync, "Internal");
    for i in 0..100 {
        report.run(sync, i * 2..i * 2 + 1);
    }
    report.run(work, 200..1000);
    let sample = sample(&report);
    let spans = sample
        .trace
        .lane(0)
        .unwrap()
        .spans(CycleRange::new(Cycles::ZERO, Cycles(1000)), 10)
        .unwrap();
    let shapes: Vec<(Cycles, Cycles, u64)> =
        spans.iter().map(|s| (s.range().start, s.range().end, s.steps())).collect();
    let expected = [(0, 99, 50), (100, 199, 50), (200, 1000, 1)];
    assert_eq!(shapes, expected.map(|(start, end, steps)| (Cycles(start), Cycles(end), steps)));
    let LaneSpan::Bucket(bucket) = spans[0] else { panic!("syncs are narrow") };
    assert_eq!(bucket.totals.cycles[StepActivity::Sync], Cycles(50));
    assert_eq!(bucket.totals.dominant(), Some(StepActivity::Sync));
}
