//! The list of tables.

use super::{
    ReportTable, critical_path, exchange_code, execution_trace, host as hosts, limits as bounds,
    memory as lists, operations as costs,
};
use super::{liveness as live, tile_mapping, tile_samples};
use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::limits::{ReportLimits, limits, roofline};
use crate::operations::{OperationLayer, operations};
use crate::operations_graph::{OpGraphKey, graph};
use crate::replica_classes::replica_numbers;
use crate::replica_rings::replica_links;
use crate::tile_mapping::{MappingSubjectKind, replica_shares};
use crate::tile_samples::{SampleFilter, SampleGrouping};
use crate::trace::{ProgramRunTotals, program_runs, run_summary};
use crate::{host, insights, liveness, memory, program_tree, replicas, summary};
use tilescope_report::units::{IpuId, NumberFormat, ProgramId};
use tilescope_report::{ProgramKind, Report, ReportError};

type ReadTableResult = Result<DataTable, ReportError>;

/// A table that its view shows as one.
const fn shown(
    view: &'static str,
    name: &'static str,
    about: &'static str,
    read: fn(&Report) -> ReadTableResult,
) -> ReportTable {
    ReportTable { view, name, about, on_screen: true, read }
}

/// A table of what its view shows as a graph, a tree or cards.
const fn drawn(
    view: &'static str,
    name: &'static str,
    about: &'static str,
    read: fn(&Report) -> ReadTableResult,
) -> ReportTable {
    ReportTable { view, name, about, on_screen: false, read }
}

/// Every table, in the order of views.
pub static TABLES: &[ReportTable] = &[
    drawn("summary", "figures", "Every figure of the summary", figures),
    drawn("summary", "options", "Options of the engine", options),
    drawn("summary", "host-rates", "The loader alone, synthetic data and real data", |report| {
        Ok(hosts::rates(host::host(report)?.as_ref()))
    }),
    drawn("summary", "host-call", "What a host call is made of", |report| {
        Ok(hosts::call(host::host(report)?.as_ref()))
    }),
    drawn("summary", "host-tensors", "What a host call takes and returns", |report| {
        Ok(hosts::tensors(host::host(report)?.as_ref()))
    }),
    drawn("summary", "host-epochs", "Steps and time of epochs", |report| {
        Ok(hosts::epochs(host::host(report)?.as_ref()))
    }),
    drawn("summary", "replica-waits", "What the replicas wait for", |report| {
        Ok(hosts::replica_waits(host::host(report)?.as_ref()))
    }),
    drawn("summary", "sync-groups", "Which IPUs of a replica wait for each other", sync_groups),
    drawn("summary", "collectives", "What replicas exchange in the run, by kind", collectives),
    drawn("summary", "replica-links", "What each replica sends, receives and passes on", links),
    drawn("insights", "findings", "Findings of all rules", findings),
    drawn("memory", "tiles", "Memory of every tile", tile_memory),
    shown("memory", "details", "Memory by region and kind of data, over all tiles", |report| {
        Ok(lists::details(&memory::details(report, &[])?, &[]))
    }),
    shown("memory", "variables", "Variables over all tiles", |report| {
        Ok(lists::variables(&memory::variables(report, &[])?, &[]))
    }),
    shown("memory", "vertices", "Vertices over all tiles", |report| {
        Ok(lists::vertices(&memory::vertices(report, &[])?, &[]))
    }),
    shown("memory", "compute-sets", "Compute sets over all tiles", |report| {
        Ok(lists::compute_sets(&memory::compute_sets(report, &[])?, &[]))
    }),
    shown("memory", "exchanges", "Code of exchanges over all tiles", |report| {
        Ok(lists::exchanges(&memory::exchanges(report, &[], NumberFormat::default())?, &[]))
    }),
    drawn("liveness", "steps", "Bytes live at every step", live_steps),
    shown("liveness", "always-live", "Variables that are always live", |report| {
        let source = liveness::LivenessScope::Whole;
        Ok(live::always_live(&liveness::always_live(report, source)?, source))
    }),
    shown("liveness", "peak", "Variables that are live at the fullest step", live_at_peak),
    drawn("liveness", "addresses", "Variables of the fullest tile, by address", |report| {
        Ok(live::addresses(&fullest_by_address(report)?))
    }),
    shown(
        "liveness",
        "free-blocks",
        "Blocks of the fullest tile that are free at its fullest step",
        |report| {
            let timeline = fullest_by_address(report)?;
            let free = timeline.peak().map(|step| timeline.free_in(step..step + 1));
            Ok(live::free_blocks(&timeline, &free.unwrap_or_default()))
        },
    ),
    drawn("program-tree", "programs", "Lines of the tree", tree),
    shown("operations", "operations", "What every operation of the model costs", |report| {
        costs_of(report, OperationLayer::Model)
    }),
    shown("operations", "library-calls", "What every call of a library costs", |report| {
        costs_of(report, OperationLayer::Library)
    }),
    shown("operations", "programs", "What every program costs", |report| {
        costs_of(report, OperationLayer::Program)
    }),
    shown("limits", "operations", "What every operation could cost at least", |report| {
        Ok(bounds::operations(&limits(report)?.rows))
    }),
    shown("limits", "classes", "Where the cycles of every operation go", |report| {
        Ok(bounds::classes(&limits(report)?.rows))
    }),
    shown("limits", "roofline", "Operations as points below the roofs of an IPU", |report| {
        let ReportLimits { machine, rows, .. } = &*limits(report)?;
        Ok(bounds::roofline(&roofline(machine, rows, None), rows, machine))
    }),
    shown("limits", "waterfall", "From the peak down to what the run achieves", |report| {
        let all = limits(report)?.run.as_ref().map(|run| run.all);
        Ok(bounds::waterfall(&all.unwrap_or_default()))
    }),
    drawn("operations-graph", "edges", "Which operation reads whose results", edges),
    shown("execution-trace", "ipus", "What every IPU spends the run on", ipus),
    drawn(
        "execution-trace",
        "critical-path",
        "What the critical path goes through",
        critical_path::path,
    ),
    drawn("execution-trace", "slack", "Slack, waits and lead of every IPU", critical_path::slack),
    drawn("execution-trace", "programs", "Executions of every program on every IPU", executions),
    drawn(
        "execution-trace",
        "schedule",
        "Stages and micro-batches of the first iteration, slot by slot",
        execution_trace::schedule,
    ),
    drawn("execution-trace", "samples-by-kind", "Samples of measured tiles, by kind", |report| {
        samples_by(report, SampleGrouping::Kind)
    }),
    drawn("execution-trace", "samples-by-kernel", "The same by kernel", |report| {
        samples_by(report, SampleGrouping::Kernel)
    }),
    drawn("execution-trace", "samples-by-operation", "The same by operation", |report| {
        samples_by(report, SampleGrouping::Operation)
    }),
    drawn("execution-trace", "samples-by-phase", "The same by phase of the program", |report| {
        samples_by(report, SampleGrouping::Phase)
    }),
    drawn("execution-trace", "samples-by-epoch", "The same by run of the program", |report| {
        samples_by(report, SampleGrouping::Epoch)
    }),
    drawn("execution-trace", "samples-by-tile", "The same by tile", |report| {
        samples_by(report, SampleGrouping::Tile)
    }),
    drawn(
        "execution-trace",
        "samples-by-metadata",
        "The same by each name and value of the metadata",
        tile_samples::samples_by_metadata,
    ),
    shown("exchange-code", "overview", "Code by kind of link", |report| {
        Ok(exchange_code::overview(&crate::exchange_code::overview(report)?))
    }),
    shown("exchange-code", "programs", "Code and traffic of every program", |report| {
        Ok(exchange_code::programs(&crate::exchange_code::programs(report, &[])?))
    }),
    shown(
        "exchange-code",
        "cycles",
        "What every exchange takes in the run, and could take at least",
        |report| Ok(exchange_code::cycles(&crate::exchange_code::exchange_cycles(report)?)),
    ),
    shown("exchange-code", "ipu-pairs", "What each IPU sends to each other one", |report| {
        Ok(exchange_code::ipu_pairs(&crate::exchange_code::ipu_pairs(report)?))
    }),
    shown("exchange-code", "tiles", "Code and traffic of every tile", |report| {
        Ok(exchange_code::tiles(&crate::exchange_code::tiles(report)?))
    }),
    shown("tile-mapping", "tensors", "Tensors and how many tiles hold them", |report| {
        mapped(report, MappingSubjectKind::Tensors)
    }),
    shown("tile-mapping", "operations", "Operations and how many tiles work for them", |report| {
        mapped(report, MappingSubjectKind::Operations)
    }),
    shown("tile-mapping", "compute-sets", "Compute sets and how many tiles run them", |report| {
        mapped(report, MappingSubjectKind::ComputeSets)
    }),
    drawn("tile-mapping", "replicas", "Which part of each tensor a replica holds", |report| {
        Ok(tile_mapping::replicas(&replica_shares(report)?))
    }),
];

fn samples_by(report: &Report, by: SampleGrouping) -> ReadTableResult {
    tile_samples::samples(report, &by, &SampleFilter::new())
}

fn figures(report: &Report) -> ReadTableResult {
    let value = serde_json::to_value(summary::summary(report)?).unwrap_or_default();
    let mut rows = Vec::new();
    flatten("", &value, &mut rows);
    Ok(DataTable::new(vec![TableColumn::text("Figure"), TableColumn::number("Value")], rows))
}

/// Every leaf of a tree of values, by its path.
fn flatten(path: &str, value: &serde_json::Value, rows: &mut Vec<Vec<TableCell>>) {
    let below = |name: &str| {
        if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
    };
    let leaf = match value {
        serde_json::Value::Object(fields) => {
            return fields.iter().for_each(|(name, value)| flatten(&below(name), value, rows));
        }
        serde_json::Value::Array(values) => {
            let numbered = values.iter().enumerate();
            return numbered.for_each(|(at, value)| flatten(&below(&at.to_string()), value, rows));
        }
        serde_json::Value::Null => TableCell::Missing,
        serde_json::Value::String(text) => text.as_str().into(),
        serde_json::Value::Bool(yes) => yes.to_string().into(),
        serde_json::Value::Number(number) => {
            let whole = number.as_u64().map(TableCell::Count);
            whole.or_else(|| number.as_f64().map(TableCell::Real)).into()
        }
    };
    rows.push(vec![path.into(), leaf]);
}

fn options(report: &Report) -> ReadTableResult {
    let options = report.options()?.into_iter();
    let rows = options.map(|(name, value)| vec![name.into(), value.into()]).collect();
    Ok(DataTable::new(vec![TableColumn::text("Option"), TableColumn::text("Value")], rows))
}

fn sync_groups(report: &Report) -> ReadTableResult {
    let groups = replicas::replicas(report)?.groups.unwrap_or_default();
    let row = |group: &str, part: usize, ipu: &IpuId| {
        vec![group.into(), TableCell::Id(part as u64), TableCell::Id((*ipu).into())]
    };
    let gs1 = groups.gs1.iter().map(|ipu| row("GS1", 0, ipu));
    let parts = groups.gs2.iter().enumerate();
    let gs2 = parts.flat_map(|(part, ipus)| ipus.iter().map(move |ipu| row("GS2", part, ipu)));
    let columns =
        vec![TableColumn::text("Group"), TableColumn::short("Part"), TableColumn::short("IPU")];
    Ok(DataTable::new(columns, gs1.chain(gs2).collect()))
}

fn links(report: &Report) -> ReadTableResult {
    let rows = replica_links(report)?.into_iter().map(|of| {
        vec![
            TableCell::Id(of.replica.into()),
            replica_numbers(&of.to).as_str().into(),
            replica_numbers(&of.from).as_str().into(),
            TableCell::Bytes(of.sent),
            TableCell::Bytes(of.received),
            TableCell::Bytes(of.passed_on),
        ]
    });
    let columns = vec![
        TableColumn::short("Replica"),
        TableColumn::text("Sends to"),
        TableColumn::text("Receives from"),
        TableColumn::bytes("Sent").about("Bytes of collectives, over all IPUs of the replica"),
        TableColumn::bytes("Received").about("Bytes of collectives, over all IPUs of the replica"),
        TableColumn::bytes("Passed on").about("Bytes between others that pass over its links"),
    ];
    Ok(DataTable::new(columns, rows.collect()))
}

fn collectives(report: &Report) -> ReadTableResult {
    let found = replicas::replicas(report)?.collectives.into_iter();
    let rows = found.map(|of| {
        vec![
            of.kind.into(),
            TableCell::Count(of.programs),
            TableCell::Count(of.executions),
            TableCell::Count(of.cycles.0),
            TableCell::Bytes(of.bytes),
        ]
    });
    let columns = vec![
        TableColumn::text("Collective"),
        TableColumn::number("Programs"),
        TableColumn::number("Executions"),
        TableColumn::number("Cycles"),
        TableColumn::bytes("Moved"),
    ];
    Ok(DataTable::new(columns, rows.collect()))
}

fn findings(report: &Report) -> ReadTableResult {
    let rows = insights::insights(report, NumberFormat::default())?.into_iter().map(|finding| {
        let gain = finding.gain.text();
        vec![finding.rule.into(), finding.sentence.into(), finding.advice.into(), gain.into()]
    });
    let columns = ["Rule", "Finding", "Advice", "Gain"].map(TableColumn::text);
    Ok(DataTable::new(columns.to_vec(), rows.collect()))
}

fn tile_memory(report: &Report) -> ReadTableResult {
    let mut rows = Vec::new();
    for (tiles, memory) in report.tile_memory()?.iter() {
        let values = [
            memory.including_gaps,
            memory.non_interleaved,
            memory.interleaved,
            memory.overflowed,
            memory.always_live,
            memory.peak_not_always_live,
        ];
        for tile in tiles.iter() {
            let row = std::iter::once(TableCell::Tile(tile)).chain(values.map(TableCell::Bytes));
            rows.push(row.collect());
        }
    }
    let mut columns = vec![TableColumn::text("Tile")];
    let values = [
        "Including gaps",
        "Non-interleaved",
        "Interleaved",
        "Overflowed",
        "Always live",
        "Peak of not always live",
    ];
    columns.extend(values.map(TableColumn::bytes));
    Ok(DataTable::new(columns, rows))
}

fn live_steps(report: &Report) -> ReadTableResult {
    let curve = liveness::curve(report, liveness::LivenessScope::Whole)?.unwrap_or_default();
    let programs = report.programs()?;
    let rows = (0..curve.others.len()).map(|step| {
        let program = curve.programs.get(step).and_then(|id| programs.get(*id));
        vec![
            TableCell::Id(step as u64),
            program.map(|program| program_tree::label(program).into()).into(),
            TableCell::Bytes(curve.total(step)),
            curve.others.get(step).copied().map(TableCell::Bytes).into(),
        ]
    });
    let columns = vec![
        TableColumn::short("Step"),
        TableColumn::text("Program"),
        TableColumn::bytes("Live"),
        TableColumn::bytes("Not always live"),
    ];
    Ok(DataTable::new(columns, rows.collect()))
}

fn live_at_peak(report: &Report) -> ReadTableResult {
    let source = liveness::LivenessScope::Whole;
    let peak = liveness::curve(report, source)?.and_then(|curve| curve.peak());
    let steps: Vec<u32> = peak.and_then(|peak| u32::try_from(peak).ok()).into_iter().collect();
    Ok(live::live_at(&liveness::live_at(report, source, &steps)?, &steps))
}

/// The memory of the fullest tile by address; empty where addresses or lifetimes were not recorded.
fn fullest_by_address(report: &Report) -> Result<liveness::AddressTimeline, ReportError> {
    let tile = memory::fullest_tile(report)?;
    Ok(liveness::by_address(report, tile)?.unwrap_or_default())
}

fn tree(report: &Report) -> ReadTableResult {
    let (programs, costs) = (report.programs()?, program_tree::costs(report)?);
    let mut rows = Vec::new();
    for group in program_tree::groups(&programs) {
        for row in program_tree::rows(&programs, group.root, &Default::default()) {
            let Some(program) = programs.get(row.id) else { continue };
            let exposure = costs.nodes.get(&row.id).and_then(|node| node.exposure);
            let [on_path, exposed, hidden] = critical_path::exposure_cells(exposure.as_ref());
            rows.push(vec![
                group.title.as_str().into(),
                TableCell::Count(row.depth.into()),
                TableCell::Id(row.id.0.into()),
                program.kind.name().into(),
                program.name.as_str().into(),
                program.ipu.map(|ipu| TableCell::Id(ipu.into())).into(),
                TableCell::Count(program.repeats),
                on_path,
                exposed,
                hidden,
            ]);
        }
    }
    let columns = [
        TableColumn::text("Tree"),
        TableColumn::number("Depth"),
        TableColumn::short("Id"),
        TableColumn::text("Type"),
        TableColumn::text("Name"),
        TableColumn::short("IPU"),
        TableColumn::number("Repeats"),
    ];
    let columns = columns.into_iter().chain(critical_path::exposure_columns()).collect();
    Ok(DataTable::new(columns, rows))
}

fn costs_of(report: &Report, layer: OperationLayer) -> ReadTableResult {
    Ok(costs::operations(&operations(report, layer)?, report, layer))
}

fn edges(report: &Report) -> ReadTableResult {
    let columns = vec![TableColumn::text("Read"), TableColumn::text("By")];
    let key = OpGraphKey { backward: true, update: true, open: None };
    let Some(graph) = graph(report, &key)? else { return Ok(DataTable::new(columns, Vec::new())) };
    let title = |node: usize| -> TableCell {
        graph.nodes.get(node).map(|node| node.title.as_str().into()).into()
    };
    let rows = graph.edges.iter().map(|edge| vec![title(edge.from), title(edge.to)]);
    Ok(DataTable::new(columns, rows.collect()))
}

fn ipus(report: &Report) -> ReadTableResult {
    let classes = report.replica_classes()?;
    let Some(trace) = report.trace()? else {
        return Ok(execution_trace::ipus(&[], &classes, report));
    };
    Ok(execution_trace::ipus(&run_summary(&trace)?.ipus, &classes, report))
}

fn executions(report: &Report) -> ReadTableResult {
    let columns = vec![
        TableColumn::short("IPU"),
        TableColumn::short("Id"),
        TableColumn::text("Type"),
        TableColumn::text("Name"),
        TableColumn::number("Executions"),
        TableColumn::number("Cycles"),
        TableColumn::number("Bytes"),
    ];
    let Some(trace) = report.trace()? else { return Ok(DataTable::new(columns, Vec::new())) };
    let programs = report.programs()?;
    let row = |ipu: IpuId, id: Option<ProgramId>, kind: ProgramKind, steps: ProgramRunTotals| {
        let program = id.and_then(|id| programs.get(id));
        vec![
            TableCell::Id(ipu.into()),
            id.map(|id| TableCell::Id(id.0.into())).into(),
            kind.name().into(),
            program.map(|program| program.name.as_str().into()).into(),
            TableCell::Count(steps.steps),
            TableCell::Count(steps.cycles.0),
            TableCell::Bytes(steps.bytes),
        ]
    };
    let runs = program_runs(&trace)?;
    let own = runs.steps.into_iter();
    let own = own.map(|((ipu, id, kind), steps)| row(ipu, Some(id), kind, steps));
    let rest = runs.unattributed.into_iter();
    let rest = rest.map(|((ipu, kind), steps)| row(ipu, None, kind, steps));
    Ok(DataTable::new(columns, own.chain(rest).collect()))
}

fn mapped(report: &Report, kind: MappingSubjectKind) -> ReadTableResult {
    let (found, _) = crate::tile_mapping::subjects(report, kind)?;
    Ok(tile_mapping::subjects(&found, kind))
}
