//! Bounds the size of answers for agents: lists and texts are cut, with a note.

use super::messages::MAX_ANSWER;
use crate::cli::command::CliError;
use crate::cli::error::UsageError;
use serde_json::{Value, json};

/// The longest text in an answer. Names come from untrusted files.
const MAX_TEXT: usize = 8_000;

const TOO_LONG: &str = "the answer is too long even without its lists: request a smaller part";

/// Shortest length that texts are cut to.
const MIN_TEXT: usize = 60;

/// The first entries of a list, and the number of the others.
pub(super) fn first<T>(
    entries: impl ExactSizeIterator<Item = T>,
    limit: usize,
    entry: impl FnMut(T) -> Value,
) -> Value {
    let rest = entries.len().saturating_sub(limit);
    let mut kept: Vec<Value> = entries.take(limit).map(entry).collect();
    if rest > 0 {
        kept.push(left_off(rest));
    }
    Value::Array(kept)
}

/// The note in place of entries that are not listed.
fn left_off(entries: usize) -> Value {
    json!({ "left_off": entries })
}

/// Shortens the lists and texts of a value that is too long. The last entry of a shortened list is
/// the number of missing entries; figures do not change.
///
/// # Errors
/// A value that is too long even without its lists.
pub(super) fn bounded(value: Value) -> Result<Value, CliError> {
    Ok(bounded_to(value, MAX_ANSWER).ok_or(UsageError::Request(TOO_LONG))?)
}

/// The same value, with the given number of entries of each list.
pub(super) fn limited(mut value: Value, entries: usize) -> Value {
    cut(&mut value, entries, usize::MAX);
    value
}

fn bounded_to(mut value: Value, most: usize) -> Option<Value> {
    cut(&mut value, usize::MAX, MAX_TEXT);
    let mut entries = longest_list(&value);
    let mut letters = MAX_TEXT;
    while value.to_string().len() > most {
        if entries > 1 {
            entries /= 2;
        } else if letters > MIN_TEXT {
            letters /= 2;
        } else {
            return None;
        }
        cut(&mut value, entries, letters);
    }
    Some(value)
}

/// Number of entries of the longest list that may be cut.
fn longest_list(value: &Value) -> usize {
    match value {
        Value::Array(entries) if entries.iter().all(is_plain) => 0,
        Value::Array(entries) => {
            entries.iter().map(longest_list).max().unwrap_or(0).max(entries.len())
        }
        Value::Object(fields) => fields.values().map(longest_list).max().unwrap_or(0),
        _ => 0,
    }
}

/// True if it is neither a list nor an object. A row of such values is not cut, because its columns
/// would shift.
fn is_plain(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn cut(value: &mut Value, entries: usize, letters: usize) {
    match value {
        Value::Array(list) => {
            let before = list.last().and_then(|last| last["left_off"].as_u64());
            let own = list.len() - usize::from(before.is_some());
            if own > entries && !list.iter().all(is_plain) {
                list.truncate(entries);
                let before = before.and_then(|before| usize::try_from(before).ok()).unwrap_or(0);
                list.push(left_off(own - entries + before));
            }
            list.iter_mut().for_each(|entry| cut(entry, entries, letters));
        }
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| cut(field, entries, letters));
        }
        Value::String(text) => shorten(text, letters),
        _ => {}
    }
}

/// A text, cut to the limit of answers.
pub(super) fn shortened(mut text: String) -> String {
    shorten(&mut text, MAX_TEXT);
    text
}

fn shorten(text: &mut String, letters: usize) {
    if let Some((end, _)) = text.char_indices().nth(letters) {
        let bytes = text.len();
        text.truncate(end);
        text.push_str(&format!("… ({bytes} bytes)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    #[test]
    fn cut_lists_count_the_omitted_entries() {
        let list = json!({ "rows": (0..100).map(|row| json!([row])).collect::<Vec<Value>>() });
        let bounded_to = |value, most| bounded_to(value, most).expect("short enough");
        assert_eq!(bounded_to(list.clone(), 1000), list);
        let short = bounded_to(list.clone(), 100);
        assert_eq!(short["rows"][11], json!([11]));
        assert_eq!(short["rows"][12], json!({ "left_off": 88 }));
        // Earlier omissions are kept.
        assert_eq!(bounded_to(short, 60)["rows"][6], json!({ "left_off": 94 }));
        let numbers = [1, 2, 3];
        let named = first(numbers.iter(), 2, |number| json!({ "number": number }));
        assert_eq!(named, json!([{ "number": 1 }, { "number": 2 }, { "left_off": 1 }]));
    }

    #[test]
    fn answers_are_never_longer() {
        let long = "é".repeat(100_000);
        let names = json!([{ "name": long }, vec![json!({ "x": "x".repeat(5_000) }); 40]]);
        for most in [200, 5_000, MAX_ANSWER] {
            let bounded = bounded_to(names.clone(), most);
            assert!(bounded.is_none_or(|value| value.to_string().len() <= most), "{most}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<u32>().prop_map(Value::from),
            "\\PC{0,80}".prop_map(Value::from),
            Just(Value::Null)
        ];
        leaf.prop_recursive(4, 200, 30, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..30).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,6}", inner, 0..10)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn any_value_is_bounded(value in any_json(), most in 200_usize..2_000) {
            let bounded = bounded_to(value, most);
            prop_assert!(bounded.is_none_or(|value| value.to_string().len() <= most));
        }
    }
}
