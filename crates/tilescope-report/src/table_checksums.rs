//! Checksums of the rows of a report: written with the report, compared when it is verified.
//!
//! A row is encoded as bytes, column by column: 0 for NULL; 1 and an integer in eight bytes; 2 and
//! a real number in eight bytes; 3 or 4, the length in eight bytes, and the bytes of a string or a
//! blob. All of it is little-endian. The checksum of a part of a table is the sum of the
//! SipHash-2-4 (with key zero) of its rows modulo 2^64, so it does not depend on their order.
//!
//! It detects changes by accident or by other tools, not forgery.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use rusqlite::types::ValueRef;
use siphasher::sip::SipHasher24;
use std::collections::BTreeMap;
use std::fmt;

/// The number of bits of the leading integer that rows of one checksum may differ in.
const ROW_BITS: u32 = 16;
/// The same for rows with a blob. Each such row holds thousands of steps.
const BLOB_BITS: u32 = 6;

/// The property that the rows of one checksum share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TablePart {
    /// The first column without its last bits.
    Ids(i64),
    /// The first column, if it is a string.
    Text(String),
}

/// A checksum of a part of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowSum {
    pub(super) rows: u64,
    pub(super) checksum: u64,
}

/// Checksums of tables, part by part.
#[derive(Default)]
pub(super) struct TableChecksums {
    parts: BTreeMap<&'static str, BTreeMap<TablePart, RowSum>>,
    row: Vec<u8>,
}

impl TableChecksums {
    /// Adds a row of `table`: all its columns in the order of the schema.
    pub(super) fn add<'v>(
        &mut self,
        table: &'static str,
        values: impl Iterator<Item = ValueRef<'v>>,
    ) {
        self.row.clear();
        let mut first = None;
        let mut bits = ROW_BITS;
        for value in values {
            first.get_or_insert(value);
            if matches!(value, ValueRef::Blob(_)) {
                bits = BLOB_BITS;
            }
            append(&mut self.row, value);
        }
        let part = match first {
            Some(ValueRef::Integer(id)) => TablePart::Ids(id >> bits),
            Some(ValueRef::Text(text)) => TablePart::Text(String::from_utf8_lossy(text).into()),
            _ => TablePart::Text(String::new()),
        };
        let sum = self.parts.entry(table).or_default().entry(part).or_default();
        sum.rows += 1;
        // A sum and not a chain: rows may be read in another order than they were written, and
        // database tools may reorder them.
        sum.checksum = sum.checksum.wrapping_add(SipHasher24::new().hash(&self.row));
    }

    /// All parts of all tables.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&'static str, &TablePart, RowSum)> {
        self.parts.iter().map(|(table, parts)| (*table, parts)).flat_map(|(table, parts)| {
            let parts: &BTreeMap<TablePart, RowSum> = parts;
            parts.iter().map(move |(part, sum)| (table, part, *sum))
        })
    }
}

fn append(row: &mut Vec<u8>, value: ValueRef) {
    let mut append_bytes = |tag: u8, bytes: &[u8]| {
        row.push(tag);
        // With the length first, no two rows have the same bytes.
        row.extend((bytes.len() as u64).to_le_bytes());
        row.extend(bytes);
    };
    match value {
        ValueRef::Text(text) => append_bytes(3, text),
        ValueRef::Blob(blob) => append_bytes(4, blob),
        ValueRef::Null => row.push(0),
        ValueRef::Integer(number) => {
            row.push(1);
            row.extend(number.to_le_bytes());
        }
        ValueRef::Real(number) => {
            row.push(2);
            row.extend(number.to_le_bytes());
        }
    }
}

impl fmt::Display for TablePart {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Ids(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(rows: &[[ValueRef; 2]]) -> Vec<(TablePart, RowSum)> {
        let mut checksums = TableChecksums::default();
        rows.iter().for_each(|row| checksums.add("t", row.iter().copied()));
        checksums.parts().map(|(_, part, sum)| (part.clone(), sum)).collect()
    }

    #[test]
    fn sums_do_not_depend_on_the_order_of_rows_but_on_every_value() {
        let (one, two) = (ValueRef::Integer(1), ValueRef::Text(b"x"));
        assert_eq!(sums(&[[one, two], [one, one]]), sums(&[[one, one], [one, two]]));
        assert_ne!(sums(&[[one, two]]), sums(&[[one, ValueRef::Blob(b"x")]]));
        assert_ne!(sums(&[[one, two], [one, two]]), sums(&[[one, two]]));
    }

    #[test]
    fn a_row_belongs_to_the_part_of_its_first_column() {
        let (id, zero) = (ValueRef::Integer(70_000), ValueRef::Integer(0));
        let part = |row: [ValueRef; 2]| sums(&[row])[0].0.clone();
        assert_eq!(part([id, zero]), TablePart::Ids(1));
        assert_eq!(part([id, ValueRef::Blob(b"")]), TablePart::Ids(70_000 >> 6));
        assert_eq!(part([ValueRef::Text(b"spec"), zero]), TablePart::Text("spec".to_owned()));
    }
}
