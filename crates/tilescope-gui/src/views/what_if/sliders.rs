//! The options that are changed most, without typing.

use super::keys::SpecKeyInfo;
use super::spec_text::{values, with_value};
use egui::{Slider, Ui};

/// Keys with a slider: words, and the largest value it reaches where the key takes more.
const SLIDERS: [(&str, &str, f64); 5] = [
    ("options.gradient_accumulation", "Accumulation", 4096.0),
    ("options.device_iterations", "Device iterations", 1024.0),
    ("options.replication_factor", "Replicas", 64.0),
    ("options.num_io_tiles", "I/O tiles", 512.0),
    ("options.available_memory_proportion", "Memory proportion", 1.0),
];

/// Shows the sliders; the changed text.
pub(crate) fn sliders_ui(ui: &mut Ui, text: &str, keys: &[SpecKeyInfo]) -> Option<String> {
    let set = values(text);
    let value = |key: &SpecKeyInfo| -> String {
        set.get(&key.path).cloned().unwrap_or_else(|| key.default.clone())
    };
    let mut changed = None;
    let find = |path: &str| keys.iter().find(|key| key.path == path);
    if let Some(key) = find("target.ipus") {
        let ipus = value(key).parse::<u64>().unwrap_or(1).max(1);
        let mut power = ipus.ilog2();
        let most = key.max.map_or(6, |max| (max as u64).max(1).ilog2());
        let slider = Slider::new(&mut power, 0..=most)
            .custom_formatter(|power, _| (1u64 << power as u32).to_string())
            .text("Stages");
        let hint = "IPUs of one replica; blocks are dealt over them so that the longest stage is \
                    shortest";
        if ui.add(slider).on_hover_text(hint).changed() {
            changed = Some(with_pipeline_stages(text, 1 << power));
        }
    }
    for (path, words, reach) in SLIDERS {
        let Some(key) = find(path) else { continue };
        let mut number = value(key).parse::<f64>().unwrap_or(0.0);
        let (least, most) = (key.min.unwrap_or(0.0), key.max.unwrap_or(reach).min(reach));
        let range = least..=most.max(number);
        let slider = Slider::new(&mut number, range).text(words);
        let slider = if key.kind == "real" {
            slider.step_by(0.01)
        } else {
            slider.integer().logarithmic(most > 1000.0)
        };
        if ui.add(slider).on_hover_text(&key.about).changed() {
            changed = Some(with_value(text, path, &number.to_string()));
        }
    }
    ui.horizontal_wrapped(|ui| {
        for key in keys.iter().filter(|key| key.path.ends_with(".on_chip")) {
            let what = key.path.trim_end_matches(".on_chip").rsplit('.').next().unwrap_or("");
            let mut on_chip = value(key) == "true";
            let words = format!("{} on chip", what.replace('_', " "));
            if ui.checkbox(&mut on_chip, words).on_hover_text(&key.about).changed() {
                changed = Some(with_value(text, &key.path, &on_chip.to_string()));
            }
        }
    });
    changed
}

/// The text for another number of stages: as many IPUs, blocks split evenly.
fn with_pipeline_stages(text: &str, ipus: u64) -> String {
    let mut text = with_value(text, "target.ipus", &ipus.to_string());
    let listed = values(&text).get("options.stages").is_some_and(|stages| stages != "[]");
    if listed {
        text = with_value(&text, "options.stages", "[]");
    }
    with_value(&text, "options.auto_stage", "\"balanced\"")
}
