//! The points of a sweep as CSV and as lines of text.

use crate::cli::command::CliError;
use crate::cli::text_table::aligned;
use std::io::Write;
use tilescope_analysis::confidence::Banded;
use tilescope_analysis::data_table::{ColumnAlignment, DataTable, TableCell, TableColumn};
use tilescope_experiments::answers::{SweepAnswer, SweepPoint, value_text};
use tilescope_experiments::point::{FIGURES, Point, PointErrors, PointFigure};

/// All data of each point, with full paths of keys.
pub(super) fn csv(answer: &SweepAnswer) -> String {
    let keys = answer.keys.iter().map(TableColumn::text);
    let figures = FIGURES.iter().flat_map(|figure| {
        let ends = (figure.errors != PointErrors::Counted).then_some(BAND_ENDS).into_iter();
        let ends = ends.flatten().map(|end| TableColumn::number(format!("{}_{end}", figure.name)));
        [TableColumn::number(figure.name)].into_iter().chain(ends)
    });
    let rest = ["outcome", "pareto_front", "problem"].map(TableColumn::text);
    let make_row = |SweepPoint { point, pareto_front }: &SweepPoint| {
        let keys =
            answer.keys.iter().map(|key| TableCell::from(value_text(point.changes.get(key))));
        let figures = FIGURES.iter().flat_map(|figure| figure_cells(point, figure));
        let words =
            [point.outcome_words(), if *pareto_front { "yes" } else { "" }, point.problem()];
        keys.chain(figures).chain(words.map(TableCell::from)).collect()
    };
    let rows = answer.points.iter().map(make_row).collect();
    DataTable::new(keys.chain(figures).chain(rest).collect(), rows).csv()
}

/// Suffixes of columns for the bounds of nine cases in ten.
const BAND_ENDS: [&str; 2] = ["low", "high"];

/// A figure and, if it has errors, its bounds; empty if they are not known.
fn figure_cells(point: &Point, figure: &PointFigure) -> Vec<TableCell> {
    let value = match &point.figure_json(figure) {
        serde_json::Value::Number(number) => match number.as_u64() {
            Some(whole) => TableCell::Count(whole),
            None => number.as_f64().map(TableCell::Real).into(),
        },
        _ => TableCell::Missing,
    };
    if figure.errors == PointErrors::Counted {
        return vec![value];
    }
    let band = point.figures().and_then(|figures| figure.expected(figures));
    let make_end =
        |of: fn(&Banded) -> f64| TableCell::from(band.as_ref().map(of).map(TableCell::Real));
    vec![value, make_end(Banded::low), make_end(Banded::high)]
}

/// Prints a line for each point.
pub(super) fn print(answer: &SweepAnswer, output: &mut dyn Write) -> Result<(), CliError> {
    if answer.points.is_empty() {
        return Ok(writeln!(output, "No point meets the conditions.")?);
    }
    let mut heads: Vec<String> = answer.keys.iter().map(|key| short(answer, key)).collect();
    heads.extend(["time/sample", "samples/s", "memory", "IPUs", "front"].map(str::to_owned));
    heads.push(String::new());
    let rows: Vec<Vec<String>> = answer.points.iter().map(|point| line(answer, point)).collect();
    let lines: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
    let mut alignments = vec![ColumnAlignment::Right; lines[0].len()];
    alignments[lines[0].len() - 1] = ColumnAlignment::Left;
    for line in aligned(&lines, &alignments, usize::MAX) {
        writeln!(output, "{line}")?;
    }
    Ok(())
}

fn line(answer: &SweepAnswer, found: &SweepPoint) -> Vec<String> {
    let SweepPoint { point, pareto_front } = found;
    let mut line: Vec<String> =
        answer.keys.iter().map(|key| value_text(point.changes.get(key))).collect();
    let figures = point.figures();
    let make_dash = || "-".to_owned();
    for name in ["seconds_per_sample", "samples_per_second", "memory"] {
        let figure = PointFigure::named(name);
        let text = figure.zip(figures).and_then(|(figure, figures)| figure.text(figures));
        line.push(text.unwrap_or_else(make_dash));
    }
    line.push(figures.map_or_else(make_dash, |figures| figures.ipus.to_string()));
    line.push(if *pareto_front { "*".to_owned() } else { String::new() });
    line.push(match (point.fits(), point.problem()) {
        (true, _) => String::new(),
        (false, "") => "does not fit in memory".to_owned(),
        (false, problem) => format!("{}: {problem}", point.outcome_words()),
    });
    line
}

/// The last part of a path, unless another key ends in it too.
fn short(answer: &SweepAnswer, path: &str) -> String {
    let get_last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let alike = answer.keys.iter().filter(|other| get_last(other) == get_last(path)).count();
    if alike > 1 { path.to_owned() } else { get_last(path) }
}
