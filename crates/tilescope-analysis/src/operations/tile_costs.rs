//! Costs of operations on each tile.

use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, Cycles, ProgramId, Quantity, TileRuns};
use tilescope_report::{Report, ReportError, TileTraffic, code_owners};

/// Costs of an operation on each tile of the replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationTileCosts {
    /// Cycles of one execution, by name of the compute set.
    pub cycles: Vec<(String, Vec<Cycles>)>,
    /// Code of its vertex types.
    pub vertex_code: Vec<Bytes>,
    /// Code of its exchanges.
    pub exchange_code: Vec<Bytes>,
}

/// The largest number of separate compute sets; all others are combined.
const MAX_SETS: usize = 8;

/// The costs of programs on each tile.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn per_tile(
    report: &Report,
    programs: &[ProgramId],
) -> Result<OperationTileCosts, ReportError> {
    let tiles = report.target()?.tiles_per_replica() as usize;
    let known = report.executed_program_nodes()?;
    let types = report.vertex_types()?;
    let owners = code_owners(&types);
    let mut found = OperationTileCosts {
        cycles: Vec::new(),
        vertex_code: vec![Bytes::ZERO; tiles],
        exchange_code: vec![Bytes::ZERO; tiles],
    };
    let mut holds: BTreeMap<u32, Vec<bool>> = BTreeMap::new();
    for id in programs {
        let set = known.get(*id).and_then(|program| program.compute_set);
        if let Some(set) = set.map(|set| report.compute_set(set)).transpose()?.flatten() {
            if found.cycles.len() == MAX_SETS {
                found.cycles.push(("Other compute sets".to_owned(), vec![Cycles::ZERO; tiles]));
            } else if found.cycles.len() < MAX_SETS {
                found.cycles.push((set.name.clone(), vec![Cycles::ZERO; tiles]));
            }
            if let Some((_, sums)) = found.cycles.last_mut() {
                add_runs(sums, &set.cycles, |cycles| *cycles);
            }
            for group in &set.vertices {
                let Some(owner) = owners.get(group.vertex_type.index()) else { continue };
                let on = holds.entry(owner.0).or_insert_with(|| vec![false; tiles]);
                for (range, _) in group.count.iter() {
                    let end = range.end.index().min(tiles);
                    on[range.first.index().min(end)..end].fill(true);
                }
            }
        }
        if let Some(exchange) = report.exchange(*id)? {
            add_runs(&mut found.exchange_code, &exchange.tiles, |of: &TileTraffic| of.code_bytes);
        }
    }
    for (kind, on) in holds {
        let code = types.get(kind as usize).map_or(Bytes::ZERO, |kind| kind.code_bytes);
        let tiles = found.vertex_code.iter_mut().zip(on).filter(|(_, on)| *on);
        tiles.for_each(|(sum, _)| *sum += code);
    }
    Ok(found)
}

fn add_runs<T: Clone + PartialEq, Q: Quantity>(
    sums: &mut [Q],
    runs: &TileRuns<T>,
    value: impl Fn(&T) -> Q,
) {
    for (range, of) in runs.iter() {
        let end = range.end.index().min(sums.len());
        let start = range.first.index().min(end);
        sums[start..end].iter_mut().for_each(|sum| *sum = sum.saturating_add(value(of)));
    }
}
