//! Advice for users with a model that does not fit.

use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_sim::{MoreIpus, compile, enough_ipus};

/// The advice for a spec.
fn advised(spec: &str, overrides: &[&str]) -> (SpecSource, Option<MoreIpus>) {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let source = SpecSource::find(spec, &overrides).expect("found");
    let advised = enough_ipus(&source, &Spec::build(&source).expect("valid"));
    (source, advised)
}

const LAYERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/specs/perceptron.toml");

/// Six layers of 196 MiB, some of which fit on an IPU.
const LARGE: [&str; 4] =
    ["model.layers=6", "model.width=7168", "target.ipus=1", "options.gradient_accumulation=1"];

fn fits(source: &SpecSource, changes: &[String]) -> bool {
    let mut source = source.clone();
    source.overrides.extend_from_slice(changes);
    let compiled = compile(&Spec::build(&source).expect("valid")).expect("compiles");
    compiled.tiles_out_of_memory() == 0
}

#[test]
fn the_advised_number_fits_and_half_of_it_does_not() {
    for overrides in [
        &[][..],
        &["model.training=false"],
        &["options.execution=sharded"],
        &["options.stages=[['L0', 'L1', 'L2', 'L3', 'L4', 'L5']]"],
    ] {
        // One program for each: balancing tries twelve.
        let overrides = [&["options.auto_stage=same_as_ipu"], overrides].concat();
        let (source, advised) = advised(LAYERS, &[&LARGE[..], &overrides].concat());
        let advised = advised.expect("more IPUs hold it");
        assert!(fits(&source, &advised.changes), "{overrides:?}: {advised:?}");
        let ipus = advised.ipus;
        assert!(advised.changes.contains(&format!("target.ipus={ipus}")), "{advised:?}");
        if ipus == 2 {
            assert!(!fits(&source, &[]), "{overrides:?}");
            continue;
        }
        let mut half = advised.changes.clone();
        half[0] = format!("target.ipus={}", ipus / 2);
        assert!(!fits(&source, &half), "{overrides:?}: {half:?}");
    }
}

#[test]
fn the_advice_says_if_more_ipus_do_not_help() {
    // A single block cannot be split.
    let advice = advised("too_large", &[]).1.expect("two IPUs were tried");
    assert!(!advice.fits && advice.words().contains("one block"), "{advice:?}");
    let two = ["model.layers=2", "model.width=14336", "target.ipus=1"];
    let advice = advised(LAYERS, &two).1.expect("four IPUs were tried");
    assert!(!advice.fits && advice.words().starts_with("4 IPUs do not hold it"), "{advice:?}");
    // A full Pod has no more IPUs.
    let full = ["target.name=pod4", "options.replication_factor=4"];
    assert_eq!(advised(LAYERS, &[&LARGE[..], &full].concat()).1, None);
}
