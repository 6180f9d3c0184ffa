//! Matrix products, fully connected layers and convolutions.

use super::case::OpBenchmarkCase;
use super::config::{RowConfig, RowProblem};
use super::passes::LayerPasses;
use crate::operators::{
    AccumulateOp, AddBiasOp, ConvDimTransforms, ConvOp, MatMulOp, MatMulPhase, Operator, ReduceOp,
};
use crate::poplin::{OperandTransform, OutputTransform};
use crate::popops::reduce::ReduceOperation;
use crate::shape::{DType, TensorId, TensorRole};
use crate::targets::Chip;

/// Builds `C = beta C + alpha A x B`, with all operands in the layouts of the plan.
pub(crate) fn gemm(config: &RowConfig, chip: &'static Chip) -> Result<OpBenchmarkCase, RowProblem> {
    let mut case = OpBenchmarkCase::new(config, chip, false)?.with_code();
    let dtype = config.dtype("data-type", DType::Half)?;
    let [m, k, n] = [config.required("m")?, config.required("k")?, config.required("n")?];
    let a = case.tensor("A", TensorRole::Input, &[m, k], dtype)?;
    let b = case.tensor("B", TensorRole::Input, &[k, n], dtype)?;
    let c = case.tensor("C", TensorRole::Accumulator, &[m, n], dtype)?;
    let product = case.apply(true, "matmul", MatMulOp::default(), &[a, b])?;
    // Any factor of the product is part of the scaled add.
    config.real("alpha", 1.0)?;
    let scaled = config.real("beta", 1.0)? != 1.0;
    case.apply_all(true, "add", AccumulateOp { scaled }, &[c, product])?;
    Ok(case)
}

/// Builds a fully connected layer.
pub(crate) fn fully_connected(
    config: &RowConfig,
    chip: &'static Chip,
) -> Result<OpBenchmarkCase, RowProblem> {
    let passes = LayerPasses::from_config(config, LayerPasses::ALL)?;
    let mut case = OpBenchmarkCase::new(config, chip, !passes.inference)?;
    let dtype = config.dtype("data-type", DType::Half)?;
    let groups = config.number("num-groups", 1)?;
    let batch = config.number("batch-size", 1)?;
    let [inputs, outputs] = [config.required("input-size")?, config.required("output-size")?];
    let mut x_shape = vec![batch, inputs];
    let mut w_shape = vec![inputs, outputs];
    if groups != 1 {
        x_shape.insert(0, groups);
        w_shape.insert(0, groups);
    }
    let x = case.tensor("input", TensorRole::Input, &x_shape, dtype)?;
    let w = case.tensor("weights", TensorRole::Parameter, &w_shape, dtype)?;
    let y = case.apply(passes.forward, "fwd", MatMulOp::default(), &[x, w])?;
    let layer = WeightedLayer { x, w, y, axis: case.rank(y) - 1, passes };
    let back = MatMulOp { product: MatMulPhase::InputGradient, transposed: false };
    let update = MatMulOp { product: MatMulPhase::WeightGradient, transposed: false };
    layer.finish(&mut case, config, back, update)?;
    Ok(case)
}

pub(crate) fn convolution(
    config: &RowConfig,
    chip: &'static Chip,
) -> Result<OpBenchmarkCase, RowProblem> {
    let passes = LayerPasses::from_config(config, LayerPasses::ALL)?;
    let mut case = OpBenchmarkCase::new(config, chip, !passes.inference)?.with_code();
    let dtype = config.dtype("data-type", DType::Half)?;
    let input_type = config.dtype("input-type", dtype)?;
    let groups = config.number("conv-groups", 1)?;
    let [inputs, outputs] =
        [config.required("input-channels")?, config.required("output-channels")?];
    let (Some(all_inputs), Some(all_outputs)) =
        (inputs.checked_mul(groups), outputs.checked_mul(groups))
    else {
        return Err(RowProblem::refused("too many channels"));
    };
    let field = config.field("field")?;
    let kernel = config.per_dimension("kernel-size", 1, field.len())?;
    let image = [&[config.number("batch-size", 1)?, all_inputs][..], &field].concat();
    let weights = [&[all_outputs, inputs][..], &kernel].concat();
    let x = case.tensor("input", TensorRole::Input, &image, input_type)?;
    let w = case.tensor("weights", TensorRole::Parameter, &weights, input_type)?;
    let conv = ConvOp {
        groups,
        dim_transforms: windows(config, field.len())?,
        output: Some(config.dtype("output-type", dtype)?),
    };
    let y = case.apply(passes.forward, "fwd", conv.clone(), &[x, w])?;
    let [back, update] = [x, w].map(|tensor| case.graph().tensor(tensor).ty.clone());
    let layer = WeightedLayer { x, w, y, axis: 1, passes };
    layer.finish(&mut case, config, conv.input_gradient(back), conv.weight_gradient(update))?;
    Ok(case)
}

/// The transforms along each of `count` dimensions of the field.
fn windows(config: &RowConfig, count: usize) -> Result<Vec<ConvDimTransforms>, RowProblem> {
    let along = |key: &str, default: u64| config.per_dimension(key, default, count);
    let [input_dilation, kernel_dilation] =
        [along("in-dilation", 1)?, along("kernel-dilation", 1)?];
    let stride = along("stride", 1)?;
    let flips = [along("flip-input", 0)?, along("flip-kernel", 0)?];
    let ends = |key: &str| config.lower_and_upper(key, count);
    let [padding, truncation] = [ends("padding")?, ends("truncation")?];
    let [kernel_padding, kernel_truncation] = [ends("kernel-padding")?, ends("kernel-truncation")?];
    let [output_padding, output_truncation] = [ends("output-padding")?, ends("output-truncation")?];
    let operand = |d: usize, dilation: &[u64], ends: [&[Vec<u64>; 2]; 2], flip: &[u64]| {
        let [padding, truncation] = ends;
        OperandTransform {
            truncation_lower: truncation[0][d],
            truncation_upper: truncation[1][d],
            dilation: dilation[d],
            padding_lower: padding[0][d],
            padding_upper: padding[1][d],
            flip: flip[d] != 0,
        }
    };
    let windows = (0..count).map(|d| ConvDimTransforms {
        input: operand(d, &input_dilation, [&padding, &truncation], &flips[0]),
        kernel: operand(d, &kernel_dilation, [&kernel_padding, &kernel_truncation], &flips[1]),
        output: OutputTransform {
            truncation_lower: output_truncation[0][d],
            truncation_upper: output_truncation[1][d],
            stride: stride[d],
            padding_lower: output_padding[0][d],
            padding_upper: output_padding[1][d],
        },
    });
    Ok(windows.collect())
}

/// A layer with weights, as the tools run it. Weights and input are placed for training, regardless
/// of the passes that run.
struct WeightedLayer {
    x: TensorId,
    w: TensorId,
    /// The product, before the bias.
    y: TensorId,
    /// The channel axis of the product.
    axis: usize,
    passes: LayerPasses,
}

impl WeightedLayer {
    /// Adds the bias and the gradients. The tools keep activations and their gradients on both
    /// sides, so that the host can read and write them between passes.
    fn finish(
        self,
        case: &mut OpBenchmarkCase,
        config: &RowConfig,
        back: impl Operator + 'static,
        update: impl Operator + 'static,
    ) -> Result<(), RowProblem> {
        let Self { x, w, y, axis, passes } = self;
        let bias = if config.flag("bias", false)? {
            Some(self.add_bias(case)?)
        } else {
            case.read(y);
            None
        };
        if !passes.needs_gradient() {
            return Ok(());
        }
        let gradient = case.like("gradient", TensorRole::Input, y);
        let input = case.apply(passes.backward, "bwd", back, &[gradient, w])?;
        if passes.backward {
            case.read(input);
        }
        if !passes.update {
            return Ok(());
        }
        let weights = case.apply(true, "wu", update, &[x, gradient])?;
        case.update(w, weights)?;
        if let Some(bias) = bias {
            let others = (0..case.rank(y)).filter(|other| *other != axis).collect();
            let sum = ReduceOp::new(ReduceOperation::Add, others);
            let sum = case.apply(true, "bias", sum, &[gradient])?;
            case.update(bias, sum)?;
        }
        Ok(())
    }

    /// Adds a bias to the result.
    fn add_bias(&self, case: &mut OpBenchmarkCase) -> Result<TensorId, RowProblem> {
        let ty = &case.graph().tensor(self.y).ty;
        let channels = ty.shape[self.axis];
        let dtype = ty.dtype;
        let bias = case.tensor("bias", TensorRole::Parameter, &[channels], dtype)?;
        let add = AddBiasOp { axis: self.axis };
        let sum = case.apply(self.passes.forward, "bias", add, &[self.y, bias])?;
        case.read(sum);
        Ok(bias)
    }
}
