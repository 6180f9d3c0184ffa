//! Reading and changing single keys of a spec's text, so that the rest stays as the user wrote it.

use std::collections::BTreeMap;

/// The line of a text, the table it stands in and its key, where it has one.
struct SpecLine<'a> {
    table: String,
    key: Option<&'a str>,
}

fn lines(text: &str) -> Vec<SpecLine<'_>> {
    let mut table = String::new();
    let line = |line| {
        let trimmed = str::trim(line);
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
            && !name.contains(['[', '"', '='])
        {
            table = name.trim().to_owned();
            return SpecLine { table: table.clone(), key: None };
        }
        let key = trimmed.split_once('=').map(|(key, _)| key.trim());
        let plain = |key: &&str| {
            let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            !key.is_empty() && key.chars().all(letter)
        };
        SpecLine { table: table.clone(), key: key.filter(plain) }
    };
    text.lines().map(line).collect()
}

impl SpecLine<'_> {
    fn path(&self) -> Option<String> {
        let key = self.key?;
        Some(if self.table.is_empty() { key.to_owned() } else { format!("{}.{key}", self.table) })
    }
}

/// The dotted path of the key on a line, counted from 0.
pub(crate) fn key_on_line(text: &str, line: usize) -> Option<String> {
    lines(text).get(line)?.path()
}

/// The table a line stands in.
pub(crate) fn table_on_line(text: &str, line: usize) -> String {
    lines(text).get(line).map(|line| line.table.clone()).unwrap_or_default()
}

/// Every key of a spec with its value as TOML; nothing where the text is no TOML.
pub(crate) fn values(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    if let Ok(table) = text.parse::<toml::Table>() {
        flatten("", &table, &mut values);
    }
    values
}

fn flatten(above: &str, table: &toml::Table, values: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        match value {
            toml::Value::Table(table) => flatten(&path, table, values),
            value => drop(values.insert(path, value.to_string())),
        }
    }
}

/// The text with a key set to a value: its line changed, or a line more in its table.
pub(crate) fn with_value(text: &str, path: &str, value: &str) -> String {
    let known = lines(text);
    let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Some(at) = known.iter().position(|line| line.path().as_deref() == Some(path)) {
        let old = &all[at];
        let front = old.split_once('=').map_or("", |(front, _)| front).trim_end();
        let comment = old.find(" #").map_or("", |at| &old[at..]).to_owned();
        all[at] = format!("{front} = {value}{comment}");
        // A value over several lines goes as a whole.
        if text.parse::<toml::Table>().is_ok() && all.join("\n").parse::<toml::Table>().is_err() {
            let end = (at + 1..all.len())
                .find(|end| without_lines(&all, at + 1, *end).parse::<toml::Table>().is_ok());
            let end = end.unwrap_or(at);
            all.drain(at + 1..=end.max(at));
        }
        return all.join("\n") + "\n";
    }
    // The longest table that the path is in; `[options]` for `options.host.loader`.
    let inside = |line: &SpecLine<'_>| {
        line.key.is_none()
            && !line.table.is_empty()
            && path.starts_with(&format!("{}.", line.table))
    };
    let table = known.iter().filter(|line| inside(line)).map(|line| line.table.clone());
    match table.max_by_key(String::len) {
        Some(table) => {
            let key = &path[table.len() + 1..];
            let last = known
                .iter()
                .enumerate()
                .rev()
                .find(|(at, line)| line.table == table && !all[*at].trim().is_empty());
            let at = last.map_or(all.len(), |(at, _)| at + 1);
            all.insert(at, format!("{key} = {value}"));
        }
        None => {
            let (table, key) = path.split_once('.').unwrap_or(("options", path));
            all.extend([String::new(), format!("[{table}]"), format!("{key} = {value}")]);
        }
    }
    all.join("\n") + "\n"
}

/// Lines with those from `from` to `to`, both included, left out.
fn without_lines(lines: &[String], from: usize, to: usize) -> String {
    let kept = lines[..from].iter().chain(lines.get(to + 1..).unwrap_or_default());
    kept.map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// What is set otherwise than in another spec, in words: `options.num_io_tiles = 32`.
pub(crate) fn changes(from: &str, to: &str) -> Vec<String> {
    let (from, to) = (values(from), values(to));
    let mut changes = Vec::new();
    for (path, value) in &to {
        if from.get(path) != Some(value) {
            changes.push(format!("{path} = {value}"));
        }
    }
    let gone = from.keys().filter(|path| !to.contains_key(*path));
    changes.extend(gone.map(|path| format!("{path} back to its default")));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[model]\nname = \"mlp\" # a small one\n\n[options]\n\
                        stages = [\n  [\"a\"],\n  [\"b\"],\n]\nlocation.weights.on_chip = false\n";

    #[test]
    fn only_the_key_that_is_set_changes() {
        let cases = [
            ("model.name", "\"bert\""),
            ("model.width", "7"),
            ("options.stages", "[]"),
            ("options.location.weights.on_chip", "true"),
            ("options.host.loader", "\"sync\""),
            ("target.ipus", "8"),
        ];
        for (path, value) in cases {
            let changed = with_value(TEXT, path, value);
            let mut expected = values(TEXT);
            expected.insert(path.to_owned(), value.to_owned());
            assert_eq!(values(&changed), expected, "{path}: {changed}");
            assert_eq!(with_value(&changed, path, value), changed, "{path}");
            assert!(changed.contains("# a small one"));
        }
    }

    #[test]
    fn keys_are_known_by_their_line() {
        assert_eq!(key_on_line(TEXT, 1).as_deref(), Some("model.name"));
        assert_eq!(key_on_line(TEXT, 0), None);
        assert_eq!(key_on_line(TEXT, 8).as_deref(), Some("options.location.weights.on_chip"));
        assert_eq!(table_on_line(TEXT, 8), "options");
        assert_eq!(key_on_line("", 7), None);
    }

    #[test]
    fn changes_are_told_in_words() {
        let changed = with_value(TEXT, "model.width", "7");
        assert_eq!(changes(TEXT, &changed), ["model.width = 7"]);
        assert_eq!(changes(&changed, TEXT), ["model.width back to its default"]);
        assert!(changes(TEXT, TEXT).is_empty());
    }

    #[test]
    fn nonsense_has_no_values_and_can_be_written_on() {
        for text in ["= = =", "[[[", "\"", "[a\nb", "\u{0}"] {
            assert!(values(text).is_empty());
            assert!(with_value(text, "options.num_io_tiles", "0").contains("num_io_tiles = 0"));
        }
    }
}
