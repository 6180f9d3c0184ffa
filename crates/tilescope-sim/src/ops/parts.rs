//! Steps that several operators are made of: reductions over some axes, and the results of
//! reductions applied to the rows they came from.

use super::{ShapeError, expect_operands};
use crate::graph::{DType, Node, TensorType};
use crate::lower::elementwise::{self, Binary, Unary, cycles};
use crate::lower::exchange;
use crate::lower::layout::{Layout, Order};
use crate::lower::reduce::{self, Dim, Operation, Reduction, ResultUse};
use crate::lower::work::{Phase, Place, Temporary, Work};
use crate::lower::{LowerError, Lowering};
use tilescope_report::Category;
use tilescope_report::units::TileRuns;

/// A tensor on the tiles, seen as rows along some axes: one value belongs to each row.
pub(crate) struct Rows {
    /// Element type of the tensor.
    pub dtype: DType,
    /// How the tensor lies.
    pub layout: Layout,
    dims: Vec<Dim>,
    /// Rows that each tile holds elements of.
    held: TileRuns<u64>,
    /// Where one value for each row goes, if that is decided beforehand.
    values: Option<TileRuns<u64>>,
    /// What becomes of the values of a reduction.
    result: ResultUse,
}

impl Rows {
    /// Rows of a tensor that run along `axes`.
    pub(crate) fn new(ty: &TensorType, layout: Layout, axes: &[usize]) -> Self {
        let dims = reduce::dims(&ty.shape, layout.order, axes);
        let held = reduce::columns_on_tiles(&dims, &layout.elements);
        Self { dtype: ty.dtype, layout, dims, held, values: None, result: ResultUse::PLAIN }
    }

    /// The same rows, whose reductions leave their values so.
    pub(crate) fn with_values(self, values: Layout) -> Self {
        Self { values: Some(values.elements), ..self }
    }

    /// The same rows, whose reductions use their values so.
    pub(crate) fn with_result(self, result: ResultUse) -> Self {
        Self { result, ..self }
    }

    /// Where one value for each row goes, if that is decided beforehand.
    pub(crate) fn values(&self) -> Option<Layout> {
        self.values.clone().map(|elements| Layout { elements, order: Order::Linear })
    }

    /// Adds a reduction of each row to one value of type `output`; returns how the values lie.
    pub(crate) fn reduce(
        &self,
        lowering: &Lowering,
        node: &Node,
        work: &mut Work,
        name: &str,
        operation: Operation,
        output: DType,
    ) -> Result<Layout, LowerError> {
        let reduction = Reduction {
            name,
            operation,
            dims: &self.dims,
            input: &self.layout.elements,
            dtype: self.dtype,
            output,
            result: self.result,
            onto: self.values.as_ref(),
            tiles: lowering.tiles,
            bytes_per_cycle: lowering.exchange_speed(),
        };
        let elements = reduce::add(work, &reduction).map_err(|error| LowerError {
            operation: node.name.clone(),
            problem: error.to_string(),
        })?;
        Ok(Layout { elements, order: Order::Linear })
    }

    /// Adds the operation of every row with its value, in place: the values are sent to the tiles
    /// of their rows first.
    pub(crate) fn apply(
        &self,
        lowering: &Lowering,
        work: &mut Work,
        name: &str,
        operation: Binary,
        values: &Layout,
    ) {
        self.spread(lowering, work, name, values);
        // Values of neighbouring elements differ where the innermost dimension is not along rows.
        let inner = match self.dims.iter().rev().find(|dim| dim.size > 1) {
            Some(dim) if !dim.reduced => Some(dim.size),
            _ => None,
        };
        let dtype = self.dtype;
        let tile = |elements: u64, rows: u64| match inner {
            _ if rows <= 1 => {
                cycles::with_scalar(operation, dtype, cycles::Extent::one(elements), true)
            }
            Some(length) => cycles::with_inner_vector(operation, dtype, elements, length.min(rows)),
            None => cycles::with_outer_vector(operation, dtype, elements, rows),
        };
        let cycles = self.layout.elements.zip(&self.held, tile);
        let form = if inner.is_some() {
            "BroadcastVectorInnerInPlaceSupervisor"
        } else {
            "BroadcastVectorOuterByRowInPlaceSupervisor"
        };
        let (op, ty) = (operation.name(), dtype.poplar_name());
        let vertex = format!("popops::{form}<popops::expr::BinaryOpType::{op},{ty}>");
        work.push(elementwise::compute(name, vertex, 2, cycles));
    }

    /// Sends each value to the tiles that hold elements of its row.
    fn spread(&self, lowering: &Lowering, work: &mut Work, name: &str, values: &Layout) {
        let bytes = self.dtype.bytes();
        let needed = self.held.map(|rows| rows * bytes);
        let start = work.phases().len();
        let speed = lowering.exchange_speed();
        let sent = values.bytes(bytes);
        work.push_some(exchange::phase(name, &needed, &sent, (2, 2), lowering.tiles, speed));
        work.temporaries.push(Temporary {
            name: format!("{name}/broadcast"),
            category: Category::Message,
            bytes: needed,
            place: Place::Any,
            live: start..work.phases().len() + 1,
        });
    }
}

/// Adds softmax of `rows`, in place; or its logarithm.
pub(crate) fn softmax(
    work: &mut Work,
    lowering: &Lowering,
    node: &Node,
    rows: &Rows,
    log: bool,
) -> Result<(), LowerError> {
    let (dtype, elements) = (rows.dtype, &rows.layout.elements);
    let maxima = rows.reduce(lowering, node, work, "SoftMax/Reduce_max", Operation::Max, dtype)?;
    rows.apply(lowering, work, "SoftMax/Sub", Binary::Subtract, &maxima);
    let exp = if log { elementwise::unary } else { elementwise::unary_in_place };
    let start = work.phases().len();
    work.push(exp("SoftMax/Exp", Unary::Exp, dtype, elements));
    let sums =
        rows.reduce(lowering, node, work, "SoftMax/Reduce_sum", Operation::Add, DType::Float)?;
    if log {
        keep(work, "SoftMax/exponentials", rows.layout.bytes(dtype.bytes()), start);
    }
    let (function, operation) =
        if log { (Unary::Log, Binary::Subtract) } else { (Unary::Inverse, Binary::Multiply) };
    work.push(elementwise::unary_in_place("SoftMax/Sum", function, DType::Float, &sums.elements));
    rows.apply(lowering, work, "SoftMax/Scale", operation, &sums);
    Ok(())
}

/// Notes a temporary that lives from phase `start` to the last phase so far.
pub(crate) fn keep(work: &mut Work, name: &str, bytes: TileRuns<u64>, start: usize) {
    work.temporaries.push(Temporary {
        name: name.to_string(),
        category: Category::Variable,
        bytes,
        place: Place::Any,
        live: start..work.phases().len(),
    });
}

/// Checks values `[batch, classes]` and labels `[batch]`.
pub(crate) fn check_labels(inputs: &[TensorType]) -> Result<(), ShapeError> {
    expect_operands(inputs, 2)?;
    let (values, labels) = (&inputs[0], &inputs[1]);
    if values.shape.len() != 2 || labels.shape != values.shape[..1] {
        return Err(ShapeError(format!(
            "values [batch, classes] and labels [batch] are expected, not {values} and {labels}"
        )));
    }
    Ok(())
}

/// Adds the loss of `values[batch, classes]` at the labels (the second operand of `node`) as PopART
/// does (willow/src/popx/op/nllx.cpp): a one for each label times the values, their sums, the
/// logarithm unless values are logarithms already, and the sum of that; returns how it lies.
pub(crate) fn pick(
    work: &mut Work,
    lowering: &mut Lowering,
    node: &Node,
    values: &TensorType,
    logarithms: bool,
) -> Result<Layout, LowerError> {
    let (dtype, classes) = (values.dtype, values.shape[1]);
    let layout = lowering.layout_or_linear(node.inputs[0]);
    let labels = lowering.layout_or_linear(node.inputs[1]).bytes(DType::Int.bytes());
    let elements = &layout.elements;
    let needed = elements.map(|count| *count.min(&labels.total()) * DType::Int.bytes());
    let start = work.phases().len();
    let (tiles, speed) = (lowering.tiles, lowering.exchange_speed());
    work.push_some(exchange::phase("Loss/OneHot", &needed, &labels, (2, 2), tiles, speed));
    work.push(elementwise::fill("Loss/OneHot/zero", dtype, elements));
    work.push(one_hot("Loss/OneHot", dtype, classes, elements));
    work.push(elementwise::binary_in_place("Loss/Mul", Binary::Multiply, dtype, elements));
    let rows = Rows::new(values, layout.clone(), &[1]);
    let picked = rows.reduce(lowering, node, work, "Loss/Reduce", Operation::Add, dtype)?;
    keep(work, "Loss/OneHot", layout.bytes(dtype.bytes()), start);
    if !logarithms {
        work.push(elementwise::unary_in_place("Loss/Log", Unary::Log, dtype, &picked.elements));
    }
    let losses = TensorType::new([values.shape[0]], dtype);
    let losses = Rows::new(&losses, picked, &[0]);
    losses.reduce(lowering, node, work, "Loss/ReduceToScalar", Operation::Add, dtype)
}

/// The phase that writes rows of `classes` values with a one where the label says.
pub(crate) fn one_hot(name: &str, dtype: DType, classes: u64, elements: &TileRuns<u64>) -> Phase {
    let vertex = format!("popops::EncodeOneHot<unsigned int,{}>", dtype.poplar_name());
    elementwise::phase(name, vertex, 3, elements, |count| {
        cycles::one_hot(dtype, count.div_ceil(classes))
    })
}
