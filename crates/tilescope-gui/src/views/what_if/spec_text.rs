//! Reading and changing single keys of a spec's text, so that the rest stays as the user wrote it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tilescope_analysis::insights::SpecChanges;

/// The key of the file of an imported model.
pub(crate) const MODEL_FILE: &str = "model.onnx";

/// The key of its digest, when it was last simulated.
pub(crate) const MODEL_DIGEST: &str = "model.onnx_digest";

/// What stands before the name of a symbolic dimension in a key. The name may have any characters.
const DIM_PREFIX: &str = "model.dim.";

/// The key of a symbolic dimension.
pub(crate) fn dim_key(name: &str) -> String {
    format!("{DIM_PREFIX}{name}")
}

/// The name of the symbolic dimension that a key is about.
pub(crate) fn dim_name(path: &str) -> Option<&str> {
    path.strip_prefix(DIM_PREFIX)
}

/// The table a line of a text stands in, and its key without the table, where it has one.
struct SpecLine {
    table: String,
    key: Option<String>,
}

fn lines(text: &str) -> Vec<SpecLine> {
    let mut table = String::new();
    let line = |line| {
        let trimmed = str::trim(line);
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
            && !name.contains(['[', '"', '='])
        {
            table = name.trim().to_owned();
            return SpecLine { table: table.clone(), key: None };
        }
        let key = assignment(trimmed).and_then(|at| plain_key(trimmed[..at].trim()));
        SpecLine { table: table.clone(), key }
    };
    text.lines().map(line).collect()
}

/// Where the `=` of a line is.
fn assignment(line: &str) -> Option<usize> {
    outside_quotes(line, '=')
}

/// The first place of a letter that no quotes are around.
fn outside_quotes(line: &str, wanted: char) -> Option<usize> {
    let (mut quote, mut escaped) = (None, false);
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

/// A key as TOML writes it, its parts joined by points: `dim."a b"` is `dim.a b`.
fn plain_key(written: &str) -> Option<String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if !written.is_empty() && written.chars().all(letter) {
        return Some(written.to_owned());
    }
    values(&format!("{written} = 0\n")).into_keys().next()
}

/// A text as TOML writes it, on one line.
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

/// A key as TOML writes it inside a table.
fn written_key(path: &str, table: &str) -> String {
    let inside = if table.is_empty() { path } else { &path[table.len() + 1..] };
    let Some(name) = dim_name(path) else { return inside.to_owned() };
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_bare = !name.is_empty() && name.chars().all(bare);
    let name = if is_bare { name.to_owned() } else { quoted(name) };
    match table {
        "model.dim" => name,
        "model" => format!("dim.{name}"),
        _ => format!("{DIM_PREFIX}{name}"),
    }
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
        let front = assignment(old).map_or("", |at| &old[..at]).trim_end();
        let comment = outside_quotes(old, '#').map_or("", |at| &old[at..]);
        let gap = if comment.is_empty() { "" } else { " " };
        all[at] = format!("{front} = {value}{gap}{comment}");
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
    let inside = |line: &SpecLine| {
        line.key.is_none()
            && !line.table.is_empty()
            && path.starts_with(&format!("{}.", line.table))
    };
    let table = known.iter().filter(|line| inside(line)).map(|line| line.table.clone());
    match table.max_by_key(String::len) {
        Some(table) => {
            let last = known
                .iter()
                .enumerate()
                .rev()
                .find(|(at, line)| line.table == table && !all[*at].trim().is_empty());
            let at = last.map_or(all.len(), |(at, _)| at + 1);
            all.insert(at, format!("{} = {value}", written_key(path, &table)));
        }
        None => {
            let (table, _) = path.split_once('.').unwrap_or(("options", path));
            let key = written_key(path, table);
            all.extend([String::new(), format!("[{table}]"), format!("{key} = {value}")]);
        }
    }
    all.join("\n") + "\n"
}

/// The text with keys set to values, as `--set` takes them.
pub(crate) fn with_changes(text: &str, changes: &SpecChanges) -> String {
    changes.iter().fold(text.to_owned(), |text, (path, value)| {
        // Tables of stages are written in another way in TOML than in JSON.
        let written = toml::Value::try_from(value).map(|value| value.to_string());
        with_value(&text, path, &written.unwrap_or_else(|_| value.to_string()))
    })
}

/// The text without a key on a line of its own.
pub(crate) fn without_value(text: &str, path: &str) -> String {
    let known = lines(text);
    let others = text.lines().zip(&known).filter(|(_, line)| line.path().as_deref() != Some(path));
    others.map(|(line, _)| format!("{line}\n")).collect()
}

/// The file of the model that a spec names, if it names one; relative paths lie in `base`.
pub(crate) fn model_file(values: &BTreeMap<String, String>, base: &Path) -> Option<PathBuf> {
    let written = text_value(values, MODEL_FILE)?;
    (!written.is_empty()).then(|| base.join(written))
}

/// The value of a key that is a text.
pub(crate) fn text_value(values: &BTreeMap<String, String>, path: &str) -> Option<String> {
    let value = values.get(path)?;
    let table: toml::Table = format!("text = {value}").parse().ok()?;
    table.get("text").and_then(toml::Value::as_str).map(str::to_owned)
}

/// The text for a file of any directory: the path of its model does not depend on where the spec
/// is. Lines keep their numbers.
pub(crate) fn with_whole_path(text: &str, base: &Path) -> String {
    match text_value(&values(text), MODEL_FILE) {
        Some(written) if !written.is_empty() && Path::new(&written).is_relative() => {
            with_value(text, MODEL_FILE, &quoted(&base.join(written).to_string_lossy()))
        }
        _ => text.to_owned(),
    }
}

/// The text for a file of this directory: a model that lies there, or below, is named from there, so
/// that both can be moved together.
pub(crate) fn for_directory(text: &str, directory: &Path) -> String {
    let file = model_file(&values(text), Path::new(""));
    let inside = file.as_deref().and_then(|file| file.strip_prefix(directory).ok());
    match inside.and_then(Path::to_str) {
        Some(inside) => with_value(text, MODEL_FILE, &quoted(inside)),
        None => text.to_owned(),
    }
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
    fn the_path_of_a_model_stays_right_wherever_its_spec_is() {
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
    fn nonsense_has_no_values_and_can_be_written_on() {
        for text in ["= = =", "[[[", "\"", "[a\nb", "\u{0}"] {
            assert!(values(text).is_empty());
            assert!(with_value(text, "options.num_io_tiles", "0").contains("num_io_tiles = 0"));
        }
    }
}
