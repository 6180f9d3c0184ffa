//! The option `--vary KEY=VALUES`: a key of a spec, and the values to try.

use crate::effective_keys::{EffectiveKeys, read, value_type};
use serde_json::Value;
use std::ops::Range;
use tilescope_analysis::marked_text::marked;
use tilescope_sim::specification::keys::SpecKeyType;

/// The largest number of values of a key.
const MOST_VALUES: usize = 100_000;

/// A key and its values in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct VariedKey {
    /// Dotted path of the key.
    pub path: String,
    /// Its values in their written order.
    pub values: Vec<Value>,
}

/// A part of the user's text with its start.
#[derive(Clone)]
struct WrittenPart {
    letters: String,
    start: usize,
}

impl WrittenPart {
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.letters.chars().count()
    }

    /// The part without surrounding spaces.
    fn trimmed(&self) -> Self {
        let before = self.letters.chars().take_while(|letter| letter.is_whitespace()).count();
        Self { letters: self.letters.trim().to_owned(), start: self.start + before }
    }

    /// The parts before and after a sign.
    fn split(&self, sign: &str) -> Option<(Self, Self)> {
        let (before, behind) = self.letters.split_once(sign)?;
        let start = self.start + before.chars().count() + sign.len();
        let before = Self { letters: before.to_owned(), start: self.start };
        Some((before, Self { letters: behind.to_owned(), start }))
    }
}

/// A problem and the characters in question.
type Problem = (String, Range<usize>);

/// The step of a range.
#[derive(Clone, Copy)]
enum RangeStep {
    Plus(f64),
    Times(f64),
}

impl VariedKey {
    /// Parses `options.num_io_tiles=32,64,128`, `options.gradient_accumulation=8..64:x2` (doubled
    /// each time), `model.batch_size=8..64:8` (increased by 8 each time) or
    /// `options.overlap_io=loops,none`.
    ///
    /// # Errors
    /// A syntax error, with marks below it.
    pub fn parse(text: &str, keys: &EffectiveKeys) -> Result<Self, String> {
        Self::read(text, keys).map_err(|(problem, at)| marked(&problem, text, &at))
    }

    fn read(text: &str, keys: &EffectiveKeys) -> Result<Self, Problem> {
        let whole = WrittenPart { letters: text.to_owned(), start: 0 };
        let Some((path, values)) = whole.split("=") else {
            let problem = "expected KEY=VALUES, for example options.num_io_tiles=32,64,128";
            return Err((problem.to_owned(), whole.range()));
        };
        let path = path.trimmed();
        if !keys.has(&path.letters) {
            return Err((keys.unknown(&path.letters), path.range()));
        }
        let mut found: Vec<Value> = Vec::new();
        for part in parts(&values) {
            for value in part_values(&path.letters, &part)? {
                if found.contains(&value) {
                    return Err((format!("{value} is listed twice"), part.range()));
                }
                found.push(value);
            }
        }
        Ok(Self { path: path.letters, values: found })
    }
}

/// The parts between commas outside of lists and quotes.
fn parts(values: &WrittenPart) -> Vec<WrittenPart> {
    let mut parts = Vec::new();
    let mut depth = 0_usize;
    let mut quote = None;
    let mut part = WrittenPart { letters: String::new(), start: values.start };
    for (at, letter) in values.letters.chars().enumerate() {
        match letter {
            _ if quote == Some(letter) => quote = None,
            _ if quote.is_some() => {}
            '"' | '\'' => quote = Some(letter),
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                let next = WrittenPart { letters: String::new(), start: values.start + at + 1 };
                parts.push(std::mem::replace(&mut part, next).trimmed());
                continue;
            }
            _ => {}
        }
        part.letters.push(letter);
    }
    parts.push(part.trimmed());
    parts
}

/// The values of a part: those of a range, or a single one.
fn part_values(path: &str, part: &WrittenPart) -> Result<Vec<Value>, Problem> {
    if part.letters.is_empty() {
        let kind = value_type(path).describe();
        return Err((format!("expected a value of {path}: {kind}"), part.range()));
    }
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '-';
    match part.split("..") {
        Some((from, rest)) if from.letters.starts_with(is_number) => range(path, &from, &rest),
        _ => Ok(vec![one(path, &part.letters, part)?]),
    }
}

fn one(path: &str, written: &str, part: &WrittenPart) -> Result<Value, Problem> {
    read(path, written).map_err(|problem| (format!("{path}: {problem}"), part.range()))
}

fn range(path: &str, from: &WrittenPart, rest: &WrittenPart) -> Result<Vec<Value>, Problem> {
    let whole = match value_type(path) {
        SpecKeyType::Integer(..) | SpecKeyType::PowerOfTwo(_) => true,
        SpecKeyType::RealAbove(..) | SpecKeyType::RealsAboveOr(..) | SpecKeyType::RealFrom(..) => {
            false
        }
        other => {
            let problem = format!("a range needs numbers, but {path} is {}", other.describe());
            return Err((problem, from.start..rest.range().end));
        }
    };
    let (to, step) = match rest.split(":") {
        Some((to, step)) => (to, Some(step)),
        None => (rest.clone(), None),
    };
    let first = number(from, whole)?;
    let last = number(&to, whole)?;
    let step = step.map_or(Ok(RangeStep::Plus(1.0)), |step| range_step(&step, whole))?;
    if first > last {
        let problem = format!("a range must ascend, but {} is above {}", from.letters, to.letters);
        return Err((problem, from.start..to.range().end));
    }
    if matches!(step, RangeStep::Times(_)) && first <= 0.0 {
        return Err(("a multiplying range must begin above 0".to_owned(), from.range()));
    }
    let mut values = Vec::new();
    let mut at = 0;
    loop {
        // Computed without accumulated rounding errors of tenths.
        let value = match step {
            RangeStep::Plus(by) => first + f64::from(at) * by,
            RangeStep::Times(by) => first * by.powi(at),
        };
        if value > last * (1.0 + 1e-12) + f64::MIN_POSITIVE {
            return Ok(values);
        }
        if values.len() == MOST_VALUES {
            let problem = format!("a key may have at most {MOST_VALUES} values");
            return Err((problem, from.start..rest.range().end));
        }
        let written = if whole { format!("{value:.0}") } else { tenths(value) };
        let value = one(path, &written, from)?;
        if values.last() != Some(&value) {
            values.push(value);
        }
        at += 1;
    }
}

/// A number without the rounding errors of tenths in its last digits.
fn tenths(value: f64) -> String {
    let text = format!("{value:.12}");
    let text = text.trim_end_matches('0');
    if text.ends_with('.') { format!("{text}0") } else { text.to_owned() }
}

fn number(part: &WrittenPart, whole: bool) -> Result<f64, Problem> {
    let part = part.trimmed();
    let kind = if whole { "a whole number" } else { "a number" };
    let number = if whole {
        part.letters.parse::<i64>().ok().map(|number| number as f64)
    } else {
        part.letters.parse::<f64>().ok().filter(|number| number.is_finite())
    };
    number.ok_or_else(|| (format!("expected {kind}, found {:?}", part.letters), part.range()))
}

fn range_step(part: &WrittenPart, whole: bool) -> Result<RangeStep, Problem> {
    let part = part.trimmed();
    let (step, above) = match part.letters.strip_prefix('x') {
        Some(factor) => (factor.parse().ok().map(RangeStep::Times), 1.0),
        None if whole => {
            (part.letters.parse::<u32>().ok().map(|by| RangeStep::Plus(by.into())), 0.0)
        }
        None => (part.letters.parse().ok().map(RangeStep::Plus), 0.0),
    };
    let goes_on = |step: &RangeStep| match step {
        RangeStep::Plus(by) | RangeStep::Times(by) => by.is_finite() && *by > above,
    };
    step.filter(goes_on).ok_or_else(|| {
        let problem = "expected a step: 8 to add 8, x2 to double";
        (problem.to_owned(), part.range())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tilescope_sim::specification::{Spec, SpecSource};

    fn keys() -> EffectiveKeys {
        let source = SpecSource::find("mnist_pipeline", &[]).expect("a bundled spec");
        EffectiveKeys::of(&Spec::build(&source).expect("sane"))
    }

    #[test]
    fn lists_ranges_and_words_are_values() {
        let cases = [
            ("options.num_io_tiles=32,64, 128", json!([32, 64, 128])),
            ("options.gradient_accumulation=8..64:x2", json!([8, 16, 32, 64])),
            ("options.gradient_accumulation=8..60:x2,61", json!([8, 16, 32, 61])),
            ("options.gradient_accumulation=8..32:8", json!([8, 16, 24, 32])),
            ("options.gradient_accumulation=3..5", json!([3, 4, 5])),
            ("options.gradient_accumulation=2..9:x1.5", json!([2, 3, 4, 7])),
            ("options.available_memory_proportion=0.1..0.4:0.1", json!([0.1, 0.2, 0.3, 0.4])),
            ("options.overlap_io=loops,none", json!(["loops", "none"])),
            ("model.training=true,false", json!([true, false])),
            (
                "options.stages=[[\"B1\", \"B2\"], [\"B3\", \"B4\"]],[]",
                json!([[["B1", "B2"], ["B3", "B4"]], []]),
            ),
        ];
        for (text, values) in cases {
            let found = VariedKey::parse(text, &keys()).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(json!(found.values), values, "{text}");
        }
    }

    #[test]
    fn nonsense_is_marked() {
        let cases = [
            ("options.num_io_tiles", 0..20, "expected KEY=VALUES"),
            ("options.num_io_tile=32", 0..19, "did you mean options.num_io_tiles?"),
            ("options.num_io_tiles=", 21..21, "expected a value of options.num_io_tiles: a whole"),
            ("options.num_io_tiles=32,,64", 24..24, "expected a value"),
            ("options.num_io_tiles=32,many", 24..28, "from 0 to 1470, found the string \"many\""),
            ("options.num_io_tiles=32,64,32", 27..29, "32 is listed twice"),
            ("options.num_io_tiles=64..32", 21..27, "a range must ascend"),
            ("options.num_io_tiles=0..64:x2", 21..22, "must begin above 0"),
            ("options.num_io_tiles=32..64:x1", 28..30, "expected a step"),
            ("options.num_io_tiles=32..64:0", 28..29, "expected a step"),
            ("options.num_io_tiles=32..many", 25..29, "expected a whole number, found \"many\""),
            ("options.overlap_io=loop", 19..23, "did you mean loops?"),
            ("options.overlap_io=1..2", 19..23, "a range needs numbers"),
            ("options.gradient_accumulation=1..9999999", 30..40, "at most 100000 values"),
        ];
        for (text, at, words) in cases {
            let (problem, marks) = VariedKey::read(text, &keys()).expect_err(text);
            assert!(problem.contains(words), "{text}: {problem}");
            assert_eq!(marks, at, "{text}: {problem}");
        }
    }
}
