//! The cells of tables: values with their text, for people and for programs.

use serde::Serialize;
use serde::ser::Serializer;
use std::cmp::Ordering;
use tilescope_report::units::{
    Bytes, ComputeSetId, Cycles, IpuId, NumberFormat, OperationId, ProgramId, TileId, VariableId,
    change_percent, exact_bytes, exact_real, grouped, grouped_real, percent, percentage_points,
    seconds, short_count,
};

/// One value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableCell {
    /// A text.
    Text(String),
    Bytes(Bytes),
    /// A number of items, or cycles.
    Count(u64),
    /// A number that identifies an entity: never summed, never grouped by thousands.
    Id(u64),
    /// A tile by its number.
    Tile(TileId),
    /// A change of bytes or counts.
    Change {
        /// The difference, positive for an increase.
        change: i128,
        /// True if it is a number of bytes.
        bytes: bool,
    },
    /// A share, 1 for the whole.
    Share(f64),
    /// A change as a share of the original value: 3 for four times as much.
    ChangeShare(f64),
    /// A measured or derived number.
    Real(f64),
    /// A change of a measured or derived number.
    RealChange(f64),
    /// Time.
    Seconds(f64),
    /// A difference in time.
    SecondsChange(f64),
    /// The difference of two shares of one.
    ShareChange(f64),
    /// No value, in a column where other rows have a number.
    Missing,
}

impl From<&str> for TableCell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for TableCell {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<Bytes> for TableCell {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Cycles> for TableCell {
    fn from(cycles: Cycles) -> Self {
        Self::Count(cycles.0)
    }
}

impl From<u64> for TableCell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<TileId> for TableCell {
    fn from(tile: TileId) -> Self {
        Self::Tile(tile)
    }
}

/// Cells of typed ids.
macro_rules! id_cells {
    ($($id:ident)*) => {$(
        impl From<$id> for TableCell {
            fn from(id: $id) -> Self {
                Self::id(id.0)
            }
        }
    )*};
}
id_cells!(IpuId ProgramId OperationId VariableId ComputeSetId);

impl<T: Into<Self>> From<Option<T>> for TableCell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

impl TableCell {
    /// The value of an option or a key of a spec, as a file spells it: a number, or else words.
    pub fn of_value(text: &str) -> Self {
        if let Ok(count) = text.parse::<u64>() {
            return Self::Count(count);
        }
        let is_number = text.contains(['.', 'e']) && text.starts_with(|c: char| c.is_ascii_digit());
        match text.parse::<f64>() {
            Ok(number) if is_number && number.is_finite() => Self::Real(number),
            _ => text.into(),
        }
    }

    /// A number that names something.
    pub fn id(id: impl Into<u64>) -> Self {
        Self::Id(id.into())
    }

    /// The value in three or four figures with its unit, as people read it.
    pub fn text(&self) -> String {
        self.text_in(NumberFormat::default())
    }

    /// The same in the units that the user chose.
    pub fn text_in(&self, numbers: NumberFormat) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Bytes(bytes) => numbers.bytes(bytes.0),
            Self::Count(count) => short_count(*count),
            Self::Id(id) => id.to_string(),
            Self::Tile(tile) => format!("Tile {}", grouped((*tile).into())),
            Self::Change { change, bytes } => {
                let size = size_of(*change);
                let text = if *bytes { numbers.bytes(size) } else { short_count(size) };
                format!("{}{text}", sign_of(*change))
            }
            Self::Share(share) => percent(*share),
            Self::ChangeShare(share) => change_percent(*share),
            Self::ShareChange(change) => percentage_points(*change),
            Self::Real(value) => grouped_real(*value),
            Self::RealChange(value) => format!("{}{}", plus_of(*value), grouped_real(*value)),
            Self::Seconds(value) => seconds(*value),
            Self::SecondsChange(value) => format!("{}{}", plus_of(*value), seconds(*value)),
            Self::Missing => "—".to_owned(),
        }
    }

    /// The value with all its digits and its unit.
    pub fn exact(&self) -> String {
        match self {
            Self::Bytes(bytes) => exact_bytes(bytes.0),
            Self::Count(count) => grouped(*count),
            Self::Change { change, bytes } => {
                let size = size_of(*change);
                let text = if *bytes { exact_bytes(size) } else { grouped(size) };
                format!("{}{text}", sign_of(*change))
            }
            Self::Real(value) => exact_real(*value),
            Self::RealChange(value) => format!("{}{}", plus_of(*value), exact_real(*value)),
            Self::Seconds(value) => format!("{} s", exact_real(*value)),
            Self::SecondsChange(value) => format!("{}{} s", plus_of(*value), exact_real(*value)),
            Self::Text(_) | Self::Id(_) | Self::Tile(_) | Self::Share(_) => self.text(),
            Self::ChangeShare(_) | Self::ShareChange(_) | Self::Missing => self.text(),
        }
    }

    /// True for a difference.
    pub fn is_change(&self) -> bool {
        matches!(
            self,
            Self::Change { .. }
                | Self::ChangeShare(_)
                | Self::RealChange(_)
                | Self::SecondsChange(_)
                | Self::ShareChange(_)
        )
    }

    /// The value as programs read it: digits without separators or units, in the unit that the
    /// head of the column names.
    pub fn plain(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Bytes(bytes) => bytes.0.to_string(),
            Self::Count(value) | Self::Id(value) => value.to_string(),
            Self::Tile(tile) => tile.to_string(),
            Self::Change { change, .. } => change.to_string(),
            Self::Missing => String::new(),
            Self::Share(value)
            | Self::ChangeShare(value)
            | Self::ShareChange(value)
            | Self::Real(value)
            | Self::RealChange(value)
            | Self::Seconds(value)
            | Self::SecondsChange(value) => value.to_string(),
        }
    }

    /// The value as a whole number; `None` for fractions and text.
    pub(crate) fn whole(&self) -> Option<i128> {
        match self {
            Self::Bytes(bytes) => Some(bytes.0.into()),
            Self::Count(value) | Self::Id(value) => Some((*value).into()),
            Self::Tile(tile) => Some(tile.0.into()),
            Self::Change { change, .. } => Some(*change),
            Self::Share(_) | Self::ChangeShare(_) | Self::ShareChange(_) => None,
            Self::Real(_) | Self::RealChange(_) => None,
            Self::Seconds(_) | Self::SecondsChange(_) => None,
            Self::Text(_) | Self::Missing => None,
        }
    }

    /// The value as a number; `None` for text and missing values.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Share(value)
            | Self::ChangeShare(value)
            | Self::ShareChange(value)
            | Self::Real(value)
            | Self::RealChange(value)
            | Self::Seconds(value)
            | Self::SecondsChange(value) => Some(*value),
            _ => self.whole().map(|value| value as f64),
        }
    }

    /// The order of cells in a column: text, then missing values, then numbers. Changes are ordered
    /// by size, independent of their sign.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.sort_class().cmp(&other.sort_class()).then_with(|| {
            // Byte counts of large programs have more digits than a float can hold.
            match (self, other, self.whole(), other.whole()) {
                (Self::Text(a), Self::Text(b), ..) => a.cmp(b),
                (_, _, Some(a), Some(b)) => a.unsigned_abs().cmp(&b.unsigned_abs()),
                _ => self.magnitude().total_cmp(&other.magnitude()),
            }
        })
    }

    /// The place of cells of a kind among the others of a column.
    fn sort_class(&self) -> u8 {
        match self {
            Self::Text(_) => 0,
            Self::Missing => 1,
            _ => 2,
        }
    }

    /// The number without its sign; 0 without a number.
    fn magnitude(&self) -> f64 {
        self.number().map_or(0.0, f64::abs)
    }

    /// The sum of both cells; `None` if a sum has no meaning.
    pub fn plus(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Bytes(a), Self::Bytes(b)) => Some(Self::Bytes(*a + *b)),
            (Self::Count(a), Self::Count(b)) => Some(Self::Count(a + b)),
            (Self::Change { change: a, bytes }, Self::Change { change: b, .. }) => {
                Some(Self::Change { change: a + b, bytes: *bytes })
            }
            (Self::Real(a), Self::Real(b)) => Some(Self::Real(a + b)),
            (Self::Share(a), Self::Share(b)) => Some(Self::Share(a + b)),
            (Self::RealChange(a), Self::RealChange(b)) => Some(Self::RealChange(a + b)),
            (Self::Seconds(a), Self::Seconds(b)) => Some(Self::Seconds(a + b)),
            (Self::SecondsChange(a), Self::SecondsChange(b)) => Some(Self::SecondsChange(a + b)),
            _ => None,
        }
    }

    /// True if a column of such cells can be summed.
    pub fn is_summable(&self) -> bool {
        let whole = matches!(self, Self::Bytes(_) | Self::Count(_) | Self::Change { .. });
        let real = matches!(self, Self::Real(_) | Self::RealChange(_));
        whole || real || matches!(self, Self::Seconds(_) | Self::SecondsChange(_))
    }

    /// True if a search for text considers the cell.
    pub fn is_name(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Id(_) | Self::Tile(_))
    }
}

/// The size of a difference without its sign.
fn size_of(change: i128) -> u64 {
    u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX)
}

/// The sign of a whole difference; empty for none.
fn sign_of(change: i128) -> &'static str {
    ["-", "", "+"][(change.signum() + 1) as usize]
}

/// The sign before a positive difference.
fn plus_of(change: f64) -> &'static str {
    if change > 0.0 { "+" } else { "" }
}

impl Serialize for TableCell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => bytes.serialize(serializer),
            Self::Count(value) | Self::Id(value) => serializer.serialize_u64(*value),
            Self::Tile(tile) => serializer.serialize_u32(tile.0),
            Self::Change { change, .. } => match i64::try_from(*change) {
                Ok(change) => serializer.serialize_i64(change),
                Err(_) => serializer.serialize_f64(*change as f64),
            },
            Self::Share(value)
            | Self::ChangeShare(value)
            | Self::ShareChange(value)
            | Self::Real(value)
            | Self::RealChange(value)
            | Self::Seconds(value)
            | Self::SecondsChange(value) => serializer.serialize_f64(*value),
            Self::Missing => serializer.serialize_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_by_size_after_text() {
        let change = |change| TableCell::Change { change, bytes: false };
        let rising = [
            "a".into(),
            TableCell::Missing,
            change(1),
            change(-3),
            TableCell::Real(3.5),
            TableCell::Count(u64::MAX - 1),
            TableCell::Count(u64::MAX),
        ];
        for pair in rising.windows(2) {
            assert_eq!(pair[0].compare(&pair[1]), Ordering::Less, "{pair:?}");
        }
    }
}
