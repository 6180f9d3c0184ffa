//! Rows of a table as compressed columns, for tables with too many rows.
//!
//! A part has up to 4,096 rows. Its columns follow one another, each preceded by its length in
//! bytes. A cell of a column of integers is its difference `d` from the previous integer of the
//! column (0 before the first), encoded as `2d`, or as `-2d - 1` if negative, plus one. A cell of a
//! column of texts or blobs is its length plus one, followed by its bytes. 0 is NULL. All numbers
//! are LEB128, and zlib compresses the whole.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::codec::{VarintReader, apply_zigzag_difference, difference, pack, unpack, write_varint};
use super::schema::{ColumnType, SchemaTable};
use rusqlite::types::ValueRef;
use std::ops::Range;

/// The maximum number of rows of a part.
pub(super) const MAX_PART_ROWS: usize = 4096;
/// Raw bytes after which a part is complete.
const FULL_PART_BYTES: usize = 256 << 10;
/// The maximum number of raw bytes of a part: a complete one, and the addresses of a variable on
/// all tiles.
const MAX_PART_BYTES: usize = 16 << 20;

/// Cells of one column, encoded.
#[derive(Default)]
struct PackedColumn {
    bytes: Vec<u8>,
    before: i64,
}

/// Encodes the rows of one part as they arrive.
pub(super) struct ColumnPacker {
    columns: Vec<PackedColumn>,
    rows: usize,
}

/// A part of a table, compressed.
pub(super) struct PackedRows {
    pub(super) rows: usize,
    pub(super) data: Vec<u8>,
}

impl ColumnPacker {
    /// An empty part of `table`.
    pub(super) fn new(table: &SchemaTable) -> Self {
        let columns = table.columns.iter().map(|_| PackedColumn::default()).collect();
        Self { columns, rows: 0 }
    }

    /// Adds a row: integers, texts, blobs and NULLs, all columns in order.
    pub(super) fn push<'v>(&mut self, row: impl Iterator<Item = ValueRef<'v>>) {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
        self.rows += 1;
    }

    /// True if the part should take no more rows.
    pub(super) fn is_full(&self) -> bool {
        let bytes: usize = self.columns.iter().map(|column| column.bytes.len()).sum();
        self.rows >= MAX_PART_ROWS || bytes >= FULL_PART_BYTES
    }

    /// Compresses the rows and begins the next part.
    pub(super) fn take(&mut self) -> PackedRows {
        let mut raw = Vec::new();
        for column in &mut self.columns {
            let PackedColumn { bytes, .. } = std::mem::take(column);
            write_varint(&mut raw, bytes.len() as u64);
            raw.extend(bytes);
        }
        let rows = std::mem::take(&mut self.rows);
        PackedRows { rows, data: pack(&raw) }
    }
}

impl PackedColumn {
    fn push(&mut self, value: ValueRef) {
        match value {
            ValueRef::Integer(number) => {
                // Ids and cycles of marks in a row differ little: most cells take a byte or two
                // before compression.
                let step = difference(number.cast_unsigned(), self.before.cast_unsigned());
                write_varint(&mut self.bytes, step.saturating_add(1));
                self.before = number;
            }
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                write_varint(&mut self.bytes, bytes.len() as u64 + 1);
                self.bytes.extend(bytes);
            }
            // No packed table has a column of real numbers.
            ValueRef::Null | ValueRef::Real(_) => write_varint(&mut self.bytes, 0),
        }
    }
}

/// The wanted columns of a part.
pub(super) struct UnpackedRows {
    raw: Vec<u8>,
    columns: Vec<UnpackedColumn>,
}

enum UnpackedColumn {
    Integers(Vec<Option<i64>>),
    /// Positions of the texts in the raw bytes.
    Texts(Vec<Option<Range<usize>>>),
    /// Positions of the blobs in the raw bytes.
    Blobs(Vec<Option<Range<usize>>>),
    /// The table has no such column.
    Missing,
}

impl UnpackedRows {
    /// Decodes the columns `wanted` of a part of `table` with `rows` rows; `None` if the bytes are
    /// not such a part.
    pub(super) fn decode(
        table: &SchemaTable,
        wanted: &[&str],
        rows: usize,
        data: &[u8],
    ) -> Option<Self> {
        if rows > MAX_PART_ROWS {
            return None;
        }
        // Bounded, because a few bytes may unpack to any number.
        let raw = unpack(data, MAX_PART_BYTES)?;
        let mut reader = VarintReader::new(&raw);
        let mut columns: Vec<UnpackedColumn> =
            wanted.iter().map(|_| UnpackedColumn::Missing).collect();
        for column in table.columns {
            let length = usize::try_from(reader.take()?).ok()?;
            let start = raw.len() - reader.left();
            let bytes = reader.bytes(length)?;
            let places = wanted.iter().zip(&mut columns);
            for (_, place) in places.filter(|(name, _)| **name == column.name) {
                *place = match column.kind() {
                    ColumnType::Integer => UnpackedColumn::Integers(integers(bytes, rows)?),
                    ColumnType::Text => UnpackedColumn::Texts(ranges(bytes, start, rows)?),
                    ColumnType::Blob => UnpackedColumn::Blobs(ranges(bytes, start, rows)?),
                    ColumnType::Real => return None,
                };
            }
        }
        if !reader.is_done() {
            return None;
        }
        Some(Self { raw, columns })
    }

    /// Raw bytes of the part.
    pub(super) fn bytes(&self) -> usize {
        self.raw.len()
    }

    /// A cell of a wanted column.
    pub(super) fn value(&self, column: usize, row: usize) -> ValueRef<'_> {
        let get_bytes = |places: &[Option<Range<usize>>]| {
            places.get(row).cloned().flatten().and_then(|place| self.raw.get(place))
        };
        let found = match self.columns.get(column) {
            Some(UnpackedColumn::Integers(numbers)) => {
                numbers.get(row).copied().flatten().map(ValueRef::Integer)
            }
            Some(UnpackedColumn::Texts(places)) => get_bytes(places).map(ValueRef::Text),
            Some(UnpackedColumn::Blobs(places)) => get_bytes(places).map(ValueRef::Blob),
            Some(UnpackedColumn::Missing) | None => None,
        };
        found.unwrap_or(ValueRef::Null)
    }
}

fn integers(bytes: &[u8], rows: usize) -> Option<Vec<Option<i64>>> {
    let mut reader = VarintReader::new(bytes);
    let mut before = 0;
    let mut read_cell = || {
        let step = reader.take()?;
        let Some(step) = step.checked_sub(1) else { return Some(None) };
        before = apply_zigzag_difference(step, before);
        Some(Some(before.cast_signed()))
    };
    let cells = (0..rows).map(|_| read_cell()).collect::<Option<_>>()?;
    if reader.is_done() { Some(cells) } else { None }
}

/// Positions of the cells of the column that begins at `start`.
fn ranges(bytes: &[u8], start: usize, rows: usize) -> Option<Vec<Option<Range<usize>>>> {
    let mut reader = VarintReader::new(bytes);
    let mut read_cell = || {
        let Some(length) = reader.take()?.checked_sub(1) else { return Some(None) };
        let first = start + bytes.len() - reader.left();
        let cell = reader.bytes(usize::try_from(length).ok()?)?;
        Some(Some(first..first + cell.len()))
    };
    let cells = (0..rows).map(|_| read_cell()).collect::<Option<_>>()?;
    if reader.is_done() { Some(cells) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use proptest::prelude::*;
    use rusqlite::types::Value;
    use tilescope_test_tiers::cases;

    fn columns() -> Vec<&'static str> {
        schema::find("marks").unwrap().columns.iter().map(|column| column.name).collect()
    }

    fn row() -> impl Strategy<Value = Vec<Value>> {
        let integer = || {
            prop_oneof![
                Just(Value::Null),
                any::<i32>().prop_map(|number| Value::Integer(number.into())),
                (0i64..1 << 56).prop_map(Value::Integer),
            ]
        };
        let text = || prop_oneof![Just(Value::Null), ".{0,9}".prop_map(Value::Text)];
        let numbers = || prop::collection::vec(integer(), 5);
        (integer(), text(), text(), integer(), text(), numbers()).prop_map(
            |(id, kind, label, ipu, pass, numbers)| {
                [vec![id, kind, label, ipu, pass], numbers].concat()
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn rows_round_trip(rows in prop::collection::vec(row(), 1..40)) {
            let marks = schema::find("marks").unwrap();
            let mut packer = ColumnPacker::new(marks);
            rows.iter().for_each(|row| packer.push(row.iter().map(ValueRef::from)));
            let packed = packer.take();
            prop_assert_eq!(packed.rows, rows.len());
            let back = UnpackedRows::decode(marks, &columns(), packed.rows, &packed.data).unwrap();
            for (at, row) in rows.iter().enumerate() {
                for (column, value) in row.iter().enumerate() {
                    prop_assert_eq!(back.value(column, at), ValueRef::from(value));
                }
            }
        }

        #[test]
        fn any_bytes_are_refused_or_rows(raw in prop::collection::vec(any::<u8>(), 0..60), rows in 0usize..5) {
            let marks = schema::find("marks").unwrap();
            let _ = UnpackedRows::decode(marks, &columns(), rows, &pack(&raw));
        }
    }
}
