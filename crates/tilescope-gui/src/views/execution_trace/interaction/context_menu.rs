//! The context menu of the lanes: copies the clicked item, filters to it, or shows it in another
//! view.

use crate::model::command::AppCommand;
use crate::model::view_id::ViewId;
use crate::views::execution_trace::events::TraceEvent;
use crate::views::execution_trace::interaction::pointer::LanePointerInput;
use crate::views::execution_trace::layers::lanes::LaneHitTarget;
use crate::views::execution_trace::layers::path::PathHitTarget;
use crate::views::execution_trace::selected_bar;
use egui::Response;
use tilescope_analysis::trace::LaneItemKind;
use tilescope_report::units::{CycleRange, ProgramId};

/// The item below the pointer when the menu was opened.
#[derive(Clone, Debug)]
pub(crate) struct LaneMenuTarget {
    name: String,
    range: CycleRange,
    /// The name of its steps, for the filter.
    filter: Option<String>,
    /// The program of a bar.
    program: Option<ProgramId>,
    micro_batch: Option<u64>,
}

impl LaneMenuTarget {
    /// The mark or bar below the pointer; `None` if there is none.
    pub(crate) fn of(input: &LanePointerInput<'_>) -> Option<Self> {
        if let Some(mark) = &input.mark {
            let shown = mark.bar.shown;
            return Some(Self {
                name: shown.words.clone(),
                range: shown.block.range,
                filter: None,
                program: None,
                micro_batch: shown.block.micro_batch(),
            });
        }
        let on_path = input.path.as_ref().and_then(|hit| match hit.target {
            PathHitTarget::Bar(item, _) => Some(item),
            PathHitTarget::Column(_) => None,
        });
        let on_lane = input.hit.as_ref().and_then(|hit| match hit.target {
            LaneHitTarget::Bar(item) => Some(item),
            LaneHitTarget::Column(_) => None,
        });
        let item = on_path.or(on_lane)?;
        let labels = &input.prepared.labels;
        let title = selected_bar::title(item, labels);
        let (program, name) = match &item.kind {
            LaneItemKind::Step(step) => {
                let name = step.program.and_then(|program| labels.program_name(program));
                (step.program, name.map(str::to_owned).filter(|name| !name.is_empty()))
            }
            LaneItemKind::Operation(..) | LaneItemKind::Parent(..) => (None, Some(title.clone())),
            LaneItemKind::Syncs(_) | LaneItemKind::Bucket(..) => (None, None),
        };
        let range = item.range;
        let micro_batch = None;
        Some(Self {
            name: name.clone().unwrap_or(title),
            filter: name,
            range,
            program,
            micro_batch,
        })
    }
}

/// The choice made in the menu.
#[derive(Default)]
pub(crate) struct LaneMenuChoice {
    pub events: Vec<TraceEvent>,
    pub commands: Vec<AppCommand>,
}

/// Shows the menu of `target` where the lanes were clicked with the right button.
pub(crate) fn menu_ui(response: &Response, target: &LaneMenuTarget) -> LaneMenuChoice {
    let mut choice = LaneMenuChoice::default();
    response.context_menu(|ui| {
        let LaneMenuTarget { name, range, filter, program, micro_batch } = target;
        if ui.button("Zoom to it").clicked() {
            choice.events.push(TraceEvent::ZoomTo(*range));
        }
        if let Some(number) = micro_batch
            && ui.button("Follow its micro-batch").clicked()
        {
            choice.events.push(TraceEvent::FollowMicroBatch(Some(*number)));
        }
        if let Some(program) = program {
            for view in [ViewId::ProgramTree, ViewId::Liveness, ViewId::ExchangeCode] {
                if ui.button(format!("Show in {}", view.title())).clicked() {
                    choice.commands.push(AppCommand::SelectProgram(Some(*program)));
                    choice.commands.push(AppCommand::ShowView(view));
                }
            }
        }
        ui.separator();
        if ui.button("Copy name").clicked() {
            ui.ctx().copy_text(name.clone());
        }
        if ui.button("Copy cycles").clicked() {
            ui.ctx().copy_text(format!("{}..{}", range.start.0, range.end.0));
        }
        if let Some(filter) = filter
            && ui.button("Filter to this name").clicked()
        {
            choice.events.push(TraceEvent::SetFilter(filter.clone()));
        }
    });
    choice
}
