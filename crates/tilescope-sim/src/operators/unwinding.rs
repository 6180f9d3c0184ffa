//! The relation between layouts of results and of operands, so that a reader of the result can
//! determine the layout of the operand.

use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use std::ops::Range;

/// The position of the elements of an operand in a result with the same layout (popart
/// willow/include/popart/popx/opx.hpp, unwindTensorLayout).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwinding {
    /// No relation: the result has an independent layout.
    DeadEnd,
    /// The order of the result, for a reshape or a function of each element.
    InOrder,
    /// Axis `i` of the result is axis `permutation[i]` of the operand.
    Permuted(Vec<usize>),
    /// A range of an axis of the result.
    Stretch { axis: usize, range: Range<u64> },
}

impl Unwinding {
    /// The layout of the operand for which the result, of `shape`, has `layout`.
    pub(crate) fn operand_layout(
        &self,
        shape: &[u64],
        layout: &TensorLayout,
    ) -> Option<TensorLayout> {
        let unwound = match self {
            Self::DeadEnd => return None,
            Self::InOrder => layout.clone(),
            Self::Permuted(permutation) => {
                let mut inverse = vec![0; permutation.len()];
                for (new, old) in permutation.iter().enumerate() {
                    inverse[*old] = new;
                }
                let order = layout.order.permuted(shape, &inverse);
                TensorLayout { order, ..layout.clone() }
            }
            Self::Stretch { axis, range } => layout.slice(shape, *axis, range.clone()),
        };
        if unwound.order == ElementOrder::Unknown {
            return None;
        }
        Some(unwound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_report::units::{Bytes, Elements};
    use tilescope_test_tiers::cases;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        /// A result of an operand with the unwound layout has the requested layout, and parts hold
        /// all their elements.
        #[test]
        fn unwound_layouts_give_the_layout_of_the_result(
            shape in prop::collection::vec(1u64..40, 1..5),
            axis in 0usize..4,
            group in 1u64..20,
            turns in 0usize..4,
            cut in 0u64..40,
        ) {
            let axis = axis % shape.len();
            let order = ElementOrder::grouped(&shape, axis, group.min(shape[axis]));
            let all = Elements(shape.iter().product());
            let layout = TensorLayout { order, ..TensorLayout::linear(all, Bytes(2), 100) };
            let permutation: Vec<usize> =
                (0..shape.len()).map(|axis| (axis + turns) % shape.len()).collect();
            let mut operand = shape.clone();
            for (new, old) in permutation.iter().enumerate() {
                operand[*old] = shape[new];
            }
            let turned = Unwinding::Permuted(permutation.clone()).operand_layout(&shape, &layout);
            if let Some(turned) = turned {
                let back = turned.order.permuted(&operand, &permutation);
                if turned.order == ElementOrder::Linear {
                    // Linear tensors have no groups: a group that covers a whole axis is not kept.
                    prop_assert_eq!(back.ungrouped(), layout.order.ungrouped());
                } else {
                    prop_assert_eq!(&back, &layout.order);
                }
                prop_assert_eq!(&turned.elements, &layout.elements);
            }
            prop_assert_eq!(Unwinding::InOrder.operand_layout(&shape, &layout), Some(layout.clone()));
            let cut = cut % (shape[axis] + 1);
            let part = |range| {
                let stretch = Unwinding::Stretch { axis, range };
                stretch.operand_layout(&shape, &layout).expect("a known order").elements.total()
            };
            prop_assert_eq!(part(0..cut) + part(cut..shape[axis]), all);
        }
    }
}
