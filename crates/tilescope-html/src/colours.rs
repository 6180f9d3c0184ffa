//! The colours of a page, by name. They are those of the desktop app; a test of the app compares
//! them.
//!
//! The page's style sheet defines a variable for each name (`--compute`), and classes for fills,
//! strokes and text, so that a picture follows the theme of the page.

use std::fmt::Write;
use tilescope_analysis::limits::{CycleClass, WaterfallStep};
use tilescope_analysis::tile_curves::TileCurveLayer;
use tilescope_analysis::trace::{LaneItem, LaneItemKind, ProgramLabels};
use tilescope_report::{MemoryCategory, MemoryRegion, ProgramKind, StepActivity, TrainingPass};

/// A colour on a light and on a dark background, as `0xrrggbb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageColour {
    /// Its name in style sheets.
    pub name: &'static str,
    pub light: u32,
    pub dark: u32,
}

const fn colour(name: &'static str, light: u32, dark: u32) -> PageColour {
    PageColour { name, light, dark }
}

const fn both(name: &'static str, rgb: u32) -> PageColour {
    colour(name, rgb, rgb)
}

/// All colours.
pub static COLOURS: &[PageColour] = &[
    colour("page", 0xffffff, 0x1a1c20),
    colour("raised", 0xf5f6f8, 0x212429),
    colour("stripe", 0xf8f9fb, 0x1e2025),
    colour("hover", 0xeceff4, 0x2b2f36),
    colour("chosen", 0xdfeafb, 0x243a5a),
    colour("rule", 0xe1e4e9, 0x31353d),
    colour("outline", 0xc7ccd4, 0x484e59),
    colour("text", 0x1f2430, 0xe6e8ec),
    colour("weak-text", 0x5b6472, 0xa0a8b4),
    colour("accent", 0x1661c9, 0x6eaefc),
    colour("good", 0x1a7f43, 0x5cc98a),
    colour("warning", 0x8f5a00, 0xe8b55a),
    colour("error", 0xc0262d, 0xff7b80),
    colour("lane", 0xeeeff1, 0x111214),
    colour("compute", 0xf66271, 0xff6874),
    colour("group", 0xfbbecb, 0xffb8c4),
    colour("internal-exchange", 0xa3d9e2, 0xa6e0e7),
    colour("global-exchange", 0xa9baa9, 0x95a595),
    colour("internal-sync", 0xf6e6a1, 0xfde4a5),
    colour("external-sync", 0xcfd2d6, 0x757575),
    colour("stream-copy", 0xfcd3c0, 0xfac9b3),
    colour("stream-begin", 0xcfa98a, 0xa67c5b),
    colour("stream-mid", 0xf0b09a, 0xf7b89c),
    colour("remote-mid", 0xd9a3d6, 0xd9a3d6),
    colour("stream-end", 0xf2dc82, 0xe8cf7a),
    colour("other", 0xc5c0d0, 0x9a94a8),
    colour("mark", 0xd5dbe6, 0x3a4250),
    colour("forward", 0xbcd7f8, 0x35557c),
    colour("backward", 0xd3c8f5, 0x51467e),
    colour("update", 0xbfe3c9, 0x33604a),
    colour("selection", 0x0b6fdc, 0x4aa3ff),
    colour("balance", 0x508ffe, 0x1a94fa),
    colour("memory-line", 0xe4586b, 0xff7d8b),
    colour("max-memory", 0x303642, 0xf2f2f2),
    colour("always-live", 0xf37584, 0xff7d8b),
    colour("not-always-live", 0x7e71ed, 0x9d92ff),
    colour("idle", 0x888c90, 0x111214),
    colour("heat-0", 0xf9e4bd, 0x33254a),
    colour("heat-1", 0xf6bd8a, 0x5f2d73),
    colour("heat-2", 0xe98b7c, 0xa83b74),
    colour("heat-3", 0xb4477f, 0xee7d5e),
    colour("heat-4", 0x4b1d6b, 0xfce9a6),
    both("non-interleaved", 0x5b8def),
    both("interleaved", 0x3fb8a9),
    both("variable", 0xef7f8b),
    both("constant", 0xf5b971),
    both("host-exchange-packet-header", 0xc9a27e),
    both("global-exchange-packet-header", 0xa98a6b),
    both("stack", 0xb9b2c9),
    both("vertex-instance-state", 0xe8d36b),
    both("copy-descriptor", 0xd8c48f),
    both("vector-list-descriptor", 0xc2b280),
    both("vertex-field-data", 0xd4b13f),
    both("control-table", 0x9d93c9),
    both("control-code", 0x8f7fe0),
    both("control-id", 0x7d76a8),
    both("vertex-code", 0x5b8def),
    both("internal-exchange-code", 0x63b7d6),
    both("host-exchange-code", 0xe0894f),
    both("global-exchange-code", 0x3f9a6a),
    both("instrumentation-results", 0x9aa3ad),
    both("message", 0xe0a0c8),
    both("rearrangement", 0xc98bd9),
    both("shared-code-storage", 0x87a9c9),
    both("shared-data-storage", 0xc9b6a7),
    both("unknown", 0xb0b0b0),
];

/// Colours of a scale from low to high values.
const HEAT: [&str; 5] = ["heat-0", "heat-1", "heat-2", "heat-3", "heat-4"];

/// Text colours for use on a colour; the more readable one is chosen.
const DARK_INKS: [u32; 2] = [0x1d2026, 0x14161a];
const LIGHT_INK: u32 = 0xffffff;

/// The colour of an activity.
pub fn activity(activity: StepActivity) -> &'static str {
    match activity {
        StepActivity::Compute => "compute",
        StepActivity::InternalExchange => "internal-exchange",
        StepActivity::GlobalExchange => "global-exchange",
        StepActivity::Host => "stream-mid",
        StepActivity::RemoteBuffer => "remote-mid",
        StepActivity::Sync => "external-sync",
        StepActivity::Other => "other",
    }
}

/// The colour of a step.
fn step(kind: ProgramKind, activity: StepActivity, external: bool) -> &'static str {
    match kind {
        ProgramKind::OnTileExecute => "compute",
        ProgramKind::DoExchange => "internal-exchange",
        ProgramKind::GlobalExchange => "global-exchange",
        ProgramKind::StreamCopyBegin => "stream-begin",
        ProgramKind::StreamCopyMid if activity == StepActivity::RemoteBuffer => "remote-mid",
        ProgramKind::StreamCopyMid => "stream-mid",
        ProgramKind::StreamCopyEnd => "stream-end",
        ProgramKind::Sync if external => "external-sync",
        ProgramKind::Sync => "internal-sync",
        ProgramKind::Sequence
        | ProgramKind::Repeat
        | ProgramKind::Switch
        | ProgramKind::Call
        | ProgramKind::WriteUndef
        | ProgramKind::Unknown => "other",
    }
}

/// The colour of a bar of the trace; a bar of many steps has that of their dominant activity.
pub(crate) fn bar(item: &LaneItem, labels: &ProgramLabels) -> &'static str {
    match &item.kind {
        LaneItemKind::Step(of) => step(of.kind, of.activity, item.full_height),
        LaneItemKind::Operation(_, several) => activity(several.activity()),
        LaneItemKind::Syncs(_) if item.full_height => "external-sync",
        LaneItemKind::Syncs(_) => "internal-sync",
        LaneItemKind::Parent(node, _) => match labels.node_name(*node) {
            "StreamCopy" if labels.depth(*node) == 0 => "stream-copy",
            _ => "group",
        },
        LaneItemKind::Bucket(totals, _) => totals.dominant().map_or("other", activity),
    }
}

/// The colour of a class of cycles of an operation.
pub fn cycle_class(class: CycleClass) -> &'static str {
    match class {
        CycleClass::Compute => "compute",
        CycleClass::Balance => "balance",
        CycleClass::Exchange => "internal-exchange",
        CycleClass::Rearrangement => "rearrangement",
        CycleClass::SyncAndStart => "external-sync",
        CycleClass::Host => "stream-mid",
        CycleClass::HostWait => "stream-begin",
        CycleClass::RemoteBuffers => "remote-mid",
        CycleClass::Links => "global-exchange",
        CycleClass::Other => "other",
    }
}

/// The colour of a step of the waterfall.
pub fn waterfall(step: WaterfallStep) -> &'static str {
    match step {
        WaterfallStep::Idle => "idle",
        WaterfallStep::SyncAndStart => "external-sync",
        WaterfallStep::Host => "stream-mid",
        WaterfallStep::HostWait => "stream-begin",
        WaterfallStep::RemoteBuffers => "remote-mid",
        WaterfallStep::Links => "global-exchange",
        WaterfallStep::Exchange => "internal-exchange",
        WaterfallStep::Rearrangement => "rearrangement",
        WaterfallStep::Other => "other",
        WaterfallStep::Balance => "balance",
        WaterfallStep::Unknown
        | WaterfallStep::BelowPeak
        | WaterfallStep::Padding
        | WaterfallStep::SlowerEngine
        | WaterfallStep::Recomputation => "compute",
        WaterfallStep::Achieved => "good",
    }
}

/// The colour of a memory category.
pub fn category(category: MemoryCategory) -> &'static str {
    match category {
        MemoryCategory::Variable => "variable",
        MemoryCategory::Constant => "constant",
        MemoryCategory::HostExchangePacketHeader => "host-exchange-packet-header",
        MemoryCategory::GlobalExchangePacketHeader => "global-exchange-packet-header",
        MemoryCategory::Stack => "stack",
        MemoryCategory::VertexInstanceState => "vertex-instance-state",
        MemoryCategory::CopyDescriptor => "copy-descriptor",
        MemoryCategory::VectorListDescriptor => "vector-list-descriptor",
        MemoryCategory::VertexFieldData => "vertex-field-data",
        MemoryCategory::ControlTable => "control-table",
        MemoryCategory::ControlCode => "control-code",
        MemoryCategory::ControlId => "control-id",
        MemoryCategory::VertexCode => "vertex-code",
        MemoryCategory::InternalExchangeCode => "internal-exchange-code",
        MemoryCategory::HostExchangeCode => "host-exchange-code",
        MemoryCategory::GlobalExchangeCode => "global-exchange-code",
        MemoryCategory::InstrumentationResults => "instrumentation-results",
        MemoryCategory::Message => "message",
        MemoryCategory::Rearrangement => "rearrangement",
        MemoryCategory::SharedCodeStorage => "shared-code-storage",
        MemoryCategory::SharedDataStorage => "shared-data-storage",
        MemoryCategory::Unknown => "unknown",
    }
}

/// The colour of a region of tile memory.
pub fn region(region: MemoryRegion) -> &'static str {
    match region {
        MemoryRegion::NonInterleaved => "non-interleaved",
        MemoryRegion::Interleaved => "interleaved",
        MemoryRegion::Overflowed => "error",
    }
}

/// The colour of a curve of tile memory.
pub(crate) fn layer(of: TileCurveLayer) -> &'static str {
    match of {
        TileCurveLayer::Region(of) => region(of),
        TileCurveLayer::Category(of) => category(of),
        TileCurveLayer::AlwaysLive => "always-live",
        TileCurveLayer::NotAlwaysLive => "not-always-live",
        TileCurveLayer::Gaps => "outline",
        _ => "memory-line",
    }
}

/// The colour of a pass of training, or of marks without one.
pub fn pass(pass: Option<TrainingPass>) -> &'static str {
    match pass {
        Some(TrainingPass::Forward) => "forward",
        Some(TrainingPass::Backward) => "backward",
        Some(TrainingPass::Update) => "update",
        None => "mark",
    }
}

/// The colour of a share of the largest value on the heat scale, on a light and on a dark
/// background.
pub(crate) fn heat(share: f64) -> [[u8; 3]; 2] {
    let place = share.clamp(0.0, 1.0) * (HEAT.len() - 1) as f64;
    let below = (place as usize).min(HEAT.len() - 2);
    let part = place - below as f64;
    let [low, high] = [below, below + 1].map(|at| rgb_of(HEAT[at]));
    [0, 1].map(|theme| mixed(low[theme], high[theme], part))
}

/// A colour on a light and on a dark background, by name.
pub(crate) fn rgb_of(name: &str) -> [[u8; 3]; 2] {
    let found = COLOURS.iter().find(|colour| colour.name == name);
    found.map_or([[0; 3]; 2], |colour| [colour.light, colour.dark].map(rgb))
}

fn mixed(from: [u8; 3], to: [u8; 3], part: f64) -> [u8; 3] {
    let mix_channel = |at: usize| {
        let a = f64::from(from[at]);
        let b = f64::from(to[at]);
        (a + (b - a) * part + 0.5) as u8
    };
    [mix_channel(0), mix_channel(1), mix_channel(2)]
}

fn rgb(hex: u32) -> [u8; 3] {
    let [_, red, green, blue] = hex.to_be_bytes();
    [red, green, blue]
}

/// Relative luminance, as the web's accessibility guidelines define it.
fn luminance(hex: u32) -> f64 {
    let [red, green, blue] = rgb(hex).map(|channel| {
        let value = f64::from(channel) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn contrast(one: u32, other: u32) -> f64 {
    let one = luminance(one);
    let other = luminance(other);
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn ink(ground: u32, dark_ink: u32) -> u32 {
    if contrast(dark_ink, ground) >= contrast(LIGHT_INK, ground) { dark_ink } else { LIGHT_INK }
}

/// Variables of all colours on one background.
fn variables(of: fn(&PageColour) -> u32, dark_ink: u32) -> String {
    let mut text = String::new();
    for colour in COLOURS {
        let name = colour.name;
        let ground = of(colour);
        // Writing to a string cannot fail.
        let _ = write!(text, "--{name}:#{ground:06x};--ink-{name}:#{:06x};", ink(ground, dark_ink));
    }
    text
}

/// The colours of the style sheet: both themes, selected by the reader's system or the page, with
/// the light one for print; and classes for fills, strokes and text.
pub(crate) fn style_sheet() -> String {
    let light = variables(|colour| colour.light, DARK_INKS[0]);
    let dark = variables(|colour| colour.dark, DARK_INKS[1]);
    let mut css = format!(
        ":root{{color-scheme:light;{light}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n\
         @media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n"
    );
    for PageColour { name, .. } in COLOURS {
        let _ = writeln!(
            css,
            ".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}\
             .i-{name}{{fill:var(--ink-{name})}}"
        );
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_colour_exists_once() {
        let count = |name: &str| COLOURS.iter().filter(|colour| colour.name == name).count();
        let activities = StepActivity::ALL.map(activity).to_vec();
        let categories = MemoryCategory::ALL.map(category).to_vec();
        let steps = WaterfallStep::ALL.map(waterfall).to_vec();
        let classes = CycleClass::ALL.map(cycle_class).to_vec();
        let regions = MemoryRegion::ALL.map(region).to_vec();
        let named = [activities, categories, steps, classes, regions, HEAT.to_vec()].concat();
        named.iter().for_each(|name| assert_eq!(count(name), 1, "{name}"));
        COLOURS.iter().for_each(|colour| assert_eq!(count(colour.name), 1, "{}", colour.name));
    }

    /// Colours of bars with text.
    const BARS: &str = "compute group internal-exchange global-exchange internal-sync \
        external-sync stream-copy stream-begin stream-mid remote-mid stream-end other mark \
        forward backward update";

    #[test]
    fn text_is_readable_on_every_bar() {
        for colour in COLOURS.iter().filter(|colour| BARS.split(' ').any(|bar| bar == colour.name))
        {
            for (ground, dark_ink) in [(colour.light, DARK_INKS[0]), (colour.dark, DARK_INKS[1])] {
                assert!(contrast(ground, ink(ground, dark_ink)) >= 4.5, "{}", colour.name);
            }
        }
    }
}
