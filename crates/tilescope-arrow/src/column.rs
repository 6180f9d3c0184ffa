//! Builds columns of rows that come from SQL or could, value by value, with their declared types.

use crate::text_dictionary::TextDictionary;
use arrow_array::ArrayRef;
use arrow_array::builder::{BinaryBuilder, Float64Builder, Int32Builder, Int64Builder};
use arrow_schema::{ArrowError, DataType};
use std::sync::Arc;
use tilescope_analysis::records::ValueRef;

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Integer,
    Real,
    Text,
    Blob,
}

impl ColumnKind {
    /// The type that SQLite derives from the words of a declaration. For other declarations, such
    /// as `NUMERIC` and `BOOLEAN`, the values decide.
    pub(crate) fn declared(declaration: &str) -> Option<Self> {
        let declaration = declaration.to_ascii_uppercase();
        let has = |words: &[&str]| words.iter().any(|word| declaration.contains(word));
        match () {
            () if has(&["INT"]) => Some(Self::Integer),
            () if has(&["CHAR", "CLOB", "TEXT"]) => Some(Self::Text),
            () if has(&["BLOB"]) => Some(Self::Blob),
            () if has(&["REAL", "FLOA", "DOUB"]) => Some(Self::Real),
            () => None,
        }
    }

    /// The type of a column of a record, which always has one.
    pub(crate) fn of_column(declaration: &str) -> Self {
        Self::declared(declaration).unwrap_or(Self::Text)
    }

    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::Integer => DataType::Int64,
            Self::Real => DataType::Float64,
            Self::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Self::Blob => DataType::Binary,
        }
    }
}

/// A column under construction. A value of another kind counts as missing.
pub(crate) enum ColumnBuilder {
    Integer(Int64Builder),
    Real(Float64Builder),
    Text(TextDictionary, Int32Builder),
    Blob(BinaryBuilder),
}

impl ColumnBuilder {
    /// A column without values yet.
    pub(crate) fn new(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::Integer => Self::Integer(Int64Builder::new()),
            ColumnKind::Real => Self::Real(Float64Builder::new()),
            ColumnKind::Text => Self::Text(TextDictionary::default(), Int32Builder::new()),
            ColumnKind::Blob => Self::Blob(BinaryBuilder::new()),
        }
    }

    /// Starts a dictionary with the texts that may occur.
    pub(crate) fn know(&mut self, known: &[String]) {
        if let Self::Text(texts, _) = self {
            for text in known {
                texts.key(text);
            }
        }
    }

    /// Adds a value. In a column of real numbers, returns an integer that no real number can
    /// represent as an error.
    pub(crate) fn push(&mut self, value: ValueRef<'_>) -> Result<(), i64> {
        match (self, value) {
            (Self::Integer(values), ValueRef::Integer(value)) => values.append_value(value),
            (Self::Integer(values), _) => values.append_null(),
            (Self::Real(values), ValueRef::Real(value)) => values.append_value(value),
            (Self::Real(values), ValueRef::Integer(value)) => {
                values.append_value(exact(value).ok_or(value)?);
            }
            (Self::Real(values), _) => values.append_null(),
            (Self::Text(texts, keys), ValueRef::Text(text)) => {
                keys.append_value(texts.key(&String::from_utf8_lossy(text)));
            }
            (Self::Text(_, keys), _) => keys.append_null(),
            (Self::Blob(values), ValueRef::Blob(value)) => values.append_value(value),
            (Self::Blob(values), _) => values.append_null(),
        }
        Ok(())
    }

    /// Adds a value that many rows share, given by its number; see
    /// [`RecordRows::text_id`](tilescope_analysis::records::RecordRows::text_id).
    pub(crate) fn push_shared<'v>(
        &mut self,
        id: u64,
        value: impl FnOnce() -> ValueRef<'v>,
    ) -> Result<(), i64> {
        let Self::Text(texts, keys) = self else { return self.push(value()) };
        keys.append_option(texts.key_of(id, || match value() {
            ValueRef::Text(text) => Some(String::from_utf8_lossy(text)),
            _ => None,
        }));
        Ok(())
    }

    /// The values since the last call; a dictionary keeps its texts.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Integer(values) => Arc::new(values.finish()),
            Self::Real(values) => Arc::new(values.finish()),
            Self::Text(texts, keys) => texts.array(keys.finish())?,
            Self::Blob(values) => Arc::new(values.finish()),
        })
    }
}

/// An integer as a real number, if that is exact.
fn exact(value: i64) -> Option<f64> {
    let size = value.unsigned_abs();
    let digits = u64::BITS.saturating_sub(size.leading_zeros() + size.trailing_zeros());
    if digits <= f64::MANTISSA_DIGITS { Some(value as f64) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ColumnKind::{Blob, Integer, Real, Text};

    #[test]
    fn declarations_are_read_as_sqlite_reads_them() {
        let cases = [
            ("INTEGER", Some(Integer)),
            ("bigint unsigned", Some(Integer)),
            ("FLOATING POINT", Some(Integer)),
            ("VARCHAR(20)", Some(Text)),
            ("double precision", Some(Real)),
            ("blob", Some(Blob)),
            ("NUMERIC", None),
            ("", None),
        ];
        for (declaration, kind) in cases {
            assert_eq!(ColumnKind::declared(declaration), kind, "{declaration}");
        }
    }

    #[test]
    fn integers_become_real_if_nothing_is_lost() {
        assert_eq!(exact(-(1 << 53)), Some(-9_007_199_254_740_992.0));
        assert_eq!(exact((1 << 53) + 1), None);
        assert_eq!(exact(i64::MIN), Some(-9_223_372_036_854_775_808.0));
        assert_eq!(exact(i64::MAX), None);
    }
}
