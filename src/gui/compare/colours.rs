//! Colours of the two sides.

use egui::{Color32, Visuals};

/// Colours of what one side shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideColours {
    /// The source.
    pub source: Color32,
    /// The target.
    pub target: Color32,
}

const fn rgb(hex: u32) -> Color32 {
    Color32::from_rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

/// Red and blue.
pub fn sides(visuals: &Visuals) -> SideColours {
    if visuals.dark_mode {
        SideColours { source: rgb(0xf2_6d_6d), target: rgb(0x72_83_f7) }
    } else {
        SideColours { source: rgb(0xc9_3a_3a), target: rgb(0x3f_52_d9) }
    }
}

/// What stands on what is always live: violet and green.
pub fn upper(visuals: &Visuals) -> SideColours {
    if visuals.dark_mode {
        SideColours { source: rgb(0xa9_9c_f5), target: rgb(0x58_c0_7a) }
    } else {
        SideColours { source: rgb(0x7e_71_ed), target: rgb(0x2e_9e_55) }
    }
}

/// What is always live: red and orange.
pub fn lower(visuals: &Visuals) -> SideColours {
    SideColours { target: rgb(0xe8_8a_2e), ..sides(visuals) }
}
