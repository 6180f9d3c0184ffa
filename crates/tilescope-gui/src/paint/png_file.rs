//! PNG encoding of pictures.

use super::RenderedImage;

/// An error from encoding a PNG.
#[derive(Debug, thiserror::Error)]
#[error("cannot encode the picture: {0}")]
pub struct PngEncodeError(#[from] png::EncodingError);

impl RenderedImage {
    /// Returns the bytes of a PNG file. Equal pixels give equal bytes.
    ///
    /// # Errors
    /// Returns an error if the picture cannot be encoded, for example because it is empty.
    pub fn png(&self) -> Result<Vec<u8>, PngEncodeError> {
        let bytes: Vec<u8> = self.pixels.iter().flat_map(|[r, g, b, _]| [*r, *g, *b]).collect();
        encode_png([self.width as u32, self.height as u32], png::ColorType::Rgb, &bytes)
    }
}

/// Encodes rows of pixels, 8 bits per channel.
pub(super) fn encode_png(
    [width, height]: [u32; 2],
    colours: png::ColorType,
    bytes: &[u8],
) -> Result<Vec<u8>, PngEncodeError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(colours);
    encoder.set_depth(png::BitDepth::Eight);
    // Flat areas and repeated glyphs compress better as they are, and no row tries every filter.
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(bytes)?;
    writer.finish()?;
    Ok(file)
}
