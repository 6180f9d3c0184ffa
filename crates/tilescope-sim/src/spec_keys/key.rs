//! A key of a spec: form, default, meaning, and its names in other frameworks.

use super::value::SpecValue;
use std::borrow::Cow;

/// A key of a spec.
#[derive(Clone, Debug)]
pub struct SpecKey {
    /// The dotted path, such as `options.gradient_accumulation`.
    pub path: Cow<'static, str>,
    /// The values that the key accepts.
    pub value_type: SpecKeyType,
    /// Words of earlier versions that the key still accepts.
    pub(crate) renamed: &'static [Renamed],
    /// The value in effect if the user sets none, as TOML. Empty if there is none.
    pub default: Cow<'static, str>,
    /// The meaning in one sentence.
    pub about: Cow<'static, str>,
    /// Additional information.
    pub notes: KeyNotes,
}

impl SpecKey {
    /// Makes a key that belongs to one model.
    pub(crate) const fn of_model(
        path: &'static str,
        value_type: SpecKeyType,
        default: &'static str,
        about: &'static str,
        names: &'static [KnownName],
    ) -> Self {
        let names = Cow::Borrowed(names);
        Self {
            path: Cow::Borrowed(path),
            value_type,
            renamed: &[],
            default: Cow::Borrowed(default),
            about: Cow::Borrowed(about),
            notes: KeyNotes { names, shows_in: String::new(), control: None },
        }
    }

    /// Normalises a value as a user writes it to its TOML form: `loops` becomes `"loops"`.
    ///
    /// # Errors
    /// Returns a description of the expected values.
    pub fn read(&self, written: &str) -> Result<String, WrongSpecValueError> {
        let is_text = matches!(self.value_type, SpecKeyType::Text);
        let mut value = SpecValue::written(written, is_text);
        if let SpecValue::String(word) = &value
            && let Some(renamed) = self.renamed.iter().find(|renamed| renamed.old == word)
        {
            value = SpecValue::String(renamed.new.to_string());
        }
        Ok(self.value_type.accept(&value)?.to_string())
    }

    /// The names in other programs, in one line. Empty if no program has the key.
    pub fn known_as(&self) -> String {
        let names: Vec<&str> = self.notes.names.iter().map(|(_, name)| &**name).collect();
        names.join("; ")
    }

    /// True if other programs use this name, in any spelling: `enableSyntheticData`.
    fn is_called(&self, word: &str) -> bool {
        for (_, names) in self.notes.names.iter() {
            for name in names.split(|sign: char| !sign.is_alphanumeric() && sign != '_') {
                // Plain words of a sentence are not names.
                let is_name = name.chars().skip(1).any(|sign| sign == '_' || sign.is_uppercase());
                if is_name && letters(name).eq(letters(word)) {
                    return true;
                }
            }
        }
        false
    }
}

/// Returns the keys of a list that other programs call by the last part of a path:
/// `options.enableSyntheticData` finds `options.host.loader`.
pub fn keys_called<'a>(path: &str, keys: impl IntoIterator<Item = &'a SpecKey>) -> Vec<&'a str> {
    let word = last_part(path);
    keys.into_iter().filter(|key| key.is_called(word)).map(|key| &*key.path).collect()
}

/// The last part of a dotted path.
pub(crate) fn last_part(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The letters of a name without underscores, in lower case.
fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|sign| *sign != '_').flat_map(char::to_lowercase)
}

/// A word of a key that was renamed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renamed {
    /// The earlier word.
    pub old: &'static str,
    /// The current word.
    pub new: &'static str,
}

/// A framework that has its own name for an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// PopTorch.
    PopTorch,
    /// PopART, including its tools.
    PopArt,
    /// TensorFlow for the IPU.
    TensorFlow,
    /// Poplar and its libraries.
    Poplar,
    /// Programs that run on these frameworks.
    Applications,
}

impl Framework {
    /// The name of the framework.
    pub fn name(self) -> &'static str {
        match self {
            Self::PopTorch => "PopTorch",
            Self::PopArt => "PopART",
            Self::TensorFlow => "TensorFlow",
            Self::Poplar => "Poplar",
            Self::Applications => "Applications",
        }
    }
}

/// The name of a key in a framework.
pub type KnownName = (Framework, Cow<'static, str>);

/// The control that changes a key without typing.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyControl {
    /// A slider over a range of values.
    Slider {
        /// The label of the slider.
        label: String,
        /// The largest value of the slider, if the key accepts larger ones.
        reach: f64,
    },
    /// A check box for a truth value.
    CheckBox {
        /// The label of the check box.
        label: String,
    },
}

/// Information about a key besides its values and their meaning.
#[derive(Clone, Debug, Default)]
pub struct KeyNotes {
    /// The names of the key in other programs.
    pub names: Cow<'static, [KnownName]>,
    /// The parts of a report that show the effect of the key.
    pub shows_in: String,
    /// The control that changes the key without typing.
    pub control: Option<KeyControl>,
}

/// The items in the braces of a table entry.
impl KeyNotes {
    fn named(mut self, framework: Framework, name: &str) -> Self {
        self.names.to_mut().push((framework, Cow::Owned(name.to_string())));
        self
    }

    pub(crate) fn poptorch(self, name: &str) -> Self {
        self.named(Framework::PopTorch, name)
    }

    pub(crate) fn popart(self, name: &str) -> Self {
        self.named(Framework::PopArt, name)
    }

    pub(crate) fn tensorflow(self, name: &str) -> Self {
        self.named(Framework::TensorFlow, name)
    }

    pub(crate) fn poplar(self, name: &str) -> Self {
        self.named(Framework::Poplar, name)
    }

    pub(crate) fn applications(self, name: &str) -> Self {
        self.named(Framework::Applications, name)
    }

    pub(crate) fn shows_in(self, views: &str) -> Self {
        Self { shows_in: views.to_string(), ..self }
    }

    pub(crate) fn slider(self, (label, reach): (&str, f64)) -> Self {
        Self { control: Some(KeyControl::Slider { label: label.to_string(), reach }), ..self }
    }

    pub(crate) fn check_box(self, label: &str) -> Self {
        Self { control: Some(KeyControl::CheckBox { label: label.to_string() }), ..self }
    }

    /// Applies a change to all texts of the notes. Names that become empty are removed.
    pub(crate) fn map_texts(self, change: impl Fn(&str) -> String) -> Self {
        let names =
            self.names.iter().map(|(framework, name)| (*framework, Cow::Owned(change(name))));
        Self {
            names: names.filter(|(_, name): &KnownName| !name.is_empty()).collect(),
            shows_in: change(&self.shows_in),
            control: self.control.map(|control| match control {
                KeyControl::Slider { label, reach } => {
                    KeyControl::Slider { label: change(&label), reach }
                }
                KeyControl::CheckBox { label } => KeyControl::CheckBox { label: change(&label) },
            }),
        }
    }
}

/// A value that its key does not accept.
#[derive(Debug, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub struct WrongSpecValueError {
    /// The accepted values, as text.
    expected: String,
    /// The rejected value, as text.
    found: String,
}

/// The values that a key accepts.
#[derive(Clone, Copy, Debug)]
pub enum SpecKeyType {
    /// An integer in a closed range.
    Integer(i64, i64),
    /// A power of two up to a largest value.
    PowerOfTwo(i64),
    /// A number above the first and up to the second.
    RealAbove(f64, f64),
    /// A number as for [`Self::RealAbove`], a word, or a list of such numbers with one for each IPU
    /// of a replica.
    RealsAboveOr(f64, f64, &'static str),
    /// A number from the first to the second, inclusive.
    RealFrom(f64, f64),
    Boolean,
    /// One of several words.
    OneOf(&'static [&'static str]),
    /// The name of a model.
    ModelName,
    /// Any text: the path of a file, the name of a tensor.
    Text,
    /// A list of texts.
    Texts,
    /// Pipeline stages: `[["B1"], ["B2", "B3"]]`, `["B1", "B2"]`, or tables with `blocks` and `ipu`.
    Stages,
}

impl SpecKeyType {
    /// Checks a value and converts it to the canonical form that other code reads.
    ///
    /// # Errors
    /// Returns a description of the expected values.
    pub(crate) fn accept(&self, value: &SpecValue) -> Result<SpecValue, WrongSpecValueError> {
        let wrong = || WrongSpecValueError { expected: self.describe(), found: value.describe() };
        match (self, value) {
            (Self::Integer(min, max), SpecValue::Integer(number))
                if (min..=max).contains(&number) =>
            {
                Ok(value.clone())
            }
            (Self::PowerOfTwo(max), SpecValue::Integer(number))
                if *number >= 1 && number <= max && (*number as u64).is_power_of_two() =>
            {
                Ok(value.clone())
            }
            (Self::RealAbove(above, up_to), SpecValue::Integer(_) | SpecValue::Float(_)) => {
                let number = match value {
                    SpecValue::Integer(number) => *number as f64,
                    SpecValue::Float(number) => *number,
                    _ => return Err(wrong()),
                };
                if number > *above && number <= *up_to {
                    Ok(SpecValue::Float(number))
                } else {
                    Err(wrong())
                }
            }
            (Self::RealsAboveOr(_, _, word), SpecValue::String(found)) if found == word => {
                Ok(value.clone())
            }
            (Self::RealsAboveOr(above, up_to, _), SpecValue::Integer(_) | SpecValue::Float(_)) => {
                Self::RealAbove(*above, *up_to).accept(value).map_err(|_| wrong())
            }
            (Self::RealsAboveOr(above, up_to, _), SpecValue::Array(items)) if !items.is_empty() => {
                let each = Self::RealAbove(*above, *up_to);
                let items = items.iter().map(|item| each.accept(item));
                items.collect::<Result<_, _>>().map(SpecValue::Array)
            }
            (Self::RealFrom(from, up_to), SpecValue::Integer(_) | SpecValue::Float(_)) => {
                let number = match value {
                    SpecValue::Integer(number) => *number as f64,
                    SpecValue::Float(number) => *number,
                    _ => return Err(wrong()),
                };
                if number >= *from && number <= *up_to {
                    Ok(SpecValue::Float(number))
                } else {
                    Err(wrong())
                }
            }
            (Self::Boolean, SpecValue::Boolean(_)) => Ok(value.clone()),
            (Self::OneOf(words), SpecValue::String(word)) if words.contains(&word.as_str()) => {
                Ok(value.clone())
            }
            (Self::ModelName | Self::Text, SpecValue::String(_)) => Ok(value.clone()),
            (Self::Texts, SpecValue::String(_)) => Ok(SpecValue::Array(vec![value.clone()])),
            (Self::Texts, SpecValue::Array(items))
                if items.iter().all(|item| matches!(item, SpecValue::String(_))) =>
            {
                Ok(value.clone())
            }
            (Self::Stages, SpecValue::Array(_)) => Ok(value.clone()),
            _ => Err(wrong()),
        }
    }

    /// Describes the values: `a whole number from 1 to 64`.
    pub fn describe(&self) -> String {
        match self {
            Self::Integer(min, max) => format!("a whole number from {min} to {max}"),
            Self::PowerOfTwo(max) => format!("a power of two from 1 to {max}"),
            Self::RealAbove(above, up_to) => format!("a number above {above} and up to {up_to}"),
            Self::RealsAboveOr(above, up_to, word) => {
                let number = Self::RealAbove(*above, *up_to).describe();
                format!("{number}, a list of one for each IPU of a replica, or {word:?}")
            }
            Self::RealFrom(from, up_to) => format!("a number from {from} to {up_to}"),
            Self::Boolean => "true or false".to_string(),
            Self::OneOf(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                match quoted.split_last() {
                    Some((only, [])) => only.clone(),
                    Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
                    None => String::new(),
                }
            }
            Self::ModelName => "the name of a model".to_string(),
            Self::Text => "a string".to_string(),
            Self::Texts => "a list of strings".to_string(),
            Self::Stages => "a list of stages, such as [[\"B1\"], [\"B2\", \"B3\"]]".to_string(),
        }
    }
}

/// The largest count of any size key, which keeps products of sizes far from overflow.
pub(crate) const LARGEST_SIZE: i64 = 1 << 24;

/// A positive count.
pub(crate) const COUNT: SpecKeyType = SpecKeyType::Integer(1, LARGEST_SIZE);
