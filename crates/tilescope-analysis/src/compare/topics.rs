//! Figures and tables of topics, row by row, without knowing the topic.

use super::comparison_table::{ComparisonRow, ComparisonTable, pair_by_key};
use super::normalization::WorkDivisors;
use super::{ComparedReports, ViewComparison};
use crate::data_table::{ColumnQuantity, DataTable, TableCell};
use crate::figures::{Figure, FigureUnit};
use crate::topics::TOPICS;
use tilescope_report::ReportError;
use tilescope_report::units::{Bytes, Cycles};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "topics", tables };

/// A row of a figure or a table.
struct TopicRow {
    name: String,
    value: TableCell,
    /// True for amounts that grow with the number of samples of a run.
    of_run: bool,
}

/// Bars of every topic, and tables that no other comparison has.
fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let per = sides.normalization()?.divisors();
    let mut tables = Vec::new();
    for topic in TOPICS {
        for figure in topic.figures {
            let (source, target) = sides.both(figure.read)?;
            let source = bars(&source);
            let target = bars(&target);
            if !source.is_empty() || !target.is_empty() {
                tables.push(compared(figure.about, (source, target), per));
            }
        }
        if !topic.has_view {
            for table in topic.all_tables() {
                let (source, target) = sides.both(table.read)?;
                tables.push(compared(table.about, (cells(&source), cells(&target)), per));
            }
        }
    }
    Ok(tables)
}

fn compared(
    title: &'static str,
    (source, target): (Vec<TopicRow>, Vec<TopicRow>),
    per: WorkDivisors,
) -> ComparisonTable {
    let mut rows = Vec::new();
    for (source, target) in pair_by_key(by_name(source), by_name(target)) {
        let Some(any) = source.as_ref().or(target.as_ref()) else { continue };
        let name = any.name.clone();
        let of_run = any.of_run;
        let row = ComparisonRow::new(name, source.map(|of| of.value), target.map(|of| of.value));
        rows.push(if of_run { row.per(per) } else { row });
    }
    ComparisonTable::new(title, "Row", rows)
}

fn by_name(rows: Vec<TopicRow>) -> impl Iterator<Item = (String, TopicRow)> {
    rows.into_iter().map(|row| (row.name.clone(), row))
}

/// Lengths of bars; figures without bars have no rows.
fn bars(figure: &Figure) -> Vec<TopicRow> {
    let mut rows = Vec::new();
    for bar in &figure.marks.bars {
        let length: f64 = bar.parts.iter().map(|part| part.to - part.from).sum();
        let value = match figure.x.unit {
            FigureUnit::Bytes => TableCell::Bytes(Bytes(length as u64)),
            FigureUnit::Cycles => TableCell::Count(Cycles::from_f64(length).0),
            FigureUnit::Seconds => TableCell::Seconds(length),
            FigureUnit::Count | FigureUnit::None => TableCell::Real(length),
            FigureUnit::Share => TableCell::Share(length),
        };
        let of_run = figure.x.unit == FigureUnit::Cycles;
        rows.push(TopicRow { name: bar.name.clone(), value, of_run });
    }
    rows
}

/// Numbers of a table, each named by the text of its row and the title of its column.
fn cells(table: &DataTable) -> Vec<TopicRow> {
    let mut rows = Vec::new();
    for row in &table.rows {
        let words: Vec<String> =
            row.iter().filter(|cell| cell.is_name()).map(TableCell::text).collect();
        for (column, cell) in table.columns.iter().zip(row) {
            if cell.is_name() || cell.number().is_none() {
                continue;
            }
            let name = format!("{}: {}", words.join(", "), column.title);
            let of_run = column.quantity == ColumnQuantity::Cycles;
            rows.push(TopicRow { name, value: cell.clone(), of_run });
        }
    }
    rows
}
