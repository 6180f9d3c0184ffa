//! Values of a spec.

use std::fmt;
use toml::Spanned;
use toml::de::DeValue;

/// The reason why a TOML value cannot be a value of a spec.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpecValueError {
    #[error("the number {0} is too large")]
    TooLarge(String),
    #[error("{0} is not a number")]
    NotANumber(String),
    #[error("dates are not allowed here")]
    Date,
}

/// A value of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SpecValue {
    Integer(i64),
    Float(f64),
    Boolean(bool),
    String(String),
    Array(Vec<SpecValue>),
    /// Named values in source order.
    Table(Vec<(String, SpecValue)>),
}

impl SpecValue {
    /// Parses a TOML value: `20`, `0.6`, `true`, `"pipelined"`, `["B1", "B2"]`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        DeValue::parse(text).ok().and_then(|value| Self::from_toml(value.get_ref()).ok())
    }

    /// Reads a value as a user writes it after a key. Text that is not TOML is a word. If the key
    /// expects text, every value is text, because an output may be named 19.
    pub(crate) fn written(text: &str, is_text: bool) -> Self {
        let parsed = Self::parse(text);
        let parsed = parsed.filter(|parsed| !is_text || matches!(parsed, Self::String(_)));
        parsed.unwrap_or_else(|| Self::String(text.to_string()))
    }

    /// Converts a parsed TOML value.
    ///
    /// # Errors
    /// Returns an error for numbers beyond 64 bits, and for dates.
    pub(crate) fn from_toml(value: &DeValue) -> Result<Self, SpecValueError> {
        Ok(match value {
            DeValue::String(text) => Self::String(text.to_string()),
            DeValue::Integer(number) => Self::Integer(
                i64::from_str_radix(&number.as_str().replace('_', ""), number.radix())
                    .map_err(|_| SpecValueError::TooLarge(number.as_str().to_owned()))?,
            ),
            DeValue::Float(number) => Self::Float(
                number
                    .as_str()
                    .replace('_', "")
                    .parse()
                    .map_err(|_| SpecValueError::NotANumber(number.as_str().to_owned()))?,
            ),
            DeValue::Boolean(flag) => Self::Boolean(*flag),
            DeValue::Datetime(_) => return Err(SpecValueError::Date),
            DeValue::Array(items) => Self::Array(
                items
                    .iter()
                    .map(|item| Self::from_toml(item.get_ref()))
                    .collect::<Result<_, _>>()?,
            ),
            DeValue::Table(table) => {
                let mut entries: Vec<(usize, String, SpecValue)> = Vec::new();
                for (key, item) in table.iter() {
                    let value = Self::from_toml(item.get_ref())?;
                    entries.push((Spanned::span(key).start, key.get_ref().to_string(), value));
                }
                entries.sort_by_key(|entry| entry.0);
                Self::Table(entries.into_iter().map(|(_, key, value)| (key, value)).collect())
            }
        })
    }

    /// Describes the value with its kind: `the string "big"`.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Integer(value) => format!("the number {value}"),
            Self::Float(value) => format!("the number {value}"),
            Self::Boolean(value) => value.to_string(),
            Self::String(value) => format!("the string {value:?}"),
            Self::Array(_) => "a list".to_string(),
            Self::Table(_) => "a table".to_string(),
        }
    }
}

impl fmt::Display for SpecValue {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::String(value) => write!(f, "{}", toml::Value::from(value.as_str())),
            Self::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Table(entries) => {
                f.write_str("{ ")?;
                for (i, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key} = {value}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(" }")
            }
        }
    }
}
