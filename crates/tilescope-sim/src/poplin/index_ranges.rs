//! Index ranges of input, kernel and output of one dimension that are multiplied with each other.
//!
//! Output position `o` and kernel position `k` need the input element at position `stride * o + k`
//! of the transformed input, if there is one: padding and the gaps of a dilation contain none.
//! Ranges are half-open and may contain such gaps inside, never at their ends. The semantics are
//! those of poplibs `ConvUtil.cpp`. Here the ends come from solving
//! `stride * t + c = 0 (mod dilation)` instead of iterating over outputs.

use super::params::{FieldDim, OperandTransform, OutputTransform, dilated_size};
use crate::shape::gcd;
use std::ops::Range;

const NONE: Range<u64> = 0..0;

impl OperandTransform {
    /// Position of element `index` of `size` after the transform, or `None` if it is truncated.
    fn position(&self, index: u64, size: u64) -> Option<u64> {
        if index < self.truncation_lower || index + self.truncation_upper >= size {
            return None;
        }
        let placed = (index - self.truncation_lower) * self.dilation + self.padding_lower;
        Some(if self.flip { self.transformed(size) - 1 - placed } else { placed })
    }

    /// Number of zeros before the first element, in transformed order.
    fn leading_padding(&self) -> u64 {
        if self.flip { self.padding_upper } else { self.padding_lower }
    }
}

impl OutputTransform {
    /// Position before the transform of an output that is not padding.
    fn untransformed_position(&self, output: u64) -> u64 {
        (output - self.padding_lower) * self.stride + self.truncation_lower
    }
}

impl FieldDim {
    /// Output positions inside `bounds` that kernel element `kernel` contributes to.
    pub(crate) fn outputs_of_kernel(&self, bounds: &Range<u64>, kernel: u64) -> Range<u64> {
        let Some(shift) = self.kernel_transform.position(kernel, self.kernel) else { return NONE };
        let input = &self.input_transform;
        let last = dilated_size(input.truncated(self.input), input.dilation);
        let output = &self.output_transform;
        let kept = self.output().saturating_sub(output.padding_upper);
        let begin = bounds.start.max(output.padding_lower);
        let end = bounds.end.min(kept);
        if last == 0 || begin >= end {
            return NONE;
        }
        // Output t (counted after the padding) reads transformed input t * stride + offset,
        // relative to its first element.
        let offset = (output.truncation_lower + shift) as i64 - input.leading_padding() as i64;
        let stride = output.stride as i64;
        let last = last as i64 - 1;
        let low = (begin - output.padding_lower) as i64;
        let high = (end - 1 - output.padding_lower) as i64;
        // Outputs that read padding on either side are excluded:
        // `0 <= t * stride + offset <= last`. `div_euclid` rounds down, so the lower end adds one
        // if there is a remainder.
        let low =
            low.max((-offset).div_euclid(stride) + i64::from((-offset).rem_euclid(stride) > 0));
        let high = high.min((last - offset).div_euclid(stride));
        // Of the remaining outputs, only every `period`-th meets an element and not a gap.
        let Some((residue, period)) = congruent(stride, offset, input.dilation as i64) else {
            return NONE;
        };
        let first = low + (residue - low).rem_euclid(period);
        let final_one = high - (high - residue).rem_euclid(period);
        if first > final_one {
            return NONE;
        }
        first as u64 + output.padding_lower..final_one as u64 + output.padding_lower + 1
    }

    /// Output positions inside `bounds` that any kernel element of `kernel` contributes to.
    pub(crate) fn outputs_of_kernels(&self, bounds: &Range<u64>, kernel: Range<u64>) -> Range<u64> {
        let ranges = kernel.map(|kernel| self.outputs_of_kernel(bounds, kernel));
        hull(ranges)
    }

    /// Index of the input element that output `output` multiplies with kernel element `kernel`.
    pub(crate) fn input_index(&self, output: u64, kernel: u64) -> Option<u64> {
        let shift = self.kernel_transform.position(kernel, self.kernel)?;
        let transform = &self.input_transform;
        let out = &self.output_transform;
        let position =
            output.checked_sub(out.padding_lower)? * out.stride + out.truncation_lower + shift;
        let dilated = position.checked_sub(transform.leading_padding())?;
        let count = transform.truncated(self.input);
        let index = dilated / transform.dilation;
        if !dilated.is_multiple_of(transform.dilation) || index >= count {
            return None;
        }
        let index = if transform.flip { count - 1 - index } else { index };
        Some(index + transform.truncation_lower)
    }

    /// Input elements that outputs `outputs` read through kernel elements `kernel`.
    pub(crate) fn inputs_of(&self, outputs: &Range<u64>, kernel: Range<u64>) -> Range<u64> {
        self.contiguous_inputs(outputs, &kernel)
            .unwrap_or_else(|| self.inputs_of_each(outputs, kernel))
    }

    /// As [`Self::inputs_of`], if positions leave no gaps, so that no iteration is needed. `None`
    /// otherwise.
    fn contiguous_inputs(&self, outputs: &Range<u64>, kernel: &Range<u64>) -> Option<Range<u64>> {
        let input = &self.input_transform;
        let filter = &self.kernel_transform;
        let output = &self.output_transform;
        let begin = outputs.start.max(output.padding_lower);
        let end = outputs.end.min(self.output().saturating_sub(output.padding_upper));
        if begin >= end || kernel.is_empty() {
            return Some(NONE);
        }
        // Adjacent outputs fill the gaps of a dilated kernel if there are enough of them, and
        // kernel elements the gaps of a stride: then every position between the ends is read.
        let along_outputs = output.stride == 1 && end - begin >= filter.dilation;
        let along_kernel = filter.dilation == 1 && kernel.end - kernel.start >= output.stride;
        if input.dilation != 1 || !(along_outputs || along_kernel) {
            return None;
        }
        let first = filter.position(kernel.start, self.kernel)?;
        let last = filter.position(kernel.end - 1, self.kernel)?;
        // Transformed positions, then those of them that contain input.
        let low = output.untransformed_position(begin) + first.min(last);
        let high = output.untransformed_position(end - 1) + first.max(last);
        let padding = input.leading_padding();
        let count = input.truncated(self.input);
        let low = low.saturating_sub(padding);
        let high = (high + 1).checked_sub(padding);
        let high = high.unwrap_or(0).min(count);
        if low >= high {
            return Some(NONE);
        }
        let (low, high) = if input.flip { (count - high, count - low) } else { (low, high) };
        Some(low + input.truncation_lower..high + input.truncation_lower)
    }

    fn inputs_of_each(&self, outputs: &Range<u64>, kernel: Range<u64>) -> Range<u64> {
        let ranges = kernel.map(|kernel| {
            let touched = self.outputs_of_kernel(outputs, kernel);
            if touched.is_empty() {
                return NONE;
            }
            // For one kernel element inputs increase with outputs, or decrease if flipped, so the
            // ends are sufficient.
            let first = self.input_index(touched.start, kernel);
            let last = self.input_index(touched.end - 1, kernel);
            match (first, last) {
                (Some(first), Some(last)) => first.min(last)..first.max(last) + 1,
                _ => NONE,
            }
        });
        hull(ranges)
    }

    /// Range of kernel elements that contribute to any output.
    pub(crate) fn used_kernel(&self) -> Range<u64> {
        let everything = 0..self.output();
        let mut used = (0..self.kernel)
            .filter(|kernel| !self.outputs_of_kernel(&everything, *kernel).is_empty());
        let Some(first) = used.next() else { return NONE };
        let last = used.next_back().unwrap_or(first);
        first..last + 1
    }

    /// Multiply-accumulates of this dimension: for every kernel element, the number of outputs it
    /// contributes to (poplibs `PerformanceEstimation.hpp` getNumberOfMACs).
    pub(crate) fn macs(&self) -> u64 {
        let step = self.active_output_step();
        let everything = 0..self.output();
        let truncation = &self.kernel_transform;
        let kernels =
            truncation.truncation_lower..self.kernel.saturating_sub(truncation.truncation_upper);
        kernels
            .map(|kernel| {
                let outputs = self.outputs_of_kernel(&everything, kernel);
                (outputs.end - outputs.start).div_ceil(step)
            })
            .sum()
    }

    /// Distance between outputs that one kernel element contributes to.
    pub(crate) fn active_output_step(&self) -> u64 {
        let dilation = self.input_transform.dilation;
        let stride = self.output_transform.stride;
        dilation / gcd(dilation, stride)
    }

    /// Number of input elements that a range of `outputs` adjacent outputs needs for `kernel`
    /// kernel elements, as the planner counts them (poplibs `ConvModel.cpp` getMaxInputRangeSize).
    /// `whole` is the number for all outputs.
    pub(crate) fn planned_inputs(&self, outputs: u64, kernel: u64, whole: u64) -> u64 {
        if outputs == self.output() && kernel == self.kernel {
            return whole;
        }
        // Without the dilation of the kernel, as in poplibs: plans of dilated kernels assume fewer
        // inputs than they need.
        let dilated = (outputs - 1) * self.output_transform.stride + kernel;
        ((dilated - 1) / self.input_transform.dilation + 1).min(whole)
    }

    /// Number of input elements that all outputs together need.
    pub(crate) fn needed_inputs(&self) -> u64 {
        let range = self.inputs_of(&(0..self.output()), 0..self.kernel);
        range.end - range.start
    }
}

/// Solutions `t` of `factor * t + offset = 0 (mod modulus)`: their residue and period.
fn congruent(factor: i64, offset: i64, modulus: i64) -> Option<(i64, i64)> {
    // If stride and dilation have a common factor, they may never meet at this offset: no solution.
    let common = gcd(factor as u64, modulus as u64) as i64;
    if offset.rem_euclid(common) != 0 {
        return None;
    }
    let factor = factor / common;
    let period = modulus / common;
    let inverse = inverse_mod(factor.rem_euclid(period), period);
    let residue = (-(offset / common)).rem_euclid(period) * inverse;
    Some((residue.rem_euclid(period), period))
}

/// Inverse of `value` modulo `modulus`, which is coprime to it (extended Euclid).
fn inverse_mod(value: i64, modulus: i64) -> i64 {
    let mut old = (modulus, 0);
    let mut new = (value, 1);
    while new.0 > 1 {
        let quotient = old.0 / new.0;
        (old, new) = (new, (old.0 - quotient * new.0, old.1 - quotient * new.1));
    }
    new.1.rem_euclid(modulus)
}

/// Smallest range that covers all non-empty ones.
fn hull(ranges: impl Iterator<Item = Range<u64>>) -> Range<u64> {
    ranges
        .filter(|range| !range.is_empty())
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
        .unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    #[test]
    fn padding_cuts_the_outputs_of_outer_kernel_elements() {
        let dim = FieldDim::new(7, 3).padded(1, 1);
        let all = 0..7;
        assert_eq!(dim.output(), 7);
        assert_eq!(dim.outputs_of_kernel(&all, 0), 1..7);
        assert_eq!(dim.outputs_of_kernel(&all, 1), 0..7);
        assert_eq!(dim.outputs_of_kernel(&all, 2), 0..6);
        assert_eq!(dim.macs(), 19);
        assert_eq!(dim.inputs_of(&(0..3), 0..3), 0..4);
    }

    #[test]
    fn strides_skip_inputs_and_dilations_skip_outputs() {
        let strided = FieldDim::new(8, 3).strided(2);
        assert_eq!(strided.output(), 3);
        assert_eq!(strided.inputs_of(&(1..3), 0..3), 2..7);
        let mut dilated = FieldDim::new(4, 3).padded(2, 2);
        dilated.input_transform.dilation = 2;
        assert_eq!(dilated.transformed_input(), 11);
        assert_eq!(dilated.output(), 9);
        assert_eq!(dilated.outputs_of_kernel(&(0..9), 0), 2..9);
        assert_eq!(dilated.outputs_of_kernel(&(0..9), 1), 1..8);
        assert_eq!(dilated.active_output_step(), 2);
        assert_eq!(dilated.macs(), 12);
    }

    fn any_transform() -> impl Strategy<Value = OperandTransform> {
        (0..3u64, 0..3u64, 1..4u64, 0..3u64, 0..3u64, any::<bool>()).prop_map(
            |(truncation_lower, truncation_upper, dilation, padding_lower, padding_upper, flip)| {
                OperandTransform {
                    truncation_lower,
                    truncation_upper,
                    dilation,
                    padding_lower,
                    padding_upper,
                    flip,
                }
            },
        )
    }

    /// Small dimensions with every transform.
    fn any_dim() -> impl Strategy<Value = FieldDim> {
        let sizes = (1..12u64, 1..6u64, any_transform(), any_transform());
        let output = (0..2u64, 0..2u64, 1..4u64, 0..3u64, 0..3u64);
        (sizes, output)
            .prop_map(|((input, kernel, input_transform, kernel_transform), output)| FieldDim {
                input,
                kernel,
                input_transform,
                kernel_transform,
                output_transform: OutputTransform {
                    truncation_lower: output.0,
                    truncation_upper: output.1,
                    stride: output.2,
                    padding_lower: output.3,
                    padding_upper: output.4,
                },
            })
            .prop_filter("a dimension with outputs", |dim| dim.validate().is_ok())
    }

    /// All pairs of output and input that kernel element `kernel` connects, by enumeration.
    fn connected(dim: &FieldDim, kernel: u64) -> Vec<(u64, u64)> {
        (0..dim.output().saturating_sub(dim.output_transform.padding_upper))
            .filter_map(|output| Some((output, dim.input_index(output, kernel)?)))
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn ranges_match_enumeration(dim in any_dim()) {
            for kernel in 0..dim.kernel {
                let outputs: Vec<u64> = connected(&dim, kernel).iter().map(|pair| pair.0).collect();
                let range = dim.outputs_of_kernel(&(0..dim.output()), kernel);
                prop_assert_eq!(range.is_empty(), outputs.is_empty());
                if let (Some(first), Some(last)) = (outputs.first(), outputs.last()) {
                    prop_assert_eq!(range, *first..last + 1);
                }
            }
        }

        /// The plan counts all inputs that a part reads, regardless of its position.
        #[test]
        fn plans_count_all_inputs_of_a_part(
            [input, kernel, stride, dilation] in [1..40u64, 1..8u64, 1..4u64, 1..3u64],
            [lower, upper] in [0..3u64, 0..3u64],
            [outputs, kernels] in [[0.0..1.0, 0.0..1.0], [0.0..1.0, 0.0..1.0]],
        ) {
            let mut dim = FieldDim::new(input.max(kernel), kernel).padded(lower, upper).strided(stride);
            dim.input_transform.dilation = dilation;
            let part = |size: u64, [one, other]: [f64; 2]| {
                let [one, other] = [one, other].map(|share: f64| (share * size as f64) as u64);
                one.min(other)..one.max(other) + 1
            };
            let outputs = part(dim.output(), outputs);
            let kernels = part(kernel, kernels);
            let read = dim.inputs_of(&outputs, kernels.clone());
            let [outputs, kernels] = [outputs, kernels].map(|range| range.end - range.start);
            let planned = dim.planned_inputs(outputs, kernels, dim.needed_inputs());
            prop_assert!(read.end - read.start <= planned, "{read:?} {planned}");
        }

        #[test]
        fn contiguous_inputs_match_enumeration(dim in any_dim(), cut in 0.0..1.0) {
            let outputs = (dim.output() as f64 * cut) as u64..dim.output();
            for start in 0..dim.kernel {
                let kernel = start..dim.kernel;
                let walked = dim.inputs_of_each(&outputs, kernel.clone());
                prop_assert_eq!(dim.inputs_of(&outputs, kernel), walked);
            }
        }
    }
}
