//! Softmax cross-entropy of logits against class labels.
//!
//! Lowered as popnn does (lib/popnn/NonLinearity.cpp, Loss.cpp): maximum, difference, exponential,
//! sum, inverse, product; then the picked log-probabilities and their sum.

use super::parts::Rows;
use super::{Operator, expect_operands};
use crate::sim::graph::{Backward, DType, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::elementwise::{self, Binary, Unary};
use crate::sim::lower::layout::{Layout, Order};
use crate::sim::lower::reduce::Operation;
use crate::sim::lower::{LowerError, Lowering, exchange, work::Work};
use crate::units::TileRuns;

/// Mean negative log-likelihood of the labels under the softmax of the logits.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropy;

/// Checks `[batch, classes]` logits and `[batch]` labels.
fn check(inputs: &[TensorType]) -> Result<(), String> {
    let (logits, labels) = (&inputs[0], &inputs[1]);
    if logits.shape.len() != 2 || labels.shape != logits.shape[..1] {
        return Err(format!(
            "logits [batch, classes] and labels [batch] are expected, not {logits} and {labels}"
        ));
    }
    Ok(())
}

impl Operator for CrossEntropy {
    fn kind(&self) -> &'static str {
        "cross_entropy"
    }

    /// Outputs: the loss, and the probabilities that the gradient needs.
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        check(inputs)?;
        Ok(vec![TensorType::new([1], inputs[0].dtype), inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        6 * inputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let (probabilities, labels) = (backward.node.outputs[1], backward.node.inputs[1]);
        let gradient = backward.apply("grad", CrossEntropyGradient, &[probabilities, labels])?;
        Ok(vec![Some(gradient), None])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let logits = lowering.ty(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = Work::default();
        softmax(&mut work, lowering, node, &logits, &layout)?;
        lowering.lay_out(node.outputs[1], layout.clone());
        let picked = pick(&mut work, lowering, node, &layout, logits.dtype);
        let flat = TensorType::new([logits.elements()], logits.dtype);
        let losses = Rows::new(&flat, Layout { elements: picked, order: Order::Linear }, &[0]);
        let name = "Loss/Reduce";
        let loss = losses.reduce(lowering, node, &mut work, name, Operation::Add, logits.dtype)?;
        lowering.lay_out(node.outputs[0], loss);
        Ok(work)
    }
}

/// Adds softmax over the last axis of `[batch, classes]`.
fn softmax(
    work: &mut Work,
    lowering: &Lowering,
    node: &Node,
    logits: &TensorType,
    layout: &Layout,
) -> Result<(), LowerError> {
    let dtype = logits.dtype;
    let rows = Rows::new(logits, layout.clone(), &[1]);
    let maxima = rows.reduce(lowering, node, work, "SoftMax/Reduce_max", Operation::Max, dtype)?;
    rows.apply(lowering, work, "SoftMax/Sub", Binary::Subtract, &maxima);
    work.push(elementwise::unary_in_place("SoftMax/Exp", Unary::Exp, dtype, &layout.elements));
    let sums =
        rows.reduce(lowering, node, work, "SoftMax/Reduce_sum", Operation::Add, DType::Float)?;
    let inverse = Unary::Inverse;
    work.push(elementwise::unary_in_place("SoftMax/Inv", inverse, DType::Float, &sums.elements));
    rows.apply(lowering, work, "SoftMax/Mul", Binary::Multiply, &sums);
    Ok(())
}

/// Adds the transform that picks the log-probability of each label.
fn pick(
    work: &mut Work,
    lowering: &mut Lowering,
    node: &Node,
    layout: &Layout,
    dtype: DType,
) -> TileRuns<u64> {
    let labels = lowering.layout_or_linear(node.inputs[1]).bytes(DType::Int.bytes());
    let needed = layout.elements.map(|count| *count.min(&labels.total()) * DType::Int.bytes());
    let name = "Loss/LossCrossEntropyTransform";
    let phase =
        exchange::phase(name, &needed, &labels, (2, 2), lowering.tiles, lowering.exchange_speed());
    work.push_some(phase);
    let ty = dtype.poplar_name();
    let vertex = format!("popnn::LossCrossEntropyTransform<{ty}>");
    // Worker cycles 22 + 4 n for float, poplibs lib/popnn/popnnCycleEstimators.cpp.
    work.push(elementwise::phase(name, vertex, 4, &layout.elements, |count| 6 * (22 + 4 * count)));
    layout.elements.clone()
}

/// `probabilities - one_hot(labels)`
#[derive(Clone, Copy, Debug)]
struct CrossEntropyGradient;

impl Operator for CrossEntropyGradient {
    fn kind(&self) -> &'static str {
        "cross_entropy_grad"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        check(inputs)?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        2 * inputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let ty = lowering.ty(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = Work::default();
        let vertex = format!("popops::EncodeOneHot<unsigned int,{}>", ty.dtype.poplar_name());
        let classes = ty.shape[1];
        work.push(elementwise::phase("NllLossGrad/OneHot", vertex, 3, &layout.elements, |count| {
            elementwise::cycles::one_hot(ty.dtype, count.div_ceil(classes))
        }));
        work.push(elementwise::binary_in_place(
            "NllLossGrad/Sub",
            Binary::Subtract,
            ty.dtype,
            &layout.elements,
        ));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }
}
