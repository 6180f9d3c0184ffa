//! Steps that several operators are made of: reductions over some axes, and the results of
//! reductions applied to the rows they came from.

use super::{LoweringContext, LoweringError, NodeOperands, ShapeError, expect_operands};
use crate::poplar::exchange;
use crate::poplar::work::{MemoryConstraint, OperationWork, TemporaryVariable, WorkPhase};
use crate::popops::elementwise::{BinaryOpType, UnaryOpType, cycles};
use crate::popops::reduce::{ReduceDim, ReduceOperation, ReduceResultUse, ReductionRequest};
use crate::popops::{elementwise, reduce};
use crate::poputil::layout::{ElementOrder, TensorLayout};
use crate::shape::{DType, TensorInfo};
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Elements, TileRuns};

/// A tensor on the tiles, seen as rows along some axes: one value belongs to each row.
pub(crate) struct TensorRows {
    /// Element type of the tensor.
    pub dtype: DType,
    /// How the tensor lies.
    pub layout: TensorLayout,
    dims: Vec<ReduceDim>,
    /// Rows that each tile holds elements of.
    rows_on_tile: TileRuns<u64>,
    /// Where one value for each row goes, if that is decided beforehand.
    result_mapping: Option<TileRuns<Elements>>,
    /// What becomes of the values of a reduction.
    result_use: ReduceResultUse,
}

impl TensorRows {
    /// Rows of a tensor that run along `axes`.
    pub(crate) fn new(ty: &TensorInfo, layout: TensorLayout, axes: &[usize]) -> Self {
        let dims = reduce::dims(&ty.shape, layout.order, axes);
        let rows_on_tile = reduce::columns_on_tiles(&dims, &layout.elements);
        Self {
            dtype: ty.dtype,
            layout,
            dims,
            rows_on_tile,
            result_mapping: None,
            result_use: ReduceResultUse::PLAIN,
        }
    }

    /// The same rows, whose reductions leave their values so.
    pub(crate) fn with_result_mapping(self, values: TensorLayout) -> Self {
        Self { result_mapping: Some(values.elements), ..self }
    }

    /// The same rows, whose reductions use their values so.
    pub(crate) fn with_result(self, result: ReduceResultUse) -> Self {
        Self { result_use: result, ..self }
    }

    /// Where one value for each row goes, if that is decided beforehand.
    pub(crate) fn result_layout(&self) -> Option<TensorLayout> {
        self.result_mapping
            .clone()
            .map(|elements| TensorLayout { elements, order: ElementOrder::Linear })
    }

    /// Adds a reduction of each row to one value of type `output`; returns how the values lie.
    pub(crate) fn reduce(
        &self,
        lowering: &LoweringContext,
        node: &NodeOperands,
        work: &mut OperationWork,
        name: &str,
        operation: ReduceOperation,
        output: DType,
    ) -> Result<TensorLayout, LoweringError> {
        let reduction = ReductionRequest {
            name,
            operation,
            dims: &self.dims,
            input: &self.layout.elements,
            dtype: self.dtype,
            output,
            result: self.result_use,
            output_mapping: self.result_mapping.as_ref(),
            tiles: lowering.tiles,
            speed: lowering.exchange_speed(),
        };
        let elements = reduce::add(work, &reduction).map_err(|error| LoweringError {
            operation: node.name.to_string(),
            problem: error.to_string(),
        })?;
        Ok(TensorLayout { elements, order: ElementOrder::Linear })
    }

    /// Adds the operation of every row with its value, in place: the values are sent to the tiles
    /// of their rows first.
    pub(crate) fn apply_broadcast(
        &self,
        lowering: &LoweringContext,
        work: &mut OperationWork,
        name: &str,
        operation: BinaryOpType,
        values: &TensorLayout,
    ) {
        self.exchange_row_values(lowering, work, name, values);
        // Values of neighbouring elements differ where the innermost dimension is not along rows.
        let inner = match self.dims.iter().rev().find(|dim| dim.size > 1) {
            Some(dim) if !dim.reduced => Some(dim.size),
            _ => None,
        };
        let dtype = self.dtype;
        let tile = |elements: Elements, rows: u64| match inner {
            _ if rows <= 1 => cycles::with_scalar(
                operation,
                dtype,
                cycles::ElementwiseExtent::one(elements),
                true,
            ),
            Some(length) => cycles::with_inner_vector(operation, dtype, elements, length.min(rows)),
            None => cycles::with_outer_vector(operation, dtype, elements, rows),
        };
        let cycles = self.layout.elements.zip(&self.rows_on_tile, tile);
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
    fn exchange_row_values(
        &self,
        lowering: &LoweringContext,
        work: &mut OperationWork,
        name: &str,
        values: &TensorLayout,
    ) {
        let bytes = self.dtype.bytes();
        let needed = self.rows_on_tile.map(|rows| *rows * bytes);
        let start = work.phases().len();
        let speed = lowering.exchange_speed();
        let sent = values.bytes(bytes);
        work.push_some(exchange::phase(name, &needed, &sent, (2, 2), lowering.tiles, speed));
        work.temporaries.push(TemporaryVariable {
            name: format!("{name}/broadcast"),
            category: MemoryCategory::Message,
            bytes: needed,
            memory_constraint: MemoryConstraint::Any,
            live: start..work.phases().len() + 1,
        });
    }
}

/// Adds softmax of `rows`, in place; or its logarithm.
pub(crate) fn softmax(
    work: &mut OperationWork,
    lowering: &LoweringContext,
    node: &NodeOperands,
    rows: &TensorRows,
    log: bool,
) -> Result<(), LoweringError> {
    let (dtype, elements) = (rows.dtype, &rows.layout.elements);
    let maxima =
        rows.reduce(lowering, node, work, "SoftMax/Reduce_max", ReduceOperation::Max, dtype)?;
    rows.apply_broadcast(lowering, work, "SoftMax/Sub", BinaryOpType::Subtract, &maxima);
    let exp = if log { elementwise::unary } else { elementwise::unary_in_place };
    let start = work.phases().len();
    work.push(exp("SoftMax/Exp", UnaryOpType::Exp, dtype, elements));
    let sums = rows.reduce(
        lowering,
        node,
        work,
        "SoftMax/Reduce_sum",
        ReduceOperation::Add,
        DType::Float,
    )?;
    if log {
        push_temporary(work, "SoftMax/exponentials", rows.layout.bytes(dtype.bytes()), start);
    }
    let (function, operation) = if log {
        (UnaryOpType::Log, BinaryOpType::Subtract)
    } else {
        (UnaryOpType::Inverse, BinaryOpType::Multiply)
    };
    work.push(elementwise::unary_in_place("SoftMax/Sum", function, DType::Float, &sums.elements));
    rows.apply_broadcast(lowering, work, "SoftMax/Scale", operation, &sums);
    Ok(())
}

/// Notes a temporary that lives from phase `start` to the last phase so far.
pub(crate) fn push_temporary(
    work: &mut OperationWork,
    name: &str,
    bytes: TileRuns<Bytes>,
    start: usize,
) {
    work.temporaries.push(TemporaryVariable {
        name: name.to_string(),
        category: MemoryCategory::Variable,
        bytes,
        memory_constraint: MemoryConstraint::Any,
        live: start..work.phases().len(),
    });
}

/// Checks values `[batch, classes]` and labels `[batch]`.
pub(crate) fn check_labels(inputs: &[TensorInfo]) -> Result<(), ShapeError> {
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
pub(crate) fn push_nll_loss(
    work: &mut OperationWork,
    lowering: &mut LoweringContext,
    node: &NodeOperands,
    values: &TensorInfo,
    logarithms: bool,
) -> Result<TensorLayout, LoweringError> {
    let (dtype, classes) = (values.dtype, values.shape[1]);
    let layout = lowering.layout_or_linear(node.inputs[0]);
    let labels = lowering.layout_or_linear(node.inputs[1]).bytes(DType::Int.bytes());
    let elements = &layout.elements;
    // A tile is sent a label for each of its elements, up to as many as all labels have bytes.
    let most = labels.total().0;
    let needed = elements.map(|count| count.0.min(most) * DType::Int.bytes());
    let start = work.phases().len();
    let (tiles, speed) = (lowering.tiles, lowering.exchange_speed());
    work.push_some(exchange::phase("Loss/OneHot", &needed, &labels, (2, 2), tiles, speed));
    work.push(elementwise::fill("Loss/OneHot/zero", dtype, elements));
    work.push(one_hot("Loss/OneHot", dtype, classes, elements));
    work.push(elementwise::binary_in_place("Loss/Mul", BinaryOpType::Multiply, dtype, elements));
    let rows = TensorRows::new(values, layout.clone(), &[1]);
    let picked = rows.reduce(lowering, node, work, "Loss/Reduce", ReduceOperation::Add, dtype)?;
    push_temporary(work, "Loss/OneHot", layout.bytes(dtype.bytes()), start);
    if !logarithms {
        work.push(elementwise::unary_in_place(
            "Loss/Log",
            UnaryOpType::Log,
            dtype,
            &picked.elements,
        ));
    }
    let losses = TensorInfo::new([values.shape[0]], dtype);
    let losses = TensorRows::new(&losses, picked, &[0]);
    losses.reduce(lowering, node, work, "Loss/ReduceToScalar", ReduceOperation::Add, dtype)
}

/// The phase that writes rows of `classes` values with a one where the label says.
pub(crate) fn one_hot(
    name: &str,
    dtype: DType,
    classes: u64,
    elements: &TileRuns<Elements>,
) -> WorkPhase {
    let vertex = format!("popops::EncodeOneHot<unsigned int,{}>", dtype.poplar_name());
    elementwise::phase(name, vertex, 3, elements, |count| {
        cycles::one_hot(dtype, count.div_ceil(classes))
    })
}
