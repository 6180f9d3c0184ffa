//! Messages in the wire format of protocol buffers: consecutive fields, each a number with a type,
//! then a varint, eight bytes, or a length and that many bytes.

/// Types of fields.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

/// A message under construction. It is cleared and filled again and again, so that no memory is
/// allocated per message.
#[derive(Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

/// A nested message under construction: the start of its content.
#[must_use]
pub(crate) struct NestedMessage(usize);

impl Message {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn varint(&mut self, value: u64) {
        push_varint(&mut self.bytes, value);
    }

    fn tag(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    /// Writes an integer, a flag or a value of an enum. Signed numbers are not negative here.
    pub(crate) fn number(&mut self, field: u64, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// Writes eight bytes.
    pub(crate) fn fixed(&mut self, field: u64, value: u64) {
        self.tag(field, FIXED_64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes a real number.
    pub(crate) fn real(&mut self, field: u64, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// Writes a string.
    pub(crate) fn text(&mut self, field: u64, text: &str) {
        self.delimited(field, text.as_bytes());
    }

    /// Begins a nested message: everything up to [`Message::end`] belongs to it, so that it is
    /// never copied.
    pub(crate) fn begin(&mut self, field: u64) -> NestedMessage {
        self.tag(field, LENGTH_DELIMITED);
        // Most messages are short enough for a length of one byte.
        self.bytes.push(0);
        NestedMessage(self.bytes.len())
    }

    /// Ends a nested message.
    pub(crate) fn end(&mut self, nested: NestedMessage) {
        let NestedMessage(start) = nested;
        let length = self.bytes.len() - start;
        match (u8::try_from(length), self.bytes.get_mut(start - 1)) {
            (Ok(short @ ..0x80), Some(place)) => *place = short,
            _ => {
                let mut varint = Vec::with_capacity(10);
                push_varint(&mut varint, length as u64);
                self.bytes.splice(start - 1..start, varint);
            }
        }
    }

    /// Writes a complete nested message.
    pub(crate) fn message(&mut self, field: u64, inner: &Message) {
        self.delimited(field, &inner.bytes);
    }

    fn delimited(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, LENGTH_DELIMITED);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_messages_equal_copied_ones() {
        for length in [0, 1, 126, 127, 128, 129, 16_383, 16_384, 100_000] {
            let mut inner = Message::default();
            inner.text(7, &"x".repeat(length));
            let mut middle = Message::default();
            middle.number(1, 5);
            middle.message(2, &inner);
            let mut copied = Message::default();
            copied.message(3, &middle);
            copied.number(4, 6);

            let mut made = Message::default();
            let outside = made.begin(3);
            made.number(1, 5);
            let inside = made.begin(2);
            made.text(7, &"x".repeat(length));
            made.end(inside);
            made.end(outside);
            made.number(4, 6);
            assert!(made.bytes() == copied.bytes(), "{length}");
        }
    }

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
