//! The colours of bars in the trace.

use crate::theme::{ThemePalette, mix};
use egui::Color32;
use tilescope_analysis::trace::{LaneItem, LaneItemKind, NameTreeNodeId, ProgramLabels};
use tilescope_report::trace::{LaneStep, StepTotals};
use tilescope_report::units::{Cycles, ProgramId};
use tilescope_report::{HostCallPart, ProgramKind, StepActivity};

/// The colour of a fully used bar.
pub(crate) fn colour(palette: &ThemePalette, labels: &ProgramLabels, item: &LaneItem) -> Color32 {
    match &item.kind {
        LaneItemKind::Step(step) if waits_for_host_call(labels, step) => palette.stream_begin,
        LaneItemKind::Step(step) => {
            step_colour(palette, step.kind, step.activity, item.full_height)
        }
        LaneItemKind::Operation(_, several) => palette.activity(several.activity()),
        LaneItemKind::Syncs(_) if item.full_height => palette.external_sync,
        LaneItemKind::Syncs(_) => palette.internal_sync,
        LaneItemKind::Parent(node, _) => parent_colour(palette, labels, *node),
        LaneItemKind::Bucket(totals, _) => blended_activity_colour(palette, totals),
    }
}

/// Returns true if a step is a sync that waits for a part of a host call.
fn waits_for_host_call(labels: &ProgramLabels, step: &LaneStep) -> bool {
    let name = step.program.and_then(|program| labels.program_name(program));
    step.kind == ProgramKind::Sync && name.and_then(HostCallPart::of_sync).is_some()
}

/// The colour of a single step.
pub(crate) fn step_colour(
    palette: &ThemePalette,
    kind: ProgramKind,
    activity: StepActivity,
    external: bool,
) -> Color32 {
    match kind {
        ProgramKind::OnTileExecute => palette.compute,
        ProgramKind::DoExchange => palette.internal_exchange,
        ProgramKind::GlobalExchange => palette.global_exchange,
        ProgramKind::StreamCopyBegin => palette.stream_begin,
        ProgramKind::StreamCopyMid if activity == StepActivity::RemoteBuffer => palette.remote_mid,
        ProgramKind::StreamCopyMid => palette.stream_mid,
        ProgramKind::StreamCopyEnd => palette.stream_end,
        ProgramKind::Sync if external => palette.external_sync,
        ProgramKind::Sync => palette.internal_sync,
        ProgramKind::Sequence
        | ProgramKind::Repeat
        | ProgramKind::Switch
        | ProgramKind::Call
        | ProgramKind::WriteUndef
        | ProgramKind::Unknown => palette.other,
    }
}

fn parent_colour(palette: &ThemePalette, labels: &ProgramLabels, node: NameTreeNodeId) -> Color32 {
    let stream = labels.depth(node) == 0 && labels.node_name(node) == "StreamCopy";
    if stream { palette.stream_copy } else { palette.group }
}

/// The blend of activities by their shares, for a pixel that holds many steps.
pub(crate) fn blended_activity_colour(palette: &ThemePalette, totals: &StepTotals) -> Color32 {
    let mut colour: Option<(Color32, Cycles)> = None;
    for (activity, cycles) in totals.cycles.iter().filter(|(_, cycles)| *cycles > Cycles::ZERO) {
        let next = palette.activity(activity);
        colour = Some(match colour {
            None => (next, cycles),
            Some((mixed, so_far)) => {
                let share = cycles.0 as f32 / (so_far + cycles).0 as f32;
                (mix(mixed, next, share), so_far + cycles)
            }
        });
    }
    colour.map_or(palette.other, |(colour, _)| colour)
}

/// Returns true if a bar matches the search. A parent matches if its own name does.
pub(crate) fn matches(
    item: &LaneItem,
    labels: &ProgramLabels,
    wanted: &[ProgramId],
    text: &str,
) -> bool {
    let found = |program: Option<ProgramId>| {
        program.is_some_and(|program| wanted.binary_search(&program).is_ok())
    };
    match &item.kind {
        LaneItemKind::Step(_) | LaneItemKind::Bucket(..) => found(item.program()),
        LaneItemKind::Operation(node, _) | LaneItemKind::Parent(node, _) => {
            labels.node_path(*node).to_lowercase().contains(text)
        }
        LaneItemKind::Syncs(_) => "sync".contains(text),
    }
}
