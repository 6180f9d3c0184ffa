//! The number of tiles that data and compute sets are spread over.

use super::comparison_table::{ComparedThing, ComparisonTable};
use super::matched_entities::variables_by_name;
use super::{ComparedReports, ViewComparison};
use crate::view_location::ViewLocation;
use tilescope_report::{MemoryCategory, ReportError};

pub(super) const COMPARISON: ViewComparison = ViewComparison { view: "tile-mapping", tables };

fn tables(sides: &ComparedReports<'_>) -> Result<Vec<ComparisonTable>, ReportError> {
    Ok(vec![tensors(sides)?, compute_sets(sides)?])
}

fn tensors(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let (source, target) = sides.both(|report| {
        let names = variables_by_name(report, |of| of.category == MemoryCategory::Variable)?;
        let things = names.into_iter().map(|((_, name), of)| {
            let place = ViewLocation { variable: of.id, ..ViewLocation::view("tile-mapping") };
            (name.clone(), ComparedThing::new(name, of.tiles).at(place))
        });
        Ok(things.collect::<Vec<_>>())
    })?;
    Ok(ComparisonTable::paired("Tensors", "Tiles of tensor", source, target).by_change())
}

fn compute_sets(sides: &ComparedReports<'_>) -> Result<ComparisonTable, ReportError> {
    let (source, target) = sides.both(|report| {
        let sets = report.compute_sets()?.into_iter().map(|(_, set)| {
            let tiles = u64::from(set.cycles.tile_count());
            (set.name.clone(), ComparedThing::new(set.name, tiles))
        });
        Ok(sets.collect::<Vec<_>>())
    })?;
    Ok(ComparisonTable::paired("Compute sets", "Tiles of compute set", source, target).by_change())
}
