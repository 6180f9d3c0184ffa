//! Keys in which two specs differ, and the specs between them.

use std::collections::BTreeMap;
use toml::{Table, Value};

/// A key by the names of its tables.
type KeyPath = Vec<String>;

/// A key with different values in two specs; `None` if one of them does not set it.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyDifference {
    path: KeyPath,
    pub good: Option<Value>,
    pub bad: Option<Value>,
}

impl KeyDifference {
    /// `options.num_io_tiles`
    pub fn name(&self) -> String {
        self.path.join(".")
    }
}

/// Two specs and the keys in which they differ.
#[derive(Debug)]
pub struct SpecDifference {
    good: BTreeMap<KeyPath, Value>,
    /// Groups of keys that only change together, in order.
    pub units: Vec<Vec<KeyDifference>>,
}

/// The table of a model and its sizes, and the keys that select the model.
const MODEL: &str = "model";
const WHICH_MODEL: [&str; 2] = ["name", "onnx"];

impl SpecDifference {
    /// Compares two specs.
    ///
    /// # Errors
    /// A text that is not TOML.
    pub fn of(good: &str, bad: &str) -> Result<Self, toml::de::Error> {
        let good = flat(good)?;
        let bad = flat(bad)?;
        let mut paths: Vec<&KeyPath> = good.keys().chain(bad.keys()).collect();
        paths.sort();
        paths.dedup();
        let key = |path: &KeyPath| KeyDifference {
            path: path.clone(),
            good: good.get(path).cloned(),
            bad: bad.get(path).cloned(),
        };
        let keys = paths.into_iter().map(key).filter(|key| key.good != key.bad);
        let keys: Vec<KeyDifference> = keys.collect();
        Ok(Self { good, units: units(keys) })
    }

    /// The good spec, with the units whose indices are in `changed` as in the bad spec.
    pub fn between(&self, changed: impl Iterator<Item = usize>) -> String {
        let mut all = self.good.clone();
        for key in changed.flat_map(|at| &self.units[at]) {
            match &key.bad {
                Some(value) => all.insert(key.path.clone(), value.clone()),
                None => all.remove(&key.path),
            };
        }
        nested(all).to_string()
    }
}

/// Each key is a separate unit, except that another model has other sizes, which are invalid
/// without it.
fn units(keys: Vec<KeyDifference>) -> Vec<Vec<KeyDifference>> {
    let is_of_model = |key: &KeyDifference| key.path.first().is_some_and(|of| of == MODEL);
    let says_which = |key: &KeyDifference| {
        is_of_model(key) && key.path.len() == 2 && WHICH_MODEL.contains(&key.path[1].as_str())
    };
    if !keys.iter().any(says_which) {
        return keys.into_iter().map(|key| vec![key]).collect();
    }
    let (model, others): (Vec<_>, Vec<_>) = keys.into_iter().partition(is_of_model);
    std::iter::once(model).chain(others.into_iter().map(|key| vec![key])).collect()
}

/// The keys of a spec with their values.
fn flat(text: &str) -> Result<BTreeMap<KeyPath, Value>, toml::de::Error> {
    let mut keys = BTreeMap::new();
    let mut open: Vec<(KeyPath, Value)> =
        vec![(Vec::new(), Value::Table(toml::from_str::<Table>(text)?))];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Table(inside) => open.extend(
                inside
                    .into_iter()
                    .map(|(name, value)| (path.iter().cloned().chain([name]).collect(), value)),
            ),
            value => drop(keys.insert(path, value)),
        }
    }
    Ok(keys)
}

fn nested(keys: BTreeMap<KeyPath, Value>) -> Table {
    let mut whole = Table::new();
    for (mut path, value) in keys {
        let Some(last) = path.pop() else { continue };
        let mut table = &mut whole;
        for name in path {
            let inside = table.entry(name).or_insert_with(|| Value::Table(Table::new()));
            // Paths come from tables, so no other value is in the way.
            let Value::Table(inside) = inside else { return whole };
            table = inside;
        }
        table.insert(last, value);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "[model]\nname = \"a\"\ndim.\"x.y\" = 3\n[options]\nn = 1\nm = 2\nlist = [1, 2]";
    const BAD: &str = "[model]\nname = \"a\"\ndim.\"x.y\" = 4\n[options]\nn = 1\nk = 5\nlist = [1]";

    #[test]
    fn keys_change_one_by_one_from_one_spec_to_the_other() {
        let difference = SpecDifference::of(GOOD, BAD).expect("is TOML");
        let names = |of: &SpecDifference| -> Vec<Vec<String>> {
            of.units.iter().map(|unit| unit.iter().map(KeyDifference::name).collect()).collect()
        };
        let expected = ["model.dim.x.y", "options.k", "options.list", "options.m"];
        assert_eq!(names(&difference), expected.map(|name| vec![name.to_owned()]));
        // Sizes stay together with their model.
        let other = BAD.replace("\"a\"", "\"b\"");
        let other = SpecDifference::of(GOOD, &other).expect("is TOML");
        assert_eq!(names(&other)[0], ["model.dim.x.y", "model.name"]);
        let read = |text: &str| toml::from_str::<Table>(text).expect("is TOML");
        assert_eq!(read(&difference.between([].into_iter())), read(GOOD));
        assert_eq!(read(&difference.between(0..4)), read(BAD));
        let one = read(&difference.between([1].into_iter()));
        assert_eq!(one["options"]["k"].as_integer(), Some(5));
        assert_eq!(one["options"]["m"].as_integer(), Some(2));
    }

    #[test]
    fn a_spec_has_no_difference_from_itself() {
        assert_eq!(
            SpecDifference::of(GOOD, GOOD).expect("is TOML").units,
            Vec::<Vec<KeyDifference>>::new()
        );
        assert!(SpecDifference::of(GOOD, "[model").is_err());
    }
}
