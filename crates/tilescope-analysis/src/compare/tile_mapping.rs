//! Over how many tiles data and compute sets are spread.

use super::links::{Named, variables_by_name};
use super::table::{Row, Table, joined};
use super::{Comparison, Sides};
use crate::data_table::TableCell;
use crate::insights::Place;
use tilescope_report::units::VariableId;
use tilescope_report::{Category, ComputeSet, Report, ReportError};

pub(super) const COMPARISON: Comparison = Comparison { view: "tile-mapping", tables };

fn tables(sides: &Sides<'_>) -> Result<Vec<Table>, ReportError> {
    Ok(vec![tensors(sides)?, compute_sets(sides)?])
}

fn tensors(sides: &Sides<'_>) -> Result<Table, ReportError> {
    let (source, target) =
        sides.both(|report| variables_by_name(report, |of| of.category == Category::Variable))?;
    let keyed =
        |of: super::links::ByName| of.into_iter().map(|((_, name), n)| (name.clone(), (name, n)));
    let rows = joined(keyed(source), keyed(target)).into_iter().map(|(source, target)| {
        let name = source.as_ref().or(target.as_ref()).map(|(name, _)| name.clone());
        let cell =
            |side: &Option<(String, Named)>| side.as_ref().map(|s| TableCell::Count(s.1.tiles));
        let id = |side: &Option<(String, Named)>| side.as_ref().and_then(|s| s.1.id);
        let place = |variable: Option<VariableId>| {
            Some(Place { variable: Some(variable?), ..Place::view("tile-mapping") })
        };
        Row {
            source_place: place(id(&source)),
            target_place: place(id(&target)),
            ..Row::new(name.unwrap_or_default(), cell(&source), cell(&target))
        }
    });
    Ok(Table::new("Tensors", "Tiles of tensor", rows.collect()).by_larger())
}

fn compute_sets(sides: &Sides<'_>) -> Result<Table, ReportError> {
    let sets = |report: &Report| -> Result<Vec<(String, ComputeSet)>, ReportError> {
        let sets = report.compute_sets()?.into_iter();
        Ok(sets.map(|(_, set)| (set.name.clone(), set)).collect())
    };
    let (source, target) = sides.both(sets)?;
    let rows = joined(source, target).into_iter().map(|(source, target)| {
        let name = source.as_ref().or(target.as_ref()).map(|set| set.name.clone());
        let cell = |side: &Option<ComputeSet>| {
            side.as_ref().map(|s| TableCell::Count(s.cycles.tile_count()))
        };
        Row::new(name.unwrap_or_default(), cell(&source), cell(&target))
    });
    Ok(Table::new("Compute sets", "Tiles of compute set", rows.collect()).by_larger())
}
