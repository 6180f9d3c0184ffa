//! Totals of operations, programs and lanes agree, on every bundled spec: no figure covers only a
//! part of the run. Every run satisfies the invariants of `verify`.

use crate::common;
use crate::critical_path::check_simulated;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use tilescope_analysis::operations::{OpRow, OperationLayer, operations, operations_with_totals};
use tilescope_analysis::program_tree::costs;
use tilescope_analysis::summary::summary;
use tilescope_analysis::trace::{ProgramRuns, program_runs};
use tilescope_report::units::{Bytes, CycleRange, Cycles, IpuId, ProgramId};
use tilescope_report::{Report, ReportPart};
use tilescope_sim::specification::BUNDLED_SPECS;
use tilescope_test_tiers::slow_tests;

/// Checks that totals by operation and of steps without one are those of the lanes, and of the run.
fn check(report: &Report, name: &str) {
    let Some(trace) = report.trace().expect("reads") else { return };
    let runs = program_runs(&trace).expect("reads");
    let mut lanes: BTreeMap<IpuId, (u64, Cycles)> = BTreeMap::new();
    for lane in (0..trace.lanes().len()).filter_map(|index| trace.lane(index)) {
        let info = lane.info();
        let whole = CycleRange::new(info.range.start, info.range.end + Cycles(1));
        let totals = lane.totals(whole).expect("reads");
        assert_eq!(totals.steps, info.steps, "{name}");
        let sum = lanes.entry(info.ipu).or_default();
        *sum = (sum.0 + totals.steps, sum.1 + totals.cycles.total());
    }
    let mut by_program: BTreeMap<IpuId, (u64, Cycles)> = BTreeMap::new();
    let own = runs.steps.iter().map(|((ipu, ..), of)| (ipu, of));
    for (ipu, of) in own.chain(runs.unattributed.iter().map(|((ipu, _), of)| (ipu, of))) {
        let sum = by_program.entry(*ipu).or_default();
        *sum = (sum.0 + of.steps, sum.1 + of.cycles);
    }
    assert_eq!(by_program, lanes, "{name}: totals by program are those of the lanes");

    let programs = report.programs().expect("reads");
    let counted = |layer| -> Cycles {
        operations(report, layer).expect("reads").iter().map(|row| row.elapsed).sum()
    };
    let unowned: Cycles = runs
        .steps
        .iter()
        .filter(|((_, id, _), _)| programs.get(*id).is_none_or(|of| of.operation.is_none()))
        .map(|(_, of)| of.cycles)
        .sum();
    let rest: Cycles = runs.unattributed.values().map(|of| of.cycles).sum();
    let all: Cycles = lanes.values().map(|(_, cycles)| *cycles).sum();
    // Syncs and the like belong to an operation in name only: its row leaves them out.
    let owned = all - unowned - rest;
    let model = counted(OperationLayer::Model);
    assert!(model <= owned, "{name}: {model} of operations, {owned} of their programs");
    let waits: Cycles = runs
        .steps
        .iter()
        .filter(|((_, id, _), _)| {
            let program = programs.get(*id);
            program.is_some_and(|of| {
                let waits = of.kind == tilescope_report::ProgramKind::Sync;
                of.operation.is_some() && (waits || !of.children.is_empty())
            })
        })
        .map(|(_, of)| of.cycles)
        .sum();
    assert_eq!(model + waits, owned, "{name}: operations, and the syncs between their steps");

    // Plausible sums: no more than the run, and shared code once.
    let (rows, totals) = operations_with_totals(report, OperationLayer::Model).expect("reads");
    let lanes = trace.lanes().len() as u64;
    assert_eq!(totals.mean_elapsed, model / lanes, "{name}");
    assert!(totals.mean_elapsed <= totals.run, "{name}: {totals:?}");
    let passes: Cycles = totals.mean_of_passes.iter().sum();
    assert!(passes <= totals.mean_elapsed, "{name}: {totals:?}");
    let each: Bytes = rows.iter().map(OpRow::code).sum();
    let most = rows.iter().map(OpRow::code).max().unwrap_or_default();
    assert!(most <= totals.code && totals.code <= each, "{name}: {most:?} {totals:?} {each:?}");
    assert!(rows.iter().all(|row| row.exchanging <= row.elapsed), "{name}");

    check_program_tree(report, &runs, name);
    let summary = summary(report).expect("reads");
    let cycles = summary.execution.expect("an execution").total_cycles;
    assert_eq!(cycles, trace.range().length(), "{name}");
}

/// Checks that no node of the program tree takes longer than the run, and that each takes the time
/// of its steps and its children.
fn check_program_tree(report: &Report, runs: &ProgramRuns, name: &str) {
    let mut own: BTreeMap<ProgramId, Cycles> = BTreeMap::new();
    let programs = report.programs().expect("reads");
    for ((_, id, _), totals) in &runs.steps {
        // The time of outlined code is that of its calls, and of the programs in its function.
        let call = programs.get(*id).and_then(|program| program.outlined).map(|of| of.call);
        for node in call.into_iter().chain([programs.body(*id)]) {
            *own.entry(node).or_default() += totals.cycles;
        }
    }
    let calls: BTreeSet<ProgramId> =
        programs.iter().filter_map(|(_, program)| Some(program.outlined?.call)).collect();
    let tree = costs(report).expect("reads");
    assert_eq!(tree.run, runs.range.length(), "{name}");
    for (id, program) in programs.iter() {
        let Some(of) = tree.nodes.get(&id) else { continue };
        assert!(tree.mean_elapsed(of) <= tree.run, "{name}: {id:?} {of:?} of {}", tree.run);
        let called = if calls.contains(&id) { &[][..] } else { &program.children };
        let children: BTreeSet<ProgramId> = called.iter().copied().collect();
        let below = children.iter().map(|child| Some(tree.nodes.get(child)?.lane_cycles));
        if let Some(below) = below.collect::<Option<Vec<Cycles>>>() {
            let steps = own.get(&id).copied().unwrap_or_default();
            assert_eq!(of.lane_cycles, steps + below.iter().sum(), "{name}: {id:?}");
        }
    }
}

/// Overrides that shorten the run of a bundled spec: one weight update of a few micro-batches, more
/// than any pipeline needs to be full.
fn short_run(spec: &str) -> Vec<String> {
    let accumulation = common::spec(spec, &[]).options.gradient_accumulation.min(33);
    let accumulation = format!("options.gradient_accumulation={accumulation}");
    vec!["options.device_iterations=1".to_owned(), accumulation]
}

/// True if only the slow tier simulates a bundled spec: large models in training.
fn is_slow(name: &str) -> bool {
    ["bert", "gpt2", "resnet50", "vit"].iter().any(|model| name.starts_with(model))
}

#[test]
fn totals_add_up_on_every_bundled_spec() {
    let specs: Vec<_> =
        BUNDLED_SPECS.iter().filter(|spec| slow_tests() || !is_slow(spec.name)).collect();
    assert!(specs.len() > 10);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(spec) = specs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let overrides = short_run(spec.name);
            let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
            let (report, _directory) = common::report(spec.name, &overrides);
            assert_eq!(report.has(ReportPart::Execution), spec.name != "too_large");
            assert_eq!(report.verify().expect("reads"), [], "{}", spec.name);
            check(&report, spec.name);
            if report.has(ReportPart::Execution) {
                crate::limits::keep_their_laws(&report, spec.name);
                crate::exchange::keep_their_laws(&report, spec.name);
                check_simulated(&report);
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
}
