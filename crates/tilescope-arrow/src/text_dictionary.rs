//! Columns of texts with few distinct values.

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_schema::ArrowError;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Texts with few distinct values, each stored once. Keys are signed, because pandas accepts no
/// others.
#[derive(Default)]
pub(crate) struct TextDictionary {
    keys: HashMap<String, i32>,
    /// Keys by the numbers of texts that rows share; `None` for those without a string.
    by_id: HashMap<u64, Option<i32>>,
    texts: Vec<String>,
    /// The texts as an array, until another text is added.
    array: Option<ArrayRef>,
}

impl TextDictionary {
    /// The key of a string.
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

    /// The key of the text with a number, which is read only the first time: texts of an untrusted
    /// file may be long, and each row would hash one.
    pub(crate) fn key_of<'t>(
        &mut self,
        id: u64,
        text: impl FnOnce() -> Option<Cow<'t, str>>,
    ) -> Option<i32> {
        if let Some(key) = self.by_id.get(&id) {
            return *key;
        }
        let key = text().map(|text| self.key(&text));
        self.by_id.insert(id, key);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_a_number_is_read_once() {
        let mut texts = TextDictionary::default();
        let plain = texts.key("name");
        assert_eq!(texts.key_of(7, || Some("name".into())), Some(plain));
        assert_eq!(texts.key_of(8, || None), None);
        for id in [7, 8, 7] {
            let known = texts.key_of(id, || panic!("the text of {id} is read again"));
            assert_eq!(known, Some(plain).filter(|_| id == 7));
        }
    }
}
