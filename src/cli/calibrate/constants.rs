//! The fitted constants in the form of specs, and the file for the results.

use super::FittedConstants;
use crate::cli::command::CliError;
use crate::cli::error::UsageError;
use serde_json::Value;
use std::fmt::Write as _;
use tilescope_analysis::calibration::{ConstantState, FitConstant};
use tilescope_report::Report;
use tilescope_report::units::percent;
use tilescope_sim::specification::{CALIBRATION_TABLE, Spec, nearest};

/// The relative change of a constant for measuring its effect: small enough to stay in the linear
/// range, and much more than a cycle.
const MOVE: f64 = 0.25;

/// The constants of a spec that can be fitted, with unknown effects.
fn fittable(spec: &Spec) -> Vec<FitConstant> {
    let constants = spec.calibrated_constants().into_iter();
    constants
        .map(|of| FitConstant {
            key: of.key,
            title: of.title.to_owned(),
            value: of.value,
            least: of.least,
            most: of.most,
            whole: of.whole,
            slopes: Vec::new(),
        })
        .collect()
}

/// The constants with these names, or all if there are none.
///
/// # Errors
/// A name belongs to no constant.
pub(super) fn chosen(spec: &Spec, names: &[&str]) -> Result<Vec<FitConstant>, CliError> {
    let mut all = fittable(spec);
    let known: Vec<String> = all.iter().map(|of| short_name(of).to_owned()).collect();
    for name in names.iter().map(|name| last_part(name)) {
        if !known.iter().any(|of| of == name) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let hint = match nearest(name, &known) {
                Some(near) => format!("; did you mean {near}?"),
                None => format!("; constants to fit: {}", known.join(", ")),
            };
            return Err(UsageError::unknown("constant", name, hint).into());
        }
    }
    all.retain(|of| names.is_empty() || names.iter().any(|name| last_part(name) == short_name(of)));
    Ok(all)
}

/// A name without its tables.
fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The name of a constant in its table.
fn short_name(constant: &FitConstant) -> &str {
    last_part(&constant.key)
}

/// A constant with another value, within its bounds.
pub(super) fn moved(constant: &FitConstant) -> f64 {
    let share = match constant.value.abs() * MOVE {
        step if step > 0.0 => step,
        _ => 0.01 * (constant.most - constant.least),
    };
    let step = if constant.whole { share.round().max(1.0) } else { share };
    match constant.value + step {
        more if more <= constant.most => more,
        _ => (constant.value - step).max(constant.least),
    }
}

/// A value in the type that a spec expects.
#[expect(clippy::cast_possible_truncation, reason = "within bounds that are far below")]
pub(super) fn json_value(constant: &FitConstant, value: f64) -> Value {
    if constant.whole { Value::from(value as i64) } else { Value::from(value) }
}

/// The content of the file for a fit.
pub(super) struct CalibrationFile<'a> {
    measured: &'a Report,
    fitted: &'a FittedConstants,
}

impl<'a> CalibrationFile<'a> {
    pub(super) fn new(measured: &'a Report, fitted: &'a FittedConstants) -> Self {
        Self { measured, fitted }
    }

    /// True if the constants predict operations that they were not fitted to better than the
    /// constants of the spec. With too few operations for that, it compares those that they were
    /// fitted to.
    pub(super) fn is_worth_it(&self) -> bool {
        let held_out = self.fitted.first.held_out;
        let better = held_out.is_none_or(|held_out| held_out.after < held_out.before);
        better
            && self.fitted.simulated < self.fitted.first.before
            && self.changed().next().is_some()
    }

    /// Constants that differ from those of the spec, with their values and standard errors.
    fn changed(&self) -> impl Iterator<Item = (&FitConstant, f64, f64)> {
        let pairs = self.fitted.start.iter().zip(&self.fitted.result.constants);
        pairs.filter_map(|(start, of)| match of.state {
            ConstantState::Fitted { value, error, .. } if value != start.value => {
                Some((start, value, error))
            }
            _ => None,
        })
    }

    /// The file, in the form of `simulate --calibration`.
    pub(super) fn text(&self) -> String {
        let errors = match self.fitted.first.held_out {
            Some(held_out) => format!(
                "error of operations held out: {}, before: {}",
                percent(held_out.after),
                percent(held_out.before)
            ),
            None => format!(
                "error of operations: {}, before: {}; too few to hold some out",
                percent(self.fitted.simulated),
                percent(self.fitted.first.before)
            ),
        };
        let source = format!("{}; {errors}", self.measured.path().display());
        let mut text = format!(
            "# Constants of the cost model, fitted to a measurement by `tilescope calibrate`.\n\
             # tilescope simulate SPEC --calibration FILE takes them.\n\
             [{CALIBRATION_TABLE}]\nsource = {}\n",
            toml::Value::from(source)
        );
        for (start, value, error) in self.changed() {
            let key = short_name(start);
            let written = toml::Value::try_from(json_value(start, value));
            let written = written.map_or_else(|_| value.to_string(), |value| value.to_string());
            let of = start.value;
            let _ =
                writeln!(text, "{key} = {written} # {}: {of} before, +- {error:.2e}", start.title);
        }
        text
    }
}
