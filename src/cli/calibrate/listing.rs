//! The output of `calibrate`.

use super::{FittedConstants, SpecChange};
use crate::cli::command::CliError;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use tilescope_analysis::calibration::{
    ConstantState, FitConstant, MeasuredBesideSimulated, OperationResidual, Prediction,
    PredictionBasis, UnalignedProgram, is_measured,
};
use tilescope_report::Report;
use tilescope_report::units::{grouped, percent};

/// Number of programs of only one report that text lists by name.
const NAMED: usize = 5;

/// Width of the widest column of names.
const NAME_WIDTH: usize = 56;

/// Both runs, with options for printing.
pub(super) struct Listing<'a> {
    pub measured: &'a Report,
    pub aligned: &'a MeasuredBesideSimulated,
    /// Number of operations to print.
    pub limit: usize,
    pub as_json: bool,
}

/// Cycles, rounded to whole ones.
fn cycles(value: f64) -> String {
    match value.round() {
        below if below < 0.0 => format!("-{}", grouped((-below) as u64)),
        whole => grouped(whole as u64),
    }
}

fn signed(value: f64) -> String {
    if value.round() > 0.0 { format!("+{}", cycles(value)) } else { cycles(value) }
}

/// A value of a constant with its significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size != 0.0 && !(1e-3..1e7).contains(&size) => format!("{value:.4e}"),
        _ => format!("{}", (value * 1e4).round() / 1e4),
    }
}

fn print_json(value: &Value, output: &mut dyn Write) -> Result<(), CliError> {
    Ok(writeln!(output, "{value:#}")?)
}

/// Prints rows of cells, the first column left-aligned and the others right-aligned.
fn table<const N: usize>(rows: &[[String; N]], output: &mut dyn Write) -> Result<(), CliError> {
    let measure_column = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).min(NAME_WIDTH)
    };
    for row in rows {
        let mut line = format!("  {:1$}", row[0], measure_column(0));
        for (column, cell) in row.iter().enumerate().skip(1) {
            line.push_str(&format!("  {cell:>0$}", measure_column(column)));
        }
        writeln!(output, "{}", line.trim_end())?;
    }
    Ok(())
}

impl Listing<'_> {
    fn operation_json(of: &OperationResidual) -> Value {
        json!({
            "name": of.name,
            "measured": of.measured,
            "simulated": of.simulated,
            "ratio": of.ratio(),
            "residual": of.residual(),
            "waits_for_host": of.waits_for_host,
        })
    }

    fn unaligned_json(programs: &[UnalignedProgram]) -> Value {
        programs.iter().map(|of| json!({ "name": of.name, "cycles": of.cycles })).collect()
    }

    /// Prints both runs and the fit.
    pub(super) fn fit(
        &self,
        fitted: &FittedConstants,
        written: Option<&Path>,
        output: &mut dyn Write,
    ) -> Result<(), CliError> {
        if self.as_json {
            return print_json(&self.fit_json(fitted, written), output);
        }
        self.operations(output)?;
        self.constants(fitted, output)?;
        self.errors(fitted, output)?;
        match written {
            Some(path) => writeln!(
                output,
                "\n{}\nNext: tilescope simulate SPEC --calibration {0}",
                path.display()
            )?,
            None => writeln!(
                output,
                "\nNo file was written: no constant improves the predictions of held-out \
                 operations."
            )?,
        }
        Ok(())
    }

    fn operations(&self, output: &mut dyn Write) -> Result<(), CliError> {
        if !is_measured(self.measured) {
            writeln!(output, "This report was simulated, not measured.\n")?;
        }
        writeln!(
            output,
            "Operations, the largest residual first: cycles of all steps on all IPUs"
        )?;
        let all = self.aligned.by_residual();
        let heading = ["operation", "measured", "simulated", "ratio", "residual", ""];
        let mut rows = vec![heading.map(str::to_owned)];
        for of in all.iter().take(self.limit) {
            let ratio = of.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
            let waits = if of.waits_for_host { "waits for the host" } else { "" };
            rows.push([
                of.name.clone(),
                cycles(of.measured),
                cycles(of.simulated),
                ratio,
                signed(of.residual()),
                waits.to_owned(),
            ]);
        }
        table(&rows, output)?;
        if all.len() > self.limit {
            writeln!(output, "  … {} more operations (--limit 0 for all)", all.len() - self.limit)?;
        }
        self.unaligned("measurement", &self.aligned.only_measured, output)?;
        self.unaligned("simulation", &self.aligned.only_simulated, output)
    }

    fn unaligned(
        &self,
        side: &str,
        programs: &[UnalignedProgram],
        output: &mut dyn Write,
    ) -> Result<(), CliError> {
        if programs.is_empty() {
            return Ok(());
        }
        let sum: f64 = programs.iter().map(|of| of.cycles).sum();
        let named = programs.iter().take(NAMED);
        let named: Vec<String> =
            named.map(|of| format!("{} ({})", of.name, cycles(of.cycles))).collect();
        let more = match programs.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = named.join(", ");
        Ok(writeln!(output, "Only in the {side}, {} cycles: {named}{more}", cycles(sum))?)
    }

    fn constants(&self, fitted: &FittedConstants, output: &mut dyn Write) -> Result<(), CliError> {
        writeln!(output, "\nConstants")?;
        let heading = ["constant", "before", "fitted", "error", "bounds"];
        let mut rows = vec![heading.map(str::to_owned)];
        let mut unknown = Vec::new();
        for (start, of) in fitted.start.iter().zip(&fitted.result.constants) {
            if let ConstantState::Fitted { value, error, .. } = &of.state {
                let bounds = format!("{} to {}", number(start.least), number(start.most));
                let error =
                    if error.is_finite() { format!("+- {error:.1e}") } else { "?".to_owned() };
                rows.push([
                    start.title.clone(),
                    number(start.value),
                    number(*value),
                    error,
                    bounds,
                ]);
            }
            unknown.extend(state_sentence(start, &of.state));
        }
        if rows.len() > 1 {
            table(&rows, output)?;
        }
        for sentence in unknown {
            writeln!(output, "  {sentence}")?;
        }
        Ok(())
    }

    fn errors(&self, fitted: &FittedConstants, output: &mut dyn Write) -> Result<(), CliError> {
        let before = percent(fitted.first.before);
        let after = percent(fitted.simulated);
        writeln!(
            output,
            "\nError: {before} of measured cycles before, {after} simulated with the fitted constants"
        )?;
        match fitted.first.held_out {
            Some(held_out) => writeln!(
                output,
                "Held out: {} of operations that {} fits left out in turn, {} before",
                percent(held_out.after),
                held_out.folds,
                percent(held_out.before)
            )?,
            None => writeln!(output, "Held out: unknown, too few operations")?,
        }
        Ok(())
    }

    fn fit_json(&self, fitted: &FittedConstants, written: Option<&Path>) -> Value {
        let constants = fitted.start.iter().zip(&fitted.result.constants);
        let constants: Vec<Value> =
            constants.map(|(start, of)| constant_json(start, &of.state)).collect();
        let held_out = fitted
            .first
            .held_out
            .map(|of| json!({ "folds": of.folds, "before": of.before, "after": of.after }));
        let operations = self.aligned.by_residual().into_iter().take(self.limit);
        json!({
            "measured": is_measured(self.measured),
            "operations": operations.map(Self::operation_json).collect::<Vec<_>>(),
            "only_measured": Self::unaligned_json(&self.aligned.only_measured),
            "only_simulated": Self::unaligned_json(&self.aligned.only_simulated),
            "constants": constants,
            "error": {
                "before": fitted.first.before,
                "after": fitted.simulated,
                "held_out": held_out,
            },
            "written": written.map(|path| path.display().to_string()),
        })
    }

    /// Prints the measured run with a change of the spec.
    pub(super) fn prediction(
        &self,
        prediction: &Prediction,
        change: &SpecChange,
        output: &mut dyn Write,
    ) -> Result<(), CliError> {
        let (measured, predicted) = prediction.totals();
        let bases = [
            PredictionBasis::Scaled,
            PredictionBasis::AsMeasured,
            PredictionBasis::Simulated,
            PredictionBasis::Gone,
        ];
        if self.as_json {
            let describe_operation = |of: &tilescope_analysis::calibration::OperationPrediction| {
                json!({
                    "name": of.name,
                    "measured": of.measured,
                    "predicted": of.predicted,
                    "factor": of.factor,
                    "basis": of.basis.name(),
                })
            };
            let shown = prediction.operations.iter().take(self.limit).map(describe_operation);
            let by_basis = bases.map(|basis| (basis.name(), prediction.cycles_by(basis)));
            let (changes, spec) = match change {
                SpecChange::Keys(keys) => (&keys[..], None),
                SpecChange::Spec(name) => (&[][..], Some(name)),
            };
            let value = json!({
                "changes": changes,
                "spec": spec,
                "measured": measured,
                "predicted": predicted,
                "predicted_by_basis": by_basis.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
                "operations": shown.collect::<Vec<_>>(),
            });
            return print_json(&value, output);
        }
        let words = match change {
            SpecChange::Keys(keys) => keys.join(", "),
            SpecChange::Spec(name) => format!("the spec {name}"),
        };
        writeln!(output, "The measured run with {words}")?;
        let heading = ["operation", "measured", "predicted", "factor", "basis"];
        let mut rows = vec![heading.map(str::to_owned)];
        for of in prediction.operations.iter().take(self.limit) {
            let factor = of.factor.map_or_else(|| "-".to_owned(), |factor| format!("{factor:.3}"));
            let basis = of.basis.name().to_owned();
            rows.push([of.name.clone(), cycles(of.measured), cycles(of.predicted), factor, basis]);
        }
        let factor = if measured > 0.0 { predicted / measured } else { 1.0 };
        let total = "all operations".to_owned();
        rows.push([
            total,
            cycles(measured),
            cycles(predicted),
            format!("{factor:.3}"),
            String::new(),
        ]);
        table(&rows, output)?;
        let hidden = prediction.operations.len().saturating_sub(self.limit);
        if hidden > 0 {
            writeln!(output, "  … {hidden} more operations (--limit 0 for all)")?;
        }
        let format_cycles = |basis: PredictionBasis| cycles(prediction.cycles_by(basis));
        writeln!(
            output,
            "\nOf the predicted cycles, {} are measured and scaled by the simulation, {} are \
             measured and not in the simulation, and {} are simulated because only the change adds \
             them. Cycles are those of all steps on all IPUs; their overlap is not predicted.",
            format_cycles(PredictionBasis::Scaled),
            format_cycles(PredictionBasis::AsMeasured),
            format_cycles(PredictionBasis::Simulated)
        )?;
        Ok(())
    }
}

/// A remark about a constant, if there is one.
fn state_sentence(start: &FitConstant, state: &ConstantState) -> Option<String> {
    let title = &start.title;
    let value = number(start.value);
    match state {
        ConstantState::Fitted { instead_of, .. } if !instead_of.is_empty() => Some(format!(
            "{title}: identifiable only together with {}, which stays unchanged",
            instead_of.join(", ")
        )),
        ConstantState::Fitted { at_bound: true, .. } => {
            Some(format!("{title}: the fit stops at its bound; another cause is likely"))
        }
        ConstantState::Fitted { .. } => None,
        ConstantState::WithoutEffect => Some(format!(
            "{title}: not identifiable, no measured operation depends on it; it stays {value}"
        )),
        ConstantState::OnlyTogether(others) => Some(format!(
            "{title}: not identifiable, its effects are those of {}; it stays {value}",
            others.join(" and ")
        )),
        ConstantState::TooWeak { error } => Some(format!(
            "{title}: not identifiable, the measurement would leave it +- {error:.1e}; it stays {value}"
        )),
    }
}

fn constant_json(start: &FitConstant, state: &ConstantState) -> Value {
    let (name, value, error, others) = match state {
        ConstantState::Fitted { value, error, instead_of, .. } => {
            ("fitted", *value, error.is_finite().then_some(*error), instead_of.clone())
        }
        ConstantState::WithoutEffect => ("without_effect", start.value, None, Vec::new()),
        ConstantState::OnlyTogether(others) => ("only_together", start.value, None, others.clone()),
        ConstantState::TooWeak { error } => {
            ("too_weak", start.value, error.is_finite().then_some(*error), Vec::new())
        }
    };
    json!({
        "key": start.key,
        "title": start.title,
        "before": start.value,
        "value": value,
        "standard_error": error,
        "state": name,
        "together_with": others,
        "at_bound": matches!(state, ConstantState::Fitted { at_bound: true, .. }),
        "least": start.least,
        "most": start.most,
    })
}
