//! Rasterization of triangles.

use super::texture::{CpuTexture, GammaRgba};
use egui::Rect;
use egui::epaint::Vertex;

/// The fractions of a pixel that corners are rounded to.
const SUB_PIXELS: f32 = 256.0;
/// The limit for corners, in pixels. Farther ones are moved in so that products fit in 64 bits.
const FAR: f32 = 65_536.0;

/// Consecutive rows of a picture, and the part of them that may be painted.
pub(super) struct PixelRowBand<'a> {
    pixels: &'a mut [[u8; 4]],
    width: i64,
    first_row: i64,
    rows: i64,
    clip: PixelClip,
}

/// Half-open ranges of columns and rows of the picture.
#[derive(Clone, Copy)]
struct PixelClip {
    left: i64,
    right: i64,
    top: i64,
    bottom: i64,
}

/// A directed edge: positive on the inner side, zero on it.
struct TriangleEdge {
    /// The change from one column to the next, in sub-pixels squared.
    per_column: i64,
    /// The change from one row to the next, in sub-pixels squared.
    per_row: i64,
    /// The value at the centre of pixel (0, 0), less the correction for shared edges.
    origin: i64,
}

impl TriangleEdge {
    fn between([ax, ay]: [i64; 2], [bx, by]: [i64; 2]) -> Self {
        let dx = bx - ax;
        let dy = by - ay;
        let scale = SUB_PIXELS as i64;
        let centre = scale / 2;
        // A pixel centre on an edge belongs to the triangle to the right of the edge, or below it.
        let owns_edge = dy < 0 || (dy == 0 && dx > 0);
        // All integers: two triangles that share an edge get the same values with opposite signs.
        // The subtracted one decides which of them paints a centre exactly on the edge.
        let origin = dx * (centre - ay) - dy * (centre - ax) - i64::from(!owns_edge);
        Self { per_column: -dy * scale, per_row: dx * scale, origin }
    }

    /// Narrows `from..to` to the columns of row `y` that lie on the inner side.
    fn narrow(&self, y: i64, from: &mut i64, to: &mut i64) {
        let at_first = self.origin + self.per_row * y;
        match self.per_column {
            // A horizontal edge has all columns of a row on one side of it.
            0 if at_first < 0 => *to = *from,
            0 => {}
            // `div_euclid` rounds towards minus infinity for both signs; `/` would round towards
            // zero and shift edges left of the origin by a column.
            step if step > 0 => *from = (*from).max(-at_first.div_euclid(step)),
            step => *to = (*to).min(at_first.div_euclid(-step) + 1),
        }
    }
}

/// A quantity that changes linearly over the picture.
#[derive(Clone, Copy)]
struct AttributePlane {
    at_origin: f32,
    per_column: f32,
    per_row: f32,
}

impl AttributePlane {
    /// The plane through the values at three corners.
    fn through(corners: &[[f32; 2]; 3], doubled_area: f32, values: [f32; 3]) -> Self {
        let [[ax, ay], [bx, by], [cx, cy]] = *corners;
        let first = values[1] - values[0];
        let second = values[2] - values[0];
        let per_column = (first * (cy - ay) - second * (by - ay)) / doubled_area;
        let per_row = (second * (bx - ax) - first * (cx - ax)) / doubled_area;
        // Planes are sampled at pixel centres, half a pixel from the corner of pixel (0, 0).
        let at_origin = values[0] + (0.5 - ax) * per_column + (0.5 - ay) * per_row;
        Self { at_origin, per_column, per_row }
    }

    fn at(&self, x: i64, y: i64) -> f32 {
        self.at_origin + self.per_column * x as f32 + self.per_row * y as f32
    }
}

impl<'a> PixelRowBand<'a> {
    pub(super) fn new(pixels: &'a mut [[u8; 4]], width: usize, first_row: usize) -> Self {
        let rows = pixels.len() / width.max(1);
        let width = width as i64;
        let first_row = first_row as i64;
        let rows = rows as i64;
        let clip = PixelClip { left: 0, right: width, top: first_row, bottom: first_row + rows };
        Self { pixels, width, first_row, rows, clip }
    }

    /// Restricts painting to `rect` (in pixels). Returns true if a part of the band is left.
    pub(super) fn clip_to(&mut self, rect: Rect) -> bool {
        let top = self.first_row;
        let bottom = self.first_row + self.rows;
        self.clip = PixelClip {
            // The casts saturate: egui's unlimited clip rectangle is infinite.
            left: (rect.left() as i64).clamp(0, self.width),
            right: (rect.right() as i64).clamp(0, self.width),
            top: (rect.top() as i64).clamp(top, bottom),
            bottom: (rect.bottom() as i64).clamp(top, bottom),
        };
        self.clip.left < self.clip.right && self.clip.top < self.clip.bottom
    }

    pub(super) fn triangle(&mut self, vertices: [&Vertex; 3], scale: f32, texture: &CpuTexture) {
        let mut corners = vertices.map(|vertex| {
            [vertex.pos.x, vertex.pos.y].map(|at| snapped(at * scale).clamp(-FAR, FAR))
        });
        // NaN passes through `clamp`, and every comparison with it below would be false.
        if corners.iter().flatten().any(|at| !at.is_finite()) || !self.may_touch(&corners) {
            return;
        }
        let mut vertices = vertices;
        let area = doubled_area(&corners);
        // Degenerate after snapping: it covers no pixel centre, and planes would divide by zero.
        if area == 0.0 {
            return;
        }
        // egui is not consistent in its winding order.
        if area < 0.0 {
            corners.swap(1, 2);
            vertices.swap(1, 2);
        }
        self.fill(&corners, area.abs(), vertices, texture);
    }

    fn may_touch(&self, corners: &[[f32; 2]; 3]) -> bool {
        // Most triangles of a frame are in other bands; skip the setup of their edges.
        let [a, b, c] = corners;
        let top = a[1].min(b[1]).min(c[1]);
        let bottom = a[1].max(b[1]).max(c[1]);
        let left = a[0].min(b[0]).min(c[0]);
        let right = a[0].max(b[0]).max(c[0]);
        top < self.clip.bottom as f32
            && bottom > self.clip.top as f32
            && left < self.clip.right as f32
            && right > self.clip.left as f32
    }

    fn fill(&mut self, corners: &[[f32; 2]; 3], area: f32, vertices: [&Vertex; 3], t: &CpuTexture) {
        // Exact: the corners lie on sub-pixels and within `FAR`, where 32-bit floats still hold
        // whole numbers of them.
        let fixed = corners.map(|corner| corner.map(|at| (at * SUB_PIXELS) as i64));
        let edges =
            [(0, 1), (1, 2), (2, 0)].map(|(a, b)| TriangleEdge::between(fixed[a], fixed[b]));
        let shading = TriangleShading::new(corners, area, vertices, t);
        let highest = corners.iter().map(|corner| corner[1]).fold(f32::MAX, f32::min);
        let lowest = corners.iter().map(|corner| corner[1]).fold(f32::MIN, f32::max);
        let top = self.clip.top.max(highest.floor() as i64);
        let bottom = self.clip.bottom.min(lowest.ceil() as i64);
        // In each row the three edges leave one range of columns, so no pixel is tested by itself.
        for y in top..bottom {
            let mut from = self.clip.left;
            let mut to = self.clip.right;
            for edge in &edges {
                edge.narrow(y, &mut from, &mut to);
            }
            if from < to {
                // Edges only narrow the clip, and the clip is within the band: the slice is in
                // range.
                let start = (y - self.first_row) * self.width;
                let row = &mut self.pixels[(start + from) as usize..(start + to) as usize];
                shading.paint_row(row, from, y);
            }
        }
    }
}

/// The source of the pixel colours of one triangle.
enum TriangleShading<'a> {
    Flat(GammaRgba),
    Smooth([AttributePlane; 4]),
    Textured {
        colour: [AttributePlane; 4],
        u: AttributePlane,
        v: AttributePlane,
        texture: &'a CpuTexture,
    },
}

impl<'a> TriangleShading<'a> {
    fn new(
        corners: &[[f32; 2]; 3],
        area: f32,
        vertices: [&Vertex; 3],
        texture: &'a CpuTexture,
    ) -> Self {
        let [a, b, c] = vertices;
        let colours = vertices.map(|vertex| vertex.color.to_array().map(f32::from));
        let interpolate = |values| AttributePlane::through(corners, area, values);
        let colour = || std::array::from_fn(|i| interpolate(colours.map(|colour| colour[i])));
        // The corners of egui's filled shapes all point at the white texel, so most triangles need
        // no texture.
        if a.uv == b.uv && b.uv == c.uv {
            let texel = texture.sample(a.uv.x, a.uv.y);
            if texel == [255.0; 4] && !(a.color == b.color && b.color == c.color) {
                return Self::Smooth(colour());
            }
            if a.color == b.color && b.color == c.color {
                return Self::Flat(product(colours[0], texel));
            }
        }
        let u = interpolate(vertices.map(|vertex| vertex.uv.x));
        let v = interpolate(vertices.map(|vertex| vertex.uv.y));
        Self::Textured { colour: colour(), u, v, texture }
    }

    fn paint_row(&self, row: &mut [[u8; 4]], first: i64, y: i64) {
        match self {
            // Most pixels of a frame are opaque backgrounds and panels.
            Self::Flat(colour) if colour[3] >= 255.0 => {
                row.fill([to_byte(colour[0]), to_byte(colour[1]), to_byte(colour[2]), 255]);
            }
            Self::Flat(colour) => row.iter_mut().for_each(|pixel| blend(pixel, *colour)),
            Self::Smooth(planes) => {
                for (x, pixel) in (first..).zip(row) {
                    blend(pixel, planes.map(|plane| plane.at(x, y)));
                }
            }
            Self::Textured { colour, u, v, texture } => {
                for (x, pixel) in (first..).zip(row) {
                    let texel = texture.sample(u.at(x, y), v.at(x, y));
                    // Most of a textured rectangle around a glyph is transparent.
                    if texel != [0.0; 4] {
                        blend(pixel, product(colour.map(|plane| plane.at(x, y)), texel));
                    }
                }
            }
        }
    }
}

fn snapped(at: f32) -> f32 {
    (at * SUB_PIXELS).round() / SUB_PIXELS
}

fn doubled_area([a, b, c]: &[[f32; 2]; 3]) -> f32 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

fn product(a: GammaRgba, b: GammaRgba) -> GammaRgba {
    std::array::from_fn(|i| a[i] * b[i] / 255.0)
}

/// Blends with premultiplied "over" in gamma space, as egui's backends do.
fn blend(pixel: &mut [u8; 4], colour: GammaRgba) {
    let kept = 1.0 - colour[3] / 255.0;
    for (channel, value) in pixel.iter_mut().zip(colour).take(3) {
        // Alpha is left unchanged: the picture is opaque from the start.
        *channel = to_byte(value + f32::from(*channel) * kept);
    }
}

fn to_byte(value: f32) -> u8 {
    // The cast saturates.
    (value + 0.5) as u8
}
