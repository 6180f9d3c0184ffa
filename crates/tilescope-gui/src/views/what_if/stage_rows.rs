//! The rows for dividing a model into stages: automatically, by the annotations of its file, or by
//! a list of blocks. They change the spec's text.

use super::key_rows::{aside_ui, problem_mark_ui, row_ui, word_ui};
use super::model_file::ModelFile;
use super::spec_draft::SpecAnswers;
use super::spec_keys::CompiledStage;
use super::spec_text::{quoted, with_value, without_value};
use crate::widgets::icon_button_ui;
use crate::widgets::icons::Icon;
use egui::Ui;

const STAGES: &str = "options.stages";
const AUTO_STAGE: &str = "options.auto_stage";
const BLOCKS: &str = "model.blocks";
const IPUS: &str = "target.ipus";

/// The choice of stages by the annotations of the file.
const ANNOTATED: &str = "annotated";
/// The choice of stages listed in the spec.
const LISTED: &str = "listed";
/// The ways to divide a model without a list, as values of the key, and as text.
const AUTOMATIC: [(&str, &str); 3] = [
    ("balanced", "Balanced: the fastest split tested"),
    ("same_as_ipu", "The same number of blocks on each IPU"),
    ("auto_increment", "One stage per block"),
];

/// Returns true if a spec uses the stages that the file annotates.
fn are_annotated(answers: &SpecAnswers, file: Option<&ModelFile>) -> bool {
    let has_annotations = file.is_some_and(|file| file.annotated_ipus.is_some());
    has_annotations && ["auto", ANNOTATED].contains(&answers.word(BLOCKS).as_str())
}

/// The way in which a spec divides its model.
fn choice(answers: &SpecAnswers, file: Option<&ModelFile>) -> String {
    if stages_of(&answers.value(STAGES)).is_none_or(|stages| !stages.is_empty()) {
        return LISTED.to_owned();
    }
    if are_annotated(answers, file) {
        return ANNOTATED.to_owned();
    }
    answers.word(AUTO_STAGE)
}

/// Shows rows for the stages of a model. `compiled` holds those of the last successful check.
/// Returns the changed text.
pub(super) fn stages_ui(
    ui: &mut Ui,
    text: &str,
    answers: &SpecAnswers,
    file: Option<&ModelFile>,
    compiled: &[CompiledStage],
) -> Option<String> {
    let current = choice(answers, file);
    let mut choices = Vec::new();
    if file.is_some_and(|file| file.annotated_ipus.is_some()) {
        choices.push((ANNOTATED, "As annotated in the file"));
    }
    choices.extend(AUTOMATIC);
    // Without blocks there is nothing to list.
    if !compiled.is_empty() || current == LISTED {
        choices.push((LISTED, "Listed below"));
    }
    let about = answers.key(AUTO_STAGE).map_or("", |key| key.about.as_str());
    let picked = row_ui(ui, ("Stages", about), |ui| {
        let picked = word_ui(ui, (STAGES, "Stages"), &choices, &current);
        problem_mark_ui(ui, answers, STAGES);
        problem_mark_ui(ui, answers, AUTO_STAGE);
        picked
    });
    if let Some(picked) = picked {
        return Some(with_choice(text, answers, (file, compiled), &picked));
    }
    if current != LISTED {
        let names = compiled.iter().enumerate().map(|(at, stage)| stage_words(at, stage));
        let names: Vec<String> = names.collect();
        if names.len() > 1 {
            row_ui(ui, ("", ""), |ui| {
                aside_ui(ui, &names.join("  ")).on_hover_text(names.join("\n"))
            });
        }
        return None;
    }
    let listed = stages_of(&answers.value(STAGES))?;
    list_ui(ui, &listed, compiled).map(|stages| with_stages(text, answers, &stages))
}

/// `1: layer.4 to layer.7`
fn stage_words(at: usize, stage: &CompiledStage) -> String {
    match stage.blocks.as_slice() {
        [] => format!("{at}:"),
        [only] => format!("{at}: {only}"),
        [first, .., last] => format!("{at}: {first} to {last}"),
    }
}

/// The text with another way to divide the model.
fn with_choice(
    text: &str,
    answers: &SpecAnswers,
    (file, compiled): (Option<&ModelFile>, &[CompiledStage]),
    picked: &str,
) -> String {
    if picked == LISTED {
        return with_value(text, STAGES, &written(compiled));
    }
    let text = without_list(text, answers);
    if picked == ANNOTATED {
        let text = with_value(&text, BLOCKS, &quoted("auto"));
        return file.map_or(text.clone(), |file| with_annotated_ipus(&text, answers, file));
    }
    let text = with_blocks_of_nodes(&text, answers, file);
    with_value(&text, AUTO_STAGE, &quoted(picked))
}

fn without_list(text: &str, answers: &SpecAnswers) -> String {
    let is_listed = answers.values.get(STAGES).is_some_and(|stages| stages != "[]");
    if is_listed { with_value(text, STAGES, "[]") } else { text.to_owned() }
}

/// The text for a model whose annotations are ignored.
fn with_blocks_of_nodes(text: &str, answers: &SpecAnswers, file: Option<&ModelFile>) -> String {
    if are_annotated(answers, file) {
        with_value(text, BLOCKS, &quoted("nodes"))
    } else {
        text.to_owned()
    }
}

/// The text for another number of IPUs: blocks are split evenly over them, and a pipeline with this
/// number of stages is filled.
pub(super) fn with_balanced_stages(text: &str, answers: &SpecAnswers, ipus: u64) -> String {
    let file = answers.model.as_ref().and_then(|model| model.sized.answer()).map(|file| &**file);
    let text = with_blocks_of_nodes(&without_list(text, answers), answers, file);
    let text = with_ipus_for(&text, answers, ipus, ipus as usize);
    with_value(&text, AUTO_STAGE, &quoted("balanced"))
}

/// The text for the IPUs that the annotations of the file use; one IPU without annotations.
pub(super) fn with_annotated_ipus(text: &str, answers: &SpecAnswers, file: &ModelFile) -> String {
    let ipus = u64::from(file.annotated_ipus.unwrap_or(1));
    with_ipus_for(text, answers, ipus, file.annotated_stages.unwrap_or(1))
}

/// The text for this number of IPUs and stages, with enough micro-batches to fill a pipeline of
/// them.
pub(super) fn with_ipus_for(text: &str, answers: &SpecAnswers, ipus: u64, stages: usize) -> String {
    let text = with_value(text, IPUS, &ipus.to_string());
    let trains = answers.value("model.training") == "true";
    with_filled_pipeline(&text, answers, stages, trains)
}

/// The text with at least the micro-batches that fill a pipeline with this number of stages. For
/// training they are those of an accumulation, as PopTorch requires; otherwise those of a call,
/// without accumulation.
pub(super) fn with_filled_pipeline(
    text: &str,
    answers: &SpecAnswers,
    stages: usize,
    trains: bool,
) -> String {
    const ITERATIONS: &str = "options.device_iterations";
    const ACCUMULATION: &str = "options.gradient_accumulation";
    let text = if trains { text.to_owned() } else { without_value(text, ACCUMULATION) };
    if stages < 2 || answers.word("options.execution") != "pipelined" {
        return text;
    }
    let stages = stages as u64;
    let iterations = answers.number(ITERATIONS);
    let accumulation = answers.number(ACCUMULATION);
    if !trains {
        if iterations < stages {
            return with_value(&text, ITERATIONS, &stages.to_string());
        }
        return text;
    }
    let fewest = 2 * stages - 1;
    // Without accumulation the pipeline is never flushed, and a call has to fill it.
    if accumulation >= fewest || accumulation == 1 && iterations >= fewest {
        return text;
    }
    with_value(&text, ACCUMULATION, &fewest.to_string())
}

/// The text with a list of stages, on the number of IPUs that they need.
pub(super) fn with_stages(text: &str, answers: &SpecAnswers, stages: &[CompiledStage]) -> String {
    let needed = stages.iter().map(|stage| u64::from(stage.ipu) + 1).max().unwrap_or(1);
    let text = with_value(text, STAGES, &written(stages));
    let left = stages.chunk_by(|one, next| one.ipu == next.ipu).count();
    with_ipus_for(&text, answers, needed, left)
}

/// The stages in the form of a spec. A stage runs on the IPU of its position unless it names
/// another.
fn written(stages: &[CompiledStage]) -> String {
    let mut written = Vec::new();
    for (at, stage) in stages.iter().enumerate() {
        let blocks: Vec<String> = stage.blocks.iter().map(|block| quoted(block)).collect();
        let blocks = format!("[{}]", blocks.join(", "));
        written.push(if stage.ipu as usize == at {
            blocks
        } else {
            format!("{{ blocks = {blocks}, ipu = {} }}", stage.ipu)
        });
    }
    format!("[{}]", written.join(", "))
}

/// The stages that a value lists; `None` if it lists none or is invalid.
fn stages_of(value: &str) -> Option<Vec<CompiledStage>> {
    let table: toml::Table = format!("stages = {value}").parse().ok()?;
    let mut stages = Vec::new();
    for (at, value) in table.get("stages")?.as_array()?.iter().enumerate() {
        let own = u32::try_from(at).ok();
        let (blocks, ipu) = match value {
            toml::Value::Table(table) => {
                let ipu = table.get("ipu").map(|ipu| u32::try_from(ipu.as_integer()?).ok());
                (block_names(table.get("blocks")?)?, ipu.unwrap_or(own)?)
            }
            other => (block_names(other)?, own?),
        };
        stages.push(CompiledStage { blocks, ipu });
    }
    Some(stages)
}

fn block_names(value: &toml::Value) -> Option<Vec<String>> {
    match value {
        toml::Value::String(name) => Some(vec![name.clone()]),
        toml::Value::Array(names) => {
            names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
        }
        _ => None,
    }
}

/// Shows a row for each listed stage with its first block. Returns the changed stages.
fn list_ui(
    ui: &mut Ui,
    listed: &[CompiledStage],
    compiled: &[CompiledStage],
) -> Option<Vec<CompiledStage>> {
    let blocks = all_blocks(listed);
    if !compiled.is_empty() && blocks != all_blocks(compiled) {
        let words = "The list names single operations or leaves blocks out: edit options.stages in \
                     the spec.";
        row_ui(ui, ("", ""), |ui| ui.weak(words));
        return None;
    }
    let mut changed = None;
    let mut start = 0;
    for (at, stage) in listed.iter().enumerate() {
        row_ui(ui, ("", ""), |ui| {
            ui.label(format!("Stage {at} on IPU {} from", stage.ipu));
            let here = blocks.get(start).cloned().unwrap_or_default();
            if at == 0 {
                ui.label(here);
                return;
            }
            // Each stage keeps at least one block.
            let first = start - listed[at - 1].blocks.len() + 1;
            let could_be = blocks.get(first..start + stage.blocks.len()).unwrap_or_default();
            let choices: Vec<(&str, &str)> =
                could_be.iter().map(|block| (block.as_str(), block.as_str())).collect();
            let name = format!("First block of stage {at}");
            if let Some(picked) = word_ui(ui, (&name, &name), &choices, &here)
                && let Some(begin) = blocks.iter().position(|block| *block == picked)
            {
                changed = Some(moved(listed, at, begin, start));
            }
            let words = format!("Merge stage {at} with the previous one");
            if icon_button_ui(ui, Icon::Close, &words).clicked() {
                changed = Some(joined(listed, at));
            }
        });
        start += stage.blocks.len();
    }
    let largest = listed.iter().enumerate().max_by_key(|(_, stage)| stage.blocks.len());
    if let Some((at, stage)) = largest.filter(|(_, stage)| stage.blocks.len() > 1) {
        row_ui(ui, ("", ""), |ui| {
            let hint = format!("Split stage {at} ({} blocks) in two", stage.blocks.len());
            if ui.button("Another stage").on_hover_text(hint).clicked() {
                changed = Some(cut(listed, at));
            }
        });
    }
    changed
}

/// True if the stages of a spec are made of whole blocks: it lists no single operations, and leaves
/// no block out.
pub(super) fn lists_blocks(answers: &SpecAnswers, compiled: &[CompiledStage]) -> bool {
    match stages_of(&answers.value(STAGES)) {
        Some(listed) => listed.is_empty() || all_blocks(&listed) == all_blocks(compiled),
        None => false,
    }
}

fn all_blocks(stages: &[CompiledStage]) -> Vec<String> {
    stages.iter().flat_map(|stage| stage.blocks.clone()).collect()
}

/// The stages with another first block for the stage at `at`.
pub(super) fn moved(
    stages: &[CompiledStage],
    at: usize,
    begin: usize,
    now: usize,
) -> Vec<CompiledStage> {
    let mut stages = stages.to_vec();
    let before = stages[at - 1].blocks.len();
    let mut both = std::mem::take(&mut stages[at - 1].blocks);
    both.append(&mut stages[at].blocks);
    let behind = both.split_off((before + begin).saturating_sub(now));
    stages[at - 1].blocks = both;
    stages[at].blocks = behind;
    stages
}

/// The stages with the one at `at` merged into its predecessor. Later stages move up.
fn joined(stages: &[CompiledStage], at: usize) -> Vec<CompiledStage> {
    let mut stages = stages.to_vec();
    let mut gone = stages.remove(at);
    stages[at - 1].blocks.append(&mut gone.blocks);
    renumbered(stages)
}

/// The stages with the one at `at` split in two. Later stages move down.
fn cut(stages: &[CompiledStage], at: usize) -> Vec<CompiledStage> {
    let mut stages = stages.to_vec();
    let half = stages[at].blocks.len().div_ceil(2);
    let behind = stages[at].blocks.split_off(half);
    stages.insert(at + 1, CompiledStage { blocks: behind, ipu: 0 });
    renumbered(stages)
}

/// The stages with consecutive IPUs, one for each.
fn renumbered(mut stages: Vec<CompiledStage>) -> Vec<CompiledStage> {
    (0..).zip(&mut stages).for_each(|(ipu, stage)| stage.ipu = ipu);
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(text: &str) -> Vec<CompiledStage> {
        stages_of(text).unwrap()
    }

    #[test]
    fn lists_are_read_as_they_are_written() {
        let text = r#"[["a", "b"], { blocks = ["c"], ipu = 0 }, ["d \"e\""]]"#;
        assert_eq!(written(&stages(text)), text);
        assert_eq!(written(&stages(r#"["a", { blocks = "b" }]"#)), r#"[["a"], ["b"]]"#);
        assert!(stages("[]").is_empty());
        for wrong in ["[7]", "\"a\"", "[{ ipu = 1 }]", "[{ blocks = [\"a\"], ipu = -1 }]", "["] {
            assert!(stages_of(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn no_block_is_lost_when_stages_change() {
        let listed = stages(r#"[["a", "b", "c"], ["d"], ["e", "f"]]"#);
        let text = |stages: Vec<CompiledStage>| written(&stages);
        assert_eq!(text(moved(&listed, 1, 1, 3)), r#"[["a"], ["b", "c", "d"], ["e", "f"]]"#);
        assert_eq!(text(moved(&listed, 2, 5, 4)), r#"[["a", "b", "c"], ["d", "e"], ["f"]]"#);
        assert_eq!(text(joined(&listed, 2)), r#"[["a", "b", "c"], ["d", "e", "f"]]"#);
        assert_eq!(text(cut(&listed, 0)), r#"[["a", "b"], ["c"], ["d"], ["e", "f"]]"#);
    }
}
