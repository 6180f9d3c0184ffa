//! The controls of the most common options.

use super::spec_draft::SpecAnswers;
use super::spec_keys::KeySlider;
use super::spec_text::with_value;
use super::stage_rows::with_balanced_stages;
use egui::{Slider, Ui};

/// The width of the number and the name of a slider.
const BESIDE_SLIDER: f32 = 190.0;

/// Shows the sliders. Returns the changed text.
pub(super) fn sliders_ui(ui: &mut Ui, text: &str, answers: &SpecAnswers) -> Option<String> {
    let mut changed = None;
    // The number and the label beside it must fit in a narrow panel.
    ui.spacing_mut().slider_width = (ui.available_width() - BESIDE_SLIDER).clamp(30.0, 100.0);
    if let Some(key) = answers.key("target.ipus") {
        let ipus = answers.number(&key.path).max(1);
        let mut power = ipus.ilog2();
        let most = key.max.map_or(6, |max| (max as u64).max(1).ilog2());
        let slider = Slider::new(&mut power, 0..=most)
            .custom_formatter(|power, _| (1u64 << power as u32).to_string())
            .text("Stages");
        let hint = "IPUs of one replica. Blocks are split over them to make the longest stage as \
                    short as possible";
        if ui.add(slider).on_hover_text(hint).changed() {
            changed = Some(with_balanced_stages(text, answers, 1 << power));
        }
    }
    for key in answers.keys() {
        let Some(KeySlider { label, reach }) = &key.slider else { continue };
        let mut number = answers.value(&key.path).parse::<f64>().unwrap_or(0.0);
        let least = key.min.unwrap_or(0.0);
        let most = key.max.unwrap_or(*reach).min(*reach);
        let range = least..=most.max(number);
        let slider = Slider::new(&mut number, range).text(label.as_str());
        let slider = if key.kind == "real" {
            slider.step_by(0.01)
        } else {
            slider.integer().logarithmic(most > 1000.0)
        };
        if ui.add(slider).on_hover_text(&key.about).changed() {
            changed = Some(with_value(text, &key.path, &number.to_string()));
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
