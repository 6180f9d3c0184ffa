//! A share of memory that is given, or found by the compiler.

use super::declare::SpecField;
use super::key::SpecKeyType;
use super::value::SpecValue;
use std::hash::{Hash, Hasher};

/// The word for a share that the compiler finds.
const AUTO: &str = "auto";

/// A share of a tile's memory, 0 to 1, that can be compared and hashed, so that it may be part of
/// the key of a cache.
#[derive(Clone, Copy, Debug)]
pub enum Proportion {
    Given(f64),
    /// The compiler finds it, and goes on with [`Proportion::Found`].
    Auto,
    Found(f64),
}

impl Proportion {
    /// The default of poplibs (`ConvOptions.hpp`).
    pub const POPLIBS_DEFAULT: f64 = 0.6;

    /// One that was found.
    pub(crate) fn found(percent: u32) -> Self {
        Self::Found(f64::from(percent) / 100.0)
    }

    /// A share that is given.
    pub const fn new(share: f64) -> Self {
        Self::Given(share)
    }

    /// The share; poplibs' default before it is found.
    pub fn get(self) -> f64 {
        match self {
            Self::Given(share) | Self::Found(share) => share,
            Self::Auto => Self::POPLIBS_DEFAULT,
        }
    }
}

impl PartialEq for Proportion {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.get().to_bits() == other.get().to_bits()
    }
}

impl Eq for Proportion {}

impl Hash for Proportion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        self.get().to_bits().hash(state);
    }
}

impl SpecField for Proportion {
    const FORM: SpecKeyType = SpecKeyType::RealsAboveOr(0.0, 1.0, AUTO);

    fn from_spec(value: &SpecValue) -> Option<Self> {
        match value {
            SpecValue::String(word) if word == AUTO => Some(Self::Auto),
            // What stands for all IPUs where it is open which of them an operation is on.
            SpecValue::Array(items) => {
                let shares = items.iter().filter_map(f64::from_spec);
                shares.min_by(f64::total_cmp).map(Self::Given)
            }
            number => f64::from_spec(number).map(Self::Given),
        }
    }

    fn to_spec(&self) -> SpecValue {
        match self {
            Self::Given(share) => SpecValue::Float(*share),
            Self::Auto | Self::Found(_) => SpecValue::String(AUTO.to_string()),
        }
    }
}
