//! Operations: what each of them costs, and how the planner split it.

pub(crate) mod columns;
mod lists;
mod lower;

use super::state::{State, kept, restored};
use super::{View, ViewContext, ViewInfo};
use crate::command::Command;
use crate::icons::Icon;
use crate::prefs::OperationPrefs;
use crate::session::Selection;
use crate::theme::Palette;
use crate::widgets::table::TableState;
use crate::widgets::toolbar::{Bar, toolbar_ui};
use crate::widgets::{missing_ui, tables_height, waiting_ui};
use crate::worker::{Asked, Slot};
use egui::{CentralPanel, Frame, Panel, RichText, Ui};
use lower::Lower;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::operations::{Layer, OpRow, operations};
use tilescope_analysis::tables::operations as tables;
use tilescope_report::Part;
use tilescope_report::units::OperationId;

/// This view, for the list.
pub(crate) const VIEW: ViewInfo = ViewInfo {
    name: "operations",
    title: "Operations",
    help: include_str!("../../../../../assets/help/operations.md"),
    icon: Icon::Table,
    settings: &["layer"],
    create: || Box::<OperationsView>::default(),
};

/// Operations and the table of them.
struct Shown {
    generation: u64,
    layer: Layer,
    rows: Vec<OpRow>,
    table: Arc<DataTable>,
    complete: bool,
}

/// State of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct OperationsView {
    layer: Layer,
    #[serde(skip)]
    shown: Slot<(Layer, Vec<String>), Result<Arc<Shown>, String>>,
    table: TableState,
    /// The row that is chosen in a layer.
    chosen: Option<(Layer, usize)>,
    /// The operation that was last taken over from the selection.
    #[serde(skip)]
    seen: Option<OperationId>,
    lower: Lower,
}

impl View for OperationsView {
    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        if !context.opened.report.has(Part::Programs)
            && !context.opened.report.has(Part::Operations)
        {
            let sentence = "This report holds neither operations nor programs, so their costs \
                            cannot be told apart.";
            return missing_ui(ui, "No operations recorded", sentence);
        }
        if !context.opened.report.has(Part::Operations) && self.layer == Layer::Model {
            self.layer = Layer::Library;
        }
        toolbar_ui(ui, VIEW.name, |bar| self.controls_ui(bar, context));
        let report = context.opened.report.clone();
        let key = (self.layer, context.prefs.operations.switched.clone());
        let question = move |(layer, switched): &(Layer, Vec<String>)| {
            static NEXT: AtomicU64 = AtomicU64::new(1);
            let found = operations(&report, *layer).map_err(|error| error.to_string())?;
            let table = columns::shown(tables::operations(&found.rows, &report, *layer), switched);
            Ok(Arc::new(Shown {
                generation: NEXT.fetch_add(1, Ordering::Relaxed),
                layer: *layer,
                rows: found.rows,
                table: Arc::new(table),
                complete: found.complete,
            }))
        };
        let shown = match self.shown.ask(ui.ctx(), context.workers, &key, question) {
            Asked::Fresh(Ok(shown)) | Asked::Stale(Ok(shown)) => shown.clone(),
            Asked::Fresh(Err(problem)) | Asked::Stale(Err(problem)) => {
                return missing_ui(ui, "Operations cannot be read", problem);
            }
            Asked::Failed => {
                return missing_ui(ui, "Operations cannot be read", "Please report this.");
            }
            Asked::Waiting => {
                if self.shown.is_slow() {
                    waiting_ui(ui, "Adding costs up…");
                }
                return;
            }
        };
        self.follow(context, &shown);
        self.panels_ui(ui, context, &shown);
    }

    fn clears(&self) -> Vec<Command> {
        vec![Command::SelectOperation(None)]
    }

    fn state(&self) -> State {
        kept(self)
    }

    fn restore(&mut self, state: &State, selection: &Selection) -> Vec<String> {
        let strange;
        (*self, strange) = restored(state);
        self.seen = selection.operation;
        strange
    }
}

impl OperationsView {
    /// An operation chosen elsewhere is chosen here.
    fn follow(&mut self, context: &ViewContext<'_>, shown: &Shown) {
        if self.seen != context.selection.operation {
            self.seen = context.selection.operation;
            let same = |row: &OpRow| row.operation.is_some() && row.operation == self.seen;
            let row = shown.rows.iter().position(same);
            self.chosen = row.map(|row| (shown.layer, row));
        }
    }

    fn controls_ui(&mut self, bar: &mut Bar<'_>, context: &mut ViewContext<'_>) {
        let mut layers = vec![(Layer::Library, "Library calls"), (Layer::Program, "Programs")];
        if context.opened.report.has(Part::Operations) {
            layers.insert(0, (Layer::Model, "Model operations"));
        }
        if let Some(layer) = bar.choice("Layer", &layers, self.layer) {
            self.layer = layer;
        }
        bar.add("Columns", |ui| drop(ui.menu_button("Columns", |ui| columns_ui(ui, context))));
        if let Some(Ok(shown)) = self.shown.latest()
            && !shown.complete
        {
            bar.add("First steps only", |ui| {
                let text = "Cycles of the run: of its first steps only";
                let palette = Palette::of(ui.visuals());
                ui.label(RichText::new(text).color(palette.warning))
                    .on_hover_text("This run has more steps than can be added up in an instant.");
            });
        }
    }

    fn panels_ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, shown: &Arc<Shown>) {
        let height = ui.available_height();
        let frame = Frame::new().fill(Palette::of(ui.visuals()).page);
        let chosen = self.chosen.filter(|(layer, _)| *layer == shown.layer).map(|(_, row)| row);
        Panel::bottom("operation details")
            .resizable(true)
            .default_size(tables_height(ui, 0.42))
            .size_range(60.0..=(height - 120.0).max(61.0))
            .frame(frame)
            .show(ui, |ui| {
                ui.take_available_space();
                let row = chosen.and_then(|row| shown.rows.get(row));
                if let Some(place) = self.lower.ui(ui, context, (shown.layer, &shown.rows), row) {
                    self.chosen = Some((shown.layer, place));
                    self.seen = shown.rows.get(place).and_then(|row| row.operation);
                    context.commands.push(Command::SelectOperation(self.seen));
                }
            });
        CentralPanel::default().frame(frame).show(ui, |ui| {
            ui.add_space(6.0);
            let hint = "Filter operations";
            let (table, generation) = (&shown.table, shown.generation);
            let clicked = self.table.choose_ui(
                ui,
                context.workers,
                table,
                generation,
                hint,
                chosen.as_slice(),
            );
            if let Some(row) = clicked {
                self.chosen = (chosen != Some(row)).then_some((shown.layer, row));
                self.seen = self.chosen.and_then(|(_, row)| shown.rows.get(row)?.operation);
                context.commands.push(Command::SelectOperation(self.seen));
            }
        });
    }
}

/// Which columns are shown.
fn columns_ui(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let mut switched = context.prefs.operations.switched.clone();
    for known in tables::COLUMNS {
        let mut shown = columns::is_shown(known, &switched);
        let title = if known.title == "IPU" { "On IPU" } else { known.title };
        if ui.checkbox(&mut shown, title).on_hover_text(known.about).changed() {
            match switched.iter().position(|key| key == known.key) {
                Some(at) => drop(switched.remove(at)),
                None => switched.push(known.key.to_owned()),
            }
        }
    }
    if switched != context.prefs.operations.switched {
        context.commands.push(Command::SetOperationPrefs(OperationPrefs { switched }));
    }
}
