//! Measures the time from the text of a spec to the report on disk, and the peak memory.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tilescope_benches::{peak_memory, program};
use tilescope_sim::compile;
use tilescope_sim::simulate;
use tilescope_sim::specification::{BUNDLED_SPECS, Spec, SpecSource};

fn spec(name: &str) -> Spec {
    let source = SpecSource::find(name, &[]).expect("bundled spec");
    Spec::build(&source).expect("sane spec")
}

fn bundled_specs(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("temporary directory");
    for bundled in BUNDLED_SPECS {
        let spec = spec(bundled.name);
        criterion.bench_function(&format!("compile {}", bundled.name), |bencher| {
            bencher.iter(|| compile(black_box(&spec)).expect("compiles"));
        });
        criterion.bench_function(&format!("simulate {}", bundled.name), |bencher| {
            bencher.iter(|| simulate(&spec, directory.path(), |_| ()).expect("simulates"));
        });
    }
}

/// Peak memory of the program, in KiB, while it simulates a spec into `directory`.
fn memory_of(program: &Path, spec: &str, directory: &Path) -> Option<u64> {
    let mut child = Command::new(program)
        .args(["simulate", spec, "-o"])
        .arg(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut most = None;
    while child.try_wait().ok()?.is_none() {
        most = most.max(peak_memory(child.id()));
        sleep(Duration::from_millis(5));
    }
    most
}

/// Prints the peak memory of each bundled spec; criterion measures only times.
fn peak_memories(_: &mut Criterion) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let program = program();
    for bundled in BUNDLED_SPECS {
        match memory_of(&program, bundled.name, directory.path()) {
            Some(kib) => println!("peak memory {}: {} MiB", bundled.name, kib / 1024),
            None => println!("peak memory {}: not known on this system", bundled.name),
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = peak_memories, bundled_specs
}
criterion_main!(benches);
