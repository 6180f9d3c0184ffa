//! Amounts of one kind each: cycles, bytes, elements, and the clock that converts cycles to
//! seconds.
//!
//! An amount can be added to and compared with its own kind only, and multiplied and divided by
//! plain numbers. As with plain integers, a sum or product above the largest `u64` and a difference
//! below zero panic in debug builds; `saturating_*` and `checked_*` are for untrusted values.
//! Conversions go through the public field, so that every change of kind is visible.

use super::format::grouped;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Rem, Sub, SubAssign};

/// An amount that can be summed over tiles, see [`TileRuns`](super::TileRuns).
pub trait Quantity:
    Copy + fmt::Debug + Default + Ord + Add<Output = Self> + Mul<u64, Output = Self> + Sum<Self>
{
    /// The amount zero, which tiles without a value count as.
    const ZERO: Self;

    /// The amount of a plain number.
    fn from_number(number: u64) -> Self;

    /// The plain number, as in files and on axes.
    fn number(self) -> u64;

    /// The sum, at most the largest number: for untrusted values.
    #[must_use]
    fn saturating_add(self, other: Self) -> Self {
        Self::from_number(self.number().saturating_add(other.number()))
    }

    /// The product, at most the largest number: for untrusted values.
    #[must_use]
    fn saturating_mul(self, times: u64) -> Self {
        Self::from_number(self.number().saturating_mul(times))
    }

    /// The share `part / all` of it, rounded down. `part` must not exceed `all`.
    #[must_use]
    fn share(self, part: u64, all: u64) -> Self {
        Self::from_number(share(self.number(), part, all, |product, all| product / all))
    }

    /// The same rounded up.
    #[must_use]
    fn share_rounded_up(self, part: u64, all: u64) -> Self {
        Self::from_number(share(self.number(), part, all, u128::div_ceil))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a part is not more than all")]
fn share(amount: u64, part: u64, all: u64, divide: impl Fn(u128, u128) -> u128) -> u64 {
    debug_assert!(part <= all, "{part} is more than {all}");
    // The product may exceed 64 bits.
    divide(u128::from(amount) * u128::from(part), u128::from(all)) as u64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the fraction is to go, and the rest is cut at both ends"
)]
const fn whole_part(number: f64) -> u64 {
    number as u64
}

impl Quantity for u64 {
    const ZERO: Self = 0;

    fn from_number(number: u64) -> Self {
        number
    }

    fn number(self) -> u64 {
        self
    }
}

/// Defines an amount: a number of one kind of thing.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The amount zero.
            pub const ZERO: Self = Self(0);
            /// The largest amount, as the start of a search for a minimum.
            pub const MAX: Self = Self(u64::MAX);

            /// True if it is zero.
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            /// The number for ratios and axes; exact up to 2^53.
            pub const fn as_f64(self) -> f64 {
                self.0 as f64
            }

            /// The integer part of a number: zero below one, and at most the largest amount.
            pub const fn from_f64(number: f64) -> Self {
                Self(whole_part(number))
            }

            /// The difference, or zero if `other` is larger.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// The sum, at most the largest amount.
            #[must_use]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// The product, at most the largest amount.
            #[must_use]
            pub const fn saturating_mul(self, times: u64) -> Self {
                Self(self.0.saturating_mul(times))
            }

            /// The sum, unless it overflows.
            pub fn checked_add(self, other: Self) -> Option<Self> {
                self.0.checked_add(other.0).map(Self)
            }

            /// The difference, unless `other` is larger.
            pub fn checked_sub(self, other: Self) -> Option<Self> {
                self.0.checked_sub(other.0).map(Self)
            }

            /// The absolute difference.
            #[must_use]
            pub const fn abs_diff(self, other: Self) -> Self {
                Self(self.0.abs_diff(other.0))
            }

            /// The largest of `parts` parts that are as equal as whole numbers allow.
            #[must_use]
            pub const fn div_ceil(self, parts: u64) -> Self {
                Self(self.0.div_ceil(parts))
            }

            /// The smallest multiple of `unit` that is not smaller.
            #[must_use]
            pub const fn next_multiple_of(self, unit: Self) -> Self {
                Self(self.0.next_multiple_of(unit.0))
            }
        }

        impl Quantity for $name {
            const ZERO: Self = Self(0);

            fn from_number(number: u64) -> Self {
                Self(number)
            }

            fn number(self) -> u64 {
                self.0
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }

        impl Mul<u64> for $name {
            type Output = Self;
            fn mul(self, times: u64) -> Self {
                Self(self.0 * times)
            }
        }

        impl Mul<$name> for u64 {
            type Output = $name;
            fn mul(self, amount: $name) -> $name {
                amount * self
            }
        }

        impl MulAssign<u64> for $name {
            fn mul_assign(&mut self, times: u64) {
                self.0 *= times;
            }
        }

        impl Div<u64> for $name {
            type Output = Self;
            fn div(self, parts: u64) -> Self {
                Self(self.0 / parts)
            }
        }

        impl Div for $name {
            type Output = u64;
            /// The number of whole `unit`s that fit.
            fn div(self, unit: Self) -> u64 {
                self.0 / unit.0
            }
        }

        impl Rem for $name {
            type Output = Self;
            /// The remainder after the last whole `unit`.
            fn rem(self, unit: Self) -> Self {
                Self(self.0 % unit.0)
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
                Self(amounts.map(|amount| amount.0).sum())
            }
        }

        impl<'a> Sum<&'a $name> for $name {
            fn sum<I: Iterator<Item = &'a Self>>(amounts: I) -> Self {
                amounts.copied().sum()
            }
        }
    };
}
quantity!(/// A number of clock cycles of an IPU: a duration, or a moment counted from the first cycle.
    Cycles);
quantity!(/// A number of bytes: a size, or an address counted from the start of a memory. Its text
    /// depends on the reader: see [`NumberFormat`](super::NumberFormat).
    Bytes);
quantity!(/// A number of elements of tensors of any type.
    Elements);

impl Mul<Bytes> for Elements {
    type Output = Bytes;
    /// The bytes of these elements, of `element` bytes each.
    fn mul(self, element: Bytes) -> Bytes {
        element * self.0
    }
}

/// A clock frequency.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Hertz(pub u64);

impl Cycles {
    /// Wall time of this many cycles at `clock`, in seconds; 0 if the clock is unknown.
    pub fn seconds_at(self, clock: Hertz) -> f64 {
        if clock.0 == 0 { 0.0 } else { self.0 as f64 / clock.0 as f64 }
    }
}

impl fmt::Display for Cycles {
    /// Thousands separators, no unit: `1,211,970`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&grouped(self.0))
    }
}

impl fmt::Display for Hertz {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&format!("{} MHz", grouped(self.0 / 1_000_000)))
    }
}

impl fmt::Display for Elements {
    /// Thousands separators, no unit: `1,211,970`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&grouped(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    /// Amounts small enough that no product of three of them overflows.
    fn small() -> std::ops::Range<u64> {
        0..1 << 20
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn amounts_add_and_multiply_as_numbers_do(a in small(), b in small(), times in small()) {
            let (x, y) = (Cycles(a), Cycles(b));
            prop_assert_eq!(x + y, Cycles(a + b));
            prop_assert_eq!(x + y - y, x);
            prop_assert_eq!((x + y) * times, x * times + times * y);
            prop_assert_eq!([x, y].iter().sum::<Cycles>(), x + y);
            prop_assert_eq!([x, y].into_iter().sum::<Cycles>(), x + y);
            let (mut sum, mut product) = (x, x);
            sum += y;
            sum -= x;
            product *= times;
            prop_assert_eq!((sum, product), (y, x * times));
        }

        #[test]
        fn quotient_and_remainder_restore_the_amount(a in any::<u64>(), unit in 1u64..1 << 32) {
            let (bytes, unit) = (Bytes(a), Bytes(unit));
            prop_assert_eq!(unit * (bytes / unit) + bytes % unit, bytes);
            prop_assert_eq!(Bytes(bytes / unit), bytes / unit.0);
            prop_assert!(bytes.div_ceil(unit.0).saturating_mul(unit.0) >= bytes);
        }

        #[test]
        fn multiples_are_the_least_that_cover(a in small(), unit in 1u64..1 << 20) {
            let (bytes, unit) = (Bytes(a), Bytes(unit));
            let padded = bytes.next_multiple_of(unit);
            prop_assert!((padded % unit).is_zero() && padded >= bytes && padded - bytes < unit);
        }

        #[test]
        fn saturation_agrees_with_what_can_be_checked(a in any::<u64>(), b in any::<u64>()) {
            let (x, y) = (Bytes(a), Bytes(b));
            prop_assert_eq!(x.saturating_add(y), x.checked_add(y).unwrap_or(Bytes::MAX));
            prop_assert_eq!(x.saturating_sub(y), x.checked_sub(y).unwrap_or(Bytes::ZERO));
            prop_assert_eq!(x.abs_diff(y), x.max(y) - x.min(y));
        }

        #[test]
        fn shares_of_all_parts_add_up(
            amount in any::<u64>(), part in 0u64..1 << 63, rest in 1u64..1 << 63
        ) {
            let (bytes, all) = (Bytes(amount), part + rest);
            prop_assert_eq!(bytes.share(part, all) + bytes.share_rounded_up(rest, all), bytes);
            prop_assert_eq!(Bytes(7).share(2, 3), Bytes(4));
            prop_assert_eq!(Bytes(7).share_rounded_up(2, 3), Bytes(5));
        }

        #[test]
        fn integer_parts_are_clamped_at_both_ends(number in any::<u32>(), fraction in 0.0..0.999f64) {
            let cycles = Cycles(u64::from(number));
            prop_assert_eq!(Cycles::from_f64(cycles.as_f64() + fraction), cycles);
            prop_assert_eq!(Cycles::from_f64(-fraction - cycles.as_f64()), Cycles::ZERO);
            prop_assert_eq!(Cycles::from_f64(f64::NAN), Cycles::ZERO);
            prop_assert_eq!(Cycles::from_f64(1e30), Cycles::MAX);
        }

        #[test]
        fn elements_times_their_size_are_bytes(count in small(), size in 1u64..16) {
            let bytes = Elements(count) * Bytes(size);
            prop_assert_eq!(bytes / Bytes(size), count);
            prop_assert_eq!(bytes, Bytes(count * size));
        }
    }
}
