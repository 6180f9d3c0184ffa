//! The memory map of a tile: every variable with its addresses, in rows so that variables that
//! share addresses at different times are stacked.

use crate::report_variables::first_variables;
use std::ops::Range;
use tilescope_report::units::{Bytes, TileId, TileRange, VariableId};
use tilescope_report::{MemoryCategory, Report, ReportError, Variable};

/// The largest number of placed variables that are read for a tile.
pub(crate) const MAX_PLACED: usize = 20_000;

/// A variable on a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedVariable {
    pub id: VariableId,
    pub name: String,
    /// The purpose of the variable.
    pub category: MemoryCategory,
    /// Bytes from the start of tile memory, half-open.
    pub addresses: Range<Bytes>,
    /// Liveness steps it is live in; `None` means always.
    pub lifetime: Option<Range<u32>>,
    /// Row of the bank map, counted from the top: 0 for always-live variables.
    pub row: u32,
}

/// The memory of one tile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BankMap {
    pub tile: TileId,
    /// The placed variables, by row and address.
    pub placed: Vec<PlacedVariable>,
    pub rows: u32,
    /// Memory of a tile in bytes.
    pub capacity: Bytes,
    /// First address of interleaved memory.
    pub interleaved: Bytes,
    /// Bytes of a bank.
    pub bank: Bytes,
    /// True if there are more variables than were read.
    pub truncated: bool,
}

/// Reads the memory map of a tile.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn bank_map(report: &Report, tile: TileId) -> Result<BankMap, ReportError> {
    let target = report.target()?;
    let range = TileRange::single(tile);
    let first = first_variables(report, Some(range), MAX_PLACED)?;
    let cut = first.more;
    let mut placed = placed_on(first.found, tile);
    let rows = put_in_rows(&mut placed);
    placed.sort_by_key(|part| (part.row, part.addresses.start));
    Ok(BankMap {
        tile,
        placed,
        rows,
        capacity: target.bytes_per_tile,
        interleaved: target.interleaved_offset,
        bank: target.memory_element_bytes,
        truncated: cut,
    })
}

/// The parts of variables on a tile, all in row 0.
pub(crate) fn placed_on(
    variables: Vec<(VariableId, Variable)>,
    tile: TileId,
) -> Vec<PlacedVariable> {
    let mut placed = Vec::new();
    for (id, variable) in variables {
        let Some(part) = variable.tiles.get(tile).copied() else { continue };
        if part.bytes.is_zero() {
            continue;
        }
        placed.push(PlacedVariable {
            id,
            name: variable.name,
            category: variable.category,
            addresses: part.offset..part.offset.saturating_add(part.bytes),
            lifetime: variable.lifetime,
            row: 0,
        });
    }
    placed
}

/// Gives each part the first row in which its addresses are free, always-live parts first, and
/// returns the number of rows. O(n log n + n rows).
fn put_in_rows(placed: &mut [PlacedVariable]) -> u32 {
    placed.sort_by_key(|part| (part.lifetime.is_some(), part.addresses.start, part.id.0));
    // End of each row. Parts come in order of their start addresses, except that the
    // not-always-live parts begin again at the first address.
    let mut ends: Vec<Bytes> = Vec::new();
    let always = placed.iter().take_while(|part| part.lifetime.is_none()).count();
    let mut base = 0;
    for (group, parts) in [0..always, always..placed.len()].into_iter().enumerate() {
        if group == 1 {
            base = ends.len();
        }
        for part in &mut placed[parts] {
            let free = ends[base..].iter().position(|end| *end <= part.addresses.start);
            let row = base + free.unwrap_or(ends.len() - base);
            if row == ends.len() {
                ends.push(Bytes::ZERO);
            }
            ends[row] = part.addresses.end;
            part.row = row as u32;
        }
    }
    ends.len() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: u32, addresses: Range<Bytes>, lifetime: Option<Range<u32>>) -> PlacedVariable {
        let (name, category) = (String::new(), MemoryCategory::Variable);
        PlacedVariable { id: VariableId(id), name, category, addresses, lifetime, row: 9 }
    }

    #[test]
    fn parts_of_a_row_do_not_share_addresses() {
        let mut placed = vec![
            part(0, Bytes(50)..Bytes(90), Some(0..2)),
            part(1, Bytes::ZERO..Bytes(40), None),
            part(2, Bytes(40)..Bytes(50), None),
            part(3, Bytes(60)..Bytes(70), Some(2..3)),
            part(4, Bytes(90)..Bytes(95), Some(1..2)),
        ];
        assert_eq!(put_in_rows(&mut placed), 3);
        let rows: Vec<(u32, u32)> = placed.iter().map(|part| (part.id.0, part.row)).collect();
        assert_eq!(rows, [(1, 0), (2, 0), (0, 1), (3, 2), (4, 1)]);
        for row in 0..3 {
            let own: Vec<&PlacedVariable> = placed.iter().filter(|part| part.row == row).collect();
            let apart = |pair: &[&PlacedVariable]| pair[0].addresses.end <= pair[1].addresses.start;
            assert!(own.windows(2).all(apart), "{own:?}");
        }
    }

    #[test]
    fn empty_tiles_have_no_rows() {
        assert_eq!(put_in_rows(&mut []), 0);
    }
}
