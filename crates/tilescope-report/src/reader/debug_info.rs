//! What `debug.cbor` beside a report says of its programs: for files that do not say it themselves.
//!
//! Nothing public tells how a `profile.pop` of Poplar's refers to contexts, but its programs are named
//! by them: a context's name with those of the contexts above it in front. A program belongs to the
//! context whose names are the longest part of its own, and to the operation that this context or one
//! above it is.

use super::{Report, ReportOrigin};
use crate::database::SelectQuery;
use crate::debug_cbor::{ContextPlace, DebugContexts, DebugFrame};
use crate::error::ReportError;
use crate::model::{ModelOperation, TrainingPass};
use crate::units::{OperationId, ProgramId};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

/// The file, as Poplar names it.
const FILE: &str = "debug.cbor";

/// How TensorFlow's directories of single reports begin; what they share lies above them.
const TENSORFLOW_DIRECTORY: &str = "tf_report_";

/// Layers whose operations people know, those that they wrote first.
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

/// The layer of what Poplar itself made.
const LOWEST_LAYER: &str = "poplar";

/// Most parts of a name that are looked at.
const MAX_PARTS: usize = 64;

/// Operations and contexts of programs, as far as they could be told.
#[derive(Debug, Default)]
pub(super) struct DebugInfo {
    pub(super) operations: Vec<ModelOperation>,
    pub(super) operation_of: BTreeMap<ProgramId, OperationId>,
    frames_of: BTreeMap<ProgramId, Arc<Vec<DebugFrame>>>,
}

impl Report {
    /// The file with debug contexts of this report; nothing where the report itself says what
    /// programs belong to.
    pub(super) fn debug_file(&self) -> Option<PathBuf> {
        if self.origin != ReportOrigin::Foreign || self.db.has_rows("operations") {
            return None;
        }
        let directory = self.path.parent()?;
        let beside = directory.join(FILE);
        let shared = || {
            let name = directory.file_name()?.to_str()?;
            name.starts_with(TENSORFLOW_DIRECTORY).then(|| Some(directory.parent()?.join(FILE)))?
        };
        Some(beside)
            .filter(|file| file.is_file())
            .or_else(|| shared().filter(|file| file.is_file()))
    }

    /// Whether operations are known from a file beside the report. Until that was read, it is
    /// believed to name some.
    pub(super) fn has_debug_operations(&self) -> bool {
        match self.debug_info.known() {
            Some(known) => !known.operations.is_empty(),
            None => self.debug_file().is_some(),
        }
    }

    /// What the file beside the report says, read once; what is wrong with it is a warning.
    pub(super) fn debug_info(&self) -> Result<Arc<DebugInfo>, ReportError> {
        self.debug_info.get(|| {
            let Some(file) = self.debug_file() else { return Ok(DebugInfo::default()) };
            let contexts = match DebugContexts::read(&file) {
                Ok(contexts) => contexts,
                Err(problem) => {
                    self.warnings.add(format!("{FILE} is not used: {problem}"));
                    return Ok(DebugInfo::default());
                }
            };
            let old =
                self.sidecar_files().into_iter().find(|of| of.name == FILE).zip(self.modified());
            if old.is_some_and(|(file, written)| file.is_older_than(written)) {
                self.warnings.add(format!(
                    "{FILE} is older than the report: it may be left of an earlier run, and its \
                     operations may be those of another program"
                ));
            }
            let names = self.db.list(SelectQuery::all("programs", &["id", "name"]), |cells| {
                Some((ProgramId(cells.small(0)?), cells.text(1)?))
            })?;
            let names: Vec<(ProgramId, String)> = names.into_iter().flatten().collect();
            let found = DebugInfo::new(&contexts, &names);
            if found.operations.is_empty() && !names.is_empty() {
                self.warnings
                    .add(format!("{FILE} is not used: no program is named by its contexts"));
            }
            Ok(found)
        })
    }

    /// The debug contexts that a program was made in, its own first; empty where they are not known.
    ///
    /// # Errors
    /// Programs that cannot be read.
    pub fn debug_frames(&self, program: ProgramId) -> Result<Arc<Vec<DebugFrame>>, ReportError> {
        Ok(self.debug_info()?.frames_of.get(&program).cloned().unwrap_or_default())
    }
}

impl DebugInfo {
    fn new(contexts: &DebugContexts, programs: &[(ProgramId, String)]) -> Self {
        let by_name = contexts_by_name(contexts, programs);
        let mut info = Self::default();
        let mut known: HashMap<(String, String, TrainingPass), OperationId> = HashMap::new();
        let mut frames: HashMap<ContextPlace, Arc<Vec<DebugFrame>>> = HashMap::new();
        for (program, name) in programs {
            let own = prefixes(plain(name)).find_map(|part| by_name.get(part).copied());
            let Some(own) = own else { continue };
            let chain = contexts.chain(own);
            let told = frames.entry(own).or_insert_with(|| {
                Arc::new(chain.iter().map(|place| contexts.frame(*place)).collect())
            });
            info.frames_of.insert(*program, told.clone());
            let Some(place) = operation_in(contexts, &chain) else { continue };
            let DebugFrame { layer, name, operation, kind } = contexts.frame(place);
            let name = operation.unwrap_or(name);
            if name.is_empty() {
                continue;
            }
            let pass = pass_of(told);
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
            info.operation_of.insert(*program, id);
        }
        info
    }
}

/// An operation of which no more is known than its name and kind.
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

/// The context that names each part of a program's name that one names: by its names and those above
/// it, or else by the operation that it is.
fn contexts_by_name<'a>(
    contexts: &'a DebugContexts,
    programs: &'a [(ProgramId, String)],
) -> HashMap<&'a str, ContextPlace> {
    let parts = || programs.iter().flat_map(|(_, name)| prefixes(plain(name)));
    let mut found: HashMap<&str, Option<ContextPlace>> = parts().map(|part| (part, None)).collect();
    let longest = parts().map(str::len).max().unwrap_or(0);
    for place in contexts.places() {
        let path = contexts.path(place, longest).filter(|path| !path.is_empty());
        if let Some(known) = path.and_then(|path| found.get_mut(path.as_str())) {
            // Of several with one path the last one made says most: parents are made before it.
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

/// The operation that a program belongs to, of its context and those above: the one of the framework
/// that its user wrote in; without a framework that of the library call that began it.
fn operation_in(contexts: &DebugContexts, chain: &[ContextPlace]) -> Option<ContextPlace> {
    let of_layer =
        |layer: &&str| chain.iter().copied().find(|place| contexts.layer(*place) == *layer);
    let named = |place: &ContextPlace| {
        !contexts.operation(*place).is_empty() || !contexts.name(*place).is_empty()
    };
    let call = || {
        let above = chain.iter().rev().copied();
        above.filter(named).find(|place| contexts.layer(*place) != LOWEST_LAYER)
    };
    let framework = FRAMEWORK_LAYERS.iter().filter_map(of_layer).find(named);
    framework.or_else(call).or_else(|| chain.iter().rev().copied().find(named))
}

/// The pass that an operation belongs to, as far as names tell it: PopART's gradients are kinds that
/// end with `Grad`, TensorFlow's lie below `gradients`, weight updates are named by their optimisers.
fn pass_of(chain: &[DebugFrame]) -> TrainingPass {
    let texts = || {
        chain.iter().flat_map(|frame| {
            let names = [Some(&frame.name), frame.operation.as_ref(), frame.kind.as_ref()];
            names.into_iter().flatten()
        })
    };
    let says = |words: &[&str]| texts().any(|text| words.iter().any(|word| text.contains(word)));
    if says(&["VarUpdate", "Optimizer", "optimizer", "SGD", "Adam", "Lamb"]) {
        TrainingPass::Update
    } else if says(&["Grad", "gradients/", "/bwd", "/wu", "backward"]) {
        TrainingPass::Backward
    } else {
        TrainingPass::Forward
    }
}

/// A program's name without the number of its compute set: `cs3_`.
fn plain(name: &str) -> &str {
    let counted = |front: &str| {
        let number = front.strip_prefix("cs");
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    match name.split_once('_') {
        Some((front, rest)) if counted(front) => rest,
        _ => name,
    }
}

/// A name, and what is left of it without its last part, again and again; the longest first.
fn prefixes(name: &str) -> impl Iterator<Item = &str> {
    let whole = Some(name).filter(|name| !name.is_empty());
    std::iter::successors(whole, |part| Some(part.rsplit_once('/')?.0)).take(MAX_PARTS)
}
