//! Invariants of liveness figures, on simulated reports.

use crate::common;
use crate::report_support::foreign::Foreign;
use tilescope_analysis::liveness::{
    LivenessScope, always_live, by_address, curve, enclosing, live_at,
};
use tilescope_report::Report;
use tilescope_report::units::{Bytes, IpuId, TileId};

fn check(report: &Report) {
    let target = report.target().expect("target");
    let whole = curve(report, LivenessScope::Whole).expect("reads").expect("recorded");
    let ipus: Vec<_> = (0..target.ipus_per_replica)
        .map(IpuId)
        .map(|ipu| curve(report, LivenessScope::Ipu(ipu)).expect("reads").expect("recorded"))
        .collect();
    // IPUs add up to the whole, step by step.
    assert_eq!(whole.always, Bytes(ipus.iter().map(|ipu| ipu.always).sum::<Bytes>().0));
    for (step, bytes) in whole.others.iter().enumerate() {
        assert_eq!(
            *bytes,
            Bytes(ipus.iter().map(|ipu| ipu.others[step]).sum::<Bytes>().0),
            "step {step}"
        );
    }
    // Lists add up to the curve.
    for source in
        [LivenessScope::Whole, LivenessScope::Ipu(IpuId(0)), LivenessScope::Tile(TileId(3))]
    {
        let curve = curve(report, source).expect("reads").expect("recorded");
        let always = always_live(report, source).expect("reads");
        assert_eq!(curve.always, Bytes(always.iter().map(|live| live.bytes[0]).sum::<Bytes>().0));
        let peak = curve.peak().expect("steps") as u32;
        let steps = [0, peak];
        let live = live_at(report, source, &steps).expect("reads");
        for (column, step) in steps.into_iter().enumerate() {
            let sum: Bytes = live.iter().map(|live| live.bytes[column]).sum();
            assert_eq!(sum, curve.others[step as usize], "{source:?} step {step}");
        }
    }
    // A tile's peak is that of its memory.
    let memory = report.tile_memory().expect("reads");
    for tile in [0, 1, target.tiles_per_ipu - 1].map(TileId) {
        let curve = curve(report, LivenessScope::Tile(tile)).expect("reads").expect("recorded");
        let most = curve.others.iter().max().copied();
        assert_eq!(most, memory.get(tile).map(|tile| tile.peak_not_always_live), "tile {tile}");
    }
    for tile in [0, 3, target.tiles_per_ipu - 1].map(TileId) {
        check_addresses(report, tile);
    }
    // Every step has its place in the program.
    let programs = report.programs().expect("reads");
    for program in &whole.programs {
        let path = enclosing(&programs, *program);
        assert_eq!(path.last(), Some(program));
        assert!(programs.roots().contains(&path[0]));
        for pair in path.windows(2) {
            let [above, below] = [pair[0], pair[1]].map(|id| programs.get(id).expect("exists"));
            let is_call = below.outlined.is_some_and(|outlined| outlined.call == pair[0]);
            assert!(is_call || above.children.contains(&pair[1]));
        }
    }
}

/// Checks that the memory of a tile by address agrees with its liveness, and that no variables
/// overlap.
fn check_addresses(report: &Report, tile: TileId) {
    let curve = curve(report, LivenessScope::Tile(tile)).expect("reads").expect("recorded");
    let timeline = by_address(report, tile).expect("reads").expect("recorded");
    assert_eq!(timeline.programs, curve.programs);
    for step in 0..timeline.steps() {
        assert_eq!(timeline.live[step as usize], curve.total(step as usize), "tile {tile}");
        let mut end = Bytes::ZERO;
        for (_, placed) in timeline.live_in(step..step + 1) {
            assert!(placed.addresses.start >= end, "tile {tile} step {step}: {}", placed.name);
            end = placed.addresses.end;
        }
        // Free and live bytes add up to the total.
        let free = timeline.free_in(step..step + 1).bytes();
        assert_eq!(free + curve.total(step as usize), timeline.capacity, "tile {tile} {step}");
    }
    let memory = report.tile_memory().expect("reads");
    let highest = timeline.highest().map(|highest| timeline.placed[highest.place].addresses.end);
    assert_eq!(highest, memory.get(tile).map(|tile| tile.including_gaps));
}

#[test]
fn without_addresses_or_lifetimes_there_is_no_memory_by_address() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("profile.pop");
    Foreign::default().write(&path);
    let report = Report::open(&path).expect("opens");
    assert!(by_address(&report, TileId(0)).expect("reads").is_none());
}

#[test]
fn lists_and_curves_add_up() {
    for (spec, overrides) in
        [("matmul_chain", &[][..]), ("mnist_pipeline", &["options.device_iterations=1"][..])]
    {
        let (report, _directory) = common::report(spec, overrides);
        check(&report);
    }
}
