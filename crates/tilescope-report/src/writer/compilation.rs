//! Writes the compiled program as rows.

use crate::address_blob;
use crate::error::ReportError;
use crate::limits::{
    MAX_COUNT, MAX_CYCLES, MAX_IPUS, MAX_MACHINE_AMOUNT, MAX_REPLICAS, MAX_TILE_BYTES,
    MAX_TILE_CYCLES, MAX_TILE_VERTICES, MAX_TILES,
};
use crate::model::*;
use crate::row_writer::{RowWriter, check_tiles_exist, checked_i64, resolve};
use crate::strided_tile_runs::{StridedTileRuns, strided_runs_of};
use crate::units::{Bytes, Cycles, TileId, TileRange, TileRuns};
use crate::writer::tile_patterns::{PatternColumns, TilePatternWriter};
use crate::writer::{host, routes};
use rusqlite::params;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

type WriteResult = Result<(), ReportError>;

/// Writes all of `compilation`.
pub(super) fn write(rows: &RowWriter, compilation: &CompilationReport) -> WriteResult {
    machine(rows, compilation)?;
    operations(rows, compilation)?;
    programs(rows, compilation)?;
    let tiles_per_ipu = compilation.target.tiles_per_ipu;
    let tiles = compilation.target.tiles_per_replica();
    let mut patterns = TilePatternWriter::new(rows, tiles_per_ipu, tiles);
    compute_sets(rows, compilation, &mut patterns)?;
    exchanges(rows, compilation, &mut patterns)?;
    control_code(rows, compilation, &mut patterns)?;
    routes::write(rows, compilation, &mut patterns)?;
    data_flows(rows, compilation)?;
    variables(rows, compilation, &mut patterns)?;
    variable_uses(rows, compilation)?;
    memory(rows, compilation)?;
    let mut steps = rows.table("liveness_steps")?;
    for (id, step) in compilation.liveness.iter().enumerate() {
        let program = resolve(step.program.0, compilation.programs.len(), || {
            format!("program of liveness step {id}")
        })?;
        let bytes =
            checked_i64(step.bytes.0, MAX_COUNT, || format!("bytes of liveness step {id}"))?;
        steps.insert(params![id as i64, program, bytes])?;
    }
    Ok(())
}

fn machine(rows: &RowWriter, compilation: &CompilationReport) -> WriteResult {
    let CompilationReport { target, graph, .. } = compilation;
    let tiles = u64::from(target.tiles_per_ipu) * u64::from(target.ipus_per_replica);
    checked_i64(tiles, u64::from(MAX_TILES), || "number of tiles of the replica".to_owned())?;
    checked_i64(u64::from(target.ipus_per_replica), u64::from(MAX_IPUS), || {
        "number of IPUs".to_owned()
    })?;
    checked_i64(u64::from(target.io_tiles_per_ipu), target.tiles_per_ipu.into(), || {
        "number of I/O tiles".to_owned()
    })?;
    let count =
        |value: u64, name: &str| checked_i64(value, MAX_COUNT, || format!("{name} of the target"));
    let most = u64::from(MAX_REPLICAS);
    let replicas = checked_i64(u64::from(target.replicas), most, || "replicas".to_owned())?;
    rows.insert(
        "target",
        params![
            target.kind.name(),
            target.name,
            target.architecture,
            target.num_ipus,
            target.tiles_per_ipu,
            target.io_tiles_per_ipu,
            count(target.bytes_per_tile.0, "memory")?,
            count(target.clock.0, "clock")?,
            replicas,
            target.ipus_per_replica,
            count(target.memory_element_bytes.0, "memory element")?,
            count(target.interleaved_offset.0, "interleaved offset")?,
            target.tiles_per_column,
            target.physical_numbers,
        ],
    )?;
    for (id, change) in (0i64..).zip(&target.changes) {
        let MachineChange { key, title, unit, inherited, value } = change;
        let inherited = finite(*inherited, key)?;
        let value = finite(*value, key)?;
        rows.insert("machine_changes", params![id, key, title, unit.name(), inherited, value])?;
    }
    for (id, cost) in (0i64..).zip(&compilation.running_costs) {
        let RunningCost { kind, part, count: parts, each, currency, basis, source } = cost;
        let parts = count(*parts, "parts")?;
        let each = finite(*each, part)?;
        let currency = if *kind == RunningCostKind::Price { Some(currency) } else { None };
        rows.insert(
            "running_costs",
            params![id, kind.name(), part, parts, each, currency, basis.name(), source],
        )?;
    }
    for (id, bandwidth) in compilation.bandwidths.iter().enumerate() {
        let interface = bandwidth.interface.name();
        let most = bandwidth.bytes_per_cycle;
        rows.insert("bandwidths", params![id as i64, interface, most])?;
    }
    for (id, rate) in compilation.compute_rates.iter().enumerate() {
        let flops = count(rate.flops_per_cycle, "FLOPs per cycle")?;
        let engine = rate.engine.name();
        let input = rate.input.name();
        rows.insert(
            "compute_rates",
            params![id as i64, engine, input, rate.partials.name(), flops],
        )?;
    }
    for (id, cost) in compilation.action_costs.iter().enumerate() {
        let cycles = checked_i64(cost.cycles, MAX_CYCLES, || "cycles of an action".to_owned())?;
        rows.insert("action_costs", params![id as i64, cost.action.name(), cycles])?;
    }
    if let Some(groups) = &compilation.sync_groups {
        let gs1 = groups.gs1.iter().map(|ipu| (GS1, 0, ipu));
        let parts = (0i64..).zip(&groups.gs2);
        let gs2 = parts.flat_map(|(part, ipus)| ipus.iter().map(move |ipu| (GS2, part, ipu)));
        for (id, (group, part, ipu)) in (0i64..).zip(gs1.chain(gs2)) {
            rows.insert("sync_groups", params![id, group, part, ipu])?;
        }
    }
    for (id, band) in compilation.error_bands.iter().enumerate() {
        let ErrorBand { kind, basis, rows: measured, cycles, bytes } = band;
        rows.insert(
            "error_bands",
            params![
                id as i64,
                kind,
                basis.name(),
                count(*measured, "measured operations")?,
                cycles.low,
                cycles.high,
                bytes.low,
                bytes.high,
            ],
        )?;
    }
    for (id, error) in (0i64..).zip(&compilation.program_errors) {
        let ProgramErrorBand { source, rows: figures, factors } = error;
        let figures = count(*figures, "published figures")?;
        rows.insert(
            "program_errors",
            params![id, source.name(), figures, factors.low, factors.high],
        )?;
    }
    for tile in TileRange::first_tiles(target.tiles_per_replica()).iter() {
        rows.insert("tiles", params![tile, target.ipu_of_tile(tile)])?;
    }
    let count =
        |value: u64, name: &str| checked_i64(value, MAX_COUNT, || format!("number of {name}"));
    rows.insert(
        "graph",
        params![
            count(graph.compute_sets, "compute sets")?,
            count(graph.vertices, "vertices")?,
            count(graph.edges, "edges")?,
            count(graph.variables, "variables")?,
        ],
    )?;
    for (id, (key, value)) in compilation.options.iter().enumerate() {
        rows.insert("options", params![id as i64, key, value])?;
    }
    if let Some(batching) = &compilation.batching {
        rows.insert(
            "batching",
            params![
                count(batching.micro_batch, "samples of a micro-batch")?,
                count(batching.gradient_accumulation, "accumulated micro-batches")?,
                count(batching.replicas, "replicas")?,
                count(batching.device_iterations, "device iterations")?,
            ],
        )?;
    }
    for (id, text) in compilation.notes.iter().enumerate() {
        rows.insert("notes", params![id as i64, text])?;
    }
    replica_rings(rows, compilation)?;
    replica_classes(rows, compilation)?;
    compilation.host.as_ref().map_or(Ok(()), |report| host::write(rows, report))
}

fn replica_rings(rows: &RowWriter, compilation: &CompilationReport) -> WriteResult {
    for (id, ring) in (0i64..).zip(&compilation.replica_rings) {
        let order = ring.order.name();
        let links = ring.links.name();
        let row = params![id, order, links, ring.ranks, ring.spacing, ring.clockwise];
        rows.insert("replica_rings", row)?;
        for program in &ring.programs {
            let program = resolve(program.0, compilation.programs.len(), || {
                "program of a ring of replicas".to_owned()
            })?;
            rows.insert("replica_ring_programs", params![program, id])?;
        }
    }
    Ok(())
}

fn replica_classes(rows: &RowWriter, compilation: &CompilationReport) -> WriteResult {
    let ReplicaClasses { classes, joins } = &compilation.replica_classes;
    checked_i64(classes.len() as u64, u64::from(MAX_REPLICAS), || "replica classes".to_owned())?;
    for (id, class) in (0i64..).zip(classes) {
        rows.insert("replica_classes", params![id, class.why])?;
        for replica in &class.replicas {
            let replica = resolve(*replica, compilation.target.replicas as usize, || {
                format!("replica of class {id}")
            })?;
            rows.insert("replicas", params![replica, id])?;
        }
    }
    for program in joins {
        let program = resolve(program.0, compilation.programs.len(), || {
            "program at which replicas meet".to_owned()
        })?;
        rows.insert("replica_joins", params![program])?;
    }
    Ok(())
}

/// An amount of a machine; an error unless it is finite, since readers refuse other numbers.
fn finite(number: f64, of: &str) -> Result<f64, ReportError> {
    if (0.0..=MAX_MACHINE_AMOUNT).contains(&number) {
        Ok(number)
    } else {
        Err(ReportError::invalid_input(format!("{of} of the machine is {number}")))
    }
}

fn operations(rows: &RowWriter, compilation: &CompilationReport) -> WriteResult {
    let mut table = rows.table("operations")?;
    let mut inputs = rows.table("operation_inputs")?;
    for (id, operation) in compilation.operations.iter().enumerate() {
        let ipus = compilation.target.ipus_per_replica as usize;
        let ipu = operation
            .ipu
            .map(|ipu| resolve(ipu.0, ipus, || format!("IPU of operation {}", operation.name)))
            .transpose()?;
        let flops =
            checked_i64(operation.flops, MAX_COUNT, || format!("flops of {}", operation.name))?;
        let inner_runs = operation
            .inner_runs
            .map(|runs| checked_i64(runs, MAX_COUNT, || format!("runs of {}", operation.name)))
            .transpose()?;
        table.insert(params![
            id as i64,
            operation.name,
            operation.kind,
            operation.source,
            operation.pass.name(),
            operation.block,
            ipu,
            flops,
            operation.shapes,
            operation.plan,
            operation.element_type.map(ArithmeticType::name),
            inner_runs,
            operation.cost_basis.map(CostBasis::name),
        ])?;
        for (position, input) in operation.inputs.iter().enumerate() {
            let input =
                resolve(input.0, id, || format!("earlier operation read by {}", operation.name))?;
            inputs.insert(params![id as i64, position as i64, input])?;
        }
    }
    Ok(())
}

fn programs(rows: &RowWriter, compilation: &CompilationReport) -> WriteResult {
    let CompilationReport { programs, compute_sets, operations, target, .. } = compilation;
    let mut table = rows.table("programs")?;
    let mut children = rows.table("program_children")?;
    let mut outlined = rows.table("outlined_programs")?;
    for (id, program) in programs.iter().enumerate() {
        let describe = |part: &str| format!("{part} of program {id} ({})", program.name);
        let ipu = program
            .ipu
            .map(|ipu| resolve(ipu.0, target.ipus_per_replica as usize, || describe("IPU")));
        let compute_set = program
            .compute_set
            .map(|cs| resolve(cs.0, compute_sets.len(), || describe("compute set")));
        let operation =
            program.operation.map(|op| resolve(op.0, operations.len(), || describe("operation")));
        table.insert(params![
            id as i64,
            program.name,
            program.kind.name(),
            ipu.transpose()?,
            compute_set.transpose()?,
            operation.transpose()?,
            program.stream.name(),
            checked_i64(program.repeats, MAX_COUNT, || describe("repeats"))?,
        ])?;
        for (position, child) in program.children.iter().enumerate() {
            let child = resolve(child.0, programs.len(), || describe("child"))?;
            children.insert(params![id as i64, position as i64, child])?;
        }
        if let Some(OutlinedCall { body, call }) = program.outlined {
            let body = resolve(body.0, programs.len(), || describe("body"))?;
            let call = resolve(call.0, programs.len(), || describe("call"))?;
            outlined.insert(params![id as i64, body, call])?;
        }
    }
    for (position, root) in compilation.roots.iter().enumerate() {
        let root = resolve(root.0, programs.len(), || "root of the program tree".to_owned())?;
        rows.insert("program_roots", params![position as i64, root])?;
    }
    Ok(())
}

fn compute_sets(
    rows: &RowWriter,
    compilation: &CompilationReport,
    patterns: &mut TilePatternWriter,
) -> WriteResult {
    for (id, vertex_type) in compilation.vertex_types.iter().enumerate() {
        let bytes =
            |value| checked_i64(value, MAX_TILE_BYTES, || format!("bytes of {}", vertex_type.name));
        let code = bytes(vertex_type.code_bytes)?;
        let state = bytes(vertex_type.state_bytes)?;
        let shares_code = vertex_type.shares_code;
        rows.insert(
            "vertex_types",
            params![id as i64, vertex_type.name, code, state, shares_code],
        )?;
    }
    let mut groups = 0i64;
    for (id, set) in compilation.compute_sets.iter().enumerate() {
        let describe = |part: &str| format!("{part} of compute set {}", set.name);
        let cycles =
            |&cycles: &Cycles| Ok([checked_i64(cycles, MAX_TILE_CYCLES, || describe("cycles"))?]);
        let place = patterns.place(&set.cycles, cycles, || describe("work"))?;
        rows.insert("compute_sets", params![id as i64, set.name, place.base_tile, place.pattern])?;
        for group in &set.vertices {
            let types = compilation.vertex_types.len();
            let vertex_type = resolve(group.vertex_type.0, types, || describe("vertex type"))?;
            let edges = checked_i64(group.edges, MAX_COUNT, || describe("edges"))?;
            let place = patterns.place(
                &group.count,
                |&count| {
                    Ok([checked_i64(count, MAX_TILE_VERTICES, || describe("number of vertices"))?])
                },
                || describe("vertices"),
            )?;
            let flops = group
                .flops
                .map(|flops| checked_i64(flops, MAX_COUNT, || describe("FLOPs")))
                .transpose()?;
            let PatternColumns { base_tile, pattern } = place;
            rows.insert(
                "vertex_groups",
                params![groups, id as i64, vertex_type, edges, base_tile, pattern, flops],
            )?;
            groups += 1;
        }
    }
    Ok(())
}

fn data_flows(rows: &RowWriter, compilation: &CompilationReport) -> WriteResult {
    let CompilationReport { data_flows: DataFlows { buffers, accesses }, programs, .. } =
        compilation;
    let mut table = rows.table("data_buffers")?;
    for (id, buffer) in buffers.iter().enumerate() {
        let ipus = compilation.target.ipus_per_replica as usize;
        let ipu = resolve(buffer.ipu.0, ipus, || format!("IPU of {}", buffer.name))?;
        let entries =
            checked_i64(buffer.entries, MAX_COUNT, || format!("entries of {}", buffer.name))?;
        let place = buffer.place.name();
        let persistent = buffer.persistent;
        let filled = buffer.filled;
        let row = params![id as i64, buffer.name, place, ipu, entries, persistent, filled];
        table.insert(row)?;
    }
    let mut table = rows.table("data_accesses")?;
    for (id, access) in accesses.iter().enumerate() {
        let describe = |part: &str| format!("{part} of data access {id}");
        let program = resolve(access.program.0, programs.len(), || describe("program"))?;
        let buffer = resolve(access.buffer.0, buffers.len(), || describe("buffer"))?;
        let row = params![id as i64, access.flow.0, program, buffer, access.kind.name()];
        table.insert(row)?;
    }
    Ok(())
}

fn exchanges(
    rows: &RowWriter,
    compilation: &CompilationReport,
    patterns: &mut TilePatternWriter,
) -> WriteResult {
    for (id, exchange) in compilation.exchanges.iter().enumerate() {
        let describe = || format!("traffic of exchange {id}");
        let program = resolve(exchange.program.0, compilation.programs.len(), || {
            format!("program of exchange {id}")
        })?;
        let check_traffic = |traffic: &TileTraffic| {
            Ok([
                checked_i64(traffic.bytes_in, MAX_TILE_BYTES, describe)?,
                checked_i64(traffic.bytes_out, MAX_TILE_BYTES, describe)?,
                checked_i64(traffic.bytes_delivered, MAX_TILE_BYTES, describe)?,
                checked_i64(traffic.messages_in, MAX_TILE_BYTES.0, describe)?,
                checked_i64(traffic.messages_out, MAX_TILE_BYTES.0, describe)?,
                checked_i64(traffic.code_bytes, MAX_TILE_BYTES, describe)?,
            ])
        };
        let place = patterns.place(&exchange.tiles, check_traffic, describe)?;
        rows.insert("exchanges", params![id as i64, program, place.base_tile, place.pattern])?;
        if !exchange.cycles.is_empty() {
            let place = patterns.place(
                &exchange.cycles,
                |&cycles| {
                    Ok([checked_i64(cycles, MAX_TILE_CYCLES, || {
                        format!("cycles of exchange {id}")
                    })?])
                },
                describe,
            )?;
            rows.insert("exchange_cycles", params![id as i64, place.base_tile, place.pattern])?;
        }
    }
    Ok(())
}

fn control_code(
    rows: &RowWriter,
    compilation: &CompilationReport,
    patterns: &mut TilePatternWriter,
) -> WriteResult {
    for code in &compilation.control_code {
        let describe = || format!("control code of program {}", code.program.0);
        let program = resolve(code.program.0, compilation.programs.len(), describe)?;
        let place = patterns.place(
            &code.tiles,
            |&bytes| Ok([checked_i64(bytes, MAX_TILE_BYTES, describe)?]),
            describe,
        )?;
        rows.insert("control_code", params![program, place.base_tile, place.pattern])?;
    }
    Ok(())
}

fn variable_uses(rows: &RowWriter, compilation: &CompilationReport) -> WriteResult {
    let mut table = rows.table("variable_uses")?;
    for (id, VariableUse { variable, steps }) in compilation.variable_uses.iter().enumerate() {
        let variable =
            resolve(variable.0, compilation.variables.len(), || format!("variable of use {id}"))?;
        table.insert(params![id as i64, variable, steps.start, steps.end])?;
    }
    Ok(())
}

/// Assigns ids to texts, in the order of first use.
#[derive(Default)]
struct StringTableWriter<'a>(HashMap<&'a str, i64>);

impl<'a> StringTableWriter<'a> {
    fn id(&mut self, rows: &RowWriter, text: &'a str) -> Result<i64, ReportError> {
        if let Some(&id) = self.0.get(text) {
            return Ok(id);
        }
        let id = self.0.len() as i64;
        self.0.insert(text, id);
        rows.insert("vars_string_table", params![id, text])?;
        Ok(id)
    }
}

fn variables(
    rows: &RowWriter,
    compilation: &CompilationReport,
    patterns: &mut TilePatternWriter,
) -> WriteResult {
    for category in MemoryCategory::ALL {
        rows.insert("var_categories", params![category as i64, category.name()])?;
    }
    let mut strings = StringTableWriter::default();
    let mut addresses = AddressWriter::default();
    let mut table = rows.table("vars")?;
    for (id, variable) in compilation.variables.iter().enumerate() {
        let describe = |part: &str| format!("{part} of variable {}", variable.name);
        let name = strings.id(rows, &variable.name)?;
        let shape = strings.id(rows, &variable.shape)?;
        let operations = compilation.operations.len();
        let operation = variable
            .operation
            .map(|op| resolve(op.0, operations, || describe("operation")))
            .transpose()?;
        let live = variable.lifetime.as_ref();
        let place = patterns.place_parts(
            &variable.tiles,
            |tiles| tiles.map(|part| part.bytes),
            |&bytes| Ok([checked_i64(bytes, MAX_TILE_BYTES, || describe("size"))?]),
            || describe("part"),
        )?;
        let base = place.base_tile.unwrap_or(TileId(0));
        table.insert(params![
            id as i64,
            name,
            variable.category as i64,
            operation,
            shape,
            live.map(|steps| steps.start),
            live.map(|steps| steps.end),
            place.base_tile,
            place.pattern,
            addresses.id(rows, variable, base)?,
        ])?;
    }
    Ok(())
}

/// Assigns ids to blobs of addresses. Equal blobs are written once.
#[derive(Default)]
struct AddressWriter(HashMap<Vec<u8>, i64>);

impl AddressWriter {
    fn id(&mut self, rows: &RowWriter, of: &Variable, base: TileId) -> Result<i64, ReportError> {
        let addresses = of.tiles.map(|part| part.offset);
        checked_i64(addresses.max(), MAX_TILE_BYTES, || {
            format!("address of variable {}", of.name)
        })?;
        let blob = address_blob::encode(&addresses, base);
        let next = self.0.len() as i64;
        match self.0.entry(blob) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(new) => {
                rows.insert("addresses", params![next, new.key()])?;
                Ok(*new.insert(next))
            }
        }
    }
}

fn memory(rows: &RowWriter, compilation: &CompilationReport) -> WriteResult {
    let tile_count = compilation.target.tiles_per_replica();
    for (tiles, memory) in compilation.tile_memory.iter() {
        check_tiles_exist(&StridedTileRuns::single_run(tiles), tile_count, || "memory".to_owned())?;
        let check_bytes = |value| {
            checked_i64(value, MAX_TILE_BYTES, || format!("memory of tile {}", tiles.first))
        };
        let including_gaps = check_bytes(memory.including_gaps)?;
        let non_interleaved = check_bytes(memory.non_interleaved)?;
        let interleaved = check_bytes(memory.interleaved)?;
        let overflowed = check_bytes(memory.overflowed)?;
        let always_live = check_bytes(memory.always_live)?;
        let peak = check_bytes(memory.peak_not_always_live)?;
        for tile in tiles.iter() {
            rows.insert(
                "memory_by_tile",
                params![
                    tile,
                    non_interleaved + interleaved + overflowed,
                    including_gaps,
                    non_interleaved,
                    interleaved,
                    overflowed,
                    always_live,
                    peak,
                ],
            )?;
        }
    }
    for ((category, region, overlapped), bytes) in owners(&compilation.tile_categories)? {
        for (strided, bytes) in strided_runs_of(&bytes) {
            let describe = || format!("memory by category of tile {}", strided.first);
            check_tiles_exist(&strided, tile_count, describe)?;
            rows.insert(
                "category_bytes",
                params![
                    category as i64,
                    region as i64,
                    overlapped,
                    strided.first,
                    strided.first_run_end(),
                    strided.stride,
                    strided.repeats,
                    checked_i64(bytes, MAX_TILE_BYTES, describe)?,
                ],
            )?;
        }
    }
    Ok(())
}

/// The owner of bytes: category, region, and whether they share their address.
type MemoryOwner = (MemoryCategory, MemoryRegion, bool);

/// Bytes per tile of each owner, from the owners of each tile.
fn owners(
    tiles: &TileRuns<Vec<CategoryBytes>>,
) -> Result<BTreeMap<MemoryOwner, TileRuns<Bytes>>, ReportError> {
    let mut owners: BTreeMap<_, TileRuns<Bytes>> = BTreeMap::new();
    for (range, list) in tiles.iter() {
        for share in list {
            let owner = (share.category, share.region, share.overlapped);
            let bytes = owners.entry(owner).or_default();
            if bytes.get(range.first).is_some() {
                let problem =
                    format!("memory by category of tile {} names an owner twice", range.first);
                return Err(ReportError::invalid_input(problem));
            }
            bytes.push(range, share.bytes);
        }
    }
    Ok(owners)
}
