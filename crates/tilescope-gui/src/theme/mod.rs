//! Every colour of the app, and how widgets look.

mod colours;
pub(crate) mod fonts;
mod style;
#[cfg(test)]
pub(crate) mod vision;

pub use colours::{DARK, DARK_SAFE, LIGHT, LIGHT_SAFE};
use egui::{Color32, Visuals};
use std::sync::atomic::{AtomicBool, Ordering};
pub use style::{install, install_styles};
use tilescope_analysis::tiles::Layer;
use tilescope_report::{Activity, Category, Region};

/// Colours of one theme.
#[derive(Debug)]
pub struct Palette {
    /// Ground of pages and tables.
    pub page: Color32,
    /// Ground of menus, bars and cards that stand off the page.
    pub raised: Color32,
    /// Ground of every second table row.
    pub stripe: Color32,
    /// Ground of rows and buttons under the pointer.
    pub hover: Color32,
    /// Ground of the chosen row, tab or menu entry.
    pub chosen: Color32,
    /// Lines between things.
    pub rule: Color32,
    /// Outlines of controls.
    pub outline: Color32,
    /// Text.
    pub text: Color32,
    /// Text that supports other text.
    pub weak_text: Color32,
    /// Links, the active tab, focus.
    pub accent: Color32,
    /// Something works or is there.
    pub good: Color32,
    /// Something needs attention.
    pub warning: Color32,
    /// Something failed.
    pub error: Color32,
    /// Ground of a trace lane.
    pub lane: Color32,
    /// Ground of the part of an overview that is not in the window.
    pub shade: Color32,
    /// Vertices.
    pub compute: Color32,
    /// Executions shown as one, and parents in the flame view.
    pub group: Color32,
    /// Exchange inside an IPU.
    pub internal_exchange: Color32,
    /// Exchange between IPUs.
    pub global_exchange: Color32,
    /// Sync of the tiles of an IPU.
    pub internal_sync: Color32,
    /// Sync with other IPUs or the host.
    pub external_sync: Color32,
    /// A whole stream copy.
    pub stream_copy: Color32,
    /// Handshake of a stream copy.
    pub stream_begin: Color32,
    /// Transfer of a stream copy with the host.
    pub stream_mid: Color32,
    /// Transfer of a stream copy with a remote buffer.
    pub remote_mid: Color32,
    /// End of a stream copy.
    pub stream_end: Color32,
    /// Steps of unknown kind.
    pub other: Color32,
    /// Bar of an engine run.
    pub run: Color32,
    /// Marks of iterations and slots.
    pub mark: Color32,
    /// Marks of forward passes.
    pub forward: Color32,
    /// Marks of backward passes.
    pub backward: Color32,
    /// Marks of weight updates.
    pub update: Color32,
    /// Outline of the selection.
    pub selection: Color32,
    /// Bars of tile balance.
    pub balance: Color32,
    /// Curve of memory.
    pub memory_line: Color32,
    /// Line of the memory a tile has.
    pub max_memory: Color32,
    /// Always-live memory.
    pub always_live: Color32,
    /// Not-always-live memory.
    pub not_always_live: Color32,
    /// Steps of a scale from little to much.
    pub heat: [Color32; 5],
    /// How far the idle share of a bar is mixed with the lane behind it.
    pub dimming: f32,
    /// Dark ink for labels on bars.
    pub ink: Color32,
    /// Light ink for labels on bars.
    pub chalk: Color32,
}

const fn rgb(hex: u32) -> Color32 {
    Color32::from_rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

/// Whether colours are those that everybody can tell apart: a matter of the whole program, because
/// pictures are made on many threads.
static SAFE: AtomicBool = AtomicBool::new(false);

/// Chooses the colours of everything that is painted from now on: those that everybody can tell
/// apart, or those that IPU profilers have always shown.
pub(crate) fn choose(safe: bool) {
    SAFE.store(safe, Ordering::Relaxed);
}

/// Whether colours are those that everybody can tell apart.
pub(crate) fn is_safe() -> bool {
    SAFE.load(Ordering::Relaxed)
}

impl Palette {
    /// The colours that go with the visuals of a `Ui`.
    pub(crate) fn of(visuals: &Visuals) -> &'static Self {
        Self::on(visuals.dark_mode)
    }

    /// The colours on a dark or on a light ground.
    pub(crate) fn on(dark: bool) -> &'static Self {
        match (dark, is_safe()) {
            (false, false) => &LIGHT,
            (true, false) => &DARK,
            (false, true) => &LIGHT_SAFE,
            (true, true) => &DARK_SAFE,
        }
    }

    /// What a pixel of a trace stands for.
    pub(crate) fn activity(&self, activity: Activity) -> Color32 {
        match activity {
            Activity::Compute => self.compute,
            Activity::InternalExchange => self.internal_exchange,
            Activity::GlobalExchange => self.global_exchange,
            Activity::Host => self.stream_mid,
            Activity::RemoteBuffer => self.remote_mid,
            Activity::Sync => self.external_sync,
            Activity::Other => self.other,
        }
    }

    /// Parts of tile memory.
    pub(crate) fn region(&self, region: Region) -> Color32 {
        match region {
            Region::NonInterleaved => rgb(0x5b8def),
            Region::Interleaved => rgb(0x3fb8a9),
            Region::Overflowed => self.error,
        }
    }

    /// Memory categories: data in reds and yellows, code in blues and greens, the rest greyer.
    pub(crate) fn category(&self, category: Category) -> Color32 {
        rgb(match category {
            Category::Variable => 0xef7f8b,
            Category::Constant => 0xf5b971,
            Category::HostExchangePacketHeader => 0xc9a27e,
            Category::GlobalExchangePacketHeader => 0xa98a6b,
            Category::Stack => 0xb9b2c9,
            Category::VertexInstanceState => 0xe8d36b,
            Category::CopyDescriptor => 0xd8c48f,
            Category::VectorListDescriptor => 0xc2b280,
            Category::VertexFieldData => 0xd4b13f,
            Category::ControlTable => 0x9d93c9,
            Category::ControlCode => 0x8f7fe0,
            Category::ControlId => 0x7d76a8,
            Category::VertexCode => 0x5b8def,
            Category::InternalExchangeCode => 0x63b7d6,
            Category::HostExchangeCode => 0xe0894f,
            Category::GlobalExchangeCode => 0x3f9a6a,
            Category::InstrumentationResults => 0x9aa3ad,
            Category::Message => 0xe0a0c8,
            Category::Rearrangement => 0xc98bd9,
            Category::SharedCodeStorage => 0x87a9c9,
            Category::SharedDataStorage => 0xc9b6a7,
            Category::Unknown => 0xb0b0b0,
        })
    }

    /// What curves over tiles show.
    pub(crate) fn layer(&self, layer: Layer) -> Color32 {
        match layer {
            Layer::Total => self.memory_line,
            Layer::Region(region) => self.region(region),
            Layer::Category(category) => self.category(category),
            Layer::AlwaysLive => self.always_live,
            Layer::NotAlwaysLive => self.not_always_live,
            Layer::Gaps => self.outline,
            Layer::Received | Layer::MessagesIn => rgb(0x3f8fd2),
            Layer::Sent | Layer::MessagesOut => rgb(0xe08a3c),
            Layer::Vertices | Layer::Cycles => self.compute,
            Layer::Nth(place) => self.nth(place.into()),
        }
    }

    /// Colours of several things beside each other; the last one stands for all the rest.
    pub(crate) fn nth(&self, place: usize) -> Color32 {
        const APART: [Category; 9] = [
            Category::Variable,
            Category::Constant,
            Category::VertexFieldData,
            Category::VertexCode,
            Category::HostExchangeCode,
            Category::GlobalExchangeCode,
            Category::Message,
            Category::ControlCode,
            Category::Unknown,
        ];
        self.category(APART[place.min(APART.len() - 1)])
    }

    /// A share of the largest value, 0 to 1: pale to strong on a light ground, dark to bright on a
    /// dark one. Brightness alone tells values apart.
    pub(crate) fn heat(&self, share: f32) -> Color32 {
        let share = share.clamp(0.0, 1.0) * (self.heat.len() - 1) as f32;
        let below = (share as usize).min(self.heat.len() - 2);
        mix(self.heat[below], self.heat[below + 1], share - below as f32)
    }

    /// The colour of the idle share of a bar.
    pub(crate) fn dimmed(&self, bar: Color32) -> Color32 {
        mix(bar, self.lane, self.dimming)
    }

    /// The ink that can be read on `ground`.
    pub(crate) fn ink_on(&self, ground: Color32) -> Color32 {
        let better_dark = contrast(self.ink, ground) >= contrast(self.chalk, ground);
        if better_dark { self.ink } else { self.chalk }
    }
}

/// `share` of the way from one colour to another, in gamma space.
pub(crate) fn mix(from: Color32, to: Color32, share: f32) -> Color32 {
    let channel = |a: u8, b: u8| (f32::from(a) + (f32::from(b) - f32::from(a)) * share + 0.5) as u8;
    Color32::from_rgb(
        channel(from.r(), to.r()),
        channel(from.g(), to.g()),
        channel(from.b(), to.b()),
    )
}

/// Contrast of two colours, 1 to 21, as the web's accessibility guidelines define it.
pub(crate) fn contrast(a: Color32, b: Color32) -> f32 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn luminance(colour: Color32) -> f32 {
    let [r, g, b, _] = egui::Rgba::from(colour).to_array();
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::vision::least_difference;

    const ALL: [&Palette; 4] = [&LIGHT, &DARK, &LIGHT_SAFE, &DARK_SAFE];

    #[test]
    fn safe_colours_are_told_apart_with_any_colour_vision() {
        let activities =
            |palette: &Palette| Activity::ALL.map(|activity| palette.activity(activity));
        for (safe, classic) in [(&LIGHT_SAFE, &LIGHT), (&DARK_SAFE, &DARK)] {
            let difference = least_difference(&activities(safe));
            assert!(difference >= 0.1, "{difference}");
            assert!(difference > 2.0 * least_difference(&activities(classic)));
            let live = [safe.always_live, safe.not_always_live];
            assert!(least_difference(&live) >= 0.2);
        }
    }

    #[test]
    fn text_can_be_read_in_both_themes() {
        for palette in ALL {
            let grounds =
                [palette.page, palette.raised, palette.stripe, palette.hover, palette.chosen];
            let texts = [palette.text, palette.weak_text, palette.accent];
            for (ground, text) in
                grounds.into_iter().flat_map(|g| texts.into_iter().map(move |t| (g, t)))
            {
                assert!(contrast(ground, text) >= 4.5, "{text:?} on {ground:?}");
            }
            for text in [palette.good, palette.warning, palette.error] {
                assert!(contrast(palette.page, text) >= 4.5, "{text:?}");
            }
        }
    }

    #[test]
    fn labels_can_be_read_on_every_bar() {
        for palette in ALL {
            let bars = [
                palette.compute,
                palette.group,
                palette.internal_exchange,
                palette.global_exchange,
                palette.internal_sync,
                palette.external_sync,
                palette.stream_copy,
                palette.stream_begin,
                palette.stream_mid,
                palette.remote_mid,
                palette.stream_end,
                palette.other,
                palette.run,
                palette.mark,
                palette.forward,
                palette.backward,
                palette.update,
            ];
            for bar in bars {
                for ground in [bar, palette.dimmed(bar)] {
                    assert!(contrast(palette.ink_on(ground), ground) >= 4.5, "{ground:?}");
                }
            }
        }
    }

    #[test]
    fn more_is_told_from_less_by_brightness_alone() {
        for palette in ALL {
            let scale: Vec<f32> =
                (0..=20u8).map(|i| luminance(palette.heat(f32::from(i) / 20.0))).collect();
            let rising = scale.windows(2).all(|pair| pair[0] < pair[1]);
            let falling = scale.windows(2).all(|pair| pair[0] > pair[1]);
            assert!(rising || falling, "{scale:?}");
        }
    }

    #[test]
    fn mixing_ends_at_both_colours() {
        let (a, b) = (rgb(0x102030), rgb(0xf0e0d0));
        assert_eq!((mix(a, b, 0.0), mix(a, b, 1.0)), (a, b));
    }
}
