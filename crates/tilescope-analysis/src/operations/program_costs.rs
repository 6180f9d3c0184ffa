//! Costs of programs, and their sums with shared parts counted once.

use super::OpRow;
use crate::critical_path::{ProgramExposure, exposure};
use crate::limits::{KnownFlops, LimitsOfPrograms, Machine, OperationLimits, ProgramLimits};
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{
    Bytes, ComputeSetId, ProgramId, TileId, TileRange, TileRuns, VertexTypeId,
};
use tilescope_report::{
    ComputeSet, ExchangeTraffic, ProgramKind, ProgramNode, ProgramNodeTable, Report, ReportError,
    VertexTypeInfo, code_owners,
};

/// Costs of programs, independent of their operations.
pub(super) struct ProgramCosts {
    sets: BTreeMap<ComputeSetId, ComputeSet>,
    pub(super) types: std::sync::Arc<Vec<VertexTypeInfo>>,
    /// The vertex type that counts the code of each type.
    pub(super) code_owners: Vec<VertexTypeId>,
    exchanges: BTreeMap<ProgramId, ExchangeTraffic>,
    /// The limits of programs in the run.
    machine: Machine,
    limits: LimitsOfPrograms,
    exposures: Option<BTreeMap<ProgramId, ProgramExposure>>,
}

impl ProgramCosts {
    pub(super) fn read(report: &Report) -> Result<Self, ReportError> {
        let types = report.vertex_types()?;
        let machine = Machine::read(report)?;
        let sets = report.compute_sets()?.into_iter().collect();
        let exchanges = report.exchanges()?.into_iter().map(|of| (of.program, of)).collect();
        let limits = LimitsOfPrograms::read(report, &machine, &sets, &exchanges)?;
        let code_owners = code_owners(&types);
        let exposures = exposure(report)?;
        Ok(Self { sets, code_owners, types, exchanges, machine, limits, exposures })
    }

    /// The compute set that a program executes.
    pub(super) fn set_of(&self, program: &ProgramNode) -> Option<&ComputeSet> {
        program.compute_set.and_then(|set| self.sets.get(&set))
    }

    /// Computes the costs of a row from its programs.
    pub(super) fn add_to(
        &self,
        row: &mut OpRow,
        programs: &ProgramNodeTable,
        known: KnownFlops,
        code: &mut TileByteSums,
    ) {
        let mut codelets = CodeletTiles::default();
        let mut sums = ProgramLimits::default();
        for id in row.programs.clone() {
            let Some(program) = programs.get(id) else { continue };
            self.add(row, &mut codelets, code, (id, program));
            if let Some(exposures) = &self.exposures {
                let sum = row.exposure.get_or_insert_with(ProgramExposure::nothing);
                exposures.get(&id).into_iter().for_each(|of| sum.add(of));
            }
            if let Some(of) = self.limits.by_program.get(&id) {
                sums.add(of);
                if matches!(program.kind, ProgramKind::DoExchange | ProgramKind::GlobalExchange) {
                    row.exchanging += of.cycles.total();
                }
            }
        }
        (row.executions, row.elapsed) = (sums.executions, sums.cycles.total());
        row.limits = OperationLimits::new(&sums, known, &self.machine);
        row.vertex_code = codelets.bytes(&self.types, code);
        row.code_most = code.take_most();
    }

    /// Adds the static costs of a program, executed or not, and its code to `code`.
    fn add(
        &self,
        row: &mut OpRow,
        codelets: &mut CodeletTiles,
        code: &mut TileByteSums,
        (id, program): (ProgramId, &ProgramNode),
    ) {
        // Outlined code exists once, and counts for the operation that executes it first.
        if let Some(exchange) = self.exchanges.get(&id) {
            row.exchange_code += code.add(&exchange.tiles, |tile| tile.code_bytes);
        }
        if let Some(set) = self.set_of(program) {
            row.cycles_all_tiles += set.cycles.total();
            row.cycles_slowest += set.cycles.max();
            row.vertices += set.vertices.iter().map(|group| group.count.total()).sum::<u64>();
            codelets.add(set, &self.code_owners);
        }
    }
}

/// Bytes per tile, for one operation after the other.
///
/// Stored as differences between adjacent tiles, so that a run of tiles costs two additions. A
/// single table of all tiles is reused for every operation.
#[derive(Default)]
pub(super) struct TileByteSums {
    steps: Vec<i128>,
    /// Range of tiles with non-zero differences.
    touched: Option<TileRange>,
}

impl TileByteSums {
    /// Adds the bytes of tiles; returns their sum.
    pub(super) fn add<T>(&mut self, runs: &TileRuns<T>, value: impl Fn(&T) -> Bytes) -> Bytes {
        let of_runs = runs.iter().map(|(tiles, of)| {
            let bytes = value(of);
            self.add_range(tiles, bytes);
            bytes.saturating_mul(tiles.count().into())
        });
        of_runs.fold(Bytes::ZERO, Bytes::saturating_add)
    }

    fn add_range(&mut self, tiles: TileRange, value: Bytes) {
        if self.steps.len() <= tiles.end.index() {
            self.steps.resize(tiles.end.index() + 1, 0);
        }
        self.steps[tiles.first.index()] += i128::from(value.0);
        self.steps[tiles.end.index()] -= i128::from(value.0);
        let touched = self.touched.unwrap_or(tiles);
        self.touched =
            Some(TileRange::new(touched.first.min(tiles.first), touched.end.max(tiles.end)));
    }

    /// Returns the largest bytes of any tile and resets the table.
    pub(super) fn take_most(&mut self) -> Bytes {
        let Some(touched) = self.touched.take() else { return Bytes::ZERO };
        let mut height = 0;
        let mut most = 0;
        for step in &mut self.steps[touched.first.index()..=touched.end.index()] {
            height += std::mem::take(step);
            most = most.max(height);
        }
        debug_assert_eq!(height, 0, "all runs end");
        Bytes(u64::try_from(most).unwrap_or(u64::MAX))
    }
}

/// Tiles that need codelets.
#[derive(Default)]
pub(super) struct CodeletTiles {
    tiles: BTreeMap<u32, BTreeSet<TileRange>>,
    /// Runs of tiles that were already added: equal layers share theirs.
    known: BTreeSet<(u32, (usize, u32))>,
}

impl CodeletTiles {
    pub(super) fn add(&mut self, set: &ComputeSet, owners: &[VertexTypeId]) {
        for group in &set.vertices {
            let Some(&VertexTypeId(kind)) = owners.get(group.vertex_type.index()) else { continue };
            if self.known.insert((kind, group.count.shared_key())) {
                let ranges = self.tiles.entry(kind).or_default();
                ranges.extend(group.count.iter().map(|(tiles, _)| tiles));
            }
        }
    }

    /// Bytes of codelets over all tiles, each once per tile; also adds them to `code`.
    pub(super) fn bytes(self, types: &[VertexTypeInfo], code: &mut TileByteSums) -> Bytes {
        let mut total = Bytes::ZERO;
        for (kind, ranges) in &self.tiles {
            let bytes = types.get(*kind as usize).map_or(Bytes::ZERO, |kind| kind.code_bytes);
            let mut covered = TileId(0);
            for range in ranges {
                let first = range.first.max(covered);
                if first < range.end {
                    total += u64::from(range.end - first) * bytes;
                    code.add_range(TileRange::new(first, range.end), bytes);
                }
                covered = covered.max(range.end);
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_a_codelet_counts_once_per_tile() {
        let range = |(first, end)| TileRange::new(TileId(first), TileId(end));
        let ranges = [(0, 4), (2, 6), (9, 10)].map(range);
        let codelets = CodeletTiles {
            tiles: BTreeMap::from([(0, BTreeSet::from(ranges))]),
            known: BTreeSet::new(),
        };
        let mut code = TileByteSums::default();
        code.add_range(range((5, 10)), Bytes(7));
        let kind = VertexTypeInfo {
            name: String::new(),
            code_bytes: Bytes(10),
            shares_code: false,
            state_bytes: Bytes::ZERO,
        };
        assert_eq!(codelets.bytes(&[kind], &mut code), Bytes(70));
        assert_eq!((code.take_most(), code.take_most()), (Bytes(17), Bytes::ZERO));
    }
}
