//! CBOR as a stream in bounded memory: only the first bytes of texts are kept, and errors give
//! their position.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use cbor4ii::core::dec::{Decode, Error, IgnoredAny, Read, is_break};
use cbor4ii::core::major;
use cbor4ii::core::types::Tag;
use cbor4ii::core::utils::IoReader;
use std::io::{self, BufRead};

/// The maximum number of bytes of a string that are kept; longer ones are cut.
pub(super) const MAX_NAME_BYTES: usize = 4096;

/// The description of a decoding error.
pub(super) fn problem_of(error: &Error<io::Error>) -> &'static str {
    match error {
        Error::Eof { .. } | Error::RequireLength { .. } => "it is cut off",
        Error::DepthOverflow { .. } => "it is nested deeper than 256 levels",
        _ => "it is not valid CBOR",
    }
}

/// The reason why reading stops before the end of the file.
pub(super) enum Stop {
    Cbor(Error<io::Error>),
    TooLarge(&'static str),
}

impl From<Error<io::Error>> for Stop {
    fn from(error: Error<io::Error>) -> Self {
        Self::Cbor(error)
    }
}

/// The bytes of a file, with the position for error messages.
pub(super) struct CborStream<R> {
    reader: IoReader<R>,
    at: u64,
}

impl<'de, R: BufRead> Read<'de> for CborStream<R> {
    type Error = io::Error;

    fn fill<'short>(
        &'short mut self,
        want: usize,
    ) -> Result<cbor4ii::core::dec::Reference<'de, 'short>, io::Error> {
        self.reader.fill(want)
    }

    fn advance(&mut self, count: usize) {
        self.at += count as u64;
        self.reader.advance(count);
    }

    fn step_in(&mut self) -> bool {
        <IoReader<R> as Read<'de>>::step_in(&mut self.reader)
    }

    fn step_out(&mut self) {
        <IoReader<R> as Read<'de>>::step_out(&mut self.reader);
    }
}

pub(super) type Reading<T> = Result<T, Stop>;

impl<R: BufRead> CborStream<R> {
    pub(super) fn new(bytes: R) -> Self {
        Self { reader: IoReader::new(bytes), at: 0 }
    }

    /// The number of bytes read so far.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The major type of the next item.
    fn major(&mut self) -> Reading<u8> {
        let bytes = self.fill(1).map_err(Error::Read)?;
        let byte = bytes.as_ref().first().copied();
        byte.map(|byte| byte >> 5).ok_or_else(|| self.cut_off())
    }

    /// The error of a stream that ends early, obtained by reading beyond its end.
    fn cut_off(&mut self) -> Stop {
        match u64::decode(self) {
            Err(error) => Stop::Cbor(error),
            Ok(_) => Stop::TooLarge("it cannot be read"),
        }
    }

    pub(super) fn skip(&mut self) -> Reading<()> {
        IgnoredAny::decode(self)?;
        Ok(())
    }

    /// Skips the tags before a value.
    pub(super) fn skip_tags(&mut self) -> Reading<u8> {
        loop {
            let kind = self.major()?;
            if kind != major::TAG {
                return Ok(kind);
            }
            Tag::<()>::tag(self)?;
        }
    }

    /// True if a list or map has another item, with `left` items known to remain, or an unknown
    /// number of them.
    pub(super) fn goes_on(&mut self, left: &mut Option<usize>) -> Reading<bool> {
        match left {
            Some(0) => Ok(false),
            Some(left) => {
                *left -= 1;
                Ok(true)
            }
            None => Ok(!is_break(self)?),
        }
    }

    /// A text, cut at [`MAX_NAME_BYTES`]. If the next item is something else, skips it and gives
    /// `None`.
    pub(super) fn text(&mut self) -> Reading<Option<String>> {
        if self.skip_tags()? != major::STRING {
            self.skip()?;
            return Ok(None);
        }
        let mut kept = Vec::new();
        match self.length()? {
            Some(length) => self.keep(length, &mut kept)?,
            None => {
                while !is_break(self)? {
                    if self.major()? != major::STRING {
                        return Err(self.not_a_chunk());
                    }
                    let Some(length) = self.length()? else { return Err(self.not_a_chunk()) };
                    self.keep(length, &mut kept)?;
                }
            }
        }
        Ok(Some(String::from_utf8_lossy(&kept).into_owned()))
    }

    fn not_a_chunk(&self) -> Stop {
        Stop::Cbor(Error::Mismatch { name: &"str", found: 0 })
    }

    /// The length of the text whose first byte comes next; `None` if its chunks end with a break.
    fn length(&mut self) -> Reading<Option<u64>> {
        let first = self.byte()?;
        let bytes = match first & 0x1f {
            length @ 0..=23 => return Ok(Some(length.into())),
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            31 => return Ok(None),
            _ => return Err(self.not_a_chunk()),
        };
        let mut length = 0;
        for _ in 0..bytes {
            length = length << 8 | u64::from(self.byte()?);
        }
        Ok(Some(length))
    }

    fn byte(&mut self) -> Reading<u8> {
        let byte = self.fill(1).map_err(Error::Read)?.as_ref().first().copied();
        let byte = byte.ok_or_else(|| self.cut_off())?;
        self.advance(1);
        Ok(byte)
    }

    /// Reads `length` bytes and keeps the first of them.
    fn keep(&mut self, length: u64, kept: &mut Vec<u8>) -> Reading<()> {
        let mut left = length;
        while left > 0 {
            let bytes = self.fill(1).map_err(Error::Read)?;
            let bytes = bytes.as_ref();
            let count = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let room = MAX_NAME_BYTES.saturating_sub(kept.len()).min(count);
            kept.extend_from_slice(bytes.get(..room).unwrap_or_default());
            if count == 0 {
                return Err(self.cut_off());
            }
            self.advance(count);
            left -= count as u64;
        }
        Ok(())
    }
}
