//! A series as tables.

use super::{ReportSeries, SeriesFigure, SeriesOperation, SeriesOptions};
use crate::confidence::Banded;
use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::gates::GateQuantity;
use crate::markdown::{escaped, markdown_table};
use crate::table;
use tilescope_report::units::Bytes;

impl SeriesFigure {
    /// Its path with the unit of work: `execution.total_cycles (per sample)`.
    pub fn title(&self, series: &ReportSeries, options: SeriesOptions) -> String {
        let path = self.figure.path();
        if self.figure.is_of_run() {
            format!("{path} (per {})", series.unit(options.unit).name())
        } else {
            path.to_owned()
        }
    }

    /// Its path as words, for the head of a plot: `Total cycles per sample`.
    pub fn words(&self, series: &ReportSeries, options: SeriesOptions) -> String {
        let words = path_words(self.figure.path());
        if self.figure.is_of_run() {
            format!("{words} per {}", series.unit(options.unit).name())
        } else {
            words
        }
    }

    fn column(&self, series: &ReportSeries, options: SeriesOptions) -> TableColumn {
        let title = self.title(series, options);
        match self.figure.quantity() {
            GateQuantity::Bytes => TableColumn::bytes(title),
            _ => TableColumn::number(title),
        }
        .without_sum()
    }

    /// True if at least one run has an error band for it.
    pub(super) fn is_banded(&self) -> bool {
        self.expected.iter().any(Option::is_some)
    }

    /// Bounds of a value: `1,050,000 to 1,440,000 cycles`.
    pub(super) fn ends(&self, band: Banded) -> String {
        let quantity = self.figure.quantity();
        band.ends(|value| match quantity {
            GateQuantity::Seconds | GateQuantity::Share => quantity.text(value),
            _ => quantity.text(value.round()),
        })
    }

    /// A value of the figure as a table cell.
    fn cell(&self, value: Option<f64>) -> TableCell {
        let Some(value) = value else { return TableCell::Missing };
        let whole = if value.fract() == 0.0 && (0.0..1e15).contains(&value) {
            Some(value as u64)
        } else {
            None
        };
        match (self.figure.quantity(), whole) {
            (GateQuantity::Bytes, Some(bytes)) => TableCell::Bytes(Bytes(bytes)),
            (GateQuantity::Share, _) => TableCell::Share(value),
            (GateQuantity::Seconds, _) => TableCell::Seconds(value),
            (_, Some(count)) => TableCell::Count(count),
            (_, None) => TableCell::Real(value),
        }
    }
}

/// The parts of a path as words: `memory.by_category.vertexCode` is `Memory, by category, vertex
/// code`. Figures of the execution are named without it.
fn path_words(path: &str) -> String {
    let path = path.strip_prefix("execution.").unwrap_or(path);
    let mut words = String::new();
    for letter in path.chars() {
        match letter {
            '.' => words.push_str(", "),
            '_' => words.push(' '),
            _ if words.is_empty() => words.extend(letter.to_uppercase()),
            _ if letter.is_ascii_uppercase() => {
                words.push(' ');
                words.push(letter.to_ascii_lowercase());
            }
            _ => words.push(letter),
        }
    }
    words
}

/// Most runs that have a column each where there is no room to move.
const MAX_COLUMNS: usize = 6;

/// A table of a page with its title, and a note below it.
pub type PageTable = (&'static str, DataTable, Option<String>);

impl ReportSeries {
    /// The tables for text output: runs, lasting changes, and at most `limit` operations with their
    /// total.
    pub fn page(&self, options: SeriesOptions, limit: usize) -> Vec<PageTable> {
        let mut page = vec![
            ("Runs", self.runs_table(options), None),
            ("Change points", self.changes_table(options), None),
        ];
        let more =
            [("Drifts", self.drifts_table(options)), ("Outliers", self.outliers_table(options))];
        for (title, table) in more {
            if !table.rows.is_empty() {
                page.push((title, table, None));
            }
        }
        if !self.operations.is_empty() {
            let mut table = self.operations_where_narrow(options);
            let total = table.rows.pop();
            let hidden = table.rows.len().saturating_sub(limit);
            table.rows.truncate(limit);
            table.rows.extend(total);
            let note = if hidden > 0 {
                Some(format!("{hidden} more operations are in the total"))
            } else {
                None
            };
            page.push(("Operations", table, note));
        }
        page
    }

    /// [`ReportSeries::operations_table`] for narrow output, without a column for each of many
    /// runs.
    pub fn operations_where_narrow(&self, options: SeriesOptions) -> DataTable {
        let all = self.operations_table(options);
        if self.is_narrow() { all } else { self.operations_in_short(&all, options) }
    }

    /// True if each run can have its own column in narrow output.
    pub fn is_narrow(&self) -> bool {
        self.runs.len() <= MAX_COLUMNS
    }

    /// Operations of many runs: the baseline, the last run, and the least and most of all runs.
    fn operations_in_short(&self, all: &DataTable, options: SeriesOptions) -> DataTable {
        let columns = vec![
            all.columns[0].clone(),
            TableColumn::number("Baseline"),
            TableColumn::number("Last run"),
            TableColumn::number("Change"),
            TableColumn::number("Least"),
            TableColumn::number("Most"),
        ];
        let mut rows = Vec::new();
        for cells in &all.rows {
            let baseline = &cells[1 + options.baseline];
            let last = &cells[self.runs.len()];
            let share = match (baseline.number(), last.number()) {
                (Some(before), Some(after)) if before > 0.0 => {
                    TableCell::ChangeShare(after / before - 1.0)
                }
                _ => TableCell::Missing,
            };
            let mut values = cells[1..].to_vec();
            values.retain(|cell| cell.number().is_some());
            values.sort_by(TableCell::compare);
            rows.push(vec![
                cells[0].clone(),
                baseline.clone(),
                last.clone(),
                share,
                values.first().cloned().into(),
                values.last().cloned().into(),
            ]);
        }
        DataTable::new(columns, rows)
    }

    /// The page as GitHub Markdown.
    pub fn markdown(&self, options: SeriesOptions, limit: usize) -> String {
        let mut text = String::new();
        for note in self.notes(options.unit) {
            text.push_str(&format!("{}\n\n", escaped(&note)));
        }
        for (title, table, note) in self.page(options, limit) {
            text.push_str(&format!("#### {title}\n\n"));
            if table.rows.is_empty() {
                text.push_str("none\n");
            } else {
                text.push_str(&markdown_table(&table));
            }
            if let Some(note) = note {
                text.push_str(&format!("\n{note}\n"));
            }
            text.push('\n');
        }
        for unread in &self.unread {
            let name = escaped(&unread.name);
            let problem = escaped(&unread.problem);
            text.push_str(&format!("Not read: {name}: {problem}\n\n"));
        }
        text
    }

    /// A row for each run: its figures, each with its bounds if any run has some, and its change as
    /// a share of the baseline's.
    pub fn runs_table(&self, options: SeriesOptions) -> DataTable {
        let change = TableColumn::number("Change")
            .about("The difference from the baseline as a percentage of it");
        let between = TableColumn::text("Between").about("90 % interval; empty if unknown");
        let mut columns = vec![TableColumn::text("Run"), TableColumn::text("Target")];
        for of in &self.figures {
            columns.push(of.column(self, options));
            if of.is_banded() {
                columns.push(between.clone());
            }
            columns.push(change.clone());
        }
        let mut rows = Vec::new();
        for (run, about) in self.runs.iter().enumerate() {
            let mark = if run == options.baseline { " (baseline)" } else { "" };
            let mut row =
                vec![format!("{}{mark}", about.name).into(), about.target.as_str().into()];
            for of in &self.figures {
                row.push(of.cell(self.value_of_run(of, run, options.unit)));
                if of.is_banded() {
                    let band = self.expected(of, run, options.unit);
                    row.push(band.map(|band| TableCell::Text(of.ends(band))).into());
                }
                let share = self.share(of, run, options);
                row.push(share.map(TableCell::ChangeShare).into());
            }
            rows.push(row);
        }
        DataTable::new(columns, rows)
    }

    /// A row for each lasting change, in the order of figures and runs.
    pub fn changes_table(&self, options: SeriesOptions) -> DataTable {
        let mut rows = Vec::new();
        for of in &self.figures {
            rows.extend(self.trend(of, options).changes.into_iter().map(|change| (of, change)));
        }
        table! { rows, |(of, change)|
            text "Figure" => of.title(self, options);
            text "From run" => &self.runs[change.run].name;
            unsummed "Before" => of.cell(Some(change.before)), "Median of at most five runs before it";
            unsummed "After" => of.cell(Some(change.after)), "Median of at most five runs \
                                                              starting with it";
            number "Change" => change.share.map(TableCell::ChangeShare),
                "Change as a percentage of the previous level";
            text "Confirmed" => if change.confirmed { "yes" } else { "not yet" },
                "True if two runs on each side confirm the change";
        }
    }

    /// A row for each drift of a figure, with the runs between which it drifts.
    pub fn drifts_table(&self, options: SeriesOptions) -> DataTable {
        let mut rows = Vec::new();
        for of in &self.figures {
            rows.extend(self.trend(of, options).drifts.into_iter().map(|drift| (of, drift)));
        }
        table! { rows, |(of, drift)|
            text "Figure" => of.title(self, options);
            text "From run" => &self.runs[drift.first].name;
            text "To run" => &self.runs[drift.last].name;
            number "Each run" => TableCell::ChangeShare(drift.share_per_run),
                "Change per run, as a percentage";
        }
    }

    /// A row for each run that deviates from its neighbours.
    pub fn outliers_table(&self, options: SeriesOptions) -> DataTable {
        let mut rows = Vec::new();
        for of in &self.figures {
            rows.extend(self.trend(of, options).outliers.into_iter().map(|run| (of, run)));
        }
        table! { rows, |(of, run)|
            text "Figure" => of.title(self, options);
            text "Run" => &self.runs[run].name;
            unsummed "Value" => of.cell(self.value_of_run(of, run, options.unit));
        }
    }

    /// A row for each operation with its cycles in every run, the one that varies most first; the
    /// last row is the whole run.
    pub fn operations_table(&self, options: SeriesOptions) -> DataTable {
        let mut columns = vec![TableColumn::text(format!(
            "Cycles (per {}, averaged over IPUs)",
            self.unit(options.unit).name()
        ))];
        columns.extend(self.runs.iter().map(|run| TableColumn::number(run.name.as_str())));
        let mut operations: Vec<(&SeriesOperation, f64)> =
            self.operations.iter().map(|of| (of, self.spread(of, options))).collect();
        operations.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.name.cmp(&b.0.name)));
        let mut rows = Vec::new();
        for (operation, _) in operations {
            let mut row = vec![TableCell::from(operation.name.as_str())];
            for run in 0..self.runs.len() {
                let cycles = self.operation_cycles(operation, run, options.unit);
                row.push(cycles.map(TableCell::Real).into());
            }
            rows.push(row);
        }
        let mut total = vec![TableCell::from("Total")];
        for run in 0..self.runs.len() {
            total.push(self.run_cycles(run, options.unit).map(TableCell::Real).into());
        }
        rows.push(total);
        DataTable::new(columns, rows)
    }

    /// The range of cycles of an operation over the runs; executed runs without the operation count
    /// as zero.
    pub fn spread(&self, of: &SeriesOperation, options: SeriesOptions) -> f64 {
        let mut low = f64::INFINITY;
        let mut high = 0.0_f64;
        for run in 0..self.runs.len() {
            if self.run_cycles(run, options.unit).is_none() {
                continue;
            }
            let cycles = self.operation_cycles(of, run, options.unit).unwrap_or(0.0);
            low = low.min(cycles);
            high = high.max(cycles);
        }
        // Without an executed run, `low` is infinite.
        (high - low).max(0.0)
    }
}
