//! Reads structs, texts and lists from the bytes of a Cap'n Proto message, as far as profiles need
//! them.
//!
//! The `capnp` crate reads messages through generated code; profiles of other tools come without
//! their schema, and only ordinals matter on the wire. All reads count against a budget, so that
//! pointers with shared targets cannot turn a small file into a lot of work.
//!
//! Standard framing, not packed: the number of segments minus one and the words of each, as 32-bit
//! integers padded to a word, then the segments. All numbers are little-endian.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use std::cell::Cell;

/// Bytes of a word.
const WORD: u64 = 8;
/// The maximum number of segments of a message; writers make a few dozen.
const MAX_SEGMENTS: u64 = 1 << 16;
/// The number of times that the words of a message may be read; a sound one needs a single pass.
const MAX_VISITS: u64 = 2;
/// The number of words that may be read of even the smallest message.
const LEAST_BUDGET: u64 = 1 << 13;
/// Codes for list elements that are single bytes, and for those that are structs.
const BYTES: u64 = 2;
const STRUCTS: u64 = 7;

/// The defect of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CapnpError {
    #[error("its header promises {promised} B, the file has {found} B")]
    Length { promised: u64, found: u64 },
    #[error("it has {0} segments, more than any writer creates")]
    Segments(u64),
    #[error("a pointer points outside the message")]
    Outside,
    #[error("a pointer has another kind than its field")]
    Kind,
    #[error("its pointers refer to the same bytes too often")]
    Repeated,
}

/// A message in memory.
pub(super) struct Message<'a> {
    segments: Vec<&'a [u8]>,
    /// Remaining words of the budget.
    budget: Cell<u64>,
}

/// Length of a message in bytes according to its header, which is included; `None` if `head` is no
/// header.
pub(super) fn promised_bytes(head: &[u8]) -> Option<u64> {
    let count = u64::from(u32_at(head, 0)?) + 1;
    if count > MAX_SEGMENTS {
        return None;
    }
    let header = header_words(count).checked_mul(WORD)?;
    let sizes = (0..count).map(|segment| Some(u64::from(u32_at(head, 4 + 4 * segment)?)));
    let words = sizes.sum::<Option<u64>>()?;
    Some(header + words * WORD)
}

/// The bytes of the longest header.
pub(super) const MAX_HEADER_BYTES: u64 = (MAX_SEGMENTS / 2 + 1) * WORD;

/// Words of a header: the count, and a size for each segment.
fn header_words(segments: u64) -> u64 {
    (segments + 1).div_ceil(2)
}

impl<'a> Message<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, CapnpError> {
        let found = bytes.len() as u64;
        let count = u64::from(u32_at(bytes, 0).unwrap_or(u32::MAX)) + 1;
        if count > MAX_SEGMENTS {
            return Err(CapnpError::Segments(count));
        }
        let promised =
            promised_bytes(bytes).ok_or(CapnpError::Length { promised: count * 4, found })?;
        if promised != found {
            return Err(CapnpError::Length { promised, found });
        }
        let mut at = header_words(count) * WORD;
        let mut segments = Vec::new();
        for segment in 0..count {
            let words = u32_at(bytes, 4 + 4 * segment).ok_or(CapnpError::Outside)?;
            let length = u64::from(words) * WORD;
            segments.push(slice(bytes, at, length).ok_or(CapnpError::Outside)?);
            at += length;
        }
        let budget = (found / WORD * MAX_VISITS).max(LEAST_BUDGET);
        Ok(Self { segments, budget: Cell::new(budget) })
    }

    /// The root struct of the message.
    pub(super) fn root(&self) -> Result<Struct<'_, 'a>, CapnpError> {
        let found = self.target(0, 0)?.ok_or(CapnpError::Outside)?;
        self.struct_at(found)
    }

    /// Charges words to the budget.
    fn charge(&self, words: u64) -> Result<(), CapnpError> {
        let left = self.budget.get().checked_sub(words).ok_or(CapnpError::Repeated)?;
        self.budget.set(left);
        Ok(())
    }

    fn word(&self, segment: usize, at: u64) -> Result<u64, CapnpError> {
        let bytes =
            self.segments.get(segment).and_then(|bytes| u64_at(bytes, at.checked_mul(WORD)?));
        bytes.ok_or(CapnpError::Outside)
    }

    fn bytes(&self, segment: usize, at: u64, length: u64) -> Result<&'a [u8], CapnpError> {
        let found = self.segments.get(segment);
        let found = found.and_then(|bytes| slice(bytes, at.checked_mul(WORD)?, length));
        found.ok_or(CapnpError::Outside)
    }

    /// The target of the pointer at a word; `None` for a null pointer.
    fn target(&self, segment: usize, at: u64) -> Result<Option<Target>, CapnpError> {
        let pointer = self.word(segment, at)?;
        if pointer == 0 {
            return Ok(None);
        }
        if pointer & 3 != 2 {
            return near(pointer, segment, at).map(Some);
        }
        // A far pointer: the object, or its pointer, is in another segment.
        let (pad_segment, pad) = far(pointer);
        self.charge(1)?;
        let landing = self.word(pad_segment, pad)?;
        if pointer & 4 == 0 {
            return near(landing, pad_segment, pad).map(Some);
        }
        if landing & 7 != 2 {
            return Err(CapnpError::Kind);
        }
        let (segment, at) = far(landing);
        let pointer = self.word(pad_segment, pad + 1)?;
        Ok(Some(Target { segment, at, pointer }))
    }

    fn struct_at(&self, target: Target) -> Result<Struct<'_, 'a>, CapnpError> {
        let Target { segment, at, pointer } = target;
        if pointer & 3 != 0 {
            return Err(CapnpError::Kind);
        }
        let (data, pointers) = sections(pointer);
        self.charge(data + pointers)?;
        let bytes = self.bytes(segment, at, (data + pointers) * WORD)?;
        let data = slice(bytes, 0, data * WORD).ok_or(CapnpError::Outside)?;
        let first_pointer = at + data.len() as u64 / WORD;
        Ok(Struct { message: self, segment, data, first_pointer, pointers })
    }
}

/// The target of a pointer: its first word, and the pointer with its type.
#[derive(Clone, Copy)]
struct Target {
    segment: usize,
    at: u64,
    pointer: u64,
}

/// The target of a struct or list pointer at a word.
fn near(pointer: u64, segment: usize, at: u64) -> Result<Target, CapnpError> {
    if pointer & 2 != 0 {
        return Err(CapnpError::Kind);
    }
    // The offset is signed, in the upper thirty bits of the lower half.
    let offset = i64::from((pointer & 0xffff_ffff) as u32 as i32 >> 2);
    let at = (at + 1).checked_add_signed(offset).ok_or(CapnpError::Outside)?;
    Ok(Target { segment, at, pointer })
}

/// Segment and word of a far pointer.
fn far(pointer: u64) -> (usize, u64) {
    ((pointer >> 32) as usize, (pointer >> 3) & 0x1fff_ffff)
}

/// Words of the data and pointer sections of a struct.
fn sections(pointer: u64) -> (u64, u64) {
    ((pointer >> 32) & 0xffff, pointer >> 48)
}

/// A struct of a message. Missing fields read as 0, empty or none.
#[derive(Clone, Copy)]
pub(super) struct Struct<'m, 'a> {
    message: &'m Message<'a>,
    segment: usize,
    data: &'a [u8],
    first_pointer: u64,
    pointers: u64,
}

impl<'m, 'a> Struct<'m, 'a> {
    /// The 16-bit number at index `place` of its data.
    pub(super) fn u16(&self, place: u64) -> u16 {
        let bytes = slice(self.data, 2 * place, 2).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u16::from_le_bytes)
    }

    /// The 32-bit number at index `place` of its data.
    pub(super) fn u32(&self, place: u64) -> u32 {
        u32_at(self.data, 4 * place).unwrap_or(0)
    }

    /// The 64-bit number at index `place` of its data.
    pub(super) fn u64(&self, place: u64) -> u64 {
        u64_at(self.data, 8 * place).unwrap_or(0)
    }

    fn target(&self, place: u64) -> Result<Option<Target>, CapnpError> {
        if place >= self.pointers {
            return Ok(None);
        }
        self.message.target(self.segment, self.first_pointer + place)
    }

    /// The struct that its pointer at index `place` refers to.
    pub(super) fn structure(&self, place: u64) -> Result<Option<Struct<'m, 'a>>, CapnpError> {
        self.target(place)?.map(|found| self.message.struct_at(found)).transpose()
    }

    /// The text that its pointer at index `place` refers to, without the trailing zero.
    pub(super) fn text(&self, place: u64) -> Result<&'a [u8], CapnpError> {
        let Some(Target { segment, at, pointer }) = self.target(place)? else { return Ok(&[]) };
        let elements = (pointer >> 32) & 7;
        let count = pointer >> 35;
        if pointer & 3 != 1 || elements != BYTES {
            return Err(CapnpError::Kind);
        }
        self.message.charge(count.div_ceil(WORD))?;
        let bytes = self.message.bytes(segment, at, count)?;
        Ok(bytes.strip_suffix(&[0]).unwrap_or(bytes))
    }

    /// The structs that its pointer at index `place` refers to.
    pub(super) fn list(&self, place: u64) -> Result<Structs<'m, 'a>, CapnpError> {
        let message = self.message;
        let none = Structs { message, segment: 0, at: 0, count: 0, tag: 0 };
        let Some(Target { segment, at, pointer }) = self.target(place)? else { return Ok(none) };
        let elements = (pointer >> 32) & 7;
        let words = pointer >> 35;
        if pointer & 3 != 1 || elements != STRUCTS {
            return Err(CapnpError::Kind);
        }
        let tag = message.word(segment, at)?;
        let count = (tag & 0xffff_ffff) >> 2;
        let (data, pointers) = sections(tag);
        let of_elements = (data + pointers) * count;
        if tag & 3 != 0 || of_elements > words {
            return Err(CapnpError::Kind);
        }
        message.bytes(segment, at + 1, words * WORD)?;
        // Structs without content take no space, but time.
        message.charge(if of_elements == 0 { count } else { 1 })?;
        Ok(Structs { message, segment, at: at + 1, count, tag })
    }
}

/// A list of structs.
#[derive(Clone, Copy)]
pub(super) struct Structs<'m, 'a> {
    message: &'m Message<'a>,
    segment: usize,
    at: u64,
    count: u64,
    /// The tag of the list: the type of its elements, in the form of a pointer.
    tag: u64,
}

impl<'m, 'a> Structs<'m, 'a> {
    /// The structs in order.
    pub(super) fn iter(self) -> impl Iterator<Item = Result<Struct<'m, 'a>, CapnpError>> {
        let (data, pointers) = sections(self.tag);
        (0..self.count).map(move |place| {
            let at = self.at + place * (data + pointers);
            // The lower half counts elements in a tag, and is an offset in a pointer.
            let pointer = self.tag & !0xffff_ffff;
            self.message.struct_at(Target { segment: self.segment, at, pointer })
        })
    }
}

fn slice(bytes: &[u8], at: u64, length: u64) -> Option<&[u8]> {
    let at = usize::try_from(at).ok()?;
    let length = usize::try_from(length).ok()?;
    bytes.get(at..at.checked_add(length)?)
}

fn u32_at(bytes: &[u8], at: u64) -> Option<u32> {
    Some(u32::from_le_bytes(slice(bytes, at, 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: u64) -> Option<u64> {
    Some(u64::from_le_bytes(slice(bytes, at, 8)?.try_into().ok()?))
}
