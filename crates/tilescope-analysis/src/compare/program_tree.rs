//! The compiled program: nodes by kind, and programs that only one report has.

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::program_pairs::{ProgramPair, compared_program};
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use tilescope_report::units::IpuId;
use tilescope_report::{ProgramKind, ProgramNodeTable, ReportError};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "program-tree", tables };

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    let (source, target) = sides.both(|report| report.executed_program_nodes())?;
    let mut only_source = Vec::new();
    let mut only_target = Vec::new();
    let mut moved = Vec::new();
    for pair in &sides.alignment.programs.pairs {
        let compared = row(pair, &source, &target);
        let (Some(in_source), Some(in_target)) = (pair.source, pair.target) else {
            let only = if pair.target.is_none() { &mut only_source } else { &mut only_target };
            only.push(compared);
            continue;
        };
        let from = source.get(in_source).and_then(|program| program.ipu);
        let to = target.get(in_target).and_then(|program| program.ipu);
        if from != to {
            moved.push(ComparisonRow {
                source: Some(ipu_cell(from)),
                target: Some(ipu_cell(to)),
                ..compared
            });
        }
    }
    Ok(vec![
        kinds(&source, &target),
        ComparisonTable::new("Only in the source", "Program", only_source),
        ComparisonTable::new("Only in the target", "Program", only_target),
        ComparisonTable::new("On another IPU", "Program", moved),
    ])
}

fn ipu_cell(ipu: Option<IpuId>) -> TableCell {
    TableCell::Text(ipu.map_or("several IPUs".to_owned(), |ipu| format!("IPU {ipu}")))
}

fn kinds(source: &ProgramNodeTable, target: &ProgramNodeTable) -> ComparisonTable {
    let mut rows = Vec::new();
    for kind in ProgramKind::ALL {
        let [source, target] = [source, target].map(|programs| {
            let of_kind = programs.iter().filter(|(_, program)| program.kind == kind).count();
            if of_kind > 0 { Some(TableCell::Count(of_kind as u64)) } else { None }
        });
        if source.is_some() || target.is_some() {
            rows.push(ComparisonRow::new(kind.name(), source, target));
        }
    }
    let [source, target] =
        [source, target].map(|programs| Some(TableCell::Count(programs.len() as u64)));
    let table = ComparisonTable::new("Programs by kind", "Kind", rows).by_change();
    table.with_total(source, target)
}

fn row(pair: &ProgramPair, source: &ProgramNodeTable, target: &ProgramNodeTable) -> ComparisonRow {
    let [source, target] = [(pair.source, source), (pair.target, target)]
        .map(|(id, programs)| Some(compared_program(id?, programs, COMPARISON.view, 1u64)));
    ComparisonRow::paired(source, target)
}
