//! `debug.cbor`: the names that frameworks and libraries give to their operations. Poplar writes it
//! beside a report.
//!
//! Its layout is not documented. This reader relies on what the public tests of Poplar's frameworks
//! read: a map with `contexts`, a list of maps, and `stringTable`, the strings that numbers in the
//! contexts refer to. A context has an `id`, the id of its parent, the `layer` that made it, a
//! name, and fields of its layer: `opName` and `opType` of ONNX, `op_name` and `op_type` of XLA.
//!
//! Files have hundreds of megabytes. They are therefore read as a stream, and only the used
//! parts are kept.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod cbor_stream;

use cbor_stream::{CborStream, MAX_NAME_BYTES, Reading, Stop, problem_of};
use cbor4ii::core::dec::{Decode, Error};
use cbor4ii::core::major;
use cbor4ii::core::types::{Array, Map};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The largest file that is read, in bytes; real ones have up to 400 MB.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// The largest number of contexts that are kept.
const MAX_CONTEXTS: usize = 1 << 22;
/// The maximum number of bytes of all names and layers.
const MAX_TEXT_BYTES: usize = 128 << 20;
/// The maximum number of ancestors that are followed.
const MAX_ANCESTORS: usize = 256;
/// The maximum number of names that are joined into one.
const MAX_JOINED: usize = 64;

/// The reason why the contexts of a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DebugCborError {
    /// The system could not read the file.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The bytes are malformed at this position.
    #[error("{problem} at byte {at}")]
    Format { problem: String, at: u64 },
    /// The file is larger than any real one.
    #[error("{0}")]
    TooLarge(&'static str),
    /// The file is CBOR, but has no contexts.
    #[error("it has no list `contexts`")]
    NoContexts,
}

/// An index into the list of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextId(u32);

/// A text of a context, as the file gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WrittenText {
    #[default]
    None,
    Text(TextId),
    /// An index into the string table, which may come later in the file.
    InTable(u32),
}

/// A debug context: the layer that made something, and its name there.
#[derive(Clone, Copy, Debug, Default)]
struct DebugContext {
    id: u64,
    parent: Option<u64>,
    layer: WrittenText,
    name: WrittenText,
    /// The operation under the name that users know, if its layer gives one.
    operation: WrittenText,
    kind: WrittenText,
}

/// A debug context in plain strings, as users read it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DebugFrame {
    /// The layer that made it: `poplar`, `poplibs`, `popart`, `onnx`, `xla_op`, …
    pub layer: String,
    /// Its name in that layer; empty if it has none.
    pub name: String,
    /// The operation that it belongs to, for layers of frameworks.
    pub operation: Option<String>,
    /// The kind of operation, if the layer gives it.
    pub kind: Option<String>,
}

/// An index into the list of contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ContextPlace(u32);

/// All contexts of a file, with their texts.
#[derive(Debug, Default)]
pub(crate) struct DebugContexts {
    texts: Vec<String>,
    table: Vec<TextId>,
    /// Sorted by id.
    contexts: Vec<DebugContext>,
}

impl DebugContexts {
    /// Reads a file.
    ///
    /// # Errors
    /// A file that is not CBOR, is cut off, or is larger than any real one.
    pub(crate) fn read(path: &Path) -> Result<Self, DebugCborError> {
        let file = File::open(path)?;
        if file.metadata()?.len() > MAX_FILE_BYTES {
            return Err(DebugCborError::TooLarge("it is longer than 1 GiB"));
        }
        Self::read_from(BufReader::with_capacity(1 << 16, file))
    }

    fn read_from(bytes: impl BufRead) -> Result<Self, DebugCborError> {
        let mut stream = CborStream::new(bytes);
        let mut reading = DebugCborReading::default();
        match reading.file(&mut stream) {
            Ok(()) => reading.finish(),
            Err(Stop::Cbor(Error::Read(error))) => Err(error.into()),
            Err(Stop::Cbor(error)) => {
                let problem = problem_of(&error).to_owned();
                Err(DebugCborError::Format { problem, at: stream.at() })
            }
            Err(Stop::TooLarge(words)) => Err(DebugCborError::TooLarge(words)),
        }
    }

    /// The places of all contexts.
    pub(crate) fn places(&self) -> impl Iterator<Item = ContextPlace> + use<> {
        (0..u32::try_from(self.contexts.len()).unwrap_or(0)).map(ContextPlace)
    }

    /// A context and its ancestors, itself first.
    pub(crate) fn chain(&self, place: ContextPlace) -> Vec<ContextPlace> {
        let chain =
            std::iter::successors(Some(place), |at| self.place_of(self.context(*at)?.parent?))
                .take(MAX_ANCESTORS + 1);
        let chain: Vec<ContextPlace> = chain.collect();
        // A chain this long is a cycle, so its ancestors are ignored.
        if chain.len() > MAX_ANCESTORS { vec![place] } else { chain }
    }

    /// The description of a context.
    pub(crate) fn frame(&self, place: ContextPlace) -> DebugFrame {
        let context = self.context(place).copied().unwrap_or_default();
        let optional =
            |text| Some(self.text(text)).filter(|text| !text.is_empty()).map(str::to_owned);
        DebugFrame {
            layer: self.text(context.layer).to_owned(),
            name: self.text(context.name).to_owned(),
            operation: optional(context.operation),
            kind: optional(context.kind),
        }
    }

    /// The names of a context and its ancestors, the topmost first. Programs made below the context
    /// have this path as a prefix of their names. `None` if it is longer than `longest`.
    pub(crate) fn path(&self, place: ContextPlace, longest: usize) -> Option<String> {
        let mut names: Vec<&str> = self.chain(place).into_iter().map(|at| self.name(at)).collect();
        names.retain(|name| !name.is_empty());
        let bytes: usize = names.iter().map(|name| name.len() + 1).sum();
        names.reverse();
        if bytes <= longest + 1 { Some(names.join("/")) } else { None }
    }

    /// The name of a context; empty if it has none.
    pub(crate) fn name(&self, place: ContextPlace) -> &str {
        self.context(place).map_or("", |context| self.text(context.name))
    }

    /// The operation of a context; empty if it has none.
    pub(crate) fn operation(&self, place: ContextPlace) -> &str {
        self.context(place).map_or("", |context| self.text(context.operation))
    }

    fn context(&self, place: ContextPlace) -> Option<&DebugContext> {
        self.contexts.get(place.0 as usize)
    }

    fn place_of(&self, id: u64) -> Option<ContextPlace> {
        let found = self.contexts.binary_search_by_key(&id, |context| context.id).ok()?;
        u32::try_from(found).ok().map(ContextPlace)
    }

    fn text(&self, text: WrittenText) -> &str {
        let id = match text {
            WrittenText::None => None,
            WrittenText::Text(id) => Some(id),
            WrittenText::InTable(place) => self.table.get(place as usize).copied(),
        };
        id.and_then(|id| self.texts.get(id.0 as usize)).map_or("", String::as_str)
    }
}

/// A value of a field of a context, reduced to the kinds that are used.
enum FieldValue {
    Number(u64),
    Text(String),
    Many(Vec<FieldValue>),
    Other,
}

/// The contexts and texts read so far.
#[derive(Default)]
struct DebugCborReading {
    found: DebugContexts,
    has_contexts: bool,
    known: HashMap<String, TextId>,
    text_bytes: usize,
}

impl DebugCborReading {
    /// Reads the whole file: a map, or just the list of contexts.
    fn file<R: BufRead>(&mut self, stream: &mut CborStream<R>) -> Reading<()> {
        match stream.skip_tags()? {
            major::ARRAY => self.contexts(stream),
            major::MAP => {
                let mut left = Map::<()>::len(stream)?;
                while stream.goes_on(&mut left)? {
                    let key = stream.text()?;
                    match (key.as_deref(), stream.skip_tags()?) {
                        (Some("contexts"), major::ARRAY) => self.contexts(stream)?,
                        (Some("stringTable"), major::ARRAY) => self.string_table(stream)?,
                        _ => stream.skip()?,
                    }
                }
                Ok(())
            }
            _ => stream.skip(),
        }
    }

    fn string_table<R: BufRead>(&mut self, stream: &mut CborStream<R>) -> Reading<()> {
        let mut left = Array::<()>::len(stream)?;
        while stream.goes_on(&mut left)? {
            let text = stream.text()?.unwrap_or_default();
            let id = self.intern(text)?;
            self.found.table.push(id);
            if self.found.table.len() > MAX_CONTEXTS {
                return Err(Stop::TooLarge("its string table is longer than that of any program"));
            }
        }
        Ok(())
    }

    fn contexts<R: BufRead>(&mut self, stream: &mut CborStream<R>) -> Reading<()> {
        self.has_contexts = true;
        let mut left = Array::<()>::len(stream)?;
        while stream.goes_on(&mut left)? {
            if stream.skip_tags()? != major::MAP {
                stream.skip()?;
                continue;
            }
            if let Some(context) = self.context(stream)? {
                self.found.contexts.push(context);
            }
            if self.found.contexts.len() > MAX_CONTEXTS {
                return Err(Stop::TooLarge("it has more than 4 million contexts"));
            }
        }
        Ok(())
    }

    /// Reads a context. Gives nothing for a context without an id, since nothing can refer to it.
    fn context<R: BufRead>(&mut self, stream: &mut CborStream<R>) -> Reading<Option<DebugContext>> {
        let mut context = DebugContext::default();
        let mut id = None;
        let mut left = Map::<()>::len(stream)?;
        while stream.goes_on(&mut left)? {
            let key = stream.text()?.unwrap_or_default();
            match key.as_str() {
                "id" => id = number(&value(stream)?),
                "parent" | "parentId" | "parent_id" | "parents" | "parentIds" => {
                    context.parent = number(&value(stream)?).or(context.parent);
                }
                "layer" => context.layer = self.written(value(stream)?)?,
                "name" | "names" => context.name = self.written(value(stream)?)?,
                "opName" | "op_name" | "hlo_name" => {
                    context.operation = self.written(value(stream)?)?;
                }
                "opType" | "op_type" | "opcode" | "opid" | "class" | "api" => {
                    context.kind = self.written(value(stream)?)?;
                }
                _ => stream.skip()?,
            }
        }
        Ok(id.map(|id| DebugContext { id, ..context }))
    }

    fn written(&mut self, value: FieldValue) -> Reading<WrittenText> {
        Ok(match value {
            FieldValue::Text(text) => WrittenText::Text(self.intern(text)?),
            FieldValue::Number(place) => {
                u32::try_from(place).map_or(WrittenText::None, WrittenText::InTable)
            }
            FieldValue::Many(parts) => {
                let texts = parts.into_iter().filter_map(|part| match part {
                    FieldValue::Text(text) => Some(text),
                    _ => None,
                });
                let mut joined = texts.collect::<Vec<_>>().join("/");
                joined.truncate(joined.floor_char_boundary(MAX_NAME_BYTES));
                WrittenText::Text(self.intern(joined)?)
            }
            FieldValue::Other => WrittenText::None,
        })
    }

    fn intern(&mut self, text: String) -> Reading<TextId> {
        if let Some(known) = self.known.get(&text) {
            return Ok(*known);
        }
        self.text_bytes += text.len();
        if self.text_bytes > MAX_TEXT_BYTES {
            return Err(Stop::TooLarge("its names are longer than those of any program"));
        }
        // The number of texts is bounded by the bytes of the file.
        let id = TextId(u32::try_from(self.found.texts.len()).unwrap_or(u32::MAX));
        self.found.texts.push(text.clone());
        self.known.insert(text, id);
        Ok(id)
    }

    fn finish(self) -> Result<DebugContexts, DebugCborError> {
        if !self.has_contexts {
            return Err(DebugCborError::NoContexts);
        }
        let mut found = self.found;
        // Of several contexts with one id, the first counts.
        found.contexts.sort_by_key(|context| context.id);
        found.contexts.dedup_by_key(|context| context.id);
        Ok(found)
    }
}

/// A number, or the first one of a list.
fn number(value: &FieldValue) -> Option<u64> {
    match value {
        FieldValue::Number(number) => Some(*number),
        FieldValue::Many(many) => many.iter().find_map(|part| match part {
            FieldValue::Number(number) => Some(*number),
            _ => None,
        }),
        FieldValue::Text(_) | FieldValue::Other => None,
    }
}

fn value<R: BufRead>(stream: &mut CborStream<R>) -> Reading<FieldValue> {
    match stream.skip_tags()? {
        major::ARRAY => {
            let mut left = Array::<()>::len(stream)?;
            let mut many = Vec::new();
            while stream.goes_on(&mut left)? {
                let one = single(stream)?;
                if many.len() < MAX_JOINED {
                    many.push(one);
                }
            }
            Ok(FieldValue::Many(many))
        }
        _ => single(stream),
    }
}

fn single<R: BufRead>(stream: &mut CborStream<R>) -> Reading<FieldValue> {
    Ok(match stream.skip_tags()? {
        major::UNSIGNED => FieldValue::Number(u64::decode(stream)?),
        major::STRING => stream.text()?.map_or(FieldValue::Other, FieldValue::Text),
        _ => {
            stream.skip()?;
            FieldValue::Other
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use tilescope_test_tiers::cases;

    /// Encodes a JSON value as CBOR, maps and lists with or without their lengths.
    fn cbor(value: &Value, endless: bool, bytes: &mut Vec<u8>) {
        let head = |major: u8, length: usize, bytes: &mut Vec<u8>| match length {
            0..24 => bytes.push(major << 5 | length as u8),
            24..256 => bytes.extend([major << 5 | 24, length as u8]),
            _ => {
                bytes.push(major << 5 | 26);
                bytes.extend((length as u32).to_be_bytes());
            }
        };
        match value {
            Value::Null => bytes.push(0xf6),
            Value::Bool(flag) => bytes.push(0xf4 + u8::from(*flag)),
            Value::Number(number) => head(0, number.as_u64().unwrap() as usize, bytes),
            Value::String(text) => {
                head(3, text.len(), bytes);
                bytes.extend(text.as_bytes());
            }
            Value::Array(items) => {
                if endless {
                    bytes.push(0x9f)
                } else {
                    head(4, items.len(), bytes)
                }
                items.iter().for_each(|item| cbor(item, endless, bytes));
                bytes.extend(endless.then_some(0xff));
            }
            Value::Object(entries) => {
                if endless {
                    bytes.push(0xbf)
                } else {
                    head(5, entries.len(), bytes)
                }
                for (key, item) in entries {
                    cbor(&json!(key), endless, bytes);
                    cbor(item, endless, bytes);
                }
                bytes.extend(endless.then_some(0xff));
            }
        }
    }

    fn encoded(value: &Value, endless: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        cbor(value, endless, &mut bytes);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<DebugContexts, DebugCborError> {
        // A small buffer, so that values cross its ends.
        DebugContexts::read_from(BufReader::with_capacity(7, bytes))
    }

    fn plain() -> Value {
        json!({
            "contexts": [
                { "id": 1, "layer": "onnx", "category": "op", "opName": "dense/fwd", "opType": "MatMul",
                  "location": { "fileName": 0, "functionName": 1, "lineNumber": 42 },
                  "input": ["x", "w"], "attribute": { "alpha": "1.0" } },
                { "id": 2, "parentId": 1, "layer": 2, "name": 3 },
                { "id": 3, "parent": [2], "layer": "poplar", "names": ["Convolve", "ExchangePre"] },
            ],
            "stringTable": ["model.py", "forward", "poplibs", "Conv_1"],
            "version": 3,
        })
    }

    #[test]
    fn contexts_are_read_with_their_parents_and_layers() {
        for endless in [false, true] {
            let contexts = read(&encoded(&plain(), endless)).unwrap();
            let last = ContextPlace(2);
            assert_eq!(contexts.chain(last), [2, 1, 0].map(ContextPlace));
            assert_eq!(contexts.path(last, 100).unwrap(), "Conv_1/Convolve/ExchangePre");
            assert_eq!(contexts.path(last, 5), None);
            let frame = contexts.frame(ContextPlace(0));
            assert_eq!(frame.operation.as_deref(), Some("dense/fwd"));
            assert_eq!((frame.layer.as_str(), frame.kind.as_deref()), ("onnx", Some("MatMul")));
            assert_eq!(contexts.frame(ContextPlace(1)).layer, "poplibs");
        }
    }

    #[test]
    fn a_list_of_contexts_by_itself_and_tags_are_read_too() {
        let mut bytes = vec![0xd9, 0xd9, 0xf7];
        bytes.extend(encoded(&plain()["contexts"], false));
        assert_eq!(read(&bytes).unwrap().places().count(), 3);
    }

    #[test]
    fn errors_name_the_problem_and_its_position() {
        let says = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        let whole = encoded(&plain(), false);
        assert_eq!(
            says(&whole[..whole.len() - 5]),
            format!("it is cut off at byte {}", whole.len() - 5)
        );
        assert_eq!(says(b""), "it is cut off at byte 0");
        assert_eq!(says(&encoded(&json!({ "a": 1 }), false)), "it has no list `contexts`");
        assert_eq!(says(&[0xa1, 0x1c, 0]), "it is not valid CBOR at byte 1");
        let deep = [&[0xa1, 0x61, b'x'][..], &[0x81; 5000], &[0x00]].concat();
        assert!(says(&deep).starts_with("it is nested deeper than 256 levels"), "{}", says(&deep));
    }

    #[test]
    fn lengths_are_not_trusted() {
        // A list, a map and a string that claim to have 2^62 entries.
        for major in [0x9b, 0xbb, 0x7b] {
            let mut bytes = vec![0xa1, 0x68];
            bytes.extend(b"contexts");
            bytes.push(major);
            bytes.extend((1_u64 << 62).to_be_bytes());
            assert!(read(&bytes).unwrap_err().to_string().contains("cut off"));
        }
        let long = "x".repeat(1 << 20);
        let value = json!({ "contexts": [{ "id": 1, "layer": "poplar", "name": long }] });
        let contexts = read(&encoded(&value, false)).unwrap();
        assert_eq!(contexts.name(ContextPlace(0)).len(), MAX_NAME_BYTES);
    }

    #[test]
    fn cycles_of_contexts_have_no_ancestors() {
        let value = json!([
            { "id": 1, "parent": 2, "layer": "poplar", "name": "a" },
            { "id": 2, "parent": 1, "layer": "poplar", "name": "b" },
        ]);
        let contexts = read(&encoded(&value, false)).unwrap();
        assert_eq!(contexts.chain(ContextPlace(0)), [ContextPlace(0)]);
    }

    /// Mutations of a sound file: bytes changed, taken out and put in.
    fn mutated(bytes: &[u8], changes: &[(u16, u8, u8)]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for &(place, value, way) in changes {
            let at = usize::from(place) % bytes.len().max(1);
            match way % 4 {
                0 => bytes.insert(at.min(bytes.len()), value),
                1 if !bytes.is_empty() => drop(bytes.remove(at)),
                2 => bytes.truncate(at),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = value),
            }
        }
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(300)))]
        #[test]
        fn hostile_files_cause_no_panic(
            changes in prop::collection::vec(any::<(u16, u8, u8)>(), 0..12),
            endless: bool,
        ) {
            let bytes = mutated(&encoded(&plain(), endless), &changes);
            if let Ok(contexts) = read(&bytes) {
                for place in contexts.places() {
                    contexts.frame(place);
                    prop_assert!(contexts.chain(place).len() <= MAX_ANCESTORS);
                    prop_assert!(contexts.path(place, 1000).is_none_or(|path| path.len() <= 1000));
                }
            }
        }
    }
}
