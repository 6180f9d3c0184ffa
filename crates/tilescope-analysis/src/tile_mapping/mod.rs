//! Tile mapping: regions of a tensor, the variables, vertices and cycles of an operation or a
//! compute set by tile, and layouts of data before and after rearrangements.

mod mapping_rows;
mod replica_shares;

pub use mapping_rows::{
    MappedRearrangement, MappedVariableRegion, MappedVertexRow, TileMappingBalance, is_strided_copy,
};

pub use replica_shares::{ReplicaShare, replica_share, replica_shares};

use super::tile_curves::{TileCurveUnit, spread};
use crate::report_variables::{first_variables, for_each_variable};
use mapping_rows::{element_bytes, rearrangements};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tilescope_report::units::{
    Bytes, ComputeSetId, OperationId, TileId, TileRange, TileRuns, VariableId,
};
use tilescope_report::{
    ComputeSet, MemoryCategory, ProgramNode, Report, ReportError, Variable, VariablePlacement,
};

/// The largest number of variables in a list.
pub const MAX_VARIABLES: usize = 100_000;
/// The largest number of regions in a list.
pub const MAX_REGIONS: usize = 20_000;

/// A kind of mapped subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MappingSubjectKind {
    #[default]
    Tensors,
    /// Operations of the model.
    Operations,
    ComputeSets,
}

/// A subject that is mapped to tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MappingSubject {
    /// A variable; in files with one row per tile, the first of those with the same name.
    Tensor(VariableId),
    Operation(OperationId),
    ComputeSet(ComputeSetId),
}

/// The measure of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MappingMeasure {
    /// Bytes of variables.
    #[default]
    Bytes,
    Vertices,
    /// Cycles of one execution.
    Cycles,
}

impl MappingMeasure {
    /// The unit of its values.
    pub fn unit(self) -> TileCurveUnit {
        if self == Self::Bytes { TileCurveUnit::Bytes } else { TileCurveUnit::Count }
    }
}

/// An entry in the list of subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingListEntry {
    pub subject: MappingSubject,
    pub name: String,
    /// Bytes, or cycles of the slowest tile.
    pub size: u64,
    /// Number of tiles with a part.
    pub tiles: u64,
}

/// All subjects of a kind, and true if the list is complete.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn subjects(
    report: &Report,
    kind: MappingSubjectKind,
) -> Result<(Vec<MappingListEntry>, bool), ReportError> {
    match kind {
        MappingSubjectKind::Tensors => tensors(report),
        MappingSubjectKind::Operations => Ok((operations(report)?, true)),
        MappingSubjectKind::ComputeSets => Ok((compute_sets(report)?, true)),
    }
}

/// True if a category holds data of the model, not code or data of code.
pub(super) fn is_tensor(category: MemoryCategory) -> bool {
    let data = [
        MemoryCategory::Variable,
        MemoryCategory::Constant,
        MemoryCategory::Message,
        MemoryCategory::Rearrangement,
    ];
    data.contains(&category) || category == MemoryCategory::Unknown
}

fn bytes_of(tiles: &TileRuns<VariablePlacement>) -> TileRuns<Bytes> {
    tiles.map(|part| part.bytes)
}

fn tensors(report: &Report) -> Result<(Vec<MappingListEntry>, bool), ReportError> {
    let variables = first_variables(report, None, MAX_VARIABLES)?;
    let mut entries: Vec<MappingListEntry> = Vec::new();
    // Files with one row per tile repeat the name; other files have each variable once.
    let mut known: BTreeMap<(String, MemoryCategory), usize> = BTreeMap::new();
    let per_tile = !report.has(tilescope_report::ReportPart::Lifetimes);
    for (id, variable) in variables.found.into_iter().filter(|(_, v)| is_tensor(v.category)) {
        let size = bytes_of(&variable.tiles).total().0;
        let tiles = u64::from(variable.tiles.tile_count());
        let at = if per_tile {
            known.get(&(variable.name.clone(), variable.category)).copied()
        } else {
            None
        };
        if let Some(at) = at {
            entries[at].size += size;
            entries[at].tiles += tiles;
            continue;
        }
        known.insert((variable.name.clone(), variable.category), entries.len());
        let subject = MappingSubject::Tensor(id);
        entries.push(MappingListEntry { subject, name: variable.name, size, tiles });
    }
    Ok((entries, !variables.more))
}

fn operations(report: &Report) -> Result<Vec<MappingListEntry>, ReportError> {
    let operations = report.operations()?;
    let mut tiles: Vec<Vec<TileRange>> = vec![Vec::new(); operations.len()];
    let mut sizes = vec![0u64; operations.len()];
    for_each_variable(report, |_, variable| {
        let Some(index) = variable.operation.map(OperationId::index) else { return };
        if let (Some(tiles), Some(size)) = (tiles.get_mut(index), sizes.get_mut(index)) {
            tiles.extend(variable.tiles.iter().map(|(range, _)| range));
            *size += bytes_of(&variable.tiles).total().0;
        }
    })?;
    for (program, set) in sets_of_programs(report)? {
        let index = program.operation.map(OperationId::index);
        if let Some(tiles) = index.and_then(|index| tiles.get_mut(index)) {
            tiles.extend(set.cycles.iter().map(|(range, _)| range));
        }
    }
    let mut entries = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        entries.push(MappingListEntry {
            subject: MappingSubject::Operation(OperationId(index as u32)),
            name: operation.name.clone(),
            size: sizes[index],
            tiles: covered(&mut tiles[index]),
        });
    }
    Ok(entries)
}

/// Number of tiles in any of the ranges.
fn covered(ranges: &mut [TileRange]) -> u64 {
    ranges.sort_unstable();
    let mut count = 0;
    let mut covered = TileId(0);
    for range in ranges {
        let end = covered.max(range.end);
        count += u64::from(end - covered.max(range.first));
        covered = end;
    }
    count
}

fn compute_sets(report: &Report) -> Result<Vec<MappingListEntry>, ReportError> {
    let mut entries = Vec::new();
    for (id, set) in report.compute_sets()? {
        entries.push(MappingListEntry {
            subject: MappingSubject::ComputeSet(id),
            name: set.name,
            size: set.cycles.max().0,
            tiles: set.cycles.tile_count().into(),
        });
    }
    Ok(entries)
}

/// Compute sets with a program that executes each.
fn sets_of_programs(report: &Report) -> Result<Vec<(ProgramNode, ComputeSet)>, ReportError> {
    let sets: BTreeMap<ComputeSetId, ComputeSet> = report.compute_sets()?.into_iter().collect();
    let programs = report.programs()?;
    let found = programs.iter().filter_map(|(_, program)| {
        let set = sets.get(&program.compute_set?)?;
        Some((program.clone(), set.clone()))
    });
    Ok(found.collect())
}

/// The mapping of one subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubjectTileMapping {
    pub name: String,
    pub about: String,
    pub bytes: Vec<u64>,
    pub vertices: Vec<u64>,
    /// Cycles of one execution by tile.
    pub cycles: Vec<u64>,
    /// The tiles of its variables.
    pub regions: Vec<MappedVariableRegion>,
    /// True if there are more regions than are listed.
    pub truncated: bool,
    /// Its vertices, the most frequent first.
    pub vertex_types: Vec<MappedVertexRow>,
    /// Its rearrangements, in program order.
    pub rearrangements: Vec<MappedRearrangement>,
}

impl SubjectTileMapping {
    /// One value per tile.
    pub fn values(&self, measure: MappingMeasure) -> &[u64] {
        match measure {
            MappingMeasure::Bytes => &self.bytes,
            MappingMeasure::Vertices => &self.vertices,
            MappingMeasure::Cycles => &self.cycles,
        }
    }

    /// True if any tile has a value.
    pub fn has(&self, measure: MappingMeasure) -> bool {
        self.values(measure).iter().any(|value| *value > 0)
    }

    fn add_variable(&mut self, variable: &Variable) {
        let element = element_bytes(&variable.shape);
        let mut start = Bytes::ZERO;
        for (tiles, part) in variable.tiles.iter() {
            for value in &mut self.bytes[tiles.indices()] {
                *value += part.bytes.0;
            }
            if self.regions.len() < MAX_REGIONS {
                self.regions.push(MappedVariableRegion {
                    tiles,
                    variable: variable.name.clone(),
                    bytes: part.bytes,
                    offset: part.offset,
                    start,
                    element,
                });
            } else {
                self.truncated = true;
            }
            start += part.bytes * u64::from(tiles.count());
        }
    }

    fn add_set(&mut self, set: &ComputeSet, counts: &mut BTreeMap<usize, Vec<u64>>) {
        let tiles = self.cycles.len();
        for (sum, cycles) in self.cycles.iter_mut().zip(spread(&set.cycles, tiles, |c| *c)) {
            *sum += cycles;
        }
        for group in &set.vertices {
            let of_type = counts.entry(group.vertex_type.index()).or_insert_with(|| vec![0; tiles]);
            let own = spread(&group.count, tiles, |count| *count);
            for (at, count) in own.into_iter().enumerate() {
                of_type[at] += count;
                self.vertices[at] += count;
            }
        }
    }

    fn name_vertices(
        &mut self,
        report: &Report,
        counts: BTreeMap<usize, Vec<u64>>,
    ) -> Result<(), ReportError> {
        let types = report.vertex_types()?;
        self.vertex_types.clear();
        for (index, counts) in counts {
            let Some(of) = types.get(index) else { continue };
            self.vertex_types.push(MappedVertexRow {
                strided_copy: is_strided_copy(&of.name),
                count: counts.iter().sum(),
                tiles: counts.iter().filter(|count| **count > 0).count() as u64,
                most: counts.iter().copied().max().unwrap_or(0),
                name: of.name.clone(),
            });
        }
        self.vertex_types.sort_by_key(|row| std::cmp::Reverse(row.count));
        Ok(())
    }
}

/// Looks up a subject; `None` if it is not in the report.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn mapping(
    report: &Report,
    subject: MappingSubject,
) -> Result<Option<SubjectTileMapping>, ReportError> {
    let tiles = report.target()?.tiles_per_replica() as usize;
    let mut mapping = SubjectTileMapping {
        bytes: vec![0; tiles],
        vertices: vec![0; tiles],
        cycles: vec![0; tiles],
        ..SubjectTileMapping::default()
    };
    let found = match subject {
        MappingSubject::Tensor(id) => tensor(report, id, &mut mapping)?,
        MappingSubject::Operation(id) => operation(report, id, &mut mapping)?,
        MappingSubject::ComputeSet(id) => compute_set(report, id, &mut mapping)?,
    };
    Ok(if found { Some(mapping) } else { None })
}

fn tensor(
    report: &Report,
    id: VariableId,
    mapping: &mut SubjectTileMapping,
) -> Result<bool, ReportError> {
    let Some(variable) = report.variable(id)? else { return Ok(false) };
    let live = match &variable.lifetime {
        None => "always live".to_owned(),
        Some(steps) => format!("live in steps {} - {}", steps.start, steps.end),
    };
    let shape = if variable.shape.is_empty() { "" } else { ", " };
    mapping.about = format!("{}{shape}{}, {live}", variable.category.title(), variable.shape);
    if report.has(tilescope_report::ReportPart::Lifetimes) {
        mapping.add_variable(&variable);
    } else {
        // In files with one row per tile, the variable is all rows with its name.
        mapping.about = variable.category.title().to_owned();
        for_each_variable(report, |_, other| {
            if other.name == variable.name && other.category == variable.category {
                mapping.add_variable(other);
            }
        })?;
    }
    if let Some(operation) = variable.operation {
        mapping.rearrangements = rearrangements(report, operation)?;
    }
    mapping.name = variable.name;
    Ok(true)
}

fn operation(
    report: &Report,
    id: OperationId,
    mapping: &mut SubjectTileMapping,
) -> Result<bool, ReportError> {
    let operations = report.operations()?;
    let Some(operation) = operations.get(id.index()) else { return Ok(false) };
    mapping.name = operation.name.clone();
    mapping.about = format!("{} {}", operation.kind, operation.shapes);
    if let Some(ipu) = operation.ipu {
        mapping.about.push_str(&format!(", IPU {ipu}"));
    }
    for_each_variable(report, |_, variable| {
        if variable.operation == Some(id) {
            mapping.add_variable(variable);
        }
    })?;
    let mut counts = BTreeMap::new();
    for (program, set) in sets_of_programs(report)? {
        if program.operation == Some(id) {
            mapping.add_set(&set, &mut counts);
        }
    }
    mapping.name_vertices(report, counts)?;
    mapping.rearrangements = rearrangements(report, id)?;
    Ok(true)
}

fn compute_set(
    report: &Report,
    id: ComputeSetId,
    mapping: &mut SubjectTileMapping,
) -> Result<bool, ReportError> {
    let Some(set) = report.compute_set(id)? else { return Ok(false) };
    let mut counts = BTreeMap::new();
    mapping.add_set(&set, &mut counts);
    mapping.name_vertices(report, counts)?;
    let programs = report.programs()?;
    let own = programs.iter().find(|(_, program)| program.compute_set == Some(id));
    let operation = own.and_then(|(_, program)| program.operation);
    if let Some(operation) = operation {
        let all = rearrangements(report, operation)?;
        mapping.rearrangements = all.into_iter().filter(|one| one.name == set.name).collect();
    }
    mapping.about = "compute set".to_owned();
    mapping.name = set.name;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::units::Cycles;

    fn opened(builder: &ReportBuilder) -> Report {
        let directory = tempfile::tempdir().unwrap();
        Report::open(builder.write(directory.path()).unwrap()).unwrap()
    }

    #[test]
    fn regions_cover_a_tensor_once_and_in_order() {
        let mut builder = ReportBuilder::new(2, 8);
        let id = builder.variable("weights", MemoryCategory::Variable, 2..6, 64, None);
        builder.parts.variables[id.index()].shape = "float32[64]".to_owned();
        let report = opened(&builder);
        let mapping = mapping(&report, MappingSubject::Tensor(id)).unwrap().unwrap();
        let mut start = Bytes::ZERO;
        for region in &mapping.regions {
            assert_eq!(region.start, start);
            start += region.bytes * u64::from(region.tiles.count());
        }
        assert_eq!(start, Bytes(mapping.bytes.iter().sum::<u64>()));
        assert_eq!(mapping.regions[0].part(), "elements 0 - 63");
        let balance = TileMappingBalance::from_values(&mapping.bytes, &report.target().unwrap());
        assert_eq!((balance.tiles, balance.tiles_of_used_ipus, balance.granularity), (4, 8, 64));
        assert!((balance.imbalance() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_list_and_the_map_of_every_subject_agree() {
        let mut builder = ReportBuilder::new(1, 8);
        builder.compute("a/Convolve", 40);
        builder.variable("x", MemoryCategory::Variable, 0..3, 10, None);
        builder.variable("y", MemoryCategory::Constant, 1..8, 6, None);
        let report = opened(&builder);
        let kinds = [
            MappingSubjectKind::Tensors,
            MappingSubjectKind::Operations,
            MappingSubjectKind::ComputeSets,
        ];
        for kind in kinds {
            let (entries, whole) = subjects(&report, kind).unwrap();
            assert!(whole);
            for entry in entries {
                let mapping = mapping(&report, entry.subject).unwrap().unwrap();
                let most = mapping.cycles.iter().copied().max().unwrap_or(0);
                let sum: u64 = mapping.bytes.iter().sum();
                let size = if kind == MappingSubjectKind::ComputeSets { most } else { sum };
                assert_eq!((entry.name, entry.size), (mapping.name, size));
            }
        }
    }

    #[test]
    fn a_rearrangement_is_the_exchange_before_it() {
        let mut builder = ReportBuilder::new(1, 8);
        let operation = builder.operation("a", "conv2d");
        let exchange = builder.exchange("cs0_a/ExchangePre", 24);
        let arrange = builder.compute("a/PreArrange-0", 12);
        let work = builder.compute("a/Convolve", 40);
        for program in [exchange, arrange, work] {
            builder.parts.programs[program.index()].operation = Some(operation);
        }
        let report = opened(&builder);
        let mapping = mapping(&report, MappingSubject::Operation(operation)).unwrap().unwrap();
        let [one] = &mapping.rearrangements[..] else { panic!("one rearrangement") };
        assert_eq!((one.exchange, one.cycles), (exchange, Cycles(12)));
        assert_eq!((one.before.total(), one.after.total()), (Bytes(8 * 24), Bytes(8 * 24)));
        assert_eq!(mapping.cycles[0], 52);
    }
}
