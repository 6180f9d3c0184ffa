//! Columns of texts of which few differ.

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Texts of which few differ, each kept once. Keys are signed, since pandas takes no others.
#[derive(Default)]
pub(crate) struct TextDictionary {
    keys: BTreeMap<String, i32>,
    texts: Vec<String>,
}

impl TextDictionary {
    /// The key of a text.
    pub(crate) fn key(&mut self, text: &str) -> i32 {
        if let Some(key) = self.keys.get(text) {
            return *key;
        }
        // No table in memory has 2^31 texts.
        let key = i32::try_from(self.texts.len()).unwrap_or(i32::MAX);
        self.keys.insert(text.to_owned(), key);
        self.texts.push(text.to_owned());
        key
    }

    /// The texts by key.
    pub(crate) fn values(self) -> ArrayRef {
        Arc::new(StringArray::from(self.texts))
    }
}

/// A column of texts by their keys.
pub(crate) fn by_key(
    keys: impl Into<Int32Array>,
    values: &ArrayRef,
) -> Result<ArrayRef, arrow_schema::ArrowError> {
    Ok(Arc::new(DictionaryArray::try_new(keys.into(), values.clone())?))
}
