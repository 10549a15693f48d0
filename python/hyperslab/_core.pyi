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

    Two hyperslabs are equal if their four parameters are. Different parameters can select the same elements:
    `count=(6,)` and `block=(6,)` do, but are not equal.

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
        """What `array[slices]` selects in an array of `shape`, by NumPy's rules, except that no axis is dropped.

        An int selects one index and keeps its axis with length 1. Omitted axes are selected completely.
        Slices are clipped to the array as in Python; negative ints and bounds count from the end.

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
        """The smallest half-open interval `(start, stop)` that holds the selection, per axis.

        If nothing is selected, `stop` equals `start`.
        """

    @property
    def slices(self) -> tuple[slice, ...]:
        """The slices that select the same elements: one per axis, with int start, stop and positive step.

        Raises
        ------
        ValueError
            An axis selects separate blocks of more than one element, which no slice can express.
        """

    @property
    def is_contiguous_box(self) -> bool:
        """Whether the selection is one box without gaps: on every axis one block, or blocks that touch."""

    def check_within(self, shape: Iterable[SupportsIndex]) -> None:
        """Check that an array of `shape` has every selected element.

        Raises
        ------
        IndexError
            It does not. The message has the axis, the last index selected and the array's length.
        ValueError
            `shape` has a different number of axes.
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
        The coordinates have another shape or no axes, or a coordinate is negative.
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
        """Check that an array of `shape` has every point.

        Raises
        ------
        IndexError
            It does not. The message has the first axis and index outside, and the array's length.
        ValueError
            `shape` has a different number of axes.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs__(self) -> tuple[npt.NDArray[np.int64]]: ...

@final
class ChunkGrid:
    """The regular grid of chunks over an array.

    Every chunk is stored with the full chunk shape, as in HDF5 and Zarr. Only the part of an edge chunk that lies
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
    by one: one `memcpy` copies it. The runs of a hyperslab are counted in closed form, as the elements minus those
    that continue a run. Say the selection has m elements on an axis of the chunk, a of which directly follow
    another, and w is 1 if in both buffers the end of the axis is followed by the start of the next line (otherwise
    0). Then a chunk has

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

        The work is proportional to the number of chunks touched (for points, to the number of points). Releases the
        GIL.

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
        """Whether a selection covers all valid elements of each chunk of `chunks(selection)`, in that order.

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
    """What a selection touches and copies in a grid. Made by `ChunkGrid.totals`."""

    @property
    def chunk_count(self) -> int:
        """Chunks that hold at least one selected element."""

    @property
    def run_count(self) -> int:
        """Runs to copy in all of these chunks. `ChunkGrid` defines a run."""

    @property
    def element_count(self) -> int:
        """Elements selected. A point counts as often as it is listed."""

    @property
    def decoded_element_count(self) -> int:
        """Elements of these chunks as stored. Reading the selection decodes all of them, each chunk once."""

    @property
    def valid_element_count(self) -> int:
        """Elements of these chunks that lie inside the array."""

    @property
    def read_amplification(self) -> float | None:
        """Decoded elements per selected element; None if nothing is selected."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

_Request: TypeAlias = tuple[str, int, int, int]

@final
class CacheState:
    """An array that a library has open, and the contents of its caches. Returns the variables of the cost model.

    Nothing is read or written: the library, the page cache and the device are simulated. `hyperslab.model` is more
    convenient.

    Parameters
    ----------
    grid
        The array's shape and its chunks'.
    element_nbytes
        Width of an element in bytes.
    library
        `hdf5`, `zarr`, `flat` (netCDF-3, FITS, npy), `hyperslab`, or the paper's algorithm as printed:
        `paper_hdf5`, `paper_zarr`.
    chunks
        Which chunks exist at first: `row_major` (all, written in this order), `missing`, or `listed`.
    manifest
        For listed chunks: linear indices, offsets and stored lengths, uint64.
    ratio
        Decoded bytes per stored byte; None without codecs.
    page_cache_nbytes
        The size of the page cache in bytes.
    read_ahead_nbytes
        How many bytes the system reads ahead at most; 0 for none. Simulated for HDF5, as Linux does it.
    options
        The library's options. hdf5: `chunk_cache_nbytes`, `chunk_cache_slots`, `w0` (by default those of HDF5 2.0),
        `index` (`btree_v1`, `btree_v2`, `fixed_array`, `extensible_array`, `none`; without chunks: `contiguous`,
        `compact`), `growing_axis`, `max_shape` (2**64 - 1 for an axis without a limit), `fills` (new chunks are filled
        first), `allocates_late` (the first write allocates all chunks), `lengths_vary` (those of encoded chunks),
        `wide_lengths`, `mpi_writing`; zarr: `shard_shape`, `joined_gap_nbytes` and `joined_nbytes` (one request
        reads chunks of a shard with at most so many bytes between them, and has at most so many; None: it reads one),
        `reads_overwritten` (a shard is read before it is overwritten wholly);
        hyperslab: `chunk_cache_nbytes`, `far` (on a server); paper_hdf5: `library_cache_nbytes`,
        `index_block_chunk_count`.

    Raises
    ------
    ValueError
        A number or a name is invalid. The message says what to give instead.
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
    def access(
        self, operation: str, selections: list[Hyperslab | Points], reopened: Sequence[int] = ...
    ) -> npt.NDArray[np.uint64]:
        """The variables of each access in turn: uint64, shape `(accesses, variables)`; `operation` is read or write.

        The array is closed and opened again before the accesses at `reopened`, as `reopen_array` does.

        Raises
        ------
        IndexError
            A selection reaches outside the array.
        ValueError
            A selection has the wrong number of axes, or the library does not support the operation.
        """

    def requests(self, operation: str, selection: Hyperslab | Points) -> tuple[npt.NDArray[np.uint64], list[_Request]]:
        """The variables of one access, and its requests in order: purpose, chunk, offset, length in bytes."""

    def resize(self, length: int) -> tuple[npt.NDArray[np.uint64], list[_Request]]:
        """Let the array grow along its first axis to this length: the variables and requests of what this writes.

        Raises
        ------
        ValueError
            The length is smaller than it is now, or the library's arrays cannot grow.
        """

    def close(self) -> tuple[npt.NDArray[np.uint64], list[_Request]]:
        """The same for closing the array: whatever was not written yet."""

    def reopen(self) -> tuple[npt.NDArray[np.uint64], list[_Request]]:
        """The same for closing the file and opening it again: the library forgets what it has cached."""

    def reopen_array(self) -> tuple[npt.NDArray[np.uint64], list[_Request]]:
        """The same for closing the array and opening it again, in a file that stays open."""

    @staticmethod
    def variable_names() -> list[str]:
        """The names of the variables, in the order of all rows: the paper's first."""

def contention(processes: int, servers: int) -> float:
    """Formula 8 of the paper, `cf`: how many processes use one data server at a time.

    Raises
    ------
    ValueError
        There is no process or no server.
    """

def reuse_distances(chunks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each touch of a chunk, how many other chunks were touched since the last touch of the same; -1 for the first.

    A cache of n chunks that forgets the one that was used longest ago still has a chunk if its distance is below n.

    Parameters
    ----------
    chunks
        The number of the chunk of each touch, in order.

    Returns
    -------
    npt.NDArray[np.int64]
        A distance for each touch.

    Raises
    ------
    TypeError
        The numbers do not follow each other in memory.
    """

def serve_requests(
    starts: npt.NDArray[np.uint64],
    servers: npt.NDArray[np.uint32],
    service_seconds: npt.NDArray[np.float64],
    process_seconds: npt.NDArray[np.float64],
    server_count: int,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Simulate processes that wait for servers, which serve requests in the order of their arrival.

    Parameters
    ----------
    starts
        Where the requests of each process begin, and at last the number of all requests.
    servers
        The server of each request. A process makes its next request once it has the answer to the last one.
    service_seconds
        How long each request occupies its server.
    process_seconds
        How long its process is then busy without occupying a server.
    server_count
        The number of servers.

    Returns
    -------
    tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
        When each process ends, and how long each server was busy.

    Raises
    ------
    ValueError
        The columns do not fit each other, a server does not exist, or a time is negative or not finite.
    """

AxisIndices: TypeAlias = tuple[int, int, int, int] | npt.NDArray[np.int64]  # for annotations only

_Files: TypeAlias = npt.NDArray[np.uint32]
_Offsets: TypeAlias = npt.NDArray[np.uint64]

@final
class ArchiveFile:
    """An open file of any format: its groups and arrays by number. Group 0 is the root.

    Raises
    ------
    DamagedFile
        The file contradicts its format.
    Unsupported
        The file has no format that we know.
    """

    def __new__(
        cls,
        path: str,
        chunk_cache_nbytes: int,
        resolver: DocumentResolver | None = None,
        patterns: list[str] = ...,
        between_commits: Callable[[], AbstractContextManager[None]] | None = None,
    ) -> ArchiveFile:
        """Open a file.

        Parameters
        ----------
        path : str
            The path of the file.
        chunk_cache_nbytes : int
            Memory for decoded chunks.
        resolver : DocumentResolver | None
            Finds the files that it names, and refuses those it may not name.
        patterns : list[str]
            Which objects of an HDF5 file to parse, by paths from the root: `*` is any one name, `**` any number of
            names, at the end everything below. A name that a pattern spells out matches no wildcard of another
            pattern. Without patterns everything is parsed; with them, others may append to the file meanwhile.
        between_commits : Callable[[], AbstractContextManager[None]] | None
            If given, chunks are looked up when arrays are first read, and a small read only looks up its own. Returns
            a context in which no commit overwrites the file. Any thread may call it.
        """

    @staticmethod
    def remote(
        file: RemoteFile,
        chunk_cache_nbytes: int,
        resolver: DocumentResolver | None = None,
        patterns: Sequence[str] = ...,
        notes_metadata: bool = False,
    ) -> ArchiveFile:
        """Open a remote file. Releases the GIL; Ctrl-C stops it.

        Parameters
        ----------
        file : RemoteFile
            The file.
        chunk_cache_nbytes : int
            Memory for decoded chunks.
        resolver : DocumentResolver | None
            As for a local file.
        notes_metadata : bool
            Whether `opening` has the structures that were read, and where they are.

        Raises
        ------
        RemoteError
            The server did not send what was asked for.
        """

    @staticmethod
    def as_far(path: str, resolver: DocumentResolver | None) -> ArchiveFile:
        """Open a local file with the requests that would open it from afar; `opening` has their counts.

        Raises
        ------
        Unsupported
            The file holds our own references.
        """

    @staticmethod
    def remote_zarr(folder: RemoteFile, chunk_cache_nbytes: int) -> ArchiveFile:
        """Open a remote Zarr hierarchy, which must have consolidated metadata or be on a server that lists folders.

        Raises
        ------
        Unsupported
            A group has no consolidated metadata, and the server lists nothing.
        """

    @staticmethod
    def given(file: GivenFile, chunk_cache_nbytes: int, resolver: DocumentResolver | None) -> ArchiveFile:
        """Open a file that is given by its bytes or by a function."""

    @staticmethod
    def of_references(
        documents: dict[str, bytes],
        tables: dict[str, tuple[_Files, _Offsets, _Offsets, dict[int, bytes]]],
        files: list[str],
        folder: str,
        chunk_cache_nbytes: int,
        resolver: DocumentResolver | None = None,
    ) -> ArchiveFile:
        """An archive of Zarr metadata, whose chunks are in other files.

        Parameters
        ----------
        documents : dict[str, bytes]
            Metadata documents (`zarr.json`, or `.zarray`, `.zattrs`, `.zgroup`, or `.zmetadata`) by key. Small chunks
            may be among them.
        tables : dict[str, tuple[_Files, _Offsets, _Offsets, dict[int, bytes]]]
            By array path: file, offset and length of each chunk in C order; and by linear index, the encoded bytes of
            the chunks that are in no file. File 2**32 - 1 stands for a missing chunk; offset and length 0 stand for a
            whole file, as in Kerchunk's Parquet. Entries beyond the array's chunks are ignored.
        files : list[str]
            The names of the files. The tables number them from 0.
        folder : str
            The folder of relative names.
        chunk_cache_nbytes : int
            As in `remote`, like `resolver`.

        Raises
        ------
        DamagedFile
            Columns differ in length, a file is not among `files`, or metadata are damaged.
        Unsupported
            There is no metadata document.
        """

    @staticmethod
    def of_tables(
        documents: dict[str, bytes],
        table: Callable[[str], tuple[tuple[_Files, _Offsets, _Offsets, dict[int, bytes]], list[str]]],
        folder: str,
        chunk_cache_nbytes: int,
        resolver: DocumentResolver | None = None,
    ) -> ArchiveFile:
        """The same, but `table` returns an array's columns and the names of their files when it is first used."""

    @staticmethod
    def closed(path: str, resolver: DocumentResolver | None = None) -> ArchiveFile:
        """A local file that is not kept open: each read opens it again, and fails if it has changed."""

    @property
    def format(self) -> str:
        """The kind of the file: hdf5, netcdf3, fits, hdf4, zarr, references, dmrpp or collection."""

    @property
    def version(self) -> str | None:
        """The version of the file that was opened: its ETag, or its size and modification time; None for a folder."""

    @property
    def lost_nbytes(self) -> int:
        """How many bytes the file lacks of the size that it records, because it was cut off or never closed."""

    @property
    def opening(self) -> dict[str, Any] | None:
        """What opening a far file took; None for a file that was opened neither from afar nor as if it were.

        `nbytes` of the file; `round_count`, `request_count` and `fetched_nbytes`; and, if they were noted, of the
        structures that were read: `metadata_nbytes`, `metadata_end`, `place_count`, and `kinds`, with the name, count,
        bytes, first and last offset of each kind.
        """

    @property
    def urls(self) -> list[str]:
        """URLs of the other remote files that hold chunks of this archive. They may contain secrets."""

    @property
    def array_count(self) -> int:
        """How many arrays the file has."""

    def check_sources(self) -> None:
        """Check that the files that these references point to have not changed. Other archives always pass.

        Raises
        ------
        FileChanged
            A file has changed.
        ReadError
            One cannot be opened.
        """

    def attributes(self, group: int) -> list[tuple[str, Any]]:
        """Name and `(shape, dtype, elements)` of each attribute; an exception in place of an unreadable value.

        NetCDF-4's internal attributes are left out, as in netCDF's own libraries.
        """

    def hdf5_objects(self, addresses: Sequence[int | None]) -> list[dict[str, Any]]:
        """Parse the headers of objects of an HDF5 file, given their addresses; None stands for the root.

        Each result has `kind` (group, array, datatype), `address`, `attributes` and `attributes_ordered`. Groups also
        have `links` and `ordered`; datatypes have `element`; arrays have `element`, `committed`, `shape`, `max_shape`,
        `filters`, `storage`, `external` and `fill`. An exception stands in for what cannot be read.
        """

    def array_at(self, address: int) -> int | None:
        """The number of the array whose header is at an address of an HDF5 file; None if no link leads to it."""

    def links(self, group: int) -> list[tuple[str, str, Any]]:
        """The links of a group as `(name, kind, target)`.

        The target is a number for `group` and `array`, a path for `soft`, `(file, path)` for `external`, and the
        reason for `unsupported` and `damaged`.
        """

    def array(self, number: int, path: str) -> StoredArray:
        """An array, and the path that led to it."""

def embedded_index(path: str) -> tuple[int, bytes] | None:
    """The index of an HDF5 file: all bytes that opening it takes. It belongs behind the end that the superblock tells.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    tuple[int, bytes] | None
        That end, and the index; None if the superblock does not tell, or if the index would be larger than 64 MiB.
    """

def save_references(path: str, folder: str, archives: list[tuple[str, ArchiveFile]]) -> tuple[int, int]:
    """Write the references of archives to a file. Returns the number of arrays and the number of stored chunks.

    Parameters
    ----------
    path : str
        The file.
    folder : str
        The folder where the file will be. Paths below this folder are stored relative to it.
    archives : list[tuple[str, ArchiveFile]]
        The archives, each with the name of its group; "" makes an archive the root itself.

    Raises
    ------
    DamagedFile
        A source of a virtual array is damaged.
    OSError
        The file cannot be written.
    """

def counterparts(
    files: list[ArchiveFile], dimension: str | None, axis: int | None, ignored: list[str]
) -> tuple[
    list[tuple[str, int, int]],
    list[tuple[str, list[int], list[int], list[int], list[int | None], list[int | None]]],
]:
    """The groups of several files, as path, file and number in the first file that has each; and their arrays by path.

    Parameters
    ----------
    files : list[ArchiveFile]
        The files.
    dimension : str | None
        The name of the dimension along which arrays are concatenated.
    axis : int | None
        Alternatively, the number of the axis.
    ignored : list[str]
        Attributes in which arrays may differ.

    Returns
    -------
    tuple
        For each array: its path, and the columns files, arrays (numbers in these files), kinds, axes and lengths, with
        one entry for each file that has the array. Arrays of equal kind differ only in the length along the axis and in
        where their chunks are.
    """

def combine(
    name: str,
    version: str,
    files: list[ArchiveFile],
    groups: list[tuple[int, int, list[tuple[str, str, int]]]],
    arrays: list[tuple[str, Any]],
    chunk_cache_nbytes: int,
) -> ArchiveFile:
    """An archive whose arrays are combined from several files. The files themselves are not kept open.

    Parameters
    ----------
    name : str
        The archive's name in messages.
    version : str
        Tells this version of the files from others.
    files : list[ArchiveFile]
        The files.
    groups : list[tuple[int, int, list[tuple[str, str, int]]]]
        For each group: the file and number whose attributes it has, and its links as name, kind and number.
    arrays : list[tuple[str, Any]]
        For each array: its path, for messages, and an `archive.combining.ArrayRecipe`.
    chunk_cache_nbytes : int
        As in `ArchiveFile`.

    Raises
    ------
    Unsupported
        Elements are of different kinds and cannot be converted.
    """

@final
class GivenFile:
    """A file that is given by its bytes, or by a function that reads byte ranges."""

    @staticmethod
    def of_bytes(name: str, version: str, bytes: bytes) -> GivenFile:
        """Read from bytes in memory, without copying them."""

    @staticmethod
    def of_reader(
        name: str,
        version: str,
        host: str,
        nbytes: int,
        read: Callable[[list[tuple[int, int]]], list[bytes]],
        most_in_flight: int,
    ) -> GivenFile:
        """Read through a Python function, which several threads may call.

        Parameters
        ----------
        name : str
            The name of the file in messages.
        version : str
            Changes when the file changes.
        host : str
            The host under which its requests are counted.
        nbytes : int
            The length of the file.
        read : Callable[[list[tuple[int, int]]], list[bytes]]
            Returns all bytes of each range, given as offset and length.
        most_in_flight : int
            The maximum number of threads that call `read` at the same time.
        """

@final
class RemoteFile:
    """Where a remote file is and how to reach it. It includes secrets, so it cannot be shown or pickled.

    Parameters
    ----------
    url
        A URL of HTTP, S3, Google Cloud Storage or Azure. HTTP URLs must not contain user and password.
    config
        Keys and values of the Rust crate `object_store`.
    headers
        HTTP headers of every request for bytes.
    connect_timeout
        Seconds to wait for a connection.
    timeout
        Seconds to wait for the next byte.
    attempts
        The maximum number of attempts before a failure is raised.
    patience
        Seconds after which a request is not repeated.
    concurrency
        The maximum number of requests in flight to the host; None for no change.
    cache_nbytes
        The size of the cache for fetched bytes, shared by all files that are opened with this; 0 for none.
    allowed
        URLs to which a server may redirect besides its own, with all below them; None for any.

    Raises
    ------
    UsageError
        The URL or an option is invalid. The message does not repeat values.
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
        """The URL without its secrets."""

@final
class DocumentResolver:
    """Finds and opens the files that one document names, and refuses those it may not name."""

    def __new__(
        cls,
        document: str,
        function: Callable[[str], RemoteFile] | None = None,
        paths: list[str] | None = None,
        listed: list[str] = ...,
    ) -> DocumentResolver:
        """Make a resolver for one document.

        Parameters
        ----------
        document : str
            The document's name in messages.
        function : Callable[[str], RemoteFile] | None
            Tells how to open a URL, or raises. Any thread may call it. Without it, the environment tells.
        paths : list[str] | None
            The local files and folders that it may name; None for all.
        listed : list[str]
            What is allowed, in the words of a refusal.
        """

    def linked(self, own: str, name: str) -> Path | None:
        """The file that an external link leads to, searched for as the HDF5 library does; None if there is none.

        Raises
        ------
        NotAllowed
            The document may not lead there.
        ReadError
            It is not a regular file.
        """

    def source(self, own: str, name: str) -> Path | None:
        """The same for a source of a virtual array."""

    def raw(self, own: str, name: str) -> Path:
        """The same for an external raw file, which must exist."""

def open_regular(path: str) -> int:
    """A descriptor of a regular file that is open for reading; you close it."""

def refusal(document: str, location: str, allowed: list[str]) -> str:
    """Why a document is not followed to a location, and what to do."""

def host_statistics() -> dict[str, dict[str, int]]:
    """What this process asked of each host: a dict of counts per host."""

def url_parts(text: str) -> tuple[str, str, list[bytes], bool] | None:
    """The kind of store, the server or bucket, the parts of the path, and whether the URL never goes up (`..`).

    None if it names no server, or if its path can be read in two ways.
    """

def web_url(text: str) -> tuple[str, str, str, str, str, str | None] | None:
    """Scheme, user, password, server (with its port if it is not the default), path and query of an HTTP URL.

    The URL is parsed as requests parse it, so both agree on what names the server. User and password stay encoded.
    None if it is not an HTTP URL.
    """

@final
class Segment:
    """A box of an array with the chunks that hold it, as columns. References are written from these."""

    @property
    def box(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
        """Where it starts in the array, its shape, and where it starts in the array that the grid cuts.

        None unless it is a box of both, with the same axes: a virtual array may show every other element of its source.
        """

    @property
    def source_shape(self) -> tuple[int, ...]:
        """The shape of the array that the grid cuts."""

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """The shape of a chunk."""

    @property
    def plain_edge_chunks(self) -> bool:
        """Whether edge chunks are stored without their codecs."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of what is stored."""

    @property
    def is_tidy(self) -> bool:
        """Whether decoded bytes are the elements. If not, they are repaired after decoding: strings are cut."""

    @property
    def fill(self) -> bytes | None:
        """One element with the value of unwritten chunks, as bytes; None if the writer defined no such value."""

    @property
    def codecs(self) -> list[dict[str, Any]]:
        """The encoding steps, first to last: `name`, and the parameters that decoding needs."""

    def indices(self) -> npt.NDArray[np.uint64]:
        """Linear indices of the stored chunks in the grid, ascending."""

    def files(self) -> npt.NDArray[np.uint32]:
        """The number of the file that holds each stored chunk."""

    def offsets(self) -> npt.NDArray[np.uint64]:
        """Where each stored chunk starts in its file."""

    def lengths(self) -> npt.NDArray[np.uint64]:
        """The length of each stored chunk in bytes."""

    def filter_masks(self) -> npt.NDArray[np.uint32]:
        """The codecs that were skipped for each stored chunk: bit 0 stands for the first codec."""

    def inline(self) -> dict[int, bytes]:
        """The encoded bytes of chunks that the metadata contain, by linear index."""

@final
class StoredArray:
    """An array of an open file. Plans and reads selections of it. Made by `ArchiveFile.array`."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The array's shape; None if it holds no elements at all."""

    @property
    def max_shape(self) -> list[int | None]:
        """The largest shape that it may grow to; None for an unlimited axis."""

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
        """Whether elements point to values elsewhere, or to objects: `read_objects` follows them."""

    @property
    def segment_count(self) -> int:
        """How many segments the array has."""

    def heap_values(self, elements: bytes) -> list[bytes]:
        """The values that pointers in elements lead to, in order; after a sequence, the values of its own pointers."""

    def virtual_sources(self) -> list[tuple[str, str, Any, Any]]:
        """The mappings of a virtual array: file, path, selection of the array, selection of the source."""

    def segments(self) -> list[Segment]:
        """The segments of the array; none if we cannot read it."""

    def file_paths(self) -> list[str | None]:
        """Paths or URLs of the files that hold its chunks, by file number. A folder has no number 0."""

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of a chunk; None if the array is not chunked, or if its parts differ.

        A virtual array has chunks only if each of them is exactly one chunk of its source.
        """

    def chunk_lengths(self) -> list[list[int]] | None:
        """The lengths of the consecutive chunks along each axis. Chunks of equal length give one number.

        None if parts are not boxes, or if the array cannot be read.
        """

    @property
    def codecs(self) -> list[str]:
        """The names of the codecs in encoding order. With several segments, those of the first one."""

    @property
    def filters(self) -> list[tuple[int, list[int]]]:
        """The filters of HDF5: the number and the parameters of each, in the order of encoding."""

    @property
    def type_name(self) -> str | None:
        """The name of the committed datatype of HDF5 that elements have."""

    @property
    def chunk_count(self) -> int:
        """How many chunks the grid has."""

    @property
    def stored_chunk_count(self) -> int | None:
        """How many chunks are stored; None if no index lists them."""

    @property
    def stored_nbytes(self) -> int | None:
        """Bytes of the stored chunks; None if no index lists them."""

    @property
    def fill_is_missing(self) -> bool:
        """Whether elements equal to the fill value are missing values, as in Zarr 2."""

    @property
    def is_dimension_only(self) -> bool:
        """Whether it only stands for a NetCDF-4 dimension without a variable."""

    @property
    def unsupported(self) -> str | None:
        """The feature that keeps us from reading the array; None if there is none."""

    @property
    def damaged(self) -> str | None:
        """Why none of the array can be read, if its description is damaged."""

    @property
    def fill(self) -> bytes | None:
        """One element with the fill value, as bytes; None if the writer defined none."""

    def attributes(self) -> list[tuple[str, Any]]:
        """As `ArchiveFile.attributes`."""

    def plan(self, asked: list[AxisIndices]) -> ReadPlan:
        """The plan for reading a selection.

        Parameters
        ----------
        asked : list[AxisIndices]
            For each axis `(start, stride, count, block)`, or an int64 array of indices, which must not be negative.

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
            As in `plan`.
        out : npt.NDArray[np.uint8]
            uint8, the selection's elements in C order.
        threads : int | None
            The maximum number of threads, including the calling one.
        is_reused : bool
            Whether `out` has been written to before. This only affects speed.

        Raises
        ------
        ValueError
            `out` is not contiguous, or differs in size from the selection.
        DamagedFile
            Stored bytes contradict their format.
        FileChanged
            The file has changed since it was opened.
        ReadError
            The operating system could not read.
        """

    def plan_points(self, points: Points) -> ReadPlan:
        """The plan for reading points. Raises what `plan` raises."""

    def read_points_into(self, points: Points, out: npt.NDArray[np.uint8], threads: int | None) -> None:
        """Read points into the bytes of their output, one element for each point. Raises what `read_into` raises.

        Points that share a chunk are read together, so that each chunk is fetched and decoded once.
        """

    def read_objects(self, asked: list[AxisIndices], pointers: npt.NDArray[np.uint8], threads: int | None) -> list[Any]:
        """Read a selection of elements of variable length, one object each. `pointers` has room for their pointers."""

    def read_point_objects(self, points: Points, pointers: npt.NDArray[np.uint8], threads: int | None) -> list[Any]:
        """The same for points."""

    @property
    def fill_object(self) -> Any:
        """The value of unwritten elements of variable length.

        None if there is none, or if the values are not stored in the chunks.
        """

def chunk_slots_of(array: StoredArray, chunk_shape: Sequence[int]) -> npt.NDArray[np.int64] | None:
    """The slot of each chunk of a version's array, in C order; -1 for chunks that are not stored.

    None unless the array is virtual in this way: one mapping for each stored chunk, in order, from a stack of chunks
    along axis 0.
    """

def mapped_source(array: StoredArray) -> tuple[str, str] | None:
    """The file and path of the one source of all mappings of an array; None if it has no mapping.

    Both are empty if the mappings have several sources.
    """

def described_damage(array: StoredArray) -> str | None:
    """What is damaged in an array's description, without looking at what it maps; None if nothing is."""

def filters_of(file: str, path: str) -> list[tuple[int, list[int]]]:
    """The number and the parameters of each filter of an array, given its path in a local HDF5 file.

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
        The array's, with at least one axis, and the chunks'.
    numbers : npt.NDArray[np.int64]
        Linear indices of the chunks.
    width : int
        Bytes of an element.
    taken : tuple[int, Callable[[int, bytes], None]] | None
        A count and a function. Whenever that many more hashes are ready, in order, the function receives the number of
        the first and the hashes. Meanwhile other threads compute the next ones.

    Raises
    ------
    ValueError
        The bytes do not have that shape.
    """

def hash_staged(
    slab: npt.NDArray[np.uint8],
    slots: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    shapes: tuple[Sequence[int], Sequence[int]],
    width: int,
    taken: tuple[int, Callable[[int, bytes], None]] | None = None,
) -> bytes:
    """The same for whole chunks in memory.

    Parameters
    ----------
    slab : npt.NDArray[np.uint8]
        Bytes of whole chunks, one after another.
    slots : npt.NDArray[np.int64]
        The slot of each chunk in the slab.
    numbers : npt.NDArray[np.int64]
        Linear index of each in the array's grid.
    shapes : tuple[Sequence[int], Sequence[int]]
        The array's and the chunks'.
    width : int
        Bytes of an element.
    taken : tuple[int, Callable[[int, bytes], None]] | None
        As above.
    """

def same_stored(
    paths: tuple[str, str],
    lengths: npt.NDArray[np.uint64],
    starts: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]],
    piece_nbytes: int,
) -> npt.NDArray[np.bool_]:
    """Whether chunks are stored with the same bytes in two files. What lies beyond the end of a file differs.

    Parameters
    ----------
    paths : tuple[str, str]
        The files.
    lengths : npt.NDArray[np.uint64]
        The bytes of each chunk, in both files.
    starts : tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]
        Where each starts, in each file.
    piece_nbytes : int
        The most bytes to read at a time.

    Raises
    ------
    OSError
        A file cannot be read.
    """

def lzf(data: bytes) -> bytes:
    """Bytes encoded by LZF, possibly longer than before. Encoded pieces can be joined and decoded as one."""

def gather_chunks(
    data: npt.NDArray[np.uint8],
    shapes: tuple[Sequence[int], Sequence[int]],
    numbers: npt.NDArray[np.int64],
    fill: bytes,
) -> npt.NDArray[np.uint8]:
    """The bytes of whole chunks of an array, one after another, padded with `fill` outside the array.

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
    """The mappings of `LibHdf5.add_mappings` in libhdf5's own bytes; None if libhdf5 would use another encoding."""

@final
class ChunkTable:
    """Maps the hash of each chunk of an array to its slot.

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
        """The slot of each hash, -1 for `nothing`; and the numbers of the new hashes.

        New hashes get slots from `next` on, equal hashes the same slot. The numbers are those of first occurrences. The
        table does not change.
        """

    def add(self, digests: bytes, first: int) -> None:
        """Add hashes whose chunks take consecutive slots, starting at `first`."""

def codec_names() -> list[tuple[str, int, str, str]]:
    """Of each codec in files: its name, HDF5's number (or 0), and its names in numcodecs and in Zarr 3 (or "")."""

def encode_chunks(
    data: npt.NDArray[np.uint8],
    shapes: tuple[Sequence[int], Sequence[int]],
    fill: bytes,
    filters: Sequence[tuple[str, Sequence[int]]],
    taken: Callable[[int, bytes | None, int], object] | None,
    threads: int | None = None,
    leaves_out_fill: bool = False,
) -> npt.NDArray[np.uint32]:
    """Encode the chunks of a part of an array, and hand them over in order while the next ones are encoded.

    Parameters
    ----------
    data : npt.NDArray[np.uint8]
        The elements' bytes, in C order.
    shapes : tuple[Sequence[int], Sequence[int]]
        The part's shape, and the chunks'.
    fill : bytes
        Bytes of one element, for what chunks have outside the array.
    filters : Sequence[tuple[str, Sequence[int]]]
        The steps in order: `deflate`, `gzip` and `zstd` with a level, `shuffle` with the bytes of an element,
        `fletcher32`, `crc32c`, `lzf`, `lz4`, `lz4_hdf5` with the bytes of a block, `blosc` with compressor (1 lz4,
        4 zlib, 5 zstd), level, shuffle (0, 1 or 2 for bits) and bytes of an element, `bitshuffle` with bytes of an
        element, compressor (-1 for none) and level.
    taken : Callable[[int, bytes | None, int], object] | None
        Gets number, stored bytes (None for a chunk that is left out) and skipped filters of each chunk, in order.
        Without it only checksums are computed.
    threads : int | None
        How many threads encode, with the calling one.
    leaves_out_fill : bool
        Whether to leave out chunks that hold nothing but the fill value.

    Returns
    -------
    npt.NDArray[np.uint32]
        CRC-32C of each chunk before encoding.

    Raises
    ------
    ValueError
        The data do not have that shape, or there is no such encoder or level.
    """

@final
class LibHdf5:
    """The libhdf5 that h5py loaded.

    Only `of_h5py` makes one: it looks up libhdf5's functions by their names, so nobody can name others. Identifiers are
    those of h5py's objects (`Dataset.id.id`). Before each call, libhdf5 itself says what an identifier stands for. Each
    method holds h5py's lock.

    Every method raises ValueError if an identifier stands for nothing, or for something else, or if arguments do not
    fit it; and RuntimeError if libhdf5 refuses.
    """

    @staticmethod
    def of_h5py() -> LibHdf5 | None:
        """The libhdf5 of h5py; None if it is older than 1.10.4 or cannot be found."""

    def add_mappings(
        self,
        ids: tuple[int, int, int],
        path: str,
        shape: Sequence[int],
        chunk_shape: Sequence[int],
        slots: npt.NDArray[np.int64],
    ) -> None:
        """Add a mapping for each stored chunk to a property list.

        Parameters
        ----------
        ids : tuple[int, int, int]
            Property list, dataspace of the virtual array, dataspace of the source.
        path : str
            The source's.
        shape : Sequence[int]
            The virtual array's.
        chunk_shape : Sequence[int]
            The chunks'.
        slots : npt.NDArray[np.int64]
            As `chunk_slots_of` returns them.
        """

    def write_chunks(
        self, array: int, first: int, chunks: npt.NDArray[np.uint8], filters: Sequence[tuple[int, int]]
    ) -> int:
        """Store chunks in consecutive slots of a stack, encoded by several threads.

        Parameters
        ----------
        array : int
            The array's identifier.
        first : int
            The slot of the first chunk.
        chunks : npt.NDArray[np.uint8]
            The bytes of the chunks, one after another.
        filters : Sequence[tuple[int, int]]
            The array's filters in order, each with its parameter. HDF5's numbers of deflate (level), shuffle (bytes of
            an element), fletcher32 and LZF are allowed.

        Returns
        -------
        int
            A bit for each filter that was skipped for the last chunk.
        """

    def write_slab(
        self,
        array: int,
        first: Sequence[int],
        data: npt.NDArray[np.uint8],
        shapes: tuple[Sequence[int], Sequence[int]],
        fill: bytes,
        filters: Sequence[tuple[str, Sequence[int]]],
        threads: int | None = None,
        leaves_out_fill: bool = False,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        """Encode the chunks of a part of an array, and store them.

        Parameters
        ----------
        array : int
            The array's identifier.
        first : Sequence[int]
            Where the part begins in the array.
        data : npt.NDArray[np.uint8]
            As in `encode_chunks`, like the other parameters. Chunks and filters must be those of the array.

        Returns
        -------
        tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], npt.NDArray[np.uint32]]
            Of each chunk CRC-32C before encoding, stored bytes (0 if it is left out), and skipped filters.
        """

    def evict_on_close(self, access: int) -> None:
        """Make libhdf5 forget the objects of a file when they are closed, given how it is opened."""

    def comment(self, object: int) -> bytes | None:
        """The comment of an object; None if it has none."""

    def set_chunk_index_width(self, creation: int, half: int) -> None:
        """Set half of how many chunks a node of a chunk index has room for, given how a file is created."""

    def set_heap_nbytes(self, creation: int, nbytes: int) -> None:
        """Set how many bytes a new group reserves for names, given how it is created."""

    def set_bounds(self, file: int, low: int, high: int) -> None:
        """Set which releases of libhdf5 must be able to read what is written to a file from now on."""

    @property
    def plugins(self) -> int:
        """Which kinds of plugins libhdf5 may load: a bit for each."""

    @plugins.setter
    def plugins(self, kinds: int) -> None: ...

@final
class ZarrArray:
    """An array of a Zarr folder that others may write to. Each read looks for its chunks again, and keeps nothing.

    Parameters
    ----------
    document
        The text of its `zarr.json` or `.zarray`.
    folder
        The folder of its chunks' keys: a local folder, or a remote one.
    fill
        The bytes of an element that was never written; by default the document's fill value.

    Raises
    ------
    Unsupported
        It uses something that we do not support.
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

    @property
    def is_writable(self) -> bool:
        """Whether its chunks can be written, if our encoder has their codecs."""

    def write_keys(
        self,
        parts: ZarrParts,
        folder: str,
        values: tuple[npt.NDArray[np.uint8], tuple[int, ...]],
        encoding: tuple[Sequence[tuple[str, Sequence[int]]], bool, int | None],
    ) -> None:
        """Write parts of chunks or shards below a folder, several at a time. Each file is written beside and renamed.

        Parameters
        ----------
        parts : ZarrParts
            What to write.
        folder : str
            The folder of the store's keys.
        values : tuple[npt.NDArray[np.uint8], tuple[int, ...]]
            The bytes of the elements as stored, in C order, and their shape.
        encoding : tuple[Sequence[tuple[str, Sequence[int]]], bool, int | None]
            The steps, as in `encode_chunks`; whether chunks that hold nothing but the fill value are left out; and how
            many threads encode.

        Raises
        ------
        OSError
            The folder cannot be written. Each file is as it was or written wholly.
        DamagedFile
            A chunk that must be kept in part cannot be decoded.
        Unsupported
            The encoder refuses a chunk or a level.
        MemoryError
            The parts do not fit the array, or a chunk does not fit in memory.
        """

    def write_slab(
        self,
        first: Sequence[int],
        values: tuple[npt.NDArray[np.uint8], tuple[int, ...]],
        encoding: tuple[Sequence[tuple[str, Sequence[int]]], bool, int | None],
    ) -> npt.NDArray[np.uint32]:
        """Write whole chunks or shards into the array's own folder, which nobody reads yet, several at a time.

        Parameters
        ----------
        first : Sequence[int]
            Where the slab begins in the array: where a chunk or shard begins.
        values : tuple[npt.NDArray[np.uint8], tuple[int, ...]]
            The bytes of the slab's elements as stored, in C order, and its shape. It ends where a chunk or shard or
            the array does.
        encoding : tuple[Sequence[tuple[str, Sequence[int]]], bool, int | None]
            As in `write_keys`.

        Returns
        -------
        npt.NDArray[np.uint32]
            The CRC-32C of each chunk before encoding, shape `(chunks,)`, in C order.

        Raises
        ------
        OSError
            The folder cannot be written. `filename` is the name of a chunk below it.
        ValueError
            The slab does not begin where a chunk or shard begins, or the folder is on a server.
        Unsupported
            The encoder refuses a chunk or a level.
        MemoryError
            The values do not have that shape, or a chunk does not fit in memory.
        """

    def encode_keys(
        self,
        parts: ZarrParts,
        old: Sequence[bytes | None],
        values: tuple[npt.NDArray[np.uint8], tuple[int, ...]],
        encoding: tuple[Sequence[tuple[str, Sequence[int]]], bool, int | None],
    ) -> list[bytes | None]:
        """What the keys are to hold, given what those hold that are kept in part; None for those to remove."""

    def read_into(
        self, shape: tuple[int, ...], asked: list[AxisIndices], out: npt.NDArray[np.uint8], threads: int | None
    ) -> None:
        """Read a selection, in a shape that may differ from the document's. See `StoredArray.read_into`."""

    def read_items(
        self, items: Sequence[Any], shape: Sequence[int], out: npt.NDArray[np.uint8], threads: int | None
    ) -> bool:
        """Read what zarr-python's items ask for, if together they are one box that fills an output of this shape.

        Returns
        -------
        bool
            Whether they were; otherwise nothing was read.
        """

    def read_points_into(
        self, shape: tuple[int, ...], points: Points, out: npt.NDArray[np.uint8], threads: int | None
    ) -> None:
        """Read points of the array in this shape. See `StoredArray.read_points_into`."""

@final
class ZarrParts:
    """Parts of chunks, or of shards, that zarr-python asks its codec pipeline to write."""

    @staticmethod
    def of(items: Sequence[Any], shape: tuple[int, ...], is_scalar: bool) -> ZarrParts | None:
        """From zarr-python's items, if each is a box of values of this shape; None otherwise.

        Parameters
        ----------
        items : Sequence[Any]
            For each chunk, its byte setter, its specification, the selection in the chunk, the selection in the values,
            and whether it is a complete chunk.
        shape : tuple[int, ...]
            The shape of the values, with an axis of length 1 for each integer.
        is_scalar : bool
            Whether the values are a chunk of one value, which goes everywhere.
        """

    @staticmethod
    def whole(keys: Sequence[str], shape: tuple[int, ...]) -> ZarrParts:
        """Whole chunks or shards of this shape, which lie one after the other along the first axis of the values."""

    @property
    def kept(self) -> list[int]:
        """The numbers of the keys of which something is kept."""

@final
class ReadPlan:
    """What reading a selection takes: chunks, requests and bytes. Made by `Array.plan`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the output, all axes kept."""

    @property
    def element_count(self) -> int:
        """The number of elements in the output."""

    @property
    def chunk_count(self) -> int:
        """How many chunks are touched."""

    @property
    def missing_chunk_count(self) -> int:
        """How many of these were never written. Their elements are the fill value."""

    @property
    def request_count(self) -> int:
        """Requests that a read makes, with any number of threads, if no chunk is in memory yet."""

    @property
    def fetched_nbytes(self) -> int:
        """Bytes of these requests, including gaps between neighbours that one request fetches."""

    @property
    def decoded_nbytes(self) -> int:
        """Bytes after decoding, including bytes stored without codecs."""

    @property
    def output_nbytes(self) -> int:
        """Bytes of the output."""

    @property
    def read_amplification(self) -> float | None:
        """Decoded bytes per output byte; None if nothing is selected."""

    def requests(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """The requests as file numbers (0 is the opened file), offsets and lengths, ordered by file and offset."""

    def _repr_html_(self) -> str:
        """What notebooks show: the totals as a table."""
