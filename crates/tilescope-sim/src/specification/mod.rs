//! The specification that the user writes: a TOML file with the tables `[model]`, `[target]` and
//! `[options]`.
//!
//! Each key is declared once, in `options.rs` or, if another module needs it, in [`ModelSpec`] or
//! [`PoplibsOptions`](crate::poplin::planner::PoplibsOptions). The entry makes the field that the
//! simulator reads and an item of [`keys::KEYS`], from which parsing, the `--set` overrides, the
//! error messages, the documentation, the JSON schema and the editor are derived, so they cannot
//! disagree. A [`Spec`] is valid after it is built, and later code does not check it again.

mod bundled;
mod calibration;
mod checks;
mod choices;
mod error;
mod host_path;
mod imported;
pub mod keys;
mod machine;
mod options;
mod phase_settings;
mod schema;
mod source;
mod stages;

pub use crate::spec_keys::Proportion;
pub use bundled::{BUNDLED_SPECS, BundledSpecGroup, BundledSpecText, find_bundled_spec};
pub use calibration::{CALIBRATION_TABLE, CalibratedConstant};
pub use choices::{
    AccumulateOuterSchedule, AutoStage, Currency, DataLoaderMode, DomainSharding,
    ExecutionPhaseIoSchedule, ExecutionPhaseSchedule, ExecutionStrategy, MultiThreadMode,
    OutputMode, OverlapIo, PipelineSchedule, RecomputationType, ReturnedOutputs, ShardingDomain,
    StashConvention, StreamConnection, StreamInputType, StreamOutputType, SyncPattern,
};
pub use error::{SpecError, SpecLocation, SpecWarning, nearest};
pub(crate) use options::{HostSpec, SpecOptions, TargetSpec, TensorLocation};
pub use schema::schema;
pub use source::{CalibrationText, SpecSource};
pub(crate) use stages::StageSpec;

use crate::cost_constants::{self, CostConstant};
use crate::model::{self, ModelDef, ModelSpec};
use crate::onnx::{ImportedFile, is_of_file};
use crate::spec_keys::{ChosenValues, SpecKey, SpecValue};
use source::LocatedSpecValue;
use std::collections::BTreeMap;
use tilescope_report::MachineChange;

/// A checked specification: model, target and options.
#[derive(Clone, Debug)]
pub struct Spec {
    pub model: ModelSpec,
    /// The machine that it runs on.
    pub target: TargetSpec,
    pub options: SpecOptions,
    /// Shares of a tile's memory for temporaries, by IPU of a replica. Empty if all IPUs have the
    /// share of the options.
    pub memory_proportions: Vec<f64>,
    /// The keys that were set, as TOML. Reading the text gives the same spec.
    pub text: String,
    /// Every key that applies to the model, with the value in effect.
    pub effective_values: Vec<(String, String)>,
    /// The differences between the machine and the one that it is named after.
    pub machine_changes: Vec<MachineChange>,
    /// Constants of the simulation that were fitted to a measurement.
    pub calibration: Vec<MachineChange>,
    /// Those constants that belong to the process.
    process_constants: Vec<(&'static CostConstant, f64)>,
    /// Warnings about words of earlier versions.
    pub warnings: Vec<SpecWarning>,
    locations: BTreeMap<String, SpecLocation>,
}

impl Spec {
    /// Reads and checks a spec.
    ///
    /// # Errors
    /// Returns a [`SpecError`] with the file, line and key, the expected value and the nearest
    /// valid key.
    pub fn build(source: &SpecSource) -> Result<Self, SpecError> {
        let mut settings = source.settings()?;
        let imported = imported::open(&mut settings, source.read_model.as_ref())?;
        let model = match &imported {
            Some(_) => &model::IMPORTED,
            None => model_name(&settings)?,
        };
        let values = CheckedSpecValues::check(settings, model, imported)?;
        options::assemble(&values)
    }

    /// IPUs of all replicas, rounded up to a power of two as systems provide them.
    pub(crate) fn total_ipus(&self) -> u32 {
        self.used_ipus().next_power_of_two()
    }

    /// IPUs that the replicas work on.
    pub(crate) fn used_ipus(&self) -> u32 {
        self.target.ipus * self.options.tensor_parallel * self.options.replication_factor
    }

    /// The micro-batches that send results to the host: never [`OutputMode::Default`].
    pub(crate) fn output_mode(&self) -> OutputMode {
        match self.options.output_mode {
            OutputMode::Default if self.model.training => OutputMode::Final,
            OutputMode::Default => OutputMode::All,
            chosen => chosen,
        }
    }

    /// True if it is simulated with its own constants, which requires a separate process if other
    /// specs are simulated too.
    pub fn needs_own_process(&self) -> bool {
        !self.process_constants.is_empty()
    }

    /// The constants that can be fitted to a measurement, with their values in this spec.
    pub fn calibrated_constants(&self) -> Vec<CalibratedConstant> {
        calibration::constants(&self.target.calibration, &self.target.machine.rates())
    }

    /// Sets the constants of the process to those of the spec.
    ///
    /// # Errors
    /// Returns an error if another spec was simulated in this process with other constants.
    pub(crate) fn calibrate_process(&self) -> Result<(), SpecError> {
        cost_constants::calibrate(&self.process_constants)
            .map_err(|problem| self.refuse(CALIBRATION_TABLE, problem.to_string()))
    }

    /// Makes an error about one key, at the place where it was set.
    pub(crate) fn refuse(&self, key: &str, problem: String) -> SpecError {
        let location = self.locations.get(key).cloned().unwrap_or(SpecLocation::NotWritten);
        SpecError::new(location, key, problem)
    }
}

/// The model that a spec names.
fn model_name(
    settings: &BTreeMap<String, LocatedSpecValue>,
) -> Result<&'static ModelDef, SpecError> {
    let Some(named) = settings.get("model.name") else {
        let names = model::names().join(", ");
        let problem = format!("missing key; expected one of {names}, or model.onnx with a file");
        return Err(SpecError::new(SpecLocation::NotWritten, "model.name", problem));
    };
    let SpecValue::String(name) = &named.value else {
        let problem = format!("expected a model name in quotes, found {}", named.value.describe());
        return Err(SpecError::new(named.location.clone(), "model.name", problem));
    };
    let found = model::find(name).filter(|model| !model.is_imported());
    found.ok_or_else(|| {
        let problem = format!("unknown model {name:?}");
        SpecError::new(named.location.clone(), "model.name", problem).nearest(name, &model::names())
    })
}

/// All keys that apply, each with a value of the right form.
pub(crate) struct CheckedSpecValues {
    model: &'static ModelDef,
    imported: Option<ImportedFile>,
    set: BTreeMap<String, LocatedSpecValue>,
    warnings: Vec<SpecWarning>,
}

impl CheckedSpecValues {
    /// Rejects unknown keys and values of the wrong form.
    fn check(
        set: BTreeMap<String, LocatedSpecValue>,
        model: &'static ModelDef,
        imported: Option<ImportedFile>,
    ) -> Result<Self, SpecError> {
        let known: Vec<&SpecKey> = keys::for_model(model).collect();
        let mut set = set;
        let mut warnings = Vec::new();
        for (path, located) in &mut set {
            if model.is_imported() && is_of_file(path) {
                continue;
            }
            let Some(key) = known.iter().find(|key| key.path == *path) else {
                let problem = format!("unknown key for model {:?}", model.name);
                let error = SpecError::new(located.location.clone(), path, problem);
                return Err(error.nearest_key(path, &known));
            };
            warnings.extend(rename(key, located));
            located.value = key.value_type.accept(&located.value).map_err(|problem| {
                SpecError::new(located.location.clone(), path, problem.to_string())
                    .choices(&key.value_type, &located.value)
            })?;
        }
        Ok(Self { model, imported, set, warnings })
    }

    /// The value that the user set.
    fn set_value(&self, path: &str) -> Option<&SpecValue> {
        self.set.get(path).map(|located| &located.value)
    }

    /// True if the user set this key.
    fn is_set(&self, path: &str) -> bool {
        self.set.contains_key(path)
    }

    /// The keys of dimensions, branches and loop trips of the file that were set.
    fn of_file(&self) -> impl Iterator<Item = &str> {
        let paths = self.set.keys().map(String::as_str);
        paths.filter(|path| self.model.is_imported() && is_of_file(path))
    }

    /// The place where each key was set.
    fn locations(&self) -> BTreeMap<String, SpecLocation> {
        self.set.iter().map(|(path, located)| (path.clone(), located.location.clone())).collect()
    }

    /// The value in effect: chosen or default.
    fn get(&self, path: &str) -> SpecValue {
        self.chosen(path).unwrap_or_else(|| {
            let key = keys::for_model(self.model).find(|key| key.path == path);
            let default = key.and_then(|key| SpecValue::parse(&key.default));
            default.unwrap_or(SpecValue::String(String::new()))
        })
    }

    fn text(&self, path: &str) -> String {
        match self.get(path) {
            SpecValue::String(value) => value,
            other => other.to_string(),
        }
    }

    /// Makes an error about one key, at the place where it was set.
    fn refuse(&self, path: &str, problem: String) -> SpecError {
        let location =
            self.set.get(path).map_or(SpecLocation::NotWritten, |located| located.location.clone());
        SpecError::new(location, path, problem)
    }
}

impl ChosenValues for CheckedSpecValues {
    /// The value that was set, or that follows from other values.
    fn chosen(&self, path: &str) -> Option<SpecValue> {
        if let Some(located) = self.set.get(path) {
            return Some(located.value.clone());
        }
        let inherited = machine::inherited(self, path);
        if let Some(inherited) = inherited.or_else(|| host_path::inherited(self, path)) {
            return Some(inherited);
        }
        let of_file = self.imported.as_ref().and_then(|file| imported::value(file, path, self));
        if of_file.is_some() {
            return of_file;
        }
        // Phased execution uses streaming memory: tensors that are not explicitly on the chip leave
        // it.
        if path.ends_with(".on_chip")
            && self.field("options", "execution") == Some(ExecutionStrategy::Phased)
        {
            return Some(SpecValue::Boolean(false));
        }
        None
    }
}

/// Replaces a word of an earlier version by the current one.
fn rename(key: &SpecKey, located: &mut LocatedSpecValue) -> Option<SpecWarning> {
    let SpecValue::String(word) = &located.value else { return None };
    let renamed = key.renamed.iter().find(|renamed| renamed.old == word)?;
    located.value = SpecValue::String(renamed.new.to_string());
    Some(SpecWarning {
        location: located.location.clone(),
        key: key.path.to_string(),
        old: renamed.old,
        new: renamed.new,
    })
}

#[cfg(test)]
mod tests;
