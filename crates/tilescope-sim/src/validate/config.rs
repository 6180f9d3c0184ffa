//! The parameters of one row.

use crate::graph::DType;
use crate::planner::params::MAX_DIMS;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Why a row has no simulated cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The line makes no sense.
    Broken(String),
    /// It makes sense, but the simulator does not do it.
    Refused(String),
}

impl Problem {
    /// An operation that cannot be planned or laid out.
    pub(crate) fn refused(reason: impl Display) -> Self {
        Self::Refused(reason.to_string())
    }
}

/// Largest number a parameter may have: products of a few stay far below overflow.
const LARGEST: u64 = 1 << 32;

/// Words of `key=value`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    words: BTreeMap<String, String>,
}

impl Config {
    /// Reads `key=value key=value`.
    ///
    /// # Errors
    /// The word that is not of that form, or a key that comes twice.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut words = BTreeMap::new();
        for word in text.split_whitespace() {
            let (key, value) = word
                .split_once('=')
                .filter(|(key, value)| !key.is_empty() && !value.is_empty())
                .ok_or_else(|| format!("key=value is expected in config, not {word:?}"))?;
            if words.insert(key.to_string(), value.to_string()).is_some() {
                return Err(format!("{key} comes twice in config"));
            }
        }
        Ok(Self { words })
    }

    /// Keys that are set.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.words.keys().map(String::as_str)
    }

    /// A word, if it is set.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.words.get(key).map(String::as_str)
    }

    /// Several whole numbers; none where the key is not set.
    pub(crate) fn numbers(&self, key: &str) -> Result<Vec<u64>, Problem> {
        let Some(value) = self.text(key) else { return Ok(Vec::new()) };
        let number = |word: &str| {
            word.parse().ok().filter(|number| *number <= LARGEST).ok_or_else(|| {
                Problem::Broken(format!("{key}: expected a whole number, found {word:?}"))
            })
        };
        value.trim_matches(['{', '}']).split(',').map(|word| number(word.trim())).collect()
    }

    pub(crate) fn number(&self, key: &str, default: u64) -> Result<u64, Problem> {
        match self.numbers(key)?[..] {
            [] => Ok(default),
            [number] => Ok(number),
            _ => Err(Problem::Broken(format!("{key}: one number is expected"))),
        }
    }

    /// One whole number that has no default.
    pub(crate) fn required(&self, key: &str) -> Result<u64, Problem> {
        self.present(key)?;
        self.number(key, 0)
    }

    /// Sizes of one to three dimensions.
    pub(crate) fn field(&self, key: &str) -> Result<Vec<u64>, Problem> {
        self.present(key)?;
        let sizes = self.numbers(key)?;
        if sizes.len() > MAX_DIMS {
            return Err(Problem::Refused(format!("{key}: no more than three dimensions exist")));
        }
        Ok(sizes)
    }

    /// Numbers of `count` dimensions; one stands for all.
    pub(crate) fn along(&self, key: &str, default: u64, count: usize) -> Result<Vec<u64>, Problem> {
        match &self.numbers(key)?[..] {
            [] => Ok(vec![default; count]),
            [all] => Ok(vec![*all; count]),
            each if each.len() == count => Ok(each.to_vec()),
            _ => Err(Problem::Broken(format!("{key}: one number or {count} are expected"))),
        }
    }

    /// Numbers at both ends of `count` dimensions: `key` says both, `key-lower` and `key-upper`
    /// one end each.
    pub(crate) fn ends(&self, key: &str, count: usize) -> Result<[Vec<u64>; 2], Problem> {
        let both = self.along(key, 0, count)?;
        let end = |name: &str| {
            let key = format!("{key}-{name}");
            if self.words.contains_key(&key) {
                self.along(&key, 0, count)
            } else {
                Ok(both.clone())
            }
        };
        Ok([end("lower")?, end("upper")?])
    }

    /// A number that may have a fraction.
    pub(crate) fn real(&self, key: &str, default: f64) -> Result<f64, Problem> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| Problem::Broken(format!("{key}: expected a number, found {text:?}")))
    }

    /// Refuses a row without `key`.
    pub(crate) fn present(&self, key: &str) -> Result<(), Problem> {
        if self.words.contains_key(key) {
            Ok(())
        } else {
            Err(Problem::Broken(format!("config lacks {key}")))
        }
    }

    pub(crate) fn dtype(&self, key: &str, default: DType) -> Result<DType, Problem> {
        match self.text(key) {
            None => Ok(default),
            Some("quarter") => Ok(DType::Quarter),
            Some("half") => Ok(DType::Half),
            Some("float") => Ok(DType::Float),
            Some(other) => Err(Problem::Broken(format!(
                "{key}: expected quarter, half or float, found {other:?}"
            ))),
        }
    }

    pub(crate) fn flag(&self, key: &str, default: bool) -> Result<bool, Problem> {
        match self.text(key) {
            None => Ok(default),
            Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(other) => {
                Err(Problem::Broken(format!("{key}: expected true or false, found {other:?}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let config = Config::parse("field=13,7 kernel=3 type=float bias=0").expect("sane");
        assert_eq!(config.field("field"), Ok(vec![13, 7]));
        assert_eq!(config.along("kernel", 1, 2), Ok(vec![3, 3]));
        assert_eq!(config.along("stride", 1, 3), Ok(vec![1, 1, 1]));
        assert!(config.along("field", 1, 3).is_err());
        assert_eq!(config.dtype("type", DType::Half), Ok(DType::Float));
        assert_eq!(config.flag("bias", true), Ok(false));
    }

    #[test]
    fn an_end_overrides_both() {
        let config = Config::parse("padding=2 padding-upper=0,1").expect("sane");
        assert_eq!(config.ends("padding", 2), Ok([vec![2, 2], vec![0, 1]]));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["field", "field=", "=3", "a=1 a=2"] {
            assert!(Config::parse(text).is_err(), "{text}");
        }
        let config = Config::parse("m=x k=-1 n=99999999999 type=int").expect("words");
        for key in ["m", "k", "n"] {
            assert!(matches!(config.number(key, 1), Err(Problem::Broken(_))), "{key}");
        }
        assert!(config.dtype("type", DType::Half).is_err() && config.required("o").is_err());
    }
}
