//! The ONNX file that a spec names. It is opened while the spec is read, so that dimensions and
//! their names are checked against the file.

use super::CheckedSpecValues;
use super::choices::{DomainSharding, ExecutionStrategy, StashConvention};
use super::error::{SpecError, SpecLocation};
use super::source::LocatedSpecValue;
use super::stages::StageSpec;
use crate::onnx::{
    AnnotationKind, BRANCH_PREFIX, BlockChoice, DIM_PREFIX, FileBatch, ImportedFile, LoopChoice,
    LossChoice, TRIPS_PREFIX, has_loss,
};
use crate::spec_keys::{ChosenValues, LARGEST_SIZE, SpecField, SpecKeyType, SpecValue};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tilescope_onnx::{DimValues, OnnxError, OnnxFile, OnnxGraph, Symbol};

/// The key with the path of the file.
const FILE: &str = "model.onnx";
/// The key of its digest.
const DIGEST: &str = "model.onnx_digest";
/// The keys of the micro-batches that fill an annotated pipeline.
const ACCUMULATION: &str = "options.gradient_accumulation";
const DEVICE_ITERATIONS: &str = "options.device_iterations";
/// The key of the number of parts of a micro-batch.
const FACTOR: &str = "options.batch_serialization_settings.factor";
/// The key of the number of IPUs that share a layer.
const TENSOR_PARALLEL: &str = "options.tensor_parallel";
/// The key of the treatment of loops.
const LOOPS: &str = "model.loops";
/// The key of the symbol that counts samples.
const BATCH: &str = "model.batch_size";
/// The key of the largest number of results that depends on data.
const MAX_RESULTS: &str = "model.max_results";

type Settings = BTreeMap<String, LocatedSpecValue>;

/// Opens the file that a spec names, if any, and gives its dimensions the values of the spec. The
/// path becomes absolute, so that a report can be simulated again from any directory. `known` is the
/// content of the file that the source names, if it was read before.
///
/// # Errors
/// Returns an error for a file that cannot be read, for dimensions that the file does not have, and
/// for dimensions without a value.
pub(super) fn open(
    settings: &mut Settings,
    known: Option<&Arc<OnnxFile>>,
) -> Result<Option<ImportedFile>, SpecError> {
    let Some(named) = settings.get_mut(FILE) else { return Ok(None) };
    let location = named.location.clone();
    let refuse = |problem: String| SpecError::new(location.clone(), FILE, problem);
    let SpecValue::String(written) = &named.value else {
        return Err(refuse(format!("expected a path, found {}", named.value.describe())));
    };
    let path = absolute(written, &location);
    let text = path.to_str().ok_or_else(|| refuse("the path is not UTF-8".to_string()))?;
    named.value = SpecValue::String(text.to_string());
    let failed = |error: OnnxError| refuse(format!("{}: {error}", path.display()));
    // A key of the text or an override names a file of its own.
    let known = known.filter(|_| location == SpecLocation::NotWritten);
    let file = match known {
        Some(file) => file.clone(),
        None => Arc::new(OnnxFile::open(&path).map_err(failed)?),
    };
    check_name(settings)?;
    let symbols = file.symbols();
    let mut dims = dim_values(settings, &symbols)?;
    dims.unrolls = unrolls_loops(settings);
    let mut graph = file.resolve(&dims).map_err(failed)?;
    if !graph.repeats.is_empty() && is_trained(settings, &graph) {
        // The backward pass needs the activations of each iteration.
        dims.unrolls = true;
        graph = file.resolve(&dims).map_err(failed)?;
    }
    let mut imported = ImportedFile::new(text, &file, &dims, graph);
    check_batch(settings, &imported)?;
    imported.compute_batch = compute_batch(settings, &file, dims, &imported.batch)?;
    imported.changed_from = keep_digest(settings, &location, &imported.identity.digest);
    Ok(Some(imported))
}

/// True if the spec asks for nodes of each iteration of a loop, or for something that only single
/// nodes can do.
fn unrolls_loops(settings: &Settings) -> bool {
    let is_above_one = |key: &str| {
        let found = settings.get(key).map(|located| &located.value);
        matches!(found, Some(SpecValue::Integer(value)) if *value > 1)
    };
    let chosen = settings.get(LOOPS).and_then(|located| LoopChoice::from_spec(&located.value));
    chosen == Some(LoopChoice::Unroll) || [FACTOR, TENSOR_PARALLEL].into_iter().any(is_above_one)
}

/// True if the model has a backward pass.
fn is_trained(settings: &Settings, graph: &OnnxGraph) -> bool {
    if let Some(SpecValue::Boolean(trained)) =
        settings.get("model.training").map(|located| &located.value)
    {
        return *trained;
    }
    let loss = settings.get("model.loss").and_then(|located| LossChoice::from_spec(&located.value));
    match loss.unwrap_or(LossChoice::Auto) {
        LossChoice::Auto => has_loss(graph),
        LossChoice::None => false,
        _ => true,
    }
}

/// Stores the digest of the file in the spec, so that a later simulation can detect a changed file.
/// Returns the previous digest if it differs.
fn keep_digest(settings: &mut Settings, location: &SpecLocation, digest: &str) -> Option<String> {
    let value = SpecValue::String(digest.to_string());
    let located = LocatedSpecValue { value, location: location.clone() };
    match settings.insert(DIGEST.to_string(), located)?.value {
        SpecValue::String(before) if before != digest && !before.is_empty() => Some(before),
        _ => None,
    }
}

/// Builds the graph of one of the parts of a micro-batch. Returns `None` if there is one part, or
/// if the parts cannot be equal, which a later check rejects.
///
/// # Errors
/// Returns an error for a file that cannot have so few samples.
fn compute_batch(
    settings: &Settings,
    file: &OnnxFile,
    dims: DimValues,
    batch: &FileBatch,
) -> Result<Option<Arc<OnnxGraph>>, SpecError> {
    let Some(located) = settings.get(FACTOR) else { return Ok(None) };
    let factor = match &located.value {
        SpecValue::Integer(factor) => u64::try_from(*factor).unwrap_or(0),
        _ => 0,
    };
    if factor < 2 || !batch.samples.is_multiple_of(factor) {
        return Ok(None);
    }
    let refuse = |problem: String| SpecError::new(located.location.clone(), FACTOR, problem);
    let samples = batch.samples / factor;
    let symbol = file.symbols().into_iter().find(|symbol| symbol.is_batch);
    let mut dims = DimValues { batch: Some(samples), ..dims };
    match symbol {
        Some(symbol) => {
            dims.by_name.remove(&symbol.name);
        }
        None => dims.first = Some((batch.samples, samples)),
    }
    let graph = file.resolve(&dims).map_err(|error| {
        refuse(format!(
            "the file fixes {} samples, but a part has {samples}; export it with a dynamic first \
             dimension: {error}",
            batch.samples
        ))
    })?;
    let counted = FileBatch::of(file, &graph).samples;
    if counted != samples || batch.assumption.is_some() {
        return Err(refuse(
            "the inputs of the file have no common first dimension for samples; export it with a \
             dynamic first dimension"
                .to_owned(),
        ));
    }
    Ok(Some(Arc::new(graph)))
}

/// Resolves a path relative to the spec, or to the current directory.
fn absolute(written: &str, location: &SpecLocation) -> PathBuf {
    let beside = match location {
        SpecLocation::Line { file, .. } => Path::new(file).parent(),
        SpecLocation::Override | SpecLocation::NotWritten => None,
    };
    let path = beside.map_or_else(|| PathBuf::from(written), |folder| folder.join(written));
    std::path::absolute(&path).unwrap_or(path)
}

/// Checks that the model is either built in or from a file.
fn check_name(settings: &Settings) -> Result<(), SpecError> {
    let name = settings.get("model.name");
    let Some(name) = name.filter(|name| name.value != SpecValue::String("onnx".to_string())) else {
        return Ok(());
    };
    let problem = "model.onnx is set; remove the built-in model".to_string();
    Err(SpecError::new(name.location.clone(), "model.name", problem))
}

/// Reads the values of symbolic dimensions, branches, loop trips and numbers of results.
fn dim_values(settings: &Settings, symbols: &[Symbol]) -> Result<DimValues, SpecError> {
    let mut values = DimValues { batch: batch(settings), ..DimValues::default() };
    let names: Vec<&str> = symbols.iter().map(|symbol| symbol.name.as_str()).collect();
    for (path, located) in settings {
        let Some(name) = path.strip_prefix(DIM_PREFIX) else { continue };
        let refuse = |problem: String| SpecError::new(located.location.clone(), path, problem);
        if !names.contains(&name) {
            return Err(if names.is_empty() {
                refuse("the file has no symbolic dimensions".to_string())
            } else {
                refuse(format!("the file has no dimension {name:?}")).nearest(name, &names)
            });
        }
        let value = SIZE.accept(&located.value).map_err(|problem| refuse(problem.to_string()))?;
        if let SpecValue::Integer(size) = value {
            values.by_name.insert(name.to_string(), size.unsigned_abs());
        }
    }
    decisions(settings, &mut values)?;
    let mut missing = Vec::new();
    for symbol in symbols {
        if !symbol.is_batch && !values.by_name.contains_key(&symbol.name) {
            missing.push(format!("{DIM_PREFIX}{}", symbol.name));
        }
    }
    if missing.is_empty() {
        return Ok(values);
    }
    let location =
        settings.get(FILE).map_or(SpecLocation::NotWritten, |file| file.location.clone());
    let problem = format!("the file has symbolic dimensions; set {}", missing.join(", "));
    Err(SpecError::new(location, FILE, problem))
}

/// A size that may be zero, such as that of keys and values of earlier calls.
const SIZE: SpecKeyType = SpecKeyType::Integer(0, LARGEST_SIZE);

/// Reads the values of branches and loops that depend on data, and of data-dependent numbers of
/// results.
fn decisions(settings: &Settings, values: &mut DimValues) -> Result<(), SpecError> {
    for (path, located) in settings {
        let refuse = |problem: String| SpecError::new(located.location.clone(), path, problem);
        if let Some(name) = path.strip_prefix(BRANCH_PREFIX) {
            let is_first = match &located.value {
                SpecValue::String(word) if word == "then" => true,
                SpecValue::String(word) if word == "else" => false,
                other => {
                    let found = other.describe();
                    return Err(refuse(format!("expected \"then\" or \"else\", found {found}")));
                }
            };
            values.branches.insert(name.to_string(), is_first);
        } else if let Some(name) = path.strip_prefix(TRIPS_PREFIX) {
            let value =
                SIZE.accept(&located.value).map_err(|problem| refuse(problem.to_string()))?;
            if let SpecValue::Integer(trips) = value {
                values.trips.insert(name.to_string(), trips.unsigned_abs());
            }
        }
    }
    // A later check rejects a wrong value.
    if let Some(SpecValue::Integer(most)) = settings.get(MAX_RESULTS).map(|located| &located.value)
    {
        values.max_results = u64::try_from(*most).ok().filter(|most| *most > 0);
    }
    Ok(())
}

/// The samples of a micro-batch that the spec requests. A later check rejects a wrong value.
fn batch(settings: &Settings) -> Option<u64> {
    match settings.get(BATCH).map(|located| &located.value) {
        Some(SpecValue::Integer(samples)) => u64::try_from(*samples).ok(),
        Some(_) => None,
        None => Some(1),
    }
}

/// Checks the samples of a micro-batch. A file without a symbol for them has the samples that it
/// was exported with.
fn check_batch(settings: &Settings, file: &ImportedFile) -> Result<(), SpecError> {
    let Some(located) = settings.get(BATCH) else { return Ok(()) };
    let known = file.batch.samples;
    let wanted = batch(settings).unwrap_or(known);
    if file.batch.may_be(wanted, &file.graph) {
        return Ok(());
    }
    let problem = match &file.batch.assumption {
        Some(_) => format!("no input has a dimension {wanted}"),
        None => format!(
            "the file fixes {known} samples; to change that, export it with a dynamic first \
             dimension"
        ),
    };
    Err(SpecError::new(located.location.clone(), BATCH, problem))
}

/// The value of a key that the spec omits and the file determines.
pub(super) fn value(
    file: &ImportedFile,
    path: &str,
    values: &CheckedSpecValues,
) -> Option<SpecValue> {
    match path {
        "model.name" => Some(SpecValue::String("onnx".to_string())),
        "model.precision" => Some(SpecValue::String("as_is".to_string())),
        BATCH => i64::try_from(file.batch.samples).ok().map(SpecValue::Integer),
        "model.training" => {
            let loss = values.field("model", "loss").unwrap_or(LossChoice::Auto);
            let trained = match loss {
                LossChoice::Auto => file.has_loss,
                LossChoice::None => false,
                _ => true,
            };
            Some(SpecValue::Boolean(trained))
        }
        "target.ipus" => {
            file.annotated.map(|annotated| SpecValue::Integer(i64::from(annotated.ipus)))
        }
        "options.execution" => {
            // PopART only runs a pipeline if it is enabled.
            let annotated = file.annotated.filter(|annotated| annotated.stages > 1)?;
            let blocks = values.field("model", "blocks");
            let followed = [BlockChoice::Auto, BlockChoice::Annotated]
                .contains(&blocks.unwrap_or(BlockChoice::Auto));
            let word = match annotated.kind {
                AnnotationKind::Stages => return None,
                AnnotationKind::Phases => "phased",
                AnnotationKind::Ipus => "sharded",
            };
            if followed && !values.is_set("options.stages") {
                Some(SpecValue::String(word.to_string()))
            } else {
                None
            }
        }
        "options.gradient_accumulation" | "options.device_iterations" => {
            let other = if path == DEVICE_ITERATIONS { ACCUMULATION } else { DEVICE_ITERATIONS };
            let trained = values.field("model", "training") == Some(true);
            let counts = trained == (path == ACCUMULATION);
            let pipelined =
                values.field("options", "execution").is_none_or(|execution: ExecutionStrategy| {
                    execution == ExecutionStrategy::Pipelined
                });
            if !counts || !pipelined || values.is_set(other) {
                return None;
            }
            let stages = i64::try_from(stages(file, values)).ok().filter(|stages| *stages > 1)?;
            let convention = values.field("options", "stash_convention");
            let fewest = match (trained, convention) {
                (false, _) => stages,
                (true, Some(StashConvention::MemoryGuide)) => 2 * stages + 1,
                (true, Some(StashConvention::Tensorflow)) => 2 * stages,
                (true, Some(StashConvention::Popart) | None) => 2 * stages - 1,
            };
            Some(SpecValue::Integer(fewest))
        }
        // Modules of a file differ in size, unlike the layers of built-in models.
        "options.auto_stage" => {
            let phased = values.field("options", "execution") == Some(ExecutionStrategy::Phased);
            if phased { None } else { Some(SpecValue::String("balanced".to_string())) }
        }
        _ => None,
    }
}

/// The stages of the pipeline that a spec makes of a file.
fn stages(file: &ImportedFile, values: &CheckedSpecValues) -> usize {
    let merges = values.merges_stages();
    let written: Vec<StageSpec> = values.field("options", "stages").unwrap_or_default();
    if !written.is_empty() {
        let merged = written.chunk_by(|one, next| one.ipu == next.ipu).count();
        return if merges { merged } else { written.len() };
    }
    if values.field("options", "domain_sharding") == Some(DomainSharding::Rows) {
        return 1;
    }
    let choice = values.field("model", "blocks").unwrap_or(BlockChoice::Auto);
    if let Some(annotated) = file.annotated
        && matches!(choice, BlockChoice::Auto | BlockChoice::Annotated)
    {
        return if merges { annotated.merged } else { annotated.stages };
    }
    let ipus: u32 = values.field("target", "ipus").unwrap_or(1);
    if ipus == 1 { 1 } else { file.blocks(choice).min(ipus as usize) }
}
