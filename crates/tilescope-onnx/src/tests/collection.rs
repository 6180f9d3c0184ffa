//! Compares a directory of real models with a list of their figures, if there is one.

use crate::resolve::written_types;
use crate::{DimValues, OnnxFile, OnnxGraph};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Checks that every value has the element type and shape that the file states.
pub(super) fn compare_with_written_shapes(file: &OnnxFile, graph: &OnnxGraph) -> usize {
    let written = written_types(file);
    let mut compared = 0;
    for value in &graph.values {
        let Some(written) = written.get(value.name.as_str()) else { continue };
        assert_eq!(
            (value.element, &value.dims),
            (written.element, &written.dims),
            "{}",
            value.name
        );
        compared += 1;
    }
    compared
}

/// A line of a table with quoted cells.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for sign in line.chars() {
        match sign {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            sign => cells.last_mut().unwrap().push(sign),
        }
    }
    cells
}

/// Reads the files of the directory `TILESCOPE_ONNX_COLLECTION` that `manifest.csv` lists, and
/// compares multiplications and parameters, exactly if the list's two counts agree. Symbols have
/// the list's batch, and 128 for sequences.
#[test]
#[ignore = "needs a directory of models"]
fn the_figures_of_a_collection() {
    let directory = PathBuf::from(std::env::var("TILESCOPE_ONNX_COLLECTION").unwrap());
    let table = std::fs::read_to_string(directory.join("manifest.csv")).unwrap();
    let mut rows = table.lines().map(cells);
    let heads = rows.next().unwrap();
    let (mut failures, mut count) = (Vec::new(), 0);
    for row in rows {
        let cell = |name: &str| {
            let at = heads.iter().position(|head| head == name).unwrap();
            row.get(at).map_or("", String::as_str)
        };
        let number = |name: &str| cell(name).parse::<u64>().ok();
        let path = directory.join(cell("part")).join(cell("file"));
        let start = std::time::Instant::now();
        let values = |file: &OnnxFile| DimValues {
            by_name: BTreeMap::from_iter(
                file.symbols().into_iter().filter(|symbol| !symbol.is_batch).map(|s| (s.name, 128)),
            ),
            batch: number("batch"),
            ..DimValues::default()
        };
        let read = OnnxFile::open(&path).and_then(|file| Ok((file.resolve(&values(&file))?, file)));
        count += 1;
        let (graph, file) = match read {
            Ok(both) => both,
            Err(error) => {
                println!("{}: {error}", cell("file"));
                failures.push(cell("file").to_owned());
                continue;
            }
        };
        let elapsed = start.elapsed().as_millis();
        let compared =
            if file.symbols().is_empty() { compare_with_written_shapes(&file, &graph) } else { 0 };
        let agree = |found: u64, first: Option<u64>, second: Option<u64>| match (first, second) {
            (Some(first), Some(second)) if first == second => {
                if found == first {
                    "equal"
                } else {
                    "WRONG"
                }
            }
            (first, second) if Some(found) == first || Some(found) == second => "one",
            (None, None) | (Some(_), None) | (None, Some(_)) => "differs",
            _ => "neither",
        };
        let macs =
            agree(graph.macs(), number("macs_total_torch"), number("macs_total_from_shapes"));
        let parameters = agree(
            graph.parameter_count(),
            number("params_elements_float_initializers"),
            number("params_module"),
        );
        println!(
            "{:44} {elapsed:5} ms {:5} -> {:5} nodes, {compared:4} shapes, macs {} {macs} ({}/{}), parameters {} {parameters} ({}/{})",
            cell("file"),
            file.node_count,
            graph.nodes.len(),
            graph.macs(),
            cell("macs_total_torch"),
            cell("macs_total_from_shapes"),
            graph.parameter_count(),
            cell("params_elements_float_initializers"),
            cell("params_module"),
        );
        // The list's counters leave out the products of an LSTM, which is one operator to them.
        let has_all_macs = !graph.op_counts().contains_key("LSTM");
        if (macs == "WRONG" && has_all_macs) || parameters == "WRONG" {
            failures.push(cell("file").to_owned());
        }
    }
    assert!(failures.is_empty(), "{} of {count}: {failures:?}", failures.len());
}
