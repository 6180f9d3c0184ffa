//! Softmax, and the loss of its values at labels (poplibs lib/popnn/NonLinearity.cpp, PopART's
//! nll).

use crate::poplar::work::OperationWork;
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp, UnaryOpType};
use crate::popops::reduce::{ReduceError, ReduceOperation};
use crate::popops::rows::TensorRows;
use crate::popops::{one_hot, relayout};
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{DType, TensorInfo};
use crate::targets::IpuTarget;

/// Adds the phases that bring complete rows to the tiles if rows of the last axis end inside
/// vectors and there is a row for every tile. Returns the resulting layout.
///
/// The profile of an inference with 729 tokens and 16 heads (SDK 3) shows these phases: an
/// exchange, strided copies of single halves, and a copy that aligns every row to a vector, before
/// a softmax on eight rows per tile. Rows of whole vectors stay in the layout of the product.
pub(crate) fn bring_rows(
    work: &mut OperationWork,
    machine: &IpuTarget,
    ty: &TensorInfo,
    layout: TensorLayout,
    axis: usize,
) -> TensorLayout {
    let columns = ty.shape[axis].max(1);
    let is_last = axis + 1 == ty.shape.len();
    let fills_tiles = ty.elements().0 / columns >= machine.tiles.into();
    if !is_last || columns.is_multiple_of(elementwise::vector_width(ty.dtype)) || !fills_tiles {
        return layout;
    }
    let rows = TensorLayout::whole_rows(ty.elements(), columns, machine.tiles);
    let name = "SoftMax/rows";
    work.append(relayout::bring(machine, ty, &layout, &rows, name));
    let name = format!("{name}/PreArrange-1");
    relayout::pad_rows(work, ty.dtype, columns, &rows.elements, &name);
    rows
}

/// Adds the softmax of `rows`, in place, or its logarithm if `log` is true.
pub(crate) fn softmax(
    work: &mut OperationWork,
    machine: &IpuTarget,
    rows: &TensorRows,
    log: bool,
) -> Result<(), ReduceError> {
    let dtype = rows.dtype;
    let elements = &rows.layout.elements;
    let maxima = rows.reduce(machine, work, "SoftMax/Reduce_max", ReduceOperation::Max, dtype)?;
    rows.apply_broadcast(machine, work, "SoftMax/Sub", BinaryOpType::Subtract, &maxima);
    let exp = if log { elementwise::apart } else { elementwise::in_place };
    let start = work.phases().len();
    work.push(exp("SoftMax/Exp", ElementwiseOp::Unary(UnaryOpType::Exp), dtype, elements));
    let sums =
        rows.reduce(machine, work, "SoftMax/Reduce_sum", ReduceOperation::Add, DType::Float)?;
    if log {
        work.push_temporary("SoftMax/exponentials", rows.layout.bytes(dtype.bytes()), start);
    }
    let (function, operation) = if log {
        (UnaryOpType::Log, BinaryOpType::Subtract)
    } else {
        (UnaryOpType::Inverse, BinaryOpType::Multiply)
    };
    work.push(elementwise::in_place(
        "SoftMax/Sum",
        ElementwiseOp::Unary(function),
        DType::Float,
        &sums.elements,
    ));
    rows.apply_broadcast(machine, work, "SoftMax/Scale", operation, &sums);
    Ok(())
}

/// Adds the loss of `values[batch, classes]` at `labels`, as PopART does
/// (willow/src/popx/op/nllx.cpp): a one for each label times the values, their sums, the logarithm
/// unless values are logarithms already, and the sum of that. Returns the layout of the result.
pub(crate) fn push_nll_loss(
    work: &mut OperationWork,
    machine: &IpuTarget,
    values: &TensorInfo,
    layout: &TensorLayout,
    labels: &TensorLayout,
    logarithms: bool,
) -> Result<TensorLayout, ReduceError> {
    let dtype = values.dtype;
    let elements = &layout.elements;
    one_hot::encode(work, machine, values, labels, layout, "Loss/OneHot");
    work.push(elementwise::in_place(
        "Loss/Mul",
        ElementwiseOp::Binary(BinaryOpType::Multiply),
        dtype,
        elements,
    ));
    // The temporary of the encoding holds the rows up to here. The products overwrite them in
    // place.
    let start = work.phases().len();
    let rows = TensorRows::new(values, layout.clone(), &[1]);
    let picked = rows.reduce(machine, work, "Loss/Reduce", ReduceOperation::Add, dtype)?;
    work.push_temporary("Loss/OneHot", layout.bytes(dtype.bytes()), start);
    if !logarithms {
        work.push(elementwise::in_place(
            "Loss/Log",
            ElementwiseOp::Unary(UnaryOpType::Log),
            dtype,
            &picked.elements,
        ));
    }
    let losses = TensorInfo::new([values.shape[0]], dtype);
    let losses = TensorRows::new(&losses, picked, &[0]);
    losses.reduce(machine, work, "Loss/ReduceToScalar", ReduceOperation::Add, dtype)
}
