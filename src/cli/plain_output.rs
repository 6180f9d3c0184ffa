//! Output that a terminal shows and never obeys.
//!
//! Names in reports are written by strangers. A terminal takes some characters as orders: to move
//! its cursor, change its title, or fill the clipboard. They come out as `\u001b`, which shows what
//! they are, and stays the same text inside JSON.

use std::io::{self, Write};

/// A stream in which control characters other than line ends and tabs are spelled out.
pub(super) struct PlainOutput<W> {
    inner: W,
    /// The first byte of a two-byte control character, until the second one comes.
    pending: Option<u8>,
}

/// First byte of the control characters from U+0080 to U+009F in UTF-8.
const C1_LEAD: u8 = 0xc2;

impl<W: Write> PlainOutput<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, pending: None }
    }
}

impl<W: Write> Write for PlainOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut plain = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            match (self.pending.take(), byte) {
                (Some(_), 0x80..=0x9f) => plain.extend(spelled_out(byte)),
                (lead, _) => {
                    plain.extend(lead);
                    match byte {
                        C1_LEAD => self.pending = Some(byte),
                        b'\n' | b'\t' => plain.push(byte),
                        0..0x20 | 0x7f => plain.extend(spelled_out(byte)),
                        _ => plain.push(byte),
                    }
                }
            }
        }
        self.inner.write_all(&plain)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(byte) = self.pending.take() {
            self.inner.write_all(&[byte])?;
        }
        self.inner.flush()
    }
}

fn spelled_out(byte: u8) -> Vec<u8> {
    format!("\\u{byte:04x}").into_bytes()
}

/// Standard error, plain.
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
    fn orders_to_terminals_are_spelled_out() {
        let clipboard = "layer\x1b]52;c;cm0gLXJm\x07/conv";
        assert_eq!(written(&[clipboard.as_bytes()]), "layer\\u001b]52;c;cm0gLXJm\\u0007/conv");
        assert_eq!(written(&["a\u{9b}31m".as_bytes()]), "a\\u009b31m");
        assert_eq!(written(&[b"a\rb\x7f\0"]), "a\\u000db\\u007f\\u0000");
    }

    #[test]
    fn text_stays_as_it_is() {
        let text = "µs Ω ≤ 配置\tx\n·";
        assert_eq!(written(&[text.as_bytes()]), text);
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(written(&bytes), text);
        assert_eq!(written(&[b"\xc2", b"\x9b"]), "\\u009b");
    }
}
