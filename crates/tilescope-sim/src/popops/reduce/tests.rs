use super::*;
use crate::poplar::work::WorkPhaseKind;
use crate::poputil::tensor_layout::TensorLayout;
use crate::targets::MK2;
use proptest::prelude::*;
use tilescope_report::units::{Cycles, Elements, TileId};
use tilescope_test_tiers::cases;

struct ReductionOutcome {
    work: OperationWork,
    results: TileRuns<Elements>,
}

fn add_reduction(
    work: &mut OperationWork,
    input: &TileRuns<Elements>,
    (dims, operation, dtype, tiles): (&[ReduceDim], ReduceOperation, DType, u32),
) -> Result<TileRuns<Elements>, ReduceError> {
    let reduction = ReductionRequest {
        name: "reduce",
        operation,
        dims,
        input,
        dtype,
        output: dtype,
        result: ReduceResultUse::PLAIN,
        output_mapping: None,
        tiles,
        speed: BytesPerCycle(4),
    };
    add(work, &reduction)
}

fn reduce(
    dims: &[ReduceDim],
    operation: ReduceOperation,
    dtype: DType,
    tiles: u32,
) -> ReductionOutcome {
    let elements = Elements(dims.iter().map(|dim| dim.size).product());
    let input = TensorLayout::linear(elements, dtype.bytes(), tiles).elements;
    let mut work = OperationWork::default();
    let results = add_reduction(&mut work, &input, (dims, operation, dtype, tiles));
    ReductionOutcome { work, results: results.expect("a reduction") }
}

fn cycles(work: &OperationWork) -> Cycles {
    work.cycles(&MK2)
}

fn dim(size: u64, reduced: bool) -> ReduceDim {
    ReduceDim { size, reduced }
}

#[test]
fn whole_rows_on_a_tile_need_no_exchange() {
    let done = reduce(&[dim(1024, false), dim(64, true)], ReduceOperation::Max, DType::Half, 1024);
    assert_eq!(done.work.phases().len(), 1);
    assert_eq!(done.results.total(), Elements(1024));
}

#[test]
fn a_full_sum_ends_on_one_tile() {
    let done = reduce(&[dim(1 << 20, true)], ReduceOperation::Add, DType::Float, 1472);
    assert_eq!((done.results.total(), done.results.tile_count()), (Elements(1), 1));
}

#[test]
fn nothing_to_reduce_is_a_cast() {
    let done = reduce(&[dim(64, false), dim(1, true)], ReduceOperation::Add, DType::Half, 16);
    assert_eq!(done.work.phases().len(), 1);
    assert_eq!(done.results.total(), Elements(64));
}

#[test]
fn impossible_shapes_are_errors() {
    let empty = [dim(0, true), dim(4, false)];
    let huge = [dim(u64::MAX, true), dim(4, false)];
    let short = [dim(8, true)];
    let cases: [(&[ReduceDim], ReduceError); 3] = [
        (&empty, ReduceError::Empty),
        (&huge, ReduceError::TooLarge),
        (&short, ReduceError::Mismatch { held: Elements(4), expected: Elements(8) }),
    ];
    for (dims, expected) in cases {
        let input = TensorLayout::linear(Elements(4), DType::Half.bytes(), 4).elements;
        let of = (dims, ReduceOperation::Add, DType::Half, 4);
        assert_eq!(add_reduction(&mut OperationWork::default(), &input, of), Err(expected));
    }
}

#[test]
fn large_tensors_are_planned_quickly() {
    let start = std::time::Instant::now();
    reduce(&[dim(64, true), dim(4_000_000, false)], ReduceOperation::Add, DType::Half, 1472);
    reduce(&[dim(1_000_000, true), dim(64, false)], ReduceOperation::Add, DType::Half, 1472);
    reduce(
        &[dim(32, true), dim(64, false), dim(12_544, true)],
        ReduceOperation::Add,
        DType::Half,
        1472,
    );
    assert!(start.elapsed().as_secs_f64() < 5.0, "{:?}", start.elapsed());
}

const OPERATIONS: [ReduceOperation; 6] = [
    ReduceOperation::Add,
    ReduceOperation::SquareAdd,
    ReduceOperation::Multiply,
    ReduceOperation::Max,
    ReduceOperation::Min,
    ReduceOperation::LogAdd,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(250)))]
    #[test]
    fn every_result_is_made_once_and_sent_bytes_arrive(
        dims in prop::collection::vec((1u64..40, any::<bool>()), 1..5),
        operation in 0usize..6,
        half: bool,
        tiles in 1u32..200,
    ) {
        let dims: Vec<ReduceDim> = dims.into_iter().map(|(size, reduced)| dim(size, reduced)).collect();
        let dtype = if half { DType::Half } else { DType::Float };
        let done = reduce(&dims, OPERATIONS[operation], dtype, tiles);
        let kept = dims.iter().filter(|dim| !dim.reduced).map(|dim| dim.size).product();
        prop_assert_eq!(done.results.total(), Elements(kept));
        prop_assert!(done.results.iter().all(|(range, _)| range.end <= TileId(tiles)));
        for (phase, _) in done.work.phases() {
            match &phase.kind {
                WorkPhaseKind::Exchange { traffic, .. } => {
                    let received = traffic.map(|tile| tile.bytes_in).total();
                    prop_assert_eq!(received, traffic.map(|tile| tile.bytes_delivered).total());
                    // Each partial result has one reader.
                    prop_assert_eq!(received, traffic.map(|tile| tile.bytes_out).total());
                }
                WorkPhaseKind::Compute { cycles, vertices } => {
                    let busy = vertices.iter().map(|vertex| vertex.count.tile_count()).max();
                    prop_assert!(busy.unwrap_or(0) > 0 && !cycles.max().is_zero());
                }
            }
        }
        let phases = done.work.phases().len();
        prop_assert!(done.work.temporaries.iter().all(|kept| kept.live.start < phases));
    }

    #[test]
    fn more_rows_cost_about_as_much_or_more(rows in 2u64..200, vectors in 1u64..16, half: bool) {
        // Whole vectors only: others may need vertices that take ten times as long. A single row is
        // copied, not summed.
        let dtype = if half { DType::Half } else { DType::Float };
        let columns = 8 * vectors;
        let few = reduce(&[dim(rows, true), dim(columns, false)], ReduceOperation::Add, dtype, 64);
        let many = reduce(&[dim(rows * 4, true), dim(columns, false)], ReduceOperation::Add, dtype, 64);
        // Splitting a tile's rows over workers may make a longer reduction a little faster.
        prop_assert!(cycles(&many.work) * 5 >= cycles(&few.work) * 4);
    }
}
