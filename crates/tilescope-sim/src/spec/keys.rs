//! Every key a spec may have: form, default, meaning, and the names other frameworks give it.

use super::option_keys::OPTION_KEYS;
use super::value::Value;
use crate::model::ModelDef;

/// A key of a spec.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Dotted path: `options.gradient_accumulation`.
    pub path: &'static str,
    /// What values it takes.
    pub form: Form,
    /// Value in effect where the user sets none, as TOML; empty where there is none.
    pub default: &'static str,
    /// What it means, one sentence.
    pub about: &'static str,
    /// What PopTorch, PopART or Poplar call it.
    pub also: &'static str,
}

/// The values a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A whole number in a closed range.
    Integer(i64, i64),
    /// A power of two up to a largest value.
    PowerOfTwo(i64),
    /// A number above the first and up to the second.
    Real(f64, f64),
    /// A number from the first up to the second, both included.
    AtLeast(f64, f64),
    Flag,
    /// One of several words.
    OneOf(&'static [&'static str]),
    /// The name of a model.
    ModelName,
    /// Pipeline stages: `[["B1"], ["B2", "B3"]]`, `["B1", "B2"]`, or tables with `blocks` and `ipu`.
    Stages,
}

impl Form {
    /// Checks a value and brings it into the one form the rest of the code reads.
    ///
    /// # Errors
    /// What was expected instead.
    pub(crate) fn accept(&self, value: &Value) -> Result<Value, String> {
        let wrong = || format!("expected {}, found {}", self.describe(), value.describe());
        match (self, value) {
            (Self::Integer(min, max), Value::Integer(number)) if (min..=max).contains(&number) => {
                Ok(value.clone())
            }
            (Self::PowerOfTwo(max), Value::Integer(number))
                if *number >= 1 && number <= max && (*number as u64).is_power_of_two() =>
            {
                Ok(value.clone())
            }
            (Self::Real(above, up_to), Value::Integer(_) | Value::Real(_)) => {
                let number = match value {
                    Value::Integer(number) => *number as f64,
                    Value::Real(number) => *number,
                    _ => return Err(wrong()),
                };
                if number > *above && number <= *up_to {
                    Ok(Value::Real(number))
                } else {
                    Err(wrong())
                }
            }
            (Self::AtLeast(from, up_to), Value::Integer(_) | Value::Real(_)) => {
                let number = match value {
                    Value::Integer(number) => *number as f64,
                    Value::Real(number) => *number,
                    _ => return Err(wrong()),
                };
                if number >= *from && number <= *up_to {
                    Ok(Value::Real(number))
                } else {
                    Err(wrong())
                }
            }
            (Self::Flag, Value::Flag(_)) => Ok(value.clone()),
            (Self::OneOf(words), Value::Text(word)) if words.contains(&word.as_str()) => {
                Ok(value.clone())
            }
            (Self::ModelName, Value::Text(_)) => Ok(value.clone()),
            (Self::Stages, Value::List(_)) => Ok(value.clone()),
            _ => Err(wrong()),
        }
    }

    /// The values in words: `a whole number from 1 to 64`.
    pub fn describe(&self) -> String {
        match self {
            Self::Integer(min, max) => format!("a whole number from {min} to {max}"),
            Self::PowerOfTwo(max) => format!("a power of two from 1 to {max}"),
            Self::Real(above, up_to) => format!("a number above {above} and up to {up_to}"),
            Self::AtLeast(from, up_to) => format!("a number from {from} to {up_to}"),
            Self::Flag => "true or false".to_string(),
            Self::OneOf(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                match quoted.split_last() {
                    Some((only, [])) => only.clone(),
                    Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
                    None => String::new(),
                }
            }
            Self::ModelName => "the name of a model".to_string(),
            Self::Stages => "a list of stages, such as [[\"B1\"], [\"B2\", \"B3\"]]".to_string(),
        }
    }
}

/// Largest count any size key takes: keeps products of sizes far from overflow.
pub(crate) const LARGEST_SIZE: i64 = 1 << 24;

/// The keys of every spec. A model adds its own sizes: [`ModelDef::sizes`].
pub const KEYS: &[Key] = &joined();

const KEY_COUNT: usize = MODEL_AND_TARGET.len() + OPTION_KEYS.len();

const fn joined() -> [Key; KEY_COUNT] {
    let mut keys = [MODEL_AND_TARGET[0]; KEY_COUNT];
    let mut at = 0;
    while at < KEY_COUNT {
        keys[at] = if at < MODEL_AND_TARGET.len() {
            MODEL_AND_TARGET[at]
        } else {
            OPTION_KEYS[at - MODEL_AND_TARGET.len()]
        };
        at += 1;
    }
    keys
}

/// The keys of `[model]` and `[target]`.
const MODEL_AND_TARGET: &[Key] = &[
    Key {
        path: "model.name",
        form: Form::ModelName,
        default: "",
        about: "One of the built-in models",
        also: "",
    },
    Key {
        path: "model.batch_size",
        form: Form::Integer(1, LARGEST_SIZE),
        default: "1",
        about: "Samples of one forward pass (the micro-batch)",
        also: "poptorch.DataLoader batch_size; micro-batch size",
    },
    Key {
        path: "model.packing_factor",
        form: Form::AtLeast(1.0, 1024.0),
        default: "1",
        about: "Sequences in a sample on average, where several share one: published rates count them",
        also: "packed BERT dataset",
    },
    Key {
        path: "model.training",
        form: Form::Flag,
        default: "true",
        about: "Whether gradients and a weight update follow the forward pass",
        also: "poptorch.trainingModel / inferenceModel",
    },
    Key {
        path: "model.precision",
        form: Form::OneOf(&["float32", "mixed", "float16"]),
        default: "\"float32\"",
        about: "Element type of weights and activations; mixed keeps weights in float32 and computes in float16",
        also: "model.half(); autocast; Trainer(precision=16)",
    },
    Key {
        path: "model.optimizer",
        form: Form::OneOf(&[
            "sgd",
            "sgd_momentum",
            "sgd_momentum_combined",
            "adam",
            "adamw",
            "lamb",
        ]),
        default: "\"sgd\"",
        about: "Optimiser of a training model; combined: momentum and accumulated gradient share a tensor",
        also: "poptorch.optim.SGD(use_combined_accum) / AdamW / LAMB",
    },
    Key {
        path: "model.loss_scaling",
        form: Form::Real(0.0, 16_777_216.0),
        default: "1",
        about: "Factor of the loss that keeps gradients in half precision above zero",
        also: "poptorch.optim loss_scaling",
    },
    Key {
        path: "target.name",
        form: Form::OneOf(&crate::targets::SYSTEM_NAMES),
        default: "\"mk2\"",
        about: "The system, or a chip that stands for as many as are needed",
        also: "IPUModel ipuVersion; Pod size",
    },
    Key {
        path: "target.type",
        form: Form::OneOf(&["ipu", "ipu_model"]),
        default: "\"ipu\"",
        about: "Hardware, or Poplar's IPU Model: no code is generated and the host answers at once",
        also: "poptorch.Options.useIpuModel",
    },
    Key {
        path: "target.ipus",
        form: Form::PowerOfTwo(64),
        default: "1",
        about: "IPUs of one replica",
        also: "IPUModel numIPUs",
    },
];

/// The keys that apply to a model: those of every spec, then its own.
pub(crate) fn for_model(model: &ModelDef) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().chain(model.sizes.iter())
}
