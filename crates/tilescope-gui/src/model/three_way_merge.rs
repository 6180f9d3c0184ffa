//! What several windows have changed of one file: of three versions, the one that a window began
//! with, its own and the one that is in the file by now.

use serde_json::{Map, Value};

/// A list with the entries that either side has added, and without those that either has taken
/// away; those of the window come first.
pub(crate) fn merged_list<T: PartialEq + Clone>(known: &[T], mine: &[T], there: &[T]) -> Vec<T> {
    let kept = mine.iter().filter(|entry| there.contains(entry) || !known.contains(entry));
    let theirs = there.iter().filter(|entry| !mine.contains(entry) && !known.contains(entry));
    kept.chain(theirs).cloned().collect()
}

/// A value in which everything that the window has changed is as the window has it, and everything
/// else as it is in the file: also what this version knows nothing of.
pub(crate) fn merged_value(known: &Value, mine: &Value, there: &Value) -> Value {
    match (known, mine, there) {
        (Value::Object(known), Value::Object(mine), Value::Object(there)) => {
            Value::Object(merged_map(known, mine, there))
        }
        _ if mine == known => there.clone(),
        _ => mine.clone(),
    }
}

fn merged_map(
    known: &Map<String, Value>,
    mine: &Map<String, Value>,
    there: &Map<String, Value>,
) -> Map<String, Value> {
    let mut merged = Map::new();
    let others = there.keys().filter(|name| !mine.contains_key(*name));
    for name in mine.keys().chain(others) {
        let value = match (known.get(name), mine.get(name), there.get(name)) {
            (Some(known), Some(mine), Some(there)) => Some(merged_value(known, mine, there)),
            (known, mine, there) if mine == known => there.cloned(),
            (_, mine, _) => mine.cloned(),
        };
        if let Some(value) = value {
            merged.insert(name.clone(), value);
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use tilescope_test_tiers::cases;

    #[test]
    fn what_either_side_changed_holds() {
        let known = json!({"a": 1, "b": {"c": 2, "d": 3}, "keys": {"gone": [1], "stays": [2]}});
        let mine = json!({"a": 1, "b": {"c": 9, "d": 3}, "keys": {"stays": [2]}});
        let there = json!({"a": 5, "b": {"c": 2, "d": 7}, "keys": {"gone": [1], "stays": [2]},
                           "newer": true});
        let merged = merged_value(&known, &mine, &there);
        let wanted = json!({"a": 5, "b": {"c": 9, "d": 7}, "keys": {"stays": [2]}, "newer": true});
        assert_eq!(merged, wanted);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn a_side_that_changed_nothing_changes_nothing(
            known in proptest::collection::vec(0..9u8, 0..6),
            other in proptest::collection::vec(0..9u8, 0..6),
        ) {
            prop_assert_eq!(merged_list(&known, &known, &known), known.clone());
            let sorted = |mut list: Vec<u8>| { list.sort_unstable(); list.dedup(); list };
            let theirs = merged_list(&known, &known, &other);
            prop_assert_eq!(sorted(theirs), sorted(other.clone()));
            let mine = merged_list(&known, &other, &known);
            prop_assert_eq!(sorted(mine), sorted(other));
        }
    }
}
