//! Values of two reports side by side.

use super::normalization::WorkDivisors;
use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::view_location::ViewLocation;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use tilescope_report::units::{grouped, percentage_points};

/// An entity of one report.
#[derive(Clone, Debug, Default)]
pub(super) struct ComparedThing {
    name: String,
    value: Option<TableCell>,
    place: Option<ViewLocation>,
}

impl ComparedThing {
    pub(super) fn new(name: impl Into<String>, value: impl Into<TableCell>) -> Self {
        let value = Some(value.into()).filter(|value| *value != TableCell::Missing);
        Self { name: name.into(), value, place: None }
    }

    /// The same with its location in a view.
    pub(super) fn at(self, place: impl Into<Option<ViewLocation>>) -> Self {
        Self { place: place.into(), ..self }
    }
}

/// One entity in both reports, or in one of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparisonRow {
    pub name: String,
    /// Depth of the row in the tree of rows.
    pub depth: u32,
    /// Its value for the whole run of the source; `None` if the source lacks it.
    pub source: Option<TableCell>,
    /// Its value for the whole run of the target; `None` if the target lacks it.
    pub target: Option<TableCell>,
    /// Divisors of both values before they are compared; `None` for values that do not depend on
    /// the amount of work of a run.
    pub per: Option<WorkDivisors>,
    /// Its location in the source.
    pub source_place: Option<ViewLocation>,
    /// Its location in the target.
    pub target_place: Option<ViewLocation>,
}

impl ComparisonRow {
    /// Creates a row without links.
    pub fn new(
        name: impl Into<String>,
        source: Option<TableCell>,
        target: Option<TableCell>,
    ) -> Self {
        Self { name: name.into(), source, target, ..Self::default() }
    }

    /// Creates a row of an entity that is in both reports or in one of them.
    pub(super) fn paired(source: Option<ComparedThing>, target: Option<ComparedThing>) -> Self {
        let [name, name_in_target] =
            [&source, &target].map(|side| side.as_ref().map(|of| of.name.clone()));
        let source = source.unwrap_or_default();
        let target = target.unwrap_or_default();
        Self {
            source_place: source.place,
            target_place: target.place,
            ..Self::new(name.or(name_in_target).unwrap_or_default(), source.value, target.value)
        }
    }

    /// The same with numbers per unit of work; text stays as it is.
    pub(crate) fn per(self, divisors: WorkDivisors) -> Self {
        let numbers = [&self.source, &self.target].into_iter().flatten();
        let counted = numbers.map(TableCell::number).all(|number| number.is_some());
        Self { per: Some(divisors).filter(|divisors| counted && !divisors.is_plain()), ..self }
    }

    /// Values of both sides, after division by the units of work.
    pub fn values(&self) -> (Option<TableCell>, Option<TableCell>) {
        let Some(per) = self.per else { return (self.source.clone(), self.target.clone()) };
        let (source, target) = per.of_sides();
        (divided(&self.source, source), divided(&self.target, target))
    }

    /// Target minus source as a number; a missing side counts as zero. `None` for text.
    pub fn change(&self) -> Option<f64> {
        let (source, target) = self.per.map_or((1, 1), |per| per.of_sides());
        match (whole(&self.source), whole(&self.target)) {
            // Cross-multiplied, so that equal shares differ by exactly zero.
            (Some(a), Some(b)) => {
                let own = b.saturating_mul(source.into());
                let before = a.saturating_mul(target.into());
                let change = own.saturating_sub(before);
                Some(change as f64 / (source as f64 * target as f64))
            }
            _ => {
                let a = number(&self.source)?;
                let b = number(&self.target)?;
                Some(b / target as f64 - a / source as f64)
            }
        }
    }

    /// Target minus source of bytes and counts of whole runs, exactly.
    pub fn whole_change(&self) -> Option<i128> {
        Some(whole(&self.target)? - whole(&self.source)?)
    }

    /// The change as a share of the source: 3 if the target has four times as much. `None` for
    /// text, and if the source is zero.
    pub fn share(&self) -> Option<f64> {
        let change = self.change()?;
        let source = number(&self.values().0)?.abs();
        if change == 0.0 {
            return Some(0.0);
        }
        if source > 0.0 { Some(change / source) } else { None }
    }

    /// The larger of both values; 0 for text.
    pub(crate) fn larger(&self) -> f64 {
        let (source, target) = self.values();
        let source = number(&source).map_or(0.0, f64::abs);
        let target = number(&target).map_or(0.0, f64::abs);
        source.max(target)
    }

    /// True if both reports have the same value.
    pub fn is_same(&self) -> bool {
        let both = self.source.is_some() && self.target.is_some();
        self.source == self.target || (both && self.change() == Some(0.0))
    }

    /// The change as text: `+1,024 B (+12.50 %)`.
    pub fn change_text(&self) -> String {
        let Some(change) = self.change() else {
            return if self.is_same() { String::new() } else { "differs".to_owned() };
        };
        if self.is_of_shares() {
            return percentage_points(change);
        }
        let number = self.change_cell().text();
        match self.share() {
            Some(share) => format!("{number} ({})", TableCell::ChangeShare(share).text()),
            None => format!("{number} (new)"),
        }
    }

    /// True for shares of one, whose difference is in percentage points.
    fn is_of_shares(&self) -> bool {
        matches!(self.source.as_ref().or(self.target.as_ref()), Some(TableCell::Share(_)))
    }

    /// As a row of a table: name, both sides, the change and its share of the source, and both
    /// sides of the whole run if `whole_run` is true.
    fn cells(&self, whole_run: bool) -> Vec<TableCell> {
        let (source, target) = self.values();
        let mut cells = vec![
            TableCell::Text(self.name.clone()),
            source.into(),
            target.into(),
            self.change_cell(),
            self.share_cell(),
        ];
        if whole_run {
            let sides = [&self.source, &self.target];
            cells.extend(sides.map(|side| side.clone().filter(|_| self.per.is_some()).into()));
        }
        cells
    }

    /// The change as a share of the source, as a table cell.
    pub fn share_cell(&self) -> TableCell {
        match (self.share(), self.change()) {
            (Some(share), _) => TableCell::ChangeShare(share),
            (None, Some(_)) => "new".into(),
            (None, None) => "".into(),
        }
    }

    /// Target minus source, as a table cell.
    pub fn change_cell(&self) -> TableCell {
        match (self.whole_change(), self.change()) {
            (Some(change), _) if self.per.is_none() => {
                let mut sides = [&self.source, &self.target].into_iter().flatten();
                let bytes = sides.any(|side| matches!(side, TableCell::Bytes(_)));
                TableCell::Change { change, bytes }
            }
            (_, Some(change)) if self.is_of_shares() => TableCell::ShareChange(change),
            (_, Some(change)) => {
                let side = self.source.as_ref().or(self.target.as_ref());
                match side {
                    Some(TableCell::Seconds(_)) => TableCell::SecondsChange(change),
                    _ => TableCell::RealChange(change),
                }
            }
            (_, None) => self.change_text().into(),
        }
    }

    /// The same with source and target exchanged.
    pub fn swapped(self) -> Self {
        Self {
            source: self.target,
            target: self.source,
            source_place: self.target_place,
            target_place: self.source_place,
            per: self.per.map(WorkDivisors::swapped),
            ..self
        }
    }
}

fn number(side: &Option<TableCell>) -> Option<f64> {
    side.as_ref().map_or(Some(0.0), TableCell::number)
}

fn divided(side: &Option<TableCell>, divisor: u64) -> Option<TableCell> {
    let number = side.as_ref()?.number()? / divisor as f64;
    match side {
        Some(TableCell::Seconds(_)) => Some(TableCell::Seconds(number)),
        _ => Some(TableCell::Real(number)),
    }
}

fn whole(side: &Option<TableCell>) -> Option<i128> {
    side.as_ref().map_or(Some(0), TableCell::whole)
}

impl Serialize for ComparisonRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("Row", 8)?;
        let (source, target) = self.values();
        row.serialize_field("name", &self.name)?;
        row.serialize_field("source", &source)?;
        row.serialize_field("target", &target)?;
        let whole = self.whole_change().filter(|_| self.per.is_none());
        match whole.and_then(|change| i64::try_from(change).ok()) {
            Some(change) => row.serialize_field("diff", &change)?,
            None => row.serialize_field("diff", &self.change())?,
        }
        row.serialize_field("share", &self.share())?;
        if let Some(per) = self.per {
            row.serialize_field("per", per.words())?;
            row.serialize_field("source_run", &self.source)?;
            row.serialize_field("target_run", &self.target)?;
        }
        row.end()
    }
}

/// Entities of one kind, in both reports.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct ComparisonTable {
    pub title: &'static str,
    /// Title of the column of row names.
    pub column: &'static str,
    pub rows: Vec<ComparisonRow>,
    /// Sums over all rows, if they can be summed: the rows' changes add up to its change.
    pub total: Option<ComparisonRow>,
    /// True if no rows were left out.
    pub complete: bool,
}

impl ComparisonTable {
    /// Creates a table of `rows` in the given order.
    pub(crate) fn new(title: &'static str, column: &'static str, rows: Vec<ComparisonRow>) -> Self {
        Self { title, column, rows, total: None, complete: true }
    }

    /// Creates a table of entities by key, in the order of keys.
    pub(super) fn paired<K: Ord>(
        title: &'static str,
        column: &'static str,
        source: impl IntoIterator<Item = (K, ComparedThing)>,
        target: impl IntoIterator<Item = (K, ComparedThing)>,
    ) -> Self {
        let pairs = pair_by_key(source, target).into_iter();
        let rows = pairs.map(|(source, target)| ComparisonRow::paired(source, target));
        Self::new(title, column, rows.collect())
    }

    /// The same with sums of both sides.
    pub(super) fn with_sums(self, zero: TableCell) -> Self {
        let mut source = zero.clone();
        let mut target = zero;
        for row in &self.rows {
            source = row.source.as_ref().and_then(|cell| source.plus(cell)).unwrap_or(source);
            target = row.target.as_ref().and_then(|cell| target.plus(cell)).unwrap_or(target);
        }
        self.with_total(Some(source), Some(target))
    }

    /// Creates a table without rows.
    pub fn named(title: &'static str) -> Self {
        Self::new(title, "", Vec::new())
    }

    /// Its title in the spelling of the command line: `slower-and-faster`.
    pub fn name(&self) -> String {
        self.title.to_lowercase().replace(' ', "-").replace(',', "")
    }

    /// Its rows as columns of source, target, difference and share of the source.
    pub fn data(&self) -> DataTable {
        let sides = self.rows.iter().flat_map(|row| [&row.source, &row.target]);
        let words = sides.flatten().any(|cell| matches!(cell, TableCell::Text(_)));
        let side = if words { TableColumn::text } else { TableColumn::number };
        let mut columns = vec![
            TableColumn::text(self.heading()),
            side("Source"),
            side("Target"),
            TableColumn::number("Diff").about("Target - source; a missing side counts as zero"),
            TableColumn::number("Relative").about("The difference as a percentage of the source"),
        ];
        let whole_run = self.rows.iter().any(|row| row.per.is_some());
        if whole_run {
            let about = "Figure of the whole run, summed over all lanes";
            columns.push(side("Source, whole run").about(about).without_sum());
            columns.push(side("Target, whole run").about(about).without_sum());
        }
        let rows = self.rows.iter().map(|row| row.cells(whole_run)).collect();
        let table = DataTable::new(columns, rows);
        if self.total.is_some() { table.with_totals() } else { table }
    }

    /// Title of the column of names, with the unit of work if all figures share one.
    pub fn heading(&self) -> String {
        let mut per = self.rows.iter().map(|row| row.per);
        let first = per.next().flatten();
        match first.filter(|_| per.all(|per| per == first)) {
            Some(per) => format!("{} ({})", self.column, per.words()),
            None => self.column.to_owned(),
        }
    }

    /// The same with all figures per unit of work.
    pub(crate) fn per(mut self, divisors: WorkDivisors) -> Self {
        self.rows = self.rows.into_iter().map(|row| row.per(divisors)).collect();
        self.total = self.total.map(|total| total.per(divisors));
        self
    }

    /// Its first rows, and one row that sums up the others.
    pub(crate) fn with_rest_as_one(mut self, rows: usize) -> Self {
        // A row that stands for a single one would say less than that row.
        if self.rows.len() <= rows + 1 {
            return self;
        }
        let rest = self.rows.split_off(rows);
        let name = format!("{} others", grouped(rest.len() as u64));
        let source = sum_of(rest.iter().filter_map(|row| row.source.as_ref()));
        let target = sum_of(rest.iter().filter_map(|row| row.target.as_ref()));
        let others = ComparisonRow::new(name, source, target);
        let per = rest.first().and_then(|row| row.per);
        self.rows.push(ComparisonRow { per, ..others });
        self
    }

    /// The same, the largest change first; ties are resolved by the larger side, then by name.
    pub(crate) fn by_change(mut self) -> Self {
        self.rows.sort_by(|a, b| {
            let [size_a, size_b] = [a, b].map(|row| row.change().map_or(0.0, f64::abs));
            size_b
                .total_cmp(&size_a)
                .then_with(|| b.larger().total_cmp(&a.larger()))
                .then_with(|| a.name.cmp(&b.name))
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

fn sum_of<'a>(cells: impl Iterator<Item = &'a TableCell>) -> Option<TableCell> {
    cells.cloned().reduce(|sum, cell| sum.plus(&cell).unwrap_or(sum))
}

/// Joins the entries of two lists that have the same key; if several share a key, the k-th is
/// joined with the k-th. Rows come in the order of keys.
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
        let mut source = source.into_iter();
        let mut target = target.into_iter();
        rows.extend((0..count).map(|_| (source.next(), target.next())));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_report::units::Bytes;

    #[test]
    fn changes_are_relative_to_the_source() {
        let row = |source, target| ComparisonRow::new("a", source, target);
        let bytes = |value| Some(TableCell::Bytes(value));
        let cases = [
            (row(bytes(Bytes(700)), bytes(Bytes(1000))), "+300 B (+42.86 %)"),
            (row(bytes(Bytes(1000)), bytes(Bytes(700))), "-300 B (-30.00 %)"),
            (row(None, bytes(Bytes(5))), "+5 B (new)"),
            (row(bytes(Bytes(5)), None), "-5 B (-100.00 %)"),
            (row(bytes(Bytes::ZERO), bytes(Bytes::ZERO)), "0 B (0.00 %)"),
            (row(Some(TableCell::Share(0.5)), Some(TableCell::Share(0.25))), "-25.0 pp"),
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
