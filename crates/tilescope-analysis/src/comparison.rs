//! Comparisons of a value with a limit, as used in gates, conditions of searches and filters of
//! `find`.

/// A comparison of a value with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitComparison {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
    NotEqual,
}

impl LimitComparison {
    /// Every comparison, longer signs first.
    pub const ALL: [Self; 6] =
        [Self::AtLeast, Self::AtMost, Self::Equal, Self::NotEqual, Self::Above, Self::Below];

    /// Its sign in text.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Above => ">",
            Self::AtLeast => ">=",
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        }
    }

    /// The comparison with a given sign.
    #[must_use]
    pub fn of_sign(sign: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.sign() == sign)
    }

    /// True for comparisons by order; false for equality.
    #[must_use]
    pub fn is_of_order(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }

    /// True if a value satisfies the comparison with a limit. Limits have few digits, so equality
    /// is tested within the precision of computed values.
    #[must_use]
    pub fn holds(self, value: f64, limit: f64) -> bool {
        let is_equal = (value - limit).abs() <= limit.abs() * 1e-12;
        match self {
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Equal => is_equal,
            Self::NotEqual => !is_equal,
        }
    }

    /// True if a whole number satisfies the comparison with a limit.
    #[must_use]
    pub fn holds_whole(self, value: u64, limit: u64) -> bool {
        match self {
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Equal => value == limit,
            Self::NotEqual => value != limit,
        }
    }

    /// The result for a set of whole numbers from `least` to `most`, where both occur: true if
    /// all of them satisfy the comparison with a limit, false if none does, `None` if some do or
    /// may.
    #[must_use]
    pub fn holds_between(self, (least, most): (u64, u64), limit: u64) -> Option<bool> {
        let ends = (self.holds_whole(least, limit), self.holds_whole(most, limit));
        let is_outside = limit < least || limit > most;
        if !self.is_of_order() && least != most && !is_outside {
            return None;
        }
        if ends.0 == ends.1 { Some(ends.0) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    #[test]
    fn signs_round_trip_through_text() {
        for comparison in LimitComparison::ALL {
            assert_eq!(LimitComparison::of_sign(comparison.sign()), Some(comparison));
        }
        assert_eq!(LimitComparison::of_sign("="), None);
        assert!(
            LimitComparison::Equal.holds(0.1 + 0.2, 0.3)
                && !LimitComparison::NotEqual.holds(1.0, 1.0)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn ranges_agree_with_their_numbers(least in 0..9u64, more in 0..5u64, limit in 0..14u64) {
            for comparison in LimitComparison::ALL {
                let all: Vec<bool> =
                    (least..=least + more).map(|of| comparison.holds_whole(of, limit)).collect();
                let said = comparison.holds_between((least, least + more), limit);
                if let Some(said) = said {
                    prop_assert!(all.iter().all(|holds| *holds == said), "{comparison:?}");
                }
                prop_assert!(said.is_some() || more > 0);
                prop_assert_eq!(comparison.holds(least as f64, limit as f64), all[0]);
            }
        }
    }
}
