//! Costs of all operators over a grid of sizes. No operator takes far more than the same operator
//! on larger operands, or far more than moving its operands.

use super::OperatorCases;
use crate::graph_lowering::GraphLowering;
use crate::operators::LoweringContext;
use crate::poplin::PlanCache;
use crate::poplin::planner::PoplibsOptions;
use crate::shape::{DType, TensorRole};
use crate::targets::{IpuTarget, MK2};
use std::sync::LazyLock;
use tilescope_test_tiers::up_to;

const BATCHES: [u64; 4] = [1, 33, 2, 5];
const ROWS: [u64; 4] = [2, 197, 7, 50];
const COLUMNS: [u64; 6] = [65, 192, 3, 768, 13, 64];

/// Rows with a multiple of this number of columns are whole vectors of a tile's share.
const WHOLE_VECTORS: u64 = 64;

/// The largest ratio of an operator's cycles to those on larger operands. poplibs' reductions of
/// rows that end inside a vector use the general vertex, which takes ten times as long.
const MOST_OF_LARGER: f64 = 10.5;

/// The largest ratio if rows are whole vectors: arg-extrema of short rows use few tiles.
const MOST_OF_LARGER_IN_VECTORS: f64 = 4.6;

/// A ratio above this is unusual. At most a share of `MOST_UNUSUAL` of the pairs of sizes with
/// whole vectors exceeds it.
const UNUSUAL: f64 = 1.5;
const MOST_UNUSUAL: f64 = 0.015;

/// The largest ratio of an operator's cycles to those of its bytes, of which a tile moves
/// [`BYTES_PER_CYCLE`].
const MOST_OF_ROOFLINE: f64 = 20.0;
const BYTES_PER_CYCLE: f64 = 4.0;

/// Cycles of starting a phase and of its sync, and of a vertex on one vector.
const PHASE: f64 = 500.0;
const SMALLEST: f64 = 3000.0;

/// Operators that take longer than [`MOST_OF_ROOFLINE`] allows, with the reason.
const SLOW: &[(&str, &str)] = &[
    ("UnaryOp(Tan)", "a library function: 5,100 to 5,700 cycles an element"),
    ("UnaryOp(Sin)", "a library function of floats"),
    ("UnaryOp(Cos)", "a library function of floats"),
    ("UnaryOp(Asin)", "a library function"),
    ("Power", "a library function"),
    ("Atan2", "a library function"),
    ("Remainder", "a library function"),
    ("RnnOp", "steps follow each other"),
    ("TopKOp", "rounds of a bitonic sort follow each other"),
    ("ArgExtremaOp", "at least 192 elements a tile"),
    ("ReduceOp", "the general vertex, element by element"),
    ("SoftmaxOp { axis: 1", "its reductions"),
    ("ScatterOp", "each tile looks for its rows among all"),
    ("MultiUpdateAddOp", "each tile looks for its rows among all"),
];

/// The cost of an operator on operands of one size.
struct SweptCost {
    label: String,
    size: [u64; 3],
    cycles: f64,
    bytes: f64,
    phases: usize,
}

impl SweptCost {
    fn of(size: [u64; 3], dtype: DType) -> Vec<Self> {
        let mut costs = Vec::new();
        for case in OperatorCases::of(size, dtype) {
            let graph = case.graph(TensorRole::Activation);
            let planning = PoplibsOptions::default();
            let plans = PlanCache::new();
            let machine = IpuTarget::all_tiles_of(MK2);
            let mut context =
                LoweringContext::new(&graph.tensors, machine, false, &planning, &plans);
            let mut lowering = GraphLowering::new(&graph, &mut context);
            let node = &graph.nodes[0];
            let work = lowering.lower(node).expect("lowers").work.clone();
            // Repeated operands are read for every element of the result.
            let made: u64 = node.outputs.iter().map(|id| graph.tensor(*id).ty.elements().0).sum();
            let mut bytes = 0;
            for tensor in node.inputs.iter().chain(&node.outputs) {
                let ty = &graph.tensor(*tensor).ty;
                bytes += ty.elements().0.max(made) * ty.dtype.bytes().0;
            }
            costs.push(Self {
                label: case.label(),
                size,
                cycles: work.cycles(&MK2).as_f64(),
                bytes: bytes as f64,
                phases: work.phases().len(),
            });
        }
        costs
    }

    fn is_smaller_than(&self, other: &Self) -> bool {
        let mut axes = self.size.iter().zip(&other.size);
        self.size != other.size && axes.all(|(one, other)| one <= other)
    }

    fn has_whole_vectors(&self) -> bool {
        self.size[2].is_multiple_of(WHOLE_VECTORS)
    }

    fn is_known_to_be_slow(&self) -> bool {
        SLOW.iter().any(|(operator, _)| self.label.contains(operator))
    }

    /// The most cycles that the operator may take.
    fn limit(&self) -> f64 {
        let moved = self.bytes / (MK2.tiles as f64 * BYTES_PER_CYCLE);
        SMALLEST + PHASE * self.phases as f64 + MOST_OF_ROOFLINE * moved
    }
}

/// Operators on halves and on floats, by size, then in the order of [`OperatorCases`].
static SWEPT: LazyLock<[Vec<Vec<SweptCost>>; 2]> =
    LazyLock::new(|| [DType::Half, DType::Float].map(sweep));

fn sweep(dtype: DType) -> Vec<Vec<SweptCost>> {
    let mut swept = Vec::new();
    for batch in BATCHES.into_iter().take(up_to(2)) {
        for rows in ROWS.into_iter().take(up_to(2)) {
            for columns in COLUMNS.into_iter().take(up_to(4)) {
                swept.push(SweptCost::of([batch, rows, columns], dtype));
            }
        }
    }
    swept
}

#[test]
fn no_operator_takes_far_more_than_on_larger_operands_or_than_its_roofline() {
    for swept in &*SWEPT {
        let mut pairs = 0;
        let mut unusual = 0;
        let mut faults = Vec::new();
        for of in swept {
            for (operator, one) in of.iter().enumerate() {
                if one.cycles > one.limit() && !one.is_known_to_be_slow() {
                    faults.push(format!(
                        "{}: {} cycles, {} at most",
                        one.label,
                        one.cycles,
                        one.limit()
                    ));
                }
                for larger in swept {
                    let larger = &larger[operator];
                    if !one.is_smaller_than(larger) {
                        continue;
                    }
                    let factor = one.cycles / larger.cycles.max(1.0);
                    let in_vectors = one.has_whole_vectors() && larger.has_whole_vectors();
                    let mut most = MOST_OF_LARGER;
                    if in_vectors {
                        most = MOST_OF_LARGER_IN_VECTORS;
                        pairs += 1;
                        unusual += usize::from(factor > UNUSUAL);
                    }
                    if factor > most {
                        faults.push(format!(
                            "{}: {} cycles, {} of {:?}",
                            one.label, one.cycles, larger.cycles, larger.size
                        ));
                    }
                }
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        let share = unusual as f64 / pairs as f64;
        assert!(share < MOST_UNUSUAL, "{unusual} of {pairs} pairs");
    }
}

/// Every listed reason is needed by an operator.
#[test]
fn slow_operators_are_slow() {
    for (operator, reason) in SLOW {
        let mut costs = SWEPT.iter().flatten().flatten();
        let needs = costs.any(|cost| cost.label.contains(operator) && cost.cycles > cost.limit());
        assert!(needs, "{operator}: {reason}");
    }
}
