//! Pooling over windows: the maximum or the mean of each.

use super::{
    FieldEdges, GradientBuilder, GradientResult, LoweredOperation, LoweringContext, LoweringResult,
    NodeOperands, Operator, RowWindow, ShapeError, expect_operands, expect_same,
};
use crate::poplar::OperandLiveness;
use crate::poplar::work::{MemoryConstraint, OperationWork};
use crate::popnn::pool::{PoolAxis, PoolOperand, PoolingParams, PoolingPass, PoolingType};
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp};
use crate::popops::reduce::{ReduceOperation, ReduceResultUse};
use crate::popops::rows::TensorRows;
use crate::shape::TensorInfo;
use std::sync::Arc;

/// One value for each window of a `[batch, channels, field..]` tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolOp {
    /// The function of a window.
    pub kind: PoolingType,
    /// The windows along each of one to three dimensions of the field.
    pub windows: Vec<PoolWindow>,
}

/// The windows along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolWindow {
    /// The number of elements of a window.
    pub kernel: u64,
    /// The distance between neighbouring windows.
    pub stride: u64,
    /// Padding before the input, which no window counts.
    pub before: u64,
    /// Padding after the input, which no window counts.
    pub behind: u64,
}

/// The largest number of elements of a window. A tile has a list for every position in it.
const MAX_WINDOW_ELEMENTS: u64 = 1 << 16;

impl PoolOp {
    /// Makes a pooling with the same windows along height and width.
    fn square(kind: PoolingType, kernel: u64, stride: u64, padding: u64) -> Self {
        let window = PoolWindow { kernel, stride, before: padding, behind: padding };
        Self { kind, windows: vec![window; 2] }
    }

    /// Makes a pooling to the maximum of each square window.
    pub fn max(kernel: u64, stride: u64, padding: u64) -> Self {
        Self::square(PoolingType::Max, kernel, stride, padding)
    }

    /// Makes a pooling to the mean of all `height` x `width` elements of a channel.
    pub(crate) fn global_average(height: u64, width: u64) -> Self {
        let rows = PoolWindow { kernel: height, stride: 1, before: 0, behind: 0 };
        let columns = PoolWindow { kernel: width, ..rows };
        Self { kind: PoolingType::Average, windows: vec![rows, columns] }
    }

    /// The planes, rows and columns of `input`. With fewer dimensions only the last ones are used.
    fn axes(&self, input: &TensorInfo) -> [PoolAxis; 3] {
        let mut axes = [PoolAxis::NONE; 3];
        let last = axes.iter_mut().rev().zip(self.windows.iter().rev());
        for ((axis, window), elements) in last.zip(input.shape.iter().rev()) {
            let PoolWindow { kernel, stride, before, behind } = *window;
            *axis = PoolAxis { elements: *elements, kernel, stride, before, behind };
        }
        axes
    }

    /// True if there is one window, which covers the whole field of `input`.
    fn covers_field(&self, input: &TensorInfo) -> bool {
        let sizes = input.shape.iter().skip(2);
        self.windows.iter().zip(sizes).all(|(window, size)| {
            window.kernel == *size && window.before == 0 && window.behind == 0
        })
    }

    /// Lowers the pooling as a reduction of the field. poplibs does this if the window covers the
    /// field, because its vertices do not split a window (lib/popnn/Pooling.cpp,
    /// substPoolingWithReduction).
    fn lower_reduction(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
        input: &TensorInfo,
    ) -> LoweringResult {
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let operation = match self.kind {
            PoolingType::Max => ReduceOperation::Max,
            PoolingType::Average | PoolingType::Sum => ReduceOperation::Add,
        };
        let scaled = self.kind == PoolingType::Average;
        let result = ReduceResultUse { scaled, ..ReduceResultUse::PLAIN };
        let rows = TensorRows::new(input, layout, &field_axes(input)).with_result(result);
        let name = PoolingPass { kind: self.kind, backward: false }.path();
        let mut work = OperationWork::default();
        let values = rows
            .reduce(&lowering.machine, &mut work, name, operation, input.dtype)
            .map_err(|error| node.error(error))?;
        lowering.set_layout(node.outputs[0], values);
        Ok(work.into())
    }

    /// Lowers the gradient of such a pooling, except for a maximum, as a copy to every element of
    /// the field (lib/popnn/Pooling.cpp, substPoolingGradientWithBroadcast).
    fn lower_repetition(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
        input: &TensorInfo,
    ) -> LoweringResult {
        let mut work = OperationWork::default();
        let gradient = lowering.layout_or_linear(node.inputs[0]);
        let name = PoolingPass { kind: self.kind, backward: true }.path();
        if self.kind == PoolingType::Average {
            let scale = ElementwiseOp::Scalar(BinaryOpType::Multiply);
            work.push(elementwise::apart(name, scale, input.dtype, &gradient.elements));
        }
        let layout = lowering.layout_or_linear(node.outputs[0]);
        let to = (input, &layout);
        lowering.repeat_along(&mut work, node.inputs[0], to, &field_axes(input), name);
        Ok(work.into())
    }

    fn window_elements(&self) -> u64 {
        self.windows.iter().fold(1, |count, window| count.saturating_mul(window.kernel))
    }

    /// The operator of the gradient of its input. For a maximum its operands are input, output and
    /// gradient of the output, otherwise that gradient alone.
    pub(crate) fn gradient(&self, input: TensorInfo) -> impl Operator + use<> {
        PoolGradOp { pool: self.clone(), input }
    }

    fn window_error(&self, input: &TensorInfo) -> ShapeError {
        let kernel = self.windows.iter().map(|at| at.kernel.to_string()).collect();
        ShapeError::Window { kernel, field: input.clone() }
    }

    /// Lowers one direction. `input` is the type that the forward pass pools.
    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
        input: &TensorInfo,
        backward: bool,
    ) -> LoweringResult {
        let operands: Vec<_> =
            node.inputs.iter().map(|tensor| lowering.layout_or_linear(*tensor)).collect();
        let types = node.inputs.iter().map(|tensor| lowering.tensor_type(*tensor));
        let groupings = operands.iter().zip(types);
        let groupings = groupings.map(|(layout, ty)| layout.order.group_along(&ty.shape, 1));
        let groupings: Vec<u64> = groupings.collect();
        let pooling = PoolingParams {
            pass: PoolingPass { kind: self.kind, backward },
            dtype: input.dtype,
            batch: input.shape[0],
            channels: input.shape[1],
            axes: self.axes(input),
            grouping: groupings[groupings.len() - 1],
            forward_grouping: groupings[0],
        };
        let mut placed = Vec::new();
        for (tensor, layout) in node.inputs.iter().zip(&operands) {
            // The gradient of a maximum also reads the input at the places of its results.
            let is_like_result = backward && operands.len() > 1 && placed.is_empty();
            placed.push(PoolOperand { ty: lowering.tensor_type(*tensor), layout, is_like_result });
        }
        let pooled = pooling.lower(lowering.tiles, lowering.exchange_speed(), &placed);
        let pooled = pooled.ok_or_else(|| node.error(self.window_error(input)))?;
        lowering.set_layout(node.outputs[0], pooled.layout);
        let lives = OperandLiveness {
            input_constraint: MemoryConstraint::OwnMemoryElement,
            output_constraint: MemoryConstraint::OwnMemoryElement,
            ..OperandLiveness::default()
        };
        Ok(LoweredOperation { liveness: lives, ..pooled.work.into() })
    }
}

/// The axes of the field, after batch and channels.
fn field_axes(input: &TensorInfo) -> Vec<usize> {
    (2..input.shape.len()).collect()
}

impl Operator for PoolOp {
    fn kind(&self) -> &'static str {
        match self.kind {
            PoolingType::Max => "max_pool",
            PoolingType::Average => "average_pool",
            PoolingType::Sum => "sum_pool",
        }
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let rank = 2 + self.windows.len();
        if !(3..=5).contains(&rank) || inputs[0].shape.len() != rank {
            return Err(ShapeError::PooledField {
                dimensions: self.windows.len(),
                found: inputs[0].clone(),
            });
        }
        if self.window_elements() > MAX_WINDOW_ELEMENTS && !self.covers_field(&inputs[0]) {
            return Err(ShapeError::WindowTooLarge(MAX_WINDOW_ELEMENTS));
        }
        let axes = self.axes(&inputs[0]);
        let field = axes[3 - self.windows.len()..].iter().map(|axis| axis.windows());
        let field: Vec<u64> =
            field.collect::<Option<_>>().ok_or_else(|| self.window_error(&inputs[0]))?;
        let shape = [&inputs[0].shape[..2], &field].concat();
        Ok(vec![TensorInfo::new(shape, inputs[0].dtype)])
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        outputs[0].elements().0 * self.window_elements()
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let input = backward.node.inputs[0];
        let output = backward.node.outputs[0];
        let operator = self.gradient(backward.input_type(0));
        // Only a maximum needs the position that it came from.
        let operands = match self.kind {
            PoolingType::Max => vec![input, output, gradient],
            PoolingType::Average | PoolingType::Sum => vec![gradient],
        };
        Ok(vec![Some(backward.apply("grad", operator, &operands)?)])
    }

    fn row_window(&self, _: &[TensorInfo]) -> Option<RowWindow> {
        let PoolWindow { kernel, stride, before, behind } = *self.windows.first()?;
        Some(RowWindow { axis: Some(2), kernel, stride, before, behind })
    }

    fn on_rows(&self, edges: FieldEdges) -> Option<Arc<dyn Operator>> {
        let mut part = self.clone();
        let rows = part.windows.first_mut()?;
        (rows.before, rows.behind) = (edges.before, edges.behind);
        Some(Arc::new(part))
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let input = lowering.tensor_type(node.inputs[0]).clone();
        if self.covers_field(&input) {
            return self.lower_reduction(lowering, node, &input);
        }
        PoolOp::lower(self, lowering, node, &input, false)
    }
}

/// The gradient of a pooling. Operands: input, output and the gradient of the output, or that
/// gradient alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PoolGradOp {
    pool: PoolOp,
    input: TensorInfo,
}

impl Operator for PoolGradOp {
    fn kind(&self) -> &'static str {
        match self.pool.kind {
            PoolingType::Max => "max_pool_grad",
            PoolingType::Average => "average_pool_grad",
            PoolingType::Sum => "sum_pool_grad",
        }
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        if self.pool.kind == PoolingType::Max {
            expect_operands(inputs, 3)?;
            expect_same(&inputs[1], &inputs[2])?;
        } else {
            expect_operands(inputs, 1)?;
        }
        Ok(vec![self.input.clone()])
    }

    /// The same number as for the pooling itself: each gradient goes to the elements of its window.
    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        inputs.last().map_or(0, |gradient| gradient.elements().0 * self.pool.window_elements())
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        if self.pool.kind != PoolingType::Max && self.pool.covers_field(&self.input) {
            return self.pool.lower_repetition(lowering, node, &self.input);
        }
        if let [_, output, gradient] = node.inputs[..]
            && lowering.layout(gradient).is_none()
        {
            let layout = lowering.layout_or_linear(output);
            lowering.set_layout(gradient, layout);
        }
        self.pool.lower(lowering, node, &self.input, true)
    }
}
