//! Converts SQLite's constraints on columns to bounds.

use rusqlite::types::ValueRef;
use rusqlite::vtab::IndexConstraintOp;
use std::fmt;
use std::ops::RangeInclusive;

/// A comparison of a column with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Comparison {
    const ALL: [(Self, char); 5] = [
        (Self::Equal, '='),
        (Self::Above, '>'),
        (Self::AtLeast, 'g'),
        (Self::Below, '<'),
        (Self::AtMost, 'l'),
    ];

    /// The comparison of an operator; `None` if it sets no bounds.
    pub(crate) fn of(operator: &IndexConstraintOp) -> Option<Self> {
        match operator {
            IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ => Some(Self::Equal),
            IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => Some(Self::Above),
            IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE => Some(Self::AtLeast),
            IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LT => Some(Self::Below),
            IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LE => Some(Self::AtMost),
            _ => None,
        }
    }

    /// The integers that satisfy the comparison with a value; `None` if there are none.
    #[expect(clippy::cast_possible_truncation, reason = "numbers beyond become the furthest")]
    fn bounds(self, value: ValueRef) -> Option<RangeInclusive<i64>> {
        let (below, above) = match value {
            ValueRef::Integer(value) => (value, value),
            ValueRef::Real(value) if !value.is_nan() => {
                // The integers around it.
                (value.floor() as i64, value.ceil() as i64)
            }
            // No value compares with NULL.
            ValueRef::Null => return None,
            // SQLite compares texts itself.
            _ => return Some(i64::MIN..=i64::MAX),
        };
        match self {
            Self::Equal => Some(above..=below),
            // The bounds are inclusive even for strict comparisons, so they may admit one integer
            // too many.
            Self::Above | Self::AtLeast => Some(below..=i64::MAX),
            Self::Below | Self::AtMost => Some(i64::MIN..=above),
        }
    }
}

/// The state that SQLite passes from planning to reading, as text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct QueryPlan {
    /// A bit for each column whose values are used; the last one for all further ones.
    used: u64,
    /// The expected values, in order.
    terms: Vec<(usize, Comparison)>,
    /// Columns whose equal values follow each other.
    groups: Vec<usize>,
}

/// The sign of a column of groups in the text of a plan.
const GROUP: char = '#';

impl QueryPlan {
    pub(crate) fn new(used: u64) -> Self {
        Self { used, ..Self::default() }
    }

    /// Asks for rows in groups of equal values of some columns.
    pub(crate) fn group_by(&mut self, columns: Vec<usize>) {
        self.groups = columns;
    }

    /// Adds a comparison. Returns the number of its value, counted from 1.
    pub(crate) fn add(&mut self, column: usize, comparison: Comparison) -> i32 {
        self.terms.push((column, comparison));
        i32::try_from(self.terms.len()).unwrap_or(i32::MAX)
    }

    pub(crate) fn wants(&self, column: usize) -> bool {
        self.used & (1 << column.min(63)) != 0
    }

    /// The first of some columns that is compared with a string or a blob.
    pub(crate) fn text_of<'v>(
        &self,
        values: impl Iterator<Item = ValueRef<'v>>,
        is_meant: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let is_text = |value: &ValueRef| matches!(value, ValueRef::Text(_) | ValueRef::Blob(_));
        let terms = self.terms.iter().map(|(column, _)| *column).zip(values);
        let mut texts = terms.filter(|(column, value)| is_meant(*column) && is_text(value));
        texts.next().map(|(column, _)| column)
    }

    pub(crate) fn parse(text: &str) -> Self {
        let mut words = text.split(' ');
        let used = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        let mut plan = Self::new(used.unwrap_or(u64::MAX));
        for word in words {
            let mut letters = word.chars();
            let Some(sign) = letters.next() else { continue };
            let Ok(column) = letters.as_str().parse() else { continue };
            if sign == GROUP {
                plan.groups.push(column);
            } else if let Some((comparison, _)) =
                Comparison::ALL.into_iter().find(|(_, known)| *known == sign)
            {
                plan.terms.push((column, comparison));
            }
        }
        plan
    }
}

impl fmt::Display for QueryPlan {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:x}", self.used)?;
        self.terms.iter().try_for_each(|(column, comparison)| {
            let known = Comparison::ALL.iter().find(|(known, _)| known == comparison);
            write!(f, " {}{column}", known.map_or('=', |(_, sign)| *sign))
        })?;
        self.groups.iter().try_for_each(|column| write!(f, " {GROUP}{column}"))
    }
}

/// The empty range.
const NO_NUMBER: RangeInclusive<i64> = RangeInclusive::new(1, 0);

/// The bounds that a query sets on columns: ranges of integers, and texts that they must equal; and
/// the groups that it asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnBounds {
    numbers: Vec<(usize, RangeInclusive<i64>)>,
    texts: Vec<(usize, String)>,
    groups: Vec<usize>,
}

impl ColumnBounds {
    pub(crate) fn new<'v>(plan: &QueryPlan, values: impl Iterator<Item = ValueRef<'v>>) -> Self {
        let mut bounds = Self { groups: plan.groups.clone(), ..Self::default() };
        for ((column, comparison), value) in plan.terms.iter().zip(values) {
            if let (Comparison::Equal, ValueRef::Text(_)) = (comparison, value) {
                bounds.texts.extend(value.as_str().ok().map(|text| (*column, text.to_owned())));
            }
            let found = comparison.bounds(value).unwrap_or(NO_NUMBER);
            match bounds.numbers.iter_mut().find(|(known, _)| known == column) {
                Some((_, known)) => {
                    *known = *known.start().max(found.start())..=*known.end().min(found.end());
                }
                None => bounds.numbers.push((*column, found)),
            }
        }
        bounds
    }

    /// The text that a column must equal, byte by byte, if there is one.
    pub fn text(&self, column: usize) -> Option<&str> {
        let found = self.texts.iter().find(|(known, _)| *known == column);
        found.map(|(_, text)| text.as_str())
    }

    /// The bounds of a column; all integers if it has none.
    pub fn of(&self, column: usize) -> RangeInclusive<i64> {
        let found = self.numbers.iter().find(|(known, _)| *known == column);
        found.map_or(i64::MIN..=i64::MAX, |(_, bounds)| bounds.clone())
    }

    /// The value of a column, if the bounds admit only one.
    pub fn value(&self, column: usize) -> Option<i64> {
        let bounds = self.of(column);
        if bounds.start() == bounds.end() { Some(*bounds.start()) } else { None }
    }

    /// The columns whose rows of equal values must follow each other; empty if the order is the
    /// usual one.
    pub fn groups(&self) -> &[usize] {
        &self.groups
    }

    /// True if no row can satisfy them.
    pub fn are_empty(&self) -> bool {
        self.numbers.iter().any(|(_, bounds)| bounds.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_as_they_were_written() {
        let mut plan = QueryPlan::new(0x8000_0000_0000_0005);
        for (at, (comparison, _)) in (0..).zip(Comparison::ALL) {
            assert_eq!(plan.add(at, comparison), at as i32 + 1);
        }
        plan.group_by(vec![3, 12]);
        assert_eq!(QueryPlan::parse(&plan.to_string()), plan);
        assert!(plan.wants(0) && !plan.wants(1) && plan.wants(2) && plan.wants(99));
    }

    #[test]
    fn bounds_contain_every_integer_that_satisfies_the_comparison() {
        let values = [-2.5, -2.0, -0.5, 0.0, 0.5, 1.0, 1.5, 1e300, -1e300];
        let mut all: Vec<ValueRef> = values.into_iter().map(ValueRef::Real).collect();
        all.extend([-3, 0, 3, i64::MAX, i64::MIN].map(ValueRef::Integer));
        for value in all {
            for (comparison, _) in Comparison::ALL {
                let bounds = comparison.bounds(value).expect("a number");
                for number in [i64::MIN, -3, -2, -1, 0, 1, 2, 3, i64::MAX] {
                    let order = match value {
                        ValueRef::Integer(value) => number.cmp(&value),
                        ValueRef::Real(value) => (number as f64).total_cmp(&value),
                        _ => unreachable!("numbers only"),
                    };
                    let holds = match comparison {
                        Comparison::Equal => order.is_eq(),
                        Comparison::Above => order.is_gt(),
                        Comparison::AtLeast => order.is_ge(),
                        Comparison::Below => order.is_lt(),
                        Comparison::AtMost => order.is_le(),
                    };
                    assert!(
                        !holds || bounds.contains(&number),
                        "{number} {comparison:?} {value:?}"
                    );
                }
            }
        }
        assert_eq!(Comparison::Equal.bounds(ValueRef::Null), None);
    }
}
