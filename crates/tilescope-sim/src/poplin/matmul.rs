//! Products of a fully connected layer, and splitting of a layer into parts that are computed one
//! after the other (poptorch.SerializedMatMul, PopART willow/src/transforms/serializematmuls.cpp),
//! which limits temporaries to those of one part.
//!
//! One dimension of the layer is cut. In each of its three products that dimension belongs to two
//! of the three tensors: operands that have it are sliced, a result that has it is concatenated,
//! and a result that lacks it is summed.

use crate::spec_keys::spec_words;

/// One of the three products of a fully connected layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MatMulPhase {
    /// `x[m,k] . w[k,n]`
    #[default]
    Forward,
    /// `dy[m,n] . transpose(w[k,n])`, the gradient of `x`.
    InputGradient,
    /// `transpose(x[m,k]) . dy[m,n]`, the gradient of `w`.
    WeightGradient,
}

/// Sizes of a layer `x[m,k] . w[k,n]` in `groups`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulSizes {
    /// Number of independent products.
    pub groups: u64,
    /// Rows of `x`.
    pub m: u64,
    /// Columns of `x`.
    pub k: u64,
    /// Columns of the result.
    pub n: u64,
}

spec_words! {
    /// Dimension of a layer `x[m,k] . w[k,n]` that is cut (PopART's enum of that name).
    pub enum MatMulSerializationMode {
        /// None: layers stay whole.
        None = "none",
        /// `m`, rows of the input.
        InputChannels = "input_channels",
        /// `k`, which is summed over.
        ReducingDim = "reducing_dim",
        /// `n`, columns of the weights.
        OutputChannels = "output_channels",
    }
}

impl MatMulSerializationMode {
    /// Name of the dimension in messages to users.
    pub(crate) fn dimension(self) -> &'static str {
        match self {
            Self::None => "dimensions",
            Self::InputChannels => "input channels (rows)",
            Self::ReducingDim => "values of the reducing dimension",
            Self::OutputChannels => "output channels",
        }
    }
}

/// Dimension along which layers are cut, and number of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatMulSerialization {
    pub mode: MatMulSerializationMode,
    /// Number of parts of that dimension.
    pub parts: u64,
}

/// Number of parts of each tensor of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatMulSerialParts {
    /// Parts of `x[m,k]` and its gradient.
    pub x: u64,
    /// Parts of `w[k,n]` and its gradient.
    pub w: u64,
    /// Parts of `y[m,n]` and its gradient.
    pub y: u64,
}

impl MatMulSerialParts {
    pub(crate) const NONE: Self = Self { x: 1, w: 1, y: 1 };

    /// Numbers of parts of the two operands and of the result of a product.
    pub(crate) fn operand_and_result_parts(self, product: MatMulPhase) -> ([u64; 2], u64) {
        match product {
            MatMulPhase::Forward => ([self.x, self.w], self.y),
            MatMulPhase::InputGradient => ([self.y, self.w], self.x),
            MatMulPhase::WeightGradient => ([self.x, self.y], self.w),
        }
    }

    /// Number of parts of the loop.
    pub(crate) fn parts(self) -> u64 {
        self.x.max(self.w).max(self.y)
    }
}

impl MatMulSerialization {
    /// Sizes of one part of a layer, and the numbers of parts of its tensors. `None` for several
    /// independent products, as in attention, which are not a layer, and for dimensions that do not
    /// divide evenly.
    pub(crate) fn split_sizes(
        self,
        whole: MatMulSizes,
    ) -> Option<(MatMulSizes, MatMulSerialParts)> {
        let Self { mode, parts } = self;
        let mut part = whole;
        let size = match mode {
            MatMulSerializationMode::None => return None,
            MatMulSerializationMode::InputChannels => &mut part.m,
            MatMulSerializationMode::ReducingDim => &mut part.k,
            MatMulSerializationMode::OutputChannels => &mut part.n,
        };
        if whole.groups > 1 || parts < 2 || !size.is_multiple_of(parts) {
            return None;
        }
        *size /= parts;
        let cut = match mode {
            MatMulSerializationMode::None => MatMulSerialParts::NONE,
            MatMulSerializationMode::InputChannels => {
                MatMulSerialParts { x: parts, w: 1, y: parts }
            }
            MatMulSerializationMode::ReducingDim => MatMulSerialParts { x: parts, w: parts, y: 1 },
            MatMulSerializationMode::OutputChannels => {
                MatMulSerialParts { x: 1, w: parts, y: parts }
            }
        };
        Some((part, cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: MatMulSizes = MatMulSizes { groups: 1, m: 6, k: 8, n: 10 };

    #[test]
    fn a_dimension_belongs_to_two_tensors() {
        for (mode, cut) in [
            (MatMulSerializationMode::InputChannels, MatMulSerialParts { x: 2, w: 1, y: 2 }),
            (MatMulSerializationMode::ReducingDim, MatMulSerialParts { x: 2, w: 2, y: 1 }),
            (MatMulSerializationMode::OutputChannels, MatMulSerialParts { x: 1, w: 2, y: 2 }),
        ] {
            let (part, is) =
                MatMulSerialization { mode, parts: 2 }.split_sizes(SIZES).expect("even sizes");
            assert_eq!(is, cut);
            assert_eq!(2 * part.m * part.k * part.n, 6 * 8 * 10);
        }
    }

    #[test]
    fn dimensions_that_do_not_divide_stay_whole() {
        let cut = |parts| MatMulSerialization { mode: MatMulSerializationMode::ReducingDim, parts };
        assert_eq!(cut(3).split_sizes(SIZES), None);
        assert_eq!(cut(1).split_sizes(SIZES), None);
        assert_eq!(cut(2).split_sizes(MatMulSizes { groups: 4, ..SIZES }), None);
    }
}
