//! Where the cells of the schedule are. Places are counted from the edge of what is on the screen:
//! from that of all columns, those of long iterations would lose parts of a point.

use egui::{Pos2, Rect, Vec2, pos2, vec2};
use std::ops::Range;
use tilescope_analysis::pipeline_schedule::{IterationSchedule, ScheduleCells};

/// Width of the names of the stages.
const GUTTER: f32 = 150.0;
/// Height of the phases, and of the numbers of the slots.
pub(super) const HEAD_ROW: f32 = 17.0;
/// Height of the cells of a stage, and of its FIFO below them.
const TURNS: f32 = 22.0;
const FIFO: f32 = 13.0;
/// Space between stages.
const GAP: f32 = 4.0;
/// Points of a digit or letter in a cell, and what a cell needs beside them.
const LETTER: f32 = 6.5;
const MARGIN: f32 = 10.0;
/// Least and most width of a column.
const COLUMN: (f32, f32) = (44.0, 110.0);

/// A cell, or one turn of it; without a stage the head of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScheduleCell {
    pub stage: Option<usize>,
    pub column: usize,
    pub turn: Option<usize>,
}

/// How large the parts are.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScheduleSizes {
    column: f32,
    row: f32,
}

/// Sizes that show all columns on a width, or else as many as can be read.
pub(super) fn sizes(schedule: &IterationSchedule, width: f32) -> ScheduleSizes {
    let count = schedule.columns.len().max(1);
    // Micro-batches are counted over the run: those of this iteration are not much above.
    let last = (schedule.iteration + 1).saturating_mul(count as u64);
    let letters = 1.0 + last.max(1).ilog10() as f32 + 1.0;
    let least = (2.0 * (letters * LETTER + MARGIN)).clamp(COLUMN.0, COLUMN.1.max(160.0));
    let column = ((width - GUTTER - 12.0) / count as f32).floor();
    let back = schedule.stages.iter().any(|stage| stage.goes_back());
    let row = TURNS + GAP + if back { FIFO } else { 0.0 };
    ScheduleSizes { column: column.clamp(least, least.max(COLUMN.1)), row }
}

impl ScheduleSizes {
    /// Names, heads and all cells.
    pub(super) fn all(self, schedule: &IterationSchedule) -> Vec2 {
        let (columns, stages) = (schedule.columns.len(), schedule.stages.len());
        vec2(GUTTER + columns as f32 * self.column, 2.0 * HEAD_ROW + GAP + stages as f32 * self.row)
    }
}

/// Where everything is in a frame.
pub(super) struct ScheduleLayout {
    pub area: Rect,
    sizes: ScheduleSizes,
    /// Points that the cells are scrolled.
    scroll: (f64, f32),
    count: usize,
    stages: usize,
}

impl ScheduleLayout {
    /// The layout of what is on the screen.
    pub(super) fn new(
        schedule: &IterationSchedule,
        sizes: ScheduleSizes,
        viewport: Rect,
        area: Rect,
    ) -> Self {
        let (count, stages) = (schedule.columns.len(), schedule.stages.len());
        let scroll = (f64::from(viewport.left()), viewport.top());
        Self { area, sizes, scroll, count, stages }
    }

    /// The part with cells: right of the names and below the heads.
    pub(super) fn cells(&self) -> Rect {
        let corner = self.area.min + vec2(GUTTER, 2.0 * HEAD_ROW + GAP);
        Rect::from_min_max(corner, self.area.max.max(corner))
    }

    /// The names of the stages.
    pub(super) fn gutter(&self) -> Rect {
        let cells = self.cells();
        Rect::from_min_max(pos2(self.area.left(), cells.top()), pos2(cells.left(), cells.bottom()))
    }

    /// A row above the cells: phases, then slots.
    pub(super) fn head(&self, row: usize) -> Rect {
        let cells = self.cells();
        let top = self.area.top() + row as f32 * HEAD_ROW;
        Rect::from_min_max(pos2(cells.left(), top), pos2(cells.right(), top + HEAD_ROW))
    }

    /// Left edge of a column.
    pub(super) fn x(&self, column: usize) -> f32 {
        let left = column as f64 * f64::from(self.sizes.column) - self.scroll.0;
        self.cells().left() + left as f32
    }

    /// All of a column.
    pub(super) fn column(&self, column: usize) -> Rect {
        let left = self.x(column);
        Rect::from_x_y_ranges(left..=left + self.sizes.column, self.area.y_range())
    }

    /// The columns on the screen.
    pub(super) fn columns(&self) -> Range<usize> {
        let width = f64::from(self.sizes.column);
        let first = (self.scroll.0 / width).max(0.0) as usize;
        let last = ((self.scroll.0 + f64::from(self.cells().width())) / width).ceil() as usize;
        first.min(self.count)..last.min(self.count)
    }

    /// Whether all of a column is on the screen.
    pub(super) fn shows(&self, column: usize) -> bool {
        let (own, cells) = (self.column(column), self.cells());
        own.left() >= cells.left() - 1.0 && own.right() <= cells.right() + 1.0
    }

    /// The stages on the screen.
    pub(super) fn stages(&self) -> Range<usize> {
        let first = (self.scroll.1 / self.sizes.row).max(0.0) as usize;
        let last = ((self.scroll.1 + self.cells().height()) / self.sizes.row).ceil() as usize;
        first.min(self.stages)..last.min(self.stages)
    }

    /// The row of a stage.
    pub(super) fn row(&self, stage: usize) -> Rect {
        let top = self.cells().top() + stage as f32 * self.sizes.row - self.scroll.1;
        Rect::from_x_y_ranges(self.cells().x_range(), top..=top + self.sizes.row - GAP)
    }

    /// The cell of a stage in a column, without its FIFO.
    pub(super) fn cell(&self, stage: usize, column: usize) -> Rect {
        let (own, row) = (self.column(column), self.row(stage));
        Rect::from_x_y_ranges(own.left()..=own.right() - 2.0, row.top()..=row.top() + TURNS)
    }

    /// The FIFO below a cell.
    pub(super) fn fifo(&self, stage: usize, column: usize) -> Rect {
        let cell = self.cell(stage, column);
        Rect::from_x_y_ranges(cell.x_range(), cell.bottom()..=self.row(stage).bottom())
    }

    /// One of several turns of a cell, side by side.
    pub(super) fn turn(&self, cell: Rect, place: usize, of: usize) -> Rect {
        let width = cell.width() / of.max(1) as f32;
        let left = cell.left() + place as f32 * width;
        Rect::from_x_y_ranges(left..=left + width - 1.0, cell.y_range())
    }

    /// The stage whose name is at a place on the screen.
    pub(super) fn name_at(&self, at: Pos2) -> Option<usize> {
        let inside = self.gutter().contains(at);
        self.stages().find(|stage| inside && self.row(*stage).y_range().contains(at.y))
    }

    /// What is at a place on the screen.
    pub(super) fn cell_at(
        &self,
        schedule: &IterationSchedule,
        cells: Option<&ScheduleCells>,
        at: Pos2,
    ) -> Option<ScheduleCell> {
        let right_of_names = self.cells().x_range().contains(at.x);
        let inside = f64::from(at.x - self.cells().left()) + self.scroll.0;
        let column = (inside / f64::from(self.sizes.column)) as usize;
        if !right_of_names || !self.area.contains(at) || column >= schedule.columns.len() {
            return None;
        }
        if at.y < self.cells().top() {
            return Some(ScheduleCell { stage: None, column, turn: None });
        }
        let stage = self.stages().find(|stage| self.row(*stage).y_range().contains(at.y))?;
        let turns = cells.map_or(0, |cells| cells.turns_in(stage, column).len());
        let own = self.cell(stage, column);
        let turn = (0..turns).find(|turn| self.turn(own, *turn, turns).contains(at));
        Some(ScheduleCell { stage: Some(stage), column, turn })
    }
}
