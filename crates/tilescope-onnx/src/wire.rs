//! Reads fields of protobuf messages from a seekable source.
//!
//! The format: <https://protobuf.dev/programming-guides/encoding/>. Skipped fields are never read:
//! a file of gigabytes of weights costs a seek per tensor.

use crate::error::OnnxError;
use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

/// The number of bytes read at once.
const BUFFER_BYTES: usize = 16 * 1024;

/// The longest text that is read: names, paths, the call stacks that dynamo writes into nodes.
const MAX_TEXT_BYTES: u64 = 64 * 1024;

/// The deepest nesting of messages, as in protobuf's own parser.
const MAX_DEPTH: u32 = 100;

/// The maximum memory of the structures read from a file.
const MAX_MEMORY_BYTES: u64 = 1 << 30;

/// The value of a field, by its wire type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldValue {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// A text, packed numbers or a message: the reader is at its first byte, and this is the
    /// position after its last.
    Until(u64),
}

/// Reads fields one after the other.
pub(crate) struct WireReader<R> {
    source: R,
    buffer: Box<[u8]>,
    /// The numbers of buffered bytes that were hashed, that were read, and that are filled.
    hashed: usize,
    next: usize,
    filled: usize,
    /// Position in the source of the next byte.
    at: u64,
    length: u64,
    depth: u32,
    memory: u64,
    hasher: SipHasher13,
}

impl<R: Read + Seek> WireReader<R> {
    /// A reader at the first byte of `source`.
    pub(crate) fn new(mut source: R) -> Result<Self, OnnxError> {
        let length = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(0))?;
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        let mut hasher = SipHasher13::new();
        hasher.write_u64(length);
        let hashed = 0;
        let next = 0;
        let filled = 0;
        let at = 0;
        let depth = 0;
        let memory = 0;
        Ok(Self { source, buffer, hashed, next, filled, at, length, depth, memory, hasher })
    }

    /// Number of bytes of the source.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Position of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// Hash of everything read so far, in hexadecimal.
    pub(crate) fn content_hash(&mut self) -> String {
        self.hash_read();
        let hash = self.hasher.finish128();
        format!("{:016x}{:016x}", hash.h1, hash.h2)
    }

    /// Hashes the bytes of the buffer that were read since the last call.
    fn hash_read(&mut self) {
        debug_assert!(self.hashed <= self.next && self.next <= self.filled);
        self.hasher.write(&self.buffer[self.hashed..self.next]);
        self.hashed = self.next;
    }

    /// An error at the next byte.
    pub(crate) fn error(&self, problem: impl Into<String>) -> OnnxError {
        OnnxError::Syntax { byte: self.at, problem: problem.into() }
    }

    /// Counts memory that the caller will keep.
    pub(crate) fn keep(&mut self, bytes: usize) -> Result<(), OnnxError> {
        self.memory = self.memory.saturating_add(bytes as u64);
        if self.memory > MAX_MEMORY_BYTES {
            return Err(
                self.error("the graph has more nodes, names and constants than fit in 1 GiB")
            );
        }
        Ok(())
    }

    /// Enters a message; refused if messages are nested more deeply than those of any real model.
    pub(crate) fn enter(&mut self) -> Result<(), OnnxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let problem = format!("messages are nested more than {MAX_DEPTH} deep");
            return Err(self.error(problem));
        }
        Ok(())
    }

    /// Leaves the last entered message.
    pub(crate) fn leave(&mut self) {
        debug_assert!(self.depth > 0, "only what was entered is left");
        self.depth = self.depth.saturating_sub(1);
    }

    /// Moves to a position, in either direction.
    pub(crate) fn go_to(&mut self, position: u64) -> Result<(), OnnxError> {
        self.hash_read();
        let buffer_start = self.at - self.next as u64;
        let inside = position.checked_sub(buffer_start).and_then(|at| usize::try_from(at).ok());
        match inside.filter(|inside| *inside <= self.filled) {
            Some(inside) => self.next = inside,
            None => {
                self.source.seek(SeekFrom::Start(position))?;
                (self.next, self.filled) = (0, 0);
            }
        }
        self.hashed = self.next;
        self.at = position;
        Ok(())
    }

    /// Skips a field.
    pub(crate) fn skip(&mut self, value: FieldValue) -> Result<(), OnnxError> {
        if let FieldValue::Until(end) = value { self.go_to(end) } else { Ok(()) }
    }

    fn refill(&mut self) -> Result<(), OnnxError> {
        self.hash_read();
        loop {
            match self.source.read(&mut self.buffer) {
                Ok(0) => return Err(self.error("the file ends in the middle of a field")),
                Ok(bytes) => {
                    (self.hashed, self.next, self.filled) = (0, 0, bytes);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn byte(&mut self) -> Result<u8, OnnxError> {
        if self.next == self.filled {
            self.refill()?;
        }
        let byte = self.buffer[self.next];
        self.next += 1;
        self.at += 1;
        Ok(byte)
    }

    /// Bytes up to a position; the caller must have checked that it is near.
    fn bytes(&mut self, end: u64) -> Result<Vec<u8>, OnnxError> {
        let wanted = usize::try_from(end - self.at).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(wanted);
        while bytes.len() < wanted {
            if self.next == self.filled {
                self.refill()?;
            }
            let taken = (wanted - bytes.len()).min(self.filled - self.next);
            bytes.extend_from_slice(&self.buffer[self.next..self.next + taken]);
            self.next += taken;
            self.at += taken as u64;
        }
        Ok(bytes)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], OnnxError> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(bytes)
    }

    /// Reads a number of seven bits per byte, the lowest first.
    pub(crate) fn varint(&mut self) -> Result<u64, OnnxError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.error("a number has more than ten bytes"))
    }

    /// Reads four bytes.
    pub(crate) fn fixed32(&mut self) -> Result<u32, OnnxError> {
        Ok(u32::from_le_bytes(self.fixed()?))
    }

    /// Reads eight bytes.
    pub(crate) fn fixed64(&mut self) -> Result<u64, OnnxError> {
        Ok(u64::from_le_bytes(self.fixed()?))
    }

    /// Reads the next field of a message that ends at `end`. Returns its number and value, or
    /// `None` at the end.
    pub(crate) fn field(&mut self, end: u64) -> Result<Option<(u64, FieldValue)>, OnnxError> {
        if self.at == end {
            return Ok(None);
        }
        let start = self.at;
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => FieldValue::Varint(self.varint()?),
            1 => FieldValue::Fixed64(self.fixed64()?),
            2 => {
                let length = self.varint()?;
                let until = self.at.checked_add(length).filter(|until| *until <= end);
                let Some(until) = until else {
                    let left = end.saturating_sub(self.at);
                    let problem =
                        format!("a field of {length} bytes, but only {left} bytes are left");
                    return Err(self.error(problem));
                };
                FieldValue::Until(until)
            }
            5 => FieldValue::Fixed32(self.fixed32()?),
            other => {
                let problem = format!("unknown wire type {other}");
                return Err(OnnxError::Syntax { byte: start, problem });
            }
        };
        if self.at > end {
            return Err(self.error("a field extends beyond the end of its message"));
        }
        match tag >> 3 {
            0 => Err(OnnxError::Syntax { byte: start, problem: "a field of number 0".to_owned() }),
            number => Ok(Some((number, value))),
        }
    }

    /// The bytes of a string; `None`, and skipped, if it is longer than the limit.
    pub(crate) fn text_bytes(&mut self, end: u64) -> Result<Option<Vec<u8>>, OnnxError> {
        if end - self.at > MAX_TEXT_BYTES {
            self.go_to(end)?;
            return Ok(None);
        }
        Ok(Some(self.bytes(end)?))
    }

    /// A text that must be valid: a name.
    pub(crate) fn text(&mut self, end: u64) -> Result<String, OnnxError> {
        let start = self.at;
        let to_error = |problem: String| OnnxError::Syntax { byte: start, problem };
        let bytes = self.text_bytes(end)?.ok_or_else(|| {
            to_error(format!("a name has {} bytes, but the limit is {MAX_TEXT_BYTES}", end - start))
        })?;
        String::from_utf8(bytes).map_err(|_| to_error("a name is not UTF-8".to_owned()))
    }

    /// Bytes whose number the caller has checked to be small.
    pub(crate) fn small_bytes(&mut self, end: u64) -> Result<Vec<u8>, OnnxError> {
        self.keep(usize::try_from(end - self.at).unwrap_or(usize::MAX))?;
        self.bytes(end)
    }
}
