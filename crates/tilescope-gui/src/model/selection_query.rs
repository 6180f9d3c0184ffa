//! The query for statistics of the selection.

use crate::model::open_report::OpenReport;
use crate::model::selection::Selection;
use tilescope_analysis::find::{
    NumberRange, QueryCondition, QueryTerm, SearchList, SearchQuery, TextPattern,
};
use tilescope_report::Report;
use tilescope_report::units::{IpuId, ProgramId};

/// Returns a query for the selection: the executed steps of a program, an operation, a variable,
/// the contents of tiles, or the steps of an IPU. The first of these that is selected counts.
pub(crate) fn selection_query(selection: &Selection, opened: &OpenReport) -> Option<SearchQuery> {
    let report = &opened.report;
    let tests = if let Some(program) = selection.program {
        program_tests(report, program, selection.ipu)?
    } else if let Some(id) = selection.operation {
        let operations = report.operations().ok()?;
        vec![QueryCondition::In(SearchList::Operations), named(&operations.get(id.index())?.name)]
    } else if let Some(id) = selection.variable {
        vec![QueryCondition::In(SearchList::Variables), named(&report.variable(id).ok()??.name)]
    } else if !selection.tiles.is_empty() {
        let spans = selection.tiles.iter().map(|tile| NumberRange { first: tile.0, last: tile.0 });
        vec![QueryCondition::In(SearchList::Variables), QueryCondition::Tile(spans.collect())]
    } else {
        vec![QueryCondition::In(SearchList::Steps), on_ipu(selection.ipu?)]
    };
    let terms = tests.into_iter().map(|test| QueryTerm { negated: false, test }).collect();
    Some(SearchQuery { terms })
}

fn named(name: &str) -> QueryCondition {
    QueryCondition::Name(TextPattern::Equals(name.to_owned()))
}

fn program_tests(
    report: &Report,
    program: ProgramId,
    ipu: Option<IpuId>,
) -> Option<Vec<QueryCondition>> {
    let programs = report.programs().ok()?;
    let program = programs.get(program)?;
    let kind = QueryCondition::Type(TextPattern::Equals(program.kind.name().to_owned()));
    let mut tests = vec![QueryCondition::In(SearchList::Steps), kind];
    if !program.name.is_empty() {
        tests.push(QueryCondition::Name(TextPattern::Equals(program.name.clone())));
    }
    tests.extend(ipu.map(on_ipu));
    Some(tests)
}

fn on_ipu(ipu: IpuId) -> QueryCondition {
    QueryCondition::Ipu(vec![NumberRange { first: ipu.0, last: ipu.0 }])
}
