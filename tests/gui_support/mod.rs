//! Kinds of reports that views are tried on.

use crate::common;
use crate::report_support::{foreign::Foreign, random_report};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tilescope::report::ReportBuilder;
use tilescope::report::{Category, MarkKind, ProgramKind, Step, StepOnIpu};

/// Kinds of reports, and what each view says about them.
pub struct Variant {
    /// What is special about it.
    pub name: &'static str,
    /// Writes it into a directory.
    pub write: fn(&Path),
    /// Words that must be found in the execution trace.
    pub trace: &'static [&'static str],
    /// Words that must be found in the memory view.
    pub memory: &'static [&'static str],
    /// Words that must be found in the liveness view.
    pub liveness: &'static [&'static str],
}

/// Every kind.
pub const VARIANTS: &[Variant] = &[
    Variant {
        name: "simulated",
        write: |path| {
            std::fs::create_dir_all(path).expect("makes a directory");
            std::fs::copy(simulated(), path.join("profile.pop")).expect("copies");
        },
        trace: &["IPU 0", "IPU 3", "Overview of the run", "Group executions", "Marks"],
        memory: &["Memory by tile", "By memory region", "Not overlapped", "All tiles"],
        liveness: &["Liveness by program step", "Always live variables", "Total"],
    },
    Variant {
        name: "small",
        write: |path| drop(small().write(path).expect("writes")),
        trace: &["Convolve", "IPU 0", "Engine::run #0"],
        memory: &["Memory by tile"],
        liveness: &["Liveness by program step", "a/conv/weights"],
    },
    Variant {
        name: "compiled only",
        write: |path| {
            let mut report = small();
            report.steps.clear();
            report.marks.clear();
            report.write(path).expect("writes");
        },
        trace: &["Nothing was executed"],
        memory: &["Memory by tile"],
        liveness: &["Liveness by program step"],
    },
    Variant {
        name: "out of memory",
        write: |path| {
            let mut report = small();
            report.variable("giant", Category::Variable, 0..8, 700 * 1024, None);
            report.steps.clear();
            report.marks.clear();
            report.write(path).expect("writes");
        },
        trace: &["Nothing was executed"],
        memory: &["Memory by tile", "Overflowed"],
        liveness: &["Liveness by program step", "giant"],
    },
    Variant {
        name: "foreign",
        write: |path| {
            std::fs::create_dir_all(path).expect("makes a directory");
            Foreign::default().write(&path.join("profile.pop"));
        },
        trace: &["IPU 0", "IPU 1"],
        memory: &["Memory by tile"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "foreign, bare",
        write: |path| {
            std::fs::create_dir_all(path).expect("makes a directory");
            let without = ["memory_by_tile", "vars_info", "compute_sets"];
            let bare =
                Foreign { without_tables: without.to_vec(), nulls: true, ..Foreign::default() };
            bare.write(&path.join("profile.pop"));
        },
        trace: &["IPU 0"],
        memory: &["Memory"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "64 IPUs",
        write: |path| {
            let mut report = ReportBuilder::new(64, 16);
            let work = report.compute("layer/matmul", 100);
            report.root(ProgramKind::Sequence, "main", &[work]);
            report.run(work, 0..100).run(work, 100..250);
            report.write(path).expect("writes");
        },
        trace: &["IPU 0", "IPU 1"],
        memory: &["No memory recorded"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "names",
        write: |path| {
            let mut report = ReportBuilder::new(1, 8);
            let long = "x".repeat(500);
            let (long, wide) = (report.compute(&long, 50), report.compute("卷积层/前向/卷积", 50));
            let (bare, slashes) = (report.compute("", 50), report.compute("///", 50));
            report.root(ProgramKind::Sequence, "main", &[long, wide, bare, slashes]);
            report.run(long, 0..50).run(wide, 50..100).run(bare, 100..150).run(slashes, 150..200);
            report.variable(&"长".repeat(500), Category::Variable, 0..8, 1000, None);
            report.write(path).expect("writes");
        },
        trace: &["卷积层"],
        memory: &["Memory by tile"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "I/O tiles",
        write: |path| {
            let mut report = ReportBuilder::new(2, 8);
            report.parts.target.io_tiles_per_ipu = 2;
            let copy = report.program(ProgramKind::StreamCopyMid, "copyFromHost");
            let work = report.compute("a/b", 50);
            report.root(ProgramKind::Sequence, "main", &[copy, work]);
            for ipu in 0..2 {
                report.run_on(work, ipu, 0..600);
                let beside = report.bar(ipu, 100..500);
                let ipus = vec![StepOnIpu { sub_lane: 1, active_tiles: 2, ..beside }];
                report.steps.push(Step { program: copy, ipus });
            }
            report.write(path).expect("writes");
        },
        trace: &["IPU 0", "IPU 1", "StreamCopyMid"],
        memory: &["No memory recorded"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "far out",
        write: |path| {
            let mut report = ReportBuilder::new(1, 8);
            let copy = report.program(ProgramKind::StreamCopyBegin, "copyFromHost");
            let work = report.compute("a/b", 50);
            report.root(ProgramKind::Sequence, "main", &[copy, work]);
            report.run(copy, 1 << 46..(1 << 46) + 1_000_000);
            report.run(work, (1 << 46) + 1_000_000..(1 << 46) + 1_000_050);
            report.write(path).expect("writes");
        },
        trace: &["StreamCopyBegin"],
        memory: &["No memory recorded"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "anything",
        write: |path| drop(random_report(7, 300).write(path).expect("writes")),
        trace: &["IPU 0"],
        memory: &["Memory"],
        liveness: &["Liveness"],
    },
];

/// A simulated report; one for all tests.
fn simulated() -> &'static Path {
    static MADE: OnceLock<(PathBuf, tempfile::TempDir)> = OnceLock::new();
    let (path, _) = MADE.get_or_init(|| {
        let directory = tempfile::tempdir().expect("temporary directory");
        let spec = common::spec("mnist_pipeline", &["options.device_iterations=1"]);
        (common::report_file(&spec, directory.path()), directory)
    });
    path
}

/// A small report of two IPUs.
pub fn small() -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 8);
    let exchange = report.exchange("cs0_a/conv/Convolve/ExchangePre", 8);
    let work = report.compute("a/conv/Convolve", 500);
    let sync = report.program(ProgramKind::Sync, "External");
    report.root(ProgramKind::Sequence, "main", &[exchange, work, sync]);
    report.variable("a/conv/weights", Category::Variable, 0..8, 4000, None);
    report.variable("a/conv/out", Category::Variable, 2..6, 900, Some(0..2));
    report.live(exchange, 0).live(work, 3600);
    report.run(exchange, 0..100).run(work, 100..600).run(sync, 600..700).run(work, 700..1200);
    report.mark(MarkKind::Run, "Engine::run #0", 0..4);
    report
}
