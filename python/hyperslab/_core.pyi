"""The compiled nouns of hyperslab: selections, chunk grids, and the geometry of copying between them.

Lengths, offsets and counts are in elements, never bytes. Order is C (row-major) everywhere. All objects are
immutable, hashable, comparable and safe to share between threads; all but `SelectionTotals` can be pickled.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import EllipsisType
from typing import Any, Self, SupportsIndex, TypeAlias, final

import numpy as np
import numpy.typing as npt

__version__: str

Selection: TypeAlias = Hyperslab | Points  # for annotations only: import it under TYPE_CHECKING

@final
class Hyperslab:
    """Regularly spaced blocks of an array, as `H5Sselect_hyperslab` of HDF5 defines them.

    On each axis it selects the indices `start + i * stride + j` for every `i < count` and `j < block`.

    Parameters
    ----------
    start
        The first index, one per axis.
    stride
        The distance between the starts of neighbouring blocks; by default `block`: blocks touch.
    count
        The number of blocks; by default 1. A count of 0 selects nothing.
    block
        The length of a block; by default 1.

    Two hyperslabs are equal when their four parameters are. The same elements can be said in several ways:
    `count=(6,)` and `block=(6,)` select the same and are not equal.

    Raises
    ------
    ValueError
        The arguments differ in length, a stride or block is 0, blocks overlap (a stride below the block with a count
        above 1), a number is negative, or an index exceeds 2**63 - 1.
    TypeError
        An argument is not a sequence of whole numbers.

    >>> Hyperslab(start=(0, 10), count=(100, 5)).slices
    (slice(0, 100, 1), slice(10, 15, 1))
    """

    def __new__(
        cls,
        start: Iterable[SupportsIndex],
        stride: Iterable[SupportsIndex] | None = None,
        count: Iterable[SupportsIndex] | None = None,
        block: Iterable[SupportsIndex] | None = None,
    ) -> Hyperslab: ...
    @staticmethod
    def from_slices(
        slices: SupportsIndex | slice | EllipsisType | tuple[SupportsIndex | slice | EllipsisType, ...],
        shape: Iterable[SupportsIndex],
    ) -> Hyperslab:
        """What `array[slices]` selects in an array of `shape`, by NumPy's rules; but no axis is dropped.

        An int selects one index and keeps its axis with length 1. Axes not mentioned are taken whole. Slices
        are clipped to the array as Python clips them; negative ints and bounds count from the end.

        Raises
        ------
        IndexError
            An int is outside the array, or there are more indices than axes.
        ValueError
            A slice has a negative step.
        TypeError
            An index is neither an int, a slice nor an ellipsis.
        """

    @staticmethod
    def all(shape: Iterable[SupportsIndex]) -> Hyperslab:
        """Everything in an array of `shape`: start 0, stride 1, count `shape`, block 1."""

    @property
    def start(self) -> tuple[int, ...]:
        """The first index selected, per axis."""

    @property
    def stride(self) -> tuple[int, ...]:
        """The distance between the starts of neighbouring blocks, per axis."""

    @property
    def count(self) -> tuple[int, ...]:
        """The number of blocks, per axis."""

    @property
    def block(self) -> tuple[int, ...]:
        """The length of a block, per axis."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the output: `count * block` per axis."""

    @property
    def ndim(self) -> int:
        """The number of axes."""

    @property
    def size(self) -> int:
        """The number of elements selected: the product of `shape`, 1 without axes."""

    @property
    def bounds(self) -> tuple[tuple[int, int], ...]:
        """The half-open interval `(start, stop)` that just holds the selection, per axis.

        Where nothing is selected, `stop` equals `start`.
        """

    @property
    def slices(self) -> tuple[slice, ...]:
        """The slices that select the same elements: one per axis, with int start, stop and positive step.

        Raises
        ------
        ValueError
            An axis selects separate blocks of more than one element, which no slice can say.
        """

    @property
    def is_contiguous_box(self) -> bool:
        """Whether the selection is one box without gaps: on every axis one block, or blocks that touch."""

    def check_within(self, shape: Iterable[SupportsIndex]) -> None:
        """Do nothing if an array of `shape` has every element selected.

        Raises
        ------
        IndexError
            It has not; the message has the axis, the last index selected and the array's length.
        ValueError
            `shape` has another number of axes.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs__(self) -> tuple[tuple[int, ...], ...]: ...

@final
class Points:
    """Elements of an array, listed one by one, in any order; an element may be listed twice.

    Parameters
    ----------
    coordinates
        Integers of shape `(size, ndim)`: one row per point.

    Raises
    ------
    ValueError
        The shape is another, there are no axes, or a coordinate is negative.
    TypeError
        The coordinates are not integers.
    """

    def __new__(cls, coordinates: npt.ArrayLike) -> Points: ...
    @property
    def coordinates(self) -> npt.NDArray[np.int64]:
        """A copy of the coordinates: int64, shape `(size, ndim)`."""

    @property
    def shape(self) -> tuple[int]:
        """The shape of the output: `(size,)`."""

    @property
    def ndim(self) -> int:
        """The number of axes that the array must have."""

    @property
    def size(self) -> int:
        """The number of points."""

    def check_within(self, shape: Iterable[SupportsIndex]) -> None:
        """Do nothing if an array of `shape` has every point.

        Raises
        ------
        IndexError
            It has not; the message has the first axis and index outside, and the array's length.
        ValueError
            `shape` has another number of axes.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs__(self) -> tuple[npt.NDArray[np.int64]]: ...

@final
class ChunkGrid:
    """The regular grid of chunks over an array.

    Every chunk is stored with the whole chunk shape, as in HDF5 and Zarr; of an edge chunk only the part
    inside the array is valid.

    Parameters
    ----------
    shape
        The array's shape.
    chunk_shape
        The chunks' shape, at least 1 on every axis; it may exceed the array.

    Raises
    ------
    ValueError
        The shapes differ in length, a chunk's length is 0, or there are more than 2**63 - 1 elements in all chunks
        together.

    A **run** is a maximal sequence of elements, consecutive in the selection's order, whose offsets in the
    chunk's buffer (chunk shape, C order) and in the output buffer (selection's shape, C order) both advance
    by one: what one `memcpy` copies. Runs of a hyperslab are counted in closed form: the elements, less those
    that continue a run. With m elements of the selection on an axis of the chunk, a of them directly after
    another, and w = 1 if the end of the axis is followed in both buffers by the start of the next line (else
    w = 0), a chunk has

        runs = Π m[d] - Σ_d (Π_{e < d} m[e]) · a[d] · (Π_{e > d} w[e])
    """

    def __new__(cls, shape: Iterable[SupportsIndex], chunk_shape: Iterable[SupportsIndex]) -> ChunkGrid: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """The shape of every stored chunk."""

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """The number of chunks along each axis; 0 where the array's length is 0."""

    @property
    def chunk_count(self) -> int:
        """The number of chunks in the grid."""

    def linear_index(self, chunk_index: Iterable[SupportsIndex]) -> int:
        """The position of a chunk in the row-major order of chunks.

        Raises
        ------
        IndexError
            The grid has no such chunk.
        """

    def chunk_index(self, linear_index: SupportsIndex) -> tuple[int, ...]:
        """The chunk at a position in the row-major order of chunks.

        Raises
        ------
        IndexError
            The grid has fewer chunks.
        """

    def chunk_box(self, chunk_index: Iterable[SupportsIndex]) -> Hyperslab:
        """The part of the array that a chunk holds: the shape of this hyperslab is the chunk's valid shape.

        Raises
        ------
        IndexError
            The grid has no such chunk.
        """

    def chunks(self, selection: Selection) -> npt.NDArray[np.int64]:
        """The indices of the chunks that a selection touches, in row-major order.

        The work is proportional to the chunks touched (for points, to the points). Releases the GIL.

        Returns
        -------
        npt.NDArray[np.int64]
            int64 of shape `(chunks touched, ndim)`.

        Raises
        ------
        IndexError
            The selection reaches outside the array.
        """

    def copy_runs(self, selection: Selection) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The runs and the elements to copy for each chunk of `chunks(selection)`, in that order.

        Releases the GIL.

        Returns
        -------
        tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
            `(run_counts, element_counts)`, each int64 of shape `(chunks touched,)`.

        Raises
        ------
        IndexError
            The selection reaches outside the array.
        """

    def fully_covered(self, selection: Selection) -> npt.NDArray[np.bool_]:
        """Whether a selection has all valid elements of each chunk of `chunks(selection)`, in that order.

        Such a chunk can be written without reading it first. Releases the GIL.

        Returns
        -------
        npt.NDArray[np.bool_]
            bool of shape `(chunks touched,)`.

        Raises
        ------
        IndexError
            The selection reaches outside the array.
        """

    def runs(self, chunk_index: Iterable[SupportsIndex], selection: Selection) -> list[tuple[int, int, int]]:
        """The runs that copy one chunk's part of a selection, in the selection's order; possibly none.

        Returns
        -------
        list[tuple[int, int, int]]
            `(chunk_offset, buffer_offset, length)` of each run, in elements of the two buffers.

        Raises
        ------
        IndexError
            The grid has no such chunk, or the selection reaches outside the array.
        """

    def totals(self, selection: Selection) -> SelectionTotals:
        """Chunks, runs and elements over the whole selection.

        For a hyperslab the work is proportional to the chunks along each axis, not to their product.

        Raises
        ------
        IndexError
            The selection reaches outside the array.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs__(self) -> tuple[tuple[int, ...], tuple[int, ...]]: ...

@final
class SelectionTotals:
    """What a selection costs a grid. Made by `ChunkGrid.totals`."""

    @property
    def chunk_count(self) -> int:
        """Chunks that hold at least one selected element."""

    @property
    def run_count(self) -> int:
        """Runs to copy over all of these chunks; `ChunkGrid` says what a run is."""

    @property
    def element_count(self) -> int:
        """Elements selected; a point counts as often as it is listed."""

    @property
    def decoded_element_count(self) -> int:
        """Elements of these chunks as stored: what is decoded to read the selection, each chunk once."""

    @property
    def valid_element_count(self) -> int:
        """Elements of these chunks inside the array."""

    @property
    def read_amplification(self) -> float | None:
        """Elements decoded per element selected; None if nothing is selected."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

_Request: TypeAlias = tuple[str, int, int, int]

@final
class CacheState:
    """An array that a library has open, and what its caches hold: gives the variables of the cost model.

    Nothing is read or written: libraries, the page cache and the device are simulated. `hyperslab.model` is the
    comfortable way here.

    Parameters
    ----------
    grid
        The array's shape and its chunks'.
    element_nbytes
        Width of an element in bytes.
    library
        `hdf5`, `zarr`, `flat` (netCDF-3, FITS, npy), `hyperslab`, or the paper's algorithm as it is printed:
        `paper_hdf5`, `paper_zarr`.
    chunks
        Which chunks exist at first: `row_major` (all, written in this order), `missing`, or `listed`.
    manifest
        Of listed chunks the linear indices, offsets and stored lengths, uint64.
    ratio
        Decoded bytes per stored byte; None without codecs.
    page_cache_nbytes
        Bytes that the page cache may hold.
    read_ahead_nbytes
        Bytes that the system reads ahead at most; followed for HDF5, as Linux does it. 0: never.
    options
        What the library takes. hdf5: `chunk_cache_nbytes`, `chunk_cache_slots`, `w0` (by default those of HDF5 2.0),
        `index` (`btree_v1`, `btree_v2`, `fixed_array`, `extensible_array`, `none`, or `contiguous`: no chunks),
        `growing_axis`, `wide_lengths`, `mpi_writing`; zarr: `shard_shape`; hyperslab: `chunk_cache_nbytes`, `far` (on a
        server); paper_hdf5: `library_cache_nbytes`, `index_block_chunk_count`.

    Raises
    ------
    ValueError
        A number or a name has no meaning; the message says what to give.
    TypeError
        The library has no such option.
    """

    def __new__(
        cls,
        grid: ChunkGrid,
        element_nbytes: int,
        library: str,
        *,
        chunks: str = "row_major",
        manifest: list[npt.NDArray[np.uint64]] | None = None,
        ratio: float | None = None,
        page_cache_nbytes: int = 2**64 - 1,
        read_ahead_nbytes: int = 0,
        options: dict[str, Any] | None = None,
    ) -> CacheState: ...
    def access(self, operation: str, selections: list[Hyperslab | Points]) -> npt.NDArray[np.uint64]:
        """The variables of each access in turn: uint64, shape `(accesses, variables)`; `operation` is read or write.

        Raises
        ------
        IndexError
            A selection reaches outside the array.
        ValueError
            A selection has another number of axes, or the library cannot do the operation.
        """

    def requests(self, operation: str, selection: Hyperslab | Points) -> tuple[npt.NDArray[np.uint64], list[_Request]]:
        """The variables of one access, and its requests in order: purpose, chunk, offset, length in bytes."""

    def close(self) -> tuple[npt.NDArray[np.uint64], list[_Request]]:
        """The same of closing the array: what was not written yet."""

    @staticmethod
    def variable_names() -> list[str]:
        """The names of the variables, in the order of all rows: those of the paper first."""

def contention(processes: int, servers: int) -> float:
    """Formula 8 of the paper, `cf`: how many processes use a data server at a time.

    Raises
    ------
    ValueError
        There is no process or no server.
    """

AxisIndices: TypeAlias = tuple[int, int, int, int] | npt.NDArray[np.int64]  # for annotations only

_Files: TypeAlias = npt.NDArray[np.uint32]
_Offsets: TypeAlias = npt.NDArray[np.uint64]

@final
class ArchiveFile:
    """An open file of any format: its groups and arrays by their numbers; group 0 is the root.

    Raises
    ------
    DamagedFile
        The file contradicts its format.
    Unsupported
        The file is of no format that we know.
    """

    def __new__(
        cls,
        path: str,
        chunk_cache_nbytes: int,
        reach: Reach | None = None,
        patterns: list[str] = ...,
        between_commits: Callable[[], AbstractContextManager[None]] | None = None,
    ) -> ArchiveFile:
        """Open a file.

        Parameters
        ----------
        path : str
            Where it is.
        chunk_cache_nbytes : int
            Memory for decoded chunks.
        reach : Reach | None
            How whatever it leads to is reached, and whether it may be.
        patterns : list[str]
            Of an HDF5 file, which objects are read, by their names from the root on: `*` is any one name, `**` any
            number of them, at the end all below; a name that a pattern spells out is no other's wildcard. All without
            any. Others may then append to the file while it is read.
        between_commits : Callable[[], AbstractContextManager[None]] | None
            If given, chunks are looked up when arrays are first read; few of them without the others. It gives a
            context in which nobody overwrites what is committed; called by any thread.
        """

    @staticmethod
    def remote(
        file: RemoteFile, chunk_cache_nbytes: int, reach: Reach | None = None, patterns: Sequence[str] = ...
    ) -> ArchiveFile:
        """Open a file far away. Releases the GIL; Ctrl-C stops it.

        Parameters
        ----------
        file : RemoteFile
            The file.
        chunk_cache_nbytes : int
            Memory for decoded chunks.
        reach : Reach | None
            As of a file of this machine.

        Raises
        ------
        RemoteError
            The server did not give what was asked for.
        """

    @staticmethod
    def remote_zarr(folder: RemoteFile, chunk_cache_nbytes: int) -> ArchiveFile:
        """Open a Zarr hierarchy far away: consolidated, or where folders can be listed. As `remote`.

        Raises
        ------
        Unsupported
            A group without consolidated metadata on a server that lists nothing.
        """

    @staticmethod
    def given(file: GivenFile, chunk_cache_nbytes: int, reach: Reach | None = None) -> ArchiveFile:
        """Open a file that a program has."""

    @staticmethod
    def of_references(
        documents: dict[str, bytes],
        tables: dict[str, tuple[_Files, _Offsets, _Offsets, dict[int, bytes]]],
        files: list[str],
        folder: str,
        chunk_cache_nbytes: int,
        reach: Reach | None = None,
    ) -> ArchiveFile:
        """An archive of Zarr metadata, whose chunks lie in other files.

        Parameters
        ----------
        documents : dict[str, bytes]
            Metadata documents (`zarr.json`, or `.zarray`, `.zattrs`, `.zgroup`, or `.zmetadata`) by their keys; small
            chunks may stand among them.
        tables : dict[str, tuple[_Files, _Offsets, _Offsets, dict[int, bytes]]]
            By the path of an array, of each of its chunks in C order: file, offset and length, and by their linear
            indices the encoded bytes of those that are in no file. File 2**32 - 1 stands for a missing chunk; offset
            and length 0 for all of a file, as in Kerchunk's Parquet. Entries beyond the array's chunks are left out.
        files : list[str]
            Names of the files, which the tables count from 0.
        folder : str
            What relative names are relative to.
        chunk_cache_nbytes : int
            As in `remote`, like `reach`.

        Raises
        ------
        DamagedFile
            Columns of different lengths, a file that is not among `files`, or damaged metadata.
        Unsupported
            No metadata document is there.
        """

    @staticmethod
    def of_tables(
        documents: dict[str, bytes],
        table: Callable[[str], tuple[tuple[_Files, _Offsets, _Offsets, dict[int, bytes]], list[str]]],
        folder: str,
        chunk_cache_nbytes: int,
        reach: Reach | None = None,
    ) -> ArchiveFile:
        """The same, where `table` gives the columns of an array and the names of their files when it is first used."""

    @staticmethod
    def closed(path: str, reach: Reach | None = None) -> ArchiveFile:
        """A local file that is not held open: each read opens it again, and fails if it is another one then."""

    @property
    def format(self) -> str:
        """What kind of file it is: hdf5, netcdf3, fits, hdf4, zarr, references, dmrpp or collection."""

    @property
    def version(self) -> str | None:
        """Which version of the file was opened: its ETag, or its size and time of change; None for a folder."""

    @property
    def lost_nbytes(self) -> int:
        """Bytes by which the file is shorter than it says that it is: it was cut off, or never closed."""

    @property
    def urls(self) -> list[str]:
        """URLs of the files far away that chunks lie in beside this one; they may hold secrets."""

    @property
    def array_count(self) -> int:
        """How many arrays the file has."""

    def check_sources(self) -> None:
        """Check that files that references were made of are still the same; other archives have none.

        Raises
        ------
        FileChanged
            One is another one now.
        ReadError
            One cannot be opened.
        """

    def attributes(self, group: int) -> list[tuple[str, Any]]:
        """Name and `(shape, dtype, elements)` of each attribute; an exception for one that cannot be had.

        What NetCDF-4 keeps for itself is left out of its files, as netCDF's own libraries do.
        """

    def links(self, group: int) -> list[tuple[str, str, Any]]:
        """What a group holds: `(name, kind, target)`.

        The target is a number for `group` and `array`, a path for `soft`, `(file, path)` for `external`, and the
        reason for `unsupported` and `damaged`.
        """

    def array(self, number: int, path: str) -> StoredArray:
        """An array, under the path by which it was found."""

def save_references(path: str, folder: str, archives: list[tuple[str, ArchiveFile]]) -> tuple[int, int]:
    """Write the references of archives to a file; gives how many arrays and stored chunks there are.

    Parameters
    ----------
    path : str
        The file.
    folder : str
        Where it will stand: paths of files below it are kept relative to it.
    archives : list[tuple[str, ArchiveFile]]
        Each with the name of the group that it will be; "" for one that is the root itself.

    Raises
    ------
    DamagedFile
        A file that a virtual array shows is damaged.
    OSError
        The file could not be written.
    """

def counterparts(
    files: list[ArchiveFile], dimension: str | None, axis: int | None, ignored: list[str]
) -> tuple[
    list[tuple[str, int, int]],
    list[tuple[str, list[int], list[int], list[int], list[int | None], list[int | None]]],
]:
    """The groups of several files, as path, file and number in the first that has each; and their arrays by path.

    Parameters
    ----------
    files : list[ArchiveFile]
        The files.
    dimension : str | None
        The name of the dimension along which arrays are to be concatenated.
    axis : int | None
        Or the number of the axis.
    ignored : list[str]
        Attributes in which arrays may differ.

    Returns
    -------
    tuple
        With each array's path the columns files, arrays (numbers in these), kinds, axes and lengths: one entry for each
        file that has it. Kinds are equal where all but the length along the axis, and where chunks are, is equal.
    """

def combine(
    name: str,
    version: str,
    files: list[ArchiveFile],
    groups: list[tuple[int, int, list[tuple[str, str, int]]]],
    arrays: list[tuple[str, Any]],
    chunk_cache_nbytes: int,
) -> ArchiveFile:
    """An archive of arrays that are made of several files'. The files themselves are not held open.

    Parameters
    ----------
    name : str
        What people call it.
    version : str
        Tells it from what the same files were before.
    files : list[ArchiveFile]
        The files.
    groups : list[tuple[int, int, list[tuple[str, str, int]]]]
        Of each group the file and number whose attributes it has, and its links as name, kind and number.
    arrays : list[tuple[str, Any]]
        Of each array the path, for messages, and an `archive.combining.ArrayRecipe`.
    chunk_cache_nbytes : int
        As of `ArchiveFile`.

    Raises
    ------
    Unsupported
        Elements are of different kinds, which nothing converts.
    """

@final
class GivenFile:
    """A file that a program has: its bytes, or a function that reads ranges of it."""

    @staticmethod
    def of_bytes(name: str, version: str, bytes: bytes) -> GivenFile:
        """Bytes in memory, which are not copied."""

    @staticmethod
    def of_reader(
        name: str,
        version: str,
        host: str,
        nbytes: int,
        read: Callable[[list[tuple[int, int]]], list[bytes]],
        most_in_flight: int,
    ) -> GivenFile:
        """What `read` gives for pairs of offset and length; several threads call it.

        Parameters
        ----------
        name : str
            What people call the file.
        version : str
            What tells it from others of its name.
        host : str
            What its requests are counted under.
        nbytes : int
            How long it is.
        read : Callable[[list[tuple[int, int]]], list[bytes]]
            The bytes of each range, all of them.
        most_in_flight : int
            How many threads may call it at a time.
        """

class RemoteFile:
    """Where a file far away is, and how to reach it: secrets included, so it cannot be shown or pickled.

    Parameters
    ----------
    url
        Of HTTP, S3, Google Cloud Storage or Azure; for HTTP without user and password.
    config
        Keys and values as the Rust crate `object_store` knows them.
    headers
        Sent with every request for bytes.
    connect_timeout
        Seconds to wait for a connection.
    timeout
        Seconds to wait for any next byte.
    attempts
        How often a request is made before its failure is raised.
    patience
        Seconds after which a request is not made again.
    concurrency
        Requests to the host in flight at most; None leaves it as it is.
    cache_nbytes
        Memory for fetched bytes, for all files that are opened with this; 0 keeps none.
    allowed
        URLs that a server may redirect to beside itself, with all below them; None for any.

    Raises
    ------
    UsageError
        The URL or an option is not understood; values are not repeated.
    """

    def __new__(
        cls,
        url: str,
        *,
        config: list[tuple[str, str]],
        headers: list[tuple[str, str]],
        connect_timeout: float,
        timeout: float,
        attempts: int,
        patience: float,
        concurrency: int | None,
        cache_nbytes: int,
        allowed: list[str] | None = None,
    ) -> RemoteFile: ...
    @property
    def name(self) -> str:
        """The URL without what may be secret."""

@final
class Reach:
    """How whatever a document leads to is reached, and whether it may be."""

    def __new__(
        cls,
        document: str,
        function: Callable[[str], RemoteFile] | None = None,
        paths: list[str] | None = None,
        listed: list[str] = ...,
    ) -> Reach:
        """Make it.

        Parameters
        ----------
        document : str
            What people call the document.
        function : Callable[[str], RemoteFile] | None
            Says how to open a URL, or refuses; called by any thread. Without it the environment does.
        paths : list[str] | None
            The files and folders of this machine that it may lead to; all without any.
        listed : list[str]
            What is allowed, as a refusal says it.
        """

    def linked(self, own: str, name: str) -> Path | None:
        """The file that an external link of a file leads to, where the HDF5 library looks; None if there is none.

        Raises
        ------
        NotAllowed
            It may not be led to.
        ReadError
            It is no regular file.
        """

    def source(self, own: str, name: str) -> Path | None:
        """The same of a source of a virtual array."""

    def raw(self, own: str, name: str) -> Path:
        """The same of an external raw file, which must be there."""

def refusal(document: str, location: str, allowed: list[str]) -> str:
    """Why a document is not followed to a location, and what to do."""

def host_statistics() -> dict[str, dict[str, int]]:
    """Counts of what each host was asked by this process."""

def url_parts(text: str) -> tuple[str, str, list[bytes], bool] | None:
    """The kind of store, the server or bucket, the parts of the path, and whether nothing in the URL goes up.

    None if it names no server, or its path can be read in two ways.
    """

def web_url(text: str) -> tuple[str, str, str, str, str, str | None] | None:
    """Scheme, user, password, server (with its port where it is not the usual one), path and query of a web URL.

    As requests are made to it, so that nothing that names a server is read in two ways. User and password are as
    encoded. None if it is no URL of HTTP.
    """

@final
class Segment:
    """A box of an array with the chunks that hold it, as columns; what references are written from."""

    @property
    def box(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
        """Where in the array it starts, its shape, and where it starts in the array that the grid cuts.

        None if it is no box of both, with the same axes: a virtual array may show every other element of its source.
        """

    @property
    def source_shape(self) -> tuple[int, ...]:
        """The shape of the array that the grid cuts."""

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """The shape of a chunk."""

    @property
    def plain_edge_chunks(self) -> bool:
        """Whether chunks at the edge are stored without their codecs."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of what is stored."""

    @property
    def is_tidy(self) -> bool:
        """Whether decoded bytes are the elements; else they are repaired after decoding: strings cut at their end."""

    @property
    def fill(self) -> bytes | None:
        """One element with what unwritten chunks hold; None if the writer said that there is no such value."""

    @property
    def codecs(self) -> list[dict[str, Any]]:
        """The steps of encoding, first to last: `name` and what decoding needs beside it."""

    def indices(self) -> npt.NDArray[np.uint64]:
        """Linear indices of the stored chunks in the grid, ascending."""

    def files(self) -> npt.NDArray[np.uint32]:
        """The number of the file that each stored chunk is in."""

    def offsets(self) -> npt.NDArray[np.uint64]:
        """Where each stored chunk starts in its file."""

    def lengths(self) -> npt.NDArray[np.uint64]:
        """Bytes of each stored chunk."""

    def filter_masks(self) -> npt.NDArray[np.uint32]:
        """Which codecs each stored chunk was written without: bit 0 stands for the first."""

    def inline(self) -> dict[int, bytes]:
        """The encoded bytes of the chunks that the metadata hold, by linear index."""

@final
class StoredArray:
    """An array of an open file; plans and reads selections of it. Made by `ArchiveFile.array`."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The array's shape; None if it has no elements at all."""

    @property
    def max_shape(self) -> list[int | None]:
        """The largest shape that it may grow to; None on an axis without bound."""

    @property
    def dimensions(self) -> list[str] | None:
        """The names of its dimensions, if it has any."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of an element, in the file's byte order.

        Raises
        ------
        Unsupported
            NumPy has no such element.
        """

    @property
    def element_nbytes(self) -> int:
        """Bytes of an element as stored."""

    @property
    def has_pointers(self) -> bool:
        """Whether elements are pointers to values elsewhere in the file: `resolve` follows them."""

    @property
    def segment_count(self) -> int:
        """How many parts, each with chunks of its own, the array is made of."""

    def segments(self) -> list[Segment]:
        """The parts that the array is made of, each with chunks of its own; none if we cannot read it."""

    def file_paths(self) -> list[str | None]:
        """Paths of the files that chunks lie in, by their numbers; an archive that is a folder has no number 0."""

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of a chunk; None if the array is not chunked, or its parts differ.

        Of virtual arrays only those have chunks that show, with each of theirs, one of their source's.
        """

    def chunk_lengths(self) -> list[list[int]] | None:
        """On each axis the lengths of the chunks that follow one another; a single one for chunks of one length.

        None where parts are no boxes, or the array cannot be read.
        """

    @property
    def codecs(self) -> list[str]:
        """The names of the codecs, in the order of encoding; of the first part where there are several."""

    @property
    def filters(self) -> list[tuple[int, list[int]]]:
        """The filters of HDF5: the number and the parameters of each, in the order of encoding."""

    @property
    def type_name(self) -> str | None:
        """The name of the committed datatype of HDF5 that elements have."""

    @property
    def chunk_count(self) -> int:
        """Chunks that there could be."""

    @property
    def stored_chunk_count(self) -> int | None:
        """Chunks that are stored; None where nobody lists them."""

    @property
    def stored_nbytes(self) -> int | None:
        """Bytes of the stored chunks; None where nobody lists them."""

    @property
    def fill_is_missing(self) -> bool:
        """Whether elements with the fill value are missing ones, as in Zarr 2."""

    @property
    def is_dimension_only(self) -> bool:
        """Whether it only stands for a dimension of NetCDF-4 that has no variable."""

    @property
    def unsupported(self) -> str | None:
        """The feature for which the array cannot be read here; None if there is none."""

    @property
    def damaged(self) -> str | None:
        """Why none of the array can be read, if its description is damaged."""

    @property
    def fill(self) -> bytes | None:
        """One element with the fill value; None if the writer said that there is none."""

    def attributes(self) -> list[tuple[str, Any]]:
        """As `ArchiveFile.attributes`."""

    def plan(self, asked: list[AxisIndices]) -> ReadPlan:
        """What reading a selection takes.

        Parameters
        ----------
        asked : list[AxisIndices]
            Per axis `(start, stride, count, block)`, or an int64 array of indices from 0 up.

        Raises
        ------
        IndexError
            The selection reaches outside the array.
        Unsupported
            The array cannot be read here.
        DamagedFile
            The array's description, or the table of its chunks, is damaged.
        """

    def read_into(
        self, asked: list[AxisIndices], out: npt.NDArray[np.uint8], threads: int | None, is_reused: bool
    ) -> None:
        """Read a selection into the bytes of its output. Releases the GIL; Ctrl-C stops it.

        Parameters
        ----------
        asked : list[AxisIndices]
            As of `plan`.
        out : npt.NDArray[np.uint8]
            uint8, the selection's elements in C order.
        threads : int | None
            Most to use, the calling one included.
        is_reused : bool
            Whether `out` was written to before: bears on speed alone.

        Raises
        ------
        ValueError
            `out` is not contiguous, or has another size than the selection.
        DamagedFile
            Stored bytes are not what their format says.
        FileChanged
            The file is not the one that was opened any more.
        ReadError
            The operating system could not read.
        """

    def plan_points(self, points: Points) -> ReadPlan:
        """What reading points takes; errors as of `plan`."""

    def read_points_into(self, points: Points, out: npt.NDArray[np.uint8], threads: int | None) -> None:
        """Read points into the bytes of their output, one element a point; errors as of `read_into`.

        Points that share a chunk are read together, so that each chunk is fetched and decoded once.
        """

    def resolve(self, elements: npt.NDArray[np.uint8]) -> list[Any]:
        """What elements, as they were read, point to: one object each."""

def chunk_slots_of(array: StoredArray, chunk_shape: Sequence[int]) -> npt.NDArray[np.int64] | None:
    """Of each chunk of a version's array, in C order, its slot in the stack of all chunks; -1 of those not stored.

    None if the array is not virtual in this way: one mapping a chunk, in order, of chunks stacked along axis 0.
    """

def mapped_source(array: StoredArray) -> tuple[str, str] | None:
    """The file and the path that all mappings of a virtual array show a part of; None if there is no mapping.

    Of mappings of several arrays both are empty.
    """

def filters_of(file: str, path: str) -> list[tuple[int, list[int]]]:
    """The number and the parameters of each filter of an array, by its path in an HDF5 file of this machine.

    Raises
    ------
    ReadError
        They cannot be read, or there is no such array.
    """

def hash_chunks(
    data: npt.NDArray[np.uint8],
    shapes: tuple[Sequence[int], Sequence[int]],
    numbers: npt.NDArray[np.int64],
    width: int,
    taken: tuple[int, Callable[[int, bytes], None]] | None = None,
) -> bytes:
    """SHA-256, 32 bytes each, of the valid part of chunks of an array, followed by `str(its shape)`.

    Parameters
    ----------
    data : npt.NDArray[np.uint8]
        The array's bytes, in C order.
    shapes : tuple[Sequence[int], Sequence[int]]
        The array's, of at least one axis, and the chunks'.
    numbers : npt.NDArray[np.int64]
        Linear indices of the chunks.
    width : int
        Bytes of an element.
    taken : tuple[int, Callable[[int, bytes], None]] | None
        Whenever so many hashes are there, in order, they are given to this function, after the number of the first;
        meanwhile other threads make the next ones.

    Raises
    ------
    ValueError
        The bytes are not of that shape.
    """

def hash_staged(
    slab: npt.NDArray[np.uint8],
    slots: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    shapes: tuple[Sequence[int], Sequence[int]],
    width: int,
    taken: tuple[int, Callable[[int, bytes], None]] | None = None,
) -> bytes:
    """The same of some chunks of an array.

    Parameters
    ----------
    slab : npt.NDArray[np.uint8]
        Bytes of whole chunks, one after another.
    slots : npt.NDArray[np.int64]
        Where in it each of them is.
    numbers : npt.NDArray[np.int64]
        Linear index of each in the array's grid.
    shapes : tuple[Sequence[int], Sequence[int]]
        The array's and the chunks'.
    width : int
        Bytes of an element.
    taken : tuple[int, Callable[[int, bytes], None]] | None
        As above.
    """

def lzf(data: bytes) -> bytes:
    """Bytes encoded by LZF, maybe longer. What is encoded piece by piece can be joined, and decoded as one."""

def gather_chunks(
    data: npt.NDArray[np.uint8],
    shapes: tuple[Sequence[int], Sequence[int]],
    numbers: npt.NDArray[np.int64],
    fill: bytes,
) -> npt.NDArray[np.uint8]:
    """Bytes of some chunks of an array, by their linear indices, one after another, each whole: with `fill` for each
    element outside the array, whose bytes are `data`.

    Parameters
    ----------
    data : npt.NDArray[np.uint8]
        The array's bytes, in C order.
    shapes : tuple[Sequence[int], Sequence[int]]
        The array's and the chunks'.
    numbers : npt.NDArray[np.int64]
        Linear indices of the chunks.
    fill : bytes
        Bytes of one element.
    """

def mappings_block(
    path: str, shape: Sequence[int], chunk_shape: Sequence[int], slots: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8] | None:
    """What libhdf5 stores of the mappings that `add_mappings` adds; None where it would do so in another version."""

@final
class ChunkTable:
    """Where the chunk of each hash is, among all chunks of an array.

    Parameters
    ----------
    digests
        The hashes, 32 bytes each.
    slots
        The slot of each.
    """

    def __new__(cls, digests: bytes, slots: npt.NDArray[np.int64]) -> Self: ...
    def __len__(self) -> int: ...
    def find(self, digests: bytes, nothing: bytes, next: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The slot of each hash, -1 of `nothing`; and the numbers of those that are new.

        New ones get slots from `next` on, equal ones the same; the numbers are those of the first of each. They are
        not put into the table.
        """

    def add(self, digests: bytes, first: int) -> None:
        """Put hashes in, whose chunks are one after another from slot `first` on."""

def write_chunks(
    function: int,
    array: int,
    first: int,
    chunk_shape: Sequence[int],
    chunks: npt.NDArray[np.uint8],
    chunk_nbytes: int,
    filters: Sequence[tuple[int, int]],
) -> int:
    """Store chunks of an array that is a stack of them, encoded by several threads, through the libhdf5 of h5py.

    Parameters
    ----------
    function : int
        Address of `H5Dwrite_chunk` in that library; h5py's lock is held.
    array : int
        Its identifier.
    first : int
        The slot of the first chunk.
    chunk_shape : Sequence[int]
        Of each.
    chunks : npt.NDArray[np.uint8]
        Their bytes, one after another.
    chunk_nbytes : int
        Bytes of each.
    filters : Sequence[tuple[int, int]]
        HDF5's numbers of the array's filters, in order, of deflate, shuffle, fletcher32 and LZF; with the level or the
        bytes of an element.

    Returns
    -------
    int
        A bit for each filter that was left out of the last chunk, the first filter's the least.

    Raises
    ------
    RuntimeError
        libhdf5 refused.
    """

def add_mappings(
    functions: tuple[int, int],
    ids: tuple[int, int, int],
    path: str,
    shape: Sequence[int],
    chunk_shape: Sequence[int],
    slots: npt.NDArray[np.int64],
) -> None:
    """Add a mapping for each stored chunk to a property list, through the libhdf5 that h5py loaded.

    Parameters
    ----------
    functions : tuple[int, int]
        Addresses of `H5Sselect_hyperslab` and `H5Pset_virtual` in that library, HDF5 1.10 or later; h5py's lock is
        held.
    ids : tuple[int, int, int]
        Property list, dataspace of the virtual array, dataspace of the source.
    path : str
        The source's.
    shape : Sequence[int]
        The virtual array's.
    chunk_shape : Sequence[int]
        The chunks'.
    slots : npt.NDArray[np.int64]
        As `chunk_slots_of` gives them.

    Raises
    ------
    RuntimeError
        libhdf5 refused.
    """

@final
class ZarrArray:
    """An array of a Zarr folder that others may write to: each read looks for its chunks anew, and keeps nothing.

    Parameters
    ----------
    document
        The text of its `zarr.json` or `.zarray`.
    folder
        What the keys of its chunks are relative to: a folder of this machine, or what is far away.
    fill
        The bytes of an element that was never written; by default what the document says.

    Raises
    ------
    Unsupported
        It uses something that we cannot read.
    DamagedFile
        The document contradicts its format.
    """

    def __new__(cls, document: bytes, folder: str | RemoteFile, fill: bytes | None = None) -> ZarrArray: ...
    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of an element, in the stored byte order.

        Raises
        ------
        Unsupported
            NumPy has no such element.
        """

    @property
    def key_shape(self) -> tuple[int, ...]:
        """The shape of what one key holds: a chunk, or a shard."""

    def read_into(
        self, shape: tuple[int, ...], asked: list[AxisIndices], out: npt.NDArray[np.uint8], threads: int | None
    ) -> None:
        """Read a selection of the array, in a shape that need not be the document's; as `StoredArray.read_into`."""

    def read_points_into(
        self, shape: tuple[int, ...], points: Points, out: npt.NDArray[np.uint8], threads: int | None
    ) -> None:
        """Read points of the array in this shape; as `StoredArray.read_points_into`."""

@final
class ReadPlan:
    """What reading a selection takes: chunks, requests and bytes. Made by `Array.plan`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the output, all axes kept."""

    @property
    def element_count(self) -> int:
        """Elements of the output."""

    @property
    def chunk_count(self) -> int:
        """Chunks touched."""

    @property
    def missing_chunk_count(self) -> int:
        """Chunks touched that were never written: their elements are the fill value."""

    @property
    def request_count(self) -> int:
        """Requests that a read makes, with any number of threads, if no chunk is in memory yet."""

    @property
    def fetched_nbytes(self) -> int:
        """Bytes of these requests: what lies between neighbours that come together is among them."""

    @property
    def decoded_nbytes(self) -> int:
        """Bytes that come out of the codecs, or are read as they are."""

    @property
    def output_nbytes(self) -> int:
        """Bytes of the output."""

    @property
    def read_amplification(self) -> float | None:
        """Bytes decoded per byte of the output; None if nothing is selected."""

    def requests(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """The requests: file numbers (0 is the opened file), offsets, lengths; in the order of files and offsets."""
