//! The compiled program: nodes of each kind, and programs that only one report has.

use super::programs::{Pair, title};
use super::table::{Row, Table};
use super::{Comparison, Sides};
use crate::data_table::TableCell;
use crate::insights::Place;
use tilescope_report::{ProgramKind, Programs, ReportError};

pub(super) const COMPARISON: Comparison = Comparison { view: "program-tree", tables };

fn tables(sides: &Sides<'_>) -> Result<Vec<Table>, ReportError> {
    let (source, target) = sides.both(|report| report.programs())?;
    let pairs = &sides.alignment.programs.pairs;
    let only = |title, wanted: fn(&&Pair) -> bool| {
        let rows = pairs.iter().filter(wanted).map(|pair| row(pair, &source, &target)).collect();
        Table::new(title, "Program", rows)
    };
    let moved = |pair: &&Pair| {
        let ipu = |programs: &Programs, id| programs.get(id).and_then(|program| program.ipu);
        let both = pair.source.zip(pair.target);
        both.is_some_and(|(a, b)| ipu(&source, a) != ipu(&target, b))
    };
    let on = |programs: &Programs, id: Option<_>| {
        let ipu = id.and_then(|id| programs.get(id)).and_then(|program| program.ipu);
        Some(TableCell::Text(ipu.map_or("several IPUs".to_owned(), |ipu| format!("IPU {ipu}"))))
    };
    let moved = pairs.iter().filter(moved).map(|pair| Row {
        source: on(&source, pair.source),
        target: on(&target, pair.target),
        ..row(pair, &source, &target)
    });
    Ok(vec![
        kinds(&source, &target),
        only("Only in the source", |pair| pair.target.is_none()),
        only("Only in the target", |pair| pair.source.is_none()),
        Table::new("On another IPU", "Program", moved.collect()),
    ])
}

fn kinds(source: &Programs, target: &Programs) -> Table {
    let count = |programs: &Programs, kind| {
        let of = programs.iter().filter(|(_, program)| program.kind == kind).count();
        (of > 0).then_some(TableCell::Count(of as u64))
    };
    let row = |kind: ProgramKind| {
        let row = Row::new(kind.name(), count(source, kind), count(target, kind));
        (row.source.is_some() || row.target.is_some()).then_some(row)
    };
    let rows = ProgramKind::ALL.into_iter().filter_map(row).collect();
    let total = |programs: &Programs| Some(TableCell::Count(programs.len() as u64));
    let table = Table::new("Programs by kind", "Kind", rows).by_larger();
    table.with_total(total(source), total(target))
}

fn row(pair: &Pair, source: &Programs, target: &Programs) -> Row {
    let program = pair.source.and_then(|id| source.get(id));
    let program = program.or_else(|| pair.target.and_then(|id| target.get(id)));
    let place = |id: Option<_>| Some(Place { program: Some(id?), ..Place::view("program-tree") });
    let one = |id: Option<_>| id.map(|_| TableCell::Count(1));
    Row {
        source_place: place(pair.source),
        target_place: place(pair.target),
        ..Row::new(program.map(title).unwrap_or_default(), one(pair.source), one(pair.target))
    }
}
