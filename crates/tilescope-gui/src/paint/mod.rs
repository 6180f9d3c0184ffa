//! A software renderer for egui's output. It needs no display and no driver, and draws the same
//! pixels on every machine.
//!
//! It follows egui's own OpenGL backend: colours are multiplied and blended in gamma space with
//! premultiplied alpha, clip rectangles are rounded to pixels, triangles cover the pixels whose
//! centre they contain (top-left rule, 8 bits of sub-pixel precision, so that triangles which
//! share an edge never paint a pixel twice).

mod png_file;
mod svg;
mod texture;
mod triangle;

pub(crate) use png_file::PngEncodeError;
use png_file::encode_png;

use egui::epaint::{ClippedPrimitive, Primitive};
use egui::{Color32, TextureId, TexturesDelta};
use rayon::prelude::*;
use std::collections::HashMap;
use texture::CpuTexture;
use triangle::PixelRowBand;

/// The rows that one thread paints at a time.
const BAND_ROWS: usize = 64;

/// An opaque picture, 8 bits per channel, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedImage {
    /// The pixels of a row.
    pub width: usize,
    pub height: usize,
    /// The pixels; alpha is always 255.
    pub pixels: Vec<[u8; 4]>,
}

#[cfg(test)]
impl RenderedImage {
    /// The pixel in column `x` of row `y`.
    pub(crate) fn pixel(&self, x: usize, y: usize) -> [u8; 4] {
        self.pixels[y * self.width + x]
    }
}

/// Keeps the textures of one egui context and draws its frames.
#[derive(Default)]
pub(crate) struct SoftwareRenderer {
    textures: HashMap<TextureId, CpuTexture>,
}

impl SoftwareRenderer {
    /// Applies new and changed textures. Call it for every frame, in order.
    #[expect(clippy::iter_over_hash_type, reason = "textures do not depend on each other")]
    pub(crate) fn update(&mut self, delta: &mut TexturesDelta) {
        for (id, changes) in delta.set.drain() {
            // A change without a position replaces the whole texture; with one it replaces a part,
            // such as new glyphs.
            for change in changes {
                match change.pos {
                    None => {
                        self.textures.insert(id, CpuTexture::new(&change));
                    }
                    Some(at) => {
                        if let Some(texture) = self.textures.get_mut(&id) {
                            texture.replace(at, &change);
                        }
                    }
                }
            }
        }
        for id in delta.free.drain() {
            self.textures.remove(&id);
        }
    }

    /// Draws one frame on a background of one colour and returns it.
    pub(crate) fn paint(
        &self,
        size: [usize; 2],
        pixels_per_point: f32,
        ground: Color32,
        primitives: &[ClippedPrimitive],
    ) -> RenderedImage {
        let [width, height] = size;
        let [r, g, b, _] = ground.to_array();
        let mut pixels = vec![[r, g, b, 255]; width * height];
        let rows = BAND_ROWS * width.max(1);
        // Every band paints all primitives in order: blending does not commute, bands do not
        // overlap.
        pixels.par_chunks_mut(rows).enumerate().for_each(|(index, chunk)| {
            let mut band = PixelRowBand::new(chunk, width, index * BAND_ROWS);
            for primitive in primitives {
                self.paint_primitive(&mut band, pixels_per_point, primitive);
            }
        });
        RenderedImage { width, height, pixels }
    }

    fn paint_primitive(
        &self,
        band: &mut PixelRowBand,
        pixels_per_point: f32,
        clipped: &ClippedPrimitive,
    ) {
        // Callbacks draw with a graphics card; none of our views has one.
        let Primitive::Mesh(mesh) = &clipped.primitive else { return };
        let Some(texture) = self.textures.get(&mesh.texture_id) else { return };
        // Scissor rectangles of a graphics card are in whole pixels; egui's backend rounds the same
        // way.
        let clip = (clipped.clip_rect * pixels_per_point).round();
        if !band.clip_to(clip) {
            return;
        }
        for corners in mesh.triangles() {
            // Indices come from tessellation. An index out of range loses a triangle, not the
            // frame.
            if let [Some(a), Some(b), Some(c)] =
                corners.map(|index| mesh.vertices.get(index as usize))
            {
                band.triangle([a, b, c], pixels_per_point, texture);
            }
        }
    }
}

#[cfg(test)]
mod tests;
