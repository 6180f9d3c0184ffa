//! Pictures as PNG files.

use super::Picture;
use std::io;
use std::path::Path;

/// Why a PNG could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The file could not be created or written.
    #[error("cannot write the picture: {0}")]
    Io(#[from] io::Error),
    /// The picture cannot be encoded, say because it is empty.
    #[error("cannot encode the picture: {0}")]
    Encoding(#[from] png::EncodingError),
}

/// Writes a picture; same pixels, same bytes.
pub fn write_png(picture: &Picture, path: &Path) -> Result<(), PngError> {
    let file = io::BufWriter::new(std::fs::File::create(path)?);
    let mut encoder = png::Encoder::new(file, picture.width as u32, picture.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let bytes: Vec<u8> = picture.pixels.iter().flat_map(|[r, g, b, _]| [*r, *g, *b]).collect();
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&bytes)?;
    writer.finish()?;
    Ok(())
}
