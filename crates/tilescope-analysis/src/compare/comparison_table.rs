//! Values of two reports side by side.

use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::insights::ViewLocation;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use tilescope_report::units::grouped;

/// One thing in both reports, or in one of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparisonRow {
    pub name: String,
    /// Number of rows it stands below.
    pub depth: u32,
    /// Its value in the source; `None` where it is missing there.
    pub source: Option<TableCell>,
    /// Its value in the target; `None` where it is missing there.
    pub target: Option<TableCell>,
    /// Where it can be seen in the source.
    pub source_place: Option<ViewLocation>,
    /// Its place in the target.
    pub target_place: Option<ViewLocation>,
}

impl ComparisonRow {
    /// A row without links.
    pub(crate) fn new(
        name: impl Into<String>,
        source: Option<TableCell>,
        target: Option<TableCell>,
    ) -> Self {
        Self { name: name.into(), source, target, ..Self::default() }
    }

    /// Target less source as a number; a missing side counts as nothing. `None` for words.
    pub fn change(&self) -> Option<f64> {
        match self.whole_change() {
            Some(change) => Some(change as f64),
            None => Some(number(&self.target)? - number(&self.source)?),
        }
    }

    /// Target minus source of bytes and counts, exactly.
    pub fn whole_change(&self) -> Option<i128> {
        let whole = |side: &Option<TableCell>| side.as_ref().map_or(Some(0), TableCell::whole);
        Some(whole(&self.target)? - whole(&self.source)?)
    }

    /// The change as a share of the source: 3 where the target has four times as much. `None` for
    /// words, and where the source has nothing that a share could be of.
    pub fn share(&self) -> Option<f64> {
        let change = self.change()?;
        let source = number(&self.source)?.abs();
        if change == 0.0 {
            return Some(0.0);
        }
        (source > 0.0).then(|| change / source)
    }

    /// The larger of both values; nothing for words.
    pub(crate) fn larger(&self) -> f64 {
        let side = |side: &Option<TableCell>| number(side).map_or(0.0, f64::abs);
        side(&self.source).max(side(&self.target))
    }

    /// Whether both reports say the same.
    pub fn is_same(&self) -> bool {
        self.source == self.target
    }

    /// The change in words: `+1,024 B (+12.50 %)`.
    pub fn change_text(&self) -> String {
        let Some(change) = self.change() else {
            return if self.is_same() { String::new() } else { "differs".to_owned() };
        };
        let sign = if change > 0.0 { "+" } else { "" };
        let kind = self.source.as_ref().or(self.target.as_ref());
        let number = match (kind, self.whole_change()) {
            (Some(TableCell::Bytes(_)), Some(change)) => format!("{sign}{} B", signed(change)),
            (_, Some(change)) => format!("{sign}{}", signed(change)),
            (Some(TableCell::Share(_)), None) => {
                return format!("{sign}{:.1} points", change * 100.0);
            }
            (_, None) => format!("{sign}{change:.2}"),
        };
        match self.share() {
            Some(share) => format!("{number} ({}{:.2} %)", sign, share * 100.0),
            None => format!("{number} (new)"),
        }
    }

    /// As a row of a table: name, both sides, the change and its share of the source.
    fn cells(&self) -> Vec<TableCell> {
        vec![
            TableCell::Text(self.name.clone()),
            self.source.clone().into(),
            self.target.clone().into(),
            self.change_cell(),
            self.share_cell(),
        ]
    }

    fn share_cell(&self) -> TableCell {
        match (self.share(), self.change()) {
            (Some(share), _) => TableCell::ChangeShare(share),
            (None, Some(_)) => "new".into(),
            (None, None) => "".into(),
        }
    }

    fn change_cell(&self) -> TableCell {
        let bytes = |side: &Option<TableCell>| matches!(side, Some(TableCell::Bytes(_)));
        match (self.whole_change(), self.change()) {
            (Some(change), _) => {
                TableCell::Change { change, bytes: bytes(&self.source) || bytes(&self.target) }
            }
            (None, Some(change)) => TableCell::RealChange(change),
            (None, None) => self.change_text().into(),
        }
    }

    /// The same with source and target exchanged.
    pub fn swapped(self) -> Self {
        Self {
            source: self.target,
            target: self.source,
            source_place: self.target_place,
            target_place: self.source_place,
            ..self
        }
    }
}

fn number(side: &Option<TableCell>) -> Option<f64> {
    side.as_ref().map_or(Some(0.0), TableCell::number)
}

fn signed(value: i128) -> String {
    let magnitude = u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX);
    format!("{}{}", if value < 0 { "-" } else { "" }, grouped(magnitude))
}

impl Serialize for ComparisonRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("Row", 5)?;
        row.serialize_field("name", &self.name)?;
        row.serialize_field("source", &self.source)?;
        row.serialize_field("target", &self.target)?;
        match self.whole_change().and_then(|change| i64::try_from(change).ok()) {
            Some(change) => row.serialize_field("diff", &change)?,
            None => row.serialize_field("diff", &self.change())?,
        }
        row.serialize_field("share", &self.share())?;
        row.end()
    }
}

/// Things of one kind, in both reports.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct ComparisonTable {
    pub title: &'static str,
    /// Title of the column of row names.
    pub column: &'static str,
    pub rows: Vec<ComparisonRow>,
    /// Sums over all rows, where they can be summed: the rows' changes add up to its change.
    pub total: Option<ComparisonRow>,
    /// Whether the rows are all there is.
    pub complete: bool,
}

impl ComparisonTable {
    /// A table of `rows` as they come.
    pub(crate) fn new(title: &'static str, column: &'static str, rows: Vec<ComparisonRow>) -> Self {
        Self { title, column, rows, total: None, complete: true }
    }

    /// A table without rows, of a title.
    pub fn named(title: &'static str) -> Self {
        Self::new(title, "", Vec::new())
    }

    /// Its title as the command line spells it: `slower-and-faster`.
    pub fn name(&self) -> String {
        self.title.to_lowercase().replace(' ', "-").replace(',', "")
    }

    /// Its rows as columns of source, target, difference and share of the source.
    pub fn data(&self) -> DataTable {
        let sides = self.rows.iter().flat_map(|row| [&row.source, &row.target]);
        let words = sides.flatten().any(|cell| matches!(cell, TableCell::Text(_)));
        let side = if words { TableColumn::text } else { TableColumn::number };
        let columns = vec![
            TableColumn::text(self.column),
            side("Source"),
            side("Target"),
            TableColumn::number("Diff").about("Target minus source; a missing side counts as zero"),
            TableColumn::number("Relative").about("The difference as a percentage of the source"),
        ];
        let table = DataTable::new(columns, self.rows.iter().map(ComparisonRow::cells).collect());
        if self.total.is_some() { table.with_totals() } else { table }
    }

    /// The same with the largest change first; larger sides, then names decide among equals.
    pub(crate) fn by_change(mut self) -> Self {
        let size = |row: &ComparisonRow| row.change().map_or(0.0, f64::abs);
        self.rows.sort_by(|a, b| {
            let by_size = size(b).total_cmp(&size(a));
            let by_side = || b.larger().total_cmp(&a.larger());
            by_size.then_with(by_side).then_with(|| a.name.cmp(&b.name))
        });
        self
    }

    /// The same with a total row.
    pub(crate) fn with_total(
        mut self,
        source: Option<TableCell>,
        target: Option<TableCell>,
    ) -> Self {
        self.total = Some(ComparisonRow::new("Total", source, target));
        self
    }
}

/// Joins the entries of two lists that have the same key; the k-th of several with one key belongs
/// to the k-th. Rows come in the order of keys.
pub(super) fn pair_by_key<K: Ord, T>(
    source: impl IntoIterator<Item = (K, T)>,
    target: impl IntoIterator<Item = (K, T)>,
) -> Vec<(Option<T>, Option<T>)> {
    type KeyedLists<T> = (Vec<T>, Vec<T>);
    let mut known: std::collections::BTreeMap<K, KeyedLists<T>> = std::collections::BTreeMap::new();
    source.into_iter().for_each(|(key, of)| known.entry(key).or_default().0.push(of));
    target.into_iter().for_each(|(key, of)| known.entry(key).or_default().1.push(of));
    let mut rows = Vec::new();
    for (source, target) in known.into_values() {
        let count = source.len().max(target.len());
        let (mut source, mut target) = (source.into_iter(), target.into_iter());
        rows.extend((0..count).map(|_| (source.next(), target.next())));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_report::units::Bytes;

    #[test]
    fn changes_are_told_against_the_source() {
        let row = |source, target| ComparisonRow::new("a", source, target);
        let bytes = |value| Some(TableCell::Bytes(value));
        let cases = [
            (row(bytes(Bytes(700)), bytes(Bytes(1000))), "+300 B (+42.86 %)"),
            (row(bytes(Bytes(1000)), bytes(Bytes(700))), "-300 B (-30.00 %)"),
            (row(None, bytes(Bytes(5))), "+5 B (new)"),
            (row(bytes(Bytes(5)), None), "-5 B (-100.00 %)"),
            (row(bytes(Bytes::ZERO), bytes(Bytes::ZERO)), "0 B (0.00 %)"),
            (row(Some(TableCell::Share(0.5)), Some(TableCell::Share(0.25))), "-25.0 points"),
            (row(Some(TableCell::Text("a".into())), None), "differs"),
        ];
        for (row, text) in cases {
            assert_eq!(row.change_text(), text);
        }
    }

    #[test]
    fn equal_keys_belong_together_in_order() {
        let rows = pair_by_key([("a", 1), ("b", 2), ("a", 3)], [("a", 10), ("c", 20)]);
        let expected = [(Some(1), Some(10)), (Some(3), None), (Some(2), None), (None, Some(20))];
        assert_eq!(rows, expected);
    }
}
