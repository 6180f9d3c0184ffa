//! What the user writes: a TOML file with the tables `[model]`, `[target]` and `[options]`.
//!
//! [`keys::KEYS`] lists every key with its form, default and meaning. The list drives parsing, the
//! `--set` overrides, the error messages and the documentation, so they cannot disagree. After a
//! [`Spec`] is built nothing asks again whether it is sane.

mod bundled;
mod checks;
mod choices;
mod error;
pub mod keys;
mod option_keys;
mod options;
mod source;
mod value;

pub use bundled::{BUNDLED_SPECS, BundledSpecText, find_bundled_spec};
pub use choices::{
    AutoStage, DataLoaderMode, ExecutionStrategy, OutputMode, OverlapIo, PipelineSchedule,
    RecomputationType, StashConvention, StreamInputType, SyncPattern,
};
pub use error::{SpecError, SpecLocation};
pub(crate) use keys::{SpecKey, SpecKeyType};
pub(crate) use options::{HostSpec, ModelSpec, SpecOptions, StageSpec, TargetSpec, TensorLocation};
pub use source::SpecSource;
pub(crate) use value::SpecValue;

use crate::model::{self, ModelDef};
use std::collections::BTreeMap;
use value::LocatedSpecValue;

/// A checked specification: model, target and options.
#[derive(Clone, Debug)]
pub struct Spec {
    pub model: ModelSpec,
    /// What it runs on.
    pub target: TargetSpec,
    pub options: SpecOptions,
    /// The keys that were set, as TOML: reading it again gives the same spec.
    pub text: String,
    /// Every key that applies to the model, with the value in effect.
    pub effective_values: Vec<(String, String)>,
    locations: BTreeMap<String, SpecLocation>,
}

impl Spec {
    /// Reads and checks a spec.
    ///
    /// # Errors
    /// [`SpecError`] names the file, line and key, what was expected and the nearest valid key.
    pub fn build(source: &SpecSource) -> Result<Self, SpecError> {
        let settings = source.settings()?;
        let name = model_name(&settings)?;
        let values = CheckedSpecValues::check(settings, name)?;
        options::assemble(&values)
    }

    /// IPUs of all replicas, rounded up to a power of two as systems hand them out.
    pub(crate) fn total_ipus(&self) -> u32 {
        let shards = self.target.ipus * self.options.tensor_parallel;
        (shards * self.options.replication_factor).next_power_of_two()
    }

    /// An error about one key, at the place where it was set.
    pub(crate) fn refuse(&self, key: &str, problem: String) -> SpecError {
        let location = self.locations.get(key).cloned().unwrap_or(SpecLocation::NotWritten);
        SpecError::new(location, key, problem)
    }
}

/// The model a spec names.
fn model_name(
    settings: &BTreeMap<String, LocatedSpecValue>,
) -> Result<&'static ModelDef, SpecError> {
    let Some(named) = settings.get("model.name") else {
        let problem = format!("missing key; expected one of {}", model::names().join(", "));
        return Err(SpecError::new(SpecLocation::NotWritten, "model.name", problem));
    };
    let SpecValue::String(name) = &named.value else {
        let problem = format!("expected a model name in quotes, found {}", named.value.describe());
        return Err(SpecError::new(named.location.clone(), "model.name", problem));
    };
    model::find(name).ok_or_else(|| {
        let problem = format!("there is no model {name:?}");
        SpecError::new(named.location.clone(), "model.name", problem).nearest(name, &model::names())
    })
}

/// All keys that apply, each with a value of the right form.
pub(crate) struct CheckedSpecValues {
    model: &'static ModelDef,
    set: BTreeMap<String, LocatedSpecValue>,
}

impl CheckedSpecValues {
    /// Refuses unknown keys and values of the wrong form.
    fn check(
        set: BTreeMap<String, LocatedSpecValue>,
        model: &'static ModelDef,
    ) -> Result<Self, SpecError> {
        let known: Vec<&SpecKey> = keys::for_model(model).collect();
        let mut set = set;
        for (path, located) in &mut set {
            let Some(key) = known.iter().find(|key| key.path == *path) else {
                let paths: Vec<&str> = known.iter().map(|key| key.path).collect();
                let problem = format!("unknown key for model {:?}", model.name);
                return Err(
                    SpecError::new(located.location.clone(), path, problem).nearest(path, &paths)
                );
            };
            located.value = key.value_type.accept(&located.value).map_err(|problem| {
                SpecError::new(located.location.clone(), path, problem)
                    .choices(&key.value_type, &located.value)
            })?;
        }
        Ok(Self { model, set })
    }

    /// Whether the user set this key.
    fn is_set(&self, path: &str) -> bool {
        self.set.contains_key(path)
    }

    /// Where each key was set.
    fn locations(&self) -> BTreeMap<String, SpecLocation> {
        self.set.iter().map(|(path, located)| (path.clone(), located.location.clone())).collect()
    }

    /// The value in effect: set or default.
    fn get(&self, path: &str) -> SpecValue {
        if let Some(located) = self.set.get(path) {
            return located.value.clone();
        }
        // Phases live from streaming memory: what is not said to stay on the chip leaves it.
        if path.ends_with(".on_chip") && self.text("options.execution") == "phased" {
            return SpecValue::Boolean(false);
        }
        let key = keys::for_model(self.model).find(|key| key.path == path);
        let key = key.unwrap_or_else(|| panic!("{path} is asked for but not listed in KEYS"));
        SpecValue::parse(key.default).unwrap_or(SpecValue::String(String::new()))
    }

    fn integer(&self, path: &str) -> u64 {
        match self.get(path) {
            SpecValue::Integer(value) => value.max(0) as u64,
            other => panic!("{path} is read as an integer but listed as {}", other.describe()),
        }
    }

    fn real(&self, path: &str) -> f64 {
        match self.get(path) {
            SpecValue::Float(value) => value,
            SpecValue::Integer(value) => value as f64,
            other => panic!("{path} is read as a number but listed as {}", other.describe()),
        }
    }

    fn flag(&self, path: &str) -> bool {
        matches!(self.get(path), SpecValue::Boolean(true))
    }

    fn text(&self, path: &str) -> String {
        match self.get(path) {
            SpecValue::String(value) => value,
            other => other.to_string(),
        }
    }

    /// An error about one key, at the place where it was set.
    fn refuse(&self, path: &str, problem: String) -> SpecError {
        let location =
            self.set.get(path).map_or(SpecLocation::NotWritten, |located| located.location.clone());
        SpecError::new(location, path, problem)
    }
}

#[cfg(test)]
mod tests;
