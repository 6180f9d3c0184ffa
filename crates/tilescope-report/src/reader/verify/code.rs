//! Code of programs compared with the code on tiles, and the steps that use variables.

use super::{InvariantCheck, InvariantViolation, Report};
use crate::error::ReportError;
use crate::model::{MemoryCategory, ProgramKind, code_owners};
use crate::units::{Bytes, TileRange, TileRuns, VertexTypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Bytes of code of programs on each tile, by category.
struct CodeOfPrograms {
    tiles: usize,
    by_category: BTreeMap<MemoryCategory, Vec<Bytes>>,
}

impl CodeOfPrograms {
    fn add(&mut self, category: MemoryCategory, tiles: TileRange, bytes: Bytes) {
        let sums =
            self.by_category.entry(category).or_insert_with(|| vec![Bytes::ZERO; self.tiles]);
        // Another check covers tiles that do not exist.
        let sums = sums.get_mut(tiles.indices()).into_iter().flatten();
        sums.for_each(|sum| *sum = sum.saturating_add(bytes));
    }

    fn add_runs(&mut self, category: MemoryCategory, runs: &TileRuns<Bytes>) {
        runs.iter().for_each(|(tiles, bytes)| self.add(category, tiles, *bytes));
    }
}

impl Report {
    /// Checks that no tile holds less code than its programs have there. It may hold more: code
    /// that belongs to no program, and code that programs before version 2.3 did not distinguish.
    pub(super) fn verify_code(
        &self,
        found: &mut Vec<InvariantViolation>,
    ) -> Result<(), ReportError> {
        let Some(control) = self.control_code()? else { return Ok(()) };
        let tiles = self.target()?.tiles_per_replica() as usize;
        let mut code = CodeOfPrograms { tiles, by_category: BTreeMap::new() };
        control.iter().for_each(|of| code.add_runs(MemoryCategory::ControlCode, &of.tiles));
        self.add_exchange_code(&mut code)?;
        self.add_vertex_code(&mut code)?;
        let held = self.bytes_by_category(tiles)?;
        let mut law = InvariantCheck::new("code_is_held", found);
        for (category, claimed) in &code.by_category {
            // A category that no tile has was not distinguished.
            let Some(held) = held.get(category) else { continue };
            for (tile, (claimed, held)) in claimed.iter().zip(held).enumerate() {
                law.check(claimed <= held, || {
                    let claimed = claimed.0;
                    let held = held.0;
                    let name = category.name();
                    format!(
                        "tile {tile}: programs account for {claimed} B of {name}, but the tile has \
                         {held} B"
                    )
                });
            }
        }
        Ok(())
    }

    fn add_exchange_code(&self, code: &mut CodeOfPrograms) -> Result<(), ReportError> {
        let programs = self.programs()?;
        for exchange in self.exchanges()? {
            let category = match programs.get(exchange.program).map(|program| program.kind) {
                Some(ProgramKind::DoExchange) => MemoryCategory::InternalExchangeCode,
                Some(ProgramKind::GlobalExchange) => MemoryCategory::GlobalExchangeCode,
                Some(ProgramKind::StreamCopyMid) => MemoryCategory::HostExchangeCode,
                // Copies that only wait have no code in these categories.
                _ => continue,
            };
            code.add_runs(category, &exchange.tiles.map(|tile| tile.code_bytes));
        }
        Ok(())
    }

    /// Adds each vertex type once on each tile that has any of its vertices.
    fn add_vertex_code(&self, code: &mut CodeOfPrograms) -> Result<(), ReportError> {
        let types = self.vertex_types()?;
        let owners = code_owners(&types);
        debug_assert_eq!(types.len(), owners.len(), "every type has an owner");
        let mut users: BTreeMap<VertexTypeId, BTreeSet<TileRange>> = BTreeMap::new();
        for (_, set) in self.compute_sets()? {
            for group in &set.vertices {
                let Some(owner) = owners.get(group.vertex_type.index()) else { continue };
                let used = group.count.iter().filter(|(_, count)| **count > 0);
                users.entry(*owner).or_default().extend(used.map(|(tiles, _)| tiles));
            }
        }
        for (owner, ranges) in users {
            let Some(kind) = types.get(owner.index()) else { continue };
            // Ranges are sorted by their first tiles and may overlap: a tile counts once.
            let mut next = TileRange::first_tiles(0).end;
            for range in ranges {
                if range.end > next {
                    let own = TileRange::new(range.first.max(next), range.end);
                    code.add(MemoryCategory::VertexCode, own, kind.code_bytes);
                    next = range.end;
                }
            }
        }
        Ok(())
    }

    /// Bytes that each tile holds of each category in use.
    fn bytes_by_category(
        &self,
        tiles: usize,
    ) -> Result<BTreeMap<MemoryCategory, Vec<Bytes>>, ReportError> {
        let mut held = CodeOfPrograms { tiles, by_category: BTreeMap::new() };
        for (range, shares) in self.tile_categories()?.iter() {
            shares.iter().for_each(|share| held.add(share.category, range, share.bytes));
        }
        Ok(held.by_category)
    }

    /// Checks that the steps that use a variable are within its lifetime, ordered, and disjoint.
    pub(super) fn verify_variable_uses(
        &self,
        lifetimes: &BTreeMap<u32, Option<Range<u32>>>,
        steps: usize,
        found: &mut Vec<InvariantViolation>,
    ) -> Result<(), ReportError> {
        let Some(uses) = self.variable_uses()? else { return Ok(()) };
        let mut law = InvariantCheck::new("variables_live_while_used", found);
        let mut before: Option<(u32, u32)> = None;
        for used in uses {
            let variable = used.variable.0;
            let Range { start, end } = used.steps;
            let follows = before.is_none_or(|before| before <= (variable, start));
            before = Some((variable, end));
            let lives = match lifetimes.get(&variable) {
                Some(Some(life)) => life.start <= start && end <= life.end,
                // Without a lifetime it lives through all steps.
                Some(None) => end as usize <= steps,
                None => false,
            };
            law.check(follows && lives, || {
                format!("variable {variable} is used in steps {start}..{end}")
            });
        }
        Ok(())
    }
}
