//! Reading and changing single keys of a spec's text. The rest of the text stays as the user wrote
//! it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tilescope_analysis::insights::SpecChanges;
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

/// The key of the file of an imported model.
pub(crate) const MODEL_FILE: &str = "model.onnx";

/// The key of its digest at the last simulation.
pub(crate) const MODEL_DIGEST: &str = "model.onnx_digest";

/// The prefix of a key for a symbolic dimension, whose name may have any characters.
const DIM_PREFIX: &str = "model.dim.";

/// The key of a symbolic dimension.
pub(crate) fn dim_key(name: &str) -> String {
    format!("{DIM_PREFIX}{name}")
}

/// The symbolic dimension that a key refers to.
pub(crate) fn dim_name(path: &str) -> Option<&str> {
    path.strip_prefix(DIM_PREFIX)
}

/// The table that contains a line, and the key on the line without the table, if any.
struct SpecLine {
    table: String,
    key: Option<String>,
}

fn lines(text: &str) -> Vec<SpecLine> {
    let mut table = String::new();
    text.lines()
        .map(|line| {
            let code = outside_quotes(line, '#').map_or(line, |at| &line[..at]);
            let trimmed = str::trim(code);
            if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
                && !name.contains(['[', '"', '='])
            {
                table = name.trim().to_owned();
                return SpecLine { table: table.clone(), key: None };
            }
            let key = assignment(trimmed).and_then(|at| plain_key(trimmed[..at].trim()));
            SpecLine { table: table.clone(), key }
        })
        .collect()
}

/// The position of the `=` on a line.
fn assignment(line: &str) -> Option<usize> {
    outside_quotes(line, '=')
}

/// The first position of a character outside quotes.
fn outside_quotes(line: &str, wanted: char) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if letter == open => quote = None,
            (None, _) if letter == wanted => return Some(at),
            (None, '"' | '\'') => quote = Some(letter),
            _ => {}
        }
    }
    None
}

/// A TOML key with its parts joined by dots: `dim."a b"` is `dim.a b`.
fn plain_key(written: &str) -> Option<String> {
    if !written.is_empty()
        && written.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
    {
        return Some(written.to_owned());
    }
    values(&format!("{written} = 0\n")).into_keys().next()
}

/// A text as a one-line TOML string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                quoted.push_str(&format!("\\u{:04X}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

impl SpecLine {
    fn path(&self) -> Option<String> {
        let key = self.key.as_ref()?;
        Some(if self.table.is_empty() { key.clone() } else { format!("{}.{key}", self.table) })
    }
}

/// The dotted path of the key on a line, counted from 0.
pub(crate) fn key_on_line(text: &str, line: usize) -> Option<String> {
    lines(text).get(line)?.path()
}

/// The table that contains a line.
pub(crate) fn table_on_line(text: &str, line: usize) -> String {
    lines(text).get(line).map(|line| line.table.clone()).unwrap_or_default()
}

/// Every key of a spec with its value as TOML; empty if the text is not valid TOML.
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

/// The parts of a key. The name of a symbolic dimension is a single part, regardless of its
/// characters.
fn parts(path: &str) -> Vec<&str> {
    match dim_name(path) {
        Some(name) => vec!["model", "dim", name],
        None => path.split('.').collect(),
    }
}

/// The text with a key set to a TOML value. Comments, order and layout of everything else stay. An
/// invalid text gets the key at its end, where the user sees it.
pub(crate) fn with_value(text: &str, path: &str, value: &str) -> String {
    let (Ok(mut document), Ok(value)) = (text.parse::<DocumentMut>(), value.parse::<Value>())
    else {
        let (table, key) = path.split_once('.').unwrap_or(("options", path));
        return format!("{}\n\n[{table}]\n{key} = {value}\n", text.trim_end());
    };
    let parts = parts(path);
    let Some((key, tables)) = parts.split_last() else { return text.to_owned() };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for (depth, name) in tables.iter().enumerate() {
        let below = if table.contains_key(name) {
            table.get_mut(name)
        } else {
            let mut missing = Table::new();
            // Below a written table, keys are dotted.
            missing.set_dotted(depth > 0);
            Some(table.entry(name).or_insert(Item::Table(missing)))
        };
        match below.and_then(Item::as_table_like_mut) {
            Some(below) => table = below,
            // The name of a table is taken by a value: nothing can be set below it.
            None => return text.to_owned(),
        }
    }
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
    document.to_string()
}

/// The text with keys set to values, written as for `--set`.
pub(crate) fn with_changes(text: &str, changes: &SpecChanges) -> String {
    changes.iter().fold(text.to_owned(), |text, (path, value)| {
        // TOML and JSON write tables of stages differently.
        let written = toml::Value::try_from(value).map(|value| value.to_string());
        with_value(&text, path, &written.unwrap_or_else(|_| value.to_string()))
    })
}

/// The text without a key. Comments above the key stay if possible.
pub(crate) fn without_value(text: &str, path: &str) -> String {
    let mut expected = values(text);
    if expected.remove(path).is_none() {
        return text.to_owned();
    }
    let known = lines(text);
    let others = text.lines().zip(&known).filter(|(_, line)| line.path().as_deref() != Some(path));
    let without: String = others.map(|(line, _)| format!("{line}\n")).collect();
    if values(&without) == expected {
        return without;
    }
    let Ok(mut document) = text.parse::<DocumentMut>() else { return text.to_owned() };
    let parts = parts(path);
    let Some((key, tables)) = parts.split_last() else { return text.to_owned() };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        match table.get_mut(name).and_then(Item::as_table_like_mut) {
            Some(below) => table = below,
            None => return text.to_owned(),
        }
    }
    table.remove(key);
    document.to_string()
}

/// The model file that a spec names, if any. Relative paths are relative to `base`.
pub(crate) fn model_file(values: &BTreeMap<String, String>, base: &Path) -> Option<PathBuf> {
    let written = text_value(values, MODEL_FILE)?;
    if !written.is_empty() { Some(base.join(written)) } else { None }
}

/// The value of a key that is a string.
pub(crate) fn text_value(values: &BTreeMap<String, String>, path: &str) -> Option<String> {
    let value = values.get(path)?;
    let table: toml::Table = format!("text = {value}").parse().ok()?;
    table.get("text").and_then(toml::Value::as_str).map(str::to_owned)
}

/// The text with an absolute path of its model, valid in any directory. Lines keep their numbers.
pub(crate) fn with_whole_path(text: &str, base: &Path) -> String {
    match text_value(&values(text), MODEL_FILE) {
        Some(written) if !written.is_empty() && Path::new(&written).is_relative() => {
            with_value(text, MODEL_FILE, &quoted(&base.join(written).to_string_lossy()))
        }
        _ => text.to_owned(),
    }
}

/// The text for a file in this directory. A model in it or below it gets a relative path, so that
/// both can be moved together.
pub(crate) fn for_directory(text: &str, directory: &Path) -> String {
    let file = model_file(&values(text), Path::new(""));
    let inside = file.as_deref().and_then(|file| file.strip_prefix(directory).ok());
    match inside.and_then(Path::to_str) {
        Some(inside) => with_value(text, MODEL_FILE, &quoted(inside)),
        None => text.to_owned(),
    }
}

/// The differences from another spec, as text: `options.num_io_tiles = 32`.
pub(crate) fn changes(from: &str, to: &str) -> Vec<String> {
    let from = values(from);
    let to = values(to);
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
    fn setting_a_key_changes_nothing_else() {
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
    fn any_toml_syntax_is_changed_in_place() {
        let cases = [
            ("[options] # mine\nnum_io_tiles = 32\n", "options.num_io_tiles", "64"),
            ("[options.host] # c\nloader = \"sync\"\n", "options.host.loader", "\"async\""),
            ("[options.host]\nloader = \"sync\"\n", "options.num_io_tiles", "64"),
            ("options = { num_io_tiles = 8, a = 1 } # both\n", "options.num_io_tiles", "64"),
            ("options = { a = 1 }\n", "options.host.loader", "\"sync\""),
            (
                "[model]\nnote = \"\"\"\nnum_io_tiles = 5\n\"\"\"\n[options]\nnum_io_tiles = 8\n",
                "options.num_io_tiles",
                "64",
            ),
            ("options.num_io_tiles = 8 # dotted\n", "options.num_io_tiles", "64"),
            ("[ options ]\n\"num_io_tiles\" = 8 # \"quoted\" = 7\n", "options.num_io_tiles", "64"),
            (
                "# all of it\n\n[options]\nstages = [ # inside\n  [\"a\"], # first\n]\n",
                "options.stages",
                "[[\"b\"]]",
            ),
        ];
        for (text, path, value) in cases {
            let changed = with_value(text, path, value);
            let mut expected = values(text);
            expected.insert(path.to_owned(), value.to_owned());
            assert_eq!(values(&changed), expected, "{path}: {changed}");
            assert_eq!(with_value(&changed, path, value), changed, "{path}: {changed}");
            for comment in ["# mine", "# c", "# both", "# dotted", "# \"quoted\"", "# all of it"] {
                assert_eq!(text.contains(comment), changed.contains(comment), "{changed}");
            }
            let back = without_value(&changed, path);
            expected.remove(path);
            assert_eq!(values(&back), expected, "{path}: {back}");
        }
        // A value cannot be a table too.
        assert_eq!(with_value("options = 3\n", "options.a", "1"), "options = 3\n");
        assert_eq!(without_value("options = 3\n", "options.a"), "options = 3\n");
    }

    #[test]
    fn keys_are_found_by_line() {
        assert_eq!(key_on_line(TEXT, 1).as_deref(), Some("model.name"));
        assert_eq!(key_on_line(TEXT, 0), None);
        assert_eq!(key_on_line(TEXT, 8).as_deref(), Some("options.location.weights.on_chip"));
        assert_eq!(table_on_line(TEXT, 8), "options");
        assert_eq!(key_on_line("", 7), None);
    }

    #[test]
    fn changes_have_texts() {
        let changed = with_value(TEXT, "model.width", "7");
        assert_eq!(changes(TEXT, &changed), ["model.width = 7"]);
        assert_eq!(changes(&changed, TEXT), ["model.width back to its default"]);
        assert!(changes(TEXT, TEXT).is_empty());
    }

    #[test]
    fn dimensions_of_any_name_are_found_and_written() {
        let names = ["batch", "past + 1", "input.1", "a\"b\\", "卷积", "x=y", "", "tab\t"];
        for start in ["[model]\nonnx = \"a\"\n", "[model]\n[model.dim]\n", ""] {
            let mut text = start.to_owned();
            let mut expected = values(start);
            for (size, name) in names.iter().enumerate() {
                for size in [size, size + 10] {
                    text = with_value(&text, &dim_key(name), &size.to_string());
                    expected.insert(dim_key(name), size.to_string());
                    assert_eq!(values(&text), expected, "{name}: {text}");
                }
            }
            let known: Vec<String> = lines(&text).iter().filter_map(SpecLine::path).collect();
            assert!(names.iter().all(|name| known.contains(&dim_key(name))), "{known:?}");
        }
    }

    #[test]
    fn model_paths_stay_valid_when_specs_move() {
        let text = "[model]\n# mine\nonnx = \"nets/a.onnx\" # here\n";
        let whole = with_whole_path(text, Path::new("/home/me"));
        assert_eq!(whole, text.replace("nets/", "/home/me/nets/"));
        assert_eq!(with_whole_path(&whole, Path::new("/other")), whole);
        assert_eq!(for_directory(&whole, Path::new("/home/me")), text);
        assert_eq!(for_directory(&whole, Path::new("/home/you")), whole);
        let odd = with_value("", MODEL_FILE, &quoted("/a \"b\"\\/c\n.onnx"));
        assert_eq!(
            model_file(&values(&odd), Path::new("/")),
            Some(PathBuf::from("/a \"b\"\\/c\n.onnx"))
        );
        for text in ["", "[model]\nname = \"mlp\"\n", "[model]\nonnx = 7\n"] {
            assert_eq!(with_whole_path(text, Path::new("/a")), text);
            assert_eq!(for_directory(text, Path::new("/a")), text);
        }
    }

    #[test]
    fn invalid_text_has_no_values_and_can_be_extended() {
        for text in ["= = =", "[[[", "\"", "[a\nb", "\u{0}"] {
            assert!(values(text).is_empty());
            assert!(with_value(text, "options.num_io_tiles", "0").contains("num_io_tiles = 0"));
        }
    }
}
