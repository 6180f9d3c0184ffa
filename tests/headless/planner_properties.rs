//! Invariants of every plan and its lowering, on random shapes.

use proptest::prelude::*;
use tilescope_report::units::{Bytes, Cycles, TileId};
use tilescope_sim::poplar::work::{OperationWork, WorkPhaseKind};
use tilescope_sim::poplin::PlanCache;
use tilescope_sim::poplin::conv;
use tilescope_sim::poplin::conv::{ConvPassOperands, OperandSource};
use tilescope_sim::poplin::planner::{
    ConvOptions, ConvPass, ConvPlan, ConvTrainingPlans, MemoryBound, PoplibsOptions, plan,
    plan_convolution, plan_fully_connected,
};
use tilescope_sim::poplin::{ConvParams, FieldDim, OperandTransform, OutputTransform};
use tilescope_sim::shape::DType;
use tilescope_sim::specification::Proportion;
use tilescope_sim::targets::IpuTarget;
use tilescope_sim::targets::{CHIPS, find_chip};
use tilescope_test_tiers::{cases, long_cases};

/// Options of a forward pass in training, with that share of memory and those partials.
fn training_options(share: f64, partials_type: DType) -> ConvOptions {
    let available_memory_proportion = Proportion::new(share);
    let library =
        PoplibsOptions { available_memory_proportion, partials_type, ..PoplibsOptions::default() };
    ConvOptions { pass: ConvPass::TrainingForward, library }
}

fn machine(name: &str) -> IpuTarget {
    IpuTarget::all_tiles_of(*find_chip(name).expect("a chip"))
}

fn any_machine() -> impl Strategy<Value = IpuTarget> {
    (0..CHIPS.len(), 1..1500u64).prop_map(|(index, tiles)| {
        let whole = IpuTarget::all_tiles_of(*CHIPS[index]);
        // All tiles in half of the cases.
        IpuTarget {
            tiles: if tiles % 2 == 0 { whole.tiles } else { whole.tiles.min(tiles as u32) },
            ..whole
        }
    })
}

fn any_type() -> impl Strategy<Value = DType> {
    prop_oneof![Just(DType::Half), Just(DType::Float)]
}

prop_compose! {
    fn any_matmul()(
        data_type in any_type(),
        groups in prop_oneof![Just(1u64), 2..20u64],
        [m, k, n] in [1..2_000u64, 1..2_000u64, 1..2_000u64],
    ) -> ConvParams {
        ConvParams::matmul(data_type, groups, m, k, n)
    }
}

prop_compose! {
    fn any_dim()(
        input in 1..64u64,
        kernel in prop_oneof![Just(1u64), Just(3u64), 1..8u64],
        padding in 0..4u64,
        stride in prop_oneof![Just(1u64), 1..4u64],
    ) -> FieldDim {
        FieldDim::new(input.max(kernel), kernel).padded(padding.min(kernel / 2), padding.min(kernel / 2)).strided(stride)
    }
}

prop_compose! {
    fn any_convolution()(
        data_type in any_type(),
        batch in 1..9u64,
        conv_groups in prop_oneof![Just(1u64), Just(1u64), 2..40u64],
        [in_channels, out_channels] in [1..130u64, 1..130u64],
        dims in prop::collection::vec(any_dim(), 1..=2),
    ) -> ConvParams {
        ConvParams {
            input_type: data_type,
            output_type: data_type,
            batch,
            conv_groups,
            in_channels,
            out_channels,
            dims,
        }
    }
}

/// Groups of few channels, for the matrix engine's mode that slides over rows with several kernel
/// columns.
fn grouped_convolution() -> impl Strategy<Value = ConvParams> {
    (any_convolution(), 1..5u64, 4..64u64).prop_map(|(params, channels, conv_groups)| ConvParams {
        input_type: DType::Half,
        output_type: DType::Half,
        conv_groups,
        in_channels: channels,
        out_channels: channels,
        dims: params.dims.iter().map(|dim| FieldDim::new(dim.input.max(4), 4)).collect(),
        ..params
    })
}

fn any_params() -> impl Strategy<Value = ConvParams> {
    prop_oneof![any_matmul(), any_convolution()]
}

fn training_plans(machine: &IpuTarget, params: &ConvParams, proportion: f64) -> ConvTrainingPlans {
    let options = training_options(proportion, DType::Float);
    plan_convolution(machine, params, &options).expect("a plan")
}

fn works(machine: &IpuTarget, plans: &ConvTrainingPlans) -> [OperationWork; 3] {
    let elsewhere = OperandSource::SameInnermost { group: 16 };
    let transposed = OperandSource::Transposed { group: 16, tiles: machine.tiles.into() };
    [
        (&plans.forward, ConvPassOperands::forward(transposed, elsewhere)),
        (&plans.backward, ConvPassOperands::backward(plans, elsewhere)),
        (&plans.update, ConvPassOperands::weight_update(plans)),
    ]
    .map(|(plan, operands)| conv::lower(machine, plan, &operands).work)
}

/// True if the transform keeps every multiply-accumulate: it neither turns padding into operands
/// nor combines groups, which multiplies with zeros.
fn keeps_macs(plan: &ConvPlan) -> bool {
    let transform = plan.transform();
    let unpadded = |dim: &usize| {
        let dim = &plan.transformed.view.dims[*dim];
        [dim.input_transform, dim.kernel_transform] == [OperandTransform::NONE; 2]
    };
    transform.expand_dims.iter().all(unpadded)
        && transform.flatten_to_channels.is_empty()
        && transform.combine_groups == 1
}

fn check_work(machine: &IpuTarget, work: &OperationWork) -> Result<(), TestCaseError> {
    let phases = work.phases();
    for (phase, _) in &phases {
        match &phase.kind {
            WorkPhaseKind::Exchange { traffic, cycles, .. } => {
                let sum = |of: fn(&tilescope_report::TileTraffic) -> u64| traffic.map(of).total();
                let received = sum(|tile| tile.bytes_in.0);
                prop_assert_eq!(received, sum(|tile| tile.bytes_delivered.0), "{}", phase.name);
                let sent = sum(|tile| tile.bytes_out.0);
                prop_assert!(sent <= received && (sent > 0 || received == 0), "{}", phase.name);
                prop_assert_eq!(traffic.tile_count(), cycles.tile_count());
                prop_assert!(traffic.get(TileId(machine.tiles)).is_none());
            }
            WorkPhaseKind::Compute { cycles, vertices } => {
                prop_assert!(cycles.max() > Cycles::ZERO, "{}", phase.name);
                for (tiles, _) in cycles.iter() {
                    let has = |tile| vertices.iter().any(|vertex| vertex.count.get(tile).is_some());
                    prop_assert!(has(tiles.first), "{} on tile {}", phase.name, tiles.first);
                }
            }
        }
    }
    for temporary in &work.temporaries {
        let live = &temporary.live;
        prop_assert!(live.start < live.end && live.end <= phases.len(), "{}", temporary.name);
        prop_assert!(temporary.bytes.total() > Bytes::ZERO, "{}", temporary.name);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn vertices_do_the_work_of_the_operation(
        machine in any_machine(),
        params in any_params(),
        proportion in 0.05..1.0,
    ) {
        let plans = training_plans(&machine, &params, proportion);
        for plan in [&plans.forward, &plans.backward, &plans.update] {
            let lowered = conv::lowered_macs(plan);
            prop_assert_eq!(lowered, plan.transformed.shape.macs());
            if keeps_macs(plan) {
                prop_assert_eq!(lowered, plan.params.macs());
            } else {
                prop_assert!(lowered >= plan.params.macs());
            }
        }
    }

    #[test]
    fn everything_lowered_is_consistent(
        machine in any_machine(),
        params in any_params(),
        proportion in 0.05..1.0,
    ) {
        let plans = training_plans(&machine, &params, proportion);
        for work in works(&machine, &plans) {
            check_work(&machine, &work)?;
        }
        for plan in [&plans.forward, &plans.backward, &plans.update] {
            let element = plan.params.input_type.bytes();
            let layouts = conv::planned_layouts(&machine, plan);
            prop_assert_eq!(layouts.input.bytes.total(), plan.params.input_elements() * element);
            prop_assert_eq!(layouts.weights.bytes.total(), plan.params.weight_elements() * element);
            // The tiles of a part have their sums, each element once.
            if plan.partition.out_channels_serial == 1 {
                let element = plan.params.output_type.bytes();
                let results = plan.transformed.shape.output_elements() * element;
                prop_assert_eq!(layouts.output.bytes.total(), results);
            }
        }
    }

    /// Vertices of a product take the planned time: there is no padding that a tile could skip.
    /// Sums of at most 16 are left out: they are stored in a narrower type, by another vertex than
    /// planned.
    #[test]
    fn products_take_the_planned_time(machine in any_machine(), params in any_matmul()) {
        let params = ConvParams { in_channels: params.in_channels + 16, ..params };
        let plan = plan(&machine, &params, &ConvOptions::new(ConvPass::MatMul)).expect("a plan");
        let work = conv::forward(&machine, &plan, OperandSource::Planned, OperandSource::Planned);
        let phases = work.phases();
        let vertices = phases.iter().find(|(phase, _)| phase.name.ends_with("/Convolve"));
        let cycles = match vertices.map(|(phase, _)| &phase.kind) {
            Some(WorkPhaseKind::Compute { cycles, .. }) => cycles.max(),
            _ => Cycles::ZERO,
        };
        let planned = plan.estimate.calculate;
        // The planner estimates the largest part. A smaller one may take slightly longer: workers
        // with equal shares wait for the one started last, and the loop of the 1x1 vertex begins at
        // three outputs.
        let near = 10 * cycles >= 9 * planned && 10 * cycles <= 11 * planned;
        prop_assert!(near, "{cycles} of {planned}");
    }

    #[test]
    fn fully_connected_layers_lower_too(machine in any_machine(), params in any_matmul()) {
        let options = ConvOptions::new(ConvPass::FcTrainingForward);
        let plans = plan_fully_connected(&machine, &params, &options).expect("a plan");
        for work in works(&machine, &plans) {
            check_work(&machine, &work)?;
        }
    }

    #[test]
    fn plans_stay_within_their_bound(
        machine in any_machine(),
        params in any_params(),
        proportion in 0.001..1.0,
    ) {
        let plans = training_plans(&machine, &params, proportion);
        let asked = Bytes((machine.chip.bytes_per_tile.as_f64() * proportion) as u64);
        for plan in [&plans.forward, &plans.backward, &plans.update] {
            prop_assert!(plan.tiles() <= u64::from(machine.tiles));
            match plan.bound {
                MemoryBound::Within(bytes) => prop_assert_eq!(bytes, asked),
                MemoryBound::Raised(bytes) => prop_assert!(bytes > asked),
                MemoryBound::None => {}
            }
            prop_assert!(plan.bound.bytes().is_none_or(|bytes| plan.estimate.temp_bytes <= bytes));
        }
    }

    #[test]
    fn more_memory_never_costs_cycles(
        params in any_params(),
        [less, more] in [0.001..1.0, 0.001..1.0],
    ) {
        let machine = machine("mk2");
        let planned = |proportion: f64| {
            let options = training_options(proportion, DType::Float);
            plan(&machine, &params, &options).expect("a plan")
        };
        let (a, b) = (planned(less), planned(more));
        // The bound that was used in the end: it may have been raised.
        let bytes = |plan: &ConvPlan| plan.bound.bytes().unwrap_or(Bytes::MAX);
        let (small, large) = if bytes(&a) <= bytes(&b) { (a, b) } else { (b, a) };
        prop_assert!(large.estimate.total_cycles <= small.estimate.total_cycles);
    }

    #[test]
    fn more_tiles_never_cost_cycles(params in any_params(), [a, b] in [1..1473u64, 1..1473u64]) {
        let cycles = |tiles: u64| {
            let machine = IpuTarget { tiles: tiles as u32, ..machine("mk2") };
            let plan = plan(&machine, &params, &ConvOptions::new(ConvPass::TrainingForward));
            plan.map(|plan| (plan.bound, plan.estimate.total_cycles)).expect("a plan")
        };
        let (few, many) = (cycles(a.min(b)), cycles(a.max(b)));
        if matches!((few.0, many.0), (MemoryBound::Within(_), MemoryBound::Within(_))) {
            prop_assert!(many.1 <= few.1);
        }
    }

    #[test]
    fn a_mirrored_convolution_costs_the_same(
        params in prop_oneof![any_convolution(), grouped_convolution()],
        [lower, upper] in [0..3u64, 0..3u64],
    ) {
        let machine = machine("mk2");
        let padded = |lower: u64, upper: u64| {
            let dims = params.dims.iter().map(|dim| {
                let most = dim.kernel - 1;
                FieldDim::new(dim.input, dim.kernel).padded(lower.min(most), upper.min(most))
            });
            let params = ConvParams { dims: dims.collect(), ..params.clone() };
            plan(&machine, &params, &ConvOptions::new(ConvPass::TrainingForward)).expect("a plan")
        };
        let (one, other) = (padded(lower, upper), padded(upper, lower));
        prop_assert_eq!(one.estimate, other.estimate);
    }

    #[test]
    fn a_turned_1x1_convolution_costs_the_same(params in any_convolution()) {
        let machine = machine("mk2");
        let dim = |size: u64| FieldDim::new(size, 1);
        let sizes = [params.dims[0].input, params.dims[params.dims.len() - 1].kernel + 9];
        let [wide, high] = [[sizes[0], sizes[1]], [sizes[1], sizes[0]]].map(|sizes| {
            let params = ConvParams { dims: sizes.map(dim).to_vec(), ..params.clone() };
            plan(&machine, &params, &ConvOptions::new(ConvPass::TrainingForward)).expect("a plan")
        });
        prop_assert_eq!(wide.estimate, high.estimate);
    }

    #[test]
    fn plans_do_not_change(machine in any_machine(), params in any_params()) {
        let options = ConvOptions::new(ConvPass::MatMul);
        let direct = plan(&machine, &params, &options).expect("a plan");
        let cache = PlanCache::new();
        let cached = std::thread::scope(|scope| {
            let threads = [0, 1].map(|_| scope.spawn(|| cache.plan(&machine, &params, &options)));
            threads.map(|thread| thread.join().expect("no panic").expect("a plan"))
        });
        prop_assert_eq!(&*cached[0], &direct);
        prop_assert_eq!(&*cached[1], &direct);
        let lowered = || conv::forward(&machine, &direct, OperandSource::Planned, OperandSource::SameInnermost { group: 16 });
        prop_assert_eq!(lowered(), lowered());
    }
}

/// Invalid shapes have an explanation.
#[test]
fn impossible_shapes_are_explained() {
    let machine = machine("mk2");
    let matmul = |m, k, n| ConvParams::matmul(DType::Half, 1, m, k, n);
    let field = |dim| ConvParams { dims: vec![dim], ..matmul(4, 16, 16) };
    let cases = [
        (matmul(0, 16, 16), "zero"),
        (matmul(16, 0, 16), "zero"),
        (matmul(u64::MAX, 16, 16), "too large"),
        (matmul(1 << 40, 1 << 40, 1 << 40), "too large"),
        (field(FieldDim::new(3, 5)), "kernel is larger"),
        (ConvParams { dims: Vec::new(), ..matmul(4, 16, 16) }, "one to three dimensions"),
    ];
    for (params, said) in cases {
        let planned = plan(&machine, &params, &ConvOptions::new(ConvPass::MatMul));
        let error = planned.expect_err("no plan").to_string();
        assert!(error.contains(said), "{params:?}: {error}");
    }
    let none = IpuTarget { tiles: 0, ..machine };
    let error = plan(&none, &matmul(16, 16, 16), &ConvOptions::new(ConvPass::MatMul));
    assert!(error.expect_err("no plan").to_string().contains("tiles"));
}

/// An operand with fewer elements than tiles is sent by the tiles where it is.
#[test]
fn small_operands_are_sent_from_their_own_tiles() {
    let machine = machine("mk2");
    let params = ConvParams {
        input_type: DType::Float,
        output_type: DType::Float,
        batch: 1,
        conv_groups: 1,
        in_channels: 10,
        out_channels: 61,
        dims: vec![FieldDim::new(1, 1)],
    };
    for work in works(&machine, &training_plans(&machine, &params, 0.05)) {
        check_work(&machine, &work).expect("all that is received is sent");
    }
}

/// Every element type, including those without multiplication.
const TYPES: &[DType] =
    &[DType::Float, DType::Half, DType::Quarter, DType::Int, DType::UInt8, DType::Bool];

/// Critical sizes: zero, one, odd ones, powers of two up to the largest.
fn any_size() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 1..40u64,
        2 => Just(1u64),
        1 => Just(0u64),
        1 => (0..64u32).prop_map(|bits| 1u64 << bits),
        1 => (0..64u32).prop_map(|bits| (1u64 << bits).wrapping_sub(1)),
        1 => any::<u64>(),
    ]
}

fn small_size() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..3u64, 1 => any_size()]
}

prop_compose! {
    fn absurd_transform()(
        [truncation_lower, truncation_upper] in [small_size(), small_size()],
        dilation in prop_oneof![4 => Just(1u64), 1 => any_size()],
        [padding_lower, padding_upper] in [small_size(), small_size()],
        flip in any::<bool>(),
    ) -> OperandTransform {
        OperandTransform {
            truncation_lower,
            truncation_upper,
            dilation,
            padding_lower,
            padding_upper,
            flip,
        }
    }
}

prop_compose! {
    fn absurd_dim()(
        [input, kernel] in [any_size(), any_size()],
        [input_transform, kernel_transform] in [absurd_transform(), absurd_transform()],
        [truncation_lower, truncation_upper] in [small_size(), small_size()],
        stride in prop_oneof![4 => Just(1u64), 1 => any_size()],
        [padding_lower, padding_upper] in [small_size(), small_size()],
        plain in any::<bool>(),
    ) -> FieldDim {
        if plain {
            return FieldDim::new(input, kernel.min(input));
        }
        FieldDim {
            input,
            kernel,
            input_transform,
            kernel_transform,
            output_transform: OutputTransform {
                truncation_lower,
                truncation_upper,
                stride,
                padding_lower,
                padding_upper,
            },
        }
    }
}

prop_compose! {
    fn absurd_params()(
        types in [0..TYPES.len(), 0..TYPES.len()],
        [batch, conv_groups] in [any_size(), any_size()],
        [in_channels, out_channels] in [any_size(), any_size()],
        dims in prop::collection::vec(absurd_dim(), 0..=4),
    ) -> ConvParams {
        let [input_type, output_type] = types.map(|index| TYPES[index]);
        ConvParams { input_type, output_type, batch, conv_groups, in_channels, out_channels, dims }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: long_cases(250), failure_persistence: None, ..ProptestConfig::default() })]

    /// For any shape, planning and lowering end without a panic, with a plan or an error.
    #[test]
    fn absurd_shapes_do_no_harm(
        params in absurd_params(),
        chip in 0..CHIPS.len(),
        tiles in prop_oneof![4 => 1..1473u64, 1 => any_size()],
        proportion in prop_oneof![4 => 0.0..2.0, 1 => any::<f64>()],
        partials in 0..TYPES.len(),
    ) {
        let tiles = u32::try_from(tiles).unwrap_or(u32::MAX);
        let machine = IpuTarget { tiles, ..IpuTarget::all_tiles_of(*CHIPS[chip]) };
        let options = training_options(proportion, TYPES[partials]);
        if let Ok(plans) = plan_convolution(&machine, &params, &options) {
            works(&machine, &plans);
            plans.forward.describe();
        }
        if let Ok(plans) = plan_fully_connected(&machine, &params, &options) {
            works(&machine, &plans);
        }
    }
}
