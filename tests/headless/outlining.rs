//! Repeated code of an IPU is compiled once: one body, called by each use.

use crate::common;
use std::collections::BTreeMap;
use tempfile::TempDir;
use tilescope_analysis::program_tree;
use tilescope_analysis::summary::summary;
use tilescope_report::units::{Bytes, ProgramId};
use tilescope_report::{ProgramKind, Report};

/// Three equal layers on each of two IPUs.
fn layers(more: &[&str]) -> (Report, TempDir) {
    common::report("tests/data/specs/layers.toml", more)
}

#[test]
fn equal_layers_are_compiled_once_and_take_the_same_time() {
    let (once, _kept) = layers(&[]);
    let (unrolled, _too) = layers(&["options.enable_outlining=false"]);
    let cycles = |report: &Report| summary(report).unwrap().execution.unwrap().total_cycles;
    assert_eq!(cycles(&once), cycles(&unrolled), "calls run what the bodies hold");
    let sets = |report: &Report| report.compute_sets().unwrap().len();
    assert!(3 * sets(&once) < 2 * sets(&unrolled), "{} {}", sets(&once), sets(&unrolled));
    let bytes = |report: &Report| -> Bytes {
        let tiles = report.tile_memory().unwrap();
        tiles.map(|tile| tile.excluding_gaps()).total()
    };
    assert!(bytes(&once) < bytes(&unrolled), "code is there once");
    let uses = unrolled.programs().unwrap().further_uses().count();
    assert_eq!(uses, 0, "nothing is called that was not asked for");
}

#[test]
fn calls_run_whole_functions_and_their_cycles_add_up() {
    let (report, _kept) = layers(&[]);
    assert_eq!(report.verify().unwrap(), []);
    let programs = report.programs().unwrap();
    let mut by_call: BTreeMap<ProgramId, Vec<ProgramId>> = BTreeMap::new();
    for (id, program) in programs.iter() {
        if let Some(outlined) = program.outlined {
            assert_eq!(programs.body(outlined.body), outlined.body, "a body runs itself");
            by_call.entry(outlined.call).or_default().push(outlined.body);
            assert!(report.exchange(id).unwrap().is_some() || !moves_data(program.kind));
        }
    }
    let mut calls_of: BTreeMap<ProgramId, Vec<ProgramId>> = BTreeMap::new();
    for (call, bodies) in &by_call {
        let call_node = programs.get(*call).unwrap();
        assert_eq!(call_node.kind, ProgramKind::Call);
        let [function] = call_node.children[..] else { panic!("a call runs one function") };
        let leaves = program_tree::rows(&programs, Some(function), &Default::default());
        let leaves: Vec<ProgramId> =
            leaves.iter().filter(|row| !row.parent).map(|row| row.id).collect();
        assert_eq!(&leaves, bodies, "all of it, in its order");
        calls_of.entry(function).or_default().push(*call);
    }
    let costs = program_tree::costs(&report).unwrap();
    assert!(calls_of.values().any(|calls| calls.len() > 2), "a function for all layers");
    for (function, calls) in calls_of {
        let cycles = |id| costs.nodes[&id].lane_cycles;
        let of_calls = calls.into_iter().map(cycles).sum();
        assert_eq!(cycles(function), of_calls, "what calls take is what their function takes");
    }
}

fn moves_data(kind: ProgramKind) -> bool {
    matches!(kind, ProgramKind::DoExchange)
}

#[test]
fn operations_of_every_layer_have_their_own_steps() {
    let (report, _kept) = layers(&[]);
    let layer = tilescope_analysis::operations::OperationLayer::Model;
    let rows = tilescope_analysis::operations::operations(&report, layer).unwrap();
    let of = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
    let (first, later) = (of("layer0/ff1"), of("layer2/ff1"));
    assert!(first.elapsed == later.elapsed && !later.elapsed.is_zero());
    assert_eq!(first.executions, later.executions);
    assert!(later.exchange_code.is_zero() && !first.exchange_code.is_zero(), "code is there once");
}
