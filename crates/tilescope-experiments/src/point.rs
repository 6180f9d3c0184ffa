//! A changed spec with its outcome.

use crate::trial::{TrialFigures, TrialOutcome};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tilescope_analysis::confidence::{Banded, MemoryFit};
use tilescope_analysis::gates::GateQuantity;
use tilescope_analysis::insights::SpecChanges;
use tilescope_report::units::{Bytes, Cycles, NumberFormat, grouped, grouped_real, seconds};

/// A changed spec and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub changes: SpecChanges,
    pub outcome: TrialOutcome,
}

/// JSON names of the fields of a point besides its figures.
const CHANGES: &str = "changes";
const OUTCOME: &str = "outcome";
const PROBLEM: &str = "problem";
const EXPECTED: &str = "expected";
const FITS: &str = "fits";
const DOES_NOT_FIT: &str = "does_not_fit";

/// A figure of a point.
pub struct PointFigure {
    /// Its name in conditions, columns and JSON.
    pub name: &'static str,
    /// Its name in gates of reports, if different.
    pub also: &'static str,
    pub quantity: GateQuantity,
    pub of: fn(&TrialFigures) -> Option<f64>,
    /// The kind of its model errors.
    pub errors: PointErrors,
}

/// The kind of errors of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointErrors {
    /// The errors of the run's time.
    OfTime,
    /// The errors of the run's time, inverted.
    OfRate,
    /// The errors of the fullest tile.
    OfMemory,
    /// No errors, since the figure is counted.
    Counted,
}

/// Figures of points that fit; memory and IPUs are known for other points too.
pub static FIGURES: &[PointFigure] = &[
    PointFigure {
        name: "seconds_per_sample",
        also: "",
        quantity: GateQuantity::Seconds,
        of: TrialFigures::seconds_per_sample,
        errors: PointErrors::OfTime,
    },
    PointFigure {
        name: "samples_per_second",
        also: "throughput",
        quantity: GateQuantity::PerSecond,
        of: |figures| figures.seconds_per_sample().map(f64::recip),
        errors: PointErrors::OfRate,
    },
    PointFigure {
        name: "cycles",
        also: "",
        quantity: GateQuantity::Cycles,
        of: |figures| figures.cycles.map(|cycles| cycles.as_f64()),
        errors: PointErrors::OfTime,
    },
    PointFigure {
        name: "seconds",
        also: "",
        quantity: GateQuantity::Seconds,
        of: |figures| figures.seconds,
        errors: PointErrors::OfTime,
    },
    PointFigure {
        name: "samples",
        also: "",
        quantity: GateQuantity::Count,
        of: |figures| Some(figures.samples as f64),
        errors: PointErrors::Counted,
    },
    PointFigure {
        name: "memory",
        also: "max_tile",
        quantity: GateQuantity::Bytes,
        of: |figures| Some(figures.fullest_tile_bytes.as_f64()),
        errors: PointErrors::OfMemory,
    },
    PointFigure {
        name: "ipus",
        also: "",
        quantity: GateQuantity::Count,
        of: |figures| Some(figures.ipus.into()),
        errors: PointErrors::Counted,
    },
    PointFigure {
        name: "joules_per_million_samples",
        also: "",
        quantity: GateQuantity::Count,
        of: TrialFigures::joules,
        errors: PointErrors::OfTime,
    },
    PointFigure {
        name: "cost_per_million_samples",
        also: "",
        quantity: GateQuantity::Count,
        of: TrialFigures::cost,
        errors: PointErrors::OfTime,
    },
];

/// Figures with the error bands of the model, by name, as far as these are known.
#[must_use]
pub fn expected(figures: &TrialFigures) -> BTreeMap<&'static str, Banded> {
    let mut expected = BTreeMap::new();
    for figure in FIGURES {
        if let Some(band) = figure.expected(figures) {
            expected.insert(figure.name, band);
        }
    }
    expected
}

impl PointFigure {
    /// Returns the figure with the given name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        FIGURES.iter().find(|figure| figure.name == name)
    }

    /// Its value with the error band of the model; `None` if that is not known, or the figure is
    /// counted.
    #[must_use]
    pub fn expected(&self, figures: &TrialFigures) -> Option<Banded> {
        let value = (self.of)(figures)?;
        match self.errors {
            PointErrors::OfTime => Some(figures.expected_seconds?.in_step(value)),
            PointErrors::OfRate => Some(figures.expected_seconds?.in_reverse(value)),
            PointErrors::OfMemory => figures.expected_fullest_tile,
            PointErrors::Counted => None,
        }
    }

    /// A value of it, and how far it may be off where that is known: `1.61 µs (-12 to +14 %)`.
    #[must_use]
    pub fn text(&self, figures: &TrialFigures) -> Option<String> {
        let value = (self.of)(figures)?;
        let text = match self.quantity {
            GateQuantity::Seconds => seconds(value),
            GateQuantity::Bytes => NumberFormat::default().bytes(figures.fullest_tile_bytes.0),
            GateQuantity::PerSecond | GateQuantity::Cycles => grouped(value as u64),
            GateQuantity::Count if value.fract() == 0.0 => grouped(value as u64),
            _ => grouped_real(value),
        };
        Some(text + &Banded::in_brackets(self.expected(figures)))
    }
}

impl Point {
    /// Its figures, if it was simulated.
    pub fn figures(&self) -> Option<&TrialFigures> {
        match &self.outcome {
            TrialOutcome::Figures(figures) => Some(figures),
            TrialOutcome::Refused(_) | TrialOutcome::Died(_) => None,
        }
    }

    /// True if it fits in memory and therefore has a time.
    pub fn fits(&self) -> bool {
        self.figures().is_some_and(|figures| figures.cycles.is_some())
    }

    /// True if its process died, so that another attempt makes sense.
    #[must_use]
    pub fn died(&self) -> bool {
        matches!(self.outcome, TrialOutcome::Died(_))
    }

    /// `fits`, `does not fit`, `refused` or `died`
    pub fn outcome_words(&self) -> &'static str {
        match &self.outcome {
            TrialOutcome::Figures(figures) if figures.cycles.is_some() => "fits",
            TrialOutcome::Figures(_) => "does not fit",
            TrialOutcome::Refused(_) => "refused",
            TrialOutcome::Died(_) => "died",
        }
    }

    /// The reason that it has no figures; empty if it has some.
    pub fn problem(&self) -> &str {
        match &self.outcome {
            TrialOutcome::Figures(_) => "",
            TrialOutcome::Refused(problem) | TrialOutcome::Died(problem) => problem,
        }
    }

    /// Time of a sample; `None` if it cannot run.
    #[must_use]
    pub fn seconds_per_sample(&self) -> Option<f64> {
        self.figures()?.seconds_per_sample()
    }

    /// Bytes of the fullest tile; `None` if it was not simulated.
    #[must_use]
    pub fn memory(&self) -> Option<f64> {
        Some(self.figures()?.fullest_tile_bytes.as_f64())
    }

    /// The value of a figure; `None` if it is not known.
    #[must_use]
    pub fn figure(&self, figure: &PointFigure) -> Option<f64> {
        (figure.of)(self.figures()?)
    }

    /// The value of a figure as JSON: counts, bytes and cycles are integers if they are whole.
    #[must_use]
    pub fn figure_json(&self, figure: &PointFigure) -> Value {
        let Some(value) = self.figure(figure) else { return Value::Null };
        match figure.quantity {
            GateQuantity::Count | GateQuantity::Bytes | GateQuantity::Cycles
                if value.fract() == 0.0 =>
            {
                json!(value as u64)
            }
            _ => json!(value),
        }
    }

    /// `1.61 µs (-12 to +14 %) per sample, fullest tile 211 KiB (-1 to +2 %), 4 IPUs`; the outcome where
    /// there are no figures.
    #[must_use]
    pub fn figures_text(&self) -> String {
        let Some(figures) = self.figures() else { return self.outcome_words().to_owned() };
        let text = |figure: &PointFigure| figure.text(figures);
        let time = match PointFigure::named("seconds_per_sample").and_then(text) {
            Some(time) => format!("{time} per sample"),
            None => "does not fit in memory".to_owned(),
        };
        let unsure = figures.fit.filter(|fit| fit.is_uncertain());
        let unsure = unsure.map_or_else(String::new, |fit| format!(" ({})", fit.words()));
        let memory = PointFigure::named("memory").and_then(text).unwrap_or_default();
        let plural = if figures.ipus == 1 { "" } else { "s" };
        format!(
            "{time}, fullest tile {memory}{unsure}, {} IPU{plural}",
            grouped(figures.ipus.into())
        )
    }

    /// The figures to minimise: time per sample, memory of the fullest tile, IPUs.
    fn costs(&self) -> Option<[f64; 3]> {
        let figures = self.figures()?;
        let memory = figures.fullest_tile_bytes.as_f64();
        Some([figures.seconds_per_sample()?, memory, figures.ipus.into()])
    }
}

/// Writes changes, outcome, all [`FIGURES`] and the problem, with null for unknown ones; also power
/// and price of the machine, and figures with error bands, if known.
impl Serialize for Point {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut json = Map::new();
        json.insert(CHANGES.to_owned(), json!(self.changes));
        json.insert(OUTCOME.to_owned(), json!(self.outcome_words().replace(' ', "_")));
        for figure in FIGURES {
            json.insert(figure.name.to_owned(), self.figure_json(figure));
        }
        let problem = Some(self.problem()).filter(|problem| !problem.is_empty());
        json.insert(PROBLEM.to_owned(), json!(problem));
        let machine = self.figures().map(|figures| (figures.watts, figures.price_per_hour));
        if let Some((Some(watts), _)) = machine {
            json.insert("watts".to_owned(), json!(watts));
        }
        if let Some((_, Some(price))) = machine {
            json.insert("price_per_hour".to_owned(), json!(price));
        }
        let expected = self.figures().map(expected).filter(|expected| !expected.is_empty());
        if let Some(expected) = expected {
            json.insert(EXPECTED.to_owned(), json!(expected));
        }
        if let Some(fit) = self.figures().and_then(|figures| figures.fit) {
            json.insert("fit".to_owned(), json!(fit));
        }
        json.serialize(serializer)
    }
}

/// The fields that a point is parsed from: all serialised ones except for figures that follow from
/// others.
#[derive(Deserialize)]
struct PointRecord {
    changes: SpecChanges,
    outcome: String,
    problem: Option<String>,
    cycles: Option<Cycles>,
    seconds: Option<f64>,
    samples: Option<u64>,
    memory: Option<Bytes>,
    ipus: Option<u32>,
    watts: Option<f64>,
    price_per_hour: Option<f64>,
    #[serde(default)]
    expected: ExpectedRecord,
    fit: Option<MemoryFit>,
}

/// The bands from which those of all figures follow.
#[derive(Default, Deserialize)]
struct ExpectedRecord {
    seconds: Option<Banded>,
    memory: Option<Banded>,
}

impl<'de> Deserialize<'de> for Point {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let record = PointRecord::deserialize(deserializer)?;
        let problem = record.problem.unwrap_or_default();
        let outcome = match record.outcome.as_str() {
            FITS | DOES_NOT_FIT => TrialOutcome::Figures(TrialFigures {
                cycles: record.cycles,
                seconds: record.seconds,
                samples: record.samples.unwrap_or(1),
                fullest_tile_bytes: record.memory.unwrap_or_default(),
                ipus: record.ipus.unwrap_or(1),
                watts: record.watts,
                price_per_hour: record.price_per_hour,
                expected_seconds: record.expected.seconds,
                expected_fullest_tile: record.expected.memory,
                own_errors: None,
                fit: record.fit,
            }),
            "refused" => TrialOutcome::Refused(problem),
            _ => TrialOutcome::Died(problem),
        };
        Ok(Self { changes: record.changes, outcome })
    }
}

/// Returns true for each point on the Pareto front: no other point that fits is better in time of a
/// sample, memory of the fullest tile or IPUs without being worse in another.
pub fn is_on_front<'a>(points: impl Iterator<Item = &'a Point>) -> Vec<bool> {
    let costs: Vec<Option<[f64; 3]>> = points.map(Point::costs).collect();
    let mut order: Vec<(usize, [f64; 3])> =
        costs.iter().enumerate().filter_map(|(at, costs)| Some((at, (*costs)?))).collect();
    // A point that is better than another comes before it.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures with unknown bands have no width: none of them counts as exact.
    #[test]
    fn figures_without_bands_have_no_width() {
        let unsure = json!({ "value": 0.7, "low": 0.6, "high": 0.9 });
        let text = json!({
            "changes": {}, "outcome": "fits", "problem": null, "cycles": 700, "seconds": 0.7,
            "samples": 7, "memory": 4096, "ipus": 1, "expected": { "seconds": unsure },
        });
        let point: Point = serde_json::from_value(text).expect("a point");
        let figures = *point.figures().expect("figures");
        let names: Vec<&str> = expected(&figures).into_keys().collect();
        assert_eq!(names, ["cycles", "samples_per_second", "seconds", "seconds_per_sample"]);
        let time = expected(&figures)["seconds_per_sample"];
        for (end, expected) in [(time.low(), 0.6), (time.value(), 0.7), (time.high(), 0.9)] {
            assert!((end - expected / 7.0).abs() < 1e-12, "{time:?}");
        }
        assert!(point.figures_text().starts_with("100 ms (-14 to +29 %) per sample"));
        let none = TrialFigures { expected_seconds: None, ..figures };
        assert!(expected(&none).is_empty());
        let point = Point { outcome: TrialOutcome::Figures(none), ..point };
        assert!(!point.figures_text().contains('%'), "{}", point.figures_text());
        let json = serde_json::to_value(&point).expect("JSON");
        assert!(json.get("expected").is_none(), "{json}");
    }

    #[test]
    fn points_round_trip_through_json() {
        let figures = TrialFigures {
            cycles: Some(Cycles(1_000_003)),
            seconds: Some(0.7),
            samples: 3,
            fullest_tile_bytes: Bytes(638_976),
            ipus: 5,
            watts: Some(190.0),
            price_per_hour: None,
            expected_seconds: None,
            expected_fullest_tile: None,
            own_errors: None,
            fit: Some(MemoryFit::FitsUncertain),
        };
        let unfit = TrialFigures { cycles: None, seconds: None, watts: None, ..figures };
        let outcomes = [
            TrialOutcome::Figures(figures),
            TrialOutcome::Figures(unfit),
            TrialOutcome::Refused("no such key".to_owned()),
            TrialOutcome::Died("killed".to_owned()),
        ];
        for outcome in outcomes {
            let changes = [("options.num_io_tiles".to_owned(), json!(33))].into();
            let point = Point { changes, outcome };
            let text = serde_json::to_string(&point).expect("JSON");
            assert_eq!(serde_json::from_str::<Point>(&text).expect(&text), point);
        }
    }
}
