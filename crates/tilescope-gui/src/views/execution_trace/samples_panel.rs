//! The samples of measured tiles, grouped by name.

use crate::theme::spacing;
use crate::views::ViewContext;
use crate::widgets::background_query::BackgroundQuery;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::table::TableState;
use egui::Ui;
use std::sync::Arc;
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::tables::tile_samples::samples;
use tilescope_analysis::tile_samples::{SampleFilter, SampleGrouping, metadata_names};

/// The tab of samples.
#[derive(Default)]
pub(super) struct SamplesPanel {
    /// The name by which samples are grouped; the first one by default.
    by: Option<String>,
    metadata: BackgroundQuery<(), Vec<String>>,
    found: BackgroundQuery<String, Arc<DataTable>>,
    table: TableState,
}

impl SamplesPanel {
    /// Shows the samples of the whole run, grouped by the selected name.
    pub(super) fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let texts = QueryTexts { waiting: "Adding up…", failed: "Samples cannot be read" };
        let names = context.read(ui, &mut self.metadata, metadata_names);
        let own = names.show(ui, texts, |_, names| names.to_vec()).unwrap_or_default();
        let mut by = self.by.clone().unwrap_or_else(|| SampleGrouping::Operation.name().to_owned());
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            let known = SampleGrouping::NAMED.map(|(name, _)| name);
            for name in known.into_iter().chain(own.iter().map(String::as_str)) {
                if ui.selectable_label(by == name, name).clicked() {
                    by = name.to_owned();
                }
            }
        });
        self.by = Some(by.clone());
        let found = context.ask(ui, &mut self.found, &by, |report, by| {
            let grouping = SampleGrouping::from_name(by);
            samples(report, &grouping, &SampleFilter::new()).map(Arc::new)
        });
        let table = &mut self.table;
        found.show(ui, texts, |ui, found| {
            ui.push_id("samples", |ui| {
                table.ui(ui, context.workers, found, found.version(), "Filter samples");
            });
        });
    }
}
