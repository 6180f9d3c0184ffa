//! A changed spec and what came of it.

use crate::cli::trials::{SpecChanges, TrialFigures, TrialOutcome};
use serde_json::{Map, Value, json};
use tilescope_analysis::gates::GateQuantity;

/// A changed spec that was tried.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct Point {
    pub changes: SpecChanges,
    pub outcome: TrialOutcome,
}

/// A figure of a point.
pub(in crate::cli) struct PointFigure {
    /// As conditions, columns and JSON name it.
    pub name: &'static str,
    /// The name that gates of reports have for it, if they have another.
    pub also: &'static str,
    pub quantity: GateQuantity,
    pub of: fn(&TrialFigures) -> Option<f64>,
}

/// Figures of points that fit; those of memory and IPUs are known of others too.
pub(in crate::cli) static FIGURES: &[PointFigure] = &[
    PointFigure {
        name: "seconds_per_sample",
        also: "",
        quantity: GateQuantity::Seconds,
        of: TrialFigures::seconds_per_sample,
    },
    PointFigure {
        name: "samples_per_second",
        also: "throughput",
        quantity: GateQuantity::PerSecond,
        of: |figures| figures.seconds_per_sample().map(f64::recip),
    },
    PointFigure {
        name: "cycles",
        also: "",
        quantity: GateQuantity::Cycles,
        of: |figures| figures.cycles.map(|cycles| cycles.as_f64()),
    },
    PointFigure {
        name: "seconds",
        also: "",
        quantity: GateQuantity::Seconds,
        of: |figures| figures.seconds,
    },
    PointFigure {
        name: "samples",
        also: "",
        quantity: GateQuantity::Count,
        of: |figures| Some(figures.samples as f64),
    },
    PointFigure {
        name: "memory",
        also: "max_tile",
        quantity: GateQuantity::Bytes,
        of: |figures| Some(figures.fullest_tile_bytes.as_f64()),
    },
    PointFigure {
        name: "ipus",
        also: "",
        quantity: GateQuantity::Count,
        of: |figures| Some(figures.ipus.into()),
    },
    PointFigure {
        name: "joules_per_million_samples",
        also: "",
        quantity: GateQuantity::Count,
        of: TrialFigures::joules,
    },
    PointFigure {
        name: "cost_per_million_samples",
        also: "",
        quantity: GateQuantity::Count,
        of: TrialFigures::cost,
    },
];

impl Point {
    /// Its figures, where it was simulated.
    pub(in crate::cli) fn figures(&self) -> Option<&TrialFigures> {
        match &self.outcome {
            TrialOutcome::Figures(figures) => Some(figures),
            TrialOutcome::Refused(_) | TrialOutcome::Died(_) => None,
        }
    }

    /// Whether it fits in memory, so that it has a time.
    pub(in crate::cli) fn fits(&self) -> bool {
        self.figures().is_some_and(|figures| figures.cycles.is_some())
    }

    /// `fits`, `does not fit`, `refused` or `died`
    pub(in crate::cli) fn outcome_words(&self) -> &'static str {
        match &self.outcome {
            TrialOutcome::Figures(figures) if figures.cycles.is_some() => "fits",
            TrialOutcome::Figures(_) => "does not fit",
            TrialOutcome::Refused(_) => "refused",
            TrialOutcome::Died(_) => "died",
        }
    }

    /// Why it has no figures; empty where it has some.
    pub(in crate::cli) fn problem(&self) -> &str {
        match &self.outcome {
            TrialOutcome::Figures(_) => "",
            TrialOutcome::Refused(problem) | TrialOutcome::Died(problem) => problem,
        }
    }

    /// Changes, figures and outcome; what is not known is null.
    pub(in crate::cli) fn json(&self) -> Map<String, Value> {
        let mut json = Map::new();
        json.insert("changes".to_owned(), json!(self.changes));
        json.insert("outcome".to_owned(), json!(self.outcome_words().replace(' ', "_")));
        for figure in FIGURES {
            let value = self.figures().and_then(|figures| (figure.of)(figures));
            let value = match (figure.quantity, value) {
                // Counted things stay whole.
                (GateQuantity::Count | GateQuantity::Bytes | GateQuantity::Cycles, Some(value)) => {
                    json!(value as u64)
                }
                (_, value) => json!(value),
            };
            json.insert(figure.name.to_owned(), value);
        }
        let problem = Some(self.problem()).filter(|problem| !problem.is_empty());
        json.insert("problem".to_owned(), json!(problem));
        json
    }

    /// What is made small: time of a sample, memory of the fullest tile, IPUs.
    fn costs(&self) -> Option<[f64; 3]> {
        let figures = self.figures()?;
        let memory = figures.fullest_tile_bytes.as_f64();
        Some([figures.seconds_per_sample()?, memory, figures.ipus.into()])
    }
}

/// Whether each point is on the Pareto front: none that fits is better in time of a sample, memory
/// of the fullest tile or IPUs without being worse in another.
pub(in crate::cli) fn is_on_front<'a>(points: impl Iterator<Item = &'a Point>) -> Vec<bool> {
    let costs: Vec<Option<[f64; 3]>> = points.map(Point::costs).collect();
    let mut order: Vec<(usize, [f64; 3])> =
        costs.iter().enumerate().filter_map(|(at, costs)| Some((at, (*costs)?))).collect();
    // Whoever is better than a point comes before it.
    order.sort_by(|(_, a), (_, b)| {
        a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])).then(a[2].total_cmp(&b[2]))
    });
    let mut is_on_front = vec![false; costs.len()];
    let mut front: Vec<[f64; 3]> = Vec::new();
    for (at, own) in order {
        let is_better = |other: &[f64; 3]| {
            *other != own && other.iter().zip(&own).all(|(other, own)| other <= own)
        };
        if !front.iter().any(is_better) {
            is_on_front[at] = true;
            front.push(own);
        }
    }
    is_on_front
}
