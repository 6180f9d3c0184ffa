//! Live memory: always-live and other variables, and the liveness walk step by step.

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::matched_entities::{VariablesByName, variable_table, variables_by_name};
use super::program_pairs::program_rows;
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use crate::liveness::{LivenessCurve, LivenessScope, curve};
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, ProgramId};
use tilescope_report::{Report, ReportError};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "liveness", tables };

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(|report| curve(report, LivenessScope::Whole))?;
    let always = sides.both(|report| variables_by_name(report, |of| of.lifetime.is_none()))?;
    let peaks =
        [variables_at_peak(sides.source, &source)?, variables_at_peak(sides.target, &target)?];
    Ok(vec![
        figures(&source, &target),
        variable_table("Always live variables", "liveness", always.into(), true),
        variable_table("Other variables at the peak", "liveness", peaks, true),
        steps(sides, &source, &target)?,
    ])
}

fn variables_at_peak(
    report: &Report,
    curve: &Option<LivenessCurve>,
) -> Result<VariablesByName, ReportError> {
    let peak = curve.as_ref().and_then(LivenessCurve::peak).map(|peak| peak as u32);
    variables_by_name(report, |variable| {
        let life = variable.lifetime.as_ref();
        life.zip(peak).is_some_and(|(life, peak)| life.contains(&peak))
    })
}

fn figures(source: &Option<LivenessCurve>, target: &Option<LivenessCurve>) -> ComparisonTable {
    let most = |curve: &LivenessCurve| curve.others.iter().copied().max().unwrap_or(Bytes::ZERO);
    let row = |name: &str, value: &dyn Fn(&LivenessCurve) -> TableCell| {
        ComparisonRow::new(name, source.as_ref().map(value), target.as_ref().map(value))
    };
    let rows = vec![
        row("Always live", &|curve| TableCell::Bytes(curve.always)),
        row("Not always live, at the peak", &|curve| TableCell::Bytes(most(curve))),
        row("Live at the peak", &|curve| TableCell::Bytes(curve.always + most(curve))),
        row("Capacity", &|curve| TableCell::Bytes(curve.capacity)),
        row("Program steps", &|curve| TableCell::Count(curve.others.len() as u64)),
    ];
    ComparisonTable::new("Liveness", "Figure", rows)
}

/// Not-always-live bytes at each step of the walk, with the programs of both reports side by side.
fn steps(
    sides: &ComparedReports<'_>,
    source: &Option<LivenessCurve>,
    target: &Option<LivenessCurve>,
) -> Result<ComparisonTable, ReportError> {
    let source = bytes_by_program(source);
    let target = bytes_by_program(target);
    let rows = program_rows(sides, "liveness", &source, &target)?;
    Ok(ComparisonTable::new("Steps", "Not always live at", rows).by_change())
}

fn bytes_by_program(curve: &Option<LivenessCurve>) -> BTreeMap<ProgramId, Bytes> {
    let mut bytes = BTreeMap::new();
    let Some(curve) = curve else { return bytes };
    for (program, live) in curve.programs.iter().zip(&curve.others) {
        let most: &mut Bytes = bytes.entry(*program).or_default();
        *most = (*most).max(*live);
    }
    bytes
}
