//! The printed tables: every figure, and below it its published and simulated conditions.

use super::conditions::ComparedCondition;
use super::published_figures::{FigureVerdict, PublishedFigureKind};
use super::{ProgramConditions, PublishedFigureRow};
use crate::cli::command::CliError;
use std::io::Write;
use tilescope_report::units::{grouped_real, percent};
use tilescope_sim::error_bands::PublishedResiduals;

/// Prints all figures, the conditions of all runs, and the number of figures met.
pub(super) fn print(
    rows: &[PublishedFigureRow<'_>],
    fitted_constants: &[String],
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let widest = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
    writeln!(
        output,
        "{:widest$}  {:15}  {:>13}  {:>13}  {:>8}  {:11}  pass",
        "figure", "publication", "published", "simulated", "error", "kind"
    )?;
    for row in rows {
        writeln!(
            output,
            "{:widest$}  {:15}  {:>13}  {:>13}  {:>8}  {:11}  {}",
            row.what,
            row.publication,
            grouped_real(row.published),
            grouped_real(row.simulated),
            percent(row.error),
            row.kind,
            verdict(row),
        )?;
    }
    print_conditions(rows, output)?;
    print_counts(rows, fitted_constants, output)
}

fn verdict(row: &PublishedFigureRow<'_>) -> String {
    match row.verdict {
        FigureVerdict::NothingClaimed => "-".to_string(),
        FigureVerdict::Pass => "yes".to_string(),
        FigureVerdict::PassListedAsMiss => {
            "yes, but listed as a miss: update assets/published_figures.toml".to_string()
        }
        FigureVerdict::Miss if !row.fits => "MISS: does not fit in memory".to_string(),
        FigureVerdict::Miss => "MISS".to_string(),
        FigureVerdict::KnownMiss(reason) => format!("miss, known: {reason}"),
    }
}

/// One line for each published run and each of its programs: published / simulated conditions.
fn print_conditions(
    rows: &[PublishedFigureRow<'_>],
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let mut seen: Vec<&ProgramConditions<'_>> = Vec::new();
    for pair in rows.iter().flat_map(|row| row.conditions) {
        match seen.iter_mut().find(|other| (other.program, other.run) == (pair.program, pair.run)) {
            // Only figures that count items have this condition.
            Some(other) if other.conditions.len() < pair.conditions.len() => *other = pair,
            Some(_) => {}
            None => seen.push(pair),
        }
    }
    let run_width = seen.iter().map(|pair| pair.run.len()).max().unwrap_or(0);
    let program_width = seen.iter().map(|pair| pair.program.len()).max().unwrap_or(0);
    let line = |run: &str, program: &str, cells: &[String]| {
        let mut line = format!("{run:run_width$}  {program:program_width$}");
        for (cell, width) in cells.iter().zip([23, 27, 16, 15, 12, 21]) {
            line.push_str(&format!("  {cell:width$}"));
        }
        line.trim_end().to_string()
    };
    let names = ["framework", "task", "micro-batch", "accumulation", "replicas", "items"];
    writeln!(output, "\n{}", line("published / simulated", "", &names.map(str::to_string)))?;
    for pair in seen {
        let cells: Vec<String> = pair.conditions.iter().map(both).collect();
        writeln!(output, "{}", line(pair.run, pair.program, &cells))?;
    }
    Ok(())
}

fn both(condition: &ComparedCondition) -> String {
    format!("{} / {}", condition.published, condition.simulated)
}

fn print_counts(
    rows: &[PublishedFigureRow<'_>],
    fitted_constants: &[String],
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let count_rows =
        |kind: PublishedFigureKind| rows.iter().filter(|row| row.kind == kind.name()).count();
    let count_predicted = |is_wanted: fn(&FigureVerdict<'_>) -> bool| {
        let predicted = PublishedFigureKind::Predicted.name();
        rows.iter().filter(|row| row.kind == predicted && is_wanted(&row.verdict)).count()
    };
    writeln!(
        output,
        "\nPredicted figures: {} met, {} missed for known reasons, {} missed. Not counted: {} used \
         for fitting, {} inputs, {} of unnamed programs",
        count_predicted(|v| matches!(v, FigureVerdict::Pass | FigureVerdict::PassListedAsMiss)),
        count_predicted(|v| matches!(v, FigureVerdict::KnownMiss(_))),
        count_predicted(|v| *v == FigureVerdict::Miss),
        count_rows(PublishedFigureKind::Fitted),
        count_rows(PublishedFigureKind::Input),
        count_rows(PublishedFigureKind::Illustrated),
    )?;
    print_coverage(rows, output)?;
    let fitted = fitted_constants.join("; ");
    writeln!(output, "{} constants were fitted: {fitted}", fitted_constants.len())?;
    Ok(())
}

/// Prints the number of published times and throughputs inside their bands of nine in ten.
fn print_coverage(rows: &[PublishedFigureRow<'_>], output: &mut dyn Write) -> Result<(), CliError> {
    let bands = rows.iter().filter_map(|row| Some((row.published, row.band?)));
    let held: Vec<bool> = bands.map(|(published, band)| band.holds(published)).collect();
    let left_out = PublishedResiduals::kept().held_when_left_out();
    let count = |held: &[bool]| held.iter().filter(|held| **held).count();
    writeln!(
        output,
        "90 % intervals contain {} of {} predicted times and throughputs, and {} of {} that were \
         not used to determine the intervals",
        count(&held),
        held.len(),
        count(&left_out),
        left_out.len(),
    )?;
    Ok(())
}
