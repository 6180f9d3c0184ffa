use super::*;
use crate::compile::{ProgramExtent, ProgramSource};
use crate::specification::{Spec, SpecSource};
use std::collections::BTreeMap;
use std::convert::Infallible;
use tilescope_report::units::Cycles;
use tilescope_report::{ProgramKind, StepOnIpu};

/// A sink that keeps everything.
#[derive(Default)]
struct CollectingSink {
    steps: Vec<ExecutionStep>,
    marks: Vec<TraceMark>,
}

impl StepSink for CollectingSink {
    type Error = Infallible;

    fn step(&mut self, step: &ExecutionStep) -> Result<(), Infallible> {
        self.steps.push(step.clone());
        Ok(())
    }

    fn mark(&mut self, mark: &TraceMark) -> Result<(), Infallible> {
        self.marks.push(mark.clone());
        Ok(())
    }
}

fn run_spec(name: &str, overrides: &[&str]) -> (CompiledProgram, CollectingSink) {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let source = SpecSource::find(name, &overrides).expect("spec");
    let spec = Spec::build(&source).expect("sane");
    let compiled = ProgramSource::new(&spec)
        .and_then(|source| source.compile(ProgramExtent::Whole))
        .expect("compiles");
    let mut collected = CollectingSink::default();
    let dry_run_summary = dry_run(&compiled, &spec);
    match run(&compiled, &spec, &dry_run_summary, &mut collected) {
        Ok(()) => {}
        Err(never) => match never {},
    }
    let bars: usize = collected.steps.iter().map(|step| step.ipus.len()).sum();
    assert_eq!(dry_run_summary.trace_bars, bars as u64, "the dry run counts what is run");
    (compiled, collected)
}

#[test]
fn steps_of_one_ipu_follow_each_other_without_gaps_or_overlap() {
    for execution in ["pipelined", "sharded"] {
        let (compiled, collected) = run_spec(
            "mnist_pipeline",
            &[&format!("options.execution={execution}"), "options.device_iterations=2"],
        );
        let mut clocks: BTreeMap<IpuId, u64> = BTreeMap::new();
        for step in &collected.steps {
            for on_ipu in &step.ipus {
                let clock = clocks.entry(on_ipu.ipu).or_default();
                assert_eq!(
                    on_ipu.from_max,
                    Cycles(*clock),
                    "{execution}: {:?}",
                    compiled.compilation.programs[step.program.index()]
                );
                assert!(on_ipu.from_min <= on_ipu.from_max && on_ipu.to_min <= on_ipu.to_max);
                assert!((0.0..=1.0).contains(&on_ipu.active_tile_balance));
                *clock = on_ipu.to_max.0;
            }
        }
        assert_eq!(clocks.len(), 4, "{execution}");
    }
}

#[test]
fn data_sent_by_one_ipu_are_received_by_another() {
    let (_, collected) = run_spec("mnist_pipeline", &["options.device_iterations=1"]);
    for step in collected.steps.iter().filter(|step| step.ipus.len() > 1) {
        let sum = |bytes: fn(&StepOnIpu) -> u64| step.ipus.iter().map(bytes).sum::<u64>();
        assert_eq!(sum(|on_ipu| on_ipu.bytes_in.0), sum(|on_ipu| on_ipu.bytes_out.0));
    }
}

#[test]
fn final_output_mode_sends_the_last_results_only() {
    let copies = |mode: &str| {
        let (compiled, collected) = run_spec(
            "mnist_pipeline",
            &[&format!("options.output_mode={mode}"), "options.device_iterations=2"],
        );
        let to_host = |step: &&ExecutionStep| {
            let program = &compiled.compilation.programs[step.program.index()];
            program.kind == ProgramKind::StreamCopyMid && program.name == "loss/copyToHost"
        };
        collected.steps.iter().filter(to_host).count()
    };
    assert_eq!((copies("all"), copies("final")), (20, 1));
}

#[test]
fn a_pipeline_without_accumulation_updates_after_every_backward_pass() {
    let (compiled, collected) = run_spec(
        "mnist_pipeline",
        &["options.gradient_accumulation=1", "options.device_iterations=12"],
    );
    let updates = collected.marks.iter().filter(|mark| mark.kind == MarkKind::Update).count();
    assert_eq!(updates, 4 * 12);
    assert!(compiled.compilation.notes.iter().any(|note| note.contains("stale")));
}

#[test]
fn the_report_names_the_source_of_the_pipeline_schedule() {
    let noted = |convention: &str| {
        let set = format!("options.stash_convention={convention}");
        run_spec("mnist_pipeline", &["options.device_iterations=1", &set]).0.compilation.notes
    };
    let popart = noted("popart");
    let guide = noted("memory_guide");
    let says = |notes: &[String], words: &[&str]| {
        notes.iter().any(|note| words.iter().all(|words| note.contains(words)))
    };
    assert!(says(&popart, &["hold 7, 5, 3, 1 micro-batches", "guide counts 9, 7, 5, 3"]));
    assert!(says(&guide, &["hold 9, 7, 5, 3 micro-batches", "sources count 7, 5, 3, 1"]));
}

#[test]
fn activations_that_stay_on_the_chip_are_reported() {
    let off_chip = "options.location.activations.on_chip=false";
    for (execution, stays) in [("sharded", true), ("phased", true), ("pipelined", false)] {
        let set = format!("options.execution={execution}");
        let sets = ["options.device_iterations=1", off_chip, &set];
        let notes = run_spec("mnist_pipeline", &sets).0.compilation.notes;
        let is_noted =
            notes.iter().any(|note| note.starts_with("Activations of B4 stay on the chip"));
        assert_eq!(is_noted, stays, "{execution}: {notes:?}");
    }
}
