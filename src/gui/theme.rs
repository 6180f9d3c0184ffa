//! Every colour of the app, and how widgets look.

use super::fonts;
use super::prefs::PaletteChoice;
use crate::analysis::tiles::Layer;
use crate::report::{Activity, Category, Region};
use egui::{
    Color32, Context, CornerRadius, FontFamily, FontId, Margin, Shadow, Stroke, Style, TextStyle,
    Theme, Vec2, Visuals,
};
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Colours on a light ground.
pub static LIGHT: Palette = LIGHT_COLOURS;

const LIGHT_COLOURS: Palette = Palette {
    page: rgb(0xffffff),
    raised: rgb(0xf5f6f8),
    stripe: rgb(0xf8f9fb),
    hover: rgb(0xeceff4),
    chosen: rgb(0xdfeafb),
    rule: rgb(0xe1e4e9),
    outline: rgb(0xc7ccd4),
    text: rgb(0x1f2430),
    weak_text: rgb(0x5b6472),
    accent: rgb(0x1661c9),
    good: rgb(0x1a7f43),
    warning: rgb(0x8f5a00),
    error: rgb(0xc0262d),
    lane: rgb(0xeeeff1),
    shade: rgb(0xffffff),
    compute: rgb(0xf66271),
    group: rgb(0xfbbecb),
    internal_exchange: rgb(0xa3d9e2),
    global_exchange: rgb(0xa9baa9),
    internal_sync: rgb(0xf6e6a1),
    external_sync: rgb(0xcfd2d6),
    stream_copy: rgb(0xfcd3c0),
    stream_begin: rgb(0xdcdcdc),
    stream_mid: rgb(0xf0b09a),
    remote_mid: rgb(0xd9a3d6),
    stream_end: rgb(0xf2dc82),
    other: rgb(0xc5c0d0),
    run: rgb(0x383838),
    mark: rgb(0xd5dbe6),
    forward: rgb(0xbcd7f8),
    backward: rgb(0xd3c8f5),
    update: rgb(0xbfe3c9),
    selection: rgb(0x0b6fdc),
    balance: rgb(0x508ffe),
    memory_line: rgb(0xe4586b),
    max_memory: rgb(0x303642),
    always_live: rgb(0xf37584),
    not_always_live: rgb(0x7e71ed),
    heat: [rgb(0xf9e4bd), rgb(0xf6bd8a), rgb(0xe98b7c), rgb(0xb4477f), rgb(0x4b1d6b)],
    dimming: 0.5,
    ink: rgb(0x1d2026),
    chalk: rgb(0xffffff),
};

/// Colours on a dark ground.
pub static DARK: Palette = DARK_COLOURS;

const DARK_COLOURS: Palette = Palette {
    page: rgb(0x1a1c20),
    raised: rgb(0x212429),
    stripe: rgb(0x1e2025),
    hover: rgb(0x2b2f36),
    chosen: rgb(0x243a5a),
    rule: rgb(0x31353d),
    outline: rgb(0x484e59),
    text: rgb(0xe6e8ec),
    weak_text: rgb(0xa0a8b4),
    accent: rgb(0x6eaefc),
    good: rgb(0x5cc98a),
    warning: rgb(0xe8b55a),
    error: rgb(0xff7b80),
    lane: rgb(0x111214),
    shade: rgb(0x1a1c20),
    compute: rgb(0xff6874),
    group: rgb(0xffb8c4),
    internal_exchange: rgb(0xa6e0e7),
    global_exchange: rgb(0x95a595),
    internal_sync: rgb(0xfde4a5),
    external_sync: rgb(0x757575),
    stream_copy: rgb(0xfac9b3),
    stream_begin: rgb(0x8a8a8a),
    stream_mid: rgb(0xf7b89c),
    remote_mid: rgb(0xd9a3d6),
    stream_end: rgb(0xe8cf7a),
    other: rgb(0x9a94a8),
    run: rgb(0xf0f0f0),
    mark: rgb(0x3a4250),
    forward: rgb(0x35557c),
    backward: rgb(0x51467e),
    update: rgb(0x33604a),
    selection: rgb(0x4aa3ff),
    balance: rgb(0x1a94fa),
    memory_line: rgb(0xff7d8b),
    max_memory: rgb(0xf2f2f2),
    always_live: rgb(0xff7d8b),
    not_always_live: rgb(0x9d92ff),
    heat: [rgb(0x33254a), rgb(0x5f2d73), rgb(0xa83b74), rgb(0xee7d5e), rgb(0xfce9a6)],
    dimming: 0.62,
    ink: rgb(0x14161a),
    chalk: rgb(0xffffff),
};

/// Colours on a light ground that can be told apart with any kind of colour vision.
pub static LIGHT_SAFE: Palette = Palette {
    compute: rgb(0xf9b41d),
    group: rgb(0xfde3b0),
    internal_exchange: rgb(0x86adfc),
    global_exchange: rgb(0x2848c8),
    internal_sync: rgb(0xe3e5e9),
    external_sync: rgb(0xc4c7cc),
    stream_mid: rgb(0xf2ff49),
    remote_mid: rgb(0x9d6dff),
    other: rgb(0x16a031),
    memory_line: rgb(0xb46a00),
    always_live: rgb(0xf0932b),
    not_always_live: rgb(0x2848c8),
    ..LIGHT_COLOURS
};

/// The same on a dark ground.
pub static DARK_SAFE: Palette = Palette {
    compute: rgb(0xc66a09),
    group: rgb(0xe6b98c),
    internal_exchange: rgb(0x86ffce),
    global_exchange: rgb(0x6f567a),
    internal_sync: rgb(0xb9bcc2),
    external_sync: rgb(0x8f9296),
    stream_mid: rgb(0xf0ff46),
    remote_mid: rgb(0xc1c6ff),
    other: rgb(0x09a3ff),
    memory_line: rgb(0xf5a13c),
    always_live: rgb(0xf5a13c),
    not_always_live: rgb(0x5a8cff),
    ..DARK_COLOURS
};

/// Whether colours are those that everybody can tell apart: a matter of the whole program, because
/// pictures are made on many threads.
static SAFE: AtomicBool = AtomicBool::new(false);

/// Chooses the colours of everything that is painted from now on.
pub fn choose(palette: PaletteChoice) {
    SAFE.store(palette == PaletteChoice::ColourBlindSafe, Ordering::Relaxed);
}

/// Whether colours are those that everybody can tell apart.
pub fn is_safe() -> bool {
    SAFE.load(Ordering::Relaxed)
}

impl Palette {
    /// The colours that go with the visuals of a `Ui`.
    pub fn of(visuals: &Visuals) -> &'static Self {
        Self::on(visuals.dark_mode)
    }

    /// The colours on a dark or on a light ground.
    pub fn on(dark: bool) -> &'static Self {
        match (dark, is_safe()) {
            (false, false) => &LIGHT,
            (true, false) => &DARK,
            (false, true) => &LIGHT_SAFE,
            (true, true) => &DARK_SAFE,
        }
    }

    /// What a pixel of a trace stands for.
    pub fn activity(&self, activity: Activity) -> Color32 {
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
    pub fn region(&self, region: Region) -> Color32 {
        match region {
            Region::NonInterleaved => rgb(0x5b8def),
            Region::Interleaved => rgb(0x3fb8a9),
            Region::Overflowed => self.error,
        }
    }

    /// Memory categories: data in reds and yellows, code in blues and greens, the rest greyer.
    pub fn category(&self, category: Category) -> Color32 {
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
    pub fn layer(&self, layer: Layer) -> Color32 {
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
    pub fn nth(&self, place: usize) -> Color32 {
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
    pub fn heat(&self, share: f32) -> Color32 {
        let share = share.clamp(0.0, 1.0) * (self.heat.len() - 1) as f32;
        let below = (share as usize).min(self.heat.len() - 2);
        mix(self.heat[below], self.heat[below + 1], share - below as f32)
    }

    /// The colour of the idle share of a bar.
    pub fn dimmed(&self, bar: Color32) -> Color32 {
        mix(bar, self.lane, self.dimming)
    }

    /// The ink that can be read on `ground`.
    pub fn ink_on(&self, ground: Color32) -> Color32 {
        let better_dark = contrast(self.ink, ground) >= contrast(self.chalk, ground);
        if better_dark { self.ink } else { self.chalk }
    }
}

/// `share` of the way from one colour to another, in gamma space.
pub fn mix(from: Color32, to: Color32, share: f32) -> Color32 {
    let channel = |a: u8, b: u8| (f32::from(a) + (f32::from(b) - f32::from(a)) * share + 0.5) as u8;
    Color32::from_rgb(
        channel(from.r(), to.r()),
        channel(from.g(), to.g()),
        channel(from.b(), to.b()),
    )
}

/// Contrast of two colours, 1 to 21, as the web's accessibility guidelines define it.
pub fn contrast(a: Color32, b: Color32) -> f32 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn luminance(colour: Color32) -> f32 {
    let [r, g, b, _] = egui::Rgba::from(colour).to_array();
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

/// Installs fonts, colours and spacing for both themes.
pub fn install(context: &Context) {
    context.set_fonts(fonts::definitions());
    install_styles(context);
}

/// Installs colours and spacing for both themes.
pub fn install_styles(context: &Context) {
    for theme in [Theme::Light, Theme::Dark] {
        context.set_style_of(theme, style(theme));
    }
}

fn style(theme: Theme) -> Style {
    let palette = Palette::on(theme == Theme::Dark);
    let mut style = Style { visuals: visuals(theme, palette), ..Style::default() };
    let proportional = |size| FontId::new(size, FontFamily::Proportional);
    style.text_styles = [
        (TextStyle::Small, proportional(11.0)),
        (TextStyle::Body, proportional(13.0)),
        (TextStyle::Button, proportional(13.0)),
        (TextStyle::Heading, FontId::new(16.0, fonts::strong_family())),
        (TextStyle::Monospace, FontId::new(12.0, FontFamily::Monospace)),
    ]
    .into();
    let spacing = &mut style.spacing;
    spacing.item_spacing = Vec2::new(8.0, 6.0);
    spacing.button_padding = Vec2::new(10.0, 4.0);
    spacing.interact_size = Vec2::new(32.0, 26.0);
    spacing.menu_margin = Margin::same(6);
    spacing.icon_width = 16.0;
    spacing.icon_width_inner = 9.0;
    spacing.icon_spacing = 6.0;
    spacing.combo_width = 80.0;
    spacing.scroll = egui::style::ScrollStyle::thin();
    style.interaction.tooltip_delay = 0.35;
    style.interaction.selectable_labels = false;
    style
}

fn visuals(theme: Theme, palette: &Palette) -> Visuals {
    let mut visuals = theme.default_visuals();
    visuals.panel_fill = palette.page;
    visuals.window_fill = palette.page;
    visuals.window_stroke = Stroke::new(1.0, palette.rule);
    visuals.window_corner_radius = CornerRadius::same(8);
    visuals.menu_corner_radius = CornerRadius::same(6);
    let shadow = Color32::from_black_alpha(if visuals.dark_mode { 110 } else { 34 });
    visuals.popup_shadow = Shadow { offset: [0, 4], blur: 14, spread: 0, color: shadow };
    visuals.window_shadow = Shadow { offset: [0, 8], blur: 28, spread: 0, color: shadow };
    visuals.faint_bg_color = palette.stripe;
    visuals.extreme_bg_color = palette.page;
    visuals.text_edit_bg_color = Some(palette.page);
    visuals.code_bg_color = palette.raised;
    visuals.hyperlink_color = palette.accent;
    visuals.warn_fg_color = palette.warning;
    visuals.error_fg_color = palette.error;
    visuals.weak_text_color = Some(palette.weak_text);
    visuals.selection.bg_fill = palette.chosen;
    visuals.selection.stroke = Stroke::new(1.0, palette.accent);
    visuals.striped = false;
    visuals.indent_has_left_vline = false;
    let widgets = &mut visuals.widgets;
    let states = [
        (&mut widgets.noninteractive, palette.page, palette.rule, palette.text),
        (&mut widgets.inactive, palette.raised, palette.outline, palette.text),
        (&mut widgets.hovered, palette.hover, palette.outline, palette.text),
        (&mut widgets.active, palette.chosen, palette.accent, palette.text),
        (&mut widgets.open, palette.hover, palette.outline, palette.text),
    ];
    for (state, fill, line, text) in states {
        state.bg_fill = fill;
        state.weak_bg_fill = fill;
        state.bg_stroke = Stroke::new(1.0, line);
        state.fg_stroke = Stroke::new(1.0, text);
        state.corner_radius = CornerRadius::same(5);
        state.expansion = 0.0;
    }
    visuals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gui::vision::least_difference;

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
