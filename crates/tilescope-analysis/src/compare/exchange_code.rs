//! Exchange code and traffic by link, program and tile.

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::memory::numbered;
use super::program_pairs::title;
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use crate::exchange_code::{ExchangeCodeOverview, ExchangeLinkTotals, overview, programs, tiles};
use crate::view_location::ViewLocation;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, ProgramId, TileId};
use tilescope_report::{Report, ReportError, TileTraffic};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "exchange-code", tables };

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(overview)?;
    let code = sides.both(|report| {
        let rows = tiles(report)?.into_iter();
        Ok(rows.map(|row| (row.tile, row.code.iter().sum())).collect::<BTreeMap<TileId, Bytes>>())
    })?;
    let place =
        |tile| Some(ViewLocation { tiles: vec![tile], ..ViewLocation::view("exchange-code") });
    Ok(vec![
        links("Code", &source, &target, |link| TableCell::Bytes(link.stored)),
        links("Bytes moved", &source, &target, |link| TableCell::Bytes(link.bytes)),
        links("Messages", &source, &target, |link| TableCell::Count(link.messages)),
        of_programs(sides)?,
        numbered("Tiles", "Tile", &code.0, &code.1, place),
    ])
}

fn links(
    title: &'static str,
    source: &ExchangeCodeOverview,
    target: &ExchangeCodeOverview,
    value: fn(&ExchangeLinkTotals) -> TableCell,
) -> ComparisonTable {
    // Every overview has every link, in one order.
    let rows = source
        .links
        .iter()
        .zip(&target.links)
        .map(|(a, b)| ComparisonRow::new(a.link.title(), Some(value(a)), Some(value(b))));
    ComparisonTable::new(title, "Link", rows.collect())
}

/// Code of each exchange and copy program over all tiles.
fn of_programs(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let code = |report: &Report| -> Result<BTreeMap<ProgramId, TileTraffic>, ReportError> {
        Ok(programs(report, &[])?.into_iter().map(|row| (row.program, row.traffic)).collect())
    };
    let (source, target) = sides.both(code)?;
    let (of_source, of_target) = sides.both(|report| report.programs())?;
    let place =
        |id: ProgramId| ViewLocation { program: Some(id), ..ViewLocation::view("exchange-code") };
    let mut rows = Vec::new();
    for pair in &sides.alignment.programs.pairs {
        let in_source = pair.source.filter(|id| source.contains_key(id));
        let in_target = pair.target.filter(|id| target.contains_key(id));
        let program = in_source.and_then(|id| of_source.get(id));
        let program = program.or_else(|| in_target.and_then(|id| of_target.get(id)));
        let Some(program) = program else { continue };
        let cell = |id: Option<ProgramId>, known: &BTreeMap<ProgramId, TileTraffic>| {
            Some(TableCell::Bytes(known.get(&id?)?.code_bytes))
        };
        rows.push(ComparisonRow {
            source_place: in_source.map(place),
            target_place: in_target.map(place),
            ..ComparisonRow::new(title(program), cell(in_source, &source), cell(in_target, &target))
        });
    }
    Ok(ComparisonTable::new("Programs", "Code of program", rows).by_change())
}
