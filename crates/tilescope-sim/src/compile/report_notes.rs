//! Notes for the reader of a report that its figures do not show.

use super::padded_tokens::PaddedTokens;
use super::plan_selection::PlanSelectionTrial;
use super::{CompiledProgram, HostStreamCopy};
use crate::cost_constants::IO_TILE_OVERHEAD;
use crate::graph::{InputExchange, ModelGraph};
use crate::graph_lowering::WorthPadding;
use crate::poplin::matmul::MatMulSerializationMode;
use crate::poplin::planner::{PlanSelection, PoplibsOptions};
use crate::schedule::{PipelineTiming, WeightUpdateTiming};
use crate::specification::{
    MultiThreadMode, OverlapIo, PipelineSchedule, Proportion, ShardingDomain, Spec, StashConvention,
};
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, IpuId, binary_bytes, grouped, percent};
use tilescope_report::{ImportedModel, MemoryRegion, ProgramKind};

/// Sizes that are worth changing.
pub(super) struct WorthNoting {
    /// Sizes of products and convolutions.
    pub padded_sizes: Vec<WorthPadding>,
    /// The number of tokens of a sequence.
    pub padded_tokens: Option<PaddedTokens>,
    /// True if a linear layer is computed in parts.
    pub serializes_a_layer: bool,
}

/// All notes of a compiled program.
pub(super) fn notes(
    compiled: &CompiledProgram,
    spec: &Spec,
    worth: &WorthNoting,
    trial: Option<PlanSelectionTrial>,
) -> Vec<String> {
    let mut notes: Vec<String> =
        [out_of_memory(compiled), stale_weights(compiled)].into_iter().flatten().collect();
    notes.extend(changed_machine(spec));
    notes.extend(calibrated(spec));
    if let Some(imported) = &compiled.imported {
        notes.extend(unknown_operators(imported));
        notes.extend(changed_file(spec));
        notes.push(imported_from(imported));
        notes.extend(batch_assumption(spec));
        notes.extend(ignored_annotations(imported));
    }
    notes.extend(compiled.model_notes.iter().cloned());
    notes.extend(memory_proportion(compiled, spec));
    notes.extend(trial.map(plan_selection));
    notes.extend(worth.padded_sizes.iter().map(padding));
    notes.extend(worth.padded_tokens.as_ref().map(token_padding));
    notes.extend(whole_layers(spec, worth.serializes_a_layer));
    notes.extend(pipeline(compiled, spec));
    notes.extend(activations_that_stay(compiled, spec));
    notes.extend(sync_groups(compiled, spec));
    notes.extend(replicas(spec));
    notes.extend(independent_replicas(spec));
    notes.extend(replicated_sharding(spec));
    notes.extend(shards(spec));
    notes.extend(row_shards(compiled));
    notes.extend(phases(compiled));
    notes.extend(idle_ipus(compiled));
    notes.extend(reserved_ipus(spec));
    notes.extend(io_tiles(compiled));
    notes.extend(helper_threads(spec));
    notes.extend(stream_buffers(compiled, spec));
    notes.extend(long_streams(compiled));
    notes.extend(packs(spec));
    notes
}

fn out_of_memory(compiled: &CompiledProgram) -> Option<String> {
    let over = compiled.tiles_out_of_memory();
    if over == 0 {
        return None;
    }
    let mut bytes = Bytes::ZERO;
    for (range, parts) in compiled.compilation.tile_categories.iter() {
        let overflowed = parts.iter().filter(|part| part.region == MemoryRegion::Overflowed);
        bytes += u64::from(range.count()) * overflowed.map(|part| part.bytes).sum::<Bytes>();
    }
    Some(format!(
        "Warning: Out of memory: {over} tiles need more than they have, {} in all; the program was compiled but not run",
        binary_bytes(bytes.0)
    ))
}

/// A note on a changed machine, which does not exist.
fn changed_machine(spec: &Spec) -> Option<String> {
    let changes: Vec<String> =
        spec.machine_changes.iter().map(|change| change.text_with_inherited()).collect();
    let system = spec.target.system.name;
    if changes.is_empty() {
        return None;
    }
    Some(format!(
        "Warning: The machine is not a real one: it is {system} with {}; no measurement supports \
         its figures",
        changes.join(", ")
    ))
}

/// A note on constants that were fitted to a measurement.
fn calibrated(spec: &Spec) -> Option<String> {
    let changes: Vec<String> =
        spec.calibration.iter().map(|change| change.text_with_inherited()).collect();
    let to = match spec.target.calibration.source.as_str() {
        "" => "an unnamed measurement",
        source => source,
    };
    if changes.is_empty() {
        return None;
    }
    Some(format!(
        "Calibrated: constants of the simulator were fitted to {to}: {}",
        changes.join(", ")
    ))
}

/// A note on operators of an imported graph that have a price but no model.
fn unknown_operators(imported: &ImportedModel) -> Option<String> {
    let list: Vec<String> = imported
        .unknown
        .iter()
        .map(|operator| {
            let nodes = operator.nodes.join(", ");
            let more = operator.count.saturating_sub(operator.nodes.len() as u64);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!("{} ({nodes}{more})", operator.source)
        })
        .collect();
    if list.is_empty() {
        return None;
    }
    Some(format!(
        "Warning: Some operators are not modelled, so their cost is estimated as one pass over \
         their operands: {}",
        list.join("; ")
    ))
}

/// A note on the file of an imported model, and on the nodes that were folded or fused.
fn imported_from(imported: &ImportedModel) -> String {
    let folded: u64 = imported.folded.values().sum();
    let fused: u64 = imported.fused.values().sum();
    let ImportedModel { path, opset, nodes, .. } = imported;
    format!(
        "Imported from {path} (opset {opset}): {} nodes, {} folded into constants, {} operations \
         fused from several nodes",
        grouped(*nodes),
        grouped(folded),
        grouped(fused)
    )
}

/// A note if the file differs from the one of the report that the spec comes from.
fn changed_file(spec: &Spec) -> Option<String> {
    let file = spec.model.file.as_ref()?;
    let before = file.changed_from.as_ref()?;
    let ImportedModel { path, digest, .. } = &file.identity;
    Some(format!(
        "Warning: The model file has changed: {path} has the digest {digest}; the report of this \
         spec has {before}"
    ))
}

/// A note on annotations of the file that have no effect here.
fn ignored_annotations(imported: &ImportedModel) -> Option<String> {
    let list: Vec<String> =
        imported.ignored.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    if list.is_empty() {
        return None;
    }
    Some(format!("Annotations in the file without effect on the simulation: {}", list.join(", ")))
}

/// A note on inputs that the model requests on I/O tiles if the program reserves none.
pub(super) fn inputs_without_io_tiles(spec: &Spec, graph: &ModelGraph) -> Option<String> {
    if spec.options.num_io_tiles > 0 {
        return None;
    }
    let mut names = Vec::new();
    for (tensor, settings) in &graph.input_settings {
        let overlaps = settings.exchange.is_some_and(|of| of != InputExchange::JustInTime);
        if overlaps || settings.io_tiles == Some(true) {
            names.push(graph.tensor(*tensor).name.as_str());
        }
    }
    if names.is_empty() {
        return None;
    }
    Some(format!(
        "Warning: The file requests I/O tiles for {}, but none are reserved: set \
         options.num_io_tiles",
        names.join(", ")
    ))
}

/// A note on the way in which samples are counted, if the file leaves that open.
fn batch_assumption(spec: &Spec) -> Option<String> {
    let batch = &spec.model.file.as_ref()?.batch;
    if spec.model.batch_size != batch.samples {
        return None;
    }
    batch.assumption.clone()
}

fn memory_proportion(compiled: &CompiledProgram, spec: &Spec) -> Option<String> {
    let Proportion::Found(share) = spec.options.library.available_memory_proportion else {
        return None;
    };
    Some(match compiled.tiles_out_of_memory() {
        0 => format!(
            "available_memory_proportion is {share}: the fastest tested value with which the \
             program fits"
        ),
        _ => format!(
            "available_memory_proportion is {share}: the program fits with none of the tested \
             values, and this one needs the least memory on the fullest tile"
        ),
    })
}

fn plan_selection(trial: PlanSelectionTrial) -> String {
    let cycles = format!(
        "with plans chosen by simulated cycles, all operations of a micro-batch take {} cycles; \
         with the plans of the best estimate, they take {}",
        grouped(trial.simulated.0),
        grouped(trial.estimate.0)
    );
    match trial.faster() {
        PlanSelection::Simulated => format!("plan_selection: {cycles}"),
        PlanSelection::Estimate => format!(
            "plan_selection: {cycles}. The latter are kept: individually faster plans produce \
             layouts that slow down other operations"
        ),
    }
}

fn padding(worth: &WorthPadding) -> String {
    let WorthPadding { operation, cycles, padded } = worth;
    format!(
        "Warning: {operation} is expected to take {} cycles, and {} with sizes that are multiples \
         of 16: its sizes cannot be split into the equal parts that the memory limit requires. Pad \
         them, or raise available_memory_proportion",
        grouped(cycles.0),
        grouped(padded.0)
    )
}

fn token_padding(worth: &PaddedTokens) -> String {
    let PaddedTokens { tokens, padded, cycles, padded_cycles } = worth;
    format!(
        "Rows of {tokens} tokens do not fill whole vectors, so attention copies single elements: \
         with model.sequence_length = {padded} and padded sequences, the operations of a \
         micro-batch are expected to take {} fewer cycles, {} instead of {}",
        percent(worth.gain()),
        grouped(padded_cycles.0),
        grouped(cycles.0)
    )
}

/// A note if linear layers should be computed in parts, and none is.
fn whole_layers(spec: &Spec, serializes_a_layer: bool) -> Option<String> {
    let PoplibsOptions { serialize_matmul, serialize_matmul_factor: parts, .. } =
        spec.options.library;
    let asked = serialize_matmul != MatMulSerializationMode::None && !serializes_a_layer;
    if !asked {
        return None;
    }
    Some(format!(
        "Warning: options.serialize_matmul has no effect: options.serialize_matmul_factor = \
         {parts} does not divide that dimension of any linear layer. Choose a divisor"
    ))
}

fn packs(spec: &Spec) -> Option<String> {
    let factor = spec.model.packing_factor;
    if factor > 1.0 {
        Some(format!(
            "A sample is a pack of {factor} sequences on average; throughput counts packs"
        ))
    } else {
        None
    }
}

fn stale_weights(compiled: &CompiledProgram) -> Option<String> {
    if compiled.schedule.update != WeightUpdateTiming::PerMicroBatch {
        return None;
    }
    let note = "Warning: Weights become stale: without gradient accumulation, a pipeline updates \
                its weights while other micro-batches are in flight. Set \
                options.gradient_accumulation";
    Some(note.to_owned())
}

/// A note on the activations that stages keep for their backward passes, and on the source of the
/// number: one of two public accounts of the grouped schedule.
fn pipeline(compiled: &CompiledProgram, spec: &Spec) -> Option<String> {
    let depths = &compiled.schedule.stash_depths;
    if depths.iter().all(|depth| *depth <= 1) {
        return None;
    }
    let options = &spec.options;
    let count_by = |convention| {
        let stages = depths.len();
        let schedule = options.pipeline_schedule;
        let timing = PipelineTiming::new(stages, schedule, convention, spec.model.training);
        listed((0..stages).map(|stage| timing.stash_depth(stage)))
    };
    let how = match (options.pipeline_schedule, options.stash_convention) {
        (PipelineSchedule::Grouped, StashConvention::Popart) => format!(
            ", counted as in PopART's sources: the last stage starts its backward pass at once. \
             The memory guide counts {}: set options.stash_convention = memory_guide to use it",
            count_by(StashConvention::MemoryGuide)
        ),
        (PipelineSchedule::Grouped, StashConvention::MemoryGuide) => format!(
            ", counted as in the memory guide: the last stage keeps its micro-batch for two slots. \
             PopART's sources count {}",
            count_by(StashConvention::Popart)
        ),
        (PipelineSchedule::Grouped, StashConvention::Tensorflow) => format!(
            ", counted as in TensorFlow's sources: the last stage has a slot for each pass. \
             PopART's sources count {}",
            count_by(StashConvention::Popart)
        ),
        _ => String::new(),
    };
    let depths = listed(depths.iter().copied());
    Some(format!("The stashes of the stages hold {depths} micro-batches{how}"))
}

fn listed(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

/// A note on activations that should leave the chip and do not.
fn activations_that_stay(compiled: &CompiledProgram, spec: &Spec) -> Option<String> {
    let schedule = &compiled.schedule;
    let last = compiled.placement.stages.last()?;
    if spec.options.location.activations.on_chip || schedule.phased && !spec.model.training {
        return None;
    }
    if !spec.model.training {
        return Some(
            "Activations stay on the chip: options.location.activations.on_chip has no effect in \
             inference, which has no backward pass"
                .to_owned(),
        );
    }
    if !schedule.one_by_one {
        return None;
    }
    Some(format!(
        "Activations of {} stay on the chip: its backward pass directly follows its forward pass, \
         so it would load data that was just stored",
        last.name
    ))
}

fn sync_groups(compiled: &CompiledProgram, spec: &Spec) -> Option<String> {
    if spec.target.ipus <= 1 {
        return None;
    }
    Some(format!("Sync groups: {}", compiled.sync_groups.describe()))
}

fn replicas(spec: &Spec) -> Option<String> {
    let replicas = spec.options.replication_factor;
    let instances = spec.options.num_instances;
    let local = replicas / instances;
    let options = &spec.options;
    let samples = spec.model.batch_size
        * options.gradient_accumulation
        * options.device_iterations
        * u64::from(local);
    let offsets: Vec<String> =
        (0..instances).map(|instance| (instance * local).to_string()).collect();
    if instances <= 1 {
        return None;
    }
    let replicas = if local == 1 { "replica" } else { "replicas" };
    Some(format!(
        "{instances} instances of {local} {replicas} each, with {samples} samples per call. Their \
         global replica offsets are {}",
        offsets.join(", ")
    ))
}

/// A note on the assumption about replicas that sync with the host independently.
fn independent_replicas(spec: &Spec) -> Option<String> {
    let options = &spec.options;
    if !options.sync_replicas_independently || options.replication_factor == 1 {
        return None;
    }
    let note = "Each replica syncs with the host independently and waits for its own data only. \
    Such a sync is assumed to take as long as a sync of all replicas. Replicas still sync when \
    they exchange data and at the end of a call";
    Some(note.to_owned())
}

/// A note on the tensors that are sharded, and the number of replicas that share them.
fn replicated_sharding(spec: &Spec) -> Option<String> {
    let options = &spec.options;
    let kinds: Vec<(&str, ShardingDomain)> = [
        ("weights", &options.location.weights_sharding),
        ("accumulators", &options.location.accumulators_sharding),
        ("optimiser state", &options.location.optimizer_state_sharding),
    ]
    .into_iter()
    .filter(|(_, kind)| kind.replicated_tensor_sharding)
    .map(|(words, kind)| (words, kind.sharding_domain))
    .collect();
    let (_, domain) = *kinds.first()?;
    let words: Vec<&str> = kinds.into_iter().map(|(words, _)| words).collect();
    let replicas = options.replicas_of(domain);
    let domains = match options.replication_factor / replicas {
        1 => String::new(),
        several => format!("; {several} such groups all-reduce their gradient shards"),
    };
    Some(format!(
        "Each of {replicas} replicas stores 1/{replicas} of the {}{domains}",
        words.join(", ")
    ))
}

fn shards(spec: &Spec) -> Option<String> {
    let shards = spec.options.tensor_parallel;
    if shards <= 1 {
        return None;
    }
    Some(format!(
        "Linear layers are split over {shards} IPUs that do the same work; the report shows one of \
         them"
    ))
}

fn row_shards(compiled: &CompiledProgram) -> Option<String> {
    let shards = compiled.schedule.parallel_stages()?;
    Some(format!(
        "Fields are split by rows over {shards} IPUs, which exchange halos between steps. IPU 0 \
         runs the operations that need all rows"
    ))
}

/// A note on IPUs of the replica without a stage.
fn idle_ipus(compiled: &CompiledProgram) -> Option<String> {
    let stages = &compiled.placement.stages;
    let idle: Vec<String> = (0..compiled.compilation.target.ipus_per_replica)
        .map(IpuId)
        .filter(|ipu| stages.iter().all(|stage| stage.ipu != *ipu))
        .map(|ipu| ipu.to_string())
        .collect();
    let (ipus, are) = match idle.len() {
        0 => return None,
        1 => ("IPU", "is"),
        _ => ("IPUs", "are"),
    };
    Some(format!(
        "Warning: {ipus} {} {are} idle because no stage runs there: set options.stages, \
         options.domain_sharding or target.ipus",
        idle.join(", ")
    ))
}

/// A note on IPUs that come with a system and run nothing.
fn reserved_ipus(spec: &Spec) -> Option<String> {
    let used = spec.target.ipus * spec.options.tensor_parallel * spec.options.replication_factor;
    let reserved = spec.total_ipus();
    if used >= reserved {
        return None;
    }
    Some(format!(
        "{reserved} IPUs are reserved and {used} used: systems allocate IPUs in powers of \
    two"
    ))
}

/// A note on the phases that are split over the IPUs of their set.
fn phases(compiled: &CompiledProgram) -> Option<String> {
    let placement = &compiled.placement;
    let ipus = compiled.compilation.target.ipus_per_replica;
    let split: Vec<&str> = placement
        .peers()
        .iter()
        .filter(|stages| stages.len() > 1)
        .map(|stages| placement.stages[stages.start].name.as_str())
        .collect();
    let phases = placement.phases().len();
    let wide = placement.phases().iter().filter(|steps| {
        placement.together()[(*steps).clone()].iter().any(|stages| stages.len() > 1)
    });
    let wide = if split.is_empty() { wide.count() } else { 0 };
    if compiled.schedule.phased && ipus > 2 {
        Some(match split.len() {
            _ if wide > 0 => format!(
                "{wide} of {phases} phases run on several IPUs of their set at once, as the model \
                 assigns their operations"
            ),
            0 => format!(
                "None of the {phases} phases is split over the IPUs of its set: exchanging their \
                 activations would take longer than loading their weights"
            ),
            _ => format!(
                "{} of {phases} phases have their linear layers split over the IPUs of their set: {}",
                split.len(),
                split.join(", ")
            ),
        })
    } else {
        None
    }
}

fn io_tiles(compiled: &CompiledProgram) -> Option<String> {
    let target = &compiled.compilation.target;
    let tiles = target.io_tiles_per_ipu;
    if tiles == 0 {
        return None;
    }
    let mut of_ipus: BTreeMap<IpuId, Bytes> = BTreeMap::new();
    for copy in compiled.parts.host_inputs.iter().chain(&compiled.parts.host_outputs) {
        *of_ipus.entry(copy.ipu).or_default() += copy.bytes_in + copy.bytes_out;
    }
    let most = of_ipus.into_values().max().unwrap_or_default();
    let needed = Bytes::from_f64((IO_TILE_OVERHEAD.ratio() * most.as_f64()).ceil());
    let rule = needed.next_multiple_of(target.bytes_per_tile) / target.bytes_per_tile;
    Some(format!(
        "{tiles} I/O tiles per IPU; by the rule of thumb, a micro-batch of {} needs {}",
        binary_bytes(most.0),
        rule.next_power_of_two().max(32)
    ))
}

fn helper_threads(spec: &Spec) -> Option<String> {
    let options = &spec.options;
    let single = options.host.stream_callbacks_multi_thread_mode == MultiThreadMode::SingleThread;
    if !single || options.overlap_io == OverlapIo::None || options.local_replicas() == 1 {
        return None;
    }
    let note = "Warning: With several replicas, overlapped I/O requires worker threads on the \
    host: set options.host.stream_callbacks_multi_thread_mode = collaborative and \
    options.host.num_worker_threads = 6";
    Some(note.to_owned())
}

/// Streams with more bytes than this for a micro-batch may fail to be allocated: one of 149,766,584
/// bytes did (graphcore/poptorch #9). No limit is documented.
const LONG_STREAM: Bytes = Bytes(128 << 20);

/// Notes on tensors that are larger than any stream known to work.
fn long_streams(compiled: &CompiledProgram) -> Vec<String> {
    let copies = compiled.parts.host_inputs.iter().chain(&compiled.parts.host_outputs);
    // Several IPUs may receive the same tensor.
    let mut streams: BTreeMap<&str, &HostStreamCopy> = BTreeMap::new();
    for copy in copies {
        if let Some(tensor) = &copy.tensor
            && copy.bytes_in + copy.bytes_out > LONG_STREAM
        {
            streams.entry(&tensor.name).or_insert(copy);
        }
    }
    streams.into_iter().map(|(name, copy)| long_stream(name, copy)).collect()
}

fn long_stream(name: &str, copy: &HostStreamCopy) -> String {
    let is_result = copy.bytes_in.is_zero();
    let narrower = if is_result { "options.output_type" } else { "options.input_type" };
    format!(
        "Warning: The host stream of {name} has {} bytes per micro-batch; a stream of 149,766,584 \
         bytes could not be allocated (graphcore/poptorch #9). Set a smaller model.batch_size or a \
         narrower {narrower}, or split the tensor",
        grouped((copy.bytes_in + copy.bytes_out).0)
    )
}

/// A note on the host memory of the stream buffers, which hold every prefetched micro-batch.
fn stream_buffers(compiled: &CompiledProgram, spec: &Spec) -> Option<String> {
    let inputs: Bytes = compiled.parts.host_inputs.iter().map(|copy| copy.bytes_in).sum();
    let depth = spec.options.prefetch_depth;
    let local = u64::from(spec.options.local_replicas());
    let copies = compiled.compilation.programs.iter();
    let any = copies.filter(|program| program.kind == ProgramKind::StreamCopyMid).count() > 0;
    if any && !inputs.is_zero() && depth > 1 {
        let bytes = binary_bytes((inputs * depth * local).0);
        Some(format!(
            "The stream buffers of an instance use {bytes} of host memory at prefetch depth {depth}"
        ))
    } else {
        None
    }
}
