//! Tests that views show the figures of the analyses: every view on every kind of report.

use crate::gui_support::{VARIANTS, Variant, Window, each_pair, place, press_role, settle, window};
use egui::Vec2;
use egui::accesskit::Role;
use egui_kittest::kittest::{NodeT, Queryable};
use std::sync::{Arc, Mutex};
use tilescope_analysis::insights::{InsightFacts, ranked, tile_memory_overview};
use tilescope_analysis::limits::limits;
use tilescope_analysis::liveness::{LivenessScope, always_live, curve};
use tilescope_analysis::operations::{OperationLayer, OperationTotals, operations_with_totals};
use tilescope_analysis::operations_graph::{OpGraphKey, graph};
use tilescope_analysis::program_tree::{groups, tally};
use tilescope_analysis::tile_mapping::{MappingMeasure, MappingSubjectKind, mapping, subjects};
use tilescope_analysis::topics::TOPICS;
use tilescope_analysis::{exchange_code, memory, summary, tile_curves};
use tilescope_gui::view_names;
use tilescope_report::units::{
    Bytes, NumberFormat, binary_bytes, exact_bytes, fine_percent, grouped, percent,
};
use tilescope_report::{Report, ReportError, ReportPart};

/// The names and values of all nodes of the accessibility tree, one per line.
fn read(window: &Window) -> String {
    let mut lines = Vec::new();
    for node in window.root().children_recursive() {
        let node = node.accesskit_node();
        lines.extend(node.label());
        lines.extend(node.value());
    }
    lines.join("\n")
}

/// The text that must appear in a view; empty if the report lacks the data.
fn figures(report: &Report, view: &str) -> Result<Vec<String>, ReportError> {
    match view {
        "summary" => of_summary(report),
        "insights" => of_insights(report),
        "memory" => of_memory(report),
        "liveness" => of_liveness(report),
        "program-tree" => of_program_tree(report),
        "operations" => of_operations(report),
        "limits" => of_limits(report),
        "operations-graph" => of_graph(report),
        "execution-trace" => of_trace(report),
        "exchange-code" => of_exchange_code(report),
        "topics" => of_topics(report),
        _ => of_tile_mapping(report),
    }
}

/// The facts of the first topic.
fn of_topics(report: &Report) -> Result<Vec<String>, ReportError> {
    let facts = (TOPICS[0].facts)(report)?;
    Ok(facts.iter().map(|fact| format!("{}: {}", fact.title, fact.value)).collect())
}

fn of_summary(report: &Report) -> Result<Vec<String>, ReportError> {
    let found = summary::summary(report)?;
    let graph = found.graph;
    let mut figures: Vec<String> =
        [graph.compute_sets, graph.edges, graph.variables, graph.vertices]
            .map(|count| count.map_or_else(|| "not recorded".to_owned(), grouped))
            .into();
    match found.memory {
        None => figures.push("Fullest tile: not recorded".to_owned()),
        Some(memory) => {
            let fullest = binary_bytes(memory.max_tile_including_gaps.0);
            figures.push(format!("Fullest tile: {fullest}"));
            figures.push(format!("Memory in use: {}", binary_bytes(memory.total_excluding_gaps.0)));
        }
    }
    if let Some(run) = found.execution {
        figures.push(format!("({} cycles)", run.total_cycles));
        figures.extend(run.samples_per_second.map(|rate| grouped(rate.round() as u64)));
    }
    Ok(figures)
}

fn of_limits(report: &Report) -> Result<Vec<String>, ReportError> {
    let found = limits(report)?;
    let Some(run) = &found.run else { return Ok(Vec::new()) };
    let achieved = match run.utilisation() {
        Some(share) => format!("{} of the peak of all IPUs", fine_percent(share)),
        None => "The utilisation of all IPUs is unknown".to_owned(),
    };
    let worst = found.rows.first().map(|row| grouped(row.limits.total().0));
    Ok(std::iter::once(achieved).chain(worst).collect())
}

fn of_insights(report: &Report) -> Result<Vec<String>, ReportError> {
    let facts = InsightFacts::gather(report, NumberFormat::default())?;
    let picture = tile_memory_overview(&facts);
    let findings = ranked(&facts);
    let mut figures = vec![format!("All {}", findings.len())];
    figures.extend(findings.iter().flat_map(|finding| {
        let sentence: String = finding.sentence.chars().take(600).collect();
        [sentence, finding.gain.text(), finding.advice.clone()]
    }));
    if picture.used > Bytes::ZERO {
        figures.extend(picture.worst.iter().map(|tile| binary_bytes(tile.bytes.0)));
        let some = picture.histogram.iter().filter(|bucket| bucket.tiles > 0);
        figures.extend(some.map(|bucket| grouped(bucket.tiles)));
    }
    Ok(figures)
}

fn of_memory(report: &Report) -> Result<Vec<String>, ReportError> {
    if memory::curves(report, &memory::MemoryCurveKey::default())?.max == 0 {
        return Ok(Vec::new());
    }
    let rows = memory::details(report, &[])?;
    Ok(rows.iter().map(|row| exact_bytes(row.bytes[0])).collect())
}

fn of_liveness(report: &Report) -> Result<Vec<String>, ReportError> {
    let Some(curve) = curve(report, LivenessScope::Whole)? else { return Ok(Vec::new()) };
    let Some(peak) = curve.peak() else { return Ok(Vec::new()) };
    let mut figures =
        vec![format!("at most {}", tile_curves::TileCurveUnit::Bytes.exact(curve.total(peak).0))];
    if report.has(ReportPart::Variables) {
        let always = always_live(report, LivenessScope::Whole)?;
        let sum: Bytes = always.iter().flat_map(|live| &live.bytes).sum();
        figures.push(exact_bytes(sum.0));
    }
    Ok(figures)
}

fn of_program_tree(report: &Report) -> Result<Vec<String>, ReportError> {
    // Of foreign files, the kinds of programs are known once their steps were read.
    let programs = report.executed_program_nodes()?;
    let groups = groups(&programs);
    let Some(first) = groups.first() else { return Ok(Vec::new()) };
    let tally = tally(&programs, first.root);
    Ok(tally.iter().flat_map(|(kind, count)| [kind.name().to_owned(), grouped(*count)]).collect())
}

fn of_operations(report: &Report) -> Result<Vec<String>, ReportError> {
    // The first layer that a report has is shown.
    let layers = [OperationLayer::Model, OperationLayer::Library, OperationLayer::Program];
    let first = if report.operations()?.is_empty() { &layers[1..] } else { &layers[..1] };
    let mut found = (Vec::new(), OperationTotals::default());
    for layer in first {
        found = operations_with_totals(report, *layer)?;
        if !found.0.is_empty() {
            break;
        }
    }
    let (rows, totals) = found;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    // Unrecorded data has no figure.
    let model = report.has(ReportPart::Operations) && first.len() == 1;
    let known = [
        (true, grouped(rows.len() as u64)),
        (report.has(ReportPart::Exchanges), exact_bytes(totals.code.0)),
        (report.has(ReportPart::Execution), totals.mean_elapsed.to_string()),
        (model, grouped(totals.flops)),
    ];
    Ok(known.into_iter().filter(|(known, _)| *known).map(|(_, figure)| figure).collect())
}

fn of_graph(report: &Report) -> Result<Vec<String>, ReportError> {
    let mut key = OpGraphKey { backward: true, update: false, open: Some(Vec::new()) };
    let Some(mut found) = graph(report, &key)? else { return Ok(Vec::new()) };
    let operations: usize = found.nodes.iter().map(|node| node.operations.len()).sum();
    // A graph that hides too much when folded is unfolded.
    if found.nodes.len() < 3 && operations <= 60 {
        key.open = None;
        found = graph(report, &key)?.unwrap_or(found);
    }
    Ok(vec![format!("{} nodes, {} arrows", found.nodes.len(), found.edges.len())])
}

fn of_trace(report: &Report) -> Result<Vec<String>, ReportError> {
    let Some(run) = summary::summary(report)?.execution else { return Ok(Vec::new()) };
    let mut figures = vec![format!("Total cycles {}", run.total_cycles)];
    // Further IPUs may be scrolled out of sight.
    for ipu in run.ipus.iter().take(4) {
        let shares = ipu.proportions.iter().filter(|(_, share)| *share >= 0.0005);
        figures.extend(shares.map(|(_, share)| percent(share)));
    }
    Ok(figures)
}

fn of_exchange_code(report: &Report) -> Result<Vec<String>, ReportError> {
    if !report.has(ReportPart::Exchanges) && !report.has(ReportPart::Categories) {
        return Ok(Vec::new());
    }
    let overview = exchange_code::overview(report)?;
    let of_link = |link: &exchange_code::ExchangeLinkTotals| {
        let mut figures = vec![
            exact_bytes(link.stored.0),
            exact_bytes(link.fullest.0),
            grouped(link.programs),
            grouped(link.messages),
            exact_bytes(link.bytes.0),
        ];
        figures.extend(
            [link.shared(), link.unattributed()]
                .into_iter()
                .flatten()
                .map(|bytes| exact_bytes(bytes.0)),
        );
        figures
    };
    Ok(overview.links.iter().flat_map(of_link).collect())
}

fn of_tile_mapping(report: &Report) -> Result<Vec<String>, ReportError> {
    let (entries, _) = subjects(report, MappingSubjectKind::Tensors)?;
    let largest = entries.iter().min_by_key(|entry| std::cmp::Reverse(entry.size));
    let Some(largest) = largest.filter(|_| report.has(ReportPart::Variables)) else {
        return Ok(Vec::new());
    };
    let Some(found) = mapping(report, largest.subject)? else { return Ok(Vec::new()) };
    let bytes = found.values(MappingMeasure::Bytes);
    let held = || bytes.iter().filter(|bytes| **bytes > 0);
    Ok(vec![
        found.name.chars().take(400).collect(),
        format!("Total {}", exact_bytes(bytes.iter().sum())),
        format!("Tiles {}", grouped(held().count() as u64)),
        format!(
            "Per tile {} - {}",
            exact_bytes(held().min().copied().unwrap_or(0)),
            exact_bytes(held().max().copied().unwrap_or(0))
        ),
    ])
}

#[test]
fn views_show_the_figures_of_the_analyses() {
    let problems = Mutex::new(Vec::new());
    each_pair(VARIANTS, |variant, view| {
        // High enough for everything to be laid out.
        let mut window = window(variant, view, Vec2::new(1600.0, 2600.0));
        // Totals are below a view without a selection.
        press_role(&mut window, Role::Button, "Show tables");
        // A trace may begin with one iteration on the screen.
        press_role(&mut window, Role::Button, "Whole run");
        settle(&mut window);
        let mut found = read(&window);
        // Findings that do not answer the question of the program are folded, if there are others.
        if let Some(folded) = window.query_by_label_contains("on the fullest tile (") {
            folded.click_accesskit();
            settle(&mut window);
            found += &read(&window);
        }
        let report = &variant.opened().report;
        for figure in figures(report, view).expect("reads") {
            if !found.contains(&figure) {
                let problem = format!("{} {view}: {figure}", variant.name);
                problems.lock().unwrap().push(problem);
            }
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_view_has_expected_figures() {
    let report = Variant::named("simulated").opened().report;
    for view in view_names() {
        assert!(!figures(&report, view).expect("reads").is_empty(), "{view}");
    }
}

/// Figures are the same whether or not another view has made the index of the trace before.
#[test]
fn figures_do_not_depend_on_what_was_read_before() {
    let mut problems = Vec::new();
    for variant in VARIANTS.iter().filter(|variant| variant.name.starts_with("foreign")) {
        for view in view_names() {
            let path = place(&format!("{} of {view}", variant.name));
            (variant.write)(&path);
            let report = Report::open(&path).expect("opens");
            let first = figures(&report, view).expect("reads");
            report.prepare_trace(&mut |_| {}, &Arc::default()).expect("is indexed");
            let later = figures(&report, view).expect("reads");
            if first != later {
                problems.push(format!("{} {view}: {first:?} {later:?}", variant.name));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
