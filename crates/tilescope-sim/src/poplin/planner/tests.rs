//! Tests that the search is exact, by comparison with all splits, and that the parts of a split add
//! up to the operation.

use super::cost_model::{ConvCostModel, ConvPartSize};
use super::vertex_candidates;
use super::*;
use crate::targets::MK2;
use proptest::prelude::*;
use tilescope_report::units::Cycles;
use tilescope_test_tiers::cases;

/// Numbers of parts of an axis of `grains` grains that are the smallest to yield their largest
/// part.
fn parts(grains: u64, most: u64) -> impl Iterator<Item = u64> + Clone {
    (1..=most.min(grains))
        .filter(move |parts| *parts == 1 || grains.div_ceil(*parts) < grains.div_ceil(parts - 1))
}

/// Pairs of parallel and serial parts. The serial ones divide the unpadded channels.
fn channel_parts(grains: u64, channels: u64, most: u64) -> Vec<(u64, u64)> {
    let all = parts(grains, most * most).collect::<Vec<_>>();
    let pairs = (1..=most).flat_map(|serial| (1..=most).map(move |parallel| (parallel, serial)));
    pairs
        .filter(|(parallel, serial)| {
            channels.is_multiple_of(*serial) && all.contains(&(parallel * serial))
        })
        .collect()
}

/// All splits of a model that has one plan for each axis, on at most `tiles` tiles.
fn splits(candidate: &ConvPlanCandidate, tiles: u64) -> Vec<ConvPartition> {
    let ConvCostModel { whole, grain, dims, field_grain, .. } = candidate.model;
    let mut found = Vec::new();
    let inputs = channel_parts(
        whole.in_channels / grain.in_channels,
        candidate.serial_channels.in_channels,
        tiles,
    );
    let outputs = channel_parts(
        whole.out_channels / grain.out_channels,
        candidate.serial_channels.out_channels,
        tiles,
    );
    for (in_channels, in_channels_serial) in inputs {
        for &(out_channels, out_channels_serial) in &outputs {
            if in_channels_serial == 1 || out_channels_serial == 1 {
                found.push(ConvPartition {
                    in_channels,
                    in_channels_serial,
                    out_channels,
                    out_channels_serial,
                    ..ConvPartition::WHOLE
                });
            }
        }
    }
    let mut split_all = |count: u64, set: &dyn Fn(&mut ConvPartition, u64)| {
        let with = |split: &ConvPartition, parts: u64| {
            let mut split = *split;
            set(&mut split, parts);
            split
        };
        let split = found.iter().flat_map(|split| parts(count, tiles).map(|at| with(split, at)));
        found = split.filter(|split| split.tiles() <= tiles).collect();
    };
    split_all(whole.batch, &|split, parts| split.batch = parts);
    split_all(whole.groups / grain.groups, &|split, parts| split.groups = parts);
    for dim in 0..dims {
        let grain = if dim + 1 == dims { field_grain } else { 1 };
        split_all(whole.field[dim] / grain, &|split, parts| split.field[dim] = parts);
        if dim + 1 < dims {
            split_all(whole.kernel[dim], &|split, parts| split.kernel[dim] = parts);
        }
    }
    found
}

/// Cost of a split: fewer cycles win, then fewer bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SplitCost {
    cycles: Cycles,
    temp_bytes: Bytes,
}

/// Cost of a split of a single model.
fn cost(model: &ConvCostModel, split: &ConvPartition) -> Option<SplitCost> {
    let size: ConvPartSize = model.part_size(split);
    let calculate = model.compute_cycles(split, &size)?;
    let estimate = model.estimate(split, &size, calculate);
    Some(SplitCost { cycles: estimate.total_cycles, temp_bytes: estimate.temp_bytes })
}

/// The lowest costs of all splits of all candidates within `memory` bytes, up to the number that
/// the task requests.
fn cheapest(task: &ConvPlanningTask, memory: Bytes) -> Vec<SplitCost> {
    let mut found = Vec::new();
    for transformed in transforms::candidates(&task.params, &task.options, false) {
        let vertices =
            vertex_candidates::candidates(&transformed.shape, task.machine, &task.options, false);
        for vertex in vertices {
            let candidate = task.candidate(&transformed, vertex).expect("a shape");
            let candidate = candidate.expect("only joint plans lack vertices");
            if !candidate.model.suits_vertex() {
                continue;
            }
            let splits = splits(&candidate, task.machine.tiles.into());
            let costs = splits.iter().filter_map(|split| cost(&candidate.model, split));
            found.extend(costs.filter(|cost| cost.temp_bytes <= memory));
        }
    }
    found.sort();
    found.truncate(task.most);
    found
}

/// One pass of each kind that differs.
const PASSES: &[ConvPass] =
    &[ConvPass::MatMul, ConvPass::TrainingForward, ConvPass::TrainingWeightUpdate];

prop_compose! {
    fn small_dim()(
        input in prop_oneof![1..12u64, 20..80u64],
        kernel in 1..4u64,
        [lower, upper] in [0..2u64, 0..2u64],
        stride in 1..3u64,
    ) -> FieldDim {
        let padding = [lower, upper].map(|padding| padding.min(kernel / 2));
        FieldDim::new(input.max(kernel), kernel).padded(padding[0], padding[1]).strided(stride)
    }
}

prop_compose! {
    fn small_shape()(
        half in any::<bool>(),
        [batch, conv_groups] in [1..4u64, 1..3u64],
        [in_channels, out_channels] in [1..70u64, 1..70u64],
        dims in prop::collection::vec(small_dim(), 1..=2),
    ) -> ConvParams {
        let input_type = if half { DType::Half } else { DType::Float };
        ConvParams {
            input_type,
            output_type: input_type,
            batch,
            conv_groups,
            in_channels,
            out_channels,
            dims,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(160), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_split_beats_the_search(
        params in small_shape(),
        tiles in 1..9u64,
        pass in prop::sample::select(PASSES),
        tight in any::<bool>(),
        most in prop::sample::select(&[1, 10]),
    ) {
        let machine = IpuTarget { tiles: tiles as u32, ..IpuTarget::all_tiles_of(MK2) };
        let options = ConvOptions::new(pass);
        let task = ConvPlanningTask::new(&machine, &params, &options).expect("a sane shape");
        let task = ConvPlanningTask { most, ..task };
        let free = *cheapest(&task, Bytes::MAX).first().expect("a split");
        // Either a bound that excludes the best plan, or one without effect.
        let memory = if tight { free.temp_bytes - Bytes(1) } else { Bytes::MAX };
        let found = task.search(MemoryBound::Within(memory)).expect("a small search");
        let found = found.iter().map(|found| SplitCost {
            cycles: found.best.total_cycles,
            temp_bytes: found.best.temp_bytes,
        });
        prop_assert_eq!(found.collect::<Vec<_>>(), cheapest(&task, memory));
    }
}

/// Returns true if an estimate is the sum of its phases.
fn adds_up(of: &ConvPlanEstimate) -> bool {
    let once = [of.rearrange_before_slice, of.zero, of.cast];
    let each = [
        of.dynamic_slice,
        of.transform_copy,
        of.transform_exchange,
        of.input_exchange,
        of.weight_exchange,
        of.first_reduce_exchange,
        of.later_reduce_exchange,
        of.tile_transform,
        of.calculate,
        of.reduce,
        of.dynamic_update,
        of.add_in_place,
    ];
    let sum = |phases: &[Cycles]| -> Cycles { phases.iter().copied().sum() };
    of.total_cycles == sum(&once) + of.serial * sum(&each)
}

/// Models of every candidate for a shape.
fn models(task: &ConvPlanningTask) -> Vec<ConvPlanCandidate> {
    let transformed = transforms::candidates(&task.params, &task.options, false);
    let of_transform = |transformed: &TransformedConvParams| {
        let shape = &transformed.shape;
        let vertices = vertex_candidates::candidates(shape, task.machine, &task.options, false);
        let made = vertices.into_iter().map(|vertex| task.candidate(transformed, vertex));
        made.filter_map(|candidate| candidate.expect("a shape")).collect::<Vec<_>>()
    };
    transformed.iter().flat_map(of_transform).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() })]

    /// The whole as one part has all elements, and the parts of a split have no fewer.
    #[test]
    fn parts_hold_the_whole(params in small_shape(), pass in prop::sample::select(PASSES)) {
        let machine = IpuTarget { tiles: 8, ..IpuTarget::all_tiles_of(MK2) };
        let plain = |dim: &FieldDim| FieldDim::new(dim.input, dim.kernel);
        let params = ConvParams { dims: params.dims.iter().map(plain).collect(), ..params };
        let options = ConvOptions::new(pass);
        let task = ConvPlanningTask::new(&machine, &params, &options).expect("a sane shape");
        for candidate in models(&task) {
            let model = &candidate.model;
            let all = model.elements(&model.whole);
            let shape = &model.padded;
            prop_assert_eq!(all.inputs, shape.input_elements());
            prop_assert_eq!(all.weights, shape.weight_elements());
            prop_assert!(all.outputs >= shape.output_elements() && all.partials >= all.outputs);
            for split in splits(&candidate, machine.tiles.into()) {
                let size = model.part_size(&split);
                if let Some(calculate) = model.compute_cycles(&split, &size) {
                    prop_assert!(adds_up(&model.estimate(&split, &size, calculate)));
                }
                let part = model.elements(&size);
                let times = split.tiles() * split.serial();
                let users = [split.out_channels * split.out_channels_serial, split.batch * split.field_parts()];
                prop_assert!(part.inputs * (times / users[0]) >= all.inputs / split.kernel_parts());
                prop_assert!(part.weights * (times / users[1]) >= all.weights);
                prop_assert!(part.outputs * times / split.reduction_depth() >= all.outputs);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() })]

    /// With weights loaded 128 bits at a time no plan is estimated to take longer.
    #[test]
    fn wide_weight_loads_never_cost_cycles(
        params in small_shape(),
        tiles in 1..9u32,
        pass in prop::sample::select(PASSES),
    ) {
        let machine = IpuTarget { tiles, ..IpuTarget::all_tiles_of(MK2) };
        let estimate = |use_128bit_conv_unit_load: bool| {
            let mut options = ConvOptions::new(pass);
            options.library.use_128bit_conv_unit_load = use_128bit_conv_unit_load;
            plan(&machine, &params, &options).expect("a plan").estimate.total_cycles
        };
        prop_assert!(estimate(true) <= estimate(false));
    }
}
