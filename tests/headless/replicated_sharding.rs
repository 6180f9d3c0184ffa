//! Replicated tensor sharding: shards make up the tensor, and collectives move the required bytes.

use crate::common::RecordedRun;
use std::collections::BTreeMap;
use tilescope_report::ProgramKind;
use tilescope_report::units::Bytes;
use tilescope_sim::compile;
use tilescope_sim::compile::CompiledProgram;
use tilescope_sim::specification::{Spec, SpecSource};

const ALL_KINDS: [&str; 3] = ["weights", "accumulators", "optimizer_state"];

/// A small perceptron on one IPU with sharded tensors of some kinds.
fn perceptron(replicas: u32, instances: u32, kinds: &[&str], more: &[&str]) -> Spec {
    let mut overrides: Vec<String> = vec![
        "target.ipus=1".to_owned(),
        "model.optimizer=adam".to_owned(),
        "model.width=61".to_owned(),
        format!("options.replication_factor={replicas}"),
        format!("options.num_instances={instances}"),
    ];
    for kind in kinds {
        overrides.push(format!("options.location.{kind}.replicated_tensor_sharding=true"));
        overrides.push(format!("options.location.{kind}.min_elements_for_rts=1"));
    }
    overrides.extend(more.iter().map(|text| (*text).to_owned()));
    let source = SpecSource::find("tests/data/specs/perceptron.toml", &overrides).expect("exists");
    Spec::build(&source).expect("is allowed")
}

/// Bytes of the always-live tensors, by name.
fn kept_tensors(compiled: &CompiledProgram) -> BTreeMap<String, Bytes> {
    let variables = compiled.compilation.variables.iter();
    let kept = variables.filter(|of| of.lifetime.is_none() && of.shape.starts_with("float"));
    kept.map(|of| (of.name.clone(), of.tiles.map(|place| place.bytes).total())).collect()
}

/// Bytes that a replica sends in all collectives with a name, and the most bytes added by whole
/// elements on each tile.
fn bytes_of_collectives(compiled: &CompiledProgram, spec: &Spec, name: &str) -> (f64, f64) {
    let recorded = RecordedRun::of(compiled, spec);
    let mut sums = (0.0, 0.0);
    for step in &recorded.steps {
        let program = &compiled.compilation.programs[step.program.index()];
        if program.kind == ProgramKind::GlobalExchange && program.name.contains(name) {
            let cost = &compiled.leaf_costs[&step.program];
            sums.0 += cost.bytes_out.as_f64();
            sums.1 += f64::from(cost.active_tiles) * 4.0;
        }
    }
    sums
}

#[track_caller]
fn assert_moves(found: (f64, f64), expected: f64) {
    let (moved, grain) = found;
    assert!(moved >= expected && moved <= expected + grain, "{moved} B, not {expected} B");
}

#[test]
fn shares_make_up_the_tensor() {
    let whole = kept_tensors(&compile(&perceptron(4, 1, &[], &[])).expect("compiles"));
    assert!(whole.len() > 20, "{whole:?}");
    for (replicas, instances) in [(2, 1), (4, 1), (4, 2), (12, 4)] {
        let spec = perceptron(replicas, instances, &ALL_KINDS, &[]);
        let shares = kept_tensors(&compile(&spec).expect("compiles"));
        // The replicas of an instance share a tensor: each host has all of it.
        let domain = u64::from(replicas / instances);
        assert_eq!(shares.len(), whole.len());
        for (name, whole) in &whole {
            let of_all = domain * shares[name];
            assert!(of_all >= *whole && of_all < *whole + domain * Bytes(4), "{name}: {of_all:?}");
        }
    }
}

#[test]
fn all_replicas_share_a_tensor_where_the_domain_is_all() {
    let domain = ALL_KINDS.map(|kind| format!("options.location.{kind}.sharding_domain=all"));
    let domain: Vec<&str> = domain.iter().map(String::as_str).collect();
    let over_all = compile(&perceptron(4, 2, &ALL_KINDS, &domain)).expect("compiles");
    let one_instance = compile(&perceptron(4, 1, &ALL_KINDS, &[])).expect("compiles");
    assert_eq!(kept_tensors(&over_all), kept_tensors(&one_instance));
}

#[test]
fn collectives_move_all_but_the_own_share() {
    let micro_batches = 10.0;
    for replicas in [2, 4, 8] {
        let others = f64::from(replicas - 1) / f64::from(replicas);
        let whole = compile(&perceptron(replicas, 1, &[], &[])).expect("compiles");
        let weights: Bytes = kept_tensors(&whole)
            .into_iter()
            .filter(|(name, _)| !name.contains("___"))
            .map(|(_, bytes)| bytes)
            .sum();
        let expected = micro_batches * others * weights.as_f64();

        let inference = [
            "model.training=false",
            "options.gradient_accumulation=1",
            &format!("options.device_iterations={micro_batches}"),
        ];
        let spec = perceptron(replicas, 1, &["weights"], &inference);
        let compiled = compile(&spec).expect("compiles");
        assert_moves(bytes_of_collectives(&compiled, &spec, "/allGather/"), expected);

        let spec = perceptron(replicas, 1, &["accumulators"], &[]);
        let compiled = compile(&spec).expect("compiles");
        assert_moves(bytes_of_collectives(&compiled, &spec, "/reduceScatter/"), expected);
    }
}

/// Replicas with the same shard in different instances sum it over the instances.
#[test]
fn shares_are_summed_over_the_instances() {
    for (replicas, instances) in [(4, 2), (8, 2), (12, 3)] {
        let whole = compile(&perceptron(replicas, 1, &[], &[])).expect("compiles");
        let weights: Bytes = kept_tensors(&whole)
            .into_iter()
            .filter(|(name, _)| !name.contains("___"))
            .map(|(_, bytes)| bytes)
            .sum();
        let spec = perceptron(replicas, instances, &["accumulators"], &[]);
        let compiled = compile(&spec).expect("compiles");
        let (domain, others) = (replicas / instances, instances - 1);
        // All but the own part of its shard is sent twice: to be summed, and as the sum.
        let share = weights.as_f64() / f64::from(domain);
        let expected = 2.0 * share * f64::from(others) / f64::from(instances);
        let (moved, grain) = bytes_of_collectives(&compiled, &spec, "/share");
        assert!(
            moved >= expected && moved <= expected + 2.0 * grain,
            "{moved} B, not {expected} B"
        );
    }
}

#[test]
fn gathered_weights_exist_only_while_they_are_used() {
    let spec = perceptron(4, 1, &["weights"], &[]);
    let compiled = compile(&spec).expect("compiles");
    let gathered: Vec<_> = compiled
        .compilation
        .variables
        .iter()
        .filter(|of| of.name.ends_with("/weight/gathered"))
        .map(|of| of.lifetime.clone().expect("is not always live"))
        .collect();
    // Four layers forwards and backwards; the first needs no gradient of its input.
    assert_eq!(gathered.len(), 7);
    for (index, one) in gathered.iter().enumerate() {
        let overlapping =
            gathered[..index].iter().filter(|other| other.start < one.end && one.start < other.end);
        assert!(overlapping.count() <= 1, "{gathered:?}");
    }
}
