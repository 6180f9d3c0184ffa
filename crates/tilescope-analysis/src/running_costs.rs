//! Energy and cost of a run: power and price of the machine, multiplied by the time of the run.

use crate::summary::ExecutionSummary;
use serde::Serialize;
use tilescope_report::units::grouped_real;
use tilescope_report::{Report, ReportError, RunningCost, RunningCostBasis, RunningCostKind};

/// The number of samples that energy and cost are given for.
pub const MANY_SAMPLES: f64 = 1e6;

/// The formula of energy.
pub const ENERGY_FORMULA: &str = "power of the machine x time on the device, per million samples; \
the power is assumed to be constant, whether the machine is idle or busy";

/// The formula of cost.
pub const COST_FORMULA: &str =
    "price of an hour of the machine x time on the device, per million samples";

/// Equal parts of a machine, with their power or price.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunningCostPart {
    /// The name of the part: `IPU-M2000`.
    pub part: String,
    pub count: u64,
    /// Watts, or price per hour, of one part.
    pub each: f64,
    /// `given`, `published` or `assumed`.
    pub basis: &'static str,
    /// The source of the figure.
    pub source: String,
}

/// Energy of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EnergySummary {
    /// Power of the machine.
    pub watts: f64,
    /// Energy of the whole run.
    pub joules: f64,
    /// `None` if the model does not work on samples.
    pub joules_per_million_samples: Option<f64>,
    /// True if a part of the power is assumed.
    pub assumed: bool,
    /// The parts that the power is the sum of.
    pub parts: Vec<RunningCostPart>,
    pub formula: &'static str,
}

/// Cost of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostSummary {
    /// The currency as a three-letter code.
    pub currency: String,
    /// Price of an hour of the machine.
    pub per_hour: f64,
    /// Cost of the whole run.
    pub run: f64,
    /// `None` if the model does not work on samples.
    pub per_million_samples: Option<f64>,
    /// True if a part of the price is assumed.
    pub assumed: bool,
    /// The parts that the price is the sum of.
    pub parts: Vec<RunningCostPart>,
    pub formula: &'static str,
}

/// Energy and cost of a run, as far as power and price of its machine are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunningCosts {
    pub energy: Option<EnergySummary>,
    pub cost: Option<CostSummary>,
}

/// Energy and cost of the run of a report; empty without a run, a clock, or figures of the machine.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn running_costs(
    report: &Report,
    execution: Option<&ExecutionSummary>,
) -> Result<RunningCosts, ReportError> {
    let Some(run) = execution.filter(|run| run.seconds > 0.0) else {
        return Ok(RunningCosts::default());
    };
    let costs = report.running_costs()?;
    let per_million = |whole: f64| {
        let samples = run.samples.filter(|samples| *samples > 0);
        samples.map(|samples| whole / samples as f64 * MANY_SAMPLES)
    };
    let energy = MachineRate::of(&costs, RunningCostKind::Power).map(|power| {
        let joules = power.rate * run.seconds;
        EnergySummary {
            watts: power.rate,
            joules,
            joules_per_million_samples: per_million(joules),
            assumed: power.assumed,
            parts: power.parts,
            formula: ENERGY_FORMULA,
        }
    });
    let cost = MachineRate::of(&costs, RunningCostKind::Price).map(|price| {
        let whole = price.rate * run.seconds / 3600.0;
        CostSummary {
            currency: price.currency,
            per_hour: price.rate,
            run: whole,
            per_million_samples: per_million(whole),
            assumed: price.assumed,
            parts: price.parts,
            formula: COST_FORMULA,
        }
    });
    Ok(RunningCosts { energy, cost })
}

/// Watts, or price per hour, of all parts of a machine; `None` if they are not known, or in several
/// currencies.
pub fn machine_rate(costs: &[RunningCost], kind: RunningCostKind) -> Option<f64> {
    MachineRate::of(costs, kind).map(|rate| rate.rate)
}

/// The rate of all parts of a machine together.
struct MachineRate {
    rate: f64,
    currency: String,
    assumed: bool,
    parts: Vec<RunningCostPart>,
}

impl MachineRate {
    /// The sum over the parts; `None` if there are none, or they have several currencies.
    fn of(costs: &[RunningCost], kind: RunningCostKind) -> Option<Self> {
        let of_kind: Vec<&RunningCost> = costs.iter().filter(|cost| cost.kind == kind).collect();
        let currency = &of_kind.first()?.currency;
        if of_kind.iter().any(|cost| cost.currency != *currency) {
            return None;
        }
        let mut rate = 0.0;
        let mut assumed = false;
        let mut parts = Vec::new();
        for cost in &of_kind {
            rate += cost.count as f64 * cost.each;
            assumed |= cost.basis == RunningCostBasis::Assumed;
            parts.push(RunningCostPart {
                part: cost.part.clone(),
                count: cost.count,
                each: cost.each,
                basis: cost.basis.name(),
                source: cost.source.clone(),
            });
        }
        Some(Self { rate, currency: currency.clone(), assumed, parts })
    }
}

/// A figure with its name, value and derivation.
pub struct RunningCostRow {
    pub name: &'static str,
    pub value: String,
    pub explanation: String,
}

impl RunningCosts {
    /// The rows for the summary view and the command line.
    pub fn rows(&self) -> Vec<RunningCostRow> {
        let mut rows = Vec::new();
        match &self.energy {
            None => rows.push(unknown("Energy", "power", "target.power_watts")),
            Some(energy) => {
                rows.push(RunningCostRow {
                    name: "Power of the machine",
                    value: format!("{} W{}", grouped_real(energy.watts), marked(energy.assumed)),
                    explanation: sources(&energy.parts, "W"),
                });
                let (value, unit) = match energy.joules_per_million_samples {
                    Some(value) => (value, "J per million samples"),
                    None => (energy.joules, "J"),
                };
                rows.push(RunningCostRow {
                    name: "Energy",
                    value: format!("{} {unit}{}", grouped_real(value), marked(energy.assumed)),
                    explanation: energy.formula.to_owned(),
                });
            }
        }
        match &self.cost {
            None => rows.push(unknown("Cost", "price", "target.price_per_hour")),
            Some(cost) => {
                let CostSummary { currency, per_hour, assumed, .. } = cost;
                let unit = format!("{currency} per hour");
                rows.push(RunningCostRow {
                    name: "Price of the machine",
                    value: format!("{} {unit}{}", grouped_real(*per_hour), marked(*assumed)),
                    explanation: sources(&cost.parts, &unit),
                });
                let (value, unit) = match cost.per_million_samples {
                    Some(value) => (value, " per million samples"),
                    None => (cost.run, ""),
                };
                rows.push(RunningCostRow {
                    name: "Cost",
                    value: format!("{} {currency}{unit}{}", grouped_real(value), marked(*assumed)),
                    explanation: cost.formula.to_owned(),
                });
            }
        }
        rows
    }
}

fn marked(assumed: bool) -> &'static str {
    if assumed { ", partly assumed" } else { "" }
}

fn unknown(name: &'static str, what: &str, key: &str) -> RunningCostRow {
    RunningCostRow {
        name,
        value: "unknown".to_owned(),
        explanation: format!(
            "the report does not record the {what} of its machine, or no figure is published; set \
             {key} in the spec"
        ),
    }
}

/// The parts of a sum: `1 x IPU-M2000 of 1,100.00 W (published: …)`.
fn sources(parts: &[RunningCostPart], unit: &str) -> String {
    let mut words = Vec::new();
    for RunningCostPart { part, count, each, basis, source } in parts {
        let each = grouped_real(*each);
        words.push(format!("{count} x {part} of {each} {unit} ({basis}: {source})"));
    }
    words.join("; ")
}
