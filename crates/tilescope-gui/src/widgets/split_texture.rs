//! Images of any size as textures, split into pieces that every graphics card accepts.

use egui::epaint::TextureManager;
use egui::mutex::RwLock;
use egui::{
    Color32, ColorImage, Context, ImageData, Painter, Rect, TextureHandle, TextureOptions, pos2,
};
use std::sync::Arc;

/// The largest side of a piece; egui guarantees this everywhere.
const MAX_PIECE_SIDE: usize = 2048;

/// The owner of textures. A picture of a window is drawn in a separate context, which does not
/// have the textures of the window.
#[derive(Clone)]
pub(crate) struct TextureOwner(Arc<RwLock<TextureManager>>);

impl TextureOwner {
    pub(crate) fn of(context: &Context) -> Self {
        Self(context.tex_manager())
    }

    /// Returns true if the textures can be painted in a context.
    pub(crate) fn is(&self, context: &Context) -> bool {
        Arc::ptr_eq(&self.0, &context.tex_manager())
    }
}

/// An image in pieces. Splitting copies it, so do it in the background.
pub(crate) struct SplitImage {
    size: [usize; 2],
    pieces: Vec<([usize; 2], Arc<ColorImage>)>,
}

impl SplitImage {
    pub(crate) fn cut(image: ColorImage) -> Self {
        let size = image.size;
        let [width, height] = size;
        // The usual case, without a copy.
        if width <= MAX_PIECE_SIDE && height <= MAX_PIECE_SIDE {
            return Self { size, pieces: vec![([0, 0], Arc::new(image))] };
        }
        let mut pieces = Vec::new();
        for top in (0..height).step_by(MAX_PIECE_SIDE) {
            for left in (0..width).step_by(MAX_PIECE_SIDE) {
                let part = [MAX_PIECE_SIDE.min(width - left), MAX_PIECE_SIDE.min(height - top)];
                let part = image.region_by_pixels([left, top], part);
                pieces.push(([left, top], Arc::new(part)));
            }
        }
        Self { size, pieces }
    }
}

/// An image on the graphics card.
#[derive(Clone)]
pub(crate) struct SplitTexture {
    size: [usize; 2],
    pieces: Vec<([usize; 2], [usize; 2], TextureHandle)>,
}

impl SplitTexture {
    /// Uploads an image.
    pub(crate) fn new(context: &Context, name: &str, image: &SplitImage) -> Self {
        let mut pieces = Vec::new();
        for (corner, piece) in &image.pieces {
            let data = ImageData::Color(piece.clone());
            // Usually one image pixel is one screen pixel: interpolation could only blur it.
            let handle = context.load_texture(name, data, TextureOptions::NEAREST);
            pieces.push((*corner, piece.size, handle));
        }
        Self { size: image.size, pieces }
    }

    /// Paints the whole image into `rect`.
    pub(crate) fn paint(&self, painter: &Painter, rect: Rect) {
        let scale_x = f64::from(rect.width()) / self.size[0].max(1) as f64;
        let scale_y = f64::from(rect.height()) / self.size[1].max(1) as f64;
        // Corners computed from the whole image in f64: pieces share them exactly and leave no
        // seams.
        let to_point = |x: usize, y: usize| {
            pos2(
                (f64::from(rect.left()) + x as f64 * scale_x) as f32,
                (f64::from(rect.top()) + y as f64 * scale_y) as f32,
            )
        };
        let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
        for ([left, top], [width, height], handle) in &self.pieces {
            let piece =
                Rect::from_min_max(to_point(*left, *top), to_point(left + width, top + height));
            // When zoomed in, most pieces are outside the screen and would be uploaded only to be
            // clipped.
            if piece.intersects(painter.clip_rect()) {
                painter.image(handle.id(), piece, whole, Color32::WHITE);
            }
        }
    }
}
