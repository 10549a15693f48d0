//! How codecs of the table and checksums are stored. Those that versions 1 and 2 had, have a kind of their own; every later one is
//! stored by the name of the file that decodes it, so that a new codec changes nothing here.

use hyperslab_core::{Checksum, Codec, KnownCodec, known};

use super::stored::{Input, Stored};
use crate::error::Error;

/// The kinds of versions 1 and 2, and how many numbers follow each: a list of any length if there is none.
static NUMBERED: &[(u8, &KnownCodec, Option<usize>)] = &[
    (1, &known::zlib, Some(0)),
    (2, &known::gzip, Some(0)),
    (4, &known::szip, Some(4)),
    (5, &known::nbit, None),
    (6, &known::scaleoffset, None),
    (7, &known::lzf, Some(0)),
    (8, &known::zstd, Some(0)),
    (9, &known::blosc, Some(0)),
    (10, &known::blosc2, Some(0)),
    (11, &known::lz4, Some(0)),
    (12, &known::lz4_numcodecs, Some(0)),
    (13, &known::bzip2, Some(0)),
    (14, &known::bitshuffle, Some(3)),
    (20, &known::rice, Some(2)),
    (21, &known::plio, Some(0)),
    (23, &known::run_length, Some(0)),
    (24, &known::skipping_huffman, Some(1)),
    (25, &known::nbit_hdf4, Some(5)),
    (26, &known::szip_hdf4, Some(5)),
    (31, &known::packbits, Some(0)),
];
const NAMED: u8 = 32;

/// Kinds of checksums after the data; all others are `CHECKSUM`.
static CHECKSUMS: &[(u8, Checksum)] = &[(3, Checksum::Fletcher32), (15, Checksum::Crc32c)];
const CHECKSUM: u8 = 28;

/// Writes a codec of the table or a checksum.
pub(super) fn write(codec: &Codec, out: &mut Vec<u8>) {
    match codec {
        Codec::Checksum { sum, at_start } => write_checksum(*sum, *at_start, out),
        Codec::Known { codec, parameters } => match numbered(codec) {
            Some((kind, None)) => {
                out.push(kind);
                parameters.write(out);
            }
            Some((kind, Some(count))) => {
                out.push(kind);
                (0..count).for_each(|place| parameters.get(place).copied().unwrap_or(0).write(out));
            }
            None => {
                out.push(NAMED);
                codec.file.to_owned().write(out);
                parameters.write(out);
            }
        },
        _ => {} // `schema.rs` has the kinds of all others
    }
}

fn write_checksum(sum: Checksum, at_start: bool, out: &mut Vec<u8>) {
    if let Some((kind, _)) = CHECKSUMS.iter().find(|(_, one)| *one == sum && !at_start) {
        return out.push(*kind);
    }
    out.push(CHECKSUM);
    sum.write(out);
    at_start.write(out);
}

fn numbered(codec: &KnownCodec) -> Option<(u8, Option<usize>)> {
    NUMBERED.iter().find(|(_, one, _)| *one == codec).map(|(kind, _, count)| (*kind, *count))
}

/// Whether only version 3 has this codec.
pub(super) fn is_named(codec: &Codec) -> bool {
    matches!(codec, Codec::Known { codec, .. } if numbered(codec).is_none())
}

/// Reads what follows a kind; `None` if there is no such kind.
pub(super) fn read(kind: u8, input: &mut Input<'_>) -> Result<Option<Codec>, Error> {
    if let Some((_, sum)) = CHECKSUMS.iter().find(|(one, _)| *one == kind) {
        return Ok(Some(Codec::checksum(*sum)));
    }
    if let Some((_, codec, count)) = NUMBERED.iter().find(|(one, ..)| *one == kind) {
        let parameters = match count {
            None => Stored::read(input)?,
            Some(count) => (0..*count).map(|_| u32::read(input)).collect::<Result<Vec<_>, _>>()?,
        };
        return Ok(Some(Codec::with(codec, parameters)));
    }
    match kind {
        CHECKSUM => Ok(Some(Codec::Checksum { sum: Stored::read(input)?, at_start: Stored::read(input)? })),
        NAMED => {
            let (file, parameters) = (String::read(input)?, Vec::<u32>::read(input)?);
            let unknown = || Codec::Unknown { number: None, name: file.clone() };
            Ok(Some(KnownCodec::of_file(&file).map_or_else(unknown, |codec| Codec::with(codec, parameters))))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cursor::Cursor;

    fn read_back(bytes: &[u8]) -> Codec {
        Codec::read(&mut Input::new(Cursor::new("references", 0, bytes))).unwrap()
    }

    #[test]
    fn kinds_of_version_2_keep_their_bytes() {
        for (codec, bytes) in [
            (Codec::known(&known::zlib), &[1][..]),
            (Codec::checksum(Checksum::Fletcher32), &[3]),
            (Codec::with(&known::szip, [141, 8, 16, 300]), &[4, 0x8d, 1, 8, 16, 0xac, 2]),
            (Codec::with(&known::nbit, [8, 0, 5]), &[5, 3, 8, 0, 5]),
            (Codec::with(&known::bitshuffle, [4, 0, 2]), &[14, 4, 0, 2]),
            (Codec::checksum(Checksum::Crc32c), &[15]),
            (Codec::with(&known::nbit_hdf4, [2, 11, 12, 1, 0]), &[25, 2, 11, 12, 1, 0]),
            (Codec::Checksum { sum: Checksum::Adler32, at_start: true }, &[28, 1, 1]),
        ] {
            let mut written = Vec::new();
            codec.write(&mut written);
            assert_eq!(written, bytes);
            assert_eq!(read_back(bytes), codec);
            assert!(!is_named(&codec));
        }
    }

    #[test]
    fn a_later_codec_is_stored_by_name() {
        static LATER: KnownCodec = KnownCodec {
            file: "later",
            name: "later",
            hdf5: 0,
            numcodecs: "",
            zarr3: "",
            has_parameters: true,
            line: 99,
        };
        let codec = Codec::with(&LATER, [7]);
        let mut written = Vec::new();
        codec.write(&mut written);
        assert_eq!(written, b"\x20\x05later\x01\x07");
        assert!(is_named(&codec));
        assert_eq!(read_back(&written), Codec::Unknown { number: None, name: "later".to_owned() });
        assert_eq!(read_back(b"\x20\x04zstd\x00"), Codec::known(&known::zstd));
    }
}
