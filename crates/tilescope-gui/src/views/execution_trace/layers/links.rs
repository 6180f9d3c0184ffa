//! The layer of links: a strip below the bars of an IPU with the load of its links relative to
//! their capacity. Sent bytes grow upwards from the middle, received bytes downwards.

use super::TracePainter;
use super::lanes::{IpuBand, NAME_HEIGHT, SHARE_SQUARE};
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, text_size};
use crate::views::cycle_axis::cycles_on_screen;
use crate::views::execution_trace::id;
use crate::views::execution_trace::layout::{IpuLaneLayout, TraceLayout};
use crate::views::execution_trace::scene::{IpuLaneScene, TraceScene};
use crate::views::execution_trace::share_graph::COLUMN_PIXELS;
use crate::widgets::elided_text::elided;
use crate::widgets::split_texture::SplitImage;
use crate::widgets::{legend_ui, region_ui};
use egui::accesskit::Role;
use egui::{Color32, ColorImage, CornerRadius, FontId, Pos2, Rect, Stroke, Ui, Vec2, pos2};
use tilescope_analysis::tile_curves::TileCurveLayer;
use tilescope_analysis::trace::{LinkColumn, LinkTraffic, link_traffic};
use tilescope_report::trace::TraceLane;
use tilescope_report::units::{Bytes, CycleRange, Cycles, percent};
use tilescope_report::{MachineInterface, Report, ReportError, ReportPart};

/// The height of the strip in points.
pub(crate) const LINKS_HEIGHT: f32 = 40.0;

const NO_BYTES: &str = "This report does not record the bytes that steps move.";
const NO_LINKS: &str = "This report does not record the number of links per IPU, so their \
                        capacity is unknown. Details shows the bytes of each exchange.";

/// The largest number of bytes per cycle that the links of an IPU carry each way, or the reason it
/// is not drawn.
pub(crate) fn limit(report: &Report) -> Result<Result<f64, &'static str>, ReportError> {
    if !report.has(ReportPart::StepBytes) {
        return Ok(Err(NO_BYTES));
    }
    let limit = report.machine_limits()?.bytes_per_cycle(MachineInterface::IpuLinks);
    Ok(limit.ok_or(NO_LINKS))
}

/// The load of an IPU's links in a window, with its image.
pub(crate) struct LinkStrip {
    pub traffic: LinkTraffic,
    pub image: SplitImage,
}

impl LinkStrip {
    /// Reads the load and fills the image.
    pub(crate) fn read<'a>(
        lanes: impl IntoIterator<Item = TraceLane<'a>>,
        window: CycleRange,
        size: [usize; 2],
        (limit, palette): (f64, &ThemePalette),
    ) -> Result<Self, ReportError> {
        let traffic = link_traffic(lanes, window, size[0].div_ceil(COLUMN_PIXELS))?;
        let image = SplitImage::cut(raster(&traffic, size, limit, palette));
        Ok(Self { traffic, image })
    }
}

/// The shares of the limit, sent and received.
fn shares(of: LinkColumn, cycles: Cycles, limit: f64) -> [f64; 2] {
    let most = cycles.max(Cycles(1)).as_f64() * limit;
    [of.sent, of.received].map(|bytes| bytes.as_f64() / most)
}

/// The colours of sent and received bytes.
fn colours(palette: &ThemePalette) -> [Color32; 2] {
    [TileCurveLayer::Sent, TileCurveLayer::Received].map(|layer| palette.layer(layer))
}

fn raster(
    traffic: &LinkTraffic,
    [width, height]: [usize; 2],
    limit: f64,
    palette: &ThemePalette,
) -> ColorImage {
    let mut image = ColorImage::filled([width, height.max(1)], palette.lane);
    let half = height / 2;
    let count = traffic.columns.len();
    for (at, column) in traffic.columns.iter().enumerate() {
        let pixels = at * width / count..(at + 1) * width / count;
        let shares = shares(*column, traffic.range(at).length(), limit);
        for (side, share) in shares.into_iter().enumerate().filter(|(_, share)| *share > 0.0) {
            // Any nonzero load is visible.
            let high = ((share.min(1.0) * half as f64).round() as usize).clamp(1, half.max(1));
            let rows = if side == 0 { half - high.min(half)..half } else { half..half + high };
            for row in rows.start..rows.end.min(height) {
                image.pixels[row * width..][pixels.clone()].fill(colours(palette)[side]);
            }
        }
    }
    image
}

impl TracePainter<'_> {
    /// The frame of the strip of links, its visible load, and its name for screen readers.
    pub(super) fn links_ui(&self, band: &IpuBand<'_>, scene: &TraceScene, ipu: &IpuLaneScene) {
        let layout = self.layout;
        let rect = layout.links(band.block);
        let gutter = layout.regions.gutter();
        let Some((strip, limit)) = ipu.links.as_ref().zip(self.prepared.known_link_limit()) else {
            return;
        };
        let on_screen = cycles_on_screen(layout.axis, layout.regions.lanes.width());
        let known = on_screen.intersection(scene.key.window).intersection(self.prepared.range);
        let carried = strip.traffic.sum(known);
        let cycles = known.length();
        let [edge, middle] = [self.palette.page, self.palette.outline];
        self.painter.hline(rect.x_range(), rect.top(), Stroke::new(1.0, edge));
        self.painter.hline(rect.x_range(), rect.center().y, Stroke::new(1.0, middle));
        let painter = self.ui.painter_at(gutter);
        let shares = shares(carried, cycles, limit);
        let font = FontId::proportional(text_size::CAPTION);
        for (side, share) in shares.into_iter().enumerate() {
            let y = rect.center().y + [-0.25, 0.25][side] * rect.height();
            let text = format!("{} {}", ["sent", "received"][side], percent(share));
            let room = gutter.width() - 10.0;
            let galley = elided(&painter, &text, font.clone(), self.palette.weak_text, room);
            let at = pos2(gutter.right() - 10.0 - galley.size().x, y - galley.size().y / 2.0);
            // In low lanes the name of the IPU extends down to here and takes precedence.
            let words = at.y..=at.y + galley.size().y;
            if let Some(name) = band.name_at
                && name.y < *words.end()
                && *words.start() < name.y + NAME_HEIGHT
            {
                continue;
            }
            painter.galley(at, galley, self.palette.weak_text);
            let colour = colours(self.palette)[side];
            let square = pos2(gutter.right() - 5.0, y);
            let square = Rect::from_center_size(square, Vec2::splat(SHARE_SQUARE));
            painter.rect_filled(square, CornerRadius::same(1), colour);
        }
        let visible = rect.intersect(layout.regions.lanes);
        if visible.is_positive() {
            let node = id(self.ui, "links").with(band.key());
            let name = band.name();
            let words = words(carried, cycles, limit);
            region_ui(self.ui, node, visible, Role::Image, &format!("Links of {name}"), &words);
        }
    }
}

/// Describes the load of the links: `sent 12.0 %, received 3.1 % of the link capacity`.
fn words(of: LinkColumn, cycles: Cycles, limit: f64) -> String {
    let [sent, received] = shares(of, cycles, limit).map(percent);
    format!("sent {sent}, received {received} of the link capacity")
}

/// Shows the description of a column.
pub(crate) fn column_tooltip_ui(ui: &mut Ui, column: LinkColumn, range: CycleRange, limit: f64) {
    let palette = ThemePalette::for_ui(ui);
    ui.label(strong("Links to other IPUs"));
    let text = format!("{} cycles: {} - {}", range.length(), range.start, range.end);
    ui.weak(text);
    let sides = ["Sent", "Received"].into_iter().zip(colours(palette));
    let shares = shares(column, range.length(), limit);
    for ((name, colour), (bytes, share)) in
        sides.zip([column.sent, column.received].into_iter().zip(shares))
    {
        let rate = bytes.as_f64() / range.length().max(Cycles(1)).as_f64();
        let bytes: Bytes = bytes;
        let text = format!(
            "{name} {}: {rate:.2} B per cycle, {} of {limit:.2}",
            numbers(ui).bytes(bytes.0),
            percent(share)
        );
        ui.horizontal(|ui| legend_ui(ui, colour, &text));
    }
    let text = format!(
        "{} cycles of exchanges between IPUs. A step counts evenly over its cycles; the limit is \
         that of all links of the IPU, one way.",
        column.exchanging
    );
    ui.weak(text);
}

/// A column in the strip of links of an IPU.
pub(crate) struct LinkHit {
    pub column: LinkColumn,
    pub range: CycleRange,
}

/// The column of a strip of links at a screen position.
pub(crate) fn hit(layout: &TraceLayout<'_>, scene: &TraceScene, at: Pos2) -> Option<LinkHit> {
    let is_hit = |block: &&IpuLaneLayout<'_>| layout.links(block).contains(at);
    let block = layout.blocks.iter().find(is_hit).filter(|_| layout.regions.lanes.contains(at))?;
    let traffic = &scene.ipus.iter().find(|ipu| ipu.at == block.lanes.at)?.links.as_ref()?.traffic;
    let column = traffic.column_at(Cycles(u64::try_from(layout.cycle_at(at.x)).ok()?))?;
    Some(LinkHit { column: *traffic.columns.get(column)?, range: traffic.range(column) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::LIGHT;

    #[test]
    fn sent_bytes_grow_up_and_received_bytes_down() {
        let column = |sent, received| LinkColumn {
            sent: Bytes(sent),
            received: Bytes(received),
            exchanging: Cycles(10),
        };
        let window = CycleRange::new(Cycles(0), Cycles(30));
        // 10 cycles in each column, 10 bytes a cycle: 100 bytes are the limit.
        let columns = vec![column(100, 50), column(0, 0), column(1, 400)];
        let traffic = LinkTraffic { window, columns };
        let image = raster(&traffic, [3, 20], 10.0, &LIGHT);
        let [sent, received] = colours(&LIGHT);
        let rows = |x: usize, colour: Color32| {
            (0..20).filter(|y| image.pixels[y * 3 + x] == colour).collect::<Vec<usize>>()
        };
        assert_eq!(rows(0, sent), (0..10).collect::<Vec<usize>>());
        assert_eq!(rows(0, received), (10..15).collect::<Vec<usize>>());
        assert_eq!(rows(1, LIGHT.lane).len(), 20);
        assert_eq!(rows(2, sent), [9], "what moves at all can be seen");
        assert_eq!(
            rows(2, received),
            (10..20).collect::<Vec<usize>>(),
            "no further than the strip"
        );
    }
}
