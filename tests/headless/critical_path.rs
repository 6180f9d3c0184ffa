//! The critical path goes through every run, whatever that is like, and what it says of a program
//! holds when the program is changed.

use crate::common;
use crate::report_support::*;
use proptest::prelude::*;
use tempfile::tempdir;
use tilescope_report::trace::{CriticalPath, PathSpan, PathStretch, Trace};
use tilescope_report::units::*;
use tilescope_report::*;

/// Everything that holds of any path.
fn check(trace: &Trace, path: &CriticalPath) {
    let all = path.stretches_in(path.range(), usize::MAX).unwrap();
    assert_eq!(all.len() as u64, path.stretch_count());
    assert_eq!(path.range(), trace.range());
    if path.range().is_empty() {
        return;
    }
    assert_eq!(all[0].range.start, path.range().start);
    assert_eq!(all.last().unwrap().range.end, path.range().end);
    for pair in all.windows(2) {
        assert_eq!(pair[0].range.end, pair[1].range.start, "no gap, no overlap");
    }
    let of_lanes: Cycles = path.lanes().iter().map(|lane| lane.path_cycles).sum();
    assert_eq!(of_lanes, path.range().length());
    let programs = path.programs().unwrap();
    let of_programs: Cycles = programs.iter().map(|program| program.cycles).sum();
    assert_eq!(of_programs, path.totals().cycles.total());
    assert!(of_programs <= path.range().length());
    for stretch in all.iter().step_by(all.len().div_ceil(50)) {
        check_stretch(trace, path, stretch);
    }
    check_windows(path, &all);
}

fn check_stretch(trace: &Trace, path: &CriticalPath, stretch: &PathStretch) {
    let lane = trace.lane(stretch.lane).unwrap();
    let inside = lane.touching(stretch.range).unwrap();
    for position in [inside.start, inside.end - 1] {
        let step = lane.step(position).unwrap().unwrap();
        let slack = path.slack(stretch.lane, position).unwrap();
        let is_inside = step.range.end <= stretch.range.end && !step.range.is_empty();
        assert!(!is_inside || slack == Some(Cycles::ZERO), "{slack:?} of {step:?}");
        let found = path.stretch_of(stretch.lane, &step).unwrap();
        assert!(step.range.is_empty() || found.is_some(), "{step:?} is on {stretch:?}");
    }
    assert_eq!(path.stretch_at(stretch.range.start).unwrap().as_ref(), Some(stretch));
}

/// Windows have the part of the whole that lies in them, at any zoom.
fn check_windows(path: &CriticalPath, all: &[PathStretch]) {
    let CycleRange { start, end } = path.range();
    let length = end - start;
    for (from, to) in [(0, 1), (0, 3), (1, 3), (2, 3), (5, 17)] {
        let at = |part: u64, of: u64| start + length * part / of;
        let of = if to == 17 { 17 } else { 3 };
        let window = if to == 1 { path.range() } else { CycleRange::new(at(from, of), at(to, of)) };
        let totals = path.totals_in(window).unwrap();
        let programs = path.programs_in(window).unwrap();
        let cycles: Cycles = programs.iter().map(|program| program.cycles).sum();
        assert_eq!(totals.cycles.total(), cycles, "{window:?}");
        let touching = all.iter().filter(|stretch| stretch.range.overlaps(window)).count();
        assert_eq!(path.stretches_in(window, usize::MAX).unwrap().len(), touching);
        for pixels in [1, 7, 400] {
            let spans = path.spans(window, pixels).unwrap();
            assert!(spans.len() <= 6 * pixels as usize + 6);
            let mut before = Cycles::ZERO;
            for span in &spans {
                assert!(span.range().start >= before, "spans do not overlap: {span:?}");
                before = span.range().end;
            }
            let covered = |span: &PathSpan| span.range().intersection(window).length();
            let covered: Cycles = spans.iter().map(covered).sum();
            assert!(covered >= totals.cycles.total(), "spans cover the steps: {window:?}");
        }
    }
}

fn checked(report: &Report) -> CriticalPath {
    let path = report.critical_path().unwrap().expect("a run has a path");
    check(&report.trace().unwrap().unwrap(), &path);
    path
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_run_has_a_path(seed in any::<u64>(), steps in 1u64..400) {
        let (directory, made) = (tempdir().unwrap(), random_report(seed, steps));
        made.write(directory.path()).unwrap();
        let report = Report::open(directory.path()).unwrap();
        if report.trace().unwrap().is_some() {
            checked(&report);
        }
    }
}

/// Small programs of all kinds: on one IPU and several, with I/O tiles, phases, replicas, a slow host.
const PROGRAMS: [(&str, &[&str]); 7] = [
    ("mnist_pipeline", &["options.device_iterations=2"]),
    ("io_overlap", &[]),
    ("data_loading", &["options.device_iterations=5"]),
    ("prefetch", &["options.device_iterations=5"]),
    ("offload", &[]),
    ("adder", &[]),
    ("image_blur", &[]),
];

#[test]
fn every_simulated_program_has_a_path_that_verifies() {
    for (name, set) in PROGRAMS {
        let (report, _directory) = common::report(name, set);
        let path = checked(&report);
        // Nothing is left out of a simulated run.
        assert_eq!(path.totals().cycles.total(), path.range().length(), "{name}");
        let violations = report.verify().unwrap();
        assert!(violations.is_empty(), "{name}: {violations:?}");
    }
}
