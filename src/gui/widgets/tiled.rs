//! Images of any width as textures: cut into pieces that every graphics card takes.

use egui::{Color32, ColorImage, Context, Painter, Rect, TextureHandle, TextureOptions, pos2};

/// Widest and highest piece; what egui promises everywhere.
const PIECE: usize = 2048;

/// An image on the graphics card.
pub struct Tiled {
    size: [usize; 2],
    pieces: Vec<([usize; 2], [usize; 2], TextureHandle)>,
}

impl Tiled {
    /// Hands an image over.
    pub fn new(context: &Context, name: &str, image: &ColorImage) -> Self {
        let [width, height] = image.size;
        let mut pieces = Vec::new();
        for top in (0..height).step_by(PIECE) {
            for left in (0..width).step_by(PIECE) {
                let size = [PIECE.min(width - left), PIECE.min(height - top)];
                let part = image.region_by_pixels([left, top], size);
                let handle = context.load_texture(name, part, TextureOptions::NEAREST);
                pieces.push(([left, top], size, handle));
            }
        }
        Self { size: image.size, pieces }
    }

    /// Paints the whole image into `rect`.
    pub fn paint(&self, painter: &Painter, rect: Rect) {
        let scale_x = f64::from(rect.width()) / self.size[0].max(1) as f64;
        let scale_y = f64::from(rect.height()) / self.size[1].max(1) as f64;
        for ([left, top], [width, height], handle) in &self.pieces {
            let at = |x: usize, y: usize| {
                pos2(
                    (f64::from(rect.left()) + x as f64 * scale_x) as f32,
                    (f64::from(rect.top()) + y as f64 * scale_y) as f32,
                )
            };
            let piece = Rect::from_min_max(at(*left, *top), at(left + width, top + height));
            if piece.intersects(painter.clip_rect()) {
                let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
                painter.image(handle.id(), piece, whole, Color32::WHITE);
            }
        }
    }
}
