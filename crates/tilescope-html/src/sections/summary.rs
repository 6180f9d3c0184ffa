//! The figures of a report at a glance.

use super::topics::card;
use super::{PageFacts, SectionEntry};
use crate::block::{Block, Fact};
use crate::names::prose;
use tilescope_analysis::headline::headline_figures;
use tilescope_analysis::host::{HostSummary, bottleneck_title, part_title, source_title};
use tilescope_analysis::replica_classes::sentence;
use tilescope_analysis::running_costs::RunningCosts;
use tilescope_report::units::{binary_bytes, grouped, percent, seconds};
use tilescope_report::{ReportError, ReportOrigin};

pub(super) const SECTION: SectionEntry = SectionEntry { id: "summary", title: "Summary", build };

fn build(facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    let figures =
        headline_figures(&facts.summary, facts.report.outcome()?, &facts.target, facts.numbers);
    let mut blocks = vec![Block::Cards { cards: figures.into_iter().map(card).collect() }];
    blocks.extend(facts.report.warnings().iter().map(|text| Block::note(prose(text))));
    blocks.extend(facts.report.notes()?.iter().map(|text| Block::note(prose(text))));
    if facts.report.origin() == ReportOrigin::Foreign {
        let text = "Another tool wrote this report. Sections without data say so.";
        blocks.push(Block::note(text));
    }
    blocks.push(Block::Facts { rows: program(facts)? });
    if let Some(host) = &facts.summary.host {
        blocks.push(Block::heading("Host"));
        blocks.push(Block::Facts { rows: host_rows(host) });
    }
    if facts.summary.execution.is_some() {
        let costs =
            RunningCosts { energy: facts.summary.energy.clone(), cost: facts.summary.cost.clone() };
        blocks.push(Block::heading("Energy and cost"));
        blocks.push(Block::Facts {
            rows: costs
                .rows()
                .into_iter()
                .map(|row| Fact { formula: row.explanation, ..Fact::new(row.name, row.value) })
                .collect(),
        });
    }
    if let Some(model) = &facts.summary.model {
        let rows = model.rows().into_iter().map(|(name, text)| Fact::new(name, text));
        blocks.push(Block::heading("Model"));
        blocks.push(Block::Facts { rows: rows.collect() });
    }
    for name in ["figures", "options"] {
        let table = facts.table("summary", name)?;
        if table.count > 0 {
            blocks.push(Block::Table { table: table.folded() });
        }
    }
    Ok(blocks)
}

/// A text, unless the number it is about is zero: files of other tools may lack it.
fn text_unless_zero(number: u64, text: String) -> String {
    if number == 0 { "not recorded".to_owned() } else { text }
}

fn count_text(count: u64) -> String {
    text_unless_zero(count, grouped(count))
}

/// The machine, the graph, and the samples of the run.
fn program(facts: &PageFacts<'_>) -> Result<Vec<Fact>, ReportError> {
    let summary = &facts.summary;
    let target = &facts.summary.target;
    let mut rows = vec![
        Fact::new("Machine", target.machine.as_deref().unwrap_or("not recorded")),
        Fact::new("IPUs", grouped(target.num_ipus.into())),
        Fact::new("Replicas", grouped(target.replicas.into())),
        Fact::new("IPUs per replica", grouped(target.ipus_per_replica.into())),
        Fact::new("Tiles per IPU", count_text(target.tiles_per_ipu.into())),
        Fact::new(
            "Memory per tile",
            text_unless_zero(target.bytes_per_tile.0, binary_bytes(target.bytes_per_tile.0)),
        ),
        Fact::new(
            "Clock",
            text_unless_zero(
                target.clock_hz,
                format!("{} MHz", grouped(target.clock_hz / 1_000_000)),
            ),
        ),
        Fact::new("Compute sets", count_text(summary.graph.compute_sets.unwrap_or(0))),
        Fact::new("Vertices", count_text(summary.graph.vertices.unwrap_or(0))),
        Fact::new("Edges", count_text(summary.graph.edges.unwrap_or(0))),
        Fact::new("Variables", count_text(summary.graph.variables.unwrap_or(0))),
    ];
    if let Some(batching) = facts.report.batching()? {
        let text = format!(
            "{} = {} micro-batch × {} accumulation × {} replicas × {} device iterations",
            grouped(batching.samples_per_call()),
            batching.micro_batch,
            batching.gradient_accumulation,
            batching.replicas,
            batching.device_iterations
        );
        rows.push(Fact::new("Samples per host call", text));
    }
    if let Some(differ) = sentence(&facts.classes) {
        rows.push(Fact::new("Replicas that differ", differ));
    }
    if let Some(confidence) = &summary.confidence {
        let bands = confidence.rows();
        rows.extend(bands.map(|(name, words)| Fact::new(format!("{name}, expected"), words)));
    }
    if let Some(memory) = &summary.memory {
        rows.extend(memory.rows_of_fit().map(|(name, words)| Fact::new(name, words)));
    }
    Ok(rows)
}

/// The rate of the host, and the parts of a call.
fn host_rows(host: &HostSummary) -> Vec<Fact> {
    let rates = host.throughput.iter().map(|of| {
        let rate = grouped(of.samples_per_second.round() as u64);
        let limit = bottleneck_title(of.rate.bottleneck);
        let text = format!("{rate} samples per second, limited by {limit}");
        Fact::new(source_title(of.rate.source), text)
    });
    let parts = host.call.iter().map(|of| {
        let text = format!("{}, {} of the call", seconds(of.seconds), percent(of.share));
        Fact::new(part_title(of.kind), text)
    });
    rates.chain(parts).collect()
}
