//! Rows of marks of long runs, in counted blocks.

use super::{PackedMarks, Report};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_COUNT, MAX_IPUS};
use crate::mark_blocks::{self, CountedMarks, MarkBlock, MarkRowId, PhaseRanges, is_ramp};
use crate::model::MarkKind;
use crate::row_cells::RowCells;
use crate::schema;
use crate::units::{CycleRange, IpuId, ReplicaClassId, ReplicaIpu};
use std::sync::Arc;

/// A row of many marks, in blocks of several thousand.
#[derive(Clone, Debug)]
pub struct LongMarkRow {
    pub id: MarkRowId,
    /// Consecutive blocks, by start.
    pub blocks: Vec<MarkBlock>,
    /// For each block of slots, those in which the pipeline is full; `None` in other rows, and if
    /// they are not known.
    pub full_slots: Option<Vec<CountedMarks>>,
    number: i64,
    marks: u64,
}

impl LongMarkRow {
    /// Number of its marks.
    pub fn marks(&self) -> u64 {
        self.marks
    }
}

impl Report {
    /// Rows with too many marks to read one by one. None in short runs, or in files before version
    /// 2.10, which have no blocks.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn long_mark_rows(&self) -> Result<Arc<Vec<LongMarkRow>>, ReportError> {
        self.long_mark_rows.get(|| {
            let columns = ["id", "class", "kind", "ipu", "marks", "data", "full_slots"];
            let select = SelectQuery::all(schema::MARK_ROWS, &columns).clauses("ORDER BY id");
            let mut broken = None;
            let rows = self.db.list(select, |cells| {
                let row = long_row(cells);
                if row.is_none() {
                    broken = broken.or(cells.int(0));
                }
                row
            })?;
            if let Some(number) = broken {
                let problem = format!("row {number} is broken");
                return Err(self.db.damage(schema::MARK_ROWS, &problem));
            }
            Ok(rows.into_iter().flatten().collect())
        })
    }

    /// Phases in which a pipeline is full: all, or at least those in a window.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn full_phases(&self, window: Option<CycleRange>) -> Result<PhaseRanges, ReportError> {
        let ranges = self.cycles_of_marks(MarkKind::Phase, window, |label| !is_ramp(label))?;
        Ok(PhaseRanges::new(ranges))
    }

    /// The smaller blocks inside the block at index `place` of a long row.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn finer_mark_blocks(
        &self,
        row: &LongMarkRow,
        place: usize,
    ) -> Result<Vec<MarkBlock>, ReportError> {
        let Some(coarse) = row.blocks.get(place) else { return Ok(Vec::new()) };
        let key = row.number << 32 | i64::try_from(place).unwrap_or(i64::from(u32::MAX));
        let params = [key];
        let select = SelectQuery::all(schema::MARK_BLOCKS, &["data"])
            .clauses("WHERE id = ?1")
            .params(&params);
        let found = self.db.first(select, |cells| {
            mark_blocks::decode(cells.blob(0)?, coarse.first)
                .filter(|fine| MarkBlock::joined(fine) == Some(*coarse))
        })?;
        found
            .flatten()
            .ok_or_else(|| self.db.damage(schema::MARK_BLOCKS, &format!("piece {key} is broken")))
    }

    /// Problems of the blocks of long rows: they must count the packed marks.
    pub(super) fn mark_row_problems(&self) -> Result<Vec<String>, ReportError> {
        let mut wrong = Vec::new();
        for row in self.long_mark_rows()?.iter() {
            let is_of_row = |of: &&PackedMarks| {
                row.id.kinds().contains(&of.kind)
                    && row.id.ipu().is_none_or(|at| of.ipu.is_none_or(|ipu| ipu == at.ipu))
            };
            let packed = self.mark_chunks(row.id.class())?;
            let of_class = packed.iter().filter(|of| of.class == row.id.class());
            let marks: u64 = of_class.filter(is_of_row).map(PackedMarks::count).sum();
            let counted: u64 = row.blocks.iter().map(|block| block.count).sum();
            if marks != row.marks || counted != row.marks {
                let number = row.number;
                wrong.push(format!("row {number} of mark_rows counts {counted} of {marks} marks"));
            }
            let full = match row.full_slots {
                Some(_) => self.full_phases(None)?,
                None => PhaseRanges::default(),
            };
            let mut counts = row.full_slots.iter().flatten();
            for place in 0..row.blocks.len() {
                let fine = self.finer_mark_blocks(row, place)?;
                let expected = full.slots_of(&fine);
                if counts.next().is_some_and(|counted| expected.is_some_and(|of| of != *counted)) {
                    wrong.push(format!("block {place} of slots counts those of phases wrongly"));
                }
            }
        }
        Ok(wrong)
    }
}

fn long_row(cells: &RowCells) -> Option<LongMarkRow> {
    let number = cells.int(0).filter(|number| (0..1 << 31).contains(number))?;
    let id = match cells.text(2) {
        Some(kind) => MarkRowId::Common(MarkKind::from_name(&kind)?),
        None => {
            let ipu = IpuId(cells.small_up_to(3, MAX_IPUS - 1)?);
            MarkRowId::Ipu(ReplicaIpu { class: ReplicaClassId(cells.small(1)?), ipu })
        }
    };
    let marks = cells.count(4, MAX_COUNT)?;
    let blocks = mark_blocks::decode(cells.blob(5)?, 0)?;
    let full_slots = match cells.blob(6) {
        Some(blob) => Some(mark_blocks::decode_full_slots(blob, &blocks)?),
        None => None,
    };
    Some(LongMarkRow { id, blocks, full_slots, number, marks })
}
