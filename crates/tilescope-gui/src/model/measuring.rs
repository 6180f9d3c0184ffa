//! Statistics of what is selected: the query that finds just that.

use crate::model::opening::Opened;
use crate::model::selection::Selection;
use tilescope_analysis::find::{Pattern, Query, Source, Span, Term, Test};
use tilescope_report::Report;
use tilescope_report::units::ProgramId;

/// A query for what is selected: the executed steps of a program, an operation, a variable, what
/// lies on tiles, or the steps of an IPU; the first of these that is selected.
pub(crate) fn selection_query(selection: &Selection, opened: &Opened) -> Option<Query> {
    let report = &opened.report;
    let name = |name: &str| Test::Name(Pattern::Is(name.to_owned()));
    let tests = if let Some(program) = selection.program {
        program_tests(report, program, selection.ipu)?
    } else if let Some(id) = selection.operation {
        let operations = report.operations().ok()?;
        vec![Test::In(Source::Operations), name(&operations.get(id.index())?.name)]
    } else if let Some(id) = selection.variable {
        vec![Test::In(Source::Variables), name(&report.variable(id).ok()??.name)]
    } else if !selection.tiles.is_empty() {
        let spans = selection.tiles.iter().map(|tile| Span { first: *tile, last: *tile });
        vec![Test::In(Source::Variables), Test::Tile(spans.collect())]
    } else {
        vec![Test::In(Source::Steps), on_ipu(selection.ipu?)]
    };
    let terms = tests.into_iter().map(|test| Term { negated: false, test }).collect();
    Some(Query { terms })
}

fn program_tests(report: &Report, program: ProgramId, ipu: Option<u32>) -> Option<Vec<Test>> {
    let programs = report.programs().ok()?;
    let program = programs.get(program)?;
    let kind = Test::Type(Pattern::Is(program.kind.name().to_owned()));
    let mut tests = vec![Test::In(Source::Steps), kind];
    if !program.name.is_empty() {
        tests.push(Test::Name(Pattern::Is(program.name.clone())));
    }
    tests.extend(ipu.map(on_ipu));
    Some(tests)
}

fn on_ipu(ipu: u32) -> Test {
    Test::Ipu(vec![Span { first: ipu, last: ipu }])
}
