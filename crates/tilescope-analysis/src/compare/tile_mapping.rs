//! Over how many tiles data and compute sets are spread.

use super::comparison_table::{ComparisonRow, ComparisonTable, pair_by_key};
use super::matched_entities::{NamedVariables, variables_by_name};
use super::{ComparedReports, ViewComparison};
use crate::data_table::TableCell;
use crate::view_location::ViewLocation;
use tilescope_report::units::VariableId;
use tilescope_report::{ComputeSet, MemoryCategory, Report, ReportError};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "tile-mapping", tables };

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    Ok(vec![tensors(sides)?, compute_sets(sides)?])
}

fn tensors(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let (source, target) = sides
        .both(|report| variables_by_name(report, |of| of.category == MemoryCategory::Variable))?;
    let keyed = |of: super::matched_entities::VariablesByName| {
        of.into_iter().map(|((_, name), n)| (name.clone(), (name, n)))
    };
    let rows = pair_by_key(keyed(source), keyed(target)).into_iter().map(|(source, target)| {
        let name = source.as_ref().or(target.as_ref()).map(|(name, _)| name.clone());
        let cell = |side: &Option<(String, NamedVariables)>| {
            side.as_ref().map(|s| TableCell::Count(s.1.tiles))
        };
        let id = |side: &Option<(String, NamedVariables)>| side.as_ref().and_then(|s| s.1.id);
        let place = |variable: Option<VariableId>| {
            Some(ViewLocation { variable: Some(variable?), ..ViewLocation::view("tile-mapping") })
        };
        ComparisonRow {
            source_place: place(id(&source)),
            target_place: place(id(&target)),
            ..ComparisonRow::new(name.unwrap_or_default(), cell(&source), cell(&target))
        }
    });
    Ok(ComparisonTable::new("Tensors", "Tiles of tensor", rows.collect()).by_change())
}

fn compute_sets(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let sets = |report: &Report| -> Result<Vec<(String, ComputeSet)>, ReportError> {
        let sets = report.compute_sets()?.into_iter();
        Ok(sets.map(|(_, set)| (set.name.clone(), set)).collect())
    };
    let (source, target) = sides.both(sets)?;
    let rows = pair_by_key(source, target).into_iter().map(|(source, target)| {
        let name = source.as_ref().or(target.as_ref()).map(|set| set.name.clone());
        let cell = |side: &Option<ComputeSet>| {
            side.as_ref().map(|s| TableCell::Count(s.cycles.tile_count().into()))
        };
        ComparisonRow::new(name.unwrap_or_default(), cell(&source), cell(&target))
    });
    Ok(ComparisonTable::new("Compute sets", "Tiles of compute set", rows.collect()).by_change())
}
