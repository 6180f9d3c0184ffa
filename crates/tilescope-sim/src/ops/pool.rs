//! Pooling over windows: the largest or the mean of each.

use super::{Operator, expect_operands, expect_same};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::layout::{Layout, Order};
use crate::lower::pool::{self, Axis, Kind, Pass, Pooling};
use crate::lower::work::{Place, Work};
use crate::lower::{Lives, LowerError, Lowering};

/// One value for each window of a `[batch, channels, field..]` tensor.
#[derive(Clone, Debug)]
pub struct Pool {
    /// What is made of a window.
    pub kind: Kind,
    /// Windows along each of one to three dimensions of the field.
    pub windows: Vec<PoolWindow>,
}

/// The windows along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolWindow {
    /// Elements of a window.
    pub kernel: u64,
    /// Distance of neighbouring windows.
    pub stride: u64,
    /// Elements before the input that no window counts.
    pub before: u64,
    /// The same behind it.
    pub behind: u64,
}

/// Most elements of a window: a tile has a list for every position in it.
const MOST_POSITIONS: u64 = 1 << 16;

impl Pool {
    /// The same windows along height and width.
    fn square(kind: Kind, kernel: u64, stride: u64, padding: u64) -> Self {
        let window = PoolWindow { kernel, stride, before: padding, behind: padding };
        Self { kind, windows: vec![window; 2] }
    }

    /// The largest of each square window.
    pub fn max(kernel: u64, stride: u64, padding: u64) -> Self {
        Self::square(Kind::Max, kernel, stride, padding)
    }

    /// The mean of all `height` x `width` elements of a channel.
    pub(crate) fn global_average(height: u64, width: u64) -> Self {
        let window = |kernel| PoolWindow { kernel, stride: 1, before: 0, behind: 0 };
        Self { kind: Kind::Average, windows: vec![window(height), window(width)] }
    }

    /// Planes, rows and columns of `input`, of which the last are there.
    fn axes(&self, input: &TensorType) -> [Axis; 3] {
        let mut axes = [Axis::NONE; 3];
        let last = axes.iter_mut().rev().zip(self.windows.iter().rev());
        for ((axis, window), elements) in last.zip(input.shape.iter().rev()) {
            let PoolWindow { kernel, stride, before, behind } = *window;
            *axis = Axis { elements: *elements, kernel, stride, before, behind };
        }
        axes
    }

    fn window_elements(&self) -> u64 {
        self.windows.iter().fold(1, |count, window| count.saturating_mul(window.kernel))
    }

    /// The gradient of its input: of input, output and gradient of the output where it takes the
    /// largest, else of that gradient alone.
    pub(crate) fn gradient(&self, input: TensorType) -> impl Operator + use<> {
        PoolGradient { pool: self.clone(), input }
    }

    fn refuse(&self, input: &TensorType) -> String {
        let kernel: Vec<String> = self.windows.iter().map(|at| at.kernel.to_string()).collect();
        format!("a window of {} does not fit into {input}", kernel.join("x"))
    }

    /// The phases of one direction; `input` is what the forward pass pools.
    fn lower(
        &self,
        lowering: &mut Lowering,
        node: &Node,
        input: &TensorType,
        backward: bool,
    ) -> Result<Work, LowerError> {
        let operands: Vec<_> =
            node.inputs.iter().map(|tensor| lowering.layout_or_linear(*tensor)).collect();
        let group = |layout: &Layout| match layout.order {
            Order::Grouped { axis: 1, group } => group,
            _ => 1,
        };
        let pooling = Pooling {
            pass: Pass { kind: self.kind, backward },
            dtype: input.dtype,
            batch: input.shape[0],
            channels: input.shape[1],
            axes: self.axes(input),
            grouping: operands.last().map_or(1, group),
            forward_grouping: operands.first().map_or(1, group),
        };
        let pooled = pool::lower(lowering, &pooling, &operands).ok_or_else(|| LowerError {
            operation: node.name.clone(),
            problem: self.refuse(input),
        })?;
        lowering.lay_out(node.outputs[0], pooled.1);
        lowering.note_lives(Lives {
            inputs_in: Place::OwnElement,
            outputs_in: Place::OwnElement,
            ..Lives::default()
        });
        Ok(pooled.0)
    }
}

impl Operator for Pool {
    fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Max => "max_pool",
            Kind::Average => "average_pool",
            Kind::Sum => "sum_pool",
        }
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        let rank = 2 + self.windows.len();
        if !(3..=5).contains(&rank) || inputs[0].shape.len() != rank {
            return Err(format!(
                "expected [batch, channels, field..] of {} dimensions, found {}",
                self.windows.len(),
                inputs[0]
            ));
        }
        if self.window_elements() > MOST_POSITIONS {
            return Err(format!(
                "windows of more than {MOST_POSITIONS} elements are not simulated"
            ));
        }
        let axes = self.axes(&inputs[0]);
        let field = axes[3 - self.windows.len()..].iter().map(|axis| axis.windows());
        let field: Vec<u64> =
            field.collect::<Option<_>>().ok_or_else(|| self.refuse(&inputs[0]))?;
        let shape = [&inputs[0].shape[..2], &field].concat();
        Ok(vec![TensorType::new(shape, inputs[0].dtype)])
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements() * self.window_elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let (input, output) = (backward.node.inputs[0], backward.node.outputs[0]);
        let operator = self.gradient(backward.input_type(0));
        // Only a maximum has to know where it came from.
        let operands = match self.kind {
            Kind::Max => vec![input, output, gradient],
            Kind::Average | Kind::Sum => vec![gradient],
        };
        Ok(vec![Some(backward.apply("grad", operator, &operands)?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let input = lowering.ty(node.inputs[0]).clone();
        Pool::lower(self, lowering, node, &input, false)
    }
}

/// Gradient of a pooling: of its input, output and the gradient of the output, or of that alone.
#[derive(Clone, Debug)]
struct PoolGradient {
    pool: Pool,
    input: TensorType,
}

impl Operator for PoolGradient {
    fn kind(&self) -> &'static str {
        match self.pool.kind {
            Kind::Max => "max_pool_grad",
            Kind::Average => "average_pool_grad",
            Kind::Sum => "sum_pool_grad",
        }
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        if self.pool.kind == Kind::Max {
            expect_operands(inputs, 3)?;
            expect_same(&inputs[1], &inputs[2])?;
        } else {
            expect_operands(inputs, 1)?;
        }
        Ok(vec![self.input.clone()])
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements() * self.pool.window_elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        if let [_, output, gradient] = node.inputs[..]
            && lowering.layout(gradient).is_none()
        {
            let layout = lowering.layout_or_linear(output);
            lowering.lay_out(gradient, layout);
        }
        self.pool.lower(lowering, node, &self.input, true)
    }
}
