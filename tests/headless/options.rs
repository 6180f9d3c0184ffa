//! Options as published programs set them.

use crate::common;
use tilescope_analysis::insights::insights;
use tilescope_report::units::NumberFormat;

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
