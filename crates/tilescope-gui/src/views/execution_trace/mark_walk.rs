//! Keyboard movement from mark to mark. It runs in the background because marks of a long run are
//! read from the file.

use super::layers::marks::SelectedMark;
use super::loaded_trace::LoadedTrace;
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, BackgroundQueryError, Versioned};
use egui::Ui;
use tilescope_report::{Report, ReportError};

/// A mark, true for the direction forwards, and the number of the key press.
type NeighbourMarkKey = (SelectedMark, bool, u64);

/// The mark that is being looked up.
#[derive(Default)]
pub(super) struct MarkWalk {
    wanted: Option<NeighbourMarkKey>,
    presses: u64,
    neighbour: BackgroundQuery<NeighbourMarkKey, Option<SelectedMark>>,
}

impl MarkWalk {
    /// Starts to move on from a mark.
    pub(super) fn start(&mut self, from: SelectedMark, forwards: bool) {
        self.presses += 1;
        self.wanted = Some((from, forwards, self.presses));
    }

    /// The mark that was found, once it is known. `None` until then, and at the end of a row.
    pub(super) fn arrived(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) -> Option<Result<SelectedMark, BackgroundQueryError>> {
        let wanted = self.wanted?;
        let shared = prepared.clone();
        let asked =
            context.ask(ui, &mut self.neighbour, &wanted, move |report, (from, forwards, _)| {
                neighbour(report, &shared, *from, *forwards)
            });
        let found = asked.finished()?;
        self.wanted = None;
        found.map(|found| *found).transpose()
    }
}

/// Returns the same number of marks after or before those of a row.
fn neighbour(
    report: &Report,
    prepared: &LoadedTrace,
    from: SelectedMark,
    forwards: bool,
) -> Result<Option<SelectedMark>, ReportError> {
    let SelectedMark { row, first, count, .. } = from;
    let Some(marks) = prepared.known_marks() else { return Ok(None) };
    let next = if forwards { first.checked_add(count) } else { first.checked_sub(count) };
    let Some(next) = next else { return Ok(None) };
    let block = marks.block(report, (row, next, count))?;
    Ok(block.map(|block| SelectedMark::from_block(row, &block)))
}
