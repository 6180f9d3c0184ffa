//! Memory of tiles and the liveness walk, compared with sums over variables.

use super::{InvariantCheck, InvariantViolation, PAGE, Report};
use crate::error::ReportError;
use crate::model::{DataAccessKind, LivenessStep, MemoryCategory, Variable};
use crate::reader::{ReportPart, VariableFilter};
use crate::units::{Bytes, ProgramId, TileRuns};
use std::collections::BTreeMap;
use std::ops::Range;

/// The maximum number of parts of variables on tiles that are placed one by one. A file of a few
/// bytes may claim more; for those, only sums over whole runs are checked.
const MAX_PARTS: u64 = 1 << 28;

/// Sums over variables, tile by tile.
struct VariableSums {
    /// Bytes that are always live, as differences from tile to tile.
    always_live: Vec<i128>,
    /// Bytes live at each liveness step, as differences from step to step.
    live: Vec<i128>,
    /// The first address after all variables.
    ends: Vec<Bytes>,
    /// Variables that are not always live.
    passing: Vec<(Range<u32>, TileRuns<Bytes>)>,
    /// Bytes of each category: always live, and total.
    categories: BTreeMap<MemoryCategory, (i128, i128)>,
    parts: u64,
}

impl VariableSums {
    fn new(tiles: usize, steps: usize) -> Self {
        Self {
            always_live: vec![0; tiles + 1],
            live: vec![0; steps + 1],
            ends: vec![Bytes::ZERO; tiles],
            passing: Vec::new(),
            categories: BTreeMap::new(),
            parts: 0,
        }
    }

    fn add(&mut self, variable: &Variable) {
        self.parts += u64::from(variable.tiles.tile_count());
        if self.parts <= MAX_PARTS {
            for (tiles, part) in variable.tiles.iter() {
                let ends = self.ends.get_mut(tiles.indices()).into_iter().flatten();
                ends.for_each(|end| *end = part.offset.saturating_add(part.bytes).max(*end));
            }
        }
        let parts = variable.tiles.iter();
        let part_bytes =
            parts.map(|(tiles, part)| i128::from(tiles.count()) * i128::from(part.bytes.0));
        let bytes: i128 = part_bytes.sum();
        let (always, all) = self.categories.entry(variable.category).or_default();
        *all += bytes;
        let Some(life) = &variable.lifetime else {
            *always += bytes;
            for (tiles, part) in variable.tiles.iter() {
                let Range { start, end } = tiles.indices();
                add_at(&mut self.always_live, start, i128::from(part.bytes.0));
                add_at(&mut self.always_live, end, -i128::from(part.bytes.0));
            }
            return;
        };
        add_at(&mut self.live, life.start as usize, bytes);
        add_at(&mut self.live, life.end as usize, -bytes);
        if self.parts <= MAX_PARTS {
            self.passing.push((life.clone(), variable.tiles.map(|part| part.bytes)));
        }
    }

    /// The most bytes of variables that are not always live, on each tile at any step.
    fn peaks(&mut self) -> Vec<Bytes> {
        let mut live = vec![Bytes::ZERO; self.ends.len()];
        let mut peaks = live.clone();
        // Sorted by their starts; those that have ended are removed first.
        self.passing.sort_by_key(|(life, _)| life.start);
        let mut by_end: Vec<&(Range<u32>, TileRuns<Bytes>)> = self.passing.iter().collect();
        by_end.sort_by_key(|(life, _)| life.end);
        let mut ended = by_end.into_iter().peekable();
        for (life, bytes) in &self.passing {
            while let Some((_, gone)) = ended.next_if(|(other, _)| other.end <= life.start) {
                for (tiles, bytes) in gone.iter() {
                    let live = live.get_mut(tiles.indices()).into_iter().flatten();
                    live.for_each(|live| *live = live.saturating_sub(*bytes));
                }
            }
            for (tiles, bytes) in bytes.iter() {
                let live = live.get_mut(tiles.indices()).into_iter().flatten();
                let peaks = peaks.get_mut(tiles.indices()).into_iter().flatten();
                for (live, peak) in live.zip(peaks) {
                    *live = live.saturating_add(*bytes);
                    *peak = (*peak).max(*live);
                }
            }
        }
        peaks
    }
}

/// The liveness steps at which programs free buffers in tile memory, by name and IPU.
#[derive(Default)]
struct FreedBuffers {
    steps: BTreeMap<(String, u32), Vec<u32>>,
}

impl FreedBuffers {
    /// Describes the first step that frees a variable's buffer while the variable lives on.
    fn first_outlived(
        &self,
        variable: &Variable,
        life: &Range<u32>,
        tiles_per_ipu: u32,
    ) -> Option<String> {
        let (tiles, _) = variable.tiles.iter().next()?;
        let ipu = tiles.first.0 / tiles_per_ipu;
        let name = name_of_loaded(&variable.name).to_owned();
        let steps = self.steps.get(&(name, ipu))?;
        let step = steps.iter().find(|step| life.start <= **step && **step + 1 < life.end)?;
        let Range { start, end } = life;
        let name = &variable.name;
        Some(format!("{name} is live in steps {start}..{end}, but is released in step {step}"))
    }
}

/// The name of a tensor without the suffix of one of its loads from streaming memory, `__l2`.
fn name_of_loaded(name: &str) -> &str {
    match name.rsplit_once("__l") {
        Some((tensor, load)) if load.bytes().all(|byte| byte.is_ascii_digit()) => tensor,
        _ => name,
    }
}

/// Adds to the number at an index of a list, if there is one.
fn add_at(numbers: &mut [i128], place: usize, value: i128) {
    if let Some(number) = numbers.get_mut(place) {
        *number += value;
    }
}

/// Sums of the differences from one number to the next.
fn running_sums(differences: &[i128]) -> impl Iterator<Item = i128> {
    differences.iter().scan(0, |sum, difference| {
        *sum += difference;
        Some(*sum)
    })
}

impl Report {
    /// Compares lifetimes with the liveness walk, and memory of tiles and the walk with variables.
    pub(super) fn verify_variables(
        &self,
        found: &mut Vec<InvariantViolation>,
    ) -> Result<(), ReportError> {
        let mut law = InvariantCheck::new("lifetimes_in_range", found);
        let liveness = self.liveness()?;
        let steps = liveness.len();
        let tiles = self.target()?.tiles_per_replica();
        let mut sums = VariableSums::new(tiles as usize, steps);
        let mut filter = VariableFilter { tiles: None, category: None, after: None, limit: PAGE };
        let mut lifetimes = BTreeMap::new();
        let freed = self.freed_buffers(&liveness)?;
        let tiles_per_ipu = self.target()?.tiles_per_ipu.max(1);
        let mut outlived = Vec::new();
        loop {
            let variables = self.variables(&filter)?;
            for (id, variable) in &variables {
                sums.add(variable);
                lifetimes.insert(id.0, variable.lifetime.clone());
                let Some(life) = &variable.lifetime else { continue };
                outlived.extend(freed.first_outlived(variable, life, tiles_per_ipu));
                law.check(life.start < life.end && life.end as usize <= steps, || {
                    let name = &variable.name;
                    let life = format!("{}..{}", life.start, life.end);
                    format!("{name} is live in steps {life} of {steps}")
                });
            }
            match variables.last() {
                Some((last, _)) if variables.len() == PAGE => filter.after = Some(*last),
                _ => break,
            }
        }
        let are_in_range = law.broken == 0;
        drop(law);
        let mut law = InvariantCheck::new("freed_memory_is_free", found);
        for text in outlived {
            law.check(false, || text);
        }
        drop(law);
        self.verify_variable_uses(&lifetimes, steps, found)?;
        if !are_in_range || !self.has(ReportPart::Lifetimes) || !self.has(ReportPart::Addresses) {
            return Ok(());
        }
        let mut law = InvariantCheck::new("variables_add_up", found);
        for (step, (live, sum)) in liveness.iter().zip(running_sums(&sums.live)).enumerate() {
            law.check(i128::from(live.bytes.0) == sum, || {
                format!(
                    "liveness step {step} has {} B, but its variables have {sum} B",
                    live.bytes.0
                )
            });
        }
        if self.has(ReportPart::Regions) {
            self.verify_tiles(&mut sums, &mut law)?;
        }
        Ok(())
    }

    /// The liveness steps after which data flows free buffers in tile memory.
    fn freed_buffers(&self, liveness: &[LivenessStep]) -> Result<FreedBuffers, ReportError> {
        let flows = self.data_flows()?;
        let mut step_of: BTreeMap<ProgramId, u32> = BTreeMap::new();
        for (index, step) in (0..).zip(liveness) {
            step_of.insert(step.program, index);
        }
        let mut freed = FreedBuffers::default();
        for access in flows.accesses.iter().filter(|access| access.kind == DataAccessKind::Free) {
            let buffer = flows.buffers.get(access.buffer.index());
            if let (Some(buffer), Some(step)) = (buffer, step_of.get(&access.program)) {
                let key = (buffer.name.clone(), buffer.ipu.0);
                freed.steps.entry(key).or_default().push(*step);
            }
        }
        Ok(freed)
    }

    fn verify_tiles(
        &self,
        sums: &mut VariableSums,
        law: &mut InvariantCheck,
    ) -> Result<(), ReportError> {
        let always_live: Vec<i128> = running_sums(&sums.always_live).collect();
        let are_placed = sums.parts <= MAX_PARTS;
        let peaks = if are_placed { sums.peaks() } else { Vec::new() };
        for (tiles, memory) in self.tile_memory()?.iter() {
            let mut check_sum = |name: &str, recorded: Bytes, sum: Option<i128>| {
                let sum = sum.unwrap_or_default();
                law.check(i128::from(recorded.0) == sum, || {
                    let tile = tiles.first;
                    let recorded = recorded.0;
                    format!("tile {tile}: {recorded} B {name}, but its variables have {sum} B")
                });
            };
            for tile in tiles.indices() {
                let get_number = |bytes: &[Bytes]| bytes.get(tile).map(|bytes| i128::from(bytes.0));
                check_sum("always live", memory.always_live, always_live.get(tile).copied());
                if are_placed {
                    check_sum("at its peak", memory.peak_not_always_live, get_number(&peaks));
                    check_sum("with gaps", memory.including_gaps, get_number(&sums.ends));
                }
            }
        }
        self.verify_categories(sums, law)
    }

    /// Variables that are not always live may share bytes, others may not.
    fn verify_categories(
        &self,
        sums: &VariableSums,
        law: &mut InvariantCheck,
    ) -> Result<(), ReportError> {
        let mut recorded: BTreeMap<MemoryCategory, i128> = BTreeMap::new();
        for (tiles, shares) in self.tile_categories()?.iter() {
            for share in shares {
                let bytes = i128::from(tiles.count()) * i128::from(share.bytes.0);
                *recorded.entry(share.category).or_default() += bytes;
            }
        }
        for (category, bytes) in recorded {
            let (always, all) = sums.categories.get(&category).copied().unwrap_or_default();
            law.check((always..=all).contains(&bytes), || {
                let name = category.name();
                format!("{bytes} B of {name}, but its variables have {always} B to {all} B")
            });
        }
        Ok(())
    }
}
