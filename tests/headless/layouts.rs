//! Layouts of operands and methods for large products, with the effects described in the memory
//! guide.

use crate::common;
use tilescope_analysis::summary::{ReportSummary, summary};
use tilescope_report::units::Cycles;
use tilescope_report::{MarkFilter, MarkKind};
use tilescope_sim::compile;

/// Copying vertices of a bundled spec, by name.
fn copies(overrides: &[&str]) -> Vec<(String, u64)> {
    let compiled = compile(&common::spec("prearrange", overrides)).expect("compiles");
    let sets = compiled.compilation.compute_sets.iter();
    sets.flat_map(|set| &set.vertices)
        .map(|group| {
            let name = &compiled.compilation.vertex_types[group.vertex_type.index()].name;
            (name.clone(), group.count.total())
        })
        .filter(|(name, _)| name.contains("StridedCopy"))
        .collect()
}

#[test]
fn operands_with_other_layouts_are_rearranged_by_many_strided_copies() {
    let bad = copies(&[]);
    assert!(bad.iter().map(|(_, count)| count).sum::<u64>() > 1_472, "{bad:?}");
    assert_eq!(copies(&["model.columns_first=0"]), []);
}

#[test]
fn rearranging_takes_longer_than_the_sum_itself() {
    let figures = |overrides: &[&str]| {
        let (report, _directory) = common::report("prearrange", overrides);
        summary(&report).expect("figures")
    };
    let cycles =
        |figures: &ReportSummary| figures.execution.as_ref().expect("executed").total_cycles;
    let (bad, good) = (figures(&[]), figures(&["model.columns_first=0"]));
    assert!(cycles(&bad) > cycles(&good) + Cycles(4_000));
    let bytes =
        |figures: &ReportSummary| figures.memory.as_ref().expect("recorded").total_excluding_gaps;
    assert!(bytes(&bad) > bytes(&good));
}

#[test]
fn serialised_layers_take_less_memory_and_longer() {
    let perceptron = |overrides: &[&str]| {
        let large = ["model.width=1024", "model.batch_size=512", "options.gradient_accumulation=7"];
        let overrides = [&large[..], overrides].concat();
        let (report, _directory) = common::report("tests/data/specs/perceptron.toml", &overrides);
        let figures = summary(&report).expect("figures");
        let cycles = figures.execution.expect("executed").total_cycles;
        (figures.memory.expect("recorded").max_tile_including_gaps, cycles)
    };
    let whole = perceptron(&[]);
    for mode in ["input_channels", "reducing_dim", "output_channels"] {
        let mode = format!("options.serialize_matmul={mode}");
        let parts = perceptron(&[&mode, "options.serialize_matmul_factor=4"]);
        assert!(parts.0 < whole.0 && parts.1 > whole.1, "{mode}: {whole:?} and {parts:?}");
    }
}

#[test]
fn a_factor_without_a_dimension_is_refused() {
    let message = common::refusal("matmul_chain", &["options.serialize_matmul_factor=4"]);
    assert!(message.contains("options.serialize_matmul"), "{message}");
}

#[test]
fn the_host_has_a_separate_timeline() {
    let marks = |kind: MarkKind, overrides: &[&str]| {
        let one = [&["options.device_iterations=1"], overrides].concat();
        let (report, _directory) = common::report("mnist_pipeline", &one);
        let filter = MarkFilter { kind: Some(kind), ipu: None, window: None, limit: usize::MAX };
        report.marks(&filter).expect("marks")
    };
    let slow = ["options.host.loader=async", "options.host.seconds_per_sample=1e-5"];
    assert!(marks(MarkKind::Loader, &[]).is_empty() && marks(MarkKind::Callback, &[]).is_empty());
    assert_eq!(marks(MarkKind::Loader, &slow).len(), 2);
    let busy = marks(MarkKind::Callback, &["options.host.seconds_per_micro_batch=60e-6"]);
    // One for each micro-batch of the images, and of the labels.
    assert!(busy.len() > 10 && busy.len() <= 20, "{}", busy.len());
    assert!(busy.windows(2).all(|pair| pair[0].cycles.end <= pair[1].cycles.start));
}

#[test]
fn phases_show_tensors_that_are_off_the_chip() {
    let keep = "options.location.weights.on_chip=true";
    let spec = common::spec("mnist_pipeline", &["options.execution=phased", keep]);
    let said = |what: &str| {
        let path = format!("options.location.{what}.on_chip");
        spec.effective_values.iter().find(|(key, _)| *key == path).map(|(_, value)| value.clone())
    };
    assert_eq!(said("weights").as_deref(), Some("true"));
    for what in ["optimizer_state", "accumulators", "activations"] {
        assert_eq!(said(what).as_deref(), Some("false"), "{what}");
    }
}
