//! The insights view: possible improvements of the program, with links to the evidence.

mod finding_cards;
mod largest_lists;
mod memory_panels;
pub(crate) mod proof;

use super::{ReportView, TraceJump, ViewContext, ViewDescriptor};
use crate::model::command::AppCommand;
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::widgets::background_query::BackgroundQuery;
use crate::widgets::bottom_panel::BottomPanel;
use crate::widgets::icons::Icon;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::{central_ui, tables_height};
use egui::{CollapsingHeader, Frame, Label, Margin, RichText, ScrollArea, Ui};
use finding_cards::{FindingClick, findings_ui};
use largest_lists::LargestLists;
use proof::ProofSection;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::insights::{
    InsightFacts, InsightFinding, InsightSubject, InsightVerdict, RULES, TileMemoryOverview,
    TriedFinding, TriedFindings, ranked, tile_memory_overview, with_tried, with_tried_so_far,
};
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::NumberFormat;
use tilescope_report::{Report, ReportError};

/// The entry of this view in the list of views.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::Insights,
    help: include_str!("../../../../../assets/help/insights.md"),
    icon: Icon::Bulb,
    settings: &["wanted"],
    create: || Box::<InsightsView>::default(),
};

/// The data of the page.
struct InsightsPageData {
    verdict: InsightVerdict,
    findings: Vec<InsightFinding>,
    /// The error from reading earlier results, if any.
    problem: Option<String>,
    picture: TileMemoryOverview,
}

/// The height from which the lists below the findings are open at first.
const HIGH: f32 = 720.0;
/// Least width of findings beside each other, and the greatest of one.
const COLUMN: f32 = 600.0;
const WIDEST: f32 = 900.0;

/// The filter for findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum InsightsFilter {
    #[default]
    All,
    Only(InsightSubject),
}

/// The query key of the page.
#[derive(Clone, PartialEq)]
struct InsightsQuestion {
    numbers: NumberFormat,
    /// The results of trials since the report was opened.
    tried: Option<Arc<Vec<TriedFinding>>>,
    /// True while other trials run.
    is_trying: bool,
}

/// The state of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct InsightsView {
    #[serde(skip)]
    shown: BackgroundQuery<InsightsQuestion, InsightsPageData>,
    #[serde(skip)]
    proof: ProofSection,
    wanted: InsightsFilter,
    largest: LargestLists,
    panel: BottomPanel,
    #[serde(skip)]
    jump: TraceJump,
}

impl ReportView for InsightsView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let texts =
            QueryTexts { waiting: "Checking the rules…", failed: "Insights cannot be computed" };
        let tried = self.proof.update(ui, context);
        let is_trying = self.proof.is_running();
        let key = InsightsQuestion { numbers: numbers(ui), tried, is_trying };
        let found = context.ask(ui, &mut self.shown, &key, load_insights);
        found.show(ui, texts, |ui, shown| self.panels_ui(ui, context, shown));
        self.jump.update(ui.ctx(), context);
    }
}

fn load_insights(
    report: &Report,
    question: &InsightsQuestion,
) -> Result<InsightsPageData, ReportError> {
    let facts = InsightFacts::gather(report, question.numbers)?;
    let (tried, problem) = match (&question.tried, TriedFindings::read(report)) {
        (Some(tried), _) => (tried.to_vec(), None),
        (None, Ok(kept)) => (kept.map_or_else(Vec::new, |kept| kept.tried), None),
        (None, Err(error)) => (Vec::new(), Some(error.to_string())),
    };
    let findings = if question.is_trying {
        with_tried_so_far(ranked(&facts), &tried)
    } else {
        with_tried(ranked(&facts), &tried)
    };
    let verdict = InsightVerdict::read(report, question.numbers)?;
    Ok(InsightsPageData { verdict, findings, problem, picture: tile_memory_overview(&facts) })
}

impl InsightsView {
    fn panels_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, shown: &InsightsPageData) {
        let room = (tables_height(ui, 0.22), HIGH);
        self.panel = self.panel.ui(ui, "insight tables", room, |ui, open| {
            let fullest = shown.picture.worst.first().map(|tile| tile.tile);
            self.largest.ui(ui, context, fullest, open);
        });
        central_ui(ui, |ui| self.page_ui(ui, context, shown));
    }

    fn page_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, shown: &InsightsPageData) {
        ScrollArea::vertical().auto_shrink(false).id_salt("findings").show(ui, |ui| {
            Frame::new().inner_margin(Margin::symmetric(20, 14)).show(ui, |ui| {
                let columns = ((ui.available_width() / COLUMN) as usize).clamp(1, 4);
                ui.set_width(ui.available_width().min(columns as f32 * WIDEST));
                // The panels come first only where memory is the question, and where they do not push
                // the findings off the screen.
                let is_first = shown.verdict.first == InsightSubject::Memory
                    && ui.available_width() > memory_panels::ALL_BESIDE;
                if is_first {
                    memory_panels::memory_ui(ui, context, &shown.picture);
                    ui.add_space(spacing::M);
                }
                ui.add(Label::new(strong(shown.verdict.lead.as_str())).wrap());
                ui.add_space(spacing::S);
                self.head_ui(ui, &shown.findings);
                self.proof.ui(ui, context, &shown.findings);
                if let Some(problem) = &shown.problem {
                    let problem = format!("Earlier test results cannot be read: {problem}");
                    ui.label(RichText::new(problem).color(ThemePalette::for_ui(ui).warning));
                }
                let wanted = self.wanted;
                let found = shown.findings.iter().filter(|finding| match wanted {
                    InsightsFilter::All => true,
                    InsightsFilter::Only(subject) => finding.subject == subject,
                });
                // Cards stay where they are until all trials have ended.
                let is_trying = self.proof.is_running();
                let (without_gain, found): (Vec<&InsightFinding>, Vec<_>) =
                    found.partition(|finding| finding.had_no_gain() && !is_trying);
                let (first, aside): (Vec<&InsightFinding>, Vec<_>) =
                    found.iter().partition(|finding| finding.subject == shown.verdict.first);
                let mut click = findings_ui(ui, &first, (1, columns));
                if !aside.is_empty() {
                    let title = shown.verdict.aside_title();
                    let is_wanted = first.is_empty() || wanted != InsightsFilter::All;
                    CollapsingHeader::new(format!("{title} ({})", aside.len()))
                        .id_salt(("aside", is_wanted))
                        .default_open(is_wanted)
                        .show(ui, |ui| {
                            let below = findings_ui(ui, &aside, (first.len() + 1, columns));
                            click = click.or(below);
                        });
                }
                if found.is_empty() {
                    let text = "No rule found a problem in the recorded data.";
                    ui.weak(text);
                }
                if !without_gain.is_empty() {
                    let title = format!("Tested, no gain ({})", without_gain.len());
                    CollapsingHeader::new(title).show(ui, |ui| {
                        let below = findings_ui(ui, &without_gain, (found.len() + 1, columns));
                        click = click.or(below);
                    });
                }
                if let Some(click) = click {
                    self.take(context, click);
                }
                if !is_first {
                    ui.add_space(spacing::M);
                    memory_panels::memory_ui(ui, context, &shown.picture);
                }
            });
        });
    }

    fn take(&mut self, context: &ViewContext<'_>, click: FindingClick<'_>) {
        match click {
            FindingClick::Show(place) => self.go(context, place),
            FindingClick::Apply(changes) => {
                context.commands.push(AppCommand::OpenWhatIfWithAll(changes.clone()));
            }
            FindingClick::Explain(page) => {
                context.commands.push(AppCommand::ShowMechanism(page));
            }
        }
    }

    /// Selects the subject of a finding and shows it.
    fn go(&mut self, context: &ViewContext<'_>, place: &ViewLocation) {
        let Ok(view) = place.view.parse::<ViewId>() else { return };
        context.commands.extend(AppCommand::select_insight_location(place));
        match view {
            // Goes to the step that the finding names, once it is found.
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
            let text = format!("{} rules checked", RULES.len());
            let rules: Vec<&str> = RULES.iter().map(|rule| rule.description).collect();
            ui.weak(text).on_hover_text(rules.join("\n"));
        });
        ui.add_space(spacing::XS);
    }
}
