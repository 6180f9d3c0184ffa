//! Insights: what is worth doing about this program, and where it shows.

mod largest_lists;
mod memory_panels;

use super::{ReportView, TraceJump, ViewContext, ViewDescriptor};
use crate::model::command::AppCommand;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::model::view_state::{ViewState, from_view_state, to_view_state};
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::widgets::background_query::BackgroundQuery;
use crate::widgets::icons::Icon;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::tables_height;
use egui::{
    CentralPanel, Color32, CornerRadius, Frame, Label, Margin, Panel, RichText, ScrollArea, Stroke,
    Ui, vec2,
};
use largest_lists::LargestLists;
use serde::{Deserialize, Serialize};
use tilescope_analysis::insights::{
    InsightFacts, InsightFinding, InsightGain, InsightSubject, RULES, TileMemoryOverview, ranked,
    tile_memory_overview,
};
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::NumberFormat;
use tilescope_report::{Report, ReportError};

/// This view, for the list.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::Insights,
    help: include_str!("../../../../../assets/help/insights.md"),
    icon: Icon::Bulb,
    settings: &["wanted"],
    create: || Box::<InsightsView>::default(),
};

/// What the page shows.
struct InsightsPageData {
    findings: Vec<InsightFinding>,
    picture: TileMemoryOverview,
}

/// Least width of findings beside each other, and the greatest of one.
const COLUMN: f32 = 900.0;
const WIDEST: f32 = 1280.0;

/// Which findings are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum InsightsFilter {
    #[default]
    All,
    Only(InsightSubject),
}

/// State of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct InsightsView {
    #[serde(skip)]
    shown: BackgroundQuery<NumberFormat, InsightsPageData>,
    wanted: InsightsFilter,
    largest: LargestLists,
    #[serde(skip)]
    jump: TraceJump,
}

impl ReportView for InsightsView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let report = context.opened.report.clone();
        let texts =
            QueryTexts { waiting: "Checking the rules…", failed: "Insights cannot be computed" };
        let question = move |numbers: &NumberFormat| load_insights(&report, *numbers);
        let found = self.shown.ask(ui.ctx(), context.workers, &numbers(ui), question);
        found.show(ui, texts, |ui, shown| self.panels_ui(ui, context, shown));
        self.jump.update(ui.ctx(), context);
    }

    fn state(&self) -> ViewState {
        to_view_state(self)
    }

    fn restore(&mut self, state: &ViewState, _: &Selection) -> Vec<String> {
        let strange;
        (*self, strange) = from_view_state(state);
        strange
    }
}

fn load_insights(report: &Report, numbers: NumberFormat) -> Result<InsightsPageData, ReportError> {
    let facts = InsightFacts::gather(report, numbers)?;
    Ok(InsightsPageData { findings: ranked(&facts), picture: tile_memory_overview(&facts) })
}

impl InsightsView {
    fn panels_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, shown: &InsightsPageData) {
        let frame = Frame::new().fill(ThemePalette::for_ui(ui).page);
        let height = ui.available_height();
        Panel::bottom("insight tables")
            .resizable(true)
            .default_size(tables_height(ui, 0.28))
            .size_range(60.0..=(height - 120.0).max(61.0))
            .frame(frame)
            .show(ui, |ui| {
                ui.take_available_space();
                let fullest = shown.picture.worst.first().map(|tile| tile.tile);
                self.largest.ui(ui, context, fullest);
            });
        CentralPanel::default().frame(frame).show(ui, |ui| self.page_ui(ui, context, shown));
    }

    fn page_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, shown: &InsightsPageData) {
        ScrollArea::vertical().auto_shrink(false).id_salt("findings").show(ui, |ui| {
            Frame::new().inner_margin(Margin::symmetric(20, 14)).show(ui, |ui| {
                let columns = ((ui.available_width() / COLUMN) as usize).clamp(1, 3);
                ui.set_width(ui.available_width().min(columns as f32 * WIDEST));
                // In a narrow window the panels would push the findings off the screen.
                let wide = ui.available_width() > memory_panels::ALL_BESIDE;
                if wide {
                    memory_panels::memory_ui(ui, context, &shown.picture);
                    ui.add_space(spacing::M);
                }
                self.head_ui(ui, &shown.findings);
                let wanted = self.wanted;
                let holds = |finding: &&InsightFinding| match wanted {
                    InsightsFilter::All => true,
                    InsightsFilter::Only(subject) => finding.subject == subject,
                };
                let found: Vec<&InsightFinding> = shown.findings.iter().filter(holds).collect();
                let mut wanted_place = None;
                for (row, findings) in (0..).zip(found.chunks(columns)) {
                    let place = findings_ui(ui, findings, (1 + row * columns, columns));
                    wanted_place = wanted_place.or(place);
                }
                if let Some(place) = wanted_place {
                    self.go(context, place);
                }
                if found.is_empty() {
                    let text = "No rule found a problem in what was recorded.";
                    ui.label(RichText::new(text).color(ThemePalette::for_ui(ui).weak_text));
                }
                if !wide {
                    ui.add_space(spacing::M);
                    memory_panels::memory_ui(ui, context, &shown.picture);
                }
            });
        });
    }

    /// Chooses what a finding is about and shows it.
    fn go(&mut self, context: &ViewContext<'_>, place: &ViewLocation) {
        let Ok(view) = place.view.parse::<ViewId>() else { return };
        context.commands.extend(AppCommand::select_insight_location(place));
        match view {
            // To the step that the finding speaks of, once that is found.
            ViewId::ExecutionTrace => self.jump.start_at(place.clone()),
            _ => context.commands.push(AppCommand::ShowView(view)),
        }
    }

    fn head_ui(&mut self, ui: &mut Ui, findings: &[InsightFinding]) {
        ui.horizontal_wrapped(|ui| {
            ui.label(strong("Findings").size(text_size::SUBHEADING));
            ui.add_space(spacing::M);
            let count =
                |subject: InsightSubject| findings.iter().filter(|f| f.subject == subject).count();
            let choices = [
                (InsightsFilter::All, format!("All {}", findings.len())),
                (
                    InsightsFilter::Only(InsightSubject::Memory),
                    format!("Memory {}", count(InsightSubject::Memory)),
                ),
                (
                    InsightsFilter::Only(InsightSubject::Time),
                    format!("Time {}", count(InsightSubject::Time)),
                ),
            ];
            for (wanted, text) in choices {
                if ui.selectable_label(self.wanted == wanted, text).clicked() {
                    self.wanted = wanted;
                }
            }
            let palette = ThemePalette::for_ui(ui);
            let text = format!("{} rules checked", RULES.len());
            let rules: Vec<&str> = RULES.iter().map(|rule| rule.description).collect();
            ui.label(RichText::new(text).color(palette.weak_text)).on_hover_text(rules.join("\n"));
        });
        ui.add_space(spacing::XS);
    }
}

/// Findings beside each other, numbered from `first` on; the place whose link was pressed.
fn findings_ui<'a>(
    ui: &mut Ui,
    findings: &[&'a InsightFinding],
    (first, columns): (usize, usize),
) -> Option<&'a ViewLocation> {
    let one = |ui: &mut Ui, (number, finding): (usize, &'a InsightFinding)| {
        ui.push_id(number, |ui| finding_ui(ui, finding, number)).inner
    };
    let mut numbered = (first..).zip(findings.iter().copied());
    if columns == 1 {
        return numbered.filter_map(|finding| one(ui, finding)).last();
    }
    ui.columns(columns, |columns| {
        let shown = columns.iter_mut().filter_map(|ui| numbered.next().map(|one| (ui, one)));
        shown.filter_map(|(ui, finding)| one(ui, finding)).last()
    })
}

/// One finding: number, what may be gained, the sentence, the advice, the link; its place if that
/// was pressed.
fn finding_ui<'a>(
    ui: &mut Ui,
    finding: &'a InsightFinding,
    number: usize,
) -> Option<&'a ViewLocation> {
    let mut wanted = None;
    let palette = ThemePalette::for_ui(ui);
    let colour = match (finding.gain, finding.subject) {
        (InsightGain::Everything, _) => palette.error,
        (_, InsightSubject::Memory) => palette.not_always_live,
        (_, InsightSubject::Time) => palette.compute,
    };
    let frame = Frame::new()
        .fill(palette.raised)
        .stroke(Stroke::new(1.0, palette.rule))
        .corner_radius(CornerRadius::same(6))
        .inner_margin(Margin { left: 16, right: 12, top: 8, bottom: 9 });
    let shown = frame.show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = spacing::XXS;
        ui.horizontal_wrapped(|ui| {
            ui.label(strong(format!("{number}.")));
            let subject = match finding.subject {
                InsightSubject::Memory => "Memory",
                InsightSubject::Time => "Time",
            };
            ui.label(RichText::new(subject).color(palette.weak_text).size(text_size::SMALL));
            let text = RichText::new(finding.gain.text())
                .size(text_size::SMALL)
                .color(gain_colour(palette, finding));
            let gain = ui.label(text);
            gain.on_hover_text("Upper bound of the gain. Gains of several findings overlap.");
            if let Ok(view) = finding.place.view.parse::<ViewId>() {
                let link = ui.link(
                    RichText::new(format!("Show in {}", view.title())).size(text_size::SMALL),
                );
                if link.clicked() {
                    wanted = Some(&finding.place);
                }
            }
        });
        let sentence: String = finding.sentence.chars().take(600).collect();
        let label = Label::new(sentence).wrap().selectable(true);
        ui.add(label).on_hover_text(format!("How it is computed: {}", finding.formula));
        let advice = RichText::new(&finding.advice).color(palette.weak_text);
        ui.add(Label::new(advice).wrap());
    });
    let rect = shown.response.rect;
    let edge = egui::Rect::from_min_size(rect.min + vec2(0.0, 4.0), vec2(4.0, rect.height() - 8.0));
    ui.painter().rect_filled(edge, CornerRadius::same(2), colour);
    wanted
}

fn gain_colour(palette: &ThemePalette, finding: &InsightFinding) -> Color32 {
    match finding.gain {
        InsightGain::Everything => palette.error,
        InsightGain::Unknown => palette.weak_text,
        InsightGain::Time(_) | InsightGain::Memory(_) => palette.text,
    }
}
