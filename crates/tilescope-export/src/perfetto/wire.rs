//! Messages in the wire format of protocol buffers: fields one after the other, each a number with
//! a type, then a varint, eight bytes, or a length and so many bytes.

/// Types of fields.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

/// A message in the making. Cleared and filled again and again, so that nothing is allocated for
/// each.
#[derive(Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn varint(&mut self, mut value: u64) {
        loop {
            let low = value.to_le_bytes()[0] & 0x7f;
            value >>= 7;
            if value == 0 {
                return self.bytes.push(low);
            }
            self.bytes.push(low | 0x80);
        }
    }

    fn tag(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    /// A whole number, a flag or a value of an enum. Signed numbers are not negative here.
    pub(crate) fn number(&mut self, field: u64, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// Eight bytes.
    pub(crate) fn fixed(&mut self, field: u64, value: u64) {
        self.tag(field, FIXED_64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A real number.
    pub(crate) fn real(&mut self, field: u64, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// A text.
    pub(crate) fn text(&mut self, field: u64, text: &str) {
        self.delimited(field, text.as_bytes());
    }

    /// A message within this one.
    pub(crate) fn message(&mut self, field: u64, inner: &Message) {
        self.delimited(field, &inner.bytes);
    }

    fn delimited(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, LENGTH_DELIMITED);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_bytes_of_the_specification() {
        // The examples of the documentation of the format.
        let mut inner = Message::default();
        inner.number(1, 150);
        assert_eq!(inner.bytes(), [0x08, 0x96, 0x01]);
        let mut outer = Message::default();
        outer.text(2, "testing");
        assert_eq!(outer.bytes(), b"\x12\x07testing");
        outer.clear();
        outer.message(3, &inner);
        assert_eq!(outer.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        outer.clear();
        outer.number(1, u64::MAX);
        outer.real(47, 1.0);
        let end = [0xf9, 0x02, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
        assert_eq!(outer.bytes()[..11], [0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        assert_eq!(outer.bytes()[11..], end);
    }
}
