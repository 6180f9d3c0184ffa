//! Output without control characters for terminals.
//!
//! Names in reports are untrusted. Some characters control a terminal: they move its cursor, change
//! its title, or fill the clipboard. They are written as `\u001b`, which is readable, and the same
//! text inside JSON.

use std::io::{self, Write};

/// A stream that escapes control characters other than line ends and tabs, and characters that
/// change the direction of writing.
pub(super) struct PlainOutput<W> {
    inner: W,
    /// The first bytes of an incomplete character, which may need an escape.
    pending: Vec<u8>,
}

/// First byte of the control characters from U+0080 to U+009F in UTF-8.
const C1_LEAD: u8 = 0xc2;
/// First byte of the characters that change the direction of writing: U+202A to U+202E, U+2066 to
/// U+2069.
const TURN_LEAD: u8 = 0xe2;

impl<W: Write> PlainOutput<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, pending: Vec::new() }
    }

    fn add(&mut self, byte: u8, plain: &mut Vec<u8>) {
        match (self.pending.as_slice(), byte) {
            ([C1_LEAD], 0x80..=0x9f) => self.spell_out(u16::from(byte), plain),
            ([TURN_LEAD], 0x80 | 0x81) => self.pending.push(byte),
            ([TURN_LEAD, middle @ 0x80], 0xaa..=0xae)
            | ([TURN_LEAD, middle @ 0x81], 0xa6..=0xa9) => {
                let high = u16::from(middle & 0x3f) << 6;
                let low = u16::from(byte & 0x3f);
                self.spell_out(0x2000 | high | low, plain);
            }
            _ => {
                plain.append(&mut self.pending);
                match byte {
                    C1_LEAD | TURN_LEAD => self.pending.push(byte),
                    b'\n' | b'\t' => plain.push(byte),
                    0..0x20 | 0x7f => self.spell_out(u16::from(byte), plain),
                    _ => plain.push(byte),
                }
            }
        }
    }

    fn spell_out(&mut self, letter: u16, plain: &mut Vec<u8>) {
        self.pending.clear();
        plain.extend(format!("\\u{letter:04x}").bytes());
    }
}

impl<W: Write> Write for PlainOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut plain = Vec::with_capacity(bytes.len());
        bytes.iter().for_each(|byte| self.add(*byte, &mut plain));
        self.inner.write_all(&plain)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.write_all(&std::mem::take(&mut self.pending))?;
        self.inner.flush()
    }
}

/// Standard error with escapes.
pub(super) fn stderr() -> PlainOutput<io::Stderr> {
    PlainOutput::new(io::stderr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pieces: &[&[u8]]) -> String {
        let mut output = PlainOutput::new(Vec::new());
        pieces.iter().for_each(|piece| output.write_all(piece).unwrap());
        output.flush().unwrap();
        String::from_utf8(output.inner).unwrap()
    }

    #[test]
    fn control_sequences_are_escaped() {
        let clipboard = "layer\x1b]52;c;cm0gLXJm\x07/conv";
        assert_eq!(written(&[clipboard.as_bytes()]), "layer\\u001b]52;c;cm0gLXJm\\u0007/conv");
        assert_eq!(written(&["a\u{9b}31m".as_bytes()]), "a\\u009b31m");
        assert_eq!(written(&[b"a\rb\x7f\0"]), "a\\u000db\\u007f\\u0000");
        assert_eq!(written(&["a\u{202e}b\u{2066}c".as_bytes()]), "a\\u202eb\\u2066c");
    }

    #[test]
    fn plain_text_is_unchanged() {
        let text = "µs Ω ≤ 配置\tx\n·… → \u{202f}\u{2065}";
        assert_eq!(written(&[text.as_bytes()]), text);
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(written(&bytes), text);
        assert_eq!(written(&[b"\xc2", b"\x9b"]), "\\u009b");
        assert_eq!(written(&[b"\xe2", b"\x81", b"\xa9"]), "\\u2069");
    }
}
