//! Measures the planning of one operation: cold, and from the cache.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tilescope_sim::poplin::planner::{
    ConvOptions, ConvPass, PlanSelection, PoplibsOptions, plan, plan_convolution,
    plan_fully_connected,
};
use tilescope_sim::poplin::{ConvParams, FieldDim, PlanCache};
use tilescope_sim::popops::multi_slice;
use tilescope_sim::popops::multi_slice::MultiSliceParams;
use tilescope_sim::shape::DType;
use tilescope_sim::targets::IpuTarget;
use tilescope_sim::targets::MK2;

/// A 3x3 convolution of 56x56 positions, 64 channels, four samples.
fn convolution() -> ConvParams {
    let dim = FieldDim::new(56, 3).padded(1, 1);
    ConvParams {
        input_type: DType::Half,
        output_type: DType::Half,
        batch: 4,
        conv_groups: 1,
        in_channels: 64,
        out_channels: 64,
        dims: vec![dim, dim],
    }
}

fn planning(criterion: &mut Criterion) {
    let machine = IpuTarget::all_tiles_of(MK2);
    let product = ConvParams::matmul(DType::Half, 1, 384, 1024, 4096);
    let field = convolution();
    let forward = ConvOptions::new(ConvPass::MatMul);
    let layer = ConvOptions::new(ConvPass::FcTrainingForward);
    let training = ConvOptions::new(ConvPass::TrainingForward);
    let table = MultiSliceParams { rows: 50_257, width: 768, lookups: 1024, dtype: DType::Half };
    criterion.bench_function("plan matmul, cold", |bencher| {
        bencher.iter(|| plan(&machine, black_box(&product), &forward));
    });
    criterion.bench_function("plan fully connected layer, cold", |bencher| {
        bencher.iter(|| plan_fully_connected(&machine, black_box(&product), &layer));
    });
    criterion.bench_function("plan convolution, cold", |bencher| {
        bencher.iter(|| plan_convolution(&machine, black_box(&field), &training));
    });
    criterion.bench_function("plan embedding, cold", |bencher| {
        bencher.iter(|| multi_slice::plan(black_box(&table), machine.tiles.into(), true));
    });
    let library =
        PoplibsOptions { plan_selection: PlanSelection::Simulated, ..PoplibsOptions::default() };
    let simulated = ConvOptions { library, ..layer };
    criterion.bench_function("plan fully connected layer by simulated cycles, cold", |bencher| {
        bencher
            .iter(|| PlanCache::new().fully_connected(&machine, black_box(&product), &simulated));
    });
    let plans = PlanCache::new();
    criterion.bench_function("plan matmul, memoised", |bencher| {
        bencher.iter(|| plans.plan(&machine, black_box(&product), &forward));
    });
    criterion.bench_function("plan fully connected layer, memoised", |bencher| {
        bencher.iter(|| plans.fully_connected(&machine, black_box(&product), &layer));
    });
    criterion.bench_function("plan convolution, memoised", |bencher| {
        bencher.iter(|| plans.convolution(&machine, black_box(&field), &training));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = planning
}
criterion_main!(benches);
