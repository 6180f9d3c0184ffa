//! Convolutions of one to three dimensions, and the two convolutions of their gradient.

use super::{
    FieldEdges, GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands,
    Operator, PlannedCost, PlannedSizes, RowWindow, ShapeError, expect_operands,
};
use crate::poplin::{ConvParams, FieldDim, OperandTransform, OutputTransform};
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{DType, TensorInfo};
use std::sync::Arc;

/// A convolution of `[batch, in, field..]` with `[out, in / groups, kernel..]` weights. It is
/// depthwise if there are as many groups as channels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvOp {
    /// The number of independent groups of channels.
    pub groups: u64,
    /// The transforms along each dimension of the field.
    pub dim_transforms: Vec<ConvDimTransforms>,
    /// Element type of the result, if it differs from that of the operands.
    pub output: Option<DType>,
}

/// The transforms of a convolution along one dimension of its field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConvDimTransforms {
    /// The transform of the input: truncation, dilation, padding and flip.
    pub input: OperandTransform,
    /// The transform of the kernel.
    pub kernel: OperandTransform,
    /// The transform of the output: truncation, stride and padding.
    pub output: OutputTransform,
}

impl ConvOp {
    /// Makes a convolution with the same transforms along both dimensions of a field: `padding`
    /// zeros around it, and every `stride`th window.
    pub fn square(stride: u64, padding: u64) -> Self {
        let lower = padding;
        let upper = padding;
        let window = ConvDimTransforms {
            input: OperandTransform {
                padding_lower: lower,
                padding_upper: upper,
                ..Default::default()
            },
            output: OutputTransform { stride, ..Default::default() },
            ..ConvDimTransforms::default()
        };
        Self { groups: 1, dim_transforms: vec![window; 2], output: None }
    }

    /// The operator of the gradient of its input `x`, from the gradient of the output and the
    /// weights.
    pub(crate) fn input_gradient(&self, x: TensorInfo) -> impl Operator + use<> {
        ConvDataGradOp { conv: self.clone(), x }
    }

    /// The operator of the gradient of its weights `w`, from the input and the gradient of the
    /// output.
    pub(crate) fn weight_gradient(&self, w: TensorInfo) -> impl Operator + use<> {
        ConvWeightsGradOp { conv: self.clone(), w }
    }

    /// The index of a name by the number of dimensions, which is from one to three.
    fn dimension(&self) -> usize {
        self.dim_transforms.len().clamp(1, 3) - 1
    }

    /// The planner's view of the convolution, with sizes of `x` and `w` that [`Operator::infer`]
    /// has checked.
    pub(crate) fn params(&self, x: &TensorInfo, w: &TensorInfo) -> ConvParams {
        ConvParams {
            input_type: x.dtype,
            output_type: self.output.unwrap_or(x.dtype),
            batch: x.shape[0],
            conv_groups: self.groups,
            in_channels: x.shape[1] / self.groups,
            out_channels: w.shape[0] / self.groups,
            dims: self
                .dim_transforms
                .iter()
                .enumerate()
                .map(|(axis, window)| FieldDim {
                    input: x.shape[2 + axis],
                    kernel: w.shape[2 + axis],
                    input_transform: window.input,
                    kernel_transform: window.kernel,
                    output_transform: window.output,
                })
                .collect(),
        }
    }

    /// The planner's view of the convolution, with checked operands.
    ///
    /// # Errors
    /// Returns an error for operands that do not fit together.
    fn checked(&self, inputs: &[TensorInfo]) -> Result<ConvParams, ShapeError> {
        expect_operands(inputs, 2)?;
        let x = &inputs[0];
        let w = &inputs[1];
        let rank = 2 + self.dim_transforms.len();
        if x.shape.len() != rank || w.shape.len() != rank {
            return Err(ShapeError::ConvOperands {
                dimensions: self.dim_transforms.len(),
                x: x.clone(),
                w: w.clone(),
            });
        }
        let grouped = self.groups > 0 && w.shape[1].checked_mul(self.groups) == Some(x.shape[1]);
        if !grouped || !w.shape[0].is_multiple_of(self.groups) || x.dtype != w.dtype {
            return Err(ShapeError::Weights { x: x.clone(), w: w.clone() });
        }
        let params = self.params(x, w);
        params.validate().map(|()| params).map_err(|problem| ShapeError::Conv {
            x: x.clone(),
            w: w.clone(),
            problem: Box::new(problem),
        })
    }

    /// Twice the multiply-accumulates, without those with zeros beside the input (poplibs
    /// `ConvUtil.cpp`, getNumberOfMACs).
    fn layer_flops(&self, x: &TensorInfo, w: &TensorInfo) -> u64 {
        2 * self.params(x, w).macs()
    }
}

impl Operator for ConvOp {
    fn kind(&self) -> &'static str {
        ["conv1d", "conv2d", "conv3d"][self.dimension()]
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        let params = self.checked(inputs)?;
        let channels = params.out_channels * params.conv_groups;
        let field = params.dims.iter().map(FieldDim::output);
        let shape: Vec<u64> = [params.batch, channels].into_iter().chain(field).collect();
        Ok(vec![TensorInfo::new(shape, params.output_type)])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        self.layer_flops(&inputs[0], &inputs[1])
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let x = backward.node.inputs[0];
        let w = backward.node.inputs[1];
        let x_type = backward.input_type(0);
        let w_type = backward.input_type(1);
        let mut gradients = vec![None, None];
        // Weights come first, as in a scheduler that minimises live memory (PopART's): `x` can be
        // freed before its gradient is made.
        if backward.needs_input_gradient(1) {
            let operator = self.weight_gradient(w_type);
            gradients[1] = Some(backward.apply("wu", operator, &[x, gradient])?);
        }
        if backward.needs_input_gradient(0) {
            let operator = self.input_gradient(x_type);
            gradients[0] = Some(backward.apply("bwd", operator, &[gradient, w])?);
        }
        Ok(gradients)
    }

    fn row_window(&self, inputs: &[TensorInfo]) -> Option<RowWindow> {
        let rows = self.dim_transforms.first()?;
        let OperandTransform { padding_lower: before, padding_upper: behind, .. } = rows.input;
        let stride = rows.output.stride;
        let plain = ConvDimTransforms {
            input: OperandTransform {
                padding_lower: before,
                padding_upper: behind,
                ..OperandTransform::NONE
            },
            output: OutputTransform { stride, ..OutputTransform::NONE },
            ..ConvDimTransforms::default()
        };
        let kernel = *inputs.get(1)?.shape.get(2)?;
        if *rows != plain {
            return None;
        }
        Some(RowWindow { axis: Some(2), kernel, stride, before, behind })
    }

    fn on_rows(&self, edges: FieldEdges) -> Option<Arc<dyn Operator>> {
        let mut part = self.clone();
        let rows = part.dim_transforms.first_mut()?;
        (rows.input.padding_lower, rows.input.padding_upper) = (edges.before, edges.behind);
        Some(Arc::new(part))
    }

    fn is_planned(&self) -> bool {
        true
    }

    fn create_operands(
        &self,
        lowering: &LoweringContext,
        node: &NodeOperands,
    ) -> Vec<Option<TensorLayout>> {
        lowering.create_conv_operands(node, self)
    }

    fn planned_cost(
        &self,
        lowering: &LoweringContext,
        node: &NodeOperands,
        sizes: PlannedSizes,
    ) -> Option<PlannedCost> {
        lowering.conv_planned_cost(node, self, sizes)
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        lowering.conv_forward(node, self)
    }
}

/// The gradient of the input, from the gradient of the output and the weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ConvDataGradOp {
    conv: ConvOp,
    x: TensorInfo,
}

impl Operator for ConvDataGradOp {
    fn kind(&self) -> &'static str {
        ["conv1d_grad_input", "conv2d_grad_input", "conv3d_grad_input"][self.conv.dimension()]
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        Ok(vec![self.x.clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        self.conv.layer_flops(&outputs[0], &inputs[1])
    }

    /// Adds gradients of this operator, which is a transposed convolution of a model: the gradient
    /// of its input is the convolution.
    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let x = backward.node.inputs[0];
        let w = backward.node.inputs[1];
        let w_type = backward.input_type(1);
        let mut gradients = vec![None, None];
        if backward.needs_input_gradient(1) {
            let operator = self.conv.weight_gradient(w_type);
            gradients[1] = Some(backward.apply("wu", operator, &[gradient, x])?);
        }
        if backward.needs_input_gradient(0) {
            gradients[0] = Some(backward.apply("bwd", self.conv.clone(), &[gradient, w])?);
        }
        Ok(gradients)
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        lowering.conv_input_gradient(node, &self.conv)
    }
}

/// The gradient of the weights, from the input and the gradient of the output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ConvWeightsGradOp {
    conv: ConvOp,
    w: TensorInfo,
}

impl Operator for ConvWeightsGradOp {
    fn kind(&self) -> &'static str {
        ["conv1d_grad_weight", "conv2d_grad_weight", "conv3d_grad_weight"][self.conv.dimension()]
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        Ok(vec![self.w.clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        self.conv.layer_flops(&inputs[0], &outputs[0])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        lowering.conv_weight_gradient(node, &self.conv)
    }
}
