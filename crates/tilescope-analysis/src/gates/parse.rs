//! Parser of gates; every error has the characters in question.

use super::figures::{self, GateQuantity};
use super::{Gate, GateLimit};
use crate::comparison::LimitComparison;
use crate::marked_text::{WordReader, marked};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The longest gate that is read; no valid gate is that long.
const MAX_LENGTH: usize = 200;

/// A syntax error in a gate. It is printed with the gate below it and the position marked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct GateSyntaxError {
    /// The gate as the user wrote it.
    pub text: String,
    /// The characters in question, counted from 0.
    pub at: Range<usize>,
    /// The problem and the expected input.
    pub problem: String,
}

impl fmt::Display for GateSyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&marked(&self.problem, &self.text, &self.at))
    }
}

impl FromStr for Gate {
    type Err = GateSyntaxError;

    fn from_str(text: &str) -> Result<Self, GateSyntaxError> {
        if text.chars().nth(MAX_LENGTH).is_some() {
            let text: String = text.chars().take(MAX_LENGTH).collect();
            let problem = format!("a gate has at most {MAX_LENGTH} characters");
            return Err(GateSyntaxError { text, at: MAX_LENGTH - 1..MAX_LENGTH, problem });
        }
        GateReader { words: WordReader::new(text) }.gate()
    }
}

struct GateReader {
    words: WordReader,
}

impl GateReader {
    fn gate(mut self) -> Result<Gate, GateSyntaxError> {
        let (name, place) =
            self.words.word(|letter| letter.is_alphanumeric() || "._".contains(letter));
        if name.is_empty() {
            return self
                .error(place, "expected a figure, for example execution.total_cycles > +2%");
        }
        let Some(figure) = figures::named_figure(&name) else {
            let near = figures::nearest_figure(&name);
            return self.error(place, format!("unknown figure {name:?}; did you mean {near:?}?"));
        };
        let (sign, place) = self.words.word(|letter| "<>=!".contains(letter));
        let comparison = LimitComparison::of_sign(&sign);
        let Some(comparison) = comparison.filter(|known| *known != LimitComparison::NotEqual)
        else {
            return self.error(place, "expected >, >=, <, <= or == after the figure");
        };
        let limit = self.limit(figure.quantity())?;
        let (rest, place) = self.words.word(|letter| !letter.is_whitespace());
        if !rest.is_empty() {
            return self.error(place, "unexpected text after the limit");
        }
        let text = self.words.text();
        Ok(Gate { text: text.trim().to_owned(), figure, comparison, limit })
    }

    /// The number with its sign and unit.
    fn limit(&mut self, quantity: GateQuantity) -> Result<GateLimit, GateSyntaxError> {
        let (sign, sign_place) = self.words.word(|letter| "+-".contains(letter));
        let factor = match sign.as_str() {
            "" => None,
            "+" => Some(1.0),
            "-" => Some(-1.0),
            _ => return self.error(sign_place, "a change has one sign, + or -"),
        };
        let (mut digits, place) =
            self.words.word(|letter| letter.is_ascii_digit() || "._".contains(letter));
        digits.retain(|letter| letter != '_');
        let number: Option<f64> = digits.parse().ok().filter(|number: &f64| number.is_finite());
        let Some(number) = number else {
            return self.error(place, "expected a number, with a sign for a change: +2%");
        };
        let (unit, place) = self.words.word(|letter| !letter.is_whitespace());
        if let (Some(factor), "%") = (factor, unit.as_str()) {
            return Ok(GateLimit::RelativeChange(factor * number / 100.0));
        }
        let known = quantity.units().iter().find(|(name, _)| *name == unit);
        let scale = match known {
            Some((_, scale)) => *scale,
            None if unit.is_empty() => 1.0,
            None if unit == "%" => {
                let problem = "a percentage of a figure needs a sign, as a change: +2%";
                return self.error(place, problem);
            }
            None => {
                let words = quantity.words();
                return self.error(place, format!("unknown unit {unit:?}: the figure is {words}"));
            }
        };
        Ok(match factor {
            Some(factor) => GateLimit::Change(factor * number * scale),
            None => GateLimit::Value(number * scale),
        })
    }

    fn error<T>(&self, at: Range<usize>, problem: impl Into<String>) -> Result<T, GateSyntaxError> {
        let text = self.words.text();
        Err(GateSyntaxError { text, at, problem: problem.into() })
    }
}
