//! Poolings, reductions and embeddings.

use super::case::Case;
use super::config::{Config, Problem};
use super::passes::Passes;
use crate::operators::{Embedding, MultiUpdateAdd, Pool, PoolWindow, Reduce};
use crate::popnn::pool::Kind;
use crate::popops::reduce::{Operation, ResultUse};
use crate::poputil::layout::{Layout, Order};
use crate::shape::gcd;
use crate::shape::{DType, Role};
use crate::targets::Chip;

/// A reduction of a linear tensor.
pub(crate) fn reduction(config: &Config, chip: &'static Chip) -> Result<Case, Problem> {
    let mut case = Case::new(config, chip, false)?;
    let key = if config.text("type").is_some() { "type" } else { "data-type" };
    let dtype = config.dtype(key, DType::Half)?;
    config.present("shape")?;
    config.present("dims")?;
    let shape = config.numbers("shape")?;
    let axes: Vec<usize> = config.numbers("dims")?.iter().map(|axis| *axis as usize).collect();
    if let Some(axis) = axes.iter().find(|axis| **axis >= shape.len()) {
        return Err(Problem::Broken(format!("dims: there is no dimension {axis} in shape")));
    }
    let name = config.text("operation").unwrap_or("ADD");
    let operation = Operation::find(name)
        .ok_or_else(|| Problem::Broken(format!("operation: there is no reduction {name:?}")))?;
    let [update, scaled] = [config.flag("update", false)?, config.real("scale", 1.0)? != 1.0];
    let mut operands = vec![case.tensor("input", Role::Input, &shape, dtype)?];
    if update {
        let kept = (0..shape.len()).filter(|axis| !axes.contains(axis));
        let kept: Vec<u64> = kept.map(|axis| shape[axis]).collect();
        operands.push(case.tensor("base", Role::Accumulator, &kept, dtype)?);
    }
    let reduce = Reduce { operation, axes, result: ResultUse { update, scaled } };
    let values = case.apply(true, "reduce", reduce, &operands)?;
    case.read(values);
    Ok(case)
}

/// A pooling, its gradient, or both.
pub(crate) fn pooling(config: &Config, chip: &'static Chip) -> Result<Case, Problem> {
    let passes = Passes::of(config, Passes::ALL)?;
    let mut case = Case::new(config, chip, passes.goes_back())?;
    let pool = pool(config)?;
    let field = config.field("field")?;
    let leading = [config.number("batch-size", 1)?, config.number("channels", 1)?];
    let dtype = config.dtype("data-type", DType::Half)?;
    let x = case.tensor("input", Role::Input, &[&leading[..], &field].concat(), dtype)?;
    // Channels that come in no such groups lie in the largest ones that divide both.
    let group = gcd(config.number("fwd-chans-per-group", 1)?, leading[1]);
    if group > 1 {
        let ty = &case.graph().tensor(x).ty;
        let order = Order::Grouped { axis: 1, group };
        let linear = Layout::linear(ty.elements(), dtype.bytes(), case.tiles());
        case.place(x, Layout { order, ..linear });
    }
    let y = case.apply(passes.forward, "fwd", pool.clone(), &[x])?;
    case.read(y);
    if passes.goes_back() {
        let gradient = case.like("gradient", Role::Input, y);
        let operands = if pool.kind == Kind::Max { vec![x, y, gradient] } else { vec![gradient] };
        let back = pool.gradient(case.graph().tensor(x).ty.clone());
        let input = case.apply(true, "bwd", back, &operands)?;
        case.read(input);
    }
    Ok(case)
}

fn pool(config: &Config) -> Result<Pool, Problem> {
    let dimensions = config.field("field")?.len();
    config.present("kernel")?;
    let kernel = config.along("kernel", 1, dimensions)?;
    let stride = config.along("stride", 1, dimensions)?;
    let [before, behind] = config.ends("padding", dimensions)?;
    let kind = match config.text("pooling-type") {
        None | Some("max") => Kind::Max,
        Some("avg") => Kind::Average,
        Some("sum") => Kind::Sum,
        Some(other) => return Err(Problem::Broken(format!("pooling-type: no pooling {other:?}"))),
    };
    let window = |d: usize| PoolWindow {
        kernel: kernel[d],
        stride: stride[d],
        before: before[d],
        behind: behind[d],
    };
    Ok(Pool { kind, windows: (0..dimensions).map(window).collect() })
}

/// A gather of rows of a table, the update of those rows, or both.
pub(crate) fn embedding(config: &Config, chip: &'static Chip) -> Result<Case, Problem> {
    let passes = Passes::of(config, Passes::ALL)?;
    if !passes.forward && !passes.update {
        return Err(Problem::Broken("an embedding has no backward pass".to_string()));
    }
    let mut case = Case::new(config, chip, passes.update)?.with_code();
    config.present("shape")?;
    let [rows, width] = config.numbers("shape")?[..] else {
        return Err(Problem::Broken("shape: rows and columns are expected".to_string()));
    };
    let lookups = config.required("num-indices")?;
    let dtype = config.dtype("data-type", DType::Half)?;
    let table = case.tensor("table", Role::Parameter, &[rows, width], dtype)?;
    let indices = case.tensor("indices", Role::Input, &[lookups], DType::Int)?;
    // Without a download nothing reads the rows that were looked up.
    let found = case.apply(passes.forward, "gather", Embedding::default(), &[table, indices])?;
    if passes.update {
        let added = case.like("rows", Role::Input, found);
        case.apply_all(true, "update", MultiUpdateAdd, &[table, indices, added])?;
    }
    Ok(case)
}
