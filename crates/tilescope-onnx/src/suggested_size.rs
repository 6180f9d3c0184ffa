//! Initial sizes for dimensions that a file leaves open: guesses from the names that exporters
//! write. Callers must present them as guesses.

use crate::file::{Dimension, GraphInput, OnnxFile, Symbol};
use std::collections::BTreeMap;

/// Tokens of a sequence, frames of a recording.
const SEQUENCE: u64 = 128;
/// Pixels per side of an image, as in networks for ImageNet.
const IMAGE: u64 = 224;
const CHANNELS: u64 = 3;
const BATCH: u64 = 1;

/// Words in names; the first match decides.
const WORDS: &[(&str, u64)] = &[
    ("batch", BATCH),
    ("channel", CHANNELS),
    ("height", IMAGE),
    ("width", IMAGE),
    ("image", IMAGE),
    ("seq", SEQUENCE),
    ("len", SEQUENCE),
    ("token", SEQUENCE),
    ("time", SEQUENCE),
    ("frame", SEQUENCE),
];

/// Whole names of one letter, as in NCHW.
const LETTERS: &[(&str, u64)] =
    &[("n", BATCH), ("b", BATCH), ("c", CHANNELS), ("h", IMAGE), ("w", IMAGE), ("t", SEQUENCE)];

impl OnnxFile {
    /// An initial size for each open dimension: by its name, or else by its position in the first
    /// input that has it. Images are floating point with four dimensions, channels first.
    #[must_use]
    pub fn suggested_sizes(&self, symbols: &[Symbol]) -> Vec<u64> {
        let inputs: BTreeMap<&str, &GraphInput> =
            self.inputs().iter().map(|input| (&*input.name, input)).collect();
        let get_by_place = |symbol: &Symbol| {
            let (name, axis) = symbol.places.first()?;
            Some(by_place(inputs.get(&**name).copied()?, *axis))
        };
        symbols
            .iter()
            .map(|symbol| {
                if symbol.is_batch {
                    BATCH
                } else {
                    by_name(symbol).or_else(|| get_by_place(symbol)).unwrap_or(SEQUENCE)
                }
            })
            .collect()
    }
}

fn by_name(symbol: &Symbol) -> Option<u64> {
    // A dimension without a name is named after its input: `image.2` is not an image.
    let (input, axis) = symbol.places.first()?;
    if symbol.name == Dimension::unnamed(input, *axis) {
        return None;
    }
    let name = symbol.name.to_lowercase();
    let letter = LETTERS.iter().find(|(letter, _)| *letter == name);
    let found = letter.or_else(|| WORDS.iter().find(|(word, _)| name.contains(word)));
    found.map(|(_, size)| *size)
}

fn by_place(input: &GraphInput, axis: usize) -> u64 {
    let is_image = input.element.is_float() && input.dims.len() == 4;
    match (axis, is_image) {
        (0, _) => BATCH,
        (1, true) => CHANNELS,
        (_, true) => IMAGE,
        (_, false) => SEQUENCE,
    }
}
