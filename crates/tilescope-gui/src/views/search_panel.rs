//! The find panel: a query, its results with totals, and their statistics.

use crate::model::command::AppCommand;
use crate::model::view_id::ViewId;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::views::{TraceJump, ViewContext};
use crate::widgets::background_query::{BackgroundQuery, QueryState, Versioned};
use crate::widgets::icons::Icon;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::{choice_ui, entry_ground_ui, focus_ui, icon_button_ui, search_ui, tabs_ui};
use egui::accesskit::Role;
use egui::{
    Align, Align2, FontId, Key, Layout, Rect, Response, RichText, ScrollArea, Sense, TextStyle, Ui,
    WidgetInfo, pos2, vec2,
};
use tilescope_analysis::distribution::{HistogramBar, ValueStatistics};
use tilescope_analysis::find::{
    CatalogueItem, QueryAmount, SearchCatalogue, SearchEntity, SearchList, SearchQuery,
    SearchQueryError, SearchResults, find, values,
};
use tilescope_analysis::statistics::spread;
use tilescope_report::units::{Bytes, Cycles, grouped, grouped_wide};
use tilescope_report::{Report, ReportError};

/// The height of a result.
const ROW: f32 = 38.0;

/// The tabs in the lower part of the panel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SearchPanelTab {
    #[default]
    Results,
    Statistics,
}

/// The statistics of one list of results.
struct SearchStatistics {
    statistics: ValueStatistics,
    bars: Vec<HistogramBar>,
    tiles: Vec<u64>,
}

/// The query key of statistics.
#[derive(Clone, Debug, PartialEq)]
struct SearchStatisticsKey {
    query: String,
    source: SearchList,
    amount: QueryAmount,
}

/// The state of the panel.
#[derive(Default)]
pub struct SearchPanel {
    /// True if the panel is visible.
    pub open: bool,
    pub text: String,
    /// The current result, if any.
    pub current_result: Option<usize>,
    focus: bool,
    tab: SearchPanelTab,
    source: Option<SearchList>,
    amount: Option<QueryAmount>,
    catalogue: BackgroundQuery<(), SearchCatalogue>,
    results: BackgroundQuery<String, SearchResults>,
    statistics: BackgroundQuery<SearchStatisticsKey, SearchStatistics>,
    /// The number of results to move by once they are known.
    steps: i64,
    jump: TraceJump,
}

impl SearchPanel {
    /// Shows the panel and focuses its text box.
    pub(crate) fn start(&mut self) {
        self.open = true;
        self.focus = true;
    }

    /// Shows statistics of the results of a query.
    pub(crate) fn measure(&mut self, query: &SearchQuery) {
        self.text = query.to_string();
        (self.open, self.tab, self.current_result) = (true, SearchPanelTab::Statistics, None);
        (self.source, self.amount) = (None, None);
    }

    /// Moves by this many results; a negative number moves back.
    pub(crate) fn step(&mut self, by: i64) {
        self.steps += by;
    }

    /// Returns true if there is a query whose results can be stepped through.
    pub(crate) fn has_query(&self) -> bool {
        !self.text.trim().is_empty()
    }

    /// Applies pending key actions, even if the panel is hidden.
    pub(crate) fn update(&mut self, ui: &Ui, context: &ViewContext<'_>) {
        self.jump.update(ui.ctx(), context);
        if self.steps == 0 || !self.has_query() {
            self.steps = 0;
            return;
        }
        let Some(QueryState::Fresh(found)) = self.ask(ui, context) else { return };
        let count = found.hits.len() as i64;
        let by = std::mem::take(&mut self.steps);
        if count > 0 {
            let from = self.current_result.map_or(if by > 0 { -1 } else { 0 }, |at| at as i64);
            let at = (from + by).rem_euclid(count) as usize;
            self.show_result(at, &found, context);
        }
    }

    pub(crate) fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        ui.horizontal(|ui| {
            ui.heading("Find");
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if icon_button_ui(ui, Icon::Close, "Close find").clicked() {
                    self.open = false;
                }
            });
        });
        let width = ui.available_width() - 18.0;
        let field = search_ui(ui, &mut self.text, "Find in the whole report", width);
        if std::mem::take(&mut self.focus) {
            field.request_focus();
        }
        if field.changed() {
            self.current_result = None;
        }
        if field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter)) {
            let back = ui.input(|input| input.modifiers.shift);
            self.step(if back { -1 } else { 1 });
            self.focus = true;
        }
        if field.has_focus() && ui.input(|input| input.key_pressed(Key::Escape)) {
            self.open = false;
        }
        if !self.has_query() {
            // All names are loaded once the first word is typed.
            self.ask_catalogue(ui, context);
            return examples_ui(ui, &mut self.text);
        }
        let texts = QueryTexts { waiting: "Searching…", failed: "The search failed" };
        if let Some(found) = self.ask(ui, context) {
            found.show(ui, texts, |ui, found| self.found_ui(ui, context, found));
        }
        if let Err(error) = self.text.parse::<SearchQuery>() {
            error_ui(ui, &self.text, &error);
        }
    }

    fn ask_catalogue(&mut self, ui: &Ui, context: &ViewContext<'_>) -> QueryState<SearchCatalogue> {
        let report = context.opened.report.clone();
        self.catalogue.ask(ui.ctx(), context.workers, &(), move |()| SearchCatalogue::read(&report))
    }

    /// The results so far; `None` if the query is invalid.
    fn ask(&mut self, ui: &Ui, context: &ViewContext<'_>) -> Option<QueryState<SearchResults>> {
        let query: SearchQuery = self.text.parse().ok()?;
        let catalogue = match self.ask_catalogue(ui, context) {
            QueryState::Fresh(catalogue) | QueryState::Stale { answer: catalogue, .. } => catalogue,
            QueryState::Waiting { overdue } => return Some(QueryState::Waiting { overdue }),
            QueryState::Failed(error) => return Some(QueryState::Failed(error)),
        };
        let report = context.opened.report.clone();
        let key = query.to_string();
        let search = move |_: &String| find(&report, &catalogue, &query);
        Some(self.results.ask(ui.ctx(), context.workers, &key, search).fresh_only())
    }

    fn found_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        found: &Versioned<SearchResults>,
    ) {
        totals_ui(ui, found);
        let tabs =
            [(SearchPanelTab::Results, "Results"), (SearchPanelTab::Statistics, "Statistics")];
        tabs_ui(ui, "search", &tabs, &mut self.tab);
        match self.tab {
            SearchPanelTab::Results => self.results_ui(ui, context, found),
            SearchPanelTab::Statistics => self.statistics_ui(ui, context, found),
        }
    }

    fn results_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, found: &SearchResults) {
        let mut picked = None;
        ui.spacing_mut().item_spacing.y = 0.0;
        let area = ScrollArea::vertical().auto_shrink(false).id_salt("results");
        area.show_rows(ui, ROW, found.hits.len(), |ui, rows| {
            for at in rows {
                let Some(hit) = found.hits.get(at) else { continue };
                if hit_ui(ui, hit, self.current_result == Some(at)).clicked() {
                    picked = Some(at);
                }
            }
        });
        if let Some(at) = picked {
            self.show_result(at, found, context);
        }
    }

    /// Shows a result in its view.
    fn show_result(&mut self, at: usize, found: &SearchResults, context: &ViewContext<'_>) {
        let Some(hit) = found.hits.get(at) else { return };
        self.current_result = Some(at);
        let view = match hit.thing {
            SearchEntity::Steps(program, _) => {
                context.commands.push(AppCommand::SelectProgram(Some(program)));
                return self.jump.start(program);
            }
            SearchEntity::Program(program) => {
                context.commands.push(AppCommand::SelectProgram(Some(program)));
                ViewId::ProgramTree
            }
            SearchEntity::Operation(operation) => {
                context.commands.push(AppCommand::SelectOperation(Some(operation)));
                ViewId::Operations
            }
            SearchEntity::Variable(variable) => {
                context.commands.push(AppCommand::SelectVariable(Some(variable)));
                ViewId::Memory
            }
            SearchEntity::Tensor(variable) => {
                context.commands.push(AppCommand::SelectVariable(Some(variable)));
                ViewId::TileMapping
            }
            SearchEntity::VertexType(_) => ViewId::Memory,
        };
        context.commands.push(AppCommand::ShowView(view));
    }

    fn statistics_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        found: &Versioned<SearchResults>,
    ) {
        let sources: Vec<(SearchList, &str)> =
            found.totals.keys().map(|source| (*source, source.name())).collect();
        let Some((first, _)) = sources.first().copied() else { return };
        let is_known = |source: &SearchList| found.totals.contains_key(source);
        let source = self.source.filter(is_known).unwrap_or(first);
        let usual = match source {
            SearchList::Variables | SearchList::Tensors | SearchList::Vertices => {
                QueryAmount::Bytes
            }
            _ => QueryAmount::Cycles,
        };
        let amount = self.amount.unwrap_or(usual);
        ui.horizontal_wrapped(|ui| {
            if let Some(source) = choice_ui(ui, "List", &sources, source) {
                self.source = Some(source);
                self.amount = None;
            }
            let amounts = QueryAmount::ALL.map(|amount| (amount, amount.name()));
            if let Some(amount) = choice_ui(ui, "Measure", &amounts, amount) {
                self.amount = Some(amount);
            }
        });
        let Ok(query) = self.text.parse::<SearchQuery>() else { return };
        let key = SearchStatisticsKey { query: query.to_string(), source, amount };
        let Some(catalogue) = self.catalogue.latest().cloned() else { return };
        let found = found.clone();
        let texts = QueryTexts { waiting: "Counting…", failed: "Statistics cannot be read" };
        let measured = context.ask(ui, &mut self.statistics, &key, move |report, key| {
            compute_statistics(report, &catalogue, &query, &found, key)
        });
        measured.show(ui, texts, |ui, measured| {
            if let Some(bar) = measured_ui(ui, measured, amount) {
                let name = amount.name();
                self.text = format!("{} in:{}", self.text.trim(), source.name());
                self.text += &format!(" {name}>={} {name}<={}", bar.first, bar.last);
            }
        });
    }
}

fn compute_statistics(
    report: &Report,
    catalogue: &SearchCatalogue,
    query: &SearchQuery,
    found: &SearchResults,
    key: &SearchStatisticsKey,
) -> Result<SearchStatistics, ReportError> {
    let figures = values(report, query, found, key.source, key.amount)?;
    let things: Vec<CatalogueItem> =
        found.hits.iter().filter(|hit| hit.thing.source() == key.source).cloned().collect();
    let tiles = spread(report, &catalogue.runs, &things)?;
    Ok(SearchStatistics { statistics: figures.statistics(), bars: figures.bars(), tiles })
}

/// Examples of queries.
fn examples_ui(ui: &mut Ui, text: &mut String) {
    ui.add_space(spacing::S);
    ui.weak("Words, /regular expressions/ and filters:");
    let examples = [
        "Convolve",
        "in:steps type:DoExchange cycles>2k",
        "in:variables tile:17 bytes>4KiB",
        "type:StreamCopyMid ipu:0..3",
        "/Reduce[0-9]+/ -ExchangePre",
    ];
    for example in examples {
        if ui.link(RichText::new(example).monospace()).clicked() {
            example.clone_into(text);
        }
    }
}

/// The query with its invalid character marked.
fn error_ui(ui: &mut Ui, text: &str, error: &SearchQueryError) {
    let palette = ThemePalette::for_ui(ui);
    let pointer = format!("{text}\n{}^", " ".repeat(error.at));
    ui.label(RichText::new(pointer).monospace().color(palette.error));
    ui.label(RichText::new(error.to_string()).color(palette.error));
}

fn totals_ui(ui: &mut Ui, found: &SearchResults) {
    if found.hits.is_empty() {
        ui.label("No matches.");
    }
    if found.more_variables {
        let words = RichText::new(found.words_of_more_variables());
        ui.label(words.color(ThemePalette::for_ui(ui).warning));
    }
    for (source, totals) in &found.totals {
        let mut text = format!("{} {}", grouped(totals.things), source.name());
        if totals.cycles > Cycles::ZERO {
            text += &format!(" · {} cycles over all IPUs", grouped(totals.cycles.0));
        }
        if totals.bytes > Bytes::ZERO {
            text += &format!(" · {}", numbers(ui).bytes(totals.bytes.0));
        }
        if *source == SearchList::Steps {
            text += &format!(" · {} executions", grouped(totals.count));
        }
        ui.label(RichText::new(text).size(text_size::SMALL));
    }
}

fn hit_ui(ui: &mut Ui, hit: &CatalogueItem, chosen: bool) -> Response {
    let palette = ThemePalette::for_ui(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW), Sense::click());
    let words = format!("{} {}", hit.kind, hit.name);
    response.widget_info(|| WidgetInfo::selected(Role::ListItem, true, chosen, &words));
    entry_ground_ui(ui, &response, chosen, 4);
    let name = if hit.name.is_empty() { &hit.kind } else { &hit.name };
    let font = TextStyle::Body.resolve(ui.style());
    let width = rect.width() - 12.0;
    let title = crate::widgets::elided_text::elided(ui.painter(), name, font, palette.text, width);
    ui.painter().galley(rect.min + vec2(6.0, 3.0), title, palette.text);
    let mut about = format!("{} · {}", hit.thing.source().name(), hit.kind);
    if let Some(cycles) = hit.cycles {
        about += &format!(" · {} cycles", grouped(cycles.0));
    }
    if let Some(bytes) = hit.bytes.filter(|bytes| *bytes > Bytes::ZERO) {
        about += &format!(" · {}", numbers(ui).bytes(bytes.0));
    }
    if hit.count > 0 {
        about += &format!(" · x {}", grouped(hit.count));
    }
    let small = FontId::proportional(text_size::CAPTION);
    let about =
        crate::widgets::elided_text::elided(ui.painter(), &about, small, palette.weak_text, width);
    ui.painter().galley(rect.min + vec2(6.0, 20.0), about, palette.weak_text);
    response.on_hover_text(&hit.name)
}

/// Shows statistics. Returns the clicked bar.
fn measured_ui(
    ui: &mut Ui,
    measured: &SearchStatistics,
    amount: QueryAmount,
) -> Option<HistogramBar> {
    let palette = ThemePalette::for_ui(ui);
    statistics_ui(ui, &measured.statistics, amount == QueryAmount::Bytes);
    ui.add_space(spacing::S);
    let most = measured.bars.iter().map(|bar| bar.count).max().unwrap_or(1).max(1);
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), 90.0), Sense::hover());
    let wide = rect.width() / measured.bars.len().max(1) as f32;
    let mut picked = None;
    for (at, bar) in measured.bars.iter().enumerate() {
        let left = rect.left() + at as f32 * wide;
        let column = Rect::from_x_y_ranges(left..=left + wide - 1.0, rect.y_range());
        let response = ui.interact(column, ui.scope_id().with(("bar", at)), Sense::click());
        let words =
            format!("{} from {} to {}", grouped(bar.count), grouped(bar.first), grouped(bar.last));
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, &words));
        let colour = if response.hovered() { palette.accent } else { palette.balance };
        let high = rect.height() * (bar.count as f32 / most as f32);
        let high = if bar.count > 0 { high.max(1.5) } else { 0.0 };
        let filled = Rect::from_min_max(pos2(left, rect.bottom() - high), column.max);
        ui.painter().rect_filled(column, 0.0, palette.lane);
        ui.painter().rect_filled(filled, 0.0, colour);
        focus_ui(ui, &response, column);
        if response.on_hover_text(format!("{words}; click to filter to these")).clicked() {
            picked = Some(*bar);
        }
    }
    spread_ui(ui, &measured.tiles);
    picked
}

pub(crate) fn statistics_ui(ui: &mut Ui, statistics: &ValueStatistics, bytes: bool) {
    let grid = egui::Grid::new("statistics").num_columns(2).spacing(vec2(18.0, 3.0));
    grid.show(ui, |ui| {
        for (name, value) in statistics.rows() {
            ui.weak(name);
            let unit = if bytes && name != "Count" { " B" } else { "" };
            ui.label(format!("{}{unit}", grouped_wide(value)));
            ui.end_row();
        }
    });
}

/// The distribution over tiles: a strip of all tiles, and its figures.
fn spread_ui(ui: &mut Ui, tiles: &[u64]) {
    let palette = ThemePalette::for_ui(ui);
    let max = tiles.iter().copied().max().unwrap_or(0);
    let used = tiles.iter().filter(|of| **of > 0);
    if max == 0 {
        return;
    }
    ui.add_space(spacing::M);
    ui.label(crate::theme::fonts::strong("Distribution over tiles"));
    let used = used.count();
    let mean = tiles.iter().map(|of| *of as f64).sum::<f64>() / used.max(1) as f64;
    let fullest = tiles.iter().position(|of| *of == max).unwrap_or(0);
    let text = format!(
        "{} of {} tiles, mean {}, max {} on tile {}",
        grouped(used as u64),
        grouped(tiles.len() as u64),
        grouped(mean.round() as u64),
        grouped(max),
        grouped(fullest as u64),
    );
    ui.label(RichText::new(text).size(text_size::SMALL));
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 46.0), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, "Distribution over tiles"));
    ui.painter().rect_filled(rect, 0.0, palette.lane);
    let columns = (rect.width() as usize).min(tiles.len()).max(1);
    for column in 0..columns {
        let part = &tiles[column * tiles.len() / columns..(column + 1) * tiles.len() / columns];
        let value = part.iter().copied().max().unwrap_or(0);
        let high = rect.height() * (value as f32 / max as f32);
        let left = rect.left() + rect.width() * column as f32 / columns as f32;
        let right = rect.left() + rect.width() * (column + 1) as f32 / columns as f32;
        let bar = Rect::from_min_max(pos2(left, rect.bottom() - high), pos2(right, rect.bottom()));
        ui.painter().rect_filled(bar, 0.0, palette.compute);
    }
    let corner = rect.left_bottom() + vec2(0.0, 2.0);
    let small = FontId::proportional(text_size::CAPTION);
    ui.painter().text(corner, Align2::LEFT_TOP, "tile 0", small, palette.weak_text);
    ui.add_space(spacing::L);
}
