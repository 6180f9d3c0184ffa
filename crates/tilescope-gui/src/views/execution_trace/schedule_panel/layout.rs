//! The layout of the schedule's cells. Positions are relative to the visible part: relative to all
//! columns, those of long iterations would lose fractions of a point.

use egui::{Pos2, Rect, Vec2, pos2, vec2};
use std::ops::Range;
use tilescope_analysis::pipeline_schedule::{IterationSchedule, ScheduleCells};

/// The width of the names of the stages.
const GUTTER: f32 = 150.0;
/// The height of the phases, and of the numbers of the slots.
pub(super) const HEAD_ROW: f32 = 17.0;
/// The height of the cells of a stage.
const TURNS: f32 = 22.0;
/// The height of the stash below the cells.
const STASH: f32 = 13.0;
/// The gap between stages.
const GAP: f32 = 4.0;
/// The width of a character in a cell, in points.
const LETTER: f32 = 6.5;
const MARGIN: f32 = 10.0;
/// Least and most width of a column.
const COLUMN: (f32, f32) = (44.0, 110.0);

/// A cell, or one turn in it; without a stage, the head of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScheduleCell {
    pub stage: Option<usize>,
    pub column: usize,
    pub turn: Option<usize>,
}

/// The sizes of the parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScheduleSizes {
    column: f32,
    row: f32,
}

/// The sizes at which all columns fit a width, or the smallest readable ones.
pub(super) fn sizes(schedule: &IterationSchedule, width: f32) -> ScheduleSizes {
    let count = schedule.columns.len().max(1);
    // Micro-batches are counted over the run; the numbers of this iteration are not much higher.
    let last = (schedule.iteration + 1).saturating_mul(count as u64);
    let letters = 1.0 + last.max(1).ilog10() as f32 + 1.0;
    let least = (2.0 * (letters * LETTER + MARGIN)).clamp(COLUMN.0, COLUMN.1.max(160.0));
    let column = ((width - GUTTER - 12.0) / count as f32).floor();
    let back = schedule.stages.iter().any(|stage| stage.goes_back());
    let row = TURNS + GAP + if back { STASH } else { 0.0 };
    ScheduleSizes { column: column.clamp(least, least.max(COLUMN.1)), row }
}

impl ScheduleSizes {
    /// The size of names, heads and all cells.
    pub(super) fn all(self, schedule: &IterationSchedule) -> Vec2 {
        let columns = schedule.columns.len();
        let stages = schedule.stages.len();
        vec2(GUTTER + columns as f32 * self.column, 2.0 * HEAD_ROW + GAP + stages as f32 * self.row)
    }
}

/// The layout of a frame.
pub(super) struct ScheduleLayout {
    pub area: Rect,
    sizes: ScheduleSizes,
    /// The scroll position of the cells in points.
    scroll: (f64, f32),
    count: usize,
    stages: usize,
}

impl ScheduleLayout {
    /// The layout of the visible part.
    pub(super) fn new(
        schedule: &IterationSchedule,
        sizes: ScheduleSizes,
        viewport: Rect,
        area: Rect,
    ) -> Self {
        let count = schedule.columns.len();
        let stages = schedule.stages.len();
        let scroll = (f64::from(viewport.left()), viewport.top());
        Self { area, sizes, scroll, count, stages }
    }

    /// The area of the cells: right of the names and below the heads.
    pub(super) fn cells(&self) -> Rect {
        let corner = self.area.min + vec2(GUTTER, 2.0 * HEAD_ROW + GAP);
        Rect::from_min_max(corner, self.area.max.max(corner))
    }

    /// The area of the names of the stages.
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

    /// The left edge of a column.
    pub(super) fn x(&self, column: usize) -> f32 {
        let left = column as f64 * f64::from(self.sizes.column) - self.scroll.0;
        self.cells().left() + left as f32
    }

    /// The rectangle of a whole column.
    pub(super) fn column(&self, column: usize) -> Rect {
        let left = self.x(column);
        Rect::from_x_y_ranges(left..=left + self.sizes.column, self.area.y_range())
    }

    /// The visible columns.
    pub(super) fn columns(&self) -> Range<usize> {
        let width = f64::from(self.sizes.column);
        let first = (self.scroll.0 / width).max(0.0) as usize;
        let last = ((self.scroll.0 + f64::from(self.cells().width())) / width).ceil() as usize;
        first.min(self.count)..last.min(self.count)
    }

    /// Returns true if all of a column is visible.
    pub(super) fn shows(&self, column: usize) -> bool {
        let own = self.column(column);
        let cells = self.cells();
        own.left() >= cells.left() - 1.0 && own.right() <= cells.right() + 1.0
    }

    /// The visible stages.
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

    /// The cell of a stage in a column, without its stash.
    pub(super) fn cell(&self, stage: usize, column: usize) -> Rect {
        let own = self.column(column);
        let row = self.row(stage);
        Rect::from_x_y_ranges(own.left()..=own.right() - 2.0, row.top()..=row.top() + TURNS)
    }

    /// The stash below a cell.
    pub(super) fn stash(&self, stage: usize, column: usize) -> Rect {
        let cell = self.cell(stage, column);
        Rect::from_x_y_ranges(cell.x_range(), cell.bottom()..=self.row(stage).bottom())
    }

    /// One of several turns in a cell, side by side.
    pub(super) fn turn(&self, cell: Rect, place: usize, of: usize) -> Rect {
        let width = cell.width() / of.max(1) as f32;
        let left = cell.left() + place as f32 * width;
        Rect::from_x_y_ranges(left..=left + width - 1.0, cell.y_range())
    }

    /// The stage whose name is at a screen position.
    pub(super) fn name_at(&self, at: Pos2) -> Option<usize> {
        let inside = self.gutter().contains(at);
        self.stages().find(|stage| inside && self.row(*stage).y_range().contains(at.y))
    }

    /// The cell at a screen position, or the turn in it.
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
