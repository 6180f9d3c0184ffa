//! Other ways to write a convolution: the canonical one, with operands swapped, and the
//! convolutions of the backward pass and of the weight gradient.
//!
//! Two shapes that mean the same have the same canonical form: ignored elements are truncated,
//! padding stands where it can be seen, no stride or flip without effect (poplibs
//! `ConvParams.cpp`, `ConvUtil.cpp`, `Convolution.cpp`).

use super::params::{ConvParams, FieldDim, OperandTransform, OutputTransform, PlanError};

impl ConvParams {
    /// The canonical form of a valid convolution.
    pub(crate) fn canonical(&self) -> Result<Self, PlanError> {
        self.validate()?;
        let mut canonical = self.clone();
        for dim in &mut canonical.dims {
            *dim = canonical_dim(*dim)?;
        }
        Ok(canonical)
    }

    /// The same result with input and kernel exchanged: batch and output channels trade places.
    pub fn swapped(&self) -> Result<Self, PlanError> {
        let mut swapped = self.clone();
        std::mem::swap(&mut swapped.batch, &mut swapped.out_channels);
        for dim in &mut swapped.dims {
            *dim = swapped_dim(*dim);
        }
        swapped.canonical()
    }

    /// The convolution of the output gradient that gives the input gradient. Its kernel is the
    /// forward one with channels transposed and elements reversed.
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

    /// The convolution of input and output gradient that gives the weight gradient: channels
    /// become the batch, the batch becomes channels, the output gradient is the kernel.
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

/// Padding a dimension gets when its operands are swapped: the "valid" convolution turns into one
/// that slides the other way.
fn swapped_dim(dim: FieldDim) -> FieldDim {
    // Sliding the longer operand over the shorter one takes this much padding on both sides, and
    // gives the outputs in reverse unless both are flipped.
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
    let (input, kernel, output) =
        (&dim.input_transform, &dim.kernel_transform, &dim.output_transform);
    // Each transform turns into its opposite: what was strided is dilated, what was truncated is
    // padded. The halo is what outermost inputs read through all kernel elements but one.
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
        // The caller reverses the kernel, so its ends trade places.
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
    let (kernel, output) = (&dim.kernel_transform, &dim.output_transform);
    FieldDim {
        input: dim.input,
        // Input and output gradient meet at every offset that a kernel element has, so the field of
        // this convolution is the kernel: its dilation becomes the stride.
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
    // The order of poplibs `ConvParams::canonicalize`: truncating what no output needs leaves
    // padding, which later steps cancel against the other operand or against truncated results.
    let size = dim.output();
    pad_zero_outputs(&mut dim, size)?;
    truncate_ignored_outputs(&mut dim);
    truncate_ignored_operands(&mut dim, size);
    remove_common_padding(&mut dim);
    remove_truncated_padding(&mut dim);
    let (input, kernel) = (dim.input, dim.kernel);
    drop_ineffective(&mut dim.input_transform, input);
    drop_ineffective(&mut dim.kernel_transform, kernel);
    debug_assert_eq!(dim.output(), size, "the canonical form has the same output");
    Ok(dim)
}

/// Outputs that are zero whatever the operands become padding.
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

/// Results that striding skips at the end are truncated, so that the gradient of the stride is a
/// dilation without padding.
fn truncate_ignored_outputs(dim: &mut FieldDim) {
    let untransformed = dim.untransformed_output();
    let output = &mut dim.output_transform;
    let kept = untransformed.saturating_sub(output.truncation_lower + output.truncation_upper);
    let ignored = kept.saturating_sub(1) % output.stride;
    output.truncation_upper += ignored;
    // A stride without a second result would keep two equal shapes apart.
    if kept - ignored == 1 {
        output.stride = 1;
    }
}

/// Elements of input and kernel that no output needs are truncated and replaced by padding.
fn truncate_ignored_operands(dim: &mut FieldDim, size: u64) {
    let used = dim.inputs_of(&(0..size), 0..dim.kernel);
    truncate_to(&mut dim.input_transform, dim.input, used.start, used.end);
    let used = dim.used_kernel();
    truncate_to(&mut dim.kernel_transform, dim.kernel, used.start, used.end);
}

fn truncate_to(transform: &mut OperandTransform, size: u64, begin: u64, end: u64) {
    if begin > transform.truncation_lower {
        // One truncated element leaves `dilation` transformed positions to padding.
        transform.padding_lower += (begin - transform.truncation_lower) * transform.dilation;
        transform.truncation_lower = begin;
    }
    if size - end > transform.truncation_upper {
        transform.padding_upper += (size - end - transform.truncation_upper) * transform.dilation;
        transform.truncation_upper = size - end;
    }
}

/// Padding at the two ends of an operand as the convolution sees it, flip applied.
fn ends(transform: &mut OperandTransform) -> (&mut u64, &mut u64) {
    if transform.flip {
        (&mut transform.padding_upper, &mut transform.padding_lower)
    } else {
        (&mut transform.padding_lower, &mut transform.padding_upper)
    }
}

/// Zeros times zeros add nothing: padding of both operands at the same end is dropped.
fn remove_common_padding(dim: &mut FieldDim) {
    for upper in [false, true] {
        // One element must be left of the kernel, be it padding.
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

/// Padding whose results are truncated is not needed.
fn remove_truncated_padding(dim: &mut FieldDim) {
    for upper in [false, true] {
        // One result must be left to truncate.
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

/// One element needs neither dilation nor flip.
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
    fn the_canonical_form_is_its_own() {
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
    fn gradients_have_the_shapes_of_what_they_are_gradients_of() {
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
