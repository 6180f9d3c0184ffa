//! The compiled program: nodes by kind, and programs that only one report has.

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::program_pairs::{ProgramPair, compared_program};
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use tilescope_report::{ProgramKind, ProgramNodeTable, ReportError};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "program-tree", tables };

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(|report| report.programs())?;
    let pairs = &sides.alignment.programs.pairs;
    let only = |title, wanted: fn(&&ProgramPair) -> bool| {
        let rows = pairs.iter().filter(wanted).map(|pair| row(pair, &source, &target)).collect();
        ComparisonTable::new(title, "Program", rows)
    };
    let moved = |pair: &&ProgramPair| {
        let ipu =
            |programs: &ProgramNodeTable, id| programs.get(id).and_then(|program| program.ipu);
        let both = pair.source.zip(pair.target);
        both.is_some_and(|(a, b)| ipu(&source, a) != ipu(&target, b))
    };
    let on = |programs: &ProgramNodeTable, id: Option<_>| {
        let ipu = id.and_then(|id| programs.get(id)).and_then(|program| program.ipu);
        Some(TableCell::Text(ipu.map_or("several IPUs".to_owned(), |ipu| format!("IPU {ipu}"))))
    };
    let moved = pairs.iter().filter(moved).map(|pair| ComparisonRow {
        source: on(&source, pair.source),
        target: on(&target, pair.target),
        ..row(pair, &source, &target)
    });
    Ok(vec![
        kinds(&source, &target),
        only("Only in the source", |pair| pair.target.is_none()),
        only("Only in the target", |pair| pair.source.is_none()),
        ComparisonTable::new("On another IPU", "Program", moved.collect()),
    ])
}

fn kinds(source: &ProgramNodeTable, target: &ProgramNodeTable) -> ComparisonTable {
    let count = |programs: &ProgramNodeTable, kind| {
        let of = programs.iter().filter(|(_, program)| program.kind == kind).count();
        (of > 0).then_some(TableCell::Count(of as u64))
    };
    let row = |kind: ProgramKind| {
        let row = ComparisonRow::new(kind.name(), count(source, kind), count(target, kind));
        (row.source.is_some() || row.target.is_some()).then_some(row)
    };
    let rows = ProgramKind::ALL.into_iter().filter_map(row).collect();
    let total = |programs: &ProgramNodeTable| Some(TableCell::Count(programs.len() as u64));
    let table = ComparisonTable::new("Programs by kind", "Kind", rows).by_change();
    table.with_total(total(source), total(target))
}

fn row(pair: &ProgramPair, source: &ProgramNodeTable, target: &ProgramNodeTable) -> ComparisonRow {
    let [source, target] = [(pair.source, source), (pair.target, target)]
        .map(|(id, programs)| Some(compared_program(id?, programs, COMPARISON.view, 1u64)));
    ComparisonRow::paired(source, target)
}
