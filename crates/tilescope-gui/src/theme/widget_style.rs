//! The style of all widgets.

use super::{ColourScheme, ThemePalette, spacing, text_size};
use crate::theme::fonts;
use egui::{
    Color32, Context, CornerRadius, FontFamily, FontId, Margin, Shadow, Stroke, Style, TextStyle,
    Theme, Vec2, Visuals,
};

/// Installs fonts, colours and spacing for both themes.
pub fn install(context: &Context) {
    context.set_fonts(fonts::definitions());
    for theme in [Theme::Light, Theme::Dark] {
        context.set_style_of(theme, style(theme));
    }
}

fn style(theme: Theme) -> Style {
    // Palettes differ only in the colours of data, so widgets look the same in all of them.
    let scheme = ColourScheme { dark: theme == Theme::Dark, colour_blind_safe: false };
    let palette = scheme.palette();
    let mut style = Style { visuals: visuals(theme, palette), ..Style::default() };
    style.text_styles = [
        (TextStyle::Small, proportional(text_size::CAPTION)),
        (TextStyle::Body, proportional(text_size::BODY)),
        (TextStyle::Button, proportional(text_size::BODY)),
        (TextStyle::Heading, FontId::new(text_size::HEADING, fonts::strong_family())),
        (TextStyle::Monospace, FontId::new(text_size::SMALL, FontFamily::Monospace)),
    ]
    .into();
    let gaps = &mut style.spacing;
    gaps.item_spacing = Vec2::new(spacing::M, spacing::S);
    gaps.button_padding = Vec2::new(10.0, 4.0);
    gaps.interact_size = Vec2::new(32.0, 26.0);
    gaps.menu_margin = Margin::same(6);
    gaps.icon_width = 16.0;
    gaps.icon_width_inner = 9.0;
    gaps.icon_spacing = 6.0;
    gaps.combo_width = 80.0;
    gaps.scroll = egui::style::ScrollStyle::thin();
    style.interaction.tooltip_delay = 0.35;
    style.interaction.selectable_labels = false;
    style
}

fn proportional(size: f32) -> FontId {
    FontId::new(size, FontFamily::Proportional)
}

fn visuals(theme: Theme, palette: &ThemePalette) -> Visuals {
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
