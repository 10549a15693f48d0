"""A layout, a library and the machine's caches: what the price of a workload depends on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, TypeAlias

from hyperslab.memory import CHUNK_CACHE_NBYTES
from hyperslab.storage.layout import Index, StoredLayout

MIB = 1 << 20
UNLIMITED = 2**64 - 1
# Codecs after which a chunk has the same length, whatever its elements are.
FIXED_LENGTHS = frozenset(["fletcher32", "shuffle"])
Layout: TypeAlias = StoredLayout  # the name in `hyperslab.model`


@dataclass(frozen=True)
class Caches:
    """The page cache: how many bytes it may hold, and how many bytes the system reads ahead at most."""

    page_cache_nbytes: int = 2**64 - 1
    read_ahead_nbytes: int = 0


@dataclass(frozen=True)
class Hdf5:
    """HDF5 with its chunk cache. The defaults are those of HDF5 2.0.

    `index` is the file's chunk index. HDF5 uses the version 1 B-tree, unless the file is written with `libver` 1.10 or
    later. Then it uses a fixed array; an extensible array if the array can grow along `growing_axis`; the version 2
    B-tree if it can grow along several axes; and no index for a single chunk. `max_shape` is the largest shape that the
    array may have, with None for an axis without a limit: a fixed array has room for all of it.

    `fills` says whether new chunks get the fill value before parts of them are written, as by default; without it, the
    fill time is never. With `allocates_late`, the first write allocates all chunks. `lengths_vary` says whether an
    encoded chunk changes its length when it is rewritten, and so moves; it does not if the only codec is a checksum.
    """

    name: ClassVar[str] = "hdf5"
    chunk_cache_nbytes: int = 8 * MIB
    chunk_cache_slots: int = 8191
    w0: float = 0.75
    index: Index = "btree_v1"
    growing_axis: int = 0
    max_shape: tuple[int | None, ...] | None = None
    fills: bool = True
    allocates_late: bool = False
    lengths_vary: bool = True
    wide_lengths: bool = False
    mpi_writing: bool = False

    @classmethod
    def of_version(cls, version: str) -> Hdf5:
        """The defaults of a version of HDF5, such as `2.0.0` or `1.14`.

        Raises
        ------
        ValueError
            The version does not begin with a number.
        """
        return cls() if int(version.split(".")[0]) >= 2 else cls(chunk_cache_nbytes=MIB, chunk_cache_slots=521)

    def with_file(self, libver: str | None, shape: Sequence[int], layout: Layout, *, is_before_2: bool = False) -> Hdf5:
        """The same library with the chunk index that a file has which it writes with `libver` as the oldest version.

        HDF5's rules are in `H5D__layout_set_latest_indexing`.
        """
        most = layout.max_shape or tuple(shape)
        if libver in (None, "earliest", "v108"):
            return replace(self, max_shape=most)
        growing = [axis for axis, limit in enumerate(most) if limit is None]
        index: Index = "btree_v2" if len(growing) > 1 else "extensible_array" if growing else "fixed_array"
        if tuple(most) == tuple(shape) == tuple(layout.chunk_shape):
            index = "none"
        wide = libver in ("v200", "latest") and not is_before_2
        axis = growing[0] if growing else 0
        return replace(self, index=index, growing_axis=axis, max_shape=most, wide_lengths=wide)


@dataclass(frozen=True)
class Zarr:
    """zarr-python 3 with a local store: one file per chunk, or one per shard if the layout has shards.

    The defaults are those of version 3.3 and newer: one request reads several chunks of a shard, if at most
    `joined_gap_nbytes` are between each and the next, and at most `joined_nbytes` from the first to the last. With
    None, each chunk has a request of its own. `reads_overwritten` says whether a shard is read before it is overwritten
    wholly.
    """

    name: ClassVar[str] = "zarr"
    joined_gap_nbytes: int | None = MIB
    joined_nbytes: int = 16 * MIB
    reads_overwritten: bool = False

    @classmethod
    def of_version(cls, version: str) -> Zarr:
        """The defaults of a version of zarr-python, such as `3.1.6` or `3.4`.

        A version that tells no number, as `0+unknown` of a checkout without tags, counts as the newest.
        """
        numbers = re.match(r"([1-9]\d*)(?:\.(\d+))?", version)
        if numbers is None:
            return cls()
        known = int(numbers[1]), int(numbers[2] or 0)
        return cls(MIB if known >= (3, 3) else None, reads_overwritten=known < (3, 2))


@dataclass(frozen=True)
class Flat:
    """A format that keeps one array in one piece in its own file: netCDF-3, FITS, npy. Each run is a request."""

    name: ClassVar[str] = "flat"


@dataclass(frozen=True)
class HyperslabEngine:
    """Reads by our own engine: the requests of its plan. If `far`, the file is on a server."""

    name: ClassVar[str] = "hyperslab"
    chunk_cache_nbytes: int = CHUNK_CACHE_NBYTES
    far: bool = False


@dataclass(frozen=True)
class PaperHdf5:
    """Algorithm 1 of the paper as it is printed, for replication."""

    name: ClassVar[str] = "paper_hdf5"
    library_cache_nbytes: int = MIB
    index_block_chunk_count: int = 64


@dataclass(frozen=True)
class PaperZarr:
    """The paper's algorithm for Zarr, which has no library cache, no index and no order of files."""

    name: ClassVar[str] = "paper_zarr"


Library: TypeAlias = Hdf5 | Zarr | Flat | HyperslabEngine | PaperHdf5 | PaperZarr
# What can be calibrated, by name.
LIBRARIES: dict[str, Library] = {library.name: library for library in (Hdf5(), Zarr(), HyperslabEngine(), Flat())}


def options_of(library: Library, layout: Layout) -> dict[str, Any]:
    """The arguments of `CacheState`, without the library's name."""
    options: dict[str, Any] = asdict(library)
    if isinstance(library, Zarr):
        options["shard_shape"] = layout.shard_shape
    if isinstance(library, Hdf5):
        most = layout.max_shape or library.max_shape
        if layout.index is not None:
            growing = [axis for axis, limit in enumerate(most or ()) if limit is None]
            options |= {"index": layout.index, "wide_lengths": layout.wide_lengths, "growing_axis": (growing or [0])[0]}
        if layout.contiguous:
            options["index"] = "compact" if layout.compact else "contiguous"
        options["max_shape"] = None if most is None else [UNLIMITED if limit is None else limit for limit in most]
        options["lengths_vary"] = library.lengths_vary and layout.codec not in FIXED_LENGTHS
    return options
