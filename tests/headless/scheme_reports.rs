//! Reports of random options: what is valid is simulated by the laws, what is not is refused with a
//! word.

use proptest::prelude::*;
use tilescope_report::units::{Cycles, IpuId};
use tilescope_report::{MarkFilter, MarkKind, Report, TraceMark};
use tilescope_sim::compile;
use tilescope_sim::spec::{Spec, SpecSource};
use tilescope_test_tiers::cases;

fn marks(report: &Report, kind: MarkKind) -> Vec<TraceMark> {
    let filter = MarkFilter { kind: Some(kind), ipu: None, window: None, limit: usize::MAX };
    report.marks(&filter).expect("marks")
}

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(words)
}

/// Option sets, sane and not.
fn any_options() -> impl Strategy<Value = Vec<String>> {
    let schemes = (
        one_of(&["pipelined", "sharded", "phased"]),
        one_of(&["grouped", "interleaved", "sequential"]),
        one_of(&["popart", "memory_guide"]),
        one_of(&["none", "auto", "checkpoints", "pipeline"]),
        one_of(&["full", "single_pipeline", "replica_and_ladder"]),
        1u32..14,
        1u32..4,
    );
    let rest = (
        one_of(&["1", "2", "3", "4", "8"]),
        one_of(&["0", "32", "33", "64"]),
        one_of(&["none", "inner_loop", "loops"]),
        one_of(&["all", "final", "sum", "every_n"]),
        one_of(&["true", "false"]),
        one_of(&["true", "false"]),
        one_of(&["none", "async", "async_rebatched", "sync", "synthetic"]),
        one_of(&["true", "false"]),
    );
    (schemes, rest).prop_map(|(a, b)| {
        vec![
            format!("options.execution={}", a.0),
            format!("options.pipeline_schedule={}", a.1),
            format!("options.stash_convention={}", a.2),
            format!("options.recomputation={}", a.3),
            format!("options.sync_pattern={}", a.4),
            format!("options.gradient_accumulation={}", a.5),
            format!("options.device_iterations={}", a.6),
            format!("options.replication_factor={}", b.0),
            format!("options.num_io_tiles={}", b.1),
            format!("options.overlap_io={}", b.2),
            format!("options.output_mode={}", b.3),
            format!("options.location.optimizer_state.on_chip={}", b.4),
            format!("options.location.activations.on_chip={}", b.5),
            format!("options.host.loader={}", b.6),
            format!("model.training={}", b.7),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(24)))]

    #[test]
    fn any_options_are_simulated_by_the_laws_or_refused_with_a_word(overrides in any_options()) {
        let source = SpecSource::find("tests/data/specs/perceptron.toml", &overrides).expect("spec");
        let spec = match Spec::build(&source) {
            Ok(spec) => spec,
            Err(error) => {
                prop_assert!(error.to_string().len() > 20, "{}", error);
                return Ok(());
            }
        };
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = match tilescope_sim::simulate(&spec, directory.path(), |_| ()) {
            Ok(path) => path,
            Err(error) => {
                prop_assert!(error.to_string().len() > 20, "{}", error);
                return Ok(());
            }
        };
        let report = Report::open(&path).expect("opens");
        let options = &spec.options;
        // Every micro-batch makes every pass of every stage, once.
        let micro_batches = options.gradient_accumulation * options.device_iterations;
        let passes = if spec.model.training { 2 } else { 1 };
        let turns = marks(&report, MarkKind::Stage).len() as u64;
        let compiled = compile(&spec).expect("compiles again");
        let stages = compiled.placement.stages.len() as u64;
        prop_assert_eq!(turns, micro_batches * passes * stages);
        // No step of a lane begins before the one before it ends: nobody waits for ever.
        let trace = report.trace().expect("readable").expect("executed");
        for info in trace.lanes() {
            let lane = trace.lane_of(info.ipu, info.sub_lane).expect("lane");
            let mut end = 0;
            for step in lane.steps_in(trace.range(), usize::MAX).expect("steps") {
                prop_assert!(step.range.start >= Cycles(end));
                end = step.range.end.0;
            }
        }
        // No variable of one IPU lies on two; code and the like do.
        for variable in &compiled.compilation.variables {
            if variable.shape.is_empty() {
                continue;
            }
            let target = &compiled.compilation.target;
            let mut ipus: Vec<IpuId> = variable
                .tiles
                .iter()
                .map(|(range, _)| target.ipu_of_tile(range.first))
                .collect();
            ipus.dedup();
            prop_assert_eq!(ipus.len(), 1, "{}", &variable.name);
        }
    }
}
