//! The formats that can be opened: how each is recognized, and its parser.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{ByteRange, Tree};
use hyperslab_engine::{FileStore, Store};
use hyperslab_parsers::hdf5::LazyIndex;
use hyperslab_parsers::{self as parsers, Allowed, Pages, Policy, Source};

use crate::dmrpp;
use crate::error::Error;
use crate::sources::LocalSource;
use crate::url::folder_of;

/// The set is closed: file formats, Zarr folders, references (JSON) that present other files as Zarr, and collections
/// of several files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// HDF5, including NetCDF-4.
    Hdf5,
    /// The classic formats of NetCDF.
    NetCdf3,
    /// FITS.
    Fits,
    /// HDF4.
    Hdf4,
    /// A folder of Zarr, versions 2 and 3.
    Zarr,
    /// Kerchunk's JSON, or another description of chunks as Zarr.
    References,
    /// Our own compact file of references.
    OwnReferences,
    /// A DMR++ document (XML), which tells where the chunks are in another file.
    Dmrpp,
    /// Several archives, shown as one.
    Collection,
}

/// HDF5 File Format Specification 3.0, II.A: the superblock is at 0, 512, 1024, 2048 and so on.
const HDF5_SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";

impl Format {
    /// Recognizes the format of a file by its signature.
    pub(crate) fn of(source: &dyn Source) -> Result<Self, parsers::Error> {
        match head(source, 0)? {
            head if head.starts_with(b"CDF\x01")
                || head.starts_with(b"CDF\x02")
                || head.starts_with(b"CDF\x05") =>
            {
                Ok(Self::NetCdf3)
            }
            head if head.starts_with(b"SIMPLE  ") => Ok(Self::Fits),
            head if head.starts_with(b"\x0e\x03\x13\x01") => Ok(Self::Hdf4),
            head if head == HDF5_SIGNATURE => Ok(Self::Hdf5),
            head if head == parsers::references::SIGNATURE => Ok(Self::OwnReferences),
            head => Self::behind_user_block(source).or_else(|error| {
                let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head).trim_ascii_start();
                match text.first() {
                    Some(b'{') => Ok(Self::References),
                    Some(b'<') => Ok(Self::Dmrpp),
                    _ => Err(error),
                }
            }),
        }
    }

    fn behind_user_block(source: &dyn Source) -> Result<Self, parsers::Error> {
        let starts = std::iter::successors(Some(512_u64), |start| start.checked_mul(2));
        let starts = starts.take_while(|&start| start < source.length());
        let heads: Vec<ByteRange> = starts.map(|start| head_range(source, start)).collect();
        if source.read_ranges(&heads)?.iter().any(|head| head == HDF5_SIGNATURE) {
            return Ok(Self::Hdf5);
        }
        let reason = "it has no signature of HDF5, NetCDF, FITS or HDF4, and is neither JSON nor DMR++ references; a Zarr archive is a folder";
        Err(parsers::Error::UnknownFormat { reason: reason.to_owned() })
    }

    /// The name shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hdf5 => "hdf5",
            Self::NetCdf3 => "netcdf3",
            Self::Fits => "fits",
            Self::Hdf4 => "hdf4",
            Self::Zarr => "zarr",
            Self::References | Self::OwnReferences => "references",
            Self::Dmrpp => "dmrpp",
            Self::Collection => "collection",
        }
    }

    /// The tree of a file. Names in references are relative to the folder of `path`, which may be a URL. If there are
    /// `patterns`, only the matching part of an HDF5 file is parsed.
    pub(crate) fn parse(
        self,
        source: &dyn Source,
        policy: Policy,
        path: &Path,
        patterns: &[String],
        allowed: &Allowed,
    ) -> Result<Tree, parsers::Error> {
        self.parse_pages(&mut Pages::new(source, policy), source, path, patterns, allowed)
    }

    /// The same, of pages of this source.
    pub(crate) fn parse_pages(
        self,
        pages: &mut Pages<'_>,
        source: &dyn Source,
        path: &Path,
        patterns: &[String],
        allowed: &Allowed,
    ) -> Result<Tree, parsers::Error> {
        match self {
            Self::NetCdf3 => parsers::netcdf3::parse(pages),
            Self::Fits => parsers::fits::parse(pages),
            Self::Hdf5 => parsers::hdf5::parse_part(pages, patterns),
            Self::Hdf4 => parsers::hdf4::parse(pages),
            Self::References => parsers::zarr::parse_references(source, &folder_of(path), allowed),
            Self::Dmrpp => dmrpp::parse(source, path, allowed),
            Self::Zarr | Self::Collection => {
                Err(parsers::Error::UnknownFormat { reason: "a Zarr archive is a folder".to_owned() })
            }
            Self::OwnReferences => Err(parsers::Error::UnknownFormat {
                reason: "references are no source of an array".to_owned(),
            }),
        }
    }
}

/// A local file, parsed.
pub(crate) struct Parsed {
    pub(crate) store: Arc<FileStore>,
    pub(crate) format: Format,
    pub(crate) tree: Tree,
    /// By array number: what leads to chunks that have not been looked up.
    pub(crate) indexes: Vec<Option<LazyIndex>>,
}

impl Parsed {
    /// A file that is parsed only in part may be appended to meanwhile. With `without_chunks`, that part of an HDF5
    /// file has chunk indexes in place of chunks.
    pub(crate) fn of(
        path: &Path,
        store: Arc<FileStore>,
        patterns: &[String],
        without_chunks: bool,
        allowed: &Allowed,
    ) -> Result<Self, Error> {
        let source = LocalSource(&*store);
        let format = Format::of(&source).map_err(|problem| Error::parse_of(path, problem))?;
        let parsed = if without_chunks && format == Format::Hdf5 {
            parsers::hdf5::parse_without_chunks(&mut Pages::new(&source, Policy::LOCAL), patterns)
        } else {
            format.parse(&source, Policy::LOCAL, path, patterns, allowed).map(|tree| (tree, Vec::new()))
        };
        store.check_unchanged()?; // a file that changed explains any other failure
        let store = match Arc::try_unwrap(store) {
            Ok(store) if !patterns.is_empty() => Arc::new(store.growing()),
            Ok(store) => Arc::new(store),
            Err(shared) => shared,
        };
        let (tree, indexes) = parsed.map_err(|problem| Error::parse_of(path, problem))?;
        Ok(Self { store, format, tree, indexes })
    }
}

fn head(source: &dyn Source, offset: u64) -> Result<Vec<u8>, parsers::Error> {
    let read = source.read_ranges(&[head_range(source, offset)])?;
    Ok(read.into_iter().next().unwrap_or_default())
}

fn head_range(source: &dyn Source, offset: u64) -> ByteRange {
    ByteRange { offset, length: source.length().saturating_sub(offset).min(HDF5_SIGNATURE.len() as u64) }
}
