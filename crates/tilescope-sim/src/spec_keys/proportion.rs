//! A share of memory that is given by the user or found by the compiler.

use super::declare::SpecField;
use super::key::SpecKeyType;
use super::value::SpecValue;
use std::hash::{Hash, Hasher};

/// The word for a share that the compiler finds.
const AUTO: &str = "auto";

/// A share of a tile's memory, from 0 to 1, that can be compared and hashed as part of a cache key.
#[derive(Clone, Copy, Debug)]
pub enum Proportion {
    Given(f64),
    /// The compiler searches for the share, and continues with [`Proportion::Found`].
    Auto,
    Found(f64),
}

impl Proportion {
    /// The default of poplibs (`ConvOptions.hpp`).
    pub const POPLIBS_DEFAULT: f64 = 0.6;

    /// Makes a share that was found.
    pub(crate) fn found(percent: u32) -> Self {
        Self::Found(f64::from(percent) / 100.0)
    }

    /// Makes a share that is given.
    pub const fn new(share: f64) -> Self {
        Self::Given(share)
    }

    /// The share. Before it is found, poplibs' default.
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
            // The smallest share stands for all IPUs while the IPU of an operation is not known.
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
