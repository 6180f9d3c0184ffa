//! Parameters of convolutions: sizes and the transforms of input, kernel and output.
//!
//! A matrix product is a convolution with a kernel of one and the rows in the batch. Per spatial
//! dimension, input and kernel are truncated, dilated, padded and possibly flipped before they are
//! convolved. The result is truncated, strided and padded. Names and semantics follow poplibs
//! `ConvParams.hpp`.

use crate::shape::{DType, ShapeDisplay};
use std::fmt;
use tilescope_report::units::Elements;

/// Maximum number of spatial dimensions of a convolution.
pub(crate) const MAX_DIMS: usize = 3;

/// Largest batch, number of groups and number of channels.
pub(crate) const MAX_CHANNELS: u64 = 1 << 24;

/// Largest number of elements of one tensor. With [`MAX_MACS`] it keeps all arithmetic of the
/// planner far inside 64 bits.
pub(crate) const MAX_ELEMENTS: u64 = 1 << 40;

/// Largest number of multiply-accumulates of one operation, including those on padding.
pub(crate) const MAX_MACS: u64 = 1 << 52;

/// Largest transformed size of one spatial dimension, including dilation and padding. Index ranges
/// are found by iterating over kernel positions, so this also limits the time.
pub(crate) const MAX_FIELD: u64 = 1 << 20;

/// Largest dilation or stride.
pub(crate) const MAX_STRIDE: u64 = 1 << 10;

/// Error of planning an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A size that must be positive is zero.
    #[error("{what} must not be zero")]
    Empty {
        /// Name of the size.
        what: &'static str,
    },
    /// A size exceeds its documented limit.
    #[error("{what} is too large: the limit is {limit}")]
    TooLarge {
        /// Name of the size.
        what: &'static str,
        limit: u64,
    },
    /// The sizes do not fit together.
    #[error("{what}")]
    Invalid { what: &'static str },
    /// The chip has no vertex for these element types.
    #[error("no plan: {chip} has no vertex for {input} input and {partials} partials")]
    NoVertex {
        chip: &'static str,
        /// Element type of the input.
        input: &'static str,
        /// Element type of the partial sums.
        partials: &'static str,
    },
    /// The search would exceed its documented limit.
    #[error("the search for a plan exceeds {limit} split points")]
    SearchTooLarge { limit: u64 },
}

/// Transform of one operand along one dimension before the convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperandTransform {
    /// Number of elements dropped at the beginning.
    pub truncation_lower: u64,
    /// Number of elements dropped at the end.
    pub truncation_upper: u64,
    /// Distance between adjacent elements. 1 means no gap.
    pub dilation: u64,
    /// Number of zeros added at the beginning.
    pub padding_lower: u64,
    /// Number of zeros added at the end.
    pub padding_upper: u64,
    /// True if the result is reversed.
    pub flip: bool,
}

impl OperandTransform {
    /// The transform that changes nothing.
    pub const NONE: Self = Self {
        truncation_lower: 0,
        truncation_upper: 0,
        dilation: 1,
        padding_lower: 0,
        padding_upper: 0,
        flip: false,
    };

    /// Size after truncation of `size` elements.
    pub(crate) fn truncated(&self, size: u64) -> u64 {
        // Saturating, like the sizes below: `validate` calls them before it has checked any limit.
        size.saturating_sub(self.truncation_lower.saturating_add(self.truncation_upper))
    }

    /// Size after all steps of the transform.
    pub(crate) fn transformed(&self, size: u64) -> u64 {
        let dilated = dilated_size(self.truncated(size), self.dilation);
        self.padding_lower.saturating_add(dilated).saturating_add(self.padding_upper)
    }
}

impl Default for OperandTransform {
    fn default() -> Self {
        Self::NONE
    }
}

/// Transform of the result of the convolution along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputTransform {
    /// Number of elements dropped at the beginning, before striding.
    pub truncation_lower: u64,
    /// Number of elements dropped at the end, before striding.
    pub truncation_upper: u64,
    /// Distance between the elements that are kept.
    pub stride: u64,
    /// Number of zeros added at the beginning.
    pub padding_lower: u64,
    /// Number of zeros added at the end.
    pub padding_upper: u64,
}

impl OutputTransform {
    pub(crate) const NONE: Self = Self {
        truncation_lower: 0,
        truncation_upper: 0,
        stride: 1,
        padding_lower: 0,
        padding_upper: 0,
    };
}

impl Default for OutputTransform {
    fn default() -> Self {
        Self::NONE
    }
}

/// One spatial dimension of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldDim {
    pub input: u64,
    pub kernel: u64,
    /// Transform of the input.
    pub input_transform: OperandTransform,
    /// Transform of the kernel.
    pub kernel_transform: OperandTransform,
    /// Transform of the output.
    pub output_transform: OutputTransform,
}

impl FieldDim {
    /// Creates a dimension without transforms.
    pub fn new(input: u64, kernel: u64) -> Self {
        Self {
            input,
            kernel,
            input_transform: OperandTransform::NONE,
            kernel_transform: OperandTransform::NONE,
            output_transform: OutputTransform::NONE,
        }
    }

    /// Returns the same dimension with zeros around the input.
    pub fn padded(mut self, lower: u64, upper: u64) -> Self {
        self.input_transform.padding_lower = lower;
        self.input_transform.padding_upper = upper;
        self
    }

    /// Returns the same dimension with another stride.
    pub fn strided(mut self, stride: u64) -> Self {
        self.output_transform.stride = stride;
        self
    }

    /// Input size after the transform.
    pub(crate) fn transformed_input(&self) -> u64 {
        self.input_transform.transformed(self.input)
    }

    /// Kernel size after the transform.
    pub(crate) fn transformed_kernel(&self) -> u64 {
        self.kernel_transform.transformed(self.kernel)
    }

    /// Output size before truncation, striding and padding.
    pub(crate) fn untransformed_output(&self) -> u64 {
        self.transformed_input().saturating_add(1).saturating_sub(self.transformed_kernel())
    }

    pub(crate) fn output(&self) -> u64 {
        let transform = &self.output_transform;
        let cut = transform.truncation_lower.saturating_add(transform.truncation_upper);
        let kept = self.untransformed_output().saturating_sub(cut);
        let kept = kept.div_ceil(transform.stride.max(1));
        kept.saturating_add(transform.padding_lower).saturating_add(transform.padding_upper)
    }

    /// Checks that sizes are positive, within their limits and consistent.
    pub(crate) fn validate(&self) -> Result<(), PlanError> {
        for (what, size) in [("input field", self.input), ("kernel", self.kernel)] {
            positive(what, size)?;
            at_most(what, size, MAX_FIELD)?;
        }
        for transform in [&self.input_transform, &self.kernel_transform] {
            positive("dilation", transform.dilation)?;
            at_most("dilation", transform.dilation, MAX_STRIDE)?;
            at_most("padding", transform.padding_lower, MAX_FIELD)?;
            at_most("padding", transform.padding_upper, MAX_FIELD)?;
        }
        let output = &self.output_transform;
        positive("stride", output.stride)?;
        at_most("stride", output.stride, MAX_STRIDE)?;
        at_most("padding", output.padding_lower, MAX_FIELD)?;
        at_most("padding", output.padding_upper, MAX_FIELD)?;
        at_most("padded and dilated input field", self.transformed_input(), MAX_FIELD)?;
        at_most("padded and dilated kernel", self.transformed_kernel(), MAX_FIELD)?;
        self.validate_fit()
    }

    fn validate_fit(&self) -> Result<(), PlanError> {
        let input = &self.input_transform;
        let kernel = &self.kernel_transform;
        if input.truncation_lower.saturating_add(input.truncation_upper) > self.input {
            return Err(PlanError::Invalid { what: "the input truncation exceeds the input" });
        }
        if kernel.truncation_lower.saturating_add(kernel.truncation_upper) > self.kernel {
            return Err(PlanError::Invalid { what: "the kernel truncation exceeds the kernel" });
        }
        positive("transformed kernel", self.transformed_kernel())?;
        if self.transformed_input() < self.transformed_kernel() {
            return Err(PlanError::Invalid { what: "the kernel is larger than the padded input" });
        }
        let output = &self.output_transform;
        let truncated = output.truncation_lower.saturating_add(output.truncation_upper);
        if truncated > self.untransformed_output() {
            return Err(PlanError::Invalid { what: "the output truncation exceeds the output" });
        }
        positive("output field", self.output())
    }
}

/// Shape of a convolution, or of a matrix product in the form of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvParams {
    /// Element type of input and kernel.
    pub input_type: DType,
    /// Element type of the result.
    pub output_type: DType,
    pub batch: u64,
    /// Number of independent convolutions.
    pub conv_groups: u64,
    /// Input channels of one group.
    pub in_channels: u64,
    /// Output channels of one group.
    pub out_channels: u64,
    /// Spatial dimensions, outermost first.
    pub dims: Vec<FieldDim>,
}

impl ConvParams {
    /// Creates `groups` products `[m, k] x [k, n]`: rows in the batch, columns as output channels
    /// (poplibs `MatMul.cpp`).
    pub fn matmul(data_type: DType, groups: u64, m: u64, k: u64, n: u64) -> Self {
        Self {
            input_type: data_type,
            output_type: data_type,
            batch: m,
            conv_groups: groups,
            in_channels: k,
            out_channels: n,
            // poplibs has no separate plan for a product. With a field of one, the transforms can
            // turn rows into a field if that is better.
            dims: vec![FieldDim::new(1, 1)],
        }
    }

    /// Product of the output sizes of all dimensions.
    pub(crate) fn output_field(&self) -> u64 {
        self.dims.iter().map(FieldDim::output).product()
    }

    /// Product of the kernel sizes of all dimensions.
    pub(crate) fn kernel_field(&self) -> u64 {
        self.dims.iter().map(|dim| dim.kernel).product()
    }

    /// Product of the input sizes of all dimensions.
    pub(crate) fn input_field(&self) -> u64 {
        self.dims.iter().map(|dim| dim.input).product()
    }

    /// Number of elements of the input tensor.
    pub fn input_elements(&self) -> Elements {
        Elements(self.input_field() * self.batch * self.in_channels * self.conv_groups)
    }

    /// Number of elements of the kernel tensor.
    pub fn weight_elements(&self) -> Elements {
        Elements(self.kernel_field() * self.in_channels * self.out_channels * self.conv_groups)
    }

    /// Number of elements of the output tensor.
    pub fn output_elements(&self) -> Elements {
        Elements(self.output_field() * self.batch * self.out_channels * self.conv_groups)
    }

    /// Number of multiply-accumulates, without those on padding.
    pub fn macs(&self) -> u64 {
        let field: u64 = self.dims.iter().map(FieldDim::macs).product();
        field * self.batch * self.in_channels * self.out_channels * self.conv_groups
    }

    /// Checks every documented limit. All planning starts here.
    pub(crate) fn validate(&self) -> Result<(), PlanError> {
        if self.dims.is_empty() || self.dims.len() > MAX_DIMS {
            return Err(PlanError::Invalid { what: "a convolution has one to three dimensions" });
        }
        for (what, size) in [
            ("batch", self.batch),
            ("number of groups", self.conv_groups),
            ("number of input channels", self.in_channels),
            ("number of output channels", self.out_channels),
        ] {
            positive(what, size)?;
            at_most(what, size, MAX_CHANNELS)?;
        }
        self.dims.iter().try_for_each(FieldDim::validate)?;
        if self.within_bounds() { Ok(()) } else { self.too_large() }
    }

    fn too_large(&self) -> Result<(), PlanError> {
        Err(PlanError::TooLarge { what: "the convolution", limit: MAX_MACS })
    }

    /// Returns true if all tensors and the multiply-accumulates are within the documented limits.
    pub(crate) fn within_bounds(&self) -> bool {
        let batch = Some(self.batch);
        let groups = Some(self.conv_groups);
        let in_channels = Some(self.in_channels);
        let out_channels = Some(self.out_channels);
        let input = checked_product(self.dims.iter().map(|dim| Some(dim.transformed_input())));
        let kernel = checked_product(self.dims.iter().map(|dim| Some(dim.kernel)));
        let output = checked_product(self.dims.iter().map(|dim| Some(dim.output())));
        // Transforms multiply dimensions into channels, so these are checked again for every
        // candidate.
        self.in_channels.max(self.out_channels) <= MAX_CHANNELS
            && is_within([input, batch, groups, in_channels], MAX_ELEMENTS)
            && is_within([kernel, groups, in_channels, out_channels], MAX_ELEMENTS)
            && is_within([output, batch, groups, out_channels], MAX_ELEMENTS)
            && is_within([output, kernel, batch, groups, in_channels, out_channels], MAX_MACS)
    }
}

/// Product of sizes, or `None` if one of them is missing or the product overflows.
fn checked_product(sizes: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    let mut product: u64 = 1;
    for size in sizes {
        product = product.checked_mul(size?)?;
    }
    Some(product)
}

/// Returns true if the product of sizes does not exceed a limit.
fn is_within(sizes: impl IntoIterator<Item = Option<u64>>, limit: u64) -> bool {
    checked_product(sizes).is_some_and(|product| product <= limit)
}

impl fmt::Display for ConvParams {
    /// Formats the shapes, such as `[4,64,56,56] x [64,64,1,1] -> [4,64,56,56]`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut input = vec![self.batch, self.in_channels * self.conv_groups];
        let mut kernel = vec![self.out_channels * self.conv_groups, self.in_channels];
        let mut output = vec![self.batch, self.out_channels * self.conv_groups];
        for dim in &self.dims {
            input.push(dim.input);
            kernel.push(dim.kernel);
            output.push(dim.output());
        }
        let [input, kernel, output] = [&input, &kernel, &output].map(|shape| ShapeDisplay(shape));
        write!(f, "{input} x {kernel} -> {output}")
    }
}

/// Size of `size` elements with `dilation - 1` zeros between neighbours.
pub(crate) fn dilated_size(size: u64, dilation: u64) -> u64 {
    if size == 0 { 0 } else { (size - 1).saturating_mul(dilation).saturating_add(1) }
}

fn positive(what: &'static str, size: u64) -> Result<(), PlanError> {
    if size == 0 { Err(PlanError::Empty { what }) } else { Ok(()) }
}

fn at_most(what: &'static str, size: u64, limit: u64) -> Result<(), PlanError> {
    if size > limit { Err(PlanError::TooLarge { what, limit }) } else { Ok(()) }
}
