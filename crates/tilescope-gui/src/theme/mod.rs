//! The colours, fonts, text sizes and gaps of the app, and the style of widgets.

mod appearance;
#[cfg(test)]
pub(crate) mod colour_vision;
pub(crate) mod fonts;
mod palettes;
mod scale;
mod widget_style;

pub(crate) use appearance::{Appearance, ColourScheme, numbers};
use egui::{Color32, Ui};
pub use palettes::{DARK, DARK_SAFE, LIGHT, LIGHT_SAFE};
pub(crate) use scale::{spacing, text_size};
use tilescope_analysis::figures::category_apart;
use tilescope_analysis::limits::{CycleClass, WaterfallStep};
use tilescope_analysis::tile_curves::TileCurveLayer;
use tilescope_report::{MemoryCategory, MemoryRegion, StepActivity};
pub use widget_style::install;

/// The colours of one theme.
#[derive(Debug)]
pub struct ThemePalette {
    /// The background of pages and tables.
    pub page: Color32,
    /// The background of menus, bars and cards that stand out from the page.
    pub raised: Color32,
    /// The background of every second table row.
    pub stripe: Color32,
    /// The background of rows and buttons under the pointer.
    pub hover: Color32,
    /// The background of the selected row, tab or menu entry.
    pub chosen: Color32,
    /// Ground of rows of the same operation as the chosen row.
    pub related: Color32,
    pub rule: Color32,
    pub outline: Color32,
    /// Arrows of graphs.
    pub edge: Color32,
    pub text: Color32,
    /// The colour of secondary text.
    pub weak_text: Color32,
    /// The colour of links, the active tab and focus.
    pub accent: Color32,
    /// The colour of success or presence.
    pub good: Color32,
    pub warning: Color32,
    pub error: Color32,
    /// The background of a trace lane.
    pub lane: Color32,
    /// The background of the part of an overview outside the window.
    pub shade: Color32,
    pub compute: Color32,
    /// The colour of grouped executions, and of parents in the flame view.
    pub group: Color32,
    /// The colour of exchange inside an IPU.
    pub internal_exchange: Color32,
    pub global_exchange: Color32,
    /// The colour of syncs between the tiles of an IPU.
    pub internal_sync: Color32,
    /// The colour of syncs with other IPUs or the host.
    pub external_sync: Color32,
    /// The colour of a whole stream copy.
    pub stream_copy: Color32,
    /// Waiting for the host: the begin of a stream copy, and syncs for a host call.
    pub stream_begin: Color32,
    /// The colour of the transfer of a stream copy with the host.
    pub stream_mid: Color32,
    /// The colour of the transfer of a stream copy with a remote buffer.
    pub remote_mid: Color32,
    /// The colour of the end of a stream copy.
    pub stream_end: Color32,
    /// The colour of steps of unknown kind.
    pub other: Color32,
    /// The colour of the bar of an engine run.
    pub run: Color32,
    /// The colour of marks for iterations and slots.
    pub mark: Color32,
    /// The colour of marks for forward passes.
    pub forward: Color32,
    /// The colour of marks for backward passes.
    pub backward: Color32,
    /// The colour of marks for weight updates.
    pub update: Color32,
    /// The outline of the selection.
    pub selection: Color32,
    /// The colour of tile balance bars.
    pub balance: Color32,
    pub memory_line: Color32,
    /// The colour of the line for a tile's memory capacity.
    pub max_memory: Color32,
    pub always_live: Color32,
    pub not_always_live: Color32,
    /// The steps of a colour scale from low to high.
    pub heat: [Color32; 5],
    /// The colour mixed into the idle share of a bar.
    pub idle: Color32,
    /// The share of the mixture, 0 to 1.
    pub dimming: f32,
    /// The dark text colour for labels on bars.
    pub dark_label_text: Color32,
    /// The light text colour for labels on bars.
    pub light_label_text: Color32,
}

#[expect(clippy::disallowed_methods, reason = "where colours get their names")]
const fn rgb(hex: u32) -> Color32 {
    Color32::from_rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

impl ThemePalette {
    /// The colours of a `Ui`.
    pub(crate) fn for_ui(ui: &Ui) -> &'static Self {
        ColourScheme::of(ui).palette()
    }

    /// The colour of an activity in a trace.
    pub(crate) fn activity(&self, activity: StepActivity) -> Color32 {
        match activity {
            StepActivity::Compute => self.compute,
            StepActivity::InternalExchange => self.internal_exchange,
            StepActivity::GlobalExchange => self.global_exchange,
            StepActivity::Host => self.stream_mid,
            StepActivity::RemoteBuffer => self.remote_mid,
            StepActivity::Sync => self.external_sync,
            StepActivity::Other => self.other,
        }
    }

    /// The colour of a class of an operation's cycles.
    pub(crate) fn cycle_class(&self, class: CycleClass) -> Color32 {
        match class {
            CycleClass::Compute => self.compute,
            CycleClass::Balance => self.balance,
            CycleClass::Exchange => self.internal_exchange,
            CycleClass::Rearrangement => self.category(MemoryCategory::Rearrangement),
            CycleClass::SyncAndStart => self.external_sync,
            CycleClass::Host => self.stream_mid,
            CycleClass::HostWait => self.stream_begin,
            CycleClass::RemoteBuffers => self.remote_mid,
            CycleClass::Links => self.global_exchange,
            CycleClass::Other => self.other,
        }
    }

    /// The colour of a step of the run's waterfall.
    pub(crate) fn waterfall(&self, step: WaterfallStep) -> Color32 {
        match step {
            WaterfallStep::Idle => self.idle,
            WaterfallStep::SyncAndStart => self.cycle_class(CycleClass::SyncAndStart),
            WaterfallStep::Host => self.cycle_class(CycleClass::Host),
            WaterfallStep::HostWait => self.cycle_class(CycleClass::HostWait),
            WaterfallStep::RemoteBuffers => self.cycle_class(CycleClass::RemoteBuffers),
            WaterfallStep::Links => self.cycle_class(CycleClass::Links),
            WaterfallStep::Exchange => self.cycle_class(CycleClass::Exchange),
            WaterfallStep::Rearrangement => self.cycle_class(CycleClass::Rearrangement),
            WaterfallStep::Other => self.cycle_class(CycleClass::Other),
            WaterfallStep::Balance => self.cycle_class(CycleClass::Balance),
            WaterfallStep::Unknown
            | WaterfallStep::BelowPeak
            | WaterfallStep::Padding
            | WaterfallStep::SlowerEngine
            | WaterfallStep::Recomputation => self.cycle_class(CycleClass::Compute),
            WaterfallStep::Achieved => self.good,
        }
    }

    /// The colour of a region of tile memory.
    pub(crate) fn region(&self, region: MemoryRegion) -> Color32 {
        match region {
            MemoryRegion::NonInterleaved => rgb(0x5b8def),
            MemoryRegion::Interleaved => rgb(0x3fb8a9),
            MemoryRegion::Overflowed => self.error,
        }
    }

    /// The colour of a memory category: data in reds and yellows, code in blues and greens, the
    /// rest greyer.
    pub(crate) fn category(&self, category: MemoryCategory) -> Color32 {
        rgb(match category {
            MemoryCategory::Variable => 0xef7f8b,
            MemoryCategory::Constant => 0xf5b971,
            MemoryCategory::HostExchangePacketHeader => 0xc9a27e,
            MemoryCategory::GlobalExchangePacketHeader => 0xa98a6b,
            MemoryCategory::Stack => 0xb9b2c9,
            MemoryCategory::VertexInstanceState => 0xe8d36b,
            MemoryCategory::CopyDescriptor => 0xd8c48f,
            MemoryCategory::VectorListDescriptor => 0xc2b280,
            MemoryCategory::VertexFieldData => 0xd4b13f,
            MemoryCategory::ControlTable => 0x9d93c9,
            MemoryCategory::ControlCode => 0x8f7fe0,
            MemoryCategory::ControlId => 0x7d76a8,
            MemoryCategory::VertexCode => 0x5b8def,
            MemoryCategory::InternalExchangeCode => 0x63b7d6,
            MemoryCategory::HostExchangeCode => 0xe0894f,
            MemoryCategory::GlobalExchangeCode => 0x3f9a6a,
            MemoryCategory::InstrumentationResults => 0x9aa3ad,
            MemoryCategory::Message => 0xe0a0c8,
            MemoryCategory::Rearrangement => 0xc98bd9,
            MemoryCategory::SharedCodeStorage => 0x87a9c9,
            MemoryCategory::SharedDataStorage => 0xc9b6a7,
            MemoryCategory::Unknown => 0xb0b0b0,
        })
    }

    /// The colour of a curve over tiles.
    pub(crate) fn layer(&self, layer: TileCurveLayer) -> Color32 {
        match layer {
            TileCurveLayer::Total => self.memory_line,
            TileCurveLayer::Region(region) => self.region(region),
            TileCurveLayer::Category(category) => self.category(category),
            TileCurveLayer::AlwaysLive => self.always_live,
            TileCurveLayer::NotAlwaysLive => self.not_always_live,
            TileCurveLayer::Gaps => self.outline,
            TileCurveLayer::Received | TileCurveLayer::MessagesIn => rgb(0x3f8fd2),
            TileCurveLayer::Sent | TileCurveLayer::MessagesOut => rgb(0xe08a3c),
            TileCurveLayer::Vertices | TileCurveLayer::Cycles => self.compute,
            TileCurveLayer::Nth(place) => self.categorical_colour(place.into()),
        }
    }

    /// The colours of categories side by side. The last one stands for all others.
    pub(crate) fn categorical_colour(&self, place: usize) -> Color32 {
        self.category(category_apart(place))
    }

    /// The colour of a share of the largest value, 0 to 1: pale to strong on a light background,
    /// dark to bright on a dark one. Brightness alone distinguishes values.
    pub(crate) fn heat(&self, share: f32) -> Color32 {
        let share = share.clamp(0.0, 1.0) * (self.heat.len() - 1) as f32;
        let below = (share as usize).min(self.heat.len() - 2);
        mix(self.heat[below], self.heat[below + 1], share - below as f32)
    }

    /// The colour of the idle share of a bar.
    pub(crate) fn dimmed(&self, bar: Color32) -> Color32 {
        mix(bar, self.idle, self.dimming)
    }

    /// The text colour that is readable on `ground`.
    pub(crate) fn label_text_on(&self, ground: Color32) -> Color32 {
        let better_dark =
            contrast(self.dark_label_text, ground) >= contrast(self.light_label_text, ground);
        if better_dark { self.dark_label_text } else { self.light_label_text }
    }
}

/// The colour at `share` of the way from one colour to another, in gamma space.
#[expect(clippy::disallowed_methods, reason = "where colours are mixed")]
pub(crate) fn mix(from: Color32, to: Color32, share: f32) -> Color32 {
    let mix_channel =
        |a: u8, b: u8| (f32::from(a) + (f32::from(b) - f32::from(a)) * share + 0.5) as u8;
    Color32::from_rgb(
        mix_channel(from.r(), to.r()),
        mix_channel(from.g(), to.g()),
        mix_channel(from.b(), to.b()),
    )
}

/// The contrast of two colours, 1 to 21, as defined by the Web Content Accessibility Guidelines.
pub(crate) fn contrast(a: Color32, b: Color32) -> f32 {
    let a = luminance(a);
    let b = luminance(b);
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn luminance(colour: Color32) -> f32 {
    let [r, g, b, _] = egui::Rgba::from(colour).to_array();
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::colour_vision::{difference, least_difference};

    /// Lists the colours of a palette with the names of their fields.
    macro_rules! fields {
        ($palette:ident, $($name:ident)*) => { [$((stringify!($name), $palette.$name)),*] };
    }

    const ALL: [&ThemePalette; 4] = [&LIGHT, &DARK, &LIGHT_SAFE, &DARK_SAFE];

    #[test]
    fn safe_colours_are_distinct_with_any_colour_vision() {
        let activities =
            |palette: &ThemePalette| StepActivity::ALL.map(|activity| palette.activity(activity));
        for (safe, classic) in [(&LIGHT_SAFE, &LIGHT), (&DARK_SAFE, &DARK)] {
            let difference = least_difference(&activities(safe));
            assert!(difference >= 0.1, "{difference}");
            assert!(difference > 2.0 * least_difference(&activities(classic)));
            let live = [safe.always_live, safe.not_always_live];
            assert!(least_difference(&live) >= 0.2);
        }
    }

    #[test]
    fn waiting_for_the_host_is_not_taken_for_a_sync() {
        for palette in ALL {
            for sync in [palette.internal_sync, palette.external_sync] {
                let difference = difference(palette.stream_begin, sync);
                assert!(difference >= 0.08, "{sync:?}: {difference}");
            }
        }
    }

    #[test]
    fn text_can_be_read_in_both_themes() {
        for palette in ALL {
            let pages = [palette.page, palette.raised, palette.stripe];
            let rows = [palette.hover, palette.chosen, palette.related];
            let grounds = pages.into_iter().chain(rows);
            let texts = [palette.text, palette.weak_text, palette.accent];
            for (ground, text) in grounds.flat_map(|g| texts.into_iter().map(move |t| (g, t))) {
                assert!(contrast(ground, text) >= 4.5, "{text:?} on {ground:?}");
            }
            for ground in pages {
                assert!(contrast(ground, palette.edge) >= 3.0, "edges on {ground:?}");
            }
            for text in [palette.good, palette.warning, palette.error] {
                assert!(contrast(palette.page, text) >= 4.5, "{text:?}");
            }
        }
    }

    #[test]
    fn labels_are_readable_on_every_bar() {
        for palette in ALL {
            let bars = fields!(
                palette,
                compute group internal_exchange global_exchange internal_sync external_sync
                stream_copy stream_begin stream_mid remote_mid stream_end other run mark forward
                backward update
            );
            for (_, bar) in bars {
                for ground in [bar, palette.dimmed(bar)] {
                    assert!(contrast(palette.label_text_on(ground), ground) >= 4.5, "{ground:?}");
                }
            }
        }
    }

    /// The idle share of a bar differs from the busy share and from the empty background.
    #[test]
    fn tile_balance_is_readable_on_every_bar() {
        for palette in ALL {
            for activity in StepActivity::ALL {
                let bar = palette.activity(activity);
                let idle = palette.dimmed(bar);
                for other in [bar, palette.lane] {
                    let difference = difference(idle, other);
                    assert!(difference >= 0.08, "{activity:?}: {idle:?}, {other:?}: {difference}");
                }
            }
        }
    }

    #[test]
    fn brightness_alone_distinguishes_amounts() {
        for palette in ALL {
            let scale: Vec<f32> =
                (0..=20u8).map(|i| luminance(palette.heat(f32::from(i) / 20.0))).collect();
            let rising = scale.windows(2).all(|pair| pair[0] < pair[1]);
            let falling = scale.windows(2).all(|pair| pair[0] > pair[1]);
            assert!(rising || falling, "{scale:?}");
        }
    }

    /// Pages of reports are made without a window but use the same colours.
    #[test]
    fn report_pages_use_the_colours_of_the_window() {
        use tilescope_html::colours::{self, COLOURS};
        use tilescope_report::TrainingPass;
        for (palette, on_page) in [(&LIGHT, 0), (&DARK, 1)] {
            let on_page = |name: &str| {
                let colour = COLOURS.iter().find(|colour| colour.name == name);
                rgb(colour.map(|colour| [colour.light, colour.dark][on_page]).unwrap())
            };
            let named = fields!(
                palette,
                page raised stripe hover chosen rule outline text weak_text accent good warning
                error lane compute group internal_exchange global_exchange internal_sync
                external_sync stream_copy stream_begin stream_mid remote_mid stream_end other mark
                forward backward update selection balance memory_line max_memory always_live
                not_always_live idle
            );
            for (name, own) in named {
                assert_eq!(on_page(&name.replace('_', "-")), own, "{name}");
            }
            for (at, own) in palette.heat.into_iter().enumerate() {
                assert_eq!(on_page(&format!("heat-{at}")), own);
            }
            for of in StepActivity::ALL {
                assert_eq!(on_page(colours::activity(of)), palette.activity(of));
            }
            for of in CycleClass::ALL {
                assert_eq!(on_page(colours::cycle_class(of)), palette.cycle_class(of));
            }
            for of in WaterfallStep::ALL {
                assert_eq!(on_page(colours::waterfall(of)), palette.waterfall(of));
            }
            for of in MemoryCategory::ALL {
                assert_eq!(on_page(colours::category(of)), palette.category(of));
            }
            for of in MemoryRegion::ALL {
                assert_eq!(on_page(colours::region(of)), palette.region(of));
            }
            let passes = [palette.forward, palette.backward, palette.update];
            for (pass, own) in TrainingPass::ALL.into_iter().zip(passes) {
                assert_eq!(on_page(colours::pass(Some(pass))), own);
            }
        }
    }

    #[test]
    fn mixing_ends_at_both_colours() {
        let a = rgb(0x102030);
        let b = rgb(0xf0e0d0);
        assert_eq!((mix(a, b, 0.0), mix(a, b, 1.0)), (a, b));
    }
}
