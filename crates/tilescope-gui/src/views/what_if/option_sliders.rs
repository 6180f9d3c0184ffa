//! The controls of the most common options.

use super::key_rows::{MAX_NUMBER, aside_ui, key_row_ui, problem_mark_ui, row_ui};
use super::model_file::BATCH;
use super::spec_draft::SpecAnswers;
use super::spec_keys::{KeySlider, SpecKeyInfo};
use super::spec_text::with_value;
use super::stage_rows::with_balanced_stages;
use egui::{DragValue, Slider, Ui, vec2};

/// The width of the number beside a slider, with the gap before it.
const NUMBER: f32 = 62.0;

/// The largest micro-batch of the slider.
const LARGEST_BATCH: f64 = 1024.0;

/// The choices between the micro-batch and the sliders: key and name.
const CHOICES: [(&str, &str); 3] = [
    ("model.precision", "Precision"),
    ("options.recomputation", "Recomputation"),
    ("target.name", "Chip or system"),
];

/// Shows the controls: micro-batch, precision, recomputation and chip, then the sliders and check
/// boxes. Returns the changed text.
pub(super) fn options_ui(ui: &mut Ui, text: &str, answers: &SpecAnswers) -> Option<String> {
    let mut changed = None;
    // The rows of a model file include its batch.
    if let (Some(key), None) = (answers.key(BATCH), &answers.model)
        && let Some(number) = key_slider_ui(ui, answers, key, ("Micro-batch", LARGEST_BATCH))
    {
        changed = Some(with_value(text, BATCH, &number));
    }
    for (path, name) in CHOICES {
        if let Some(value) = key_row_ui(ui, answers, path, name) {
            changed = Some(with_value(text, path, &value));
        }
    }
    if let Some(key) = answers.key("target.ipus")
        && let Some(ipus) = stages_slider_ui(ui, answers, key)
    {
        changed = Some(with_balanced_stages(text, answers, ipus));
    }
    for key in answers.keys() {
        let Some(KeySlider { label, reach }) = &key.slider else { continue };
        if let Some(number) = key_slider_ui(ui, answers, key, (label, *reach)) {
            changed = Some(with_value(text, &key.path, &number));
        }
    }
    ui.horizontal_wrapped(|ui| {
        for key in answers.keys() {
            let Some(label) = &key.check_box else { continue };
            let mut ticked = answers.value(&key.path) == "true";
            if ui.checkbox(&mut ticked, label.as_str()).on_hover_text(&key.about).changed() {
                changed = Some(with_value(text, &key.path, &ticked.to_string()));
            }
        }
    });
    changed
}

/// Sets the width of a slider so that it fits in a narrow panel with its number.
fn fit_slider(ui: &mut Ui) {
    ui.spacing_mut().slider_width = (ui.available_width() - NUMBER).clamp(30.0, 160.0);
}

/// Shows the slider for the number of stages, which are powers of two. There are at most as many
/// as the model has blocks. Returns the new number of IPUs.
fn stages_slider_ui(ui: &mut Ui, answers: &SpecAnswers, key: &SpecKeyInfo) -> Option<u64> {
    let power = answers.number(&key.path).max(1).ilog2();
    let mut most = key.max.map_or(6, |max| (max as u64).max(1).ilog2());
    let mut hint = "IPUs of one replica. Blocks are split over them to make the longest stage as \
                    short as possible"
        .to_owned();
    if let Some(blocks) = answers.blocks {
        let lanes = answers.number("options.tensor_parallel").max(1);
        most = most.min((blocks as u64 * lanes).max(1).ilog2());
        hint += &format!(". At most one stage for each of the {blocks} blocks of the model");
    }
    row_ui(ui, ("Stages", &hint), |ui| {
        fit_slider(ui);
        let mut wanted = power;
        let range = 0..=most.max(power);
        let slider = ui.add(Slider::new(&mut wanted, range).show_value(false));
        slider.on_hover_text(&hint).accessible_name("Stages");
        let wanted = wanted.min(most.max(power));
        let of = answers.blocks.map_or_else(String::new, |blocks| format!(" of {blocks}"));
        aside_ui(ui, &format!("{}{of}", 1u64 << wanted));
        problem_mark_ui(ui, answers, &key.path);
        if wanted == power { None } else { Some(1 << wanted) }
    })
}

/// Shows the slider of a key, with its number beside it. Returns the new number.
fn key_slider_ui(
    ui: &mut Ui,
    answers: &SpecAnswers,
    key: &SpecKeyInfo,
    (label, reach): (&str, f64),
) -> Option<String> {
    row_ui(ui, (label, &key.about), |ui| {
        fit_slider(ui);
        let is_real = key.kind == "real";
        let least = key.min.unwrap_or(0.0);
        // A slider moves into its range by itself, which must not replace a value that the check
        // refuses.
        let before = answers.value(&key.path).parse::<f64>().unwrap_or(least).max(least);
        let mut number = before;
        let most = key.max.unwrap_or(reach).min(reach);
        let slider = Slider::new(&mut number, least..=most.max(before)).show_value(false);
        let slider = if is_real {
            slider.step_by(0.01)
        } else {
            slider.integer().logarithmic(most > 1000.0)
        };
        ui.add(slider).on_hover_text(&key.about).accessible_name(label);
        // The check judges the value in the text of the spec.
        let typed = DragValue::new(&mut number)
            .range(least..=key.max.unwrap_or(MAX_NUMBER as f64))
            .clamp_existing_to_range(false)
            .update_while_editing(false)
            .speed(if is_real { 0.01 } else { 0.2 })
            .max_decimals(if is_real { 2 } else { 0 });
        let size = vec2(NUMBER - 8.0, ui.spacing().interact_size.y);
        ui.add_sized(size, typed).accessible_name(label);
        problem_mark_ui(ui, answers, &key.path);
        if number == before { None } else { Some(number.to_string()) }
    })
}
