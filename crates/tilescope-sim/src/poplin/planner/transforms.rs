//! Ways to reshape a convolution before it is split over tiles.
//!
//! A dimension can be expanded (its kernel elements become input channels) or flattened into the
//! output channels, input and kernel can be swapped, and groups can be combined to fill the matrix
//! engine. Candidates and their order follow poplibs `ConvPlan.cpp`, the effect on the shape
//! `ConvModel.cpp`.

use super::plan::{ConvOptions, ConvPass};
use crate::poplin::params::{ConvParams, FieldDim, OperandTransform, OutputTransform};
use crate::shape::DType;

/// One choice of reshaping. Dimensions are numbered from the outermost, including extra ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvTransform {
    /// Number of dimensions of size one added in front, so that there are at least two.
    pub extra_dims: usize,
    /// Dimensions whose input dilation is applied to the result instead.
    pub dilate_after: Vec<usize>,
    /// True if input and kernel are swapped.
    pub swap_operands: bool,
    /// Dimensions whose kernel elements become input channels.
    pub expand_dims: Vec<usize>,
    /// Dimensions whose outputs become output channels.
    pub flatten_to_channels: Vec<usize>,
    /// Dimensions merged into the innermost of them, 0 for the batch and `d + 1` for dimension `d`.
    /// Empty if there is nothing to merge.
    pub flatten_dims: Vec<usize>,
    /// Number of groups that are combined into one. 1 means none are.
    pub combine_groups: u64,
}

/// Convolution at the stages of its transform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformedConvParams {
    pub transform: ConvTransform,
    /// Shape after extra dimensions, deferred dilation and swap, which serial splits divide.
    pub view: ConvParams,
    /// Shape after all steps except padding of channels.
    pub shape: ConvParams,
}

impl TransformedConvParams {
    /// Returns true if dimension `dim` is expanded or flattened, so that its inputs are its
    /// outputs.
    pub(crate) fn dim_is_transformed(&self, dim: usize) -> bool {
        let transform = &self.transform;
        transform.expand_dims.contains(&dim)
            || transform.flatten_to_channels.contains(&dim)
            || transform.flatten_dims.contains(&(dim + 1))
    }
}

/// All useful reshapings of `params`, in the order that resolves ties. Candidates beyond the
/// documented limits on sizes are omitted: they take more work than any bound of the search.
pub(crate) fn candidates(
    params: &ConvParams,
    options: &ConvOptions,
    joint: bool,
) -> Vec<TransformedConvParams> {
    let mut base = params.clone();
    let extra_dims = 2usize.saturating_sub(base.dims.len());
    // The nx1 vertex treats the outermost and the innermost dimension differently and assumes that
    // they are two, so a single one gets an outer dimension of size one.
    base.dims.splice(0..0, std::iter::repeat_n(FieldDim::new(1, 1), extra_dims));
    let dilate_after = defer_dilation(&mut base);

    let mut found = Vec::new();
    for swap_operands in swap_candidates(options.pass, joint) {
        let view = if swap_operands { base.swapped().ok() } else { Some(base.clone()) };
        let Some(view) = view else { continue };
        for expand_dims in expand_candidates(&view) {
            let mut expanded = view.clone();
            expand_dims.iter().for_each(|dim| expand(&mut expanded, *dim));
            if !expanded.within_bounds() {
                continue;
            }
            for flatten_to_channels in channel_flatten_candidates(&expanded) {
                let transform = ConvTransform {
                    extra_dims,
                    dilate_after: dilate_after.clone(),
                    swap_operands,
                    expand_dims: expand_dims.clone(),
                    flatten_to_channels,
                    flatten_dims: Vec::new(),
                    combine_groups: 1,
                };
                found.extend(finished(&view, &expanded, transform, joint));
            }
        }
    }
    found
}

/// Returns `params` at the stages of one given transform, or `None` if it does not suit them.
pub(crate) fn apply(
    params: &ConvParams,
    transform: &ConvTransform,
) -> Option<TransformedConvParams> {
    let mut view = params.clone();
    view.dims.splice(0..0, std::iter::repeat_n(FieldDim::new(1, 1), transform.extra_dims));
    if !transform.dilate_after.is_empty() {
        defer_dilation(&mut view);
    }
    if transform.swap_operands {
        view = view.swapped().ok()?;
    }
    let mut shape = view.clone();
    transform.expand_dims.iter().for_each(|dim| expand(&mut shape, *dim));
    let mut shape = flatten_to_channels(&shape, &transform.flatten_to_channels)?;
    if !transform.flatten_dims.is_empty() {
        merge_dims(&mut shape);
    }
    let shape = combined(&shape, transform.combine_groups)?;
    Some(TransformedConvParams { transform: transform.clone(), view, shape })
}

/// Combines `factor` groups into one.
fn combined(shape: &ConvParams, factor: u64) -> Option<ConvParams> {
    let shape = ConvParams {
        conv_groups: shape.conv_groups.div_ceil(factor),
        in_channels: shape.in_channels.checked_mul(factor)?,
        out_channels: shape.out_channels.checked_mul(factor)?,
        ..shape.clone()
    };
    if shape.within_bounds() { Some(shape) } else { None }
}

/// Last steps for one choice of operands, expansion and channel flattening: merging dimensions,
/// then every way to combine groups.
fn finished(
    view: &ConvParams,
    expanded: &ConvParams,
    mut transform: ConvTransform,
    joint: bool,
) -> Vec<TransformedConvParams> {
    let Some(mut shape) = flatten_to_channels(expanded, &transform.flatten_to_channels) else {
        return Vec::new();
    };
    transform.flatten_dims = merge_dims(&mut shape);
    combine_candidates(&shape, joint)
        .into_iter()
        .filter_map(|factor| {
            let shape = combined(&shape, factor)?;
            let transform = ConvTransform { combine_groups: factor, ..transform.clone() };
            Some(TransformedConvParams { transform, view: view.clone(), shape })
        })
        .collect()
}

/// Defers input dilation that can be applied after the convolution, where it costs no work. Returns
/// the dimensions, innermost first.
fn defer_dilation(params: &mut ConvParams) -> Vec<usize> {
    let mut deferred = Vec::new();
    for (index, dim) in params.dims.iter_mut().enumerate().rev() {
        let input = &mut dim.input_transform;
        let output = &mut dim.output_transform;
        // With a transformed kernel of one, an inserted zero only yields a zero output, so it can
        // be inserted afterwards.
        let plain = input.padding_lower == 0
            && input.padding_upper == 0
            && output.stride == 1
            && output.truncation_lower == 0
            && output.truncation_upper == 0
            && dim.kernel_transform.transformed(dim.kernel) == 1;
        if input.dilation != 1 && plain {
            input.dilation = 1;
            // Output padding surrounds the dilated result, so it is deferred as well.
            output.padding_lower = 0;
            output.padding_upper = 0;
            deferred.push(index);
        }
    }
    deferred
}

/// Operand orders in the order that resolves ties: matrix products prefer swapped operands, and
/// joint plans are defined on them.
fn swap_candidates(pass: ConvPass, joint: bool) -> Vec<bool> {
    if joint {
        vec![true]
    } else if pass.is_matmul() {
        vec![true, false]
    } else {
        vec![false, true]
    }
}

/// Sets of dimensions to expand: those that change something and have at least as much input as
/// kernel.
fn expand_candidates(params: &ConvParams) -> Vec<Vec<usize>> {
    let useful = (0..params.dims.len()).filter(|&dim| {
        let mut expanded = params.clone();
        expand(&mut expanded, dim);
        // poplibs' heuristic to limit the search: with more kernel than input, most of the expanded
        // elements are padding.
        expanded != *params && params.dims[dim].input >= params.dims[dim].kernel
    });
    subsets(useful.collect())
}

/// Sets of dimensions to flatten into output channels: those with several outputs and no more input
/// than kernel.
fn channel_flatten_candidates(params: &ConvParams) -> Vec<Vec<usize>> {
    let useful = (0..params.dims.len()).filter(|&index| {
        let dim = &params.dims[index];
        dim.output() != 1 && dim.input <= dim.kernel
    });
    subsets(useful.collect())
}

/// All subsets, each with the innermost dimension first.
fn subsets(items: Vec<usize>) -> Vec<Vec<usize>> {
    (0..1usize << items.len())
        .map(|mask| {
            // The order does not change the shape. poplibs expands inner dimensions first because
            // the copies are cheaper.
            let chosen = items.iter().enumerate().rev().filter(|(bit, _)| mask >> bit & 1 == 1);
            chosen.map(|(_, item)| *item).collect()
        })
        .collect()
}

/// Turns the kernel elements of a dimension into input channels.
fn expand(params: &mut ConvParams, dim: usize) {
    let field = &mut params.dims[dim];
    let kernel = field.kernel_transform.truncated(field.kernel);
    params.in_channels = params.in_channels.saturating_mul(kernel);
    *field = FieldDim {
        input: field.output(),
        kernel: 1,
        input_transform: OperandTransform::NONE,
        kernel_transform: OperandTransform::NONE,
        output_transform: OutputTransform::NONE,
    };
}

/// Turns the outputs of dimensions into output channels: each dimension is expanded with swapped
/// operands, and its outputs join the batch, which is the output channels of the other order.
fn flatten_to_channels(params: &ConvParams, dims: &[usize]) -> Option<ConvParams> {
    if dims.is_empty() {
        return Some(params.clone());
    }
    let mut flat = params.swapped().ok()?;
    for &dim in dims {
        expand(&mut flat, dim);
        flat.batch = flat.batch.checked_mul(flat.dims[dim].input)?;
        flat.dims[dim].input = 1;
    }
    if !flat.within_bounds() {
        return None;
    }
    flat.swapped().ok()
}

/// Merges the batch and every plain dimension into the innermost plain one.
fn merge_dims(params: &mut ConvParams) -> Vec<usize> {
    // One long row is distributed evenly over the workers and allows the 1x1 vertex, which does not
    // support a second row.
    let mut merged = vec![0];
    for (index, dim) in params.dims.iter().enumerate() {
        let plain = dim.transformed_kernel() == 1
            && dim.input_transform == OperandTransform::NONE
            && dim.output_transform == OutputTransform::NONE;
        if plain {
            merged.push(index + 1);
        }
    }
    let Some((&innermost, others)) = merged.split_last().filter(|(_, others)| !others.is_empty())
    else {
        return Vec::new();
    };
    for &from in others {
        let size = match from {
            0 => std::mem::replace(&mut params.batch, 1),
            dim => std::mem::replace(&mut params.dims[dim - 1].input, 1),
        };
        let into = &mut params.dims[innermost - 1].input;
        *into = into.saturating_mul(size);
    }
    merged
}

/// Factors for combining groups. Only groups with one or two input channels benefit.
fn combine_candidates(params: &ConvParams, joint: bool) -> Vec<u64> {
    let channels = params.in_channels;
    let (load_elements, most, useful) = match params.input_type {
        DType::Float => (2, 8, channels == 1),
        DType::Half => (4, 16, channels == 1 || channels == 2),
        _ => (4, 16, false),
    };
    let mut factors = vec![1];
    // The other passes of a joint plan swap these channels with the batch, which may have any size.
    if useful && params.conv_groups > 1 && !joint {
        // From factors that fill one 64-bit load to those that fill a conv unit. Weights between
        // the combined groups are zeros and their products wasted, but the engine would idle on so
        // few channels anyway.
        let least = load_elements / channels;
        let most = most / channels;
        factors.extend(
            std::iter::successors(Some(least), |factor| Some(factor * 2))
                .take_while(|factor| *factor <= most),
        );
    }
    factors
}
