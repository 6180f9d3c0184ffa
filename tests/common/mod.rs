//! Reports for tests, simulated once.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tilescope_report::Report;
use tilescope_sim::graph::GraphBuilder;
use tilescope_sim::operators::LoweringContext;
use tilescope_sim::operators::Operator;
use tilescope_sim::poplar::work::OperationWork;
use tilescope_sim::poplin::planner::{PlanCache, PoplibsOptions};
use tilescope_sim::shape::{DType, TensorInfo, TensorRole};
use tilescope_sim::simulate;
use tilescope_sim::spec::{Spec, SpecSource};
use tilescope_sim::targets::IpuTarget;

/// A spec by name or file, with overrides.
pub(crate) fn spec(name: &str, overrides: &[&str]) -> Spec {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let source = SpecSource::find(name, &overrides).expect("spec exists");
    Spec::build(&source).expect("spec is sane")
}

/// Simulates a spec into `directory` and gives the report file.
pub(crate) fn report_file(spec: &Spec, directory: &Path) -> PathBuf {
    simulate(spec, directory, |_| ()).expect("simulates")
}

/// Simulates a spec and opens the report; the directory must outlive it.
pub(crate) fn report(name: &str, overrides: &[&str]) -> (Report, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = report_file(&spec(name, overrides), directory.path());
    (Report::open(&file).expect("opens"), directory)
}

/// What one operator alone does to operands of these shapes and types, all with one role.
pub(crate) fn lowered(
    machine: IpuTarget,
    role: TensorRole,
    operator: impl Operator + 'static,
    operands: &[(impl AsRef<[u64]>, DType)],
    training: bool,
) -> OperationWork {
    let mut builder = GraphBuilder::new();
    builder.block("block");
    let tensors: Vec<_> = operands
        .iter()
        .enumerate()
        .map(|(number, (shape, dtype))| {
            let ty = TensorInfo::new(shape.as_ref().to_vec(), *dtype);
            builder.tensor(&format!("operand{number}"), ty, role)
        })
        .collect();
    builder.apply_all("node", operator, &tensors).expect("operands fit");
    let graph = builder.finish();
    let plans = PlanCache::new();
    let planning = PoplibsOptions::default();
    let mut lowering = LoweringContext::new(&graph.tensors, machine, training, &planning, &plans);
    graph.nodes[0].operator.lower(&mut lowering, &graph.nodes[0].operands()).expect("lowers").work
}

/// Runs the program without a display.
pub(crate) fn tilescope(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .args(arguments)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("WAYLAND_SOCKET")
        .output()
        .expect("the program starts")
}

/// What a command printed on stdout.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a command printed on stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
