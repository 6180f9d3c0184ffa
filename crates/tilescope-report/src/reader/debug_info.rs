//! Debug information of `debug.cbor` beside a report, for files without operations.
//!
//! No public document describes how a `profile.pop` of Poplar refers to contexts, but its programs
//! are named after them: a context's name, preceded by those of its ancestors. A program belongs to
//! the context whose path is the longest prefix of its name, and to the operation of this context
//! or of an ancestor.

use super::index_cache::{self, CacheFile};
use super::{Report, ReportOrigin};
use crate::codec::{pack, unpack};
use crate::database::SelectQuery;
use crate::debug_cbor::{ContextPlace, DebugCborError, DebugContexts, DebugFrame};
use crate::error::ReportError;
use crate::model::{ModelOperation, TrainingPass};
use crate::open_file::file_version;
use crate::units::{OperationId, ProgramId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name that Poplar gives the file.
const FILE: &str = "debug.cbor";

/// The kind of caches of debug information of programs.
const CACHE: &str = "debug";
/// The size of a file, in bytes, up to which reading takes at most 20 ms.
const SHORT_FILE_BYTES: u64 = 1 << 20;
/// The maximum number of bytes of debug information that are kept for one file.
const MAX_CACHED_BYTES: usize = 1 << 28;

/// The prefix of TensorFlow's directories of single reports; shared files are in their parent.
const TENSORFLOW_DIRECTORY: &str = "tf_report_";

/// Layers with operations that users know, those written by users first.
const FRAMEWORK_LAYERS: [&str; 8] = [
    "poptorch",
    "xla_op",
    "onnx",
    "popxl",
    "hloinstruction",
    "popart",
    "popartbuilder",
    "poplar_driver",
];

/// The layer of objects that Poplar itself made.
const LOWEST_LAYER: &str = "poplar";

/// The maximum number of parts of a name that are compared.
const MAX_PARTS: usize = 64;

/// Operations and contexts of programs, as far as they were found.
#[derive(Debug, Default)]
pub(super) struct DebugInfo {
    pub(super) operations: Vec<ModelOperation>,
    pub(super) operation_of: BTreeMap<ProgramId, OperationId>,
    frames_of: BTreeMap<ProgramId, Arc<Vec<DebugFrame>>>,
}

impl Report {
    /// The file with debug contexts of this report; `None` if the report itself has operations.
    pub(super) fn debug_file(&self) -> Option<PathBuf> {
        if self.origin != ReportOrigin::Foreign || self.db.has_rows("operations") {
            return None;
        }
        let directory = self.path.parent()?;
        let beside = directory.join(FILE);
        if beside.is_file() {
            return Some(beside);
        }
        if !directory.file_name()?.to_str()?.starts_with(TENSORFLOW_DIRECTORY) {
            return None;
        }
        let shared = directory.parent()?.join(FILE);
        if shared.is_file() { Some(shared) } else { None }
    }

    /// True if operations are known from a file beside the report. Until the file is read, it is
    /// assumed to name some.
    pub(super) fn has_debug_operations(&self) -> bool {
        match self.debug_info.known() {
            Some(known) => !known.operations.is_empty(),
            None => self.debug_file().is_some(),
        }
    }

    /// The content of the file beside the report, read once. A defect of the file becomes a
    /// warning.
    pub(super) fn debug_info(&self) -> Result<Arc<DebugInfo>, ReportError> {
        self.debug_info.get(|| {
            let Some(file) = self.debug_file() else { return Ok(DebugInfo::default()) };
            let known = self.cached_frames(&file)?;
            let frames =
                match known.map_or_else(|| self.find_frames(&file), |known| Ok(Ok(known)))? {
                    Ok(frames) => frames,
                    Err(problem) => {
                        self.warnings.add(format!("{FILE} is not used: {problem}"));
                        return Ok(DebugInfo::default());
                    }
                };
            let old =
                self.sidecar_files().into_iter().find(|of| of.name == FILE).zip(self.modified());
            if old.is_some_and(|(file, written)| file.is_older_than(written)) {
                self.warnings.add(format!(
                    "{FILE} is older than the report: it may come from an earlier run, and its \
                     operations may belong to another program"
                ));
            }
            if frames.of_programs.is_empty() && self.db.has_rows("programs") {
                self.warnings.add(format!("{FILE} is not used: its contexts name no program"));
            }
            Ok(DebugInfo::new(frames))
        })
    }

    /// Finds the debug information of programs, and caches it if reading the file takes long.
    fn find_frames(
        &self,
        file: &Path,
    ) -> Result<Result<ProgramFrames, DebugCborError>, ReportError> {
        let contexts = match DebugContexts::read(file) {
            Ok(contexts) => contexts,
            Err(problem) => return Ok(Err(problem)),
        };
        let names = self.db.list(SelectQuery::all("programs", &["id", "name"]), |cells| {
            Some((ProgramId(cells.small(0)?), cells.text(1)?))
        })?;
        let names: Vec<(ProgramId, String)> = names.into_iter().flatten().collect();
        let frames = ProgramFrames::new(&contexts, &names, file_version(file)?);
        let is_long = file.metadata().is_ok_and(|file| file.len() > SHORT_FILE_BYTES);
        if let Some(place) = self.cache_place(CACHE)?.filter(|_| is_long) {
            index_cache::write(Some(&place), &self.warnings, |rows| {
                let json = serde_json::to_vec(&frames)
                    .map_err(|e| ReportError::invalid_input(e.to_string()))?;
                rows.execute("CREATE TABLE debug_frames(data BLOB)")?;
                let insert = "INSERT INTO debug_frames VALUES (?)";
                rows.connection
                    .execute(insert, [pack(&json)])
                    .map(|_| ())
                    .map_err(|e| ReportError::sqlite_writing(&e, rows.path))
            })?;
        }
        Ok(Ok(frames))
    }

    /// Debug information that was cached for the same file.
    fn cached_frames(&self, file: &Path) -> Result<Option<ProgramFrames>, ReportError> {
        let version = file_version(file)?;
        let read = |CacheFile { connection, file, .. }: CacheFile| {
            let path = file.unwrap_or_default();
            let packed: Vec<u8> = connection
                .query_row("SELECT data FROM debug_frames", [], |row| row.get(0))
                .map_err(|e| ReportError::sqlite_reading(&e, "debug_frames", &path))?;
            let json = unpack(&packed, MAX_CACHED_BYTES);
            let found = json.and_then(|json| serde_json::from_slice::<ProgramFrames>(&json).ok());
            let of_file = found.filter(|found| found.version == version && found.is_sound());
            of_file.ok_or_else(|| ReportError::damaged("it belongs to another file", &path))
        };
        Ok(self.cache_place(CACHE)?.and_then(|place| place.open(read)))
    }

    /// The debug contexts of a program, its own first; empty if they are not known.
    ///
    /// # Errors
    /// The programs cannot be read.
    pub fn debug_frames(&self, program: ProgramId) -> Result<Arc<Vec<DebugFrame>>, ReportError> {
        Ok(self.debug_info()?.frames_of.get(&program).cloned().unwrap_or_default())
    }
}

/// The debug contexts of programs.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ProgramFrames {
    /// Path, size and time of the file that they were read from.
    version: String,
    /// Contexts with their ancestors.
    chains: Vec<Vec<DebugFrame>>,
    /// The index of the chain of each program that has one.
    of_programs: Vec<(u32, usize)>,
}

impl ProgramFrames {
    fn new(contexts: &DebugContexts, programs: &[(ProgramId, String)], version: String) -> Self {
        let by_name = contexts_by_name(contexts, programs);
        let mut found = Self { version, ..Self::default() };
        let mut places: HashMap<ContextPlace, usize> = HashMap::new();
        for (program, name) in programs {
            let own = prefixes(plain(name)).find_map(|part| by_name.get(part).copied());
            let Some(own) = own else { continue };
            let place = *places.entry(own).or_insert_with(|| {
                let chain = contexts.chain(own);
                found.chains.push(chain.iter().map(|place| contexts.frame(*place)).collect());
                found.chains.len() - 1
            });
            found.of_programs.push((program.0, place));
        }
        found
    }

    /// True if all indices of chains are valid.
    fn is_sound(&self) -> bool {
        self.of_programs.iter().all(|(_, chain)| *chain < self.chains.len())
    }
}

impl DebugInfo {
    fn new(frames: ProgramFrames) -> Self {
        let mut info = Self::default();
        let mut known: HashMap<(String, String, TrainingPass), OperationId> = HashMap::new();
        let chains: Vec<Arc<Vec<DebugFrame>>> = frames.chains.into_iter().map(Arc::new).collect();
        for (program, chain) in frames.of_programs {
            let Some(chain) = chains.get(chain) else { continue };
            let program = ProgramId(program);
            info.frames_of.insert(program, chain.clone());
            let Some(frame) = operation_in(chain) else { continue };
            let DebugFrame { layer, name, operation, kind } = frame.clone();
            let name = operation.unwrap_or(name);
            if name.is_empty() {
                continue;
            }
            let pass = pass_of(chain);
            let key = (layer, name, pass);
            let id = match known.get(&key) {
                Some(id) => *id,
                None => {
                    let id = OperationId::from_index(info.operations.len());
                    let (layer, name, pass) = key.clone();
                    info.operations.push(operation_of(layer, name, kind, pass));
                    known.insert(key, id);
                    id
                }
            };
            info.operation_of.insert(program, id);
        }
        info
    }
}

/// An operation with a known name and kind only.
fn operation_of(
    layer: String,
    name: String,
    kind: Option<String>,
    pass: TrainingPass,
) -> ModelOperation {
    ModelOperation {
        name,
        kind: kind.unwrap_or_default(),
        source: Some(layer).filter(|layer| !layer.is_empty()),
        pass,
        block: None,
        ipu: None,
        flops: 0,
        element_type: None,
        inner_runs: None,
        cost_basis: None,
        shapes: String::new(),
        plan: None,
        inputs: Vec::new(),
    }
}

/// The contexts by the path of their names, for prefixes of program names; a context also counts
/// under the path of its operation.
fn contexts_by_name<'a>(
    contexts: &'a DebugContexts,
    programs: &'a [(ProgramId, String)],
) -> HashMap<&'a str, ContextPlace> {
    let iter_parts = || programs.iter().flat_map(|(_, name)| prefixes(plain(name)));
    let mut found: HashMap<&str, Option<ContextPlace>> =
        iter_parts().map(|part| (part, None)).collect();
    let longest = iter_parts().map(str::len).max().unwrap_or(0);
    for place in contexts.places() {
        let path = contexts.path(place, longest).filter(|path| !path.is_empty());
        if let Some(known) = path.and_then(|path| found.get_mut(path.as_str())) {
            // Of several contexts with one path, the last is the most specific: parents are made
            // before their children.
            *known = Some(place);
        }
        for name in [contexts.operation(place), contexts.name(place)] {
            if let Some(known @ None) = found.get_mut(name) {
                *known = Some(place);
            }
        }
    }
    found.into_iter().filter_map(|(part, known)| Some((part, known?))).collect()
}

/// The operation of a program, from its context and the ancestors of that: the one of the framework
/// that its user wrote in, or without a framework, the one of the outermost library call.
fn operation_in(chain: &[DebugFrame]) -> Option<&DebugFrame> {
    let is_named = |frame: &&DebugFrame| frame.operation.is_some() || !frame.name.is_empty();
    for layer in FRAMEWORK_LAYERS {
        if let Some(frame) = chain.iter().find(|frame| frame.layer == layer).filter(is_named) {
            return Some(frame);
        }
    }
    let call = chain.iter().rev().filter(is_named).find(|frame| frame.layer != LOWEST_LAYER);
    call.or_else(|| chain.iter().rev().find(is_named))
}

/// The pass of an operation, as far as names show it: PopART's gradients have kinds that end with
/// `Grad`, TensorFlow's are below `gradients`, and weight updates are named after their optimisers.
fn pass_of(chain: &[DebugFrame]) -> TrainingPass {
    if contains_any(chain, &["VarUpdate", "Optimizer", "optimizer", "SGD", "Adam", "Lamb"]) {
        TrainingPass::Update
    } else if contains_any(chain, &["Grad", "gradients/", "/bwd", "/wu", "backward"]) {
        TrainingPass::Backward
    } else {
        TrainingPass::Forward
    }
}

/// True if a name, operation or kind of these contexts contains one of `words`.
fn contains_any(chain: &[DebugFrame], words: &[&str]) -> bool {
    for frame in chain {
        let texts = [Some(&frame.name), frame.operation.as_ref(), frame.kind.as_ref()];
        for text in texts.into_iter().flatten() {
            if words.iter().any(|word| text.contains(word)) {
                return true;
            }
        }
    }
    false
}

/// A program's name without the number of its compute set: `cs3_`.
fn plain(name: &str) -> &str {
    let Some((front, rest)) = name.split_once('_') else { return name };
    let Some(number) = front.strip_prefix("cs") else { return name };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { rest } else { name }
}

/// The prefixes of a name, each without the last part of the previous one, the longest first.
fn prefixes(name: &str) -> impl Iterator<Item = &str> {
    let whole = Some(name).filter(|name| !name.is_empty());
    std::iter::successors(whole, |part| Some(part.rsplit_once('/')?.0)).take(MAX_PARTS)
}
