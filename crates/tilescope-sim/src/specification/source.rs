//! The source of a spec: a file or a bundled text, with overrides.

use super::bundled::{BUNDLED_SPECS, find_bundled_spec};
use super::calibration::CALIBRATION_TABLE;
use super::error::{SpecError, SpecLocation};
use super::keys::{self, SpecKeyType};
use crate::spec_keys::SpecValue;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use tilescope_onnx::OnnxFile;
use tilescope_report::text_file::read_text;
use tilescope_report::units::Bytes;
use toml::de::{DeTable, DeValue};

/// The largest size of a spec file in bytes, which is far above any real one.
const MAX_SPEC_BYTES: Bytes = Bytes(1 << 20);

/// A value and the place where it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LocatedSpecValue {
    pub value: SpecValue,
    pub location: SpecLocation,
}

/// The text of a spec and its overrides.
#[derive(Clone, Debug)]
pub struct SpecSource {
    /// Path or bundled name, for messages.
    pub name: String,
    pub text: String,
    /// `key.path=value` arguments. Later ones take precedence.
    pub overrides: Vec<String>,
    /// The ONNX file that replaces a spec: all keys then have their defaults.
    pub model: Option<String>,
    /// The content of that file, if it was read before.
    pub read_model: Option<Arc<OnnxFile>>,
    /// Constants that replace those of the text.
    pub calibration: Option<CalibrationText>,
}

/// The text of a file with the table `[target.calibration]`.
#[derive(Clone, Debug)]
pub struct CalibrationText {
    /// The path, for messages.
    pub name: String,
    pub text: String,
}

impl SpecSource {
    /// Finds a spec by the path of a file, the path of an ONNX file, or the name of a bundled spec.
    ///
    /// # Errors
    /// Returns an error with the problem of the file, or with the nearest bundled name.
    pub fn find(spec: &str, overrides: &[String]) -> Result<Self, SpecError> {
        let source = |name: &str, text: String| Self {
            name: name.to_string(),
            text,
            overrides: overrides.to_vec(),
            model: None,
            read_model: None,
            calibration: None,
        };
        let path = Path::new(spec);
        let looks_like_a_file = path.exists() || spec.contains(['/', '\\', '.']);
        match find_bundled_spec(spec) {
            Some(found) if !path.is_file() => Ok(source(spec, found.text.to_string())),
            None if !looks_like_a_file => {
                let names: Vec<&str> = BUNDLED_SPECS.iter().map(|spec| spec.name).collect();
                let problem = format!("no file or bundled spec named {spec:?}");
                Err(SpecError::new(SpecLocation::NotWritten, "", problem).nearest(spec, &names))
            }
            _ if OnnxFile::is_at(path) => {
                Ok(Self { model: Some(spec.to_string()), ..source(spec, String::new()) })
            }
            _ => Ok(source(spec, read(path, "spec")?)),
        }
    }

    /// Makes a spec of an ONNX file that was read before, so that it is not read again.
    pub fn of_model(path: &str, file: Arc<OnnxFile>, overrides: Vec<String>) -> Self {
        Self {
            overrides,
            model: Some(path.to_string()),
            read_model: Some(file),
            ..Self::from_text(path, "")
        }
    }

    /// Replaces the constants of the spec by those of a file that `tilescope calibrate` wrote.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn with_calibration(self, path: &str) -> Result<Self, SpecError> {
        let text = read(Path::new(path), "calibration")?;
        let calibration = Some(CalibrationText { name: path.to_string(), text });
        Ok(Self { calibration, ..self })
    }

    /// Makes a spec from text.
    pub fn from_text(name: &str, text: &str) -> Self {
        Self {
            name: name.to_string(),
            text: text.to_string(),
            overrides: Vec::new(),
            model: None,
            read_model: None,
            calibration: None,
        }
    }

    /// All keys that are set, by dotted path.
    pub(super) fn settings(&self) -> Result<BTreeMap<String, LocatedSpecValue>, SpecError> {
        let mut settings = BTreeMap::new();
        if let Some(model) = &self.model {
            let value = SpecValue::String(model.clone());
            let located = LocatedSpecValue { value, location: SpecLocation::NotWritten };
            settings.insert("model.onnx".to_string(), located);
        }
        SpecText { name: &self.name, text: &self.text }.collect_all(&mut settings)?;
        if let Some(calibration) = &self.calibration {
            calibration.replace(&mut settings)?;
        }
        for text in &self.overrides {
            let (path, value) = parse_override(text)?;
            settings.insert(path, LocatedSpecValue { value, location: SpecLocation::Override });
        }
        Ok(settings)
    }
}

impl CalibrationText {
    /// Replaces the constants that are set.
    fn replace(&self, settings: &mut BTreeMap<String, LocatedSpecValue>) -> Result<(), SpecError> {
        let mut own = BTreeMap::new();
        SpecText { name: &self.name, text: &self.text }.collect_all(&mut own)?;
        if let Some((path, other)) = own.iter().find(|(path, _)| !is_constant(path)) {
            let problem =
                format!("a calibration file may only have the table [{CALIBRATION_TABLE}]");
            return Err(SpecError::new(other.location.clone(), path, problem));
        }
        if own.is_empty() {
            let location = SpecLocation::Line { file: self.name.clone(), line: 1 };
            let problem = "missing table; write the file with tilescope calibrate";
            return Err(SpecError::new(location, CALIBRATION_TABLE, problem));
        }
        settings.retain(|path, _| !is_constant(path));
        settings.extend(own);
        Ok(())
    }
}

/// True for the path of a key of the calibration table.
fn is_constant(path: &str) -> bool {
    path.strip_prefix(CALIBRATION_TABLE).is_some_and(|rest| rest.starts_with('.'))
}

/// The text of a file with tables of a spec.
struct SpecText<'a> {
    name: &'a str,
    text: &'a str,
}

impl SpecText<'_> {
    /// Adds all keys, by dotted path.
    fn collect_all(
        &self,
        settings: &mut BTreeMap<String, LocatedSpecValue>,
    ) -> Result<(), SpecError> {
        let at = |offset: usize| SpecLocation::Line {
            file: self.name.to_string(),
            line: line_of(self.text, offset),
        };
        let table = DeTable::parse(self.text).map_err(|error| {
            let location = at(error.span().map_or(0, |span| span.start));
            SpecError::new(location, "", format!("not valid TOML: {}", error.message()))
        })?;
        for (section, entries) in table.get_ref().iter() {
            let section_name = section.get_ref().as_ref();
            let DeValue::Table(entries) = entries.get_ref() else {
                return Err(unknown_table(at(section.span().start), section_name));
            };
            if !["model", "target", "options"].contains(&section_name) {
                return Err(unknown_table(at(section.span().start), section_name));
            }
            self.collect(section_name, entries, settings)?;
        }
        Ok(())
    }

    /// Adds the keys of a table and of its inner tables, by dotted path.
    fn collect(
        &self,
        prefix: &str,
        table: &DeTable,
        settings: &mut BTreeMap<String, LocatedSpecValue>,
    ) -> Result<(), SpecError> {
        for (key, value) in table.iter() {
            let path = format!("{prefix}.{}", key.get_ref());
            if let DeValue::Table(inner) = value.get_ref() {
                self.collect(&path, inner, settings)?;
                continue;
            }
            let line = line_of(self.text, key.span().start);
            let location = SpecLocation::Line { file: self.name.to_string(), line };
            let value = SpecValue::from_toml(value.get_ref())
                .map_err(|problem| SpecError::new(location.clone(), &path, problem.to_string()))?;
            settings.insert(path, LocatedSpecValue { value, location });
        }
        Ok(())
    }
}

fn unknown_table(location: SpecLocation, name: &str) -> SpecError {
    let problem = "unknown table; a spec has [model], [target] and [options]";
    SpecError::new(location, name, problem).nearest(name, &["model", "target", "options"])
}

/// Splits `options.gradient_accumulation=20` into key and value.
fn parse_override(text: &str) -> Result<(String, SpecValue), SpecError> {
    let Some((path, value)) = text.split_once('=') else {
        let problem = "expected KEY=VALUE, for example options.gradient_accumulation=20";
        return Err(SpecError::new(SpecLocation::Override, text, problem));
    };
    let path = path.trim();
    let value = value.trim();
    let is_text = keys::KEYS
        .iter()
        .any(|key| key.path == path && matches!(key.value_type, SpecKeyType::Text));
    Ok((path.to_string(), SpecValue::written(value, is_text)))
}

/// Reads the text of a file that should be a `kind`.
fn read(path: &Path, kind: &str) -> Result<String, SpecError> {
    let refuse = |problem: String| SpecError::new(SpecLocation::NotWritten, "", problem);
    let shown = path.display();
    read_text(path, MAX_SPEC_BYTES).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => {
            refuse(format!("a {kind} is a TOML file, not a directory: {shown}"))
        }
        ErrorKind::FileTooLarge => refuse(format!("a {kind} must not exceed 1 MiB: {shown}")),
        ErrorKind::InvalidData => refuse(format!("a {kind} must be UTF-8 text: {shown}")),
        _ => refuse(format!("cannot read {kind}: {error}: {shown}")),
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}
