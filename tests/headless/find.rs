//! Searches: compared with manual counts, and from the command line.

use crate::common;
use crate::common::{stderr, stdout, tilescope};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use tilescope_analysis::find::{
    CatalogueItem, QueryAmount, SearchCatalogue, SearchEntity, SearchList, SearchQuery,
    SearchResults, SearchTotals, find, values,
};
use tilescope_analysis::statistics::spread;
use tilescope_report::Report;
use tilescope_report::trace::{EqualSteps, LengthGroup, ProgramStepTotals, StepVisitor};
use tilescope_report::units::{Bytes, Cycles, TileId};

struct Pipeline {
    report: Report,
    catalogue: SearchCatalogue,
    directory: tempfile::TempDir,
}

static PIPELINE: LazyLock<Pipeline> = LazyLock::new(|| {
    let (report, directory) = common::report("mnist_pipeline", &["options.device_iterations=1"]);
    let catalogue = SearchCatalogue::read(&report).unwrap();
    Pipeline { report, catalogue, directory }
});

fn found(query: &str) -> SearchResults {
    let query: SearchQuery = query.parse().unwrap();
    find(&PIPELINE.report, &PIPELINE.catalogue, &query).unwrap()
}

fn names(found: &SearchResults) -> Vec<&str> {
    found.hits.iter().map(|hit| hit.name.as_str()).collect()
}

#[test]
fn words_find_exactly_the_names_that_contain_them() {
    let by_word = found("CONV");
    let holds = |item: &&CatalogueItem| item.name.to_lowercase().contains("conv");
    let expected = PIPELINE.catalogue.items.iter().filter(holds).count();
    assert!(expected > 10);
    assert_eq!(by_word.hits.len(), expected);
    assert_eq!(names(&found("/CONV/")), names(&by_word));
    let without = found("-conv").hits.len();
    assert_eq!(without + expected, PIPELINE.catalogue.items.len());
}

#[test]
fn totals_are_the_sums_of_the_hits() {
    for query in ["conv", "in:steps", "in:variables bytes>1KiB", "type:DoExchange ipu:0..1", ""] {
        let all = found(query);
        for (source, totals) in &all.totals {
            let hits = all.hits.iter().filter(|hit| hit.thing.source() == *source);
            let sum = |of: fn(&CatalogueItem) -> u64| hits.clone().map(of).sum::<u64>();
            assert_eq!(totals.things, hits.clone().count() as u64);
            assert_eq!(totals.count, sum(|hit| hit.count));
            assert_eq!(totals.cycles, Cycles(sum(|hit| hit.cycles.unwrap_or(Cycles::ZERO).0)));
            assert_eq!(totals.bytes, Bytes(sum(|hit| hit.bytes.unwrap_or(Bytes::ZERO).0)));
        }
    }
}

#[test]
fn steps_split_over_ipus_and_over_lengths_add_up() {
    let all = found("in:steps").totals[&SearchList::Steps];
    let by_ipu = ["ipu:0", "ipu:1", "ipu:2..3"].map(|ipu| {
        found(&format!("in:steps {ipu}"))
            .totals
            .get(&SearchList::Steps)
            .copied()
            .unwrap_or_default()
    });
    assert_eq!(by_ipu.iter().map(|part| part.count).sum::<u64>(), all.count);
    assert_eq!(by_ipu.iter().map(|part| part.cycles).sum::<Cycles>(), all.cycles);
    let (long, short) = (found("in:steps cycles>1k"), found("in:steps cycles<=1k"));
    let [long, short] = [long, short].map(|part| part.totals[&SearchList::Steps]);
    assert!(long.count > 0 && short.count > 0);
    assert_eq!(long.count + short.count, all.count);
    assert_eq!(long.cycles + short.cycles, all.cycles);
}

/// All steps of programs, one by one.
#[derive(Default)]
struct SingleSteps(Vec<EqualSteps>);

impl StepVisitor for SingleSteps {
    fn take_totals(&mut self, _: &ProgramStepTotals) -> bool {
        false
    }

    fn take_lengths(&mut self, _: &ProgramStepTotals, _: &[LengthGroup]) -> bool {
        false
    }

    fn take_steps(&mut self, steps: &EqualSteps) {
        self.0.extend(steps.program.map(|_| *steps));
    }
}

#[test]
fn conditions_on_steps_agree_with_single_steps() {
    let trace = PIPELINE.report.trace().unwrap().unwrap();
    let mut single = SingleSteps::default();
    for lane in (0..trace.lanes().len()).filter_map(|index| trace.lane(index)) {
        lane.visit_steps(&mut single).unwrap();
    }
    let lengths: BTreeSet<u64> = single.0.iter().map(|steps| steps.cycles.0).collect();
    assert!(lengths.len() > 50, "{}", lengths.len());
    for limit in lengths.iter().flat_map(|length| [*length, length + 1]) {
        for query in ["", "bytes>=100", "bytes<2KiB"] {
            let mut expected = SearchTotals::default();
            for steps in single.0.iter().filter(|steps| steps.cycles.0 >= limit) {
                let bytes = steps.bytes_moved.0;
                if (query.contains('>') && bytes < 100) || (query.contains('<') && bytes >= 2_048) {
                    continue;
                }
                expected.count += steps.times;
                expected.cycles += steps.cycles.saturating_mul(steps.times);
                expected.bytes += steps.bytes_moved.saturating_mul(steps.times);
            }
            let found = found(&format!("in:steps cycles>={limit} {query}"));
            let mut totals = found.totals.get(&SearchList::Steps).copied().unwrap_or_default();
            totals.things = 0;
            assert_eq!(totals, expected, "{limit} {query}");
        }
    }
}

#[test]
fn variables_on_a_tile_are_those_that_the_report_has_there() {
    let on_tile = found("in:variables tile:17");
    let holds = |hit: &CatalogueItem| match hit.thing {
        SearchEntity::Variable(id) => {
            PIPELINE.report.variable(id).unwrap().unwrap().tiles.get(TileId(17)).is_some()
        }
        _ => false,
    };
    assert!(!on_tile.hits.is_empty());
    assert!(on_tile.hits.iter().all(holds));
    let elsewhere = found("in:variables -tile:17");
    assert!(!elsewhere.hits.iter().any(holds));
}

#[test]
fn statistics_are_of_every_single_step() {
    let query: SearchQuery = "in:steps Convolve ipu:0".parse().unwrap();
    let hits = find(&PIPELINE.report, &PIPELINE.catalogue, &query).unwrap();
    let totals = hits.totals[&SearchList::Steps];
    let sums = [(QueryAmount::Cycles, totals.cycles.0), (QueryAmount::Bytes, totals.bytes.0)];
    for (amount, sum) in sums {
        let values = values(&PIPELINE.report, &query, &hits, SearchList::Steps, amount).unwrap();
        let of = values.statistics();
        assert_eq!((of.count, of.sum), (totals.count, sum.into()));
    }
}

#[test]
fn a_variable_spreads_over_its_tiles() {
    let largest = found("in:variables").hits.into_iter().max_by_key(|hit| hit.bytes).unwrap();
    let tiles =
        spread(&PIPELINE.report, &PIPELINE.catalogue.runs, std::slice::from_ref(&largest)).unwrap();
    assert_eq!(Some(Bytes(tiles.iter().sum())), largest.bytes);
    assert_eq!(tiles.iter().filter(|bytes| **bytes > 0).count() as u64, largest.count);
}

#[test]
fn the_command_line_finds_and_points_at_errors() {
    let path = PIPELINE.directory.path().to_string_lossy().into_owned();
    let output = tilescope(&["find", &path, "in:steps Convolve", "--limit", "3", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let same = found("in:steps Convolve").totals[&SearchList::Steps];
    assert_eq!(json["totals"]["steps"]["count"], same.count);
    assert!(json["hits"].as_array().unwrap().len() <= 3);
    let text = stdout(&tilescope(&["find", &path, "Convolve"]));
    assert!(text.contains("steps") && text.contains("Convolve"), "{text}");
    let wrong = tilescope(&["find", &path, "conv ipu:x"]);
    assert_eq!(wrong.status.code(), Some(2));
    let message = stderr(&wrong);
    let lines: Vec<&str> = message.lines().collect();
    let query_line = lines.iter().position(|line| line.contains("conv ipu:x")).unwrap();
    assert_eq!(lines[query_line].find('x'), lines[query_line + 1].find('^'), "{message}");
}
