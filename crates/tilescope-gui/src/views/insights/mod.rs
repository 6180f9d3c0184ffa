//! Insights: what is worth doing about this program, and where it shows.

mod charts;
mod largest;

use super::state::{State, kept, restored};
use super::{VIEWS, View, ViewContext, ViewInfo};
use crate::command::Command;
use crate::fonts::strong;
use crate::icons::Icon;
use crate::session::Selection;
use crate::theme::Palette;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::tables_height;
use crate::worker::BackgroundQuery;
use egui::{
    CentralPanel, Color32, CornerRadius, Frame, Label, Margin, Panel, RichText, ScrollArea, Stroke,
    Ui, vec2,
};
use largest::Largest;
use serde::{Deserialize, Serialize};
use tilescope_analysis::insights::{
    Facts, Finding, Gain, MemoryPicture, Place, RULES, Subject, memory_picture, ranked,
};
use tilescope_report::{Report, ReportError};

/// This view, for the list.
pub(crate) const VIEW: ViewInfo = ViewInfo {
    name: "insights",
    title: "Insights",
    help: include_str!("../../../../../assets/help/insights.md"),
    icon: Icon::Bulb,
    settings: &["wanted"],
    create: || Box::<Insights>::default(),
};

/// What the page shows.
struct Shown {
    findings: Vec<Finding>,
    picture: MemoryPicture,
}

/// Least width of findings beside each other, and the greatest of one.
const COLUMN: f32 = 900.0;
const WIDEST: f32 = 1280.0;

/// Which findings are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    #[default]
    All,
    Only(Subject),
}

/// State of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Insights {
    #[serde(skip)]
    shown: BackgroundQuery<(), Shown>,
    wanted: Wanted,
    largest: Largest,
}

impl View for Insights {
    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let report = context.opened.report.clone();
        let texts = QueryTexts {
            waiting: "Looking for what matters…",
            failed: "The report cannot be judged",
        };
        let found = self.shown.ask(ui.ctx(), context.workers, &(), move |()| shown(&report));
        found.show(ui, texts, |ui, shown| self.panels_ui(ui, context, shown));
    }

    fn state(&self) -> State {
        kept(self)
    }

    fn restore(&mut self, state: &State, _: &Selection) -> Vec<String> {
        let strange;
        (*self, strange) = restored(state);
        strange
    }
}

fn shown(report: &Report) -> Result<Shown, ReportError> {
    let facts = Facts::gather(report)?;
    Ok(Shown { findings: ranked(&facts), picture: memory_picture(&facts) })
}

impl Insights {
    fn panels_ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, shown: &Shown) {
        let frame = Frame::new().fill(Palette::of(ui.visuals()).page);
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

    fn page_ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, shown: &Shown) {
        ScrollArea::vertical().auto_shrink(false).id_salt("findings").show(ui, |ui| {
            Frame::new().inner_margin(Margin::symmetric(20, 14)).show(ui, |ui| {
                let columns = ((ui.available_width() / COLUMN) as usize).clamp(1, 3);
                ui.set_width(ui.available_width().min(columns as f32 * WIDEST));
                // In a narrow window the panels would push the findings off the screen.
                let wide = ui.available_width() > charts::ALL_BESIDE;
                if wide {
                    charts::memory_ui(ui, context, &shown.picture);
                    ui.add_space(10.0);
                }
                self.head_ui(ui, &shown.findings);
                let wanted = self.wanted;
                let holds = |finding: &&Finding| match wanted {
                    Wanted::All => true,
                    Wanted::Only(subject) => finding.subject == subject,
                };
                let found: Vec<&Finding> = shown.findings.iter().filter(holds).collect();
                for (row, findings) in (0..).zip(found.chunks(columns)) {
                    findings_ui(ui, context, findings, (1 + row * columns, columns));
                }
                if found.is_empty() {
                    let text = "No rule found anything worth a word in what was recorded.";
                    ui.label(RichText::new(text).color(Palette::of(ui.visuals()).weak_text));
                }
                if !wide {
                    ui.add_space(10.0);
                    charts::memory_ui(ui, context, &shown.picture);
                }
            });
        });
    }

    fn head_ui(&mut self, ui: &mut Ui, findings: &[Finding]) {
        ui.horizontal_wrapped(|ui| {
            ui.label(strong("What to look at").size(15.0));
            ui.add_space(8.0);
            let count = |subject: Subject| findings.iter().filter(|f| f.subject == subject).count();
            let choices = [
                (Wanted::All, format!("All {}", findings.len())),
                (Wanted::Only(Subject::Memory), format!("Memory {}", count(Subject::Memory))),
                (Wanted::Only(Subject::Time), format!("Time {}", count(Subject::Time))),
            ];
            for (wanted, text) in choices {
                if ui.selectable_label(self.wanted == wanted, text).clicked() {
                    self.wanted = wanted;
                }
            }
            let palette = Palette::of(ui.visuals());
            let text = format!("{} rules were tried", RULES.len());
            let rules: Vec<&str> = RULES.iter().map(|rule| rule.looks_for).collect();
            ui.label(RichText::new(text).color(palette.weak_text)).on_hover_text(rules.join("\n"));
        });
        ui.add_space(4.0);
    }
}

/// Findings beside each other, numbered from `first` on.
fn findings_ui(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    findings: &[&Finding],
    (first, columns): (usize, usize),
) {
    let one = |ui: &mut Ui, context: &mut ViewContext<'_>, number: usize| {
        let finding = findings[number - first];
        ui.push_id(number, |ui| finding_ui(ui, context, finding, number));
    };
    if columns == 1 {
        return (first..first + findings.len()).for_each(|number| one(ui, context, number));
    }
    ui.columns(columns, |columns| {
        for (number, ui) in (first..first + findings.len()).zip(columns) {
            one(ui, context, number);
        }
    });
}

/// One finding: number, what may be gained, the sentence, the advice, the link.
fn finding_ui(ui: &mut Ui, context: &mut ViewContext<'_>, finding: &Finding, number: usize) {
    let palette = Palette::of(ui.visuals());
    let colour = match (finding.gain, finding.subject) {
        (Gain::Everything, _) => palette.error,
        (_, Subject::Memory) => palette.not_always_live,
        (_, Subject::Time) => palette.compute,
    };
    let frame = Frame::new()
        .fill(palette.raised)
        .stroke(Stroke::new(1.0, palette.rule))
        .corner_radius(CornerRadius::same(6))
        .inner_margin(Margin { left: 16, right: 12, top: 8, bottom: 9 });
    let shown = frame.show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = 3.0;
        ui.horizontal_wrapped(|ui| {
            ui.label(strong(format!("{number}.")));
            let subject = match finding.subject {
                Subject::Memory => "Memory",
                Subject::Time => "Time",
            };
            ui.label(RichText::new(subject).color(palette.weak_text).size(12.0));
            let text =
                RichText::new(finding.gain.text()).size(12.0).color(gain_colour(palette, finding));
            let gain = ui.label(text);
            gain.on_hover_text("What may be gained at most. Gains of several findings overlap.");
            if let Some(view) = VIEWS.iter().find(|view| view.name == finding.place.view) {
                let link = ui.link(RichText::new(format!("Show in {}", view.title)).size(12.0));
                if link.clicked() {
                    go(context, &finding.place, view.name);
                }
            }
        });
        let sentence: String = finding.sentence.chars().take(600).collect();
        let label = Label::new(sentence).wrap().selectable(true);
        ui.add(label).on_hover_text(format!("How it is worked out: {}", finding.formula));
        let advice = RichText::new(&finding.advice).color(palette.weak_text);
        ui.add(Label::new(advice).wrap());
    });
    let rect = shown.response.rect;
    let edge = egui::Rect::from_min_size(rect.min + vec2(0.0, 4.0), vec2(4.0, rect.height() - 8.0));
    ui.painter().rect_filled(edge, CornerRadius::same(2), colour);
}

fn gain_colour(palette: &Palette, finding: &Finding) -> Color32 {
    match finding.gain {
        Gain::Everything => palette.error,
        Gain::Unknown => palette.weak_text,
        Gain::Time(_) | Gain::Memory(_) => palette.text,
    }
}

/// Chooses what a finding is about and shows it.
fn go(context: &mut ViewContext<'_>, place: &Place, view: &'static str) {
    context.commands.extend(Command::choose(place));
    context.commands.push(Command::ShowView(view));
}
