//! The colours of the two sides.

use super::ComparisonSide;
use crate::theme::{ColourScheme, text_size};
use crate::widgets::elided_text::without_middle;
use crate::widgets::legend_ui;
use egui::{Color32, FontId, Ui};

/// The largest width of a report's name in a toolbar, in points. A tooltip shows the whole name.
const NAMES: f32 = 190.0;

/// The colours of one kind of data for both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SideColours {
    pub source: Color32,
    pub target: Color32,
}

const fn pair(source: u32, target: u32) -> SideColours {
    SideColours { source: rgb(source), target: rgb(target) }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the colours of the two sides, distinguishable with every colour vision"
)]
const fn rgb(hex: u32) -> Color32 {
    Color32::from_rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

/// The colours of a theme: for the two sides, for not-always-live memory and for always-live
/// memory.
struct ComparisonPalette {
    sides: SideColours,
    not_always_live: SideColours,
    always_live: SideColours,
}

/// The usual colours of IPU profilers: red and blue, violet and green, red and orange.
const LIGHT: ComparisonPalette = ComparisonPalette {
    sides: pair(0xc9_3a_3a, 0x3f_52_d9),
    not_always_live: pair(0x7e_71_ed, 0x2e_9e_55),
    always_live: pair(0xc9_3a_3a, 0xe8_8a_2e),
};
const DARK: ComparisonPalette = ComparisonPalette {
    sides: pair(0xf2_6d_6d, 0x72_83_f7),
    not_always_live: pair(0xa9_9c_f5, 0x58_c0_7a),
    always_live: pair(0xf2_6d_6d, 0xe8_8a_2e),
};
/// Distinguishable with any colour vision: shades of orange for the source, of blue for the target.
const LIGHT_SAFE: ComparisonPalette = ComparisonPalette {
    sides: pair(0xd5_5e_00, 0x00_72_b2),
    not_always_live: pair(0xd5_5e_00, 0x00_72_b2),
    always_live: pair(0x7a_2f_00, 0x56_b4_e9),
};
const DARK_SAFE: ComparisonPalette = ComparisonPalette {
    sides: pair(0xf0_80_30, 0x4a_7d_ff),
    not_always_live: pair(0xf0_80_30, 0x4a_7d_ff),
    always_live: pair(0xff_d0_a0, 0xb8_d8_ff),
};

fn colours(ui: &Ui) -> &'static ComparisonPalette {
    ColourScheme::of(ui).choose([&LIGHT, &DARK, &LIGHT_SAFE, &DARK_SAFE])
}

/// The colours of the two sides.
pub(crate) fn side_colours(ui: &Ui) -> SideColours {
    colours(ui).sides
}

/// The colours of memory that is not always live.
pub(crate) fn not_always_live_colours(ui: &Ui) -> SideColours {
    colours(ui).not_always_live
}

/// The colours of always-live memory.
pub(crate) fn always_live_colours(ui: &Ui) -> SideColours {
    colours(ui).always_live
}

/// The colour and name of a report.
pub(crate) fn side_ui(ui: &mut Ui, side: ComparisonSide, name: &str) {
    let sides = side_colours(ui);
    let (colour, text) = match side {
        ComparisonSide::Source => (sides.source, format!("Source: {name}")),
        ComparisonSide::Target => (sides.target, format!("Target: {name}")),
    };
    let font = FontId::proportional(text_size::SMALL);
    let ink = ui.visuals().text_color();
    match without_middle(ui.painter(), &text, font, ink, NAMES) {
        Some(short) => {
            ui.scope(|ui| legend_ui(ui, colour, &short)).response.on_hover_text(text);
        }
        None => legend_ui(ui, colour, &text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::colour_vision::least_difference;

    #[test]
    fn safe_sides_are_distinct_with_any_colour_vision() {
        for colours in [LIGHT_SAFE, DARK_SAFE] {
            let ComparisonPalette { sides, not_always_live: upper, always_live: lower } = colours;
            assert!(least_difference(&[sides.source, sides.target]) >= 0.2);
            let curves = [upper.source, upper.target, lower.source, lower.target];
            let difference = least_difference(&curves);
            assert!(difference >= 0.1, "{difference}");
        }
    }
}
