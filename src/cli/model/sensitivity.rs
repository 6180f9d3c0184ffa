//! Measures the effect of a tenth of each constant on simulated programs.
//!
//! Constants belong to the process, so each change is simulated in a child process of our own
//! executable.

use super::super::progress::ProgressReporter;
use crate::cli::command::CliError;
use crate::cli::error::{AnyError, JobError, UsageError};
use crate::cli::simulate::trial_figures;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilescope_analysis::confidence::Banded;
use tilescope_report::units::{binary_bytes, grouped_real};
use tilescope_sim::cost_constants::{self, CostConstant};
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_sim::{MOST_RECORDS, Simulation};

/// Default programs: together they use most parts of the model, and each takes less than a second.
const DEFAULT_SPECS: [&str; 5] =
    ["matmul_chain", "dense_layer", "mnist_pipeline", "offload", "io_overlap"];

/// Relative changes of constants.
const MOVES: [f64; 2] = [-0.1, 0.1];

/// The prediction for one program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Prediction {
    /// `None` if the program does not fit in memory.
    cycles_per_sample: Option<f64>,
    /// The same, with the error of the model.
    expected_cycles_per_sample: Option<Banded>,
    fullest_tile_bytes: f64,
    /// The same, with the error of the model.
    expected_fullest_tile: Option<Banded>,
}

impl Prediction {
    fn of(spec: &str) -> Result<Self, CliError> {
        let to_error = |error: AnyError| UsageError::Input { place: spec.to_owned(), error };
        let source = SpecSource::find(spec, &[]).map_err(|error| to_error(error.into()))?;
        let spec = Spec::build(&source).map_err(|error| to_error(error.into()))?;
        let simulation = Simulation::compile(&spec, MOST_RECORDS);
        let figures = trial_figures(&spec, &simulation.map_err(|error| to_error(error.into()))?);
        let mut cycles_per_sample = None;
        let mut expected_cycles_per_sample = None;
        if let Some(cycles) = figures.cycles {
            let per_sample = cycles.as_f64() / figures.samples.max(1) as f64;
            cycles_per_sample = Some(per_sample);
            expected_cycles_per_sample =
                figures.expected_seconds.map(|seconds| seconds.in_step(per_sample));
        }
        Ok(Self {
            cycles_per_sample,
            expected_cycles_per_sample,
            fullest_tile_bytes: figures.fullest_tile_bytes.as_f64(),
            expected_fullest_tile: figures.expected_fullest_tile,
        })
    }

    /// The increase of figures over those of `base`, as shares of these.
    fn over(self, base: Self) -> PredictionShift {
        let cycles = self.cycles_per_sample.zip(base.cycles_per_sample);
        PredictionShift {
            cycles: cycles.map(|(changed, base)| changed / base - 1.0),
            fullest_tile: self.fullest_tile_bytes / base.fullest_tile_bytes - 1.0,
        }
    }
}

/// The change of a prediction with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct PredictionShift {
    /// `None` if the program does not fit in memory, before or after.
    cycles: Option<f64>,
    fullest_tile: f64,
}

impl PredictionShift {
    fn size(self) -> f64 {
        self.cycles.unwrap_or(0.0).abs().max(self.fullest_tile.abs())
    }
}

/// A constant, with the shift of each program's prediction when it decreases and when it increases.
struct ConstantSensitivity {
    constant: &'static CostConstant,
    /// By move, then by program.
    shifts: Vec<Vec<PredictionShift>>,
}

impl ConstantSensitivity {
    fn size(&self) -> f64 {
        self.shifts.iter().flatten().map(|shift| shift.size()).fold(0.0, f64::max)
    }
}

/// Runs in the child process: changes one constant (`NAME=VALUE`; none if empty) and prints
/// predictions.
pub(super) fn figures(
    change: &str,
    specs: &[&String],
    output: &mut dyn Write,
) -> Result<(), CliError> {
    if let Some((name, value)) = change.split_once('=') {
        let number = value.parse().map_err(|_| {
            let text = value.to_owned();
            UsageError::NoNumber { option: "--figures", text }
        });
        cost_constants::change(name, number?)?;
    }
    let predictions: Result<Vec<_>, _> = specs.iter().map(|spec| Prediction::of(spec)).collect();
    crate::cli::command::print_json(&json!(predictions?), output)
}

/// Prints the effect on `specs` of a tenth of each of the constants (all, if none are selected).
pub(super) fn run(
    chosen: &[&'static CostConstant],
    specs: &[&String],
    as_json: bool,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let named: Vec<&str> = specs.iter().map(|spec| spec.as_str()).collect();
    let specs = if named.is_empty() { DEFAULT_SPECS.to_vec() } else { named };
    let constants: Vec<&'static CostConstant> =
        if chosen.is_empty() { cost_constants::of_programs().collect() } else { chosen.to_vec() };
    let base = child("", &specs)?;
    let mut rows = rows(&constants, &specs, &base)?;
    rows.sort_by(|a, b| b.size().total_cmp(&a.size()));
    if as_json {
        return crate::cli::command::print_json(&to_json(&rows, &specs, &base), output);
    }
    print(&rows, &specs, &base, output)
}

fn rows(
    constants: &[&'static CostConstant],
    specs: &[&str],
    base: &[Prediction],
) -> Result<Vec<ConstantSensitivity>, CliError> {
    let progress = ProgressReporter::new("simulating");
    let done = AtomicUsize::new(0);
    let measure_row = |constant: &&'static CostConstant| {
        let moved = MOVES.iter().map(|share| {
            let value = constant.moved_by(*share);
            let changed = child(&format!("{}={value}", constant.name), specs)?;
            Ok(changed.iter().zip(base).map(|(changed, base)| changed.over(*base)).collect())
        });
        let shifts: Result<Vec<Vec<PredictionShift>>, CliError> = moved.collect();
        let share = (done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / constants.len() as f64;
        progress.at(share);
        Ok(ConstantSensitivity { constant, shifts: shifts? })
    };
    constants.par_iter().map(measure_row).collect()
}

/// Predictions from a child process with one constant changed.
fn child(change: &str, specs: &[&str]) -> Result<Vec<Prediction>, CliError> {
    let to_error = |problem: String| JobError::Child { change: change.to_owned(), problem };
    let executable = std::env::current_exe().map_err(|error| to_error(error.to_string()))?;
    // Children run in parallel, so each uses one core.
    let result = Command::new(executable)
        .env("RAYON_NUM_THREADS", "1")
        .args(["model", "--sensitivity"])
        .args(specs)
        .arg(format!("--figures={change}"))
        .output()
        .map_err(|error| to_error(error.to_string()))?;
    if !result.status.success() {
        return Err(to_error(String::from_utf8_lossy(&result.stderr).trim().to_owned()).into());
    }
    Ok(serde_json::from_slice(&result.stdout).map_err(|error| to_error(error.to_string()))?)
}

fn to_json(rows: &[ConstantSensitivity], specs: &[&str], base: &[Prediction]) -> Value {
    let join_specs = |values: Vec<Value>| -> Value {
        specs.iter().map(|spec| (*spec).to_owned()).zip(values).collect()
    };
    let constants: Vec<Value> = rows
        .iter()
        .map(|row| {
            let moves = MOVES.iter().zip(&row.shifts).map(|(share, shifts)| {
                let value = row.constant.moved_by(*share);
                let shifts = shifts.iter().map(|shift| json!(shift)).collect();
                json!({ "value": value, "changes": join_specs(shifts) })
            });
            json!({
                "name": row.constant.name,
                "kind": row.constant.kind.name(),
                "value": row.constant.value,
                "moves": moves.collect::<Vec<_>>(),
            })
        })
        .collect();
    let programs = join_specs(base.iter().map(|prediction| json!(prediction)).collect());
    json!({ "programs": programs, "constants": constants })
}

fn print(
    rows: &[ConstantSensitivity],
    specs: &[&str],
    base: &[Prediction],
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let format_pair = |values: [Option<f64>; 2]| {
        values
            .map(|value| {
                value.map_or_else(
                    || "-".to_owned(),
                    |share| match 100.0 * share {
                        small if small.abs() < 0.005 => "0".to_owned(),
                        share => format!("{share:+.2}"),
                    },
                )
            })
            .join(" / ")
    };
    writeln!(
        output,
        "Change of predictions in percent with 10 % less / more of a constant (whole numbers: at \
         least one)"
    )?;
    let names = rows.iter().map(|row| row.constant.name.len());
    let width = names.max().unwrap_or(0).max(8);
    for (index, (spec, base)) in specs.iter().zip(base).enumerate() {
        let mut cycles = "does not fit in memory".to_owned();
        if let Some(found) = base.cycles_per_sample {
            let errors = Banded::in_brackets(base.expected_cycles_per_sample);
            cycles = format!("{} cycles per sample{errors}", grouped_real(found));
        }
        writeln!(
            output,
            "\n{spec}: {cycles}, fullest tile {}{}",
            binary_bytes(base.fullest_tile_bytes as u64),
            Banded::in_brackets(base.expected_fullest_tile)
        )?;
        writeln!(
            output,
            "  {:width$}  {:9}  {:17}  {:17}",
            "constant", "kind", "cycles", "fullest tile"
        )?;
        for row in rows {
            let shifts: Vec<&PredictionShift> =
                row.shifts.iter().filter_map(|shifts| shifts.get(index)).collect();
            let [less, more] = shifts.as_slice() else { continue };
            if less.size().max(more.size()) == 0.0 {
                continue;
            }
            let cycles = format_pair([less.cycles, more.cycles]);
            let tile = format_pair([Some(less.fullest_tile), Some(more.fullest_tile)]);
            let name = row.constant.name;
            let kind = row.constant.kind.name();
            writeln!(output, "  {name:width$}  {kind:9}  {cycles:17}  {tile:17}")?;
        }
    }
    let idle: Vec<&str> =
        rows.iter().filter(|row| row.size() == 0.0).map(|row| row.constant.name).collect();
    if !idle.is_empty() {
        writeln!(output, "\nNo effect here: {}", idle.join(", "))?;
    }
    Ok(())
}
