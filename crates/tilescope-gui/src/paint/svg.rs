//! SVG output of a frame. It is made from egui's shapes before tessellation. Shapes and text stay
//! as they are, and images are embedded as PNG.

use super::texture::CpuTexture;
use super::{SoftwareRenderer, encode_png};
use egui::emath::TSTransform;
use egui::epaint::{
    CircleShape, ClippedShape, ColorMode, CubicBezierShape, EllipseShape, Mesh, PathShape,
    PathStroke, QuadraticBezierShape, RectShape, TextShape,
};
use egui::{Color32, CornerRadius, FontFamily, Pos2, Rect, Shape, Stroke, StrokeKind, TextureId};
use std::fmt::Write;

/// The largest number of triangles of a mesh without an image that become polygons.
const MAX_TRIANGLES: usize = 20_000;

impl SoftwareRenderer {
    /// Returns one frame of this many pixels on a background of one colour. Lengths are in points.
    pub(crate) fn svg(
        &self,
        [width, height]: [u32; 2],
        pixels_per_point: f32,
        ground: Color32,
        shapes: &[ClippedShape],
    ) -> String {
        let mut svg =
            SvgWriter { painter: self, body: String::new(), clips: Vec::new(), clip: None };
        for clipped in shapes {
            svg.clipped(clipped);
        }
        svg.end_clip();
        let [wide, high] = [width, height].map(|pixels| pixels as f32 / pixels_per_point);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {wide} {high}\" font-family=\"Inter, sans-serif\">\n<defs>\n"
        );
        for (index, rect) in svg.clips.iter().enumerate() {
            let _ = writeln!(text, "<clipPath id=\"c{index}\"><rect {}/></clipPath>", place(*rect));
        }
        let _ = writeln!(text, "</defs>\n<rect width=\"100%\" height=\"100%\"{}/>", fill(ground));
        text + &svg.body + "</svg>\n"
    }
}

/// A drawing in progress. Writing into a `String` cannot fail, so the results of `write!` are
/// ignored.
struct SvgWriter<'a> {
    painter: &'a SoftwareRenderer,
    body: String,
    clips: Vec<Rect>,
    /// The clip rectangle of the open group.
    clip: Option<Rect>,
}

impl SvgWriter<'_> {
    fn clipped(&mut self, clipped: &ClippedShape) {
        if !clipped.clip_rect.is_positive() || matches!(clipped.shape, Shape::Noop) {
            return;
        }
        if self.clip != Some(clipped.clip_rect) {
            self.end_clip();
            let known = self.clips.iter().position(|rect| *rect == clipped.clip_rect);
            let index = known.unwrap_or(self.clips.len());
            if known.is_none() {
                self.clips.push(clipped.clip_rect);
            }
            let _ = writeln!(self.body, "<g clip-path=\"url(#c{index})\">");
            self.clip = Some(clipped.clip_rect);
        }
        let motion = clipped.transform_after_tessellation;
        if motion == TSTransform::IDENTITY {
            return self.shape(&clipped.shape);
        }
        let mut shape = clipped.shape.clone();
        shape.transform(motion);
        self.shape(&shape);
    }

    fn end_clip(&mut self) {
        if self.clip.take().is_some() {
            self.body.push_str("</g>\n");
        }
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Noop | Shape::Callback(_) => {}
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| self.shape(shape)),
            Shape::Circle(circle) => self.circle(circle),
            Shape::Ellipse(ellipse) => self.ellipse(ellipse),
            Shape::LineSegment { points, stroke } => {
                let path = path_of(points.iter().copied(), false);
                self.path(&path, Color32::TRANSPARENT, &stroke_of(*stroke));
            }
            Shape::Path(PathShape { points, closed, fill, stroke }) => {
                let path = path_of(points.iter().copied(), *closed);
                self.path(&path, *fill, stroke);
            }
            Shape::Band(band) => {
                let upper = band.points.iter().map(|at| Pos2::new(at.x, at.y.min));
                let lower = band.points.iter().rev().map(|at| Pos2::new(at.x, at.y.max));
                self.path(&path_of(upper.chain(lower), true), band.fill, &stroke_of(band.stroke));
            }
            Shape::Rect(rect) => self.rect(rect),
            Shape::Text(text) => self.text(text),
            Shape::Mesh(mesh) => self.mesh(mesh),
            Shape::QuadraticBezier(QuadraticBezierShape { points, closed, fill, stroke }) => {
                let [from, over, to] = points.map(point);
                let end = if *closed { " Z" } else { "" };
                self.path(&format!("M{from} Q{over} {to}{end}"), *fill, stroke);
            }
            Shape::CubicBezier(CubicBezierShape { points, closed, fill, stroke }) => {
                let [from, first, second, to] = points.map(point);
                let end = if *closed { " Z" } else { "" };
                self.path(&format!("M{from} C{first} {second} {to}{end}"), *fill, stroke);
            }
        }
    }

    fn circle(&mut self, circle: &CircleShape) {
        let x = number(circle.center.x);
        let y = number(circle.center.y);
        let radius = circle.radius;
        let paint = fill(circle.fill) + &outline(&stroke_of(circle.stroke));
        let _ =
            writeln!(self.body, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{}\"{paint}/>", number(radius));
    }

    fn ellipse(&mut self, ellipse: &EllipseShape) {
        let x = number(ellipse.center.x);
        let y = number(ellipse.center.y);
        let across = number(ellipse.radius.x);
        let down = number(ellipse.radius.y);
        let turn = rotate_attribute(ellipse.angle, ellipse.center);
        let paint = fill(ellipse.fill) + &outline(&stroke_of(ellipse.stroke)) + &turn;
        let _ = writeln!(
            self.body,
            "<ellipse cx=\"{x}\" cy=\"{y}\" rx=\"{across}\" ry=\"{down}\"{paint}/>"
        );
    }

    fn path(&mut self, path: &str, ground: Color32, stroke: &PathStroke) {
        let paint = fill(ground) + &outline(stroke);
        if paint != " fill=\"none\"" {
            let _ = writeln!(self.body, "<path d=\"{path}\"{paint}/>");
        }
    }

    fn rect(&mut self, shape: &RectShape) {
        if let Some(brush) = shape.brush.as_ref().filter(|brush| brush.uv != Rect::ZERO) {
            self.image(brush.fill_texture_id, shape.rect, brush.uv, shape.fill);
        } else if shape.blur_width > 0.0 {
            // The soft edge of a shadow is drawn as a few fainter outlines.
            for step in 1..=4u8 {
                let wide = shape.rect.expand(shape.blur_width * (0.5 - f32::from(step) / 4.0));
                let faint = shape.fill.gamma_multiply(0.25);
                let _ = writeln!(
                    self.body,
                    "<rect {}{}{}/>",
                    place(wide),
                    rounding(shape.corner_radius),
                    fill(faint)
                );
            }
            return;
        }
        // SVG centres strokes on the edge, half inside and half outside.
        let shift = match shape.stroke_kind {
            StrokeKind::Inside => -shape.stroke.width / 2.0,
            StrokeKind::Middle => 0.0,
            StrokeKind::Outside => shape.stroke.width / 2.0,
        };
        let edge = if shape.stroke.is_empty() { shape.rect } else { shape.rect.expand(shift) };
        let has_image = shape.brush.is_some();
        let ground = if has_image { Color32::TRANSPARENT } else { shape.fill };
        let paint = fill(ground) + &outline(&stroke_of(shape.stroke));
        if edge.is_positive() && paint != " fill=\"none\"" {
            let turn = rotate_attribute(shape.angle, shape.rect.center());
            let round = rounding(shape.corner_radius);
            let _ = writeln!(self.body, "<rect {}{round}{paint}{turn}/>", place(edge));
        }
    }

    /// Writes text as one element for each piece of a row in one font and colour. Each piece is as
    /// wide as on the screen even if the font is missing.
    fn text(&mut self, shape: &TextShape) {
        let job = &shape.galley.job;
        let mut byte = 0;
        for placed in &shape.galley.rows {
            let mut run: Option<SvgTextRun> = None;
            for glyph in &placed.row.glyphs {
                let section = job.sections.iter().find(|section| {
                    let range = section.byte_range.start.0..section.byte_range.end.0;
                    range.contains(&byte)
                });
                byte += glyph.chr.len_utf8();
                let Some(format) = section.or(job.sections.last()).map(|of| &of.format) else {
                    continue;
                };
                let vertices = &placed.row.visuals.mesh.vertices;
                let painted = vertices.get(glyph.first_vertex as usize).map(|vertex| vertex.color);
                let own = painted.unwrap_or(format.color);
                let own = if own == Color32::PLACEHOLDER { shape.fallback_color } else { own };
                let colour = shape.override_text_color.unwrap_or(own);
                let colour = colour.gamma_multiply(shape.opacity_factor);
                let style = (format.font_id.clone(), colour);
                let left = shape.pos.x + placed.pos.x + glyph.pos.x;
                let baseline = shape.pos.y + placed.pos.y + glyph.pos.y;
                if run.as_ref().is_none_or(|run| run.style != style) {
                    self.run(run.take(), shape);
                    run = Some(SvgTextRun {
                        style,
                        left,
                        right: left,
                        baseline,
                        text: String::new(),
                    });
                }
                if let Some(run) = &mut run {
                    run.text.push(glyph.chr);
                    run.right = left + glyph.advance_width;
                }
            }
            self.run(run, shape);
            byte += usize::from(placed.ends_with_newline);
        }
    }

    fn run(&mut self, run: Option<SvgTextRun>, shape: &TextShape) {
        let Some(run) = run.filter(|run| !run.text.trim().is_empty()) else { return };
        let (font, colour) = run.style;
        let text = escaped(run.text.trim_end());
        let spaces = run.text.chars().count() - run.text.trim_end().chars().count();
        let family = match &font.family {
            FontFamily::Monospace => " font-family=\"monospace\"",
            FontFamily::Proportional => "",
            FontFamily::Name(_) => " font-weight=\"600\"",
        };
        let x = number(run.left);
        let y = number(run.baseline);
        let length = if spaces == 0 && text.chars().count() > 1 {
            format!(
                " textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"",
                number(run.right - run.left)
            )
        } else {
            String::new()
        };
        let paint = fill(colour) + &rotate_attribute(shape.angle, shape.pos);
        let size = number(font.size);
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{family}{length}{paint} \
             xml:space=\"preserve\">{text}</text>"
        );
        if !shape.underline.is_empty() {
            let line =
                [Pos2::new(run.left, run.baseline + 1.5), Pos2::new(run.right, run.baseline + 1.5)];
            let path = path_of(line.into_iter(), false);
            self.path(&path, Color32::TRANSPARENT, &stroke_of(shape.underline));
        }
    }

    fn mesh(&mut self, mesh: &Mesh) {
        if mesh.texture_id != TextureId::default() {
            if let Some((rect, uv, tint)) = quad(mesh) {
                self.image(mesh.texture_id, rect, uv, tint);
            }
            return;
        }
        // Antialiased edges would leave a seam between neighbours.
        self.body.push_str("<g shape-rendering=\"crispEdges\">\n");
        for corners in mesh.triangles().take(MAX_TRIANGLES) {
            if let [Some(a), Some(b), Some(c)] =
                corners.map(|index| mesh.vertices.get(index as usize))
            {
                let path = path_of([a.pos, b.pos, c.pos].into_iter(), true);
                let colour = mean([a.color, b.color, c.color]);
                self.path(&path, colour, &PathStroke::NONE);
            }
        }
        self.body.push_str("</g>\n");
    }

    fn image(&mut self, texture: TextureId, rect: Rect, uv: Rect, tint: Color32) {
        let Some(texture) = self.painter.textures.get(&texture) else { return };
        let Some((size, rgba)) = cut(texture, uv, tint) else { return };
        let Ok(png) = encode_png(size, png::ColorType::Rgba, &rgba) else { return };
        let _ = writeln!(
            self.body,
            "<image {} preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" \
             href=\"data:image/png;base64,{}\"/>",
            place(rect),
            base64(&png)
        );
    }
}

/// Adjacent letters in one font and colour.
struct SvgTextRun {
    style: (egui::FontId, Color32),
    left: f32,
    right: f32,
    baseline: f32,
    text: String,
}

/// The rectangle, part of the image and colour of a mesh that is an axis-aligned image.
fn quad(mesh: &Mesh) -> Option<(Rect, Rect, Color32)> {
    let first = mesh.vertices.first()?;
    let last = mesh.vertices.last()?;
    let bound = |at: fn(&egui::epaint::Vertex) -> Pos2| {
        mesh.vertices.iter().fold(Rect::NOTHING, |mut rect, vertex| {
            rect.extend_with(at(vertex));
            rect
        })
    };
    let even = mesh.vertices.len() == 4 && first.color == last.color;
    if even {
        Some((bound(|vertex| vertex.pos), bound(|vertex| vertex.uv), first.color))
    } else {
        None
    }
}

/// The pixels of a part of a texture, with straight alpha.
fn cut(texture: &CpuTexture, uv: Rect, tint: Color32) -> Option<([u32; 2], Vec<u8>)> {
    let [width, height] = texture.size();
    let to_column = |u: f32| ((u * width as f32).round() as usize).min(width);
    let to_row = |v: f32| ((v * height as f32).round() as usize).min(height);
    let left = to_column(uv.min.x);
    let right = to_column(uv.max.x);
    let top = to_row(uv.min.y);
    let bottom = to_row(uv.max.y);
    if right <= left || bottom <= top {
        return None;
    }
    let mut rgba = Vec::with_capacity((right - left) * (bottom - top) * 4);
    for y in top..bottom {
        for x in left..right {
            let colour = texture.pixel(x, y) * tint;
            rgba.extend(colour.to_srgba_unmultiplied());
        }
    }
    Some(([(right - left) as u32, (bottom - top) as u32], rgba))
}

fn mean(colours: [Color32; 3]) -> Color32 {
    let average = |at: usize| {
        let sum: u16 = colours.iter().map(|colour| u16::from(colour.to_array()[at])).sum();
        (sum / 3) as u8
    };
    Color32::from_rgba_premultiplied(average(0), average(1), average(2), average(3))
}

fn stroke_of(stroke: Stroke) -> PathStroke {
    PathStroke::new(stroke.width, stroke.color)
}

/// Formats a number with two decimals: a hundredth of a point is invisible.
fn number(value: f32) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn point(at: Pos2) -> String {
    format!("{} {}", number(at.x), number(at.y))
}

fn path_of(points: impl Iterator<Item = Pos2>, closed: bool) -> String {
    let mut path = String::new();
    for (index, at) in points.enumerate() {
        path.push_str(if index == 0 { "M" } else { " L" });
        path.push_str(&point(at));
    }
    if closed {
        path.push_str(" Z");
    }
    path
}

fn place(rect: Rect) -> String {
    let x = number(rect.min.x);
    let y = number(rect.min.y);
    let width = number(rect.width().max(0.0));
    let height = number(rect.height().max(0.0));
    format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
}

fn rounding(radius: CornerRadius) -> String {
    match radius.average() {
        0.0 => String::new(),
        radius => format!(" rx=\"{}\"", number(radius)),
    }
}

fn rotate_attribute(angle: f32, around: Pos2) -> String {
    if angle == 0.0 {
        return String::new();
    }
    format!(" transform=\"rotate({} {})\"", number(angle.to_degrees()), point(around))
}

fn fill(colour: Color32) -> String {
    paint("fill", colour)
}

fn paint(what: &str, colour: Color32) -> String {
    if colour == Color32::TRANSPARENT {
        return format!(" {what}=\"none\"");
    }
    let [r, g, b, alpha] = colour.to_srgba_unmultiplied();
    let share = match alpha {
        255 => String::new(),
        alpha => format!(" {what}-opacity=\"{}\"", number(f32::from(alpha) / 255.0)),
    };
    format!(" {what}=\"#{r:02x}{g:02x}{b:02x}\"{share}")
}

fn outline(stroke: &PathStroke) -> String {
    let colour = match &stroke.color {
        ColorMode::Solid(colour) => *colour,
        ColorMode::UV(at) => at(Rect::ZERO, Pos2::ZERO),
    };
    if stroke.width <= 0.0 || colour == Color32::TRANSPARENT {
        return String::new();
    }
    format!("{} stroke-width=\"{}\"", paint("stroke", colour), number(stroke.width))
}

/// Escapes text for XML. Characters that XML cannot represent are dropped.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            letter if letter.is_control() => {}
            '\u{fffe}' | '\u{ffff}' => {}
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Encodes bytes in base64 (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= group.len() { letter as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_standard() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (bytes, text) in cases {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn text_stays_text_and_is_escaped() {
        let context = egui::Context::default();
        crate::theme::install(&context);
        let mut output = context.run_ui(egui::RawInput::default(), |ui| {
            ui.label("Reduce<half> & more");
            ui.painter().rect_filled(
                Rect::from_min_size(Pos2::new(3.0, 4.0), egui::Vec2::new(5.0, 6.0)),
                0.0,
                Color32::from_rgb(1, 2, 3),
            );
        });
        let mut painter = SoftwareRenderer::default();
        painter.update(&mut output.textures_delta);
        let svg = painter.svg([200, 100], 1.0, Color32::WHITE, &output.shapes);
        assert!(svg.contains(">Reduce&lt;half&gt; &amp; more</text>"), "{svg}");
        assert!(svg.contains("<rect x=\"3\" y=\"4\" width=\"5\" height=\"6\" fill=\"#010203\"/>"));
        assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
    }
}
