//! Exchange code and traffic by link, program and tile.

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::memory::numbered;
use super::program_pairs::{program_rows, title};
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use crate::exchange_code::{
    ExchangeCodeOverview, ExchangeCycles, ExchangeLinkTotals, ExchangeRun, exchange_cycles,
    overview, programs, tiles,
};
use crate::view_location::ViewLocation;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, Cycles, IpuId, ProgramId, TileId};
use tilescope_report::{Report, ReportError, ReportPart};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "exchange-code", tables };

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(overview)?;
    let code = sides.both(|report| {
        let rows = tiles(report)?.into_iter();
        Ok(rows.map(|row| (row.tile, row.code.iter().sum())).collect::<BTreeMap<TileId, Bytes>>())
    })?;
    let mut tables = vec![
        links("Code", &source, &target, |link| TableCell::Bytes(link.stored)),
        links("Bytes moved", &source, &target, |link| TableCell::Bytes(link.bytes)),
        links("Messages", &source, &target, |link| TableCell::Count(link.messages)),
        of_programs(sides)?,
    ];
    tables.extend(of_cycles(sides)?);
    tables.push(numbered("Tiles", "Tile", &code.0, &code.1, |tile| {
        Some(ViewLocation { tiles: vec![tile], ..ViewLocation::view("exchange-code") })
    }));
    Ok(tables)
}

fn links(
    title: &'static str,
    source: &ExchangeCodeOverview,
    target: &ExchangeCodeOverview,
    value: fn(&ExchangeLinkTotals) -> TableCell,
) -> ComparisonTable {
    // Every overview has every link, in the same order.
    let rows = source
        .links
        .iter()
        .zip(&target.links)
        .map(|(a, b)| ComparisonRow::new(a.link.title(), Some(value(a)), Some(value(b))));
    ComparisonTable::new(title, "Link", rows.collect())
}

/// A figure over all executions of an exchange on an IPU.
type ExchangeFigure = (&'static str, fn(&ExchangeRun) -> Option<Cycles>);

const FIGURES: [ExchangeFigure; 3] = [
    ("Avoidable cycles", ExchangeRun::avoidable),
    ("Transfer", |run| Some(run.transfer)),
    ("Lower bound", |run| run.least),
];

/// Cycles of each exchange on each IPU over the run, those that changed most first; empty if a side
/// was only compiled.
fn of_cycles(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let ran = sides.both(|report| Ok(report.has(ReportPart::Execution)))?;
    let pairs = if ran == (true, true) { exchange_pairs(sides)? } else { Vec::new() };
    let divisors = sides.normalization()?.divisors();
    let programs = sides.both(|report| report.programs())?;
    let mut tables = Vec::new();
    for (heading, figure) in FIGURES {
        let mut rows = Vec::new();
        for (source, target) in &pairs {
            let Some(either) = source.as_ref().or(target.as_ref()) else { continue };
            let sides = [source.as_ref(), target.as_ref()];
            let values = sides.map(|of| of?.run.as_ref().and_then(figure));
            // A figure that one side does not know has not become zero there.
            if sides.iter().zip(values).any(|(side, value)| side.is_some() && value.is_none()) {
                continue;
            }
            let [a, b] = values.map(|value| Some(TableCell::Count(value?.0)));
            let [source_place, target_place] = sides.map(|of| of.map(location));
            let programs = if source.is_some() { &programs.0 } else { &programs.1 };
            let name = programs.get(either.program).map_or_else(|| either.name.clone(), title);
            let name = format!("{name}, IPU {}", either.ipu);
            let row = ComparisonRow::new(name, a, b);
            rows.push(ComparisonRow { source_place, target_place, ..row });
        }
        tables.push(ComparisonTable::new(heading, "Exchange", rows).per(divisors).by_change());
    }
    Ok(tables)
}

fn location(of: &ExchangeCycles) -> ViewLocation {
    ViewLocation {
        program: Some(of.program),
        ipu: Some(of.ipu),
        ..ViewLocation::view("exchange-code")
    }
}

/// An exchange on an IPU, in both reports or in one of them.
type ExchangePair = (Option<ExchangeCycles>, Option<ExchangeCycles>);

/// Exchanges of corresponding programs, on each IPU that takes part in either.
fn exchange_pairs(sides: &ComparedReports<'_>) -> Result<Vec<ExchangePair>, ReportError> {
    let (mut source, mut target) = sides.both(exchanges_by_program)?;
    let mut pairs = Vec::new();
    for pair in &sides.alignment.programs.pairs {
        let mut of_source = pair.source.and_then(|id| source.remove(&id)).unwrap_or_default();
        let of_target = pair.target.and_then(|id| target.remove(&id)).unwrap_or_default();
        for (ipu, row) in of_target {
            pairs.push((of_source.remove(&ipu), Some(row)));
        }
        pairs.extend(of_source.into_values().map(|row| (Some(row), None)));
    }
    Ok(pairs)
}

type ExchangesByProgram = BTreeMap<ProgramId, BTreeMap<IpuId, ExchangeCycles>>;

fn exchanges_by_program(report: &Report) -> Result<ExchangesByProgram, ReportError> {
    let mut found = ExchangesByProgram::new();
    for row in exchange_cycles(report)?.rows {
        found.entry(row.program).or_default().insert(row.ipu, row);
    }
    Ok(found)
}

/// Code of each exchange and copy program over all tiles.
fn of_programs(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let (source, target) = sides.both(|report| {
        let rows = programs(report, &[])?.into_iter();
        Ok(rows.map(|row| (row.program, row.traffic.code_bytes)).collect())
    })?;
    let rows = program_rows(sides, "exchange-code", &source, &target)?;
    Ok(ComparisonTable::new("Programs", "Code of program", rows).by_change())
}
