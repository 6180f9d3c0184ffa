//! The blocks of each stage, to be dragged to a neighbouring stage.

use super::spec_draft::SpecAnswers;
use super::spec_keys::CompiledStage;
use super::stage_rows::{lists_blocks, moved, with_stages};
use crate::theme::{spacing, text_size};
use egui::{Button, CollapsingHeader, Frame, Margin, Popup, Response, RichText, Sense, Ui};
use std::collections::BTreeSet;

/// More blocks than these are not shown one by one.
const MAX_BLOCKS: usize = 96;

/// The number of a block, counted from the first stage on, while it is dragged.
#[derive(Clone, Copy)]
struct DraggedBlock(usize);

/// Shows the blocks of each stage. A block is dragged to a stage before or after its own, or moved
/// by its menu; the blocks between them move too. Returns the changed text.
pub(super) fn stage_blocks_ui(
    ui: &mut Ui,
    text: &str,
    answers: &SpecAnswers,
    stages: &[CompiledStage],
) -> Option<String> {
    let blocks: usize = stages.iter().map(|stage| stage.blocks.len()).sum();
    // Blocks that run on several IPUs stay there.
    let names: BTreeSet<&String> = stages.iter().flat_map(|stage| &stage.blocks).collect();
    let is_shared = names.len() < blocks || answers.number("options.tensor_parallel") > 1;
    if stages.len() < 2 || blocks > MAX_BLOCKS || is_shared || !lists_blocks(answers, stages) {
        return None;
    }
    let title = format!("{blocks} blocks in {} stages", stages.len());
    let shown = CollapsingHeader::new(title).id_salt("stage blocks").default_open(true);
    let shown = shown.show(ui, |ui| rows_ui(ui, stages));
    let changed = shown.body_returned.flatten()?;
    Some(with_stages(text, answers, &changed))
}

/// Shows a row for each stage. Returns the changed stages.
fn rows_ui(ui: &mut Ui, stages: &[CompiledStage]) -> Option<Vec<CompiledStage>> {
    let mut changed = None;
    let mut first = 0;
    for (at, stage) in stages.iter().enumerate() {
        let frame = Frame::new().inner_margin(Margin::symmetric(6, 3)).corner_radius(4);
        let (shown, dropped) = ui.dnd_drop_zone::<DraggedBlock, _>(frame, |ui| {
            ui.set_min_width(ui.available_width());
            row_ui(ui, stages, (at, first))
        });
        changed = shown.inner.or(changed);
        if let Some(block) = dropped {
            changed = with_block_in(stages, block.0, at).or(changed);
        }
        first += stage.blocks.len();
    }
    changed
}

/// Shows the IPU and the blocks of a stage. Its first block has the number `first`.
fn row_ui(
    ui: &mut Ui,
    stages: &[CompiledStage],
    (at, first): (usize, usize),
) -> Option<Vec<CompiledStage>> {
    let mut changed = None;
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = egui::vec2(spacing::XS, spacing::XXS);
        let stage = &stages[at];
        ui.label(RichText::new(format!("IPU {}", stage.ipu)).weak().size(text_size::SMALL));
        for (block, name) in (first..).zip(&stage.blocks) {
            let words = RichText::new(name).size(text_size::SMALL);
            let chip = ui.add(Button::new(words).small().sense(Sense::click_and_drag()));
            chip.dnd_set_drag_payload(DraggedBlock(block));
            let chip = chip.accessible_name(format!("Block {name} of stage {at}"));
            let chip = chip.on_hover_text("Drag it to the previous or the next stage");
            changed = menu_ui(&chip, stages, (at, block)).or(changed.take());
        }
    });
    changed
}

/// The menu of a block: the stages that it may move to.
fn menu_ui(
    chip: &Response,
    stages: &[CompiledStage],
    (at, block): (usize, usize),
) -> Option<Vec<CompiledStage>> {
    let menu = Popup::menu(chip).show(|ui| {
        let mut changed = None;
        for to in [at.checked_sub(1), Some(at + 1)].into_iter().flatten() {
            let Some(with_block) = with_block_in(stages, block, to) else { continue };
            if ui.button(format!("Move to stage {to}")).clicked() {
                changed = Some(with_block);
            }
        }
        if changed.is_none() && stages[at].blocks.len() == 1 {
            ui.weak("The only block of its stage");
        }
        changed
    });
    menu.and_then(|menu| menu.inner)
}

/// The stages with a block in the stage before or after its own, and the blocks between them, so
/// that their order stays; `None` if the stage is another one, or would leave none behind.
fn with_block_in(stages: &[CompiledStage], block: usize, to: usize) -> Option<Vec<CompiledStage>> {
    stages.get(to)?;
    let mut first = 0;
    let mut from = 0;
    while block >= first + stages.get(from)?.blocks.len() {
        first += stages[from].blocks.len();
        from += 1;
    }
    let behind = first + stages[from].blocks.len();
    if to == from + 1 && block > first {
        Some(moved(stages, to, block, behind))
    } else if to + 1 == from && block + 1 < behind {
        Some(moved(stages, from, block + 1, first))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(blocks: &[&[&str]]) -> Vec<CompiledStage> {
        let mut stages = Vec::new();
        for (ipu, blocks) in (0..).zip(blocks) {
            let blocks = blocks.iter().map(|block| (*block).to_owned()).collect();
            stages.push(CompiledStage { blocks, ipu });
        }
        stages
    }

    #[test]
    fn blocks_move_to_neighbours_in_order_and_leave_one_behind() {
        let before = stages(&[&["a", "b", "c"], &["d"], &["e", "f"]]);
        let later = stages(&[&["a"], &["b", "c", "d"], &["e", "f"]]);
        assert_eq!(with_block_in(&before, 1, 1), Some(later));
        let earlier = stages(&[&["a", "b", "c"], &["d", "e"], &["f"]]);
        assert_eq!(with_block_in(&before, 4, 1), Some(earlier));
        for (block, to) in [(0, 1), (3, 0), (3, 2), (5, 1), (4, 0), (9, 1)] {
            assert_eq!(with_block_in(&before, block, to), None, "{block} to {to}");
        }
    }
}
