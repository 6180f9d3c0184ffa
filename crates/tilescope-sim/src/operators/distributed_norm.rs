//! Batch and group norm for IPUs that share the rows of their input.
//!
//! A sample that is split by rows has one mean, so the sums of all parts are added up. Norms over
//! the rows of each IPU would be another model, because their statistics would depend on the number
//! of IPUs. Frameworks that split samples by space add up the sums too (distconv, batchnorm/: sums
//! and squares of the channels go through an all-reduce), and poplibs has the operation for it (see
//! [`crate::popnn::norm`]). Local statistics are the default of data parallelism, where each
//! replica has whole samples, and stay local there.
//!
//! The all-reduce is direct: each IPU receives the sums of all others, a few values per channel,
//! and adds them up.

use super::norm_passes;
use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    ShapeError, SumsOverRows, expect_operands, expect_same,
};
use crate::poplar::work::OperationWork;
use crate::popnn::norm::{NormKind, NormRows, NormStatistics};
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp};
use crate::shape::{DType, TensorId, TensorInfo};
use std::sync::Arc;

/// The row axis of a norm's input: fields are `[batch, channels, rows..]`.
const ROWS: usize = 2;

/// The operators of a norm on parts of a field. `None` for an input that is not a field.
pub(super) fn over_rows(kind: NormKind, inputs: &[TensorInfo]) -> Option<SumsOverRows> {
    let is_field = inputs.first().is_some_and(|x| x.shape.len() > ROWS);
    if !is_field {
        return None;
    }
    Some(SumsOverRows {
        sums: Arc::new(NormSumsOp(kind)),
        results: Arc::new(NormOfSumsOp(kind)),
        axis: ROWS,
    })
}

/// The type of the sums of values and squares.
fn sums_type(kind: NormKind, x: &TensorInfo) -> TensorInfo {
    TensorInfo::new([2, kind.axes(x).statistics_count()], DType::Float)
}

/// The rows of a norm's input on the tiles.
fn norm_rows(lowering: &mut LoweringContext, kind: NormKind, x: TensorId) -> NormRows {
    let ty = lowering.tensor_type(x).clone();
    let layout = lowering.layout_or_linear(x);
    kind.axes(&ty).rows(&lowering.machine, &ty, &layout)
}

/// The sums of the values and squares of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NormSumsOp(NormKind);

/// Operations per element of two sums.
const SUMS_FLOPS_PER_ELEMENT: u64 = 3;

impl Operator for NormSumsOp {
    fn kind(&self) -> &'static str {
        "norm_sums"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        Ok(vec![sums_type(self.0, &inputs[0])])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        SUMS_FLOPS_PER_ELEMENT * inputs[0].elements().0
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let operands = [backward.node.inputs[0], backward.gradient()?];
        Ok(vec![Some(backward.apply("grad", NormSumsGradOp(self.0), &operands)?)])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let x = lowering.tensor_type(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let axes = self.0.axes(&x);
        let rows = axes.rows(&lowering.machine, &x, &layout);
        let mut work = OperationWork::default();
        let regrouped = match self.0 {
            NormKind::Batch => None,
            _ => axes.regroup_channels(&mut work, &lowering.machine, &x, &layout),
        };
        let sums = rows.part_sums(&mut work, regrouped.as_ref());
        lowering.set_layout(node.outputs[0], sums.map_err(|error| node.error(error))?);
        Ok(work.into())
    }
}

/// The contribution of the gradient of the sums to that of a part. Operands: the part, that
/// gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NormSumsGradOp(NormKind);

impl Operator for NormSumsGradOp {
    fn kind(&self) -> &'static str {
        "norm_sums_grad"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        expect_same(&sums_type(self.0, &inputs[0]), &inputs[1])?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        GRADIENT_OF_SUMS_FLOPS_PER_ELEMENT * inputs[0].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let rows = norm_rows(lowering, self.0, node.inputs[0]);
        let mut work = OperationWork::default();
        rows.gradient_of_sums(&mut work);
        let layout = lowering.layout_or_linear(node.inputs[0]);
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }
}

/// Operations per element of a product and a sum.
const GRADIENT_OF_SUMS_FLOPS_PER_ELEMENT: u64 = 2;

/// The norm of a part with the sums of all parts. Operands: those of the norm, then the sums of
/// each part. Results: those of the norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NormOfSumsOp(NormKind);

impl NormOfSumsOp {
    /// The number of operands that are not sums.
    fn operands(self) -> usize {
        match self.0 {
            // Input, scale, shift, running mean and running variance.
            NormKind::Batch => 5,
            NormKind::Layer | NormKind::Group { .. } => 3,
        }
    }

    /// Adds up the sums of all parts, in the layout of the first.
    fn add_up(self, lowering: &mut LoweringContext, node: &NodeOperands) -> OperationWork {
        let mut work = OperationWork::default();
        let [first, others @ ..] = &node.inputs[self.operands()..] else { return work };
        let layout = lowering.layout_or_linear(*first);
        for (index, sums) in others.iter().enumerate() {
            work.append(lowering.relayout_tensor(*sums, &layout, "Norm/allReduce"));
            let add = if index == 0 { elementwise::apart } else { elementwise::in_place };
            let name = "Norm/allReduce/Add";
            let operation = ElementwiseOp::Binary(BinaryOpType::Add);
            work.push(add(name, operation, DType::Float, &layout.elements));
        }
        work
    }
}

impl Operator for NormOfSumsOp {
    fn kind(&self) -> &'static str {
        norm_passes::forward_kind(self.0)
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        if inputs.len() <= self.operands() {
            return Err(ShapeError::NoSums);
        }
        let sums = sums_type(self.0, &inputs[0]);
        for of_part in &inputs[self.operands()..] {
            expect_same(&sums, of_part)?;
        }
        norm_passes::expect_channels(&inputs[..self.operands()], inputs[0].shape[1])?;
        Ok(self.0.axes(&inputs[0]).outputs(&inputs[0]))
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        (norm_passes::FORWARD_FLOPS_PER_ELEMENT - SUMS_FLOPS_PER_ELEMENT) * inputs[0].elements().0
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let inputs = &backward.node.inputs;
        let outputs = &backward.node.outputs;
        let parts = inputs.len() - self.operands();
        let operands = [inputs[0], inputs[1], outputs[1], outputs[2], backward.gradient()?];
        let made = backward.apply_all("grad", NormOfSumsGradOp(self.0), &operands)?;
        let mut gradients: Vec<Option<TensorId>> = made[..3].iter().copied().map(Some).collect();
        gradients.resize(self.operands(), None);
        // The gradients of the sums of all parts are equal.
        gradients.extend(vec![Some(made[3]); parts]);
        Ok(gradients)
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let rows = norm_rows(lowering, self.0, node.inputs[0]);
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = self.add_up(lowering, node);
        let statistics = rows.statistics_of_parts(&mut work);
        norm_passes::normalise(self.0, lowering, node, &mut work, (&rows, &statistics));
        if self.0 == NormKind::Batch {
            norm_passes::update_running(lowering, node, &mut work);
        }
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }
}

/// Gradients of a part of the input with constant statistics, of scale and shift, and of the sums.
/// Operands: the part, scale, mean, inverse standard deviation, gradient of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NormOfSumsGradOp(NormKind);

impl Operator for NormOfSumsGradOp {
    fn kind(&self) -> &'static str {
        norm_passes::gradient_kind(self.0)
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 5)?;
        let x = &inputs[0];
        let scale = &inputs[1];
        Ok(vec![x.clone(), scale.clone(), scale.clone(), sums_type(self.0, x)])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        // One more operation adds the gradient that comes through the sums.
        let elsewhere = GRADIENT_OF_SUMS_FLOPS_PER_ELEMENT + 1;
        (norm_passes::GRADIENT_FLOPS_PER_ELEMENT - elsewhere) * inputs[0].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let rows = norm_rows(lowering, self.0, node.inputs[0]);
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let [scale, mean, inverse_deviation] =
            [1, 2, 3].map(|input| lowering.layout_or_linear(node.inputs[input]));
        let statistics = NormStatistics { mean, inverse_deviation };
        let mut work = lowering.regroup_tensor(node.inputs[4], &layout, "NormGrad");
        let gradients = rows.part_gradient(&mut work, &scale, &statistics);
        let gradients = gradients.map_err(|error| node.error(error))?;
        let [of_scale, of_shift] = gradients.affine;
        for (output, layout) in
            node.outputs.iter().zip([layout, of_scale, of_shift, gradients.sums])
        {
            lowering.set_layout(*output, layout);
        }
        Ok(work.into())
    }
}
