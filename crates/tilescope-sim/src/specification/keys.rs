//! All keys of a spec.

use super::options::{SpecOptions, TargetSpec};
use crate::model::{ModelDef, ModelSpec};
use crate::onnx::is_import_key;
use crate::spec_keys::{SpecTable, TablePlace};
use std::sync::LazyLock;

pub use crate::spec_keys::{
    Framework, KeyControl, KeyNotes, KnownName, SpecKey, SpecKeyType, WrongSpecValueError,
    keys_called,
};

/// The keys of every spec, in the order of the documentation and of reports. A model adds its own
/// sizes: [`ModelDef::sizes`].
pub static KEYS: LazyLock<Vec<SpecKey>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    ModelSpec::declare(&TablePlace { prefix: "model", words: &[] }, &mut keys);
    TargetSpec::declare(&TablePlace { prefix: "target", words: &[] }, &mut keys);
    SpecOptions::declare(&TablePlace { prefix: "options", words: &[] }, &mut keys);
    keys
});

/// The keys that apply to a model: those of every spec, then its own.
pub(crate) fn for_model(model: &ModelDef) -> impl Iterator<Item = &'static SpecKey> {
    let imported = model.is_imported();
    KEYS.iter().filter(move |key| imported || !is_import_key(&key.path)).chain(model.sizes.iter())
}
