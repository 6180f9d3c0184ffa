//! What lives when: always-live and other variables, and the liveness walk step by step.

use super::links::{variable_table, variables_by_name};
use super::programs::{Pair, title};
use super::table::{Row, Table};
use super::{Comparison, Sides};
use crate::data_table::TableCell;
use crate::insights::Place;
use crate::liveness::{Curve, Source, curve};
use std::collections::BTreeMap;
use tilescope_report::units::ProgramId;
use tilescope_report::{Report, ReportError};

pub(super) const COMPARISON: Comparison = Comparison { view: "liveness", tables };

fn tables(sides: &Sides<'_>) -> Result<Vec<Table>, ReportError> {
    let (source, target) = sides.both(|report| curve(report, Source::Whole))?;
    let always = sides.both(|report| variables_by_name(report, |of| of.lifetime.is_none()))?;
    let at_peak = |report: &Report, curve: &Option<Curve>| {
        let peak = curve.as_ref().and_then(Curve::peak).map(|peak| peak as u32);
        variables_by_name(report, |variable| {
            let life = variable.lifetime.as_ref();
            life.zip(peak).is_some_and(|(life, peak)| life.contains(&peak))
        })
    };
    let peaks = (at_peak(sides.source, &source)?, at_peak(sides.target, &target)?);
    Ok(vec![
        figures(&source, &target),
        variable_table("Always live variables", "liveness", always.0, always.1),
        variable_table("Other variables at the peak", "liveness", peaks.0, peaks.1),
        steps(sides, &source, &target)?,
    ])
}

fn figures(source: &Option<Curve>, target: &Option<Curve>) -> Table {
    let most = |curve: &Curve| curve.others.iter().copied().max().unwrap_or(0);
    let row = |name: &str, value: &dyn Fn(&Curve) -> TableCell| {
        Row::new(name, source.as_ref().map(value), target.as_ref().map(value))
    };
    let rows = vec![
        row("Always live", &|curve| TableCell::Bytes(curve.always)),
        row("Not always live, at the peak", &|curve| TableCell::Bytes(most(curve))),
        row("Live at the peak", &|curve| TableCell::Bytes(curve.always + most(curve))),
        row("Memory of the tiles", &|curve| TableCell::Bytes(curve.capacity)),
        row("Steps of the walk", &|curve| TableCell::Count(curve.others.len() as u64)),
    ];
    Table::new("Liveness", "Figure", rows)
}

/// Not-always-live bytes at each step of the walk, programs of both side by side.
fn steps(
    sides: &Sides<'_>,
    source: &Option<Curve>,
    target: &Option<Curve>,
) -> Result<Table, ReportError> {
    let bytes = |curve: &Option<Curve>| -> BTreeMap<ProgramId, u64> {
        let mut bytes = BTreeMap::new();
        for (program, live) in curve.iter().flat_map(|c| c.programs.iter().zip(&c.others)) {
            let most: &mut u64 = bytes.entry(*program).or_default();
            *most = (*most).max(*live);
        }
        bytes
    };
    let (in_source, in_target) = (bytes(source), bytes(target));
    let (of_source, of_target) = sides.both(|report| report.programs())?;
    let cell = |id: Option<ProgramId>, known: &BTreeMap<ProgramId, u64>| {
        id.and_then(|id| known.get(&id)).map(|bytes| TableCell::Bytes(*bytes))
    };
    let place =
        |id: Option<ProgramId>| Some(Place { program: Some(id?), ..Place::view("liveness") });
    let row = |pair: &Pair| {
        let (source, target) = (cell(pair.source, &in_source), cell(pair.target, &in_target));
        if source.is_none() && target.is_none() {
            return None;
        }
        let program = pair.source.and_then(|id| of_source.get(id));
        let program = program.or_else(|| pair.target.and_then(|id| of_target.get(id)));
        Some(Row {
            source_place: place(pair.source),
            target_place: place(pair.target),
            ..Row::new(program.map(title).unwrap_or_default(), source, target)
        })
    };
    let rows = sides.alignment.programs.pairs.iter().filter_map(row).collect();
    Ok(Table::new("Steps", "Not always live at", rows).by_larger())
}
