//! The parameters of one row.

use crate::poplin::params::MAX_DIMS;
use crate::shape::DType;
use std::collections::BTreeMap;
use std::fmt::Display;

/// The reason why a row has no simulated cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowProblem {
    /// The line is invalid.
    Malformed(String),
    /// The line is valid, but the simulator does not support it.
    Unsupported(String),
}

impl RowProblem {
    /// Makes the problem of an operation that cannot be planned or laid out.
    pub(crate) fn refused(reason: impl Display) -> Self {
        Self::Unsupported(reason.to_string())
    }
}

/// The error of words that are not parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigTextError {
    #[error("expected key=value in config, found {0:?}")]
    NotAPair(String),
    #[error("{0} is set twice in config")]
    Repeated(String),
}

/// The largest number of a parameter. Products of a few such numbers stay far below overflow.
const MAX_PARAMETER: u64 = 1 << 32;

/// The words of the form `key=value`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowConfig {
    words: BTreeMap<String, String>,
}

impl RowConfig {
    /// Parses `key=value key=value`.
    ///
    /// # Errors
    /// Returns an error for a word that is not of that form, or for a key that occurs twice.
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigTextError> {
        let mut words = BTreeMap::new();
        for word in text.split_whitespace() {
            let (key, value) = word
                .split_once('=')
                .filter(|(key, value)| !key.is_empty() && !value.is_empty())
                .ok_or_else(|| ConfigTextError::NotAPair(word.to_owned()))?;
            if words.insert(key.to_string(), value.to_string()).is_some() {
                return Err(ConfigTextError::Repeated(key.to_owned()));
            }
        }
        Ok(Self { words })
    }

    /// The keys that are set.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.words.keys().map(String::as_str)
    }

    /// The word of a key, if it is set.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.words.get(key).map(String::as_str)
    }

    /// Several integers. Empty if the key is not set.
    pub(crate) fn numbers(&self, key: &str) -> Result<Vec<u64>, RowProblem> {
        let Some(value) = self.text(key) else { return Ok(Vec::new()) };
        let mut numbers = Vec::new();
        for word in value.trim_matches(['{', '}']).split(',').map(str::trim) {
            match word.parse() {
                Ok(number) if number <= MAX_PARAMETER => numbers.push(number),
                _ => {
                    let problem = format!("{key}: expected a whole number, found {word:?}");
                    return Err(RowProblem::Malformed(problem));
                }
            }
        }
        Ok(numbers)
    }

    pub(crate) fn number(&self, key: &str, default: u64) -> Result<u64, RowProblem> {
        match self.numbers(key)?[..] {
            [] => Ok(default),
            [number] => Ok(number),
            _ => Err(RowProblem::Malformed(format!("{key}: expected one number"))),
        }
    }

    /// One integer without a default.
    pub(crate) fn required(&self, key: &str) -> Result<u64, RowProblem> {
        self.require_key(key)?;
        self.number(key, 0)
    }

    /// The sizes of one to three dimensions.
    pub(crate) fn field(&self, key: &str) -> Result<Vec<u64>, RowProblem> {
        self.require_key(key)?;
        let sizes = self.numbers(key)?;
        if sizes.len() > MAX_DIMS {
            return Err(RowProblem::Unsupported(format!(
                "{key}: expected at most three dimensions"
            )));
        }
        Ok(sizes)
    }

    /// The numbers of `count` dimensions. A single number applies to all.
    pub(crate) fn per_dimension(
        &self,
        key: &str,
        default: u64,
        count: usize,
    ) -> Result<Vec<u64>, RowProblem> {
        match &self.numbers(key)?[..] {
            [] => Ok(vec![default; count]),
            [all] => Ok(vec![*all; count]),
            each if each.len() == count => Ok(each.to_vec()),
            _ => Err(RowProblem::Malformed(format!("{key}: expected 1 or {count} numbers"))),
        }
    }

    /// The numbers at both ends of `count` dimensions. `key` sets both ends, `key-lower` and
    /// `key-upper` one end each.
    pub(crate) fn lower_and_upper(
        &self,
        key: &str,
        count: usize,
    ) -> Result<[Vec<u64>; 2], RowProblem> {
        let both = self.per_dimension(key, 0, count)?;
        let mut ends = [both.clone(), both];
        for (end, name) in ends.iter_mut().zip(["lower", "upper"]) {
            let key = format!("{key}-{name}");
            if self.words.contains_key(&key) {
                *end = self.per_dimension(&key, 0, count)?;
            }
        }
        Ok(ends)
    }

    /// A number that may have a fraction.
    pub(crate) fn real(&self, key: &str, default: f64) -> Result<f64, RowProblem> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| {
            RowProblem::Malformed(format!("{key}: expected a number, found {text:?}"))
        })
    }

    /// Rejects a row without `key`.
    pub(crate) fn require_key(&self, key: &str) -> Result<(), RowProblem> {
        if self.words.contains_key(key) {
            Ok(())
        } else {
            Err(RowProblem::Malformed(format!("config has no {key}")))
        }
    }

    pub(crate) fn dtype(&self, key: &str, default: DType) -> Result<DType, RowProblem> {
        let Some(text) = self.text(key) else { return Ok(default) };
        floating_type(text).ok_or_else(|| {
            RowProblem::Malformed(format!("{key}: expected quarter, half or float, found {text:?}"))
        })
    }

    pub(crate) fn flag(&self, key: &str, default: bool) -> Result<bool, RowProblem> {
        match self.text(key) {
            None => Ok(default),
            Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(other) => Err(RowProblem::Malformed(format!(
                "{key}: expected true or false, found {other:?}"
            ))),
        }
    }
}

/// The type with this name in Poplar.
pub(super) fn floating_type(name: &str) -> Option<DType> {
    [DType::Quarter, DType::Half, DType::Float]
        .into_iter()
        .find(|dtype| dtype.poplar_name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parsed() {
        let config = RowConfig::parse("field=13,7 kernel=3 type=float bias=0").expect("sane");
        assert_eq!(config.field("field"), Ok(vec![13, 7]));
        assert_eq!(config.per_dimension("kernel", 1, 2), Ok(vec![3, 3]));
        assert_eq!(config.per_dimension("stride", 1, 3), Ok(vec![1, 1, 1]));
        assert!(config.per_dimension("field", 1, 3).is_err());
        assert_eq!(config.dtype("type", DType::Half), Ok(DType::Float));
        assert_eq!(config.flag("bias", true), Ok(false));
    }

    #[test]
    fn an_end_overrides_both() {
        let config = RowConfig::parse("padding=2 padding-upper=0,1").expect("sane");
        assert_eq!(config.lower_and_upper("padding", 2), Ok([vec![2, 2], vec![0, 1]]));
    }

    #[test]
    fn invalid_words_are_rejected() {
        for text in ["field", "field=", "=3", "a=1 a=2"] {
            assert!(RowConfig::parse(text).is_err(), "{text}");
        }
        let config = RowConfig::parse("m=x k=-1 n=99999999999 type=int").expect("words");
        for key in ["m", "k", "n"] {
            assert!(matches!(config.number(key, 1), Err(RowProblem::Malformed(_))), "{key}");
        }
        assert!(config.dtype("type", DType::Half).is_err() && config.required("o").is_err());
    }
}
