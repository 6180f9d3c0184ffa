//! How long a spec takes from text to report on disk.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tilescope::sim::compile::compile;
use tilescope::sim::simulate;
use tilescope::sim::spec::{BUNDLED, Spec, SpecSource};

fn spec(name: &str) -> Spec {
    let source = SpecSource::find(name, &[]).expect("bundled spec");
    Spec::build(&source).expect("sane spec")
}

fn bundled_specs(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("temporary directory");
    for bundled in BUNDLED {
        let spec = spec(bundled.name);
        criterion.bench_function(&format!("compile {}", bundled.name), |bencher| {
            bencher.iter(|| compile(black_box(&spec)).expect("compiles"));
        });
        criterion.bench_function(&format!("simulate {}", bundled.name), |bencher| {
            bencher.iter(|| simulate(&spec, directory.path(), |_| ()).expect("simulates"));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = bundled_specs
}
criterion_main!(benches);
