//! Blocks of all rows, built while their marks are written.

use super::block::{MarkBlock, MarkRowId};
use super::block_list::encode;
use super::full_slots::FullSlotCounter;
use crate::codec::pack;
use crate::error::ReportError;
use crate::model::{MarkKind, TraceMark};
use crate::row_writer::RowWriter;
use crate::schema;
use crate::units::{Cycles, ReplicaClassId, ReplicaIpu};
use rusqlite::params;
use std::collections::BTreeMap;

/// The number of marks in a full fine block, and of fine blocks in a full coarse one. Small in
/// tests of this crate.
const FULL_BLOCK: u64 = if cfg!(test) { 4 } else { 64 };

/// Blocks of the rows of a run, whose marks arrive one after the other.
#[derive(Default)]
pub(crate) struct MarkRowBlocks {
    rows: BTreeMap<MarkRowId, OpenRow>,
    /// The number of rows that have an id, because they have more than one coarse block.
    numbered: i64,
    /// True if a stage or an update belongs to no single IPU, and so to the rows of all IPUs.
    has_stages_of_all: bool,
    full_slots: FullSlotCounter,
}

#[derive(Default)]
struct OpenRow {
    /// Set as soon as the row is long.
    number: Option<i64>,
    coarse: Vec<MarkBlock>,
    /// The fine blocks of the first coarse block, until there is a second one.
    first_piece: Vec<MarkBlock>,
    /// The fine blocks after the last coarse block.
    fine: Vec<MarkBlock>,
    /// True if the last fine block takes no more marks.
    is_closed: bool,
    marks: u64,
    last: Cycles,
    is_unordered: bool,
}

/// The fine blocks of a coarse block, to be packed and stored.
pub(crate) struct FinePiece {
    key: i64,
    raw: Vec<u8>,
}

/// A row with all its blocks.
pub(crate) struct FinishedMarkRow {
    number: i64,
    id: MarkRowId,
    marks: u64,
    raw: Vec<u8>,
    full_slots: Option<Vec<u8>>,
}

impl MarkRowBlocks {
    /// Adds a mark of the replicas of a class. Returns the fine blocks that it completes.
    pub(crate) fn push(&mut self, class: ReplicaClassId, mark: &TraceMark) -> Vec<FinePiece> {
        let id = match (mark.kind, mark.ipu) {
            (MarkKind::Stage | MarkKind::Update, Some(ipu)) => {
                MarkRowId::Ipu(ReplicaIpu { class, ipu })
            }
            (MarkKind::Stage | MarkKind::Update, None) => {
                self.has_stages_of_all = true;
                return Vec::new();
            }
            (kind, _) if class == ReplicaClassId(0) => MarkRowId::Common(kind),
            // Marks of other classes belong to single IPUs.
            _ => return Vec::new(),
        };
        if mark.kind == MarkKind::Phase {
            // Slots of a full pipeline get separate blocks.
            let slots = self.rows.get_mut(&MarkRowId::Common(MarkKind::Slot));
            slots.into_iter().for_each(|slots| slots.is_closed = true);
            self.full_slots.phase(mark);
        }
        let row = self.rows.entry(id).or_default();
        row.push(mark);
        if mark.kind == MarkKind::Slot {
            self.full_slots.push(row.last_block(), mark);
        }
        if row.fine.len() as u64 <= FULL_BLOCK {
            return Vec::new();
        }
        // The last block may take more marks.
        let open = row.fine.pop();
        let done = row.complete_coarse(&mut self.numbered);
        row.fine.extend(open);
        done
    }

    /// All long rows, and their remaining fine blocks.
    pub(crate) fn finish(mut self) -> (Vec<FinePiece>, Vec<FinishedMarkRow>) {
        let mut pieces = Vec::new();
        let mut long = Vec::new();
        for (id, mut row) in self.rows {
            pieces.extend(row.complete_coarse(&mut self.numbered));
            // A row whose marks are not in order is read mark by mark.
            let is_known = !row.is_unordered && (id.ipu().is_none() || !self.has_stages_of_all);
            let Some(number) = row.number.filter(|_| is_known) else { continue };
            let is_of_slots = id == MarkRowId::Common(MarkKind::Slot);
            let full_slots = if is_of_slots {
                std::mem::take(&mut self.full_slots).finish(row.coarse.len())
            } else {
                None
            };
            let raw = encode(&row.coarse);
            long.push(FinishedMarkRow { number, id, marks: row.marks, raw, full_slots });
        }
        long.sort_by_key(|row| row.number);
        (pieces, long)
    }
}

impl OpenRow {
    fn push(&mut self, mark: &TraceMark) {
        self.is_unordered |= mark.cycles.start < self.last;
        self.last = mark.cycles.start;
        let next = MarkBlock::single(mark, self.marks, u32::MAX);
        self.marks += 1;
        let is_open = |last: &&mut MarkBlock| last.count < FULL_BLOCK;
        match self.fine.last_mut().filter(is_open).filter(|_| !self.is_closed) {
            Some(last) => last.add(&next),
            None => self.fine.push(next),
        }
        self.is_closed = false;
    }

    /// The index of the coarse block that the last mark will be in.
    fn last_block(&self) -> usize {
        let begins_another = self.fine.len() as u64 > FULL_BLOCK;
        self.coarse.len() + usize::from(begins_another)
    }

    /// Makes a coarse block of the fine ones. The first one is held back until there is a second
    /// one: short rows are read mark by mark.
    fn complete_coarse(&mut self, numbered: &mut i64) -> Vec<FinePiece> {
        let Some(coarse) = MarkBlock::joined(&self.fine) else { return Vec::new() };
        let place = self.coarse.len() as i64;
        self.coarse.push(coarse);
        let fine = std::mem::take(&mut self.fine);
        if place == 0 {
            self.first_piece = fine;
            return Vec::new();
        }
        let number = *self.number.get_or_insert_with(|| {
            *numbered += 1;
            *numbered - 1
        });
        let make_piece = |place: i64, fine: &[MarkBlock]| FinePiece {
            key: number << 32 | place,
            raw: encode(fine),
        };
        let mut pieces = Vec::new();
        if place == 1 {
            pieces.push(make_piece(0, &std::mem::take(&mut self.first_piece)));
        }
        pieces.push(make_piece(place, &fine));
        pieces
    }
}

impl FinePiece {
    /// Packs and stores the blocks.
    pub(crate) fn insert(self, rows: &RowWriter) -> Result<(), ReportError> {
        rows.insert(schema::MARK_BLOCKS, params![self.key, pack(&self.raw)])
    }
}

impl FinishedMarkRow {
    /// Packs and stores the row.
    pub(crate) fn insert(self, rows: &RowWriter) -> Result<(), ReportError> {
        let Self { number, id, marks, raw, full_slots } = self;
        let (class, kind, ipu) = match id {
            MarkRowId::Common(kind) => (ReplicaClassId(0), Some(kind.name()), None),
            MarkRowId::Ipu(ReplicaIpu { class, ipu }) => (class, None, Some(ipu)),
        };
        let row = params![number, class, kind, ipu, marks as i64, pack(&raw), full_slots];
        rows.insert(schema::MARK_ROWS, row)
    }
}
