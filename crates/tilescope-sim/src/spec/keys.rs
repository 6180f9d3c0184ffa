//! Every key a spec may have: form, default, meaning, and the names other frameworks give it.

use super::option_keys::OPTION_KEYS;
use super::value::SpecValue;
use crate::model::ModelDef;

/// A key of a spec.
#[derive(Clone, Copy, Debug)]
pub struct SpecKey {
    /// Dotted path: `options.gradient_accumulation`.
    pub path: &'static str,
    /// What values it takes.
    pub value_type: SpecKeyType,
    /// Value in effect where the user sets none, as TOML; empty where there is none.
    pub default: &'static str,
    /// What it means, one sentence.
    pub about: &'static str,
    /// What PopTorch, PopART or Poplar call it.
    pub other_names: &'static str,
}

/// The values a key takes.
#[derive(Clone, Copy, Debug)]
pub enum SpecKeyType {
    /// A whole number in a closed range.
    Integer(i64, i64),
    /// A power of two up to a largest value.
    PowerOfTwo(i64),
    /// A number above the first and up to the second.
    RealAbove(f64, f64),
    /// A number from the first up to the second, both included.
    RealFrom(f64, f64),
    Boolean,
    /// One of several words.
    OneOf(&'static [&'static str]),
    /// The name of a model.
    ModelName,
    /// Pipeline stages: `[["B1"], ["B2", "B3"]]`, `["B1", "B2"]`, or tables with `blocks` and `ipu`.
    Stages,
}

impl SpecKeyType {
    /// Checks a value and brings it into the one form the rest of the code reads.
    ///
    /// # Errors
    /// What was expected instead.
    pub(crate) fn accept(&self, value: &SpecValue) -> Result<SpecValue, String> {
        let wrong = || format!("expected {}, found {}", self.describe(), value.describe());
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
            (Self::ModelName, SpecValue::String(_)) => Ok(value.clone()),
            (Self::Stages, SpecValue::Array(_)) => Ok(value.clone()),
            _ => Err(wrong()),
        }
    }

    /// The values in words: `a whole number from 1 to 64`.
    pub fn describe(&self) -> String {
        match self {
            Self::Integer(min, max) => format!("a whole number from {min} to {max}"),
            Self::PowerOfTwo(max) => format!("a power of two from 1 to {max}"),
            Self::RealAbove(above, up_to) => format!("a number above {above} and up to {up_to}"),
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
            Self::Stages => "a list of stages, such as [[\"B1\"], [\"B2\", \"B3\"]]".to_string(),
        }
    }
}

/// Largest count any size key takes: keeps products of sizes far from overflow.
pub(crate) const LARGEST_SIZE: i64 = 1 << 24;

/// The keys of every spec. A model adds its own sizes: [`ModelDef::sizes`].
pub const KEYS: &[SpecKey] = &joined();

const KEY_COUNT: usize = MODEL_AND_TARGET.len() + OPTION_KEYS.len();

const fn joined() -> [SpecKey; KEY_COUNT] {
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
const MODEL_AND_TARGET: &[SpecKey] = &[
    SpecKey {
        path: "model.name",
        value_type: SpecKeyType::ModelName,
        default: "",
        about: "One of the built-in models",
        other_names: "",
    },
    SpecKey {
        path: "model.batch_size",
        value_type: SpecKeyType::Integer(1, LARGEST_SIZE),
        default: "1",
        about: "Samples of one forward pass (the micro-batch)",
        other_names: "poptorch.DataLoader batch_size; micro-batch size",
    },
    SpecKey {
        path: "model.packing_factor",
        value_type: SpecKeyType::RealFrom(1.0, 1024.0),
        default: "1",
        about: "Sequences in a sample on average, where several share one: published rates count them",
        other_names: "packed BERT dataset",
    },
    SpecKey {
        path: "model.training",
        value_type: SpecKeyType::Boolean,
        default: "true",
        about: "Whether gradients and a weight update follow the forward pass",
        other_names: "poptorch.trainingModel / inferenceModel",
    },
    SpecKey {
        path: "model.precision",
        value_type: SpecKeyType::OneOf(&["float32", "mixed", "float16"]),
        default: "\"float32\"",
        about: "Element type of weights and activations; mixed keeps weights in float32 and computes in float16",
        other_names: "model.half(); autocast; Trainer(precision=16)",
    },
    SpecKey {
        path: "model.optimizer",
        value_type: SpecKeyType::OneOf(&[
            "sgd",
            "sgd_momentum",
            "sgd_momentum_combined",
            "adam",
            "adamw",
            "lamb",
        ]),
        default: "\"sgd\"",
        about: "Optimiser of a training model; combined: momentum and accumulated gradient share a tensor",
        other_names: "poptorch.optim.SGD(use_combined_accum) / AdamW / LAMB",
    },
    SpecKey {
        path: "model.loss_scaling",
        value_type: SpecKeyType::RealAbove(0.0, 16_777_216.0),
        default: "1",
        about: "Factor of the loss that keeps gradients in half precision above zero",
        other_names: "poptorch.optim loss_scaling",
    },
    SpecKey {
        path: "target.name",
        value_type: SpecKeyType::OneOf(&crate::targets::SYSTEM_NAMES),
        default: "\"mk2\"",
        about: "The system, or a chip that stands for as many as are needed",
        other_names: "IPUModel ipuVersion; Pod size",
    },
    SpecKey {
        path: "target.type",
        value_type: SpecKeyType::OneOf(&["ipu", "ipu_model"]),
        default: "\"ipu\"",
        about: "Hardware, or Poplar's IPU Model: no code is generated and the host answers at once",
        other_names: "poptorch.Options.useIpuModel",
    },
    SpecKey {
        path: "target.ipus",
        value_type: SpecKeyType::PowerOfTwo(64),
        default: "1",
        about: "IPUs of one replica",
        other_names: "IPUModel numIPUs",
    },
];

/// The keys that apply to a model: those of every spec, then its own.
pub(crate) fn for_model(model: &ModelDef) -> impl Iterator<Item = &'static SpecKey> {
    KEYS.iter().chain(model.sizes.iter())
}
