//! Poolings, reductions and embeddings.

use super::case::OpBenchmarkCase;
use super::config::{RowConfig, RowProblem};
use super::passes::LayerPasses;
use crate::operators::{
    EmbeddingGoal, EmbeddingOp, MultiUpdateAddOp, PoolOp, PoolWindow, ReduceOp,
};
use crate::popnn::pool::PoolingType;
use crate::popops::reduce::{ReduceOperation, ReduceResultUse};
use crate::poputil::list_length;
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::gcd;
use crate::shape::{DType, TensorRole};
use crate::targets::Chip;

/// Builds a reduction of a linear tensor.
pub(crate) fn reduction(
    config: &RowConfig,
    chip: &'static Chip,
) -> Result<OpBenchmarkCase, RowProblem> {
    let mut case = OpBenchmarkCase::new(config, chip, false)?;
    let key = if config.text("type").is_some() { "type" } else { "data-type" };
    let dtype = config.dtype(key, DType::Half)?;
    config.require_key("shape")?;
    config.require_key("dims")?;
    let shape = config.numbers("shape")?;
    let dims = config.numbers("dims")?;
    if let Some(axis) = dims.iter().find(|axis| **axis >= shape.len() as u64) {
        return Err(RowProblem::Malformed(format!("dims: shape has no dimension {axis}")));
    }
    let axes: Vec<usize> = dims.iter().map(|axis| list_length(*axis)).collect();
    let name = config.text("operation").unwrap_or("ADD");
    let operation = ReduceOperation::find(name)
        .ok_or_else(|| RowProblem::Malformed(format!("operation: unknown reduction {name:?}")))?;
    let [update, scaled] = [config.flag("update", false)?, config.real("scale", 1.0)? != 1.0];
    let mut operands = vec![case.tensor("input", TensorRole::Input, &shape, dtype)?];
    if update {
        let kept = (0..shape.len()).filter(|axis| !axes.contains(axis));
        let kept: Vec<u64> = kept.map(|axis| shape[axis]).collect();
        operands.push(case.tensor("base", TensorRole::Accumulator, &kept, dtype)?);
    }
    let reduce = ReduceOp { operation, axes, result: ReduceResultUse { update, scaled } };
    let values = case.apply(true, "reduce", reduce, &operands)?;
    case.read(values);
    Ok(case)
}

/// Builds a pooling, its gradient, or both.
pub(crate) fn pooling(
    config: &RowConfig,
    chip: &'static Chip,
) -> Result<OpBenchmarkCase, RowProblem> {
    let passes = LayerPasses::from_config(config, LayerPasses::ALL)?;
    let mut case = OpBenchmarkCase::new(config, chip, passes.needs_gradient())?;
    let pool = pool(config)?;
    let field = config.field("field")?;
    let leading = [config.number("batch-size", 1)?, config.number("channels", 1)?];
    let dtype = config.dtype("data-type", DType::Half)?;
    let x = case.tensor("input", TensorRole::Input, &[&leading[..], &field].concat(), dtype)?;
    // If the channels cannot be split into such groups, the groups are the largest that divide
    // both.
    let group = gcd(config.number("fwd-chans-per-group", 1)?, leading[1]);
    if group > 1 {
        let ty = &case.graph().tensor(x).ty;
        let order = ElementOrder::grouped(&ty.shape, 1, group);
        let linear = TensorLayout::linear(ty.elements(), dtype.bytes(), case.tiles());
        case.place(x, TensorLayout { order, ..linear });
    }
    let y = case.apply(passes.forward, "fwd", pool.clone(), &[x])?;
    case.read(y);
    if passes.needs_gradient() {
        let gradient = case.like("gradient", TensorRole::Input, y);
        let operands =
            if pool.kind == PoolingType::Max { vec![x, y, gradient] } else { vec![gradient] };
        let back = pool.gradient(case.graph().tensor(x).ty.clone());
        let input = case.apply(true, "bwd", back, &operands)?;
        case.read(input);
    }
    Ok(case)
}

fn pool(config: &RowConfig) -> Result<PoolOp, RowProblem> {
    let dimensions = config.field("field")?.len();
    config.require_key("kernel")?;
    let kernel = config.per_dimension("kernel", 1, dimensions)?;
    let stride = config.per_dimension("stride", 1, dimensions)?;
    let [before, behind] = config.lower_and_upper("padding", dimensions)?;
    let kind = match config.text("pooling-type") {
        None | Some("max") => PoolingType::Max,
        Some("avg") => PoolingType::Average,
        Some("sum") => PoolingType::Sum,
        Some(other) => {
            return Err(RowProblem::Malformed(format!("pooling-type: unknown pooling {other:?}")));
        }
    };
    let windows = (0..dimensions).map(|d| PoolWindow {
        kernel: kernel[d],
        stride: stride[d],
        before: before[d],
        behind: behind[d],
    });
    Ok(PoolOp { kind, windows: windows.collect() })
}

/// Builds a gather of rows of a table, the update of those rows, or both.
pub(crate) fn embedding(
    config: &RowConfig,
    chip: &'static Chip,
) -> Result<OpBenchmarkCase, RowProblem> {
    let passes = LayerPasses::from_config(config, LayerPasses::ALL)?;
    if !passes.forward && !passes.update {
        return Err(RowProblem::Malformed("an embedding has no backward pass".to_string()));
    }
    let mut case = OpBenchmarkCase::new(config, chip, passes.update)?.with_code();
    config.require_key("shape")?;
    let [rows, width] = config.numbers("shape")?[..] else {
        return Err(RowProblem::Malformed("shape: expected rows and columns".to_string()));
    };
    let lookups = config.required("num-indices")?;
    let dtype = config.dtype("data-type", DType::Half)?;
    let table = case.tensor("table", TensorRole::Parameter, &[rows, width], dtype)?;
    let indices = case.tensor("indices", TensorRole::Input, &[lookups], DType::Int)?;
    // Without a download nothing reads the rows that were looked up.
    let gather = EmbeddingOp { goal: EmbeddingGoal::Memory, ..EmbeddingOp::default() };
    let found = case.apply(passes.forward, "gather", gather, &[table, indices])?;
    if passes.update {
        let added = case.like("rows", TensorRole::Input, found);
        case.apply_all(true, "update", MultiUpdateAddOp, &[table, indices, added])?;
    }
    Ok(case)
}
