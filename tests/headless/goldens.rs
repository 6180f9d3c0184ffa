//! Compiled programs as text: a file of `tests/goldens` has a spec and, after a line of dashes,
//! plans, programs, vertices, cycles and bytes of the result of compiling it. `UPDATE=1` rewrites
//! them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use tilescope_report::CompilationReport;
use tilescope_report::units::{Bytes, ComputeSetId, Cycles};
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_sim::{MOST_RECORDS, Simulation, compile};

/// The end of the spec.
const DASHES: &str = "----\n";

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// The text of the program that a spec compiles to.
fn described(name: &str, text: &str) -> String {
    let spec = Spec::build(&SpecSource::from_text(name, text)).expect("a sane spec");
    let figures = Simulation::compile(&spec, MOST_RECORDS).expect("compiles").figures();
    let compiled = compile(&spec).expect("compiles").compilation;
    let mut lines = String::new();
    let cycles = figures.cycles.map_or("does not fit".to_owned(), |of| format!("{} cycles", of.0));
    let total: Bytes = compiled
        .tile_memory
        .iter()
        .map(|(tiles, of)| tiles.count() as u64 * of.including_gaps)
        .sum();
    writeln!(lines, "run: {cycles}").expect("written");
    writeln!(lines, "memory: {} on the fullest tile, {} in all", figures.fullest_tile.0, total.0)
        .expect("written");
    for (index, operation) in compiled.operations.iter().enumerate() {
        let (name, kind, shapes) = (&operation.name, &operation.kind, &operation.shapes);
        writeln!(lines, "\n{name}: {kind} {shapes}, {} flops", operation.flops).expect("written");
        if let Some(plan) = &operation.plan {
            writeln!(lines, "  plan {plan}").expect("written");
        }
        describe_programs(&compiled, index, &mut lines);
    }
    lines
}

/// Writes the compute sets and exchanges of an operation.
fn describe_programs(compiled: &CompilationReport, operation: usize, lines: &mut String) {
    for (id, program) in compiled.programs.iter().enumerate() {
        if program.operation.is_none_or(|of| of.index() != operation) {
            continue;
        }
        if let Some(set) = program.compute_set {
            let (cycles, tiles, vertices) = describe_set(compiled, set);
            writeln!(lines, "  {} {cycles} cycles on {tiles} tiles: {vertices}", program.name)
                .expect("written");
        }
        for exchange in compiled.exchanges.iter().filter(|of| of.program.index() == id) {
            let received: Bytes = exchange.tiles.map(|tile| tile.bytes_in).total();
            let code: Bytes = exchange.tiles.map(|tile| tile.code_bytes).total();
            writeln!(lines, "  {} {} bytes, code {}", program.name, received.0, code.0)
                .expect("written");
        }
    }
}

/// Cycles of the slowest tile, number of working tiles, and vertices by type.
fn describe_set(compiled: &CompilationReport, set: ComputeSetId) -> (u64, u64, String) {
    let set = &compiled.compute_sets[set.index()];
    let busy = || set.cycles.iter().filter(|(_, cycles)| **cycles > Cycles::ZERO);
    let slowest = busy().map(|(_, cycles)| cycles.0).max().unwrap_or(0);
    let tiles = busy().map(|(tiles, _)| tiles.count() as u64).sum();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for group in &set.vertices {
        let name = &compiled.vertex_types[group.vertex_type.index()].name;
        *counts.entry(name).or_default() += group.count.total();
    }
    let counts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    (slowest, tiles, counts.join(", "))
}

#[test]
fn programs_compile_to_their_goldens() {
    let files = files();
    assert!(files.len() >= 8);
    let mut different = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a golden");
        let (spec, known) = text.split_once(DASHES).expect("a spec and what it is compiled to");
        let found = described(&file.to_string_lossy(), spec);
        if found == known {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&file, format!("{spec}{DASHES}{found}")).expect("written");
            continue;
        }
        let lines = known.lines().zip(found.lines()).find(|(known, found)| known != found);
        let (known, found) = lines.unwrap_or(("the end", "the end"));
        different.push(format!("{}:\n  known {known}\n  found {found}", file.display()));
    }
    assert!(different.is_empty(), "UPDATE=1 rewrites them:\n{}", different.join("\n"));
}
