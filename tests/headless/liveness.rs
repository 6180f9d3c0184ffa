//! Laws of liveness figures, on simulated reports.

use crate::common;
use tilescope_analysis::liveness::{LivenessScope, always_live, curve, enclosing, live_at};
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
    // A tile's peak is what its memory says.
    let memory = report.tile_memory().expect("reads");
    for tile in [0, 1, target.tiles_per_ipu - 1].map(TileId) {
        let curve = curve(report, LivenessScope::Tile(tile)).expect("reads").expect("recorded");
        let most = curve.others.iter().max().copied();
        assert_eq!(most, memory.get(tile).map(|tile| tile.peak_not_always_live), "tile {tile}");
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

#[test]
fn lists_and_curves_add_up() {
    for (spec, overrides) in
        [("matmul_chain", &[][..]), ("mnist_pipeline", &["options.device_iterations=1"][..])]
    {
        let (report, _directory) = common::report(spec, overrides);
        check(&report);
    }
}
