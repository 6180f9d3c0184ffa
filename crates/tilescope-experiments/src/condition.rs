//! The option `--where CONDITION`: a condition on points.
//!
//! ```text
//! condition  = "fits" | name comparison value
//! name       = key of the spec, or a figure: samples_per_second, memory, ipus, …
//! comparison = "<" | "<=" | ">" | ">=" | "==" | "!="
//! value      = number [ unit ] | word
//! ```

use super::effective_keys::{read, value_type};
use super::point::{FIGURES, Point, PointFigure};
use crate::trial::TrialFigures;
use serde_json::Value;
use std::ops::Range;
use tilescope_analysis::comparison::LimitComparison;
use tilescope_analysis::marked_text::{WordReader, marked};
use tilescope_sim::specification::keys::SpecKeyType;
use tilescope_sim::specification::nearest;

/// The name of the condition that a point can run.
const FITS: &str = "fits";

/// The subject of a condition.
enum ConditionSubject {
    Fits,
    Figure(&'static PointFigure),
    Key(String),
}

/// A condition on points.
pub struct Condition {
    subject: ConditionSubject,
    comparison: LimitComparison,
    limit: Value,
}

/// A problem and the characters in question.
type Problem = (String, Range<usize>);

impl Condition {
    /// The condition that a point fits in memory.
    pub fn fits() -> Self {
        Self {
            subject: ConditionSubject::Fits,
            comparison: LimitComparison::Equal,
            limit: Value::Bool(true),
        }
    }

    /// Parses a condition on figures and on keys with these paths. Keys may be named by their last
    /// part if that is unique.
    ///
    /// # Errors
    /// A syntax error, with marks below it.
    pub fn parse(text: &str, paths: &[&str]) -> Result<Self, String> {
        ConditionReader { words: WordReader::new(text), paths }
            .condition()
            .map_err(|(problem, at)| marked(&problem, text, &at))
    }

    /// The result for keys alone; `None` for a condition on a figure. `value` returns the values of
    /// keys.
    pub fn of_keys<'a>(&self, value: impl Fn(&str) -> Option<&'a Value>) -> Option<bool> {
        let ConditionSubject::Key(path) = &self.subject else { return None };
        let Some(value) = value(path) else { return Some(false) };
        Some(match (value.as_f64(), self.limit.as_f64()) {
            (Some(value), Some(limit)) => self.comparison.holds(value, limit),
            _ => (*value == self.limit) == (self.comparison == LimitComparison::Equal),
        })
    }

    /// The result for the figures of a point; `None` for a condition on a key, and for points
    /// without figures.
    pub fn of_figures(&self, point: &Point) -> Option<bool> {
        let figures = point.figures()?;
        match &self.subject {
            ConditionSubject::Key(_) => None,
            ConditionSubject::Fits => Some(point.fits()),
            ConditionSubject::Figure(figure) => {
                let limit = self.limit.as_f64()?;
                // A point that cannot run has no time to compare.
                let value = (figure.of)(figures);
                Some(value.is_some_and(|value| self.comparison.holds(value, limit)))
            }
        }
    }

    /// True if a point meets the condition, or has no figures to compare.
    #[must_use]
    pub fn admits(&self, point: &Point) -> bool {
        let of_keys = self.of_keys(|path| point.changes.get(path));
        of_keys.or(self.of_figures(point)) != Some(false)
    }

    /// The distance of figures from the condition: 0 if they meet it, otherwise a share of its
    /// limit.
    pub fn distance(&self, figures: &TrialFigures) -> f64 {
        let ConditionSubject::Figure(figure) = &self.subject else { return 0.0 };
        match ((figure.of)(figures), self.limit.as_f64()) {
            (Some(value), Some(limit)) if self.comparison.holds(value, limit) => 0.0,
            (Some(value), Some(limit)) => {
                let distance = (value - limit).abs() / limit.abs().max(f64::MIN_POSITIVE);
                distance.max(f64::EPSILON)
            }
            _ => f64::MAX,
        }
    }
}

struct ConditionReader<'a> {
    words: WordReader,
    paths: &'a [&'a str],
}

impl ConditionReader<'_> {
    fn condition(mut self) -> Result<Condition, Problem> {
        let (name, place) =
            self.words.word(|letter| letter.is_alphanumeric() || "._".contains(letter));
        let subject = self.subject(&name).map_err(|problem| (problem, place))?;
        let (sign, place) = self.words.word(|letter| "<>=!".contains(letter));
        if matches!(subject, ConditionSubject::Fits) {
            self.end(place, &sign, "unexpected text after fits")?;
            return Ok(Condition::fits());
        }
        let known = LimitComparison::of_sign(&sign);
        let Some(comparison) = known else {
            let problem = match sign.as_str() {
                "=" => format!("compare {name} with =="),
                _ => format!("expected <, <=, >, >=, == or != after {name}"),
            };
            return Err((problem, place));
        };
        let limit = match &subject {
            ConditionSubject::Figure(figure) => self.number_of(figure)?,
            ConditionSubject::Key(path) => self.value_of(path, comparison)?,
            ConditionSubject::Fits => Value::Null,
        };
        let (rest, place) = self.words.word(|letter| !letter.is_whitespace());
        self.end(
            place,
            &rest,
            "unexpected text after the value; repeat --where for another condition",
        )?;
        Ok(Condition { subject, comparison, limit })
    }

    fn subject(&self, name: &str) -> Result<ConditionSubject, String> {
        if name == FITS {
            return Ok(ConditionSubject::Fits);
        }
        let is_named = |figure: &&PointFigure| figure.name == name || figure.also == name;
        if let Some(figure) = FIGURES.iter().filter(|_| !name.is_empty()).find(is_named) {
            return Ok(ConditionSubject::Figure(figure));
        }
        let last = |path: &str| path.rsplit('.').next() == Some(name);
        let is_meant = |path: &&&str| **path == name;
        let mut ends: Vec<&&str> = self.paths.iter().filter(is_meant).collect();
        if ends.is_empty() {
            ends = self.paths.iter().filter(|path| last(path)).collect();
        }
        if let [path] = ends.as_slice() {
            return Ok(ConditionSubject::Key((**path).to_owned()));
        }
        let figures = FIGURES.iter().map(|figure| figure.name).chain([FITS]);
        let known: Vec<&str> = figures.clone().chain(self.paths.iter().copied()).collect();
        let figures: Vec<&str> = figures.collect();
        Err(match (name, ends.as_slice(), nearest(name, &known)) {
            ("", ..) => format!("expected a key that varies or a figure ({})", figures.join(", ")),
            (_, [_, _, ..], _) => format!("several keys end in {name}; use a full path"),
            (_, _, Some(near)) => format!("{name:?} is not a varied key; did you mean {near}?"),
            _ => format!("{name:?} is not a varied key; figures are {}", figures.join(", ")),
        })
    }

    fn number_of(&mut self, figure: &PointFigure) -> Result<Value, Problem> {
        let (digits, place) =
            self.words.word(|letter| letter.is_ascii_digit() || "._-".contains(letter));
        let number: Option<f64> = digits.replace('_', "").parse().ok();
        let Some(number) = number.filter(|number: &f64| number.is_finite()) else {
            let kind = figure.quantity.words();
            return Err((format!("expected a number: {} is {kind}", figure.name), place));
        };
        let (unit, place) = self.words.word(|letter| !letter.is_whitespace());
        let known = figure.quantity.units().iter().find(|(name, _)| *name == unit);
        match known {
            Some((_, scale)) => Ok(Value::from(number * scale)),
            None if unit.is_empty() => Ok(Value::from(number)),
            None => {
                let kind = figure.quantity.words();
                Err((format!("unknown unit {unit:?}: {} is {kind}", figure.name), place))
            }
        }
    }

    fn value_of(&mut self, path: &str, comparison: LimitComparison) -> Result<Value, Problem> {
        let (written, place) = self.words.word(|letter| !letter.is_whitespace());
        let kind = value_type(path);
        if written.is_empty() {
            return Err((format!("expected a value of {path}: {}", kind.describe()), place));
        }
        let is_number = matches!(
            kind,
            SpecKeyType::Integer(..)
                | SpecKeyType::PowerOfTwo(_)
                | SpecKeyType::RealAbove(..)
                | SpecKeyType::RealsAboveOr(..)
                | SpecKeyType::RealFrom(..)
        );
        // A limit may be a number that is not a value of the key: below 33, above 0.
        let number: Option<f64> = written.parse().ok().filter(|number: &f64| number.is_finite());
        let ordered = comparison.is_of_order();
        match number {
            Some(number) if is_number => Ok(Value::from(number)),
            _ if is_number && ordered => {
                let problem = format!("expected a number: {path} is {}", kind.describe());
                Err((problem, place))
            }
            _ if ordered => {
                Err((format!("{path} is {}: compare it with == or !=", kind.describe()), place))
            }
            _ => read(path, &written).map_err(|problem| (format!("{path}: {problem}"), place)),
        }
    }

    fn end(&self, place: Range<usize>, rest: &str, problem: &str) -> Result<(), Problem> {
        if rest.is_empty() && self.words.is_at_end() {
            return Ok(());
        }
        Err((problem.to_owned(), place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TrialOutcome;
    use serde_json::json;
    use tilescope_report::units::{Bytes, Cycles};

    const PATHS: [&str; 4] = [
        "options.num_io_tiles",
        "options.overlap_io",
        "options.available_memory_proportion",
        "model.training",
    ];

    fn point() -> Point {
        let figures = TrialFigures {
            cycles: Some(Cycles(1000)),
            seconds: Some(0.5),
            samples: 100,
            fullest_tile_bytes: Bytes(600 * 1024),
            ipus: 4,
            watts: None,
            price_per_hour: None,
            expected_seconds: None,
            expected_fullest_tile: None,
            own_errors: None,
            fit: None,
        };
        let changes = json!({ "options.num_io_tiles": 32, "options.overlap_io": "loops" });
        Point {
            changes: serde_json::from_value(changes).expect("changes"),
            outcome: TrialOutcome::Figures(figures),
        }
    }

    #[test]
    fn conditions_hold_or_not() {
        let point = point();
        let cases = [
            ("fits", true),
            ("options.num_io_tiles < 64", true),
            ("num_io_tiles<32", false),
            ("num_io_tiles >= 31.5", true),
            ("overlap_io == loops", true),
            ("options.overlap_io != \"loops\"", false),
            ("memory <= 600 KiB", true),
            ("max_tile < 614400 B", false),
            ("samples_per_second > 199", true),
            ("throughput > 0.2 k", false),
            ("seconds_per_sample <= 5 ms", true),
            ("ipus == 4", true),
            ("cycles != 1000", false),
        ];
        for (text, expected) in cases {
            let condition =
                Condition::parse(text, &PATHS).unwrap_or_else(|e| panic!("{text}: {e}"));
            let of_keys = condition.of_keys(|path| point.changes.get(path));
            let holds = of_keys.or(condition.of_figures(&point));
            assert_eq!(holds, Some(expected), "{text}");
        }
    }

    #[test]
    fn nonsense_is_marked() {
        let cases = [
            ("", 0..0, "expected a key that varies or a figure"),
            ("num_io_tile < 64", 0..11, "did you mean options.num_io_tiles?"),
            ("memery < 64", 0..6, "did you mean memory?"),
            ("xyzzy < 64", 0..5, "figures are seconds_per_sample"),
            ("num_io_tiles = 64", 13..14, "compare num_io_tiles with =="),
            ("num_io_tiles 64", 13..13, "expected <, <="),
            ("num_io_tiles < many", 15..19, "expected a number"),
            ("num_io_tiles <", 14..14, "expected a value of options.num_io_tiles"),
            ("overlap_io < loops", 13..18, "compare it with == or !="),
            ("overlap_io == loop", 14..18, "did you mean loops?"),
            ("memory < 3 ms", 11..13, "unknown unit \"ms\": memory is in bytes"),
            ("memory < x", 9..9, "expected a number"),
            ("fits == true", 5..7, "unexpected text after fits"),
            ("fits and more", 5..5, "unexpected text after fits"),
            ("ipus < 4 && fits", 9..11, "unknown unit"),
            ("num_io_tiles < 4 and fits", 17..20, "repeat --where"),
        ];
        for (text, at, words) in cases {
            let reader = ConditionReader { words: WordReader::new(text), paths: &PATHS };
            let (problem, marks) = reader.condition().err().expect(text);
            assert!(problem.contains(words), "{text}: {problem}");
            assert_eq!(marks, at, "{text}: {problem}");
        }
    }
}
