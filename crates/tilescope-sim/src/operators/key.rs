//! Operators as keys. Equal operators have the same effect on equal operands.

use super::Operator;
use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Comparison of operators of unknown type. Every operator that is `Eq` and `Hash` implements it.
pub trait OperatorIdentity: Any {
    /// Returns true if `other` is an operator of the same type with the same parameters.
    fn is_same(&self, other: &dyn Any) -> bool;

    /// Feeds the parameters to a hasher.
    fn hash_parameters(&self, state: &mut dyn Hasher);
}

impl<T: Any + Eq + Hash> OperatorIdentity for T {
    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }

    fn hash_parameters(&self, mut state: &mut dyn Hasher) {
        self.type_id().hash(&mut state);
        self.hash(&mut state);
    }
}

/// An operator as part of a key.
#[derive(Clone, Debug)]
pub(crate) struct OperatorKey(Arc<dyn Operator>);

impl OperatorKey {
    pub(crate) fn new(operator: &Arc<dyn Operator>) -> Self {
        Self(Arc::clone(operator))
    }

    pub(crate) fn operator(&self) -> &dyn Operator {
        &*self.0
    }
}

impl PartialEq for OperatorKey {
    fn eq(&self, other: &Self) -> bool {
        let other: &dyn Any = &*other.0;
        (*self.0).is_same(other)
    }
}

impl Eq for OperatorKey {}

impl Hash for OperatorKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (*self.0).hash_parameters(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::{CastOp, ReshapeOp, ScaleOp};
    use crate::shape::DType;
    use std::collections::HashSet;

    #[test]
    fn operators_are_equal_by_type_and_parameters() {
        let operators: [Arc<dyn Operator>; 6] = [
            Arc::new(CastOp { to: DType::Half }),
            Arc::new(CastOp { to: DType::Half }),
            Arc::new(CastOp { to: DType::Float }),
            Arc::new(ReshapeOp { shape: vec![4] }),
            Arc::new(ScaleOp::by(0.5)),
            Arc::new(ScaleOp::by(0.5)),
        ];
        let keys: HashSet<OperatorKey> = operators.iter().map(OperatorKey::new).collect();
        assert_eq!(keys.len(), 4);
    }
}
