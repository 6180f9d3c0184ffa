//! Statistics of figures: of steps in a range, or of search results.

use super::distribution::{ValueDistribution, is_short};
use super::find::{CatalogueItem, SearchEntity};
use super::trace::ProgramRuns;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{ComputeSetId, CycleRange, IpuId, ProgramId, TileId, TileRuns};
use tilescope_report::{ComputeSet, Report, ReportError};

/// Lengths in cycles of the steps that are at least partly in `window`, on some IPUs.
///
/// # Errors
/// A trace that cannot be read.
pub fn step_lengths(
    report: &Report,
    window: CycleRange,
    ipus: &[IpuId],
) -> Result<ValueDistribution, ReportError> {
    let mut lengths = ValueDistribution::default();
    let Some(trace) = report.trace()? else { return Ok(lengths) };
    for index in 0..trace.lanes().len() {
        let Some(lane) = trace.lane(index).filter(|lane| ipus.contains(&lane.info().ipu)) else {
            continue;
        };
        if is_short(&trace) {
            let steps = lane.steps_in(window, usize::MAX)?;
            steps.iter().for_each(|step| lengths.add(step.range.length().0));
        } else {
            let totals = lane.program_totals(lane.touching(window)?)?;
            totals.iter().for_each(|totals| lengths.add_lengths(totals));
        }
    }
    Ok(lengths)
}

/// The amount of the items on each tile: bytes of variables, instances of vertices, cycles of
/// steps, programs and operations over all their executions.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn spread(
    report: &Report,
    runs: &ProgramRuns,
    things: &[CatalogueItem],
) -> Result<Vec<u64>, ReportError> {
    let target = report.target()?;
    let mut tiles = vec![0u64; target.tiles_per_replica() as usize];
    let programs = report.executed_program_nodes()?;
    let sets: BTreeMap<ComputeSetId, ComputeSet> = report.compute_sets()?.into_iter().collect();
    let mut add = |of: &TileRuns<u64>, times: &dyn Fn(TileId) -> u64| {
        for (range, value) in of.iter() {
            for tile in range.iter() {
                if let Some(sum) = tiles.get_mut(tile.index()) {
                    *sum = sum.saturating_add(value.saturating_mul(times(tile)));
                }
            }
        }
    };
    let mut executed: BTreeSet<ProgramId> = BTreeSet::new();
    for item in things {
        match item.thing {
            SearchEntity::Steps(id, _) | SearchEntity::Program(id) => drop(executed.insert(id)),
            SearchEntity::Operation(operation) => {
                let own = programs.iter().filter(|(_, of)| of.operation == Some(operation));
                executed.extend(own.map(|(id, _)| id));
            }
            SearchEntity::Variable(id) | SearchEntity::Tensor(id) => {
                if let Some(variable) = report.variable(id)? {
                    add(&variable.tiles.map(|part| part.bytes.0), &|_| 1);
                }
            }
            SearchEntity::VertexType(id) => {
                let groups = sets.values().flat_map(|set| &set.vertices);
                groups.filter(|of| of.vertex_type == id).for_each(|of| add(&of.count, &|_| 1));
            }
        }
    }
    let runs = runs.by_ipu();
    for id in executed {
        let set = programs.get(id).and_then(|program| sets.get(&program.compute_set?));
        if let Some(set) = set {
            add(&set.cycles.map(|cycles| cycles.0), &|tile| {
                runs.get(&(target.ipu_of_tile(tile), id)).map_or(0, |of| of.executions)
            });
        }
    }
    Ok(tiles)
}
