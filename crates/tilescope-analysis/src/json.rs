//! JSON as lines of keys and values, for tables.

use serde_json::Value;

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonLine {
    /// Number of parents.
    pub depth: u32,
    /// Key, or index in a list.
    pub name: String,
    /// Value; empty for objects and lists with lines below.
    pub value: String,
}

/// The largest number of lines of a text.
const MAX_LINES: usize = 20_000;

/// A JSON text line by line: keys in alphabetical order, lists of scalars in one line.
///
/// # Errors
/// A syntax error in the text, with its position.
pub fn lines(text: &str) -> Result<Vec<JsonLine>, serde_json::Error> {
    let value: Value = serde_json::from_str(text)?;
    let mut lines = Vec::new();
    add(&mut lines, 0, "", &value);
    Ok(lines)
}

fn add(lines: &mut Vec<JsonLine>, depth: u32, name: &str, value: &Value) {
    if lines.len() >= MAX_LINES {
        // One line after the last one states that more follow.
        if lines.len() == MAX_LINES {
            let name = "and more".to_owned();
            lines.push(JsonLine { depth: 0, name, value: String::new() });
        }
        return;
    }
    let line = |value: String| JsonLine { depth, name: name.to_owned(), value };
    let below = if name.is_empty() { depth } else { depth + 1 };
    match value {
        Value::Object(parts) => {
            if !name.is_empty() {
                lines.push(line(String::new()));
            }
            parts.iter().for_each(|(name, value)| add(lines, below, name, value));
        }
        Value::Array(values)
            if values.iter().any(|value| value.is_object() || value.is_array()) =>
        {
            if !name.is_empty() {
                lines.push(line(String::new()));
            }
            let parts = values.iter().enumerate();
            parts.for_each(|(place, value)| add(lines, below, &place.to_string(), value));
        }
        Value::Array(values) => {
            let words: Vec<String> = values.iter().map(plain).collect();
            lines.push(line(words.join(", ")));
        }
        value => lines.push(line(plain(value))),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => {
            number.as_u64().map_or_else(|| number.to_string(), tilescope_report::units::grouped)
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_values_are_indented() {
        let found = lines(r#"{"b": [1, "x"], "a": {"c": 12345}, "d": [{"e": null}]}"#).unwrap();
        let words: Vec<_> = found
            .iter()
            .map(|line| (line.depth, line.name.as_str(), line.value.as_str()))
            .collect();
        let expected = [
            (0, "a", ""),
            (1, "c", "12,345"),
            (0, "b", "1, x"),
            (0, "d", ""),
            (1, "0", ""),
            (2, "e", "null"),
        ];
        assert_eq!(words, expected);
        assert!(lines("{").is_err());
        assert_eq!(lines("{}").unwrap(), vec![]);
    }

    #[test]
    fn cut_texts_end_with_a_note() {
        let of = |count: usize| {
            let parts = (0..count).map(|at| format!("\"{at}\": {at}"));
            lines(&format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))).unwrap()
        };
        assert!(of(MAX_LINES).iter().all(|line| line.name != "and more"));
        let cut = of(MAX_LINES + 7);
        assert_eq!((cut.len(), cut[MAX_LINES].name.as_str()), (MAX_LINES + 1, "and more"));
    }
}
