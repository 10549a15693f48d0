//! Object headers of both versions, with their continuations (HDF5 File Format Specification 3.0, IV.A.1).

use std::collections::{HashSet, VecDeque};

use hyperslab_core::ByteRange;

use super::lookup3;
use super::sizes::Sizes;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

const WHAT: &str = "object header";
const CONTINUATION: &str = "object header continuation";
/// The most bytes in the header of one object. No library writes a header of megabytes.
const MAX_NBYTES: u64 = 64 << 20;

/// Bytes of a header as libraries write them. They are fetched along with its start.
const AHEAD_NBYTES: u64 = 512;

/// Message types (IV.A.2).
pub(crate) mod kind {
    pub const DATASPACE: u16 = 0x01;
    pub const LINK_INFO: u16 = 0x02;
    pub const DATATYPE: u16 = 0x03;
    pub const OLD_FILL: u16 = 0x04;
    pub const FILL: u16 = 0x05;
    pub const LINK: u16 = 0x06;
    pub const EXTERNAL_FILES: u16 = 0x07;
    pub const LAYOUT: u16 = 0x08;
    /// Never in real files: libraries test themselves with this unknown message type.
    pub const BOGUS: u16 = 0x09;
    pub const GROUP_INFO: u16 = 0x0a;
    pub const FILTERS: u16 = 0x0b;
    pub const ATTRIBUTE: u16 = 0x0c;
    pub const SHARED_TABLE: u16 = 0x0f;
    pub const CONTINUATION: u16 = 0x10;
    pub const SYMBOL_TABLE: u16 = 0x11;
    pub const DRIVER: u16 = 0x14;
    pub const ATTRIBUTE_INFO: u16 = 0x15;
    pub const CACHE_IMAGE: u16 = 0x18;
    pub const LAST: u16 = 0x18;
}

/// Message flag: the body says where the message is.
const FLAG_SHARED: u8 = 0x02;
/// Message flag: do not open the object if you do not know the message.
const FLAG_FAIL_IF_UNKNOWN: u8 = 0x80;

/// Bits of message flags, and the combinations that no message may have: shared and never shareable; marked as met by
/// someone who did not know it, but not meant to be marked, or not meant to be opened then.
const IMPOSSIBLE_FLAGS: [(u8, u8); 3] = [(0x06, 0x06), (0x30, 0x20), (0x28, 0x28)];

/// One message of an object header.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Its type.
    pub kind: u16,
    /// Whether the body only tells where the message is.
    pub shared: bool,
    /// When it was created, relative to the object's other messages; only in version 2, if tracked.
    pub order: Option<u16>,
    /// The offset of the body in the file.
    pub offset: u64,
    /// The body.
    pub body: Vec<u8>,
}

impl Message {
    /// A cursor at the start of the body.
    pub fn cursor(&self, what: &'static str) -> Cursor<'_> {
        Cursor::new(what, self.offset, &self.body)
    }
}

/// All messages of the header at an address, in order, without continuations and empty messages.
pub(crate) fn messages(pages: &Pages<'_>, sizes: Sizes, address: u64) -> Result<Vec<Message>, Error> {
    pages.want(ByteRange { offset: address, length: AHEAD_NBYTES });
    let available = pages.file_length().saturating_sub(address);
    let start = pages.bytes(WHAT, address, available.clamp(16, 64))?;
    let (range, form) =
        if start.starts_with(b"OHDR") { second(address, &start)? } else { first(address, &start)? };
    let mut reading = Reading { sizes, form, found: Vec::new(), todo: VecDeque::from([range]) };
    reading.all(pages)?;
    Ok(reading.found)
}

/// The format of messages in this header.
#[derive(Clone, Copy)]
struct Form {
    version: u8,
    /// Bytes before the first message of the first block.
    prefix: usize,
    ordered: bool,
}

/// Version 1: 16 bytes of prefix, then the first block.
fn first(address: u64, start: &[u8]) -> Result<(ByteRange, Form), Error> {
    let mut cursor = Cursor::new(WHAT, address, start);
    let version = cursor.u8()?;
    if version != 1 {
        return Err(cursor.invalid(format!("version {version}")));
    }
    cursor.skip(7)?;
    let length = u64::from(cursor.u32()?);
    let range = range(&cursor, address, length.saturating_add(16))?;
    Ok((range, Form { version: 1, prefix: 16, ordered: false }))
}

fn second(address: u64, start: &[u8]) -> Result<(ByteRange, Form), Error> {
    let mut cursor = Cursor::new(WHAT, address, start);
    cursor.signature(b"OHDR")?;
    let version = cursor.u8()?;
    if version != 2 {
        return Err(Error::unsupported(format!("object header version {version}")));
    }
    let flags = cursor.u8()?;
    cursor.skip(if flags & 0x20 == 0 { 0 } else { 16 })?; // times
    cursor.skip(if flags & 0x10 == 0 { 0 } else { 4 })?; // when attributes become dense
    let length = cursor.uint(1 << (flags & 3))?;
    let prefix = cursor.position();
    let overhead = (prefix + lookup3::CHECKSUM_NBYTES) as u64;
    let range = range(&cursor, address, length.saturating_add(overhead))?;
    Ok((range, Form { version: 2, prefix, ordered: flags & 0x04 != 0 }))
}

fn range(cursor: &Cursor<'_>, offset: u64, length: u64) -> Result<ByteRange, Error> {
    ByteRange::new(offset, length).map_err(|_| cursor.invalid("it ends beyond 2^64"))
}

struct Reading {
    sizes: Sizes,
    form: Form,
    found: Vec<Message>,
    todo: VecDeque<ByteRange>,
}

impl Reading {
    /// Every block. Notes everything that is missing before it gives up.
    fn all(&mut self, pages: &Pages<'_>) -> Result<(), Error> {
        let mut seen = HashSet::new();
        let (mut nbytes, mut missed, mut prefix) = (0_u64, None, self.form.prefix);
        while let Some(range) = self.todo.pop_front() {
            if !seen.insert(range.offset) {
                return Err(Error::Cycle { what: CONTINUATION, offset: range.offset });
            }
            nbytes = nbytes.saturating_add(range.length);
            if nbytes > MAX_NBYTES {
                return Err(Error::TooMany { what: "bytes of an object header", limit: MAX_NBYTES });
            }
            match pages.bytes(WHAT, range.offset, range.length) {
                Ok(bytes) => self.block(range.offset, &bytes, prefix)?,
                Err(error) if error.is_not_held() => missed = Some(error),
                Err(error) => return Err(error),
            }
            prefix = if self.form.version == 1 { 0 } else { 4 };
        }
        missed.map_or(Ok(()), Err)
    }

    fn block(&mut self, offset: u64, bytes: &[u8], prefix: usize) -> Result<(), Error> {
        let content = match self.form.version {
            1 => bytes,
            _ => lookup3::checked(WHAT, offset, bytes)?,
        };
        let mut cursor = Cursor::new(WHAT, offset, content);
        if self.form.version == 2 && !content.starts_with(b"OHDR") {
            cursor.signature(b"OCHK")?;
        } else {
            cursor.skip(prefix)?;
        }
        let head = if self.form.version == 1 { 8 } else { 4 + 2 * usize::from(self.form.ordered) };
        while cursor.remaining() >= head {
            self.message(&mut cursor)?;
        }
        Ok(()) // too few bytes for a message are a gap
    }

    fn message(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Error> {
        let message = match self.form.version {
            1 => old_message(cursor)?,
            _ => new_message(cursor, self.form.ordered)?,
        };
        match message.kind {
            0 => {}
            kind::CONTINUATION => {
                let mut body = message.cursor(CONTINUATION);
                let (offset, length) =
                    (self.sizes.defined_address(&mut body)?, self.sizes.length(&mut body)?);
                self.todo.push_back(range(&body, offset, length)?);
            }
            _ => self.found.push(message),
        }
        Ok(())
    }
}

fn old_message(cursor: &mut Cursor<'_>) -> Result<Message, Error> {
    let kind = cursor.u16()?;
    let length = cursor.u16()?;
    let flags = cursor.u8()?;
    cursor.skip(3)?;
    finish(cursor, kind, flags, None, length)
}

fn new_message(cursor: &mut Cursor<'_>, ordered: bool) -> Result<Message, Error> {
    let kind = u16::from(cursor.u8()?);
    let length = cursor.u16()?;
    let flags = cursor.u8()?;
    let order = if ordered { Some(cursor.u16()?) } else { None };
    finish(cursor, kind, flags, order, length)
}

fn finish(
    cursor: &mut Cursor<'_>,
    kind: u16,
    flags: u8,
    order: Option<u16>,
    length: u16,
) -> Result<Message, Error> {
    let is_unknown = kind > kind::LAST || kind == kind::BOGUS;
    if is_unknown && flags & FLAG_FAIL_IF_UNKNOWN != 0 {
        return Err(Error::unsupported(format!("header message of type {kind:#x}")));
    }
    if IMPOSSIBLE_FLAGS.iter().any(|&(mask, value)| flags & mask == value) {
        return Err(cursor.invalid(format!("a message with flags {flags:#x}, which contradict each other")));
    }
    let offset = cursor.offset();
    let body = cursor.take(usize::from(length))?.to_vec();
    Ok(Message { kind, shared: flags & FLAG_SHARED != 0, order, offset, body })
}
