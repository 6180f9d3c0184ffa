//! The topics view: facts, figures and tables of a report, topic by topic, drawn without knowledge
//! of the topic.

use super::summary::facts_ui;
use super::{ReportView, ViewContext, ViewDescriptor};
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{spacing, text_size};
use crate::widgets::background_query::BackgroundQuery;
use crate::widgets::bottom_panel::{BottomPanel, LOW, closed_ui, tabs_row_ui};
use crate::widgets::figure::{FigureLook, figure_ui, height_of};
use crate::widgets::icons::Icon;
use crate::widgets::query_state::{LIST_TEXTS, QueryTexts};
use crate::widgets::table::TableState;
use crate::widgets::toolbar::toolbar_ui;
use crate::widgets::{central_ui, hint_ui, tables_height};
use egui::{Frame, Label, Margin, RichText, ScrollArea, Ui, vec2};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::figures::Figure;
use tilescope_analysis::headline::HeadlineFigure;
use tilescope_analysis::tables::ReportTable;
use tilescope_analysis::topics::{TOPICS, Topic, TopicFigure};
use tilescope_report::{Report, ReportError};

/// The entry of this view in the list of views.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::Topics,
    help: include_str!("../../../../../assets/help/topics.md"),
    icon: Icon::Table,
    settings: &["topic"],
    create: || Box::<TopicsView>::default(),
};

/// The width from which two figures fit in a row.
const TWO_FIGURES: f32 = 1_100.0;

/// The height of the facts of a topic without figures.
const FACTS: f32 = 170.0;

/// The facts and figures of a topic.
struct TopicPage {
    facts: Vec<HeadlineFigure>,
    figures: Vec<(&'static TopicFigure, Figure)>,
}

impl TopicPage {
    fn read(report: &Report, topic: &'static Topic) -> Result<Self, ReportError> {
        Ok(Self { facts: (topic.facts)(report)?, figures: topic.read_figures(report)? })
    }
}

/// The state of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct TopicsView {
    /// The visible topic; the first one if there is none of this name.
    topic: String,
    /// The visible table of the topic; the first one if there is none of this name.
    table: String,
    rows: TableState,
    panel: BottomPanel,
    #[serde(skip)]
    page: BackgroundQuery<&'static str, TopicPage>,
    #[serde(skip)]
    listed: BackgroundQuery<(&'static str, &'static str), Arc<DataTable>>,
}

impl ReportView for TopicsView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let topic = self.topic();
        toolbar_ui(ui, VIEW.id.name(), |bar| {
            let topics: Vec<_> = TOPICS.iter().map(|topic| (topic.id, topic.title)).collect();
            if let Some(id) = bar.choice("Topic", &topics, topic.id) {
                id.clone_into(&mut self.topic);
                self.rows = TableState::default();
            }
            let tables: Vec<_> =
                self.topic().all_tables().map(|table| (table.name, table.name)).collect();
            let shown = self.table().map_or("", |table| table.name);
            if let Some(name) = bar.choice("Table", &tables, shown) {
                name.clone_into(&mut self.table);
                self.rows = TableState::default();
            }
        });
        let topic = self.topic();
        // Without figures the facts need little space.
        let has_figures = self.page.latest().is_none_or(|page| !page.figures.is_empty());
        let (name, height) = if has_figures {
            ("topic tables", tables_height(ui, 0.5))
        } else {
            ("topic table below facts", (ui.available_height() - FACTS).max(100.0))
        };
        self.panel =
            self.panel.ui(ui, name, (height, LOW), |ui, open| self.table_ui(ui, context, *open));
        central_ui(ui, |ui| self.page_ui(ui, context, topic));
    }
}

impl TopicsView {
    fn topic(&self) -> &'static Topic {
        TOPICS.iter().find(|topic| topic.id == self.topic).unwrap_or(&TOPICS[0])
    }

    /// Shows the facts and figures of a topic.
    fn page_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, topic: &'static Topic) {
        let texts = QueryTexts { waiting: "Reading…", failed: "The topic cannot be read" };
        let asked = context
            .ask(ui, &mut self.page, &topic.id, move |report, _| TopicPage::read(report, topic));
        let frame = Frame::new().inner_margin(Margin::same(spacing::M as i8));
        asked.fresh_only().show(ui, texts, |ui, page| {
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                frame.show(ui, |ui| page_of_topic_ui(ui, topic, page));
            });
        });
    }

    /// The visible table; `None` for a topic without tables.
    fn table(&self) -> Option<&'static ReportTable> {
        let topic = self.topic();
        let chosen = topic.all_tables().find(|table| table.name == self.table);
        chosen.or_else(|| topic.all_tables().next())
    }

    fn table_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, open: bool) {
        let Some(table) = self.table() else { return };
        if !open {
            return closed_ui(ui, table.about);
        }
        tabs_row_ui(ui, |ui| ui.label(strong(table.about)));
        ui.add_space(spacing::XS);
        let key = (table.view, table.name);
        let listed = context
            .ask(ui, &mut self.listed, &key, move |report, _| table.keyed(report).map(Arc::new));
        listed.fresh_only().show(ui, LIST_TEXTS, |ui, rows| {
            // Values of different units have no largest.
            self.rows.keep_order(rows.first_sum().is_none());
            self.rows.ui(ui, context.workers, rows, rows.version(), "Filter rows");
        });
    }
}

fn page_of_topic_ui(ui: &mut Ui, topic: &Topic, page: &TopicPage) {
    ui.label(strong(topic.title).size(text_size::SUBHEADING));
    ui.add(Label::new(RichText::new(topic.about).weak()).wrap());
    ui.add_space(spacing::S);
    if !page.facts.is_empty() {
        facts_ui(ui, &page.facts);
    }
    let (drawn, empty): (Vec<_>, Vec<_>) =
        page.figures.iter().partition(|(_, figure)| !figure.is_empty());
    if page.facts.is_empty() && drawn.is_empty() && empty.is_empty() {
        hint_ui(ui, "This topic has no figures; its tables are below.");
    }
    let is_wide = ui.available_width() >= TWO_FIGURES;
    let columns = if is_wide && drawn.len() > 1 { 2 } else { 1 };
    let gap = spacing::L;
    let width = (ui.available_width() - gap * (columns as f32 - 1.0)) / columns as f32;
    for row in drawn.chunks(columns) {
        ui.horizontal_top(|ui| {
            ui.spacing_mut().item_spacing.x = gap;
            for (of, figure) in row {
                let size = vec2(width, height_of(figure) + 2.0 * text_size::BODY + spacing::M);
                ui.allocate_ui(size, |ui| {
                    ui.vertical(|ui| {
                        ui.set_width(width);
                        ui.set_max_height(size.y);
                        ui.label(strong(&figure.title)).on_hover_text(of.about);
                        figure_ui(ui, figure, FigureLook::default());
                    });
                });
            }
        });
        ui.add_space(spacing::M);
    }
    for (_, figure) in empty {
        let reason = if figure.note.is_empty() { "Nothing to draw." } else { &figure.note };
        hint_ui(ui, &format!("{}: {reason}", figure.title));
    }
}

/// A table as the view shows it.
#[cfg(test)]
pub(in crate::views) fn seen(report: &Report, table: &ReportTable) -> DataTable {
    (table.read)(report).unwrap()
}
