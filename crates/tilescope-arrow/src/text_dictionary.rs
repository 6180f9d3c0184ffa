//! Columns of texts with few distinct values.

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_schema::ArrowError;
use std::collections::HashMap;
use std::sync::Arc;

/// Texts with few distinct values, each stored once. Keys are signed, because pandas accepts no
/// others.
#[derive(Default)]
pub(crate) struct TextDictionary {
    keys: HashMap<String, i32>,
    texts: Vec<String>,
    /// The texts as an array, until another text is added.
    array: Option<ArrayRef>,
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
        self.array = None;
        key
    }

    /// A column of texts by their keys.
    pub(crate) fn array(&mut self, keys: Int32Array) -> Result<ArrayRef, ArrowError> {
        let texts = &self.texts;
        let values =
            self.array.get_or_insert_with(|| Arc::new(StringArray::from_iter_values(texts)));
        Ok(Arc::new(DictionaryArray::try_new(keys, values.clone())?))
    }
}
