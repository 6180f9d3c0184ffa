//! Textures: the font atlas and the images of views.

use egui::epaint::{ImageData, ImageDelta};
use egui::{Color32, TextureFilter, TextureOptions, TextureWrapMode};

/// An image and its sampling options.
pub(super) struct CpuTexture {
    width: usize,
    height: usize,
    pixels: Vec<Color32>,
    options: TextureOptions,
}

/// A colour in gamma space with premultiplied alpha, 0 to 255 per channel.
pub(super) type GammaRgba = [f32; 4];

impl CpuTexture {
    pub(super) fn new(delta: &ImageDelta) -> Self {
        let ImageData::Color(image) = &delta.image;
        let [width, height] = image.size;
        Self { width, height, pixels: image.pixels.clone(), options: delta.options }
    }

    /// The width and height in pixels.
    pub(super) fn size(&self) -> [usize; 2] {
        [self.width, self.height]
    }

    /// Returns one pixel, transparent outside the image.
    pub(super) fn pixel(&self, x: usize, y: usize) -> Color32 {
        self.pixels.get(y * self.width + x).copied().unwrap_or(Color32::TRANSPARENT)
    }

    /// Overwrites a part of the image. Pixels outside are ignored.
    pub(super) fn replace(&mut self, [left, top]: [usize; 2], delta: &ImageDelta) {
        let ImageData::Color(image) = &delta.image;
        let [width, height] = image.size;
        // A part that is too wide would continue in the next row, or past the last one.
        let columns = width.min(self.width.saturating_sub(left));
        for row in 0..height.min(self.height.saturating_sub(top)) {
            let from = &image.pixels[row * width..row * width + columns];
            let start = (top + row) * self.width + left;
            self.pixels[start..start + columns].copy_from_slice(from);
        }
    }

    /// The colour at a position given as fractions of the image's width and height.
    pub(super) fn sample(&self, u: f32, v: f32) -> GammaRgba {
        let x = u * self.width as f32;
        let y = v * self.height as f32;
        match self.options.magnification {
            TextureFilter::Nearest => self.texel(x.floor() as i64, y.floor() as i64),
            // Texel centres are at halves: without the shift the image would be half a texel off.
            TextureFilter::Linear => self.between(x - 0.5, y - 0.5),
        }
    }

    fn between(&self, x: f32, y: f32) -> GammaRgba {
        // A cast would round towards zero and mistake the texel before 0, which wraps, for texel 0.
        let left = x.floor();
        let top = y.floor();
        let right_share = x - left;
        let lower_share = y - top;
        let left = left as i64;
        let top = top as i64;
        let upper = mix(self.texel(left, top), self.texel(left + 1, top), right_share);
        let lower = mix(self.texel(left, top + 1), self.texel(left + 1, top + 1), right_share);
        mix(upper, lower, lower_share)
    }

    fn texel(&self, x: i64, y: i64) -> GammaRgba {
        let column = wrapped(x, self.width, self.options.wrap_mode);
        let row = wrapped(y, self.height, self.options.wrap_mode);
        match self.pixels.get(row * self.width + column) {
            Some(colour) => colour.to_array().map(f32::from),
            None => [0.0; 4],
        }
    }
}

fn wrapped(at: i64, size: usize, mode: TextureWrapMode) -> usize {
    // On an empty texture `clamp` would panic and `rem_euclid` would divide by zero.
    let size = (size as i64).max(1);
    let inside = match mode {
        TextureWrapMode::ClampToEdge => at.clamp(0, size - 1),
        TextureWrapMode::Repeat => at.rem_euclid(size),
        TextureWrapMode::MirroredRepeat => {
            // The image and its mirror image repeat together, every two sizes.
            let twice = at.rem_euclid(2 * size);
            twice.min(2 * size - 1 - twice)
        }
    };
    inside as usize
}

fn mix(a: GammaRgba, b: GammaRgba, share: f32) -> GammaRgba {
    // Text is aligned to pixels: nearly every read falls on one texel exactly.
    if share == 0.0 {
        return a;
    }
    std::array::from_fn(|i| a[i] + (b[i] - a[i]) * share)
}
