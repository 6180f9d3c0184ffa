//! The program tree view: the parts of the compiled program, and the purpose of each node.

mod details;
mod tree_rows;

use super::trace_jump::TraceJump;
use super::{ReportView, ViewContext, ViewDescriptor};
use crate::model::command::AppCommand;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::background_query::{BackgroundQuery, QueryState, Versioned};
use crate::widgets::bottom_panel::{BottomPanel, LOW, closed_ui};
use crate::widgets::elided_text::with_difference;
use crate::widgets::icons::Icon;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::toolbar::{ToolbarBuilder, toolbar_ui, weak_ui};
use crate::widgets::{central_ui, empty_state_ui, find_ui, tables_height};
use details::ProgramDetailsPanel;
use egui::{Button, Frame, Panel, RichText, ScrollArea, TextStyle, Ui};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use tilescope_analysis::program_tree::{
    ProgramTreeGroup, ProgramTreeRow, ProgramTreeTotals, costs, find, groups, is_stream_copy,
    label, rows, tally, with_folded_copies,
};
use tilescope_report::units::{ProgramId, StepId, grouped};
use tilescope_report::{ProgramKind, ProgramNodeTable, Report, ReportError};

/// The entry of this view in the list of views.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::ProgramTree,
    help: include_str!("../../../../../assets/help/program-tree.md"),
    icon: Icon::Tree,
    settings: &["ids"],
    create: || Box::<ProgramTreeView>::default(),
};

/// The width below which the programs are a drop-down, not a list.
const NARROW: f32 = 540.0;

/// All programs, and their trees.
struct ProgramForest {
    programs: Arc<ProgramNodeTable>,
    groups: Vec<ProgramTreeGroup>,
    /// The number of nodes of each kind in each group.
    tallies: Vec<Vec<(ProgramKind, u64)>>,
    costs: ProgramTreeTotals,
}

/// The query key of the visible lines: a group, the folded nodes, and the filter.
#[derive(Clone, PartialEq)]
struct VisibleProgramRowsKey {
    group: usize,
    folded: Arc<BTreeSet<ProgramId>>,
    filter: String,
    /// A selected stream copy, which is not folded into others.
    copy: Option<ProgramId>,
}

/// The lines, and the indices of those that match the filter.
struct VisibleProgramRows {
    rows: Vec<ProgramTreeRow>,
    matches: Vec<usize>,
}

/// The group of a program, and the ancestors to unfold.
type ProgramTreePath = Option<(usize, Vec<ProgramId>)>;

/// The state of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct ProgramTreeView {
    #[serde(skip)]
    forest: BackgroundQuery<(), ProgramForest>,
    #[serde(skip)]
    lines: BackgroundQuery<VisibleProgramRowsKey, VisibleProgramRows>,
    group: usize,
    #[serde(with = "crate::model::view_state::shared")]
    folded: Arc<BTreeSet<ProgramId>>,
    filter: String,
    ids: bool,
    /// The program that was last made visible.
    #[serde(skip)]
    seen: Option<ProgramId>,
    #[serde(skip)]
    found: BackgroundQuery<ProgramId, ProgramTreePath>,
    /// The step whose program was last selected.
    #[serde(skip)]
    seen_step: Option<StepId>,
    #[serde(skip)]
    step: BackgroundQuery<StepId, Option<ProgramId>>,
    /// The program to scroll to, once its line exists.
    #[serde(skip)]
    wanted: Option<ProgramId>,
    /// The program whose line takes the focus.
    #[serde(skip)]
    focus: Option<ProgramId>,
    #[serde(skip)]
    details: ProgramDetailsPanel,
    panel: BottomPanel,
    #[serde(skip)]
    jump: TraceJump,
}

impl ReportView for ProgramTreeView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let report = context.opened.report.clone();
        let texts =
            QueryTexts { waiting: "Reading the program…", failed: "The program cannot be read" };
        let found = self.forest.ask(ui.ctx(), context.workers, &(), move |()| forest(&report));
        found.show(ui, texts, |ui, forest| match forest.groups.len() {
            0 => {
                let sentence = "This report has no tree: it does not record the compiled program.";
                empty_state_ui(ui, "No program recorded", sentence);
            }
            groups => {
                self.group = self.group.min(groups - 1);
                self.forest_ui(ui, context, forest);
            }
        });
    }

    fn clear_selection_commands(&self) -> Vec<AppCommand> {
        vec![AppCommand::SelectProgram(None)]
    }

    fn notice_restored(&mut self, selection: &Selection) {
        self.seen = selection.program;
        self.wanted = selection.program;
        self.seen_step = selection.step.map(|step| step.step);
    }
}

fn forest(report: &Report) -> Result<ProgramForest, ReportError> {
    let programs = report.executed_program_nodes()?;
    let groups = groups(&programs);
    let tallies = groups.iter().map(|group| tally(&programs, group.root)).collect();
    Ok(ProgramForest { programs, groups, tallies, costs: costs(report)? })
}

impl ProgramTreeView {
    fn forest_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        forest: &Versioned<ProgramForest>,
    ) {
        self.follow(ui, context, forest);
        let lines = self.lines(ui, context, forest);
        let narrow = ui.available_width() < NARROW;
        toolbar_ui(ui, VIEW.id.name(), |bar| {
            if narrow {
                self.group_ui(bar, forest);
            }
            self.controls_ui(bar, context, lines.answer().map(|lines| &**lines));
        });
        self.panels_ui(ui, context, forest, &lines);
        self.jump.update(ui.ctx(), context);
    }

    /// Shows a selection made elsewhere: the program of a step, or a program.
    fn follow(&mut self, ui: &Ui, context: &ViewContext<'_>, forest: &Versioned<ProgramForest>) {
        let step = context.selection.step.map(|step| step.step);
        if let Some(step) = step.filter(|_| step != self.seen_step) {
            let asked = context.ask(ui, &mut self.step, &step, |report, step| {
                Ok(report.step(*step)?.and_then(|step| step.program))
            });
            if let QueryState::Fresh(program) = asked {
                self.seen_step = Some(step);
                if program.is_some() && *program != context.selection.program {
                    context.commands.push(AppCommand::SelectProgram(*program));
                }
            }
        }
        let Some(program) = context.selection.program.filter(|id| self.seen != Some(*id)) else {
            return;
        };
        let shared = forest.clone();
        let found = self.found.compute(ui.ctx(), context.workers, &program, move |id| {
            find(&shared.programs, &shared.groups, *id)
        });
        if let QueryState::Fresh(found) = found {
            self.seen = Some(program);
            if let Some((group, above)) = found.as_ref() {
                self.group = *group;
                let folded = Arc::make_mut(&mut self.folded);
                folded.retain(|id| !above.contains(id));
                self.wanted = Some(forest.programs.body(program));
            }
        }
    }

    fn lines(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        forest: &Versioned<ProgramForest>,
    ) -> QueryState<VisibleProgramRows> {
        let key = VisibleProgramRowsKey {
            group: self.group,
            folded: self.folded.clone(),
            filter: self.filter.trim().to_lowercase(),
            copy: context.selection.program.filter(|id| {
                forest.programs.get(*id).is_some_and(|program| is_stream_copy(program.kind))
            }),
        };
        let forest = forest.clone();
        self.lines.compute(ui.ctx(), context.workers, &key, move |key| lines(&forest, key))
    }

    fn controls_ui(
        &mut self,
        bar: &mut ToolbarBuilder<'_>,
        context: &ViewContext<'_>,
        lines: Option<&VisibleProgramRows>,
    ) {
        let found = lines.filter(|_| !self.filter.trim().is_empty());
        let mut next = false;
        bar.add_box("Search for steps", |ui| {
            let hint = ("Search for steps", 200.0);
            let shown = find_ui(ui, &mut self.filter, hint, found.is_some());
            next = shown.1;
            shown.0
        });
        if let Some(lines) = found {
            if next {
                self.select_next_match(context, lines);
            }
            let text = format!("{} found", grouped(lines.matches.len() as u64));
            bar.add("Found", |ui| weak_ui(ui, text));
        }
        bar.checkbox("Show ids", &mut self.ids, "Repeat (Id: 12)");
        bar.align_right();
        if bar.button("Unfold all", "Show every level") {
            self.folded = Arc::default();
        }
        if bar.button("Fold all", "Show the first level only")
            && let Some(lines) = lines
        {
            let inner = lines.rows.iter().filter(|row| row.parent && row.depth > 0);
            let folded: BTreeSet<ProgramId> = inner.map(|row| row.id).collect();
            self.folded = Arc::new(folded);
        }
    }

    /// The choice of the visible program.
    fn group_ui(&mut self, bar: &mut ToolbarBuilder<'_>, forest: &ProgramForest) {
        let titles = forest.groups.iter().map(|group| group.title.as_str()).enumerate();
        let titles: Vec<(usize, &str)> = titles.collect();
        if let Some(group) = bar.choice("Program", &titles, self.group) {
            self.group = group;
        }
    }

    /// Selects the next matching line after the selected one.
    fn select_next_match(&mut self, context: &ViewContext<'_>, lines: &VisibleProgramRows) {
        let chosen = context.selection.program;
        let at = lines.rows.iter().position(|row| Some(row.id) == chosen);
        let later = lines.matches.iter().find(|place| at.is_none_or(|at| **place > at));
        let next = later.or(lines.matches.first()).and_then(|place| lines.rows.get(*place));
        if let Some(row) = next {
            self.choose(context, row.id);
            self.wanted = Some(row.id);
        }
    }

    fn choose(&mut self, context: &ViewContext<'_>, program: ProgramId) {
        self.seen = Some(program);
        context.commands.push(AppCommand::SelectProgram(Some(program)));
    }

    fn panels_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        forest: &ProgramForest,
        lines: &QueryState<VisibleProgramRows>,
    ) {
        let frame = Frame::new().fill(ThemePalette::for_ui(ui).page);
        let chosen = context.selection.program.is_some();
        let room = (tables_height(ui, 0.36), LOW);
        let details = &mut self.details;
        let jump = &mut self.jump;
        let tally = forest.tallies.get(self.group).map_or(&[][..], Vec::as_slice);
        self.panel = self.panel.ui_when(chosen, ui, "program details", room, |ui, open| {
            if *open {
                details.ui(ui, context, &forest.programs, tally, jump);
            } else {
                closed_ui(ui, "Select a step in the program tree to see details.");
            }
        });
        if ui.available_width() >= NARROW {
            Panel::left("program groups").default_size(220.0).frame(frame).show(ui, |ui| {
                ui.take_available_space();
                self.groups_ui(ui, forest);
            });
        }
        let texts =
            QueryTexts { waiting: "Laying out the tree…", failed: "The tree cannot be laid out" };
        central_ui(ui, |ui| {
            lines.show(ui, texts, |ui, lines| self.lines_ui(ui, context, forest, lines));
        });
    }

    fn groups_ui(&mut self, ui: &mut Ui, forest: &ProgramForest) {
        let palette = ThemePalette::for_ui(ui);
        ScrollArea::vertical().auto_shrink(false).id_salt("groups").show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = spacing::XXS;
            let titles: Vec<&str> =
                forest.groups.iter().map(|group| group.title.as_str()).collect();
            for (function, title) in [(false, "Control programs"), (true, "Functions")] {
                let own =
                    || forest.groups.iter().enumerate().filter(|(_, g)| g.function == function);
                if own().next().is_none() {
                    continue;
                }
                ui.add_space(spacing::M);
                ui.horizontal(|ui| {
                    ui.add_space(spacing::M);
                    ui.label(RichText::new(title).weak().size(text_size::SMALL));
                });
                for (index, group) in own() {
                    ui.horizontal(|ui| {
                        ui.add_space(spacing::M);
                        let room = ui.available_width() - 2.0 * ui.spacing().button_padding.x;
                        let look = (TextStyle::Button.resolve(ui.style()), palette.text);
                        let title = &group.title;
                        // Looked up only if visible: there may be thousands.
                        let mut short = None;
                        if ui.is_rect_visible(ui.available_rect_before_wrap()) {
                            short = with_difference(ui.painter(), title, &titles, look, room);
                        }
                        let shown = short.as_ref().unwrap_or(title);
                        let row = ui.add(Button::selectable(self.group == index, shown));
                        let row = row.accessible_name(title);
                        let row = if short.is_some() { row.on_hover_text(title) } else { row };
                        if row.clicked() {
                            self.group = index;
                        }
                    });
                }
            }
        });
    }

    fn lines_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        forest: &ProgramForest,
        lines: &VisibleProgramRows,
    ) {
        let chosen = context.selection.program;
        let operation = chosen.and_then(|id| forest.programs.get(id)).and_then(|p| p.operation);
        // A repeated call of outlined code has no line of its own.
        let chosen = chosen.map(|id| forest.programs.body(id));
        let look = tree_rows::ProgramTreeRowsInput {
            programs: &forest.programs,
            chosen,
            operation,
            folded: &self.folded,
            filter: self.filter.trim().to_lowercase(),
            ids: self.ids,
            focus: self.focus.take(),
            costs: &forest.costs,
            is_narrow: ui.available_width() < tree_rows::NARROW_TREE,
        };
        let place = self.wanted.and_then(|id| lines.rows.iter().position(|row| row.id == id));
        if place.is_some() {
            self.wanted = None;
        }
        match tree_rows::lines_ui(ui, &lines.rows, &look, place) {
            Some(tree_rows::ProgramTreeRowEvent::ToggleFold(id)) => {
                let folded = Arc::make_mut(&mut self.folded);
                if !folded.remove(&id) {
                    folded.insert(id);
                }
            }
            Some(tree_rows::ProgramTreeRowEvent::Select(id)) => self.choose(context, id),
            Some(tree_rows::ProgramTreeRowEvent::MoveFocus(id)) => {
                self.choose(context, id);
                (self.wanted, self.focus) = (Some(id), Some(id));
            }
            Some(tree_rows::ProgramTreeRowEvent::Show(id, ViewId::ExecutionTrace)) => {
                self.choose(context, id);
                self.jump.start(id);
            }
            Some(tree_rows::ProgramTreeRowEvent::Show(id, view)) => {
                self.choose(context, id);
                context.commands.push(AppCommand::ShowView(view));
            }
            Some(tree_rows::ProgramTreeRowEvent::Search(name)) => self.filter = name,
            None => {}
        }
    }
}

fn lines(forest: &ProgramForest, key: &VisibleProgramRowsKey) -> VisibleProgramRows {
    let root = forest.groups.get(key.group).and_then(|group| group.root);
    let rows = rows(&forest.programs, root, &key.folded);
    // A search must show each match separately.
    let rows = match key.filter.as_str() {
        "" => with_folded_copies(&forest.programs, rows, &key.folded, key.copy),
        _ => rows,
    };
    let matches = match key.filter.as_str() {
        "" => Vec::new(),
        _ => {
            let mut matching = Vec::new();
            for (place, row) in rows.iter().enumerate() {
                let program = forest.programs.get(row.id);
                if program
                    .is_some_and(|program| label(program).to_lowercase().contains(&key.filter))
                {
                    matching.push(place);
                }
            }
            matching
        }
    };
    VisibleProgramRows { rows, matches }
}
