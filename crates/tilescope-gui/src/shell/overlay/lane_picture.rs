//! Small pictures on help pages: lanes of letters in a block of Markdown, drawn as bars.

use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::node_ui;
use egui::accesskit::Role;
use egui::{Align2, Color32, CornerRadius, FontId, Rect, Sense, Ui, pos2, vec2};

/// The first line of a block.
const START: &str = "```lanes\n";
/// The height of a lane, without the gap below it.
const LANE: f32 = 18.0;
/// The width of a cell.
const CELL: f32 = 34.0;
/// The minimum width of the names.
const NAMES: f32 = 84.0;
/// The cell of a lane that does nothing.
const NOTHING: &str = ".";

/// A letter of cells; the rest of a cell is a number.
struct CellLetter {
    letter: &'static str,
    meaning: &'static str,
    colour: fn(&ThemePalette) -> Color32,
}

const fn letter(
    letter: &'static str,
    meaning: &'static str,
    colour: fn(&ThemePalette) -> Color32,
) -> CellLetter {
    CellLetter { letter, meaning, colour }
}

const LETTERS: [CellLetter; 13] = [
    letter("F", "forward pass", |palette| palette.forward),
    letter("B", "backward pass", |palette| palette.backward),
    letter("U", "weight update", |palette| palette.update),
    letter("R", "forward pass again", |palette| palette.related),
    letter("C", "compute", |palette| palette.compute),
    letter("X", "exchange", |palette| palette.internal_exchange),
    letter("G", "exchange between IPUs", |palette| palette.global_exchange),
    letter("S", "sync", |palette| palette.external_sync),
    letter("A", "copy into order", |palette| palette.group),
    letter("H", "host copy", |palette| palette.stream_mid),
    letter("L", "host loads samples", |palette| palette.stream_begin),
    letter("M", "streaming memory", |palette| palette.remote_mid),
    letter("K", "code", |palette| palette.not_always_live),
];

/// A picture as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LanePicture<'a> {
    /// The name and the cells of each lane.
    lanes: Vec<(&'a str, Vec<&'a str>)>,
}

impl<'a> LanePicture<'a> {
    /// Reads a block of Markdown; `None` if it is not a picture.
    pub(super) fn read(block: &'a str) -> Option<Self> {
        let text = block.trim().strip_prefix(START)?.strip_suffix("```")?;
        let mut lanes = Vec::new();
        for line in text.lines() {
            let (name, cells) = line.split_once('|')?;
            lanes.push((name.trim(), cells.split_whitespace().collect()));
        }
        Some(Self { lanes })
    }

    /// The letters in it and their meaning: `F forward pass, B backward pass`.
    fn legend(&self) -> String {
        let mut words = Vec::new();
        for CellLetter { letter, meaning, .. } in &LETTERS {
            let mut cells = self.lanes.iter().flat_map(|(_, cells)| cells);
            if cells.any(|cell| cell.starts_with(letter)) {
                words.push(format!("{letter} {meaning}"));
            }
        }
        words.join(", ")
    }

    /// The picture as text, for those who do not see it.
    fn words(&self) -> String {
        let lanes = self.lanes.iter().map(|(name, cells)| format!("{name}: {}", cells.join(" ")));
        lanes.collect::<Vec<_>>().join("; ")
    }

    pub(super) fn ui(&self, ui: &mut Ui) {
        let palette = ThemePalette::for_ui(ui);
        let font = FontId::proportional(text_size::SMALL);
        let measure = |name: &str| {
            let line = ui.painter().layout_no_wrap(name.to_owned(), font.clone(), palette.text);
            line.size().x + 10.0
        };
        let names = self.lanes.iter().map(|(name, _)| measure(name)).fold(NAMES, f32::max);
        let most = self.lanes.iter().map(|(_, cells)| cells.len()).max().unwrap_or_default();
        let cell = ((ui.available_width() - names) / most.max(1) as f32).min(CELL);
        let size = vec2(names + cell * most as f32, (LANE + 3.0) * self.lanes.len() as f32);
        let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
        node_ui(ui, response.id.with("lanes"), rect, Role::Image, || {
            ("Lanes".to_owned(), self.words())
        });
        for (at, (name, cells)) in self.lanes.iter().enumerate() {
            let top = rect.top() + at as f32 * (LANE + 3.0);
            let lane = Rect::from_min_size(
                pos2(rect.left() + names, top),
                vec2(cell * cells.len() as f32, LANE),
            );
            ui.painter().rect_filled(lane, CornerRadius::ZERO, palette.lane);
            let place = pos2(rect.left(), lane.center().y);
            ui.painter().text(place, Align2::LEFT_CENTER, name, font.clone(), palette.weak_text);
            for (at, text) in cells.iter().enumerate().filter(|(_, text)| **text != NOTHING) {
                let Some(of) = LETTERS.iter().find(|of| text.starts_with(of.letter)) else {
                    continue;
                };
                let left = lane.left() + at as f32 * cell;
                let bar = Rect::from_min_size(pos2(left, top), vec2(cell - 1.0, LANE));
                let ground = (of.colour)(palette);
                ui.painter().rect_filled(bar, CornerRadius::same(2), ground);
                let ink = palette.label_text_on(ground);
                ui.painter().text(bar.center(), Align2::CENTER_CENTER, text, font.clone(), ink);
            }
        }
        ui.add_space(spacing::XXS);
        ui.weak(self.legend());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::mechanism_page::{MECHANISMS, MechanismPage};

    #[test]
    fn every_mechanism_has_a_picture_of_known_letters() {
        for page in MECHANISMS.map(MechanismPage::text) {
            let pictures: Vec<LanePicture<'_>> =
                page.split("\n\n").filter_map(LanePicture::read).collect();
            assert!(!pictures.is_empty(), "no picture: {page}");
            for picture in pictures {
                assert!(!picture.lanes.is_empty(), "{page}");
                for (name, cells) in &picture.lanes {
                    assert!(!name.is_empty() && cells.len() <= 16, "{name}: {cells:?}");
                    for cell in cells {
                        let is_known = LETTERS.iter().any(|of| {
                            let number = cell.strip_prefix(of.letter);
                            number.is_some_and(|number| {
                                number.bytes().all(|digit| digit.is_ascii_digit())
                            })
                        });
                        assert!(is_known || *cell == NOTHING, "{name}: {cell}");
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_are_read_as_they_are_written() {
        let picture = LanePicture::read("```lanes\nIPU 0 | F0 . B0\nIPU 1 | .  S\n```");
        let lanes = vec![("IPU 0", vec!["F0", ".", "B0"]), ("IPU 1", vec![".", "S"])];
        assert_eq!(picture, Some(LanePicture { lanes }));
        assert_eq!(picture.unwrap().legend(), "F forward pass, B backward pass, S sync");
        assert_eq!(LanePicture::read("```\nF\n```"), None);
        assert_eq!(LanePicture::read("F0"), None);
    }
}
