//! The list of all tables of views and topics.

use super::{
    ReportTable, critical_path, exchange_code, execution_trace, host as hosts, limits as bounds,
    memory as lists, operations as costs,
};
use super::{liveness as live, tile_mapping, tile_samples};
use crate::data_table::{DataTable, TableCell};
use crate::limits::{ReportLimits, limits, roofline};
use crate::operations::{OperationLayer, operations};
use crate::operations_graph::{OpGraphKey, graph};
use crate::records::{EXCHANGE_TOTALS, LIVENESS_STEPS, MEMORY_BY_TILE};
use crate::replica_classes::replica_numbers;
use crate::replica_rings::replica_links;
use crate::table;
use crate::tile_mapping::{MappingSubjectKind, replica_shares};
use crate::tile_samples::{SampleFilter, SampleGrouping};
use crate::trace::{program_runs, run_summary};
use crate::{host, insights, liveness, memory, program_tree, replicas, summary};
use tilescope_report::units::{NumberFormat, ProgramId};
use tilescope_report::{Report, ReportError};

type ReadTableResult = Result<DataTable, ReportError>;

/// Creates a table that its view shows as a table.
const fn shown(
    view: &'static str,
    name: &'static str,
    about: &'static str,
    read: fn(&Report) -> ReadTableResult,
) -> ReportTable {
    ReportTable { view, name, about, on_screen: true, record: None, read }
}

/// Creates a table of data that its view shows as a graph, a tree or cards.
const fn drawn(
    view: &'static str,
    name: &'static str,
    about: &'static str,
    read: fn(&Report) -> ReadTableResult,
) -> ReportTable {
    ReportTable { view, name, about, on_screen: false, record: None, read }
}

/// Every table, in the order of views.
pub static TABLES: &[ReportTable] = &[
    drawn("summary", "figures", "Every figure of the summary", figures),
    drawn("summary", "options", "Options of the engine", options),
    drawn("summary", "host-rates", "The loader alone, synthetic data and real data", |report| {
        Ok(hosts::rates(host::host(report)?.as_ref()))
    }),
    drawn("summary", "host-call", "Parts of a host call", |report| {
        Ok(hosts::call(host::host(report)?.as_ref()))
    }),
    drawn("summary", "host-tensors", "Samples and results of a host call", |report| {
        Ok(hosts::tensors(host::host(report)?.as_ref()))
    }),
    drawn("summary", "host-epochs", "Steps and time of epochs", |report| {
        Ok(hosts::epochs(host::host(report)?.as_ref()))
    }),
    drawn("summary", "replica-waits", "Waits of the replicas", |report| {
        Ok(hosts::replica_waits(host::host(report)?.as_ref()))
    }),
    drawn("summary", "sync-groups", "IPUs of a replica that wait for one another", sync_groups),
    drawn("summary", "collectives", "Data exchanged by replicas in the run, by kind", collectives),
    drawn("summary", "replica-links", "Data that each replica sends, receives and forwards", links),
    drawn("insights", "findings", "Findings of all rules", findings),
    ReportTable {
        record: Some(&MEMORY_BY_TILE),
        ..drawn("memory", "tiles", "Memory of every tile", |report| MEMORY_BY_TILE.all(report))
    },
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
    ReportTable {
        record: Some(&LIVENESS_STEPS),
        ..drawn("liveness", "steps", "Bytes live at every step", |report| {
            LIVENESS_STEPS.all(report)
        })
    },
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
    drawn("program-tree", "programs", "Nodes of the program tree", tree),
    shown("operations", "operations", "Cost of every operation of the model", |report| {
        costs_of(report, OperationLayer::Model)
    }),
    shown("operations", "library-calls", "Cost of every library call", |report| {
        costs_of(report, OperationLayer::Library)
    }),
    shown("operations", "programs", "Cost of every program", |report| {
        costs_of(report, OperationLayer::Program)
    }),
    shown("limits", "operations", "Lower bound of the cost of every operation", |report| {
        Ok(bounds::operations(&limits(report)?.rows))
    }),
    shown("limits", "classes", "Cycles of every operation by class", |report| {
        Ok(bounds::classes(&limits(report)?.rows))
    }),
    shown("limits", "roofline", "Operations as points below the roofs of an IPU", |report| {
        let ReportLimits { machine, rows, .. } = &*limits(report)?;
        Ok(bounds::roofline(&roofline(machine, rows, None), rows, machine))
    }),
    shown("limits", "waterfall", "Losses from the peak down to the achieved FLOPs", |report| {
        let all = limits(report)?.run.as_ref().map(|run| run.all);
        Ok(bounds::waterfall(&all.unwrap_or_default()))
    }),
    drawn("operations-graph", "edges", "Data flow between operations", edges),
    shown("execution-trace", "ipus", "Activities of every IPU", ipus),
    drawn("execution-trace", "critical-path", "Steps of the critical path", critical_path::path),
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
    drawn(
        "execution-trace",
        "samples-by-epoch",
        "The same by execution of the program",
        |report| samples_by(report, SampleGrouping::Epoch),
    ),
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
    ReportTable {
        record: Some(&EXCHANGE_TOTALS),
        ..shown("exchange-code", "programs", "Code and traffic of every program", |report| {
            EXCHANGE_TOTALS.all(report)
        })
    },
    shown(
        "exchange-code",
        "cycles",
        "Cycles of every exchange in the run, and their lower bounds",
        |report| Ok(exchange_code::cycles(&crate::exchange_code::exchange_cycles(report)?)),
    ),
    shown("exchange-code", "ipu-pairs", "Bytes from each IPU to each other IPU", |report| {
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
    drawn("tile-mapping", "replicas", "Part of each tensor on a replica", |report| {
        Ok(tile_mapping::replicas(&replica_shares(report)?))
    }),
];

fn samples_by(report: &Report, by: SampleGrouping) -> ReadTableResult {
    tile_samples::samples(report, &by, &SampleFilter::new())
}

fn figures(report: &Report) -> ReadTableResult {
    let value = serde_json::to_value(summary::summary(report)?).unwrap_or_default();
    let mut rows = Vec::new();
    flatten(String::new(), &value, &mut rows);
    Ok(table! { rows, |(path, value)|
        text "Figure" => path;
        unsummed "Value" => value;
    })
}

/// Adds every leaf of a JSON value with its path.
fn flatten(path: String, value: &serde_json::Value, rows: &mut Vec<(String, TableCell)>) {
    use serde_json::Value;
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let leaf = match value {
        Value::Object(fields) => {
            return fields.iter().for_each(|(name, value)| flatten(below(name), value, rows));
        }
        Value::Array(values) => {
            let numbered = values.iter().enumerate();
            return numbered.for_each(|(at, value)| flatten(below(&at.to_string()), value, rows));
        }
        Value::Null => TableCell::Missing,
        Value::String(text) => text.into(),
        Value::Bool(yes) => yes.to_string().into(),
        Value::Number(number) => {
            let whole = number.as_u64().map(TableCell::Count);
            whole.or_else(|| number.as_f64().map(TableCell::Real)).into()
        }
    };
    rows.push((path, leaf));
}

fn options(report: &Report) -> ReadTableResult {
    Ok(table! { report.options()?, |(name, value)|
        text "Option" => name;
        text "Value" => value;
    })
}

fn sync_groups(report: &Report) -> ReadTableResult {
    let groups = replicas::replicas(report)?.groups.unwrap_or_default();
    let mut rows: Vec<_> = groups.gs1.iter().map(|ipu| ("GS1", 0, *ipu)).collect();
    for (part, ipus) in (0u64..).zip(&groups.gs2) {
        rows.extend(ipus.iter().map(|ipu| ("GS2", part, *ipu)));
    }
    Ok(table! { rows, |(group, part, ipu)|
        text "Group" => group;
        short "Part" => TableCell::Id(part);
        id "IPU" => ipu;
    })
}

fn links(report: &Report) -> ReadTableResult {
    const OF_COLLECTIVES: &str = "Bytes of collectives, over all IPUs of the replica";
    Ok(table! { replica_links(report)?, |of|
        short "Replica" => TableCell::Id(of.replica.into());
        text "Sends to" => replica_numbers(&of.to);
        text "Receives from" => replica_numbers(&of.from);
        bytes "Sent" => of.sent, OF_COLLECTIVES;
        bytes "Received" => of.received, OF_COLLECTIVES;
        bytes "Passed on" => of.passed_on, "Bytes between others that pass over its links";
    })
}

fn collectives(report: &Report) -> ReadTableResult {
    Ok(table! { replicas::replicas(report)?.collectives, |of|
        text "Collective" => of.kind;
        number "Programs" => of.programs;
        number "Executions" => of.executions;
        cycles "Cycles" => of.cycles;
        bytes "Moved" => of.bytes;
    })
}

fn findings(report: &Report) -> ReadTableResult {
    Ok(table! { insights::insights(report, NumberFormat::default())?, |finding|
        text "Rule" => finding.rule;
        text "Finding" => finding.sentence;
        text "Advice" => finding.advice;
        text "Gain" => finding.gain.text();
    })
}

fn live_at_peak(report: &Report) -> ReadTableResult {
    let source = liveness::LivenessScope::Whole;
    let peak = liveness::curve(report, source)?.and_then(|curve| curve.peak());
    let steps: Vec<u32> = peak.and_then(|peak| u32::try_from(peak).ok()).into_iter().collect();
    Ok(live::live_at(&liveness::live_at(report, source, &steps)?, &steps))
}

/// The memory of the fullest tile by address; empty if addresses or lifetimes were not recorded.
fn fullest_by_address(report: &Report) -> Result<liveness::AddressTimeline, ReportError> {
    let tile = memory::fullest_tile(report)?;
    Ok(liveness::by_address(report, tile)?.unwrap_or_default())
}

fn tree(report: &Report) -> ReadTableResult {
    let programs = report.executed_program_nodes()?;
    let costs = program_tree::costs(report)?;
    let mut rows = Vec::new();
    for group in program_tree::groups(&programs) {
        for row in program_tree::rows(&programs, group.root, &Default::default()) {
            let Some(program) = programs.get(row.id) else { continue };
            let exposure = costs.nodes.get(&row.id).and_then(|node| node.exposure);
            rows.push((group.title.clone(), row, program, exposure));
        }
    }
    Ok(table! { rows, |(group, row, program, exposure)|
        text "Tree" => group;
        unsummed "Depth" => u64::from(row.depth);
        program "Id" => row.id;
        text "Type" => program.kind.name();
        operation "Name" => &program.name;
        ipu_id "IPU" => program.ipu;
        unsummed "Repeats" => program.repeats;
        all critical_path::exposure_columns() => critical_path::exposure_cells(exposure.as_ref());
    })
}

fn costs_of(report: &Report, layer: OperationLayer) -> ReadTableResult {
    Ok(costs::operations(&operations(report, layer)?, report, layer))
}

fn edges(report: &Report) -> ReadTableResult {
    let key = OpGraphKey { backward: true, update: true, open: None };
    let graph = graph(report, &key)?.unwrap_or_default();
    let title = |node: usize| graph.nodes.get(node).map(|node| node.title.as_str());
    Ok(table! { &graph.edges, |edge|
        text "Read" => title(edge.from);
        text "By" => title(edge.to);
    })
}

fn ipus(report: &Report) -> ReadTableResult {
    let found = report.trace()?.map(|trace| run_summary(&trace)).transpose()?;
    let ipus = found.map_or_else(Vec::new, |found| found.ipus);
    Ok(execution_trace::ipus(&ipus, &report.replica_classes()?, report))
}

fn executions(report: &Report) -> ReadTableResult {
    let programs = report.executed_program_nodes()?;
    let runs = report.trace()?.map(|trace| program_runs(&trace)).transpose()?.unwrap_or_default();
    let own = runs.steps.into_iter().map(|((ipu, id, kind), of)| (ipu, Some(id), kind, of));
    let rest = runs.unattributed.into_iter().map(|((ipu, kind), of)| (ipu, None, kind, of));
    let name = |id: Option<ProgramId>| programs.get(id?).map(|program| program.name.as_str());
    Ok(table! { own.chain(rest), |(ipu, id, kind, of)|
        ipu_id "IPU" => ipu;
        program "Id" => id;
        text "Type" => kind.name();
        operation "Name" => name(id);
        grouped_number "Executions" => of.steps;
        grouped_cycles "Cycles" => of.cycles;
        number "Bytes" => of.bytes;
    })
}

fn mapped(report: &Report, kind: MappingSubjectKind) -> ReadTableResult {
    let (found, _) = crate::tile_mapping::subjects(report, kind)?;
    Ok(tile_mapping::subjects(&found, kind))
}
