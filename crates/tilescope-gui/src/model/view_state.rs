//! The state of a view as plain data: the fields of its struct that are not skipped.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The names and values of the fields that differ from a new view.
pub(crate) type ViewState = Map<String, Value>;

/// Returns the fields of `view` that differ from a new one.
pub(crate) fn to_view_state<T: Serialize + Default>(view: &T) -> ViewState {
    let fresh = fields(&T::default());
    let mut state = fields(view);
    state.retain(|name, value| fresh.get(name) != Some(value));
    state
}

/// Returns a new view with all valid fields of `state`, and the names of the others.
pub(crate) fn from_view_state<T: Serialize + DeserializeOwned + Default>(
    state: &ViewState,
) -> (T, Vec<String>) {
    let mut known = fields(&T::default());
    let mut view = T::default();
    let mut strange = Vec::new();
    for (name, value) in state {
        let before = known.insert(name.clone(), value.clone());
        let whole = Value::Object(known.clone());
        match serde_json::from_value::<T>(whole) {
            Ok(better) if before.is_some() => view = better,
            _ => {
                strange.push(name.clone());
                match before {
                    Some(before) => drop(known.insert(name.clone(), before)),
                    None => drop(known.remove(name)),
                }
            }
        }
    }
    (view, strange)
}

/// Serialization of the data behind an [`Arc`](std::sync::Arc).
pub(crate) mod shared {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;

    /// Serializes the value that it points to.
    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        data: &Arc<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        data.as_ref().serialize(serializer)
    }

    /// Deserializes the value and wraps it.
    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<T>, D::Error> {
        T::deserialize(deserializer).map(Arc::new)
    }
}

fn fields<T: Serialize>(view: &T) -> ViewState {
    match serde_json::to_value(view) {
        Ok(Value::Object(fields)) => fields,
        // Only maps with keys other than text cannot be serialized.
        _ => ViewState::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct SampleViewSettings {
        zoom: Option<f64>,
        filter: String,
        #[serde(skip)]
        cache: Vec<u8>,
    }

    #[test]
    fn only_differences_are_saved_and_restored() {
        let view = SampleViewSettings { zoom: Some(0.1 + 0.2), ..SampleViewSettings::default() };
        let state = to_view_state(&view);
        assert_eq!(state.len(), 1);
        assert_eq!(from_view_state::<SampleViewSettings>(&state), (view, Vec::new()));
        assert!(to_view_state(&SampleViewSettings::default()).is_empty());
    }

    #[test]
    fn unknown_fields_are_reported_and_the_rest_is_used() {
        let state = serde_json::json!({"filter": "a", "zoom": "banana", "other": 7});
        let (view, strange) = from_view_state::<SampleViewSettings>(state.as_object().unwrap());
        assert_eq!(view.filter, "a");
        assert_eq!(strange, ["other", "zoom"]);
    }
}
