//! Options as published programs set them.

use crate::common::{self, RecordedRun};
use tilescope_analysis::insights::insights;
use tilescope_report::units::NumberFormat;
use tilescope_sim::compile;

/// Where nothing is trained, a pipeline that fills and drains too often is given more micro-batches a
/// call, and never an accumulation, which would be refused.
#[test]
fn what_is_proposed_for_an_inference_is_no_accumulation() {
    let mut proposed = 0;
    for iterations in [4, 7] {
        let overrides = [
            "model.training=false",
            "options.gradient_accumulation=1",
            &format!("options.device_iterations={iterations}"),
        ];
        let (report, _directory) = common::report("mnist_pipeline", &overrides);
        for finding in insights(&report, NumberFormat::default()).expect("reads") {
            let Some(proposal) = finding.proposal else { continue };
            assert!(
                !proposal.changes.contains_key("options.gradient_accumulation"),
                "{proposal:?}"
            );
            let more = serde_json::json!(2 * iterations);
            if finding.rule == "accumulation" {
                assert_eq!(proposal.changes.get("options.device_iterations"), Some(&more));
                proposed += 1;
            }
        }
    }
    assert_eq!(proposed, 2, "the pipeline fills and drains for each call");
}

/// A deeper buffer never takes longer, however deep, and says what it takes of the host.
#[test]
fn buffers_may_be_as_deep_as_published_programs_have_them() {
    let spread = [
        "options.device_iterations=300",
        "options.host.seconds_per_micro_batch=30e-6",
        "options.host.sample_time_spread=1.0",
    ];
    let cycles = [1, 64, 256, 65_536].map(|depth| {
        let depth = format!("options.prefetch_depth={depth}");
        let overrides = [&spread[..], &[&depth]].concat();
        let spec = common::spec("tests/data/specs/replicas_io_tiles.toml", &overrides);
        RecordedRun::of(&compile(&spec).expect("compiles"), &spec).end()
    });
    assert!(cycles.is_sorted_by(|less, more| less >= more), "{cycles:?}");
    assert!(cycles[0] > cycles[1], "buffers are worth something: {cycles:?}");
    let spec = common::spec("tests/data/specs/replicas_io_tiles.toml", &[]);
    let notes = compile(&spec).expect("compiles").compilation.notes;
    assert!(notes.iter().any(|note| note.ends_with("at prefetch depth 256")), "{notes:?}");
}
