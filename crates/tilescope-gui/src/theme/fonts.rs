//! The typefaces: Inter with digits of one width, so that columns of numbers line up.
//!
//! Text is drawn from these bytes alone, so pictures are the same on every machine. Only a window
//! uses further fonts, and only for characters that the bundled faces lack (see
//! [`SystemFontFallback`]).

use egui::epaint::text::{
    FallbackRequest, FontInsert, FontPriority, FontProvider, InsertFontFamily,
};
use egui::{FontData, FontDefinitions, FontFamily, RichText};
use std::path::Path;
use std::sync::Arc;

const REGULAR: &[u8] = include_bytes!("../../../../assets/fonts/Inter-Regular.otf");
const STRONG: &[u8] = include_bytes!("../../../../assets/fonts/Inter-SemiBold.otf");
const STRONG_FAMILY: &str = "strong";

/// The family of headings and emphasis.
pub(crate) fn strong_family() -> FontFamily {
    FontFamily::Name(STRONG_FAMILY.into())
}

/// Text in the heavier weight.
pub(crate) fn strong(text: impl Into<String>) -> RichText {
    RichText::new(text).family(strong_family())
}

/// The bundled faces, followed by egui's own.
pub(crate) fn definitions() -> FontDefinitions {
    let mut fonts = FontDefinitions::default();
    for (name, bytes) in [("inter", REGULAR), ("inter-strong", STRONG)] {
        fonts.font_data.insert(name.to_owned(), Arc::new(FontData::from_static(bytes)));
    }
    let fallbacks = fonts.families.entry(FontFamily::Proportional).or_default();
    let mut heavier = fallbacks.clone();
    fallbacks.insert(0, "inter".to_owned());
    heavier.insert(0, "inter-strong".to_owned());
    fonts.families.insert(strong_family(), heavier);
    fonts
}

/// A system font for scripts that the bundled faces lack. It is looked up once.
pub(crate) struct SystemFontFallback;

/// The usual paths of fonts that cover Chinese, Japanese and Korean.
const WIDE_FONTS: [&str; 8] = [
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/noto-cjk/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/google-noto-cjk/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",
    "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",
    "/System/Library/Fonts/PingFang.ttc",
    "C:\\Windows\\Fonts\\msyh.ttc",
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
];

impl FontProvider for SystemFontFallback {
    #[expect(clippy::disallowed_methods, reason = "once, before a letter is drawn that needs it")]
    fn font_for(&self, request: &FallbackRequest<'_>) -> Option<FontInsert> {
        let path = WIDE_FONTS.into_iter().find(|path| Path::new(path).is_file())?;
        let bytes = std::fs::read(path).ok()?;
        let family =
            InsertFontFamily { family: request.family.clone(), priority: FontPriority::Lowest };
        Some(FontInsert::new("system", FontData::from_owned(bytes), vec![family]))
    }
}
