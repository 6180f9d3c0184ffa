//! Equivalent and derived convolutions: the canonical form, swapped operands, and the convolutions
//! of the backward pass and of the weight gradient.
//!
//! Two shapes with the same meaning have the same canonical form: ignored elements are truncated,
//! padding is explicit, and there is no stride or flip without effect (poplibs `ConvParams.cpp`,
//! `ConvUtil.cpp`, `Convolution.cpp`).

use super::params::{ConvParams, FieldDim, OperandTransform, OutputTransform, PlanError};

impl ConvParams {
    /// Returns the canonical form of a valid convolution.
    pub(crate) fn canonical(&self) -> Result<Self, PlanError> {
        self.validate()?;
        let mut canonical = self.clone();
        for dim in &mut canonical.dims {
            *dim = canonical_dim(*dim)?;
        }
        Ok(canonical)
    }

    /// Returns the convolution with the same result and with input and kernel swapped: batch and
    /// output channels are exchanged.
    pub fn swapped(&self) -> Result<Self, PlanError> {
        let mut swapped = self.clone();
        std::mem::swap(&mut swapped.batch, &mut swapped.out_channels);
        for dim in &mut swapped.dims {
            *dim = swapped_dim(*dim);
        }
        swapped.canonical()
    }

    /// Returns the convolution of the output gradient that yields the input gradient. Its kernel is
    /// the forward one with channels transposed and elements reversed.
    pub(crate) fn gradient(&self) -> Result<Self, PlanError> {
        let forward = self.canonical()?;
        let gradient = Self {
            in_channels: forward.out_channels,
            out_channels: forward.in_channels,
            dims: forward.dims.iter().map(gradient_dim).collect(),
            ..forward
        };
        gradient.canonical()
    }

    /// Returns the convolution of input and output gradient that yields the weight gradient:
    /// channels become the batch, the batch becomes channels, the output gradient is the kernel.
    pub(crate) fn weight_update(&self) -> Result<Self, PlanError> {
        let forward = self.canonical()?;
        let update = Self {
            batch: forward.in_channels,
            in_channels: forward.batch,
            dims: forward.dims.iter().map(weight_update_dim).collect(),
            ..forward
        };
        update.canonical()
    }
}

/// Returns a dimension with swapped operands. The "valid" convolution becomes one that slides in
/// the other direction, with padding.
fn swapped_dim(dim: FieldDim) -> FieldDim {
    // Sliding the longer operand over the shorter one needs this padding on both sides, and yields
    // the outputs in reverse unless both are flipped.
    let extra = dim.transformed_input() - dim.transformed_kernel();
    let mut swapped = FieldDim {
        input: dim.kernel,
        kernel: dim.input,
        input_transform: dim.kernel_transform,
        kernel_transform: dim.input_transform,
        ..dim
    };
    swapped.input_transform.flip = !swapped.input_transform.flip;
    swapped.kernel_transform.flip = !swapped.kernel_transform.flip;
    swapped.input_transform.padding_lower += extra;
    swapped.input_transform.padding_upper += extra;
    swapped
}

fn gradient_dim(dim: &FieldDim) -> FieldDim {
    let input = &dim.input_transform;
    let kernel = &dim.kernel_transform;
    let output = &dim.output_transform;
    // Each transform becomes its opposite: strides become dilation, truncation becomes padding. The
    // halo is read by outermost inputs through all kernel elements except one.
    let halo = dim.transformed_kernel() - 1;
    FieldDim {
        input: dim.output(),
        kernel: dim.kernel,
        input_transform: OperandTransform {
            truncation_lower: output.padding_lower,
            truncation_upper: output.padding_upper,
            dilation: output.stride,
            padding_lower: output.truncation_lower + halo,
            padding_upper: output.truncation_upper + halo,
            flip: input.flip,
        },
        // The caller reverses the kernel, so its ends are exchanged.
        kernel_transform: OperandTransform {
            truncation_lower: kernel.truncation_upper,
            truncation_upper: kernel.truncation_lower,
            dilation: kernel.dilation,
            padding_lower: kernel.padding_upper,
            padding_upper: kernel.padding_lower,
            flip: kernel.flip != input.flip,
        },
        output_transform: OutputTransform {
            truncation_lower: input.padding_lower,
            truncation_upper: input.padding_upper,
            stride: input.dilation,
            padding_lower: input.truncation_lower,
            padding_upper: input.truncation_upper,
        },
    }
}

fn weight_update_dim(dim: &FieldDim) -> FieldDim {
    let kernel = &dim.kernel_transform;
    let output = &dim.output_transform;
    FieldDim {
        input: dim.input,
        // Input and output gradient meet at every offset of a kernel element, so the field of this
        // convolution is the kernel: its dilation becomes the stride.
        kernel: dim.output(),
        input_transform: OperandTransform {
            flip: dim.input_transform.flip != kernel.flip,
            ..dim.input_transform
        },
        kernel_transform: OperandTransform {
            truncation_lower: output.padding_lower,
            truncation_upper: output.padding_upper,
            dilation: output.stride,
            padding_lower: output.truncation_lower,
            padding_upper: output.truncation_upper,
            flip: kernel.flip,
        },
        output_transform: OutputTransform {
            truncation_lower: kernel.padding_lower,
            truncation_upper: kernel.padding_upper,
            stride: kernel.dilation,
            padding_lower: kernel.truncation_lower,
            padding_upper: kernel.truncation_upper,
        },
    }
}

fn canonical_dim(mut dim: FieldDim) -> Result<FieldDim, PlanError> {
    // The order of poplibs `ConvParams::canonicalize`: truncating elements that no output needs
    // leaves padding, which later steps cancel against the other operand or against truncated
    // results.
    let size = dim.output();
    pad_zero_outputs(&mut dim, size)?;
    truncate_ignored_outputs(&mut dim);
    truncate_ignored_operands(&mut dim, size);
    remove_common_padding(&mut dim);
    remove_truncated_padding(&mut dim);
    let input = dim.input;
    let kernel = dim.kernel;
    drop_ineffective(&mut dim.input_transform, input);
    drop_ineffective(&mut dim.kernel_transform, kernel);
    debug_assert_eq!(dim.output(), size, "the canonical form has the same output");
    Ok(dim)
}

/// Replaces outputs that are zero for all operands by padding.
fn pad_zero_outputs(dim: &mut FieldDim, size: u64) -> Result<(), PlanError> {
    let computed = dim.outputs_of_kernels(&(0..size), 0..dim.kernel);
    if computed.is_empty() {
        return Err(PlanError::Invalid { what: "every output of the convolution is padding" });
    }
    let output = &mut dim.output_transform;
    if computed.start > output.padding_lower {
        // Truncation counts results before they are strided, padding after it.
        output.truncation_lower += (computed.start - output.padding_lower) * output.stride;
        output.padding_lower = computed.start;
    }
    let zeros = size - computed.end;
    if zeros > output.padding_upper {
        output.truncation_upper += (zeros - output.padding_upper) * output.stride;
        output.padding_upper = zeros;
    }
    Ok(())
}

/// Truncates results that striding skips at the end, so that the gradient of the stride is a
/// dilation without padding.
fn truncate_ignored_outputs(dim: &mut FieldDim) {
    let untransformed = dim.untransformed_output();
    let output = &mut dim.output_transform;
    let kept = untransformed.saturating_sub(output.truncation_lower + output.truncation_upper);
    let ignored = kept.saturating_sub(1) % output.stride;
    output.truncation_upper += ignored;
    // A stride without a second result would make two equal shapes differ.
    if kept - ignored == 1 {
        output.stride = 1;
    }
}

/// Truncates elements of input and kernel that no output needs and replaces them by padding.
fn truncate_ignored_operands(dim: &mut FieldDim, size: u64) {
    let used = dim.inputs_of(&(0..size), 0..dim.kernel);
    truncate_to(&mut dim.input_transform, dim.input, used.start, used.end);
    let used = dim.used_kernel();
    truncate_to(&mut dim.kernel_transform, dim.kernel, used.start, used.end);
}

fn truncate_to(transform: &mut OperandTransform, size: u64, begin: u64, end: u64) {
    if begin > transform.truncation_lower {
        // One truncated element adds `dilation` transformed positions to the padding.
        transform.padding_lower += (begin - transform.truncation_lower) * transform.dilation;
        transform.truncation_lower = begin;
    }
    if size - end > transform.truncation_upper {
        transform.padding_upper += (size - end - transform.truncation_upper) * transform.dilation;
        transform.truncation_upper = size - end;
    }
}

/// Padding at the two ends of an operand as the convolution sees it, with flip applied.
fn ends(transform: &mut OperandTransform) -> (&mut u64, &mut u64) {
    if transform.flip {
        (&mut transform.padding_upper, &mut transform.padding_lower)
    } else {
        (&mut transform.padding_lower, &mut transform.padding_upper)
    }
}

/// Drops padding of both operands at the same end, because products of zeros add nothing.
fn remove_common_padding(dim: &mut FieldDim) {
    for upper in [false, true] {
        // One element of the kernel must remain, even if it is padding.
        let most = dim.transformed_kernel() - 1;
        let (input_lower, input_upper) = ends(&mut dim.input_transform);
        let (kernel_lower, kernel_upper) = ends(&mut dim.kernel_transform);
        let (input, kernel) =
            if upper { (input_upper, kernel_upper) } else { (input_lower, kernel_lower) };
        let excess = (*input).min(*kernel).min(most);
        *input -= excess;
        *kernel -= excess;
    }
}

/// Drops padding whose results are truncated.
fn remove_truncated_padding(dim: &mut FieldDim) {
    for upper in [false, true] {
        // One result must remain to be truncated.
        let most = dim.untransformed_output() - 1;
        let (lower_end, upper_end) = ends(&mut dim.input_transform);
        let output = &mut dim.output_transform;
        let (input, truncation) = if upper {
            (upper_end, &mut output.truncation_upper)
        } else {
            (lower_end, &mut output.truncation_lower)
        };
        let excess = (*input).min(*truncation).min(most);
        *input -= excess;
        *truncation -= excess;
    }
}

/// Removes dilation and flip of a single element.
fn drop_ineffective(transform: &mut OperandTransform, size: u64) {
    if transform.truncated(size) > 1 {
        return;
    }
    transform.dilation = 1;
    if transform.flip {
        transform.flip = false;
        std::mem::swap(&mut transform.padding_lower, &mut transform.padding_upper);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::DType;

    fn conv(dim: FieldDim) -> ConvParams {
        ConvParams {
            input_type: DType::Half,
            output_type: DType::Half,
            batch: 4,
            conv_groups: 1,
            in_channels: 8,
            out_channels: 16,
            dims: vec![dim, dim],
        }
    }

    #[test]
    fn canonical_forms_are_fixed_points() {
        for dim in [
            FieldDim::new(7, 3).padded(1, 1),
            FieldDim::new(224, 3).padded(1, 0).strided(2),
            FieldDim::new(10, 3).padded(5, 5),
            FieldDim::new(9, 1).strided(4),
        ] {
            let params = conv(dim).canonical().unwrap();
            assert_eq!(params, params.canonical().unwrap());
            assert_eq!(params.output_field(), conv(dim).output_field());
        }
    }

    #[test]
    fn a_stride_one_convolution_with_same_channels_is_its_own_gradient() {
        let mut params = conv(FieldDim::new(14, 3).padded(1, 1));
        params.out_channels = params.in_channels;
        assert_eq!(params.gradient().unwrap(), params.canonical().unwrap());
    }

    #[test]
    fn gradients_have_the_shapes_of_their_operands() {
        let forward = conv(FieldDim::new(13, 3).padded(1, 0).strided(2));
        let backward = forward.gradient().unwrap();
        assert_eq!((backward.in_channels, backward.out_channels), (16, 8));
        assert_eq!(backward.dims[0].output(), 13);
        let update = forward.weight_update().unwrap();
        assert_eq!((update.batch, update.in_channels, update.out_channels), (8, 4, 16));
        assert_eq!(update.dims[0].output(), 3);
        assert_eq!(forward.swapped().unwrap().dims[0].output(), forward.dims[0].output());
    }
}
