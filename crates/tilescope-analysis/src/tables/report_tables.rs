//! The list of tables.

use super::{ReportTable, TableCell, TableRows};
use crate::operations::{OperationLayer, operations};
use crate::operations_graph::{OpGraphKey, graph};
use crate::tile_mapping::{MappingSubjectKind, subjects};
use crate::trace::{program_runs, window_summary};
use crate::{exchange_code, insights, liveness, memory, program_tree, summary};
use tilescope_report::{Report, ReportError};

type ReadTableResult = Result<TableRows, ReportError>;

/// Every table, in the order of views.
pub static TABLES: &[ReportTable] = &[
    ReportTable {
        view: "summary",
        name: "figures",
        about: "Every figure of the summary",
        read: figures,
    },
    ReportTable { view: "summary", name: "options", about: "Options of the engine", read: options },
    ReportTable {
        view: "insights",
        name: "findings",
        about: "Findings of all rules",
        read: findings,
    },
    ReportTable { view: "memory", name: "tiles", about: "Memory of every tile", read: tile_memory },
    ReportTable {
        view: "memory",
        name: "details",
        about: "Memory by region and kind of data, over all tiles",
        read: details,
    },
    ReportTable {
        view: "memory",
        name: "variables",
        about: "Variables over all tiles",
        read: |report| listing(memory::variables(report, &[])?),
    },
    ReportTable {
        view: "memory",
        name: "vertices",
        about: "Vertices over all tiles",
        read: |report| listing(memory::vertices(report, &[])?),
    },
    ReportTable {
        view: "memory",
        name: "compute-sets",
        about: "Compute sets over all tiles",
        read: |report| listing(memory::compute_sets(report, &[])?),
    },
    ReportTable {
        view: "memory",
        name: "exchanges",
        about: "Code of exchanges over all tiles",
        read: |report| listing(memory::exchanges(report, &[])?),
    },
    ReportTable {
        view: "liveness",
        name: "steps",
        about: "Bytes live at every step",
        read: live_steps,
    },
    ReportTable {
        view: "liveness",
        name: "always-live",
        about: "Variables that are always live",
        read: always_live,
    },
    ReportTable {
        view: "liveness",
        name: "peak",
        about: "Variables that are live at the fullest step",
        read: live_at_peak,
    },
    ReportTable { view: "program-tree", name: "programs", about: "Lines of the tree", read: tree },
    ReportTable {
        view: "operations",
        name: "operations",
        about: "What every operation of the model costs",
        read: |report| costs(report, OperationLayer::Model),
    },
    ReportTable {
        view: "operations",
        name: "library-calls",
        about: "What every call of a library costs",
        read: |report| costs(report, OperationLayer::Library),
    },
    ReportTable {
        view: "operations",
        name: "programs",
        about: "What every program costs",
        read: |report| costs(report, OperationLayer::Program),
    },
    ReportTable {
        view: "operations-graph",
        name: "edges",
        about: "Which operation reads whose results",
        read: edges,
    },
    ReportTable {
        view: "execution-trace",
        name: "ipus",
        about: "What every IPU spends the run on",
        read: ipus,
    },
    ReportTable {
        view: "execution-trace",
        name: "programs",
        about: "Executions of every program on every IPU",
        read: executions,
    },
    ReportTable {
        view: "exchange-code",
        name: "overview",
        about: "Code by kind of link",
        read: links,
    },
    ReportTable {
        view: "exchange-code",
        name: "programs",
        about: "Code and traffic of every program",
        read: exchange_programs,
    },
    ReportTable {
        view: "exchange-code",
        name: "tiles",
        about: "Code and traffic of every tile",
        read: exchange_tiles,
    },
    ReportTable {
        view: "tile-mapping",
        name: "tensors",
        about: "Tensors and how many tiles hold them",
        read: |report| mapped(report, MappingSubjectKind::Tensors),
    },
    ReportTable {
        view: "tile-mapping",
        name: "operations",
        about: "Operations and how many tiles work for them",
        read: |report| mapped(report, MappingSubjectKind::Operations),
    },
    ReportTable {
        view: "tile-mapping",
        name: "compute-sets",
        about: "Compute sets and how many tiles run them",
        read: |report| mapped(report, MappingSubjectKind::ComputeSets),
    },
];

fn figures(report: &Report) -> ReadTableResult {
    let value = serde_json::to_value(summary::summary(report)?).unwrap_or_default();
    let mut rows = Vec::new();
    flatten("", &value, &mut rows);
    Ok(TableRows { columns: vec!["figure", "value"], rows })
}

/// Every leaf of a tree of values, by its path.
fn flatten(path: &str, value: &serde_json::Value, rows: &mut Vec<Vec<TableCell>>) {
    let below = |name: &str| {
        if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
    };
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| flatten(&below(name), value, rows));
        }
        serde_json::Value::Array(values) => {
            let numbered = values.iter().enumerate();
            numbered.for_each(|(at, value)| flatten(&below(&at.to_string()), value, rows));
        }
        serde_json::Value::Null => rows.push(vec![path.into(), TableCell::Missing]),
        serde_json::Value::String(text) => rows.push(vec![path.into(), text.as_str().into()]),
        serde_json::Value::Bool(yes) => rows.push(vec![path.into(), yes.to_string().into()]),
        serde_json::Value::Number(number) => {
            let whole = number.as_u64().map(TableCell::Number);
            rows.push(vec![path.into(), whole.unwrap_or_else(|| number.as_f64().into())]);
        }
    }
}

fn options(report: &Report) -> ReadTableResult {
    let options = report.options()?.into_iter();
    let rows = options.map(|(name, value)| vec![name.into(), value.into()]).collect();
    Ok(TableRows { columns: vec!["option", "value"], rows })
}

fn findings(report: &Report) -> ReadTableResult {
    let rows = insights::insights(report)?.into_iter().map(|finding| {
        let gain = finding.gain.text();
        vec![finding.rule.into(), finding.sentence.into(), finding.advice.into(), gain.into()]
    });
    Ok(TableRows { columns: vec!["rule", "finding", "advice", "gain"], rows: rows.collect() })
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
        for tile in tiles.first..tiles.end {
            let row = std::iter::once(tile.into()).chain(values.map(TableCell::from));
            rows.push(row.collect());
        }
    }
    let columns = vec![
        "tile",
        "including gaps (bytes)",
        "non-interleaved (bytes)",
        "interleaved (bytes)",
        "overflowed (bytes)",
        "always live (bytes)",
        "peak of not always live (bytes)",
    ];
    Ok(TableRows { columns, rows })
}

fn details(report: &Report) -> ReadTableResult {
    let rows = memory::details(report, &[])?
        .into_iter()
        .map(|row| vec![row.depth.into(), row.name.into(), row.bytes.first().copied().into()]);
    Ok(TableRows { columns: vec!["depth", "part", "bytes"], rows: rows.collect() })
}

fn listing(listing: memory::MemoryList) -> ReadTableResult {
    let rows = listing.rows.into_iter().map(|row| {
        let bytes = row.bytes.first().copied();
        vec![row.name.into(), row.about.into(), row.count.into(), bytes.into()]
    });
    Ok(TableRows { columns: vec!["name", "about", "count", "bytes"], rows: rows.collect() })
}

fn live_steps(report: &Report) -> ReadTableResult {
    let curve = liveness::curve(report, liveness::LivenessScope::Whole)?.unwrap_or_default();
    let programs = report.programs()?;
    let rows = (0..curve.others.len()).map(|step| {
        let program = curve.programs.get(step).and_then(|id| programs.get(*id));
        vec![
            step.into(),
            program.map(program_tree::label).into(),
            curve.total(step).into(),
            curve.others.get(step).copied().into(),
        ]
    });
    let columns = vec!["step", "program", "live (bytes)", "not always live (bytes)"];
    Ok(TableRows { columns, rows: rows.collect() })
}

fn live_rows(found: Vec<liveness::LiveVariable>) -> TableRows {
    let rows = found.into_iter().map(|live| {
        let (first, end) = live.lifetime.map_or((None, None), |of| (Some(of.start), Some(of.end)));
        let bytes = live.bytes.first().copied();
        vec![live.name.into(), live.about.into(), bytes.into(), first.into(), end.into()]
    });
    let columns = vec!["variable", "about", "bytes", "first step", "step after the last"];
    TableRows { columns, rows: rows.collect() }
}

fn always_live(report: &Report) -> ReadTableResult {
    Ok(live_rows(liveness::always_live(report, liveness::LivenessScope::Whole)?))
}

fn live_at_peak(report: &Report) -> ReadTableResult {
    let source = liveness::LivenessScope::Whole;
    let peak = liveness::curve(report, source)?.and_then(|curve| curve.peak());
    let steps: Vec<u32> = peak.and_then(|peak| u32::try_from(peak).ok()).into_iter().collect();
    let found =
        if steps.is_empty() { Vec::new() } else { liveness::live_at(report, source, &steps)? };
    Ok(live_rows(found))
}

fn tree(report: &Report) -> ReadTableResult {
    let programs = report.programs()?;
    let mut rows = Vec::new();
    for group in program_tree::groups(&programs) {
        for row in program_tree::rows(&programs, group.root, &Default::default()) {
            let Some(program) = programs.get(row.id) else { continue };
            rows.push(vec![
                group.title.as_str().into(),
                row.depth.into(),
                row.id.0.into(),
                program.kind.name().into(),
                program.name.as_str().into(),
                program.ipu.into(),
                program.repeats.into(),
            ]);
        }
    }
    let columns = vec!["tree", "depth", "id", "type", "name", "ipu", "repeats"];
    Ok(TableRows { columns, rows })
}

fn costs(report: &Report, layer: OperationLayer) -> ReadTableResult {
    let rows = operations(report, layer)?.rows.into_iter().map(|row| {
        vec![
            row.name.into(),
            row.kind.into(),
            row.pass.map(|pass| pass.name()).into(),
            row.block.into(),
            row.ipu.into(),
            row.shapes.into(),
            row.executions.into(),
            row.elapsed.into(),
            row.cycles_slowest.into(),
            row.cycles_all_tiles.into(),
            row.flops.into(),
            row.memory.into(),
            row.vertices.into(),
            row.vertex_code.into(),
            row.exchange_code.into(),
        ]
    });
    let columns = vec![
        "name",
        "type",
        "pass",
        "block",
        "ipu",
        "shapes",
        "executions",
        "cycles (run)",
        "cycles of the slowest tile",
        "cycles of all tiles",
        "flops",
        "memory (bytes)",
        "vertices",
        "vertex code (bytes)",
        "exchange code (bytes)",
    ];
    Ok(TableRows { columns, rows: rows.collect() })
}

fn edges(report: &Report) -> ReadTableResult {
    let key = OpGraphKey { backward: true, update: true, open: None };
    let Some(graph) = graph(report, &key)? else {
        return Ok(TableRows { columns: vec!["read", "by"], rows: Vec::new() });
    };
    let title = |node: usize| graph.nodes.get(node).map(|node| node.title.as_str());
    let rows = graph.edges.iter().map(|edge| vec![title(edge.from).into(), title(edge.to).into()]);
    Ok(TableRows { columns: vec!["read", "by"], rows: rows.collect() })
}

fn ipus(report: &Report) -> ReadTableResult {
    let columns = vec![
        "ipu",
        "steps",
        "compute",
        "internal exchange",
        "global exchange",
        "host",
        "remote buffer",
        "sync",
        "other",
        "idle",
        "tile balance",
        "from the host (bytes)",
        "to the host (bytes)",
    ];
    let Some(trace) = report.trace()? else { return Ok(TableRows { columns, rows: Vec::new() }) };
    let mut numbers: Vec<u32> = trace.lanes().iter().map(|lane| lane.ipu).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let found = window_summary(&trace, trace.range(), &numbers)?;
    let rows = found.ipus.into_iter().map(|of| {
        let share = of.proportions;
        vec![
            of.ipu.into(),
            of.steps.into(),
            share.compute.into(),
            share.internal_exchange.into(),
            share.global_exchange.into(),
            share.host.into(),
            share.remote_buffer.into(),
            share.sync.into(),
            share.other.into(),
            share.idle.into(),
            of.tile_balance.into(),
            of.host.received.0.into(),
            of.host.sent.0.into(),
        ]
    });
    Ok(TableRows { columns, rows: rows.collect() })
}

fn executions(report: &Report) -> ReadTableResult {
    let columns = vec!["ipu", "id", "type", "name", "executions", "cycles", "bytes"];
    let Some(trace) = report.trace()? else { return Ok(TableRows { columns, rows: Vec::new() }) };
    let programs = report.programs()?;
    let rows = program_runs(&trace)?.runs.into_iter().map(|((ipu, id), runs)| {
        let program = programs.get(id);
        vec![
            ipu.into(),
            id.0.into(),
            program.map(|program| program.kind.name()).into(),
            program.map(|program| program.name.as_str()).into(),
            runs.steps.into(),
            runs.cycles.into(),
            runs.bytes.into(),
        ]
    });
    Ok(TableRows { columns, rows: rows.collect() })
}

fn links(report: &Report) -> ReadTableResult {
    let rows = exchange_code::overview(report)?.links.into_iter().map(|of| {
        vec![
            of.link.title().into(),
            of.stored.into(),
            of.fullest.into(),
            of.program_bytes.into(),
            of.programs.into(),
            of.messages.into(),
            of.bytes.into(),
        ]
    });
    let columns = vec![
        "link",
        "stored (bytes)",
        "fullest tile (bytes)",
        "of all programs (bytes)",
        "programs",
        "messages",
        "arriving (bytes)",
    ];
    Ok(TableRows { columns, rows: rows.collect() })
}

fn exchange_programs(report: &Report) -> ReadTableResult {
    let rows = exchange_code::programs(report, &[])?.into_iter().map(|row| {
        vec![
            row.program.0.into(),
            row.kind.name().into(),
            row.name.into(),
            row.link.title().into(),
            row.tiles.into(),
            row.traffic.code_bytes.into(),
            row.traffic.bytes_out.into(),
            row.traffic.bytes_in.into(),
            row.traffic.messages_out.into(),
            row.traffic.messages_in.into(),
        ]
    });
    let columns = vec![
        "id",
        "type",
        "name",
        "link",
        "tiles",
        "code (bytes)",
        "sent (bytes)",
        "received (bytes)",
        "messages sent",
        "messages received",
    ];
    Ok(TableRows { columns, rows: rows.collect() })
}

fn exchange_tiles(report: &Report) -> ReadTableResult {
    let rows = exchange_code::tiles(report)?.into_iter().map(|row| {
        let [internal, host, global] = row.code;
        vec![
            row.tile.into(),
            internal.into(),
            host.into(),
            global.into(),
            row.traffic.bytes_out.into(),
            row.traffic.bytes_in.into(),
        ]
    });
    let columns = vec![
        "tile",
        "internal code (bytes)",
        "host code (bytes)",
        "global code (bytes)",
        "sent (bytes)",
        "received (bytes)",
    ];
    Ok(TableRows { columns, rows: rows.collect() })
}

fn mapped(report: &Report, kind: MappingSubjectKind) -> ReadTableResult {
    let (found, _) = subjects(report, kind)?;
    let rows = found
        .into_iter()
        .map(|entry| vec![entry.name.into(), entry.size.into(), entry.tiles.into()]);
    let size = if kind == MappingSubjectKind::ComputeSets {
        "cycles of the slowest tile"
    } else {
        "bytes"
    };
    Ok(TableRows { columns: vec!["name", size, "tiles"], rows: rows.collect() })
}
