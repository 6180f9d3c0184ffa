//! Balanced splits of a model's blocks over IPUs are never longer than the given ones.

use tilescope_report::units::Cycles;
use tilescope_sim::specification::{BUNDLED_SPECS, Spec, SpecSource};
use tilescope_sim::{Simulation, balance};
use tilescope_test_tiers::{slow_tests, up_to};

/// Cycles of a spec with automatic stages; `None` if it does not fit in memory.
fn cycles_of_auto_stages(name: &str, auto: &str, overrides: &[&str]) -> Option<Cycles> {
    let auto = format!("options.auto_stage={auto}");
    let overrides: Vec<String> =
        [&[auto.as_str()], overrides].concat().into_iter().map(str::to_owned).collect();
    let source = SpecSource::find(name, &overrides).expect("exists");
    let spec = Spec::build(&source).expect("is sane");
    Simulation::compile(&spec, u64::MAX).expect("compiles").figures().cycles
}

/// Specs whose blocks can be split over their IPUs: perceptrons, small versions of the bundled
/// pipelines, and imported files.
fn specs_to_split() -> Vec<(String, Vec<String>)> {
    let mut specs: Vec<(String, String)> = Vec::new();
    let sizes = ["7 64 2", "5 1024 3", "6 512 2", "7 256 4", "9 128 4"];
    for (size, more) in sizes.into_iter().take(up_to(2)).flat_map(|size| {
        let schemes = ["", "options.recomputation=auto", "options.pipeline_schedule=interleaved"];
        schemes.map(|more| (size, more))
    }) {
        let keys = ["model.layers", "model.width", "target.ipus"];
        let sizes = keys.iter().zip(size.split(' ')).map(|(key, size)| format!("{key}={size}"));
        let sizes: Vec<String> = sizes.collect();
        specs.push((
            "tests/data/specs/perceptron.toml".to_owned(),
            format!("{} {more}", sizes.join(" ")),
        ));
    }
    let with_stages = BUNDLED_SPECS.iter().filter(|spec| spec.text.contains("\nstages = "));
    for bundled in with_stages.take(up_to(0)) {
        let sizes = match bundled.name {
            "mnist_pipeline" | "gpt2_small_pod16" | "vit_base_pod16" => "",
            _ => "model.layers=5",
        };
        let sharding = "options.location.optimizer_state.replicated_tensor_sharding=false";
        let one =
            format!("options.stages=[] options.replication_factor=1 {sharding} target.ipus=3");
        specs.push((bundled.name.to_owned(), format!("{sizes} {one}")));
    }
    let loss = "model.loss=cross_entropy";
    let files = [
        ("guide_mnist.onnx", loss),
        ("guide_mnist_loss.onnx", "model.training=true"),
        ("mnist_dynamo.onnx", loss),
        ("transformer.onnx", "options.gradient_accumulation=1 options.device_iterations=12"),
    ];
    for (file, more) in files.into_iter().take(up_to(1)) {
        let file = format!("{}/tests/data/onnx/{file}", env!("CARGO_MANIFEST_DIR"));
        specs.push((file.clone(), format!("{more} target.ipus=2")));
        specs.push((file, format!("{more} target.ipus=2 options.execution=sharded")));
    }
    let short = "options.gradient_accumulation=12 options.device_iterations=1";
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    specs.into_iter().map(|(name, more)| (name, words(&format!("{short} {more}")))).collect()
}

/// The even split is among those tried, though it may not fit.
#[test]
fn a_balanced_split_is_never_longer_than_the_even_one() {
    let mut shorter = 0;
    for (name, overrides) in specs_to_split() {
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        let cycles = |auto: &str| cycles_of_auto_stages(&name, auto, &overrides);
        let (balanced, even) = (cycles("balanced"), cycles("same_as_ipu"));
        let place = format!("{name} {overrides:?}: {balanced:?} after {even:?}");
        let Some(even) = even else { continue };
        assert!(balanced.is_some_and(|balanced| balanced <= even), "{place}");
        shorter += usize::from(balanced < Some(even));
    }
    assert!(shorter > if slow_tests() { 5 } else { 1 }, "it is worth the search: {shorter}");
}

/// The same for splits in specs: small versions of bundled pipelines, and the most uneven split.
#[test]
fn a_balanced_split_is_never_longer_than_the_written_one() {
    let perceptron = "tests/data/specs/perceptron.toml";
    let uneven = "model.layers=6 target.ipus=2 options.stages=[[\"L0\",\"L1\",\"L2\",\"L3\",\"L4\"],[\"L5\"]]";
    let mut specs = vec![(perceptron, uneven.to_owned())];
    for execution in ["sharded", "phased"].into_iter().take(up_to(1)) {
        specs.push((perceptron, format!("{uneven} options.execution={execution}")));
    }
    for name in ["mnist_pipeline", "vit_base_pod16"].into_iter().take(up_to(1)) {
        specs.push((name, "options.replication_factor=1".to_owned()));
    }
    // More micro-batches than the trials use.
    specs.push((perceptron, format!("{uneven} options.device_iterations=2000")));
    for (name, overrides) in specs {
        let mut overrides: Vec<String> = overrides.split(' ').map(str::to_owned).collect();
        let length = |overrides: &[String]| {
            let source = SpecSource::find(name, overrides).expect("exists");
            let spec = Spec::build(&source).expect("is sane");
            let simulation = Simulation::compile(&spec, u64::MAX).expect("compiles");
            (simulation.figures().cycles.expect("fits"), balance(&spec).expect("is split"))
        };
        let (written, found) = length(&overrides);
        let stages: Vec<String> =
            found.stages.iter().map(|stage| format!("{:?}", stage.blocks)).collect();
        overrides.push(format!("options.stages=[{}]", stages.join(",")));
        let (balanced, _) = length(&overrides);
        assert!(balanced <= written, "{name} {overrides:?}: {balanced} > {written}");
        assert!(!found.is_written || balanced == written, "{name} {overrides:?}");
    }
}
