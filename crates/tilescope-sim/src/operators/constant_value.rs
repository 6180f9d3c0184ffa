//! Numbers as parameters of operators.

use std::hash::{Hash, Hasher};

/// A number that equals another one with the same bits, so that operators with it can be keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConstantValue(pub f64);

impl PartialEq for ConstantValue {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for ConstantValue {}

impl Hash for ConstantValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}
