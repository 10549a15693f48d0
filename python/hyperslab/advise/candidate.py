"""One way to store an array and to read it, which advice can name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

from hyperslab.chunk_grid import ceil_div
from hyperslab.conversion.advice import AdvisedArray
from hyperslab.memory import CHUNK_CACHE_NBYTES
from hyperslab.model.hdf5_settings import Hdf5Settings
from hyperslab.model.installed import installed_zarr
from hyperslab.model.libraries import Flat, Hdf5, HyperslabEngine, Layout, Library
from hyperslab.quantities import set_nbytes_text
from hyperslab.storage.chain import PLAIN, Codec, CodecChain

MIB = 1 << 20
# netCDF-C's own chunk cache for each variable (since 4.9), if the library cannot be asked: bytes and slots.
NETCDF_CACHE = (16 * MIB, 4133)
# zarr-python decodes this many chunks of a call at a time.
SIDE_BY_SIDE = 10
# Said of a store profile of an older hyperslab.
NETCDF_UNKNOWN = "netCDF4 is priced as h5py with netCDF's own chunk cache: run `hyperslab calibrate` to measure it"
# What the calls of HDF5 go through. The preloaded recorder sees only libhdf5, whatever program calls it.
CALLERS = {"h5py": "h5py", "netCDF": "netCDF4", "PyTables": "PyTables", "HDF5": "libhdf5"}


@cache
def netcdf_cache() -> tuple[int, int]:
    """The chunk cache that the installed netCDF gives each variable: bytes and slots."""
    try:
        import netCDF4

        nbytes, slots, _ = netCDF4.get_chunk_cache()
    except ImportError:
        return NETCDF_CACHE
    return int(nbytes), int(slots)


@dataclass(frozen=True)
class Candidate:
    """A file format, a layout, the library that reads it and its chunk cache, and the order of the axes."""

    format: str  # today's file may have another format, such as netcdf3
    reader: str  # the cost model's name: hdf5, zarr, hyperslab, flat
    layout: Layout
    encoding: CodecChain = PLAIN
    cache_nbytes: int | None = None  # of HDF5; None: the library's default
    cache_slots: int | None = None
    by_netcdf: bool = False  # whether HDF5 is called by netCDF, with its own chunk cache
    caller: str = ""  # who calls HDF5, as a trace names it
    order: tuple[int, ...] | None = None
    is_today: bool = False
    label: str = ""  # what it is besides its layout: "today", "h5py's default chunks"

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for candidates that cost the same."""
        layout = self.layout
        stored = (layout.chunk_shape, layout.shard_shape, layout.contiguous, self.encoding)
        return (self.format, self.reader, *stored, self.cache_nbytes, self.cache_slots, self.order, self.is_today)

    @property
    def file_key(self) -> tuple[Any, ...]:
        """Equal for candidates that are the same file."""
        layout = self.layout
        stored = (layout.chunk_shape, layout.shard_shape, layout.contiguous, self.encoding)
        return (self.format, *stored, self.order, self.is_today)

    @property
    def chunk_cache(self) -> tuple[int | None, int | None]:
        """The chunk cache that HDF5 is given, in bytes and slots; None is its default, and what other readers have."""
        return (self.cache_nbytes, self.cache_slots) if self.reader == "hdf5" else (None, None)

    def with_cache(self, cache: tuple[int | None, int | None]) -> Candidate:
        """The same file with another chunk cache."""
        return replace(self, cache_nbytes=cache[0], cache_slots=cache[1])

    def library(self, shape: tuple[int, ...], *, far: bool = False) -> Library:
        """The library of the cost model."""
        if self.reader == "zarr":
            return installed_zarr()
        if self.reader == "hyperslab":
            return HyperslabEngine(far=far)
        if self.reader == "flat":
            return Flat()
        nbytes, slots = self.cache_nbytes, self.cache_slots
        if nbytes is None and self.by_netcdf:
            nbytes, slots = netcdf_cache()
        hdf5: Hdf5 = Hdf5Settings(rdcc_nbytes=nbytes, rdcc_nslots=slots).library()
        return hdf5.with_file(None, shape, self.layout)

    def chunk_nbytes(self, element_nbytes: int) -> int:
        """Decoded bytes of a chunk."""
        return prod(self.layout.chunk_shape) * element_nbytes

    def stored_nbytes(self, shape: tuple[int, ...], element_nbytes: int) -> int:
        """Bytes of all chunks on the disk; edge chunks are stored whole, which matters only without a codec."""
        stored = prod(shape)
        if not self.layout.contiguous and self.layout.ratio is None:
            lengths = zip(shape, self.layout.chunk_shape, strict=True)
            stored = prod(ceil_div(length, chunk) * chunk for length, chunk in lengths)
        return int(stored * element_nbytes / (self.layout.ratio or 1.0))

    def file_count(self, shape: tuple[int, ...]) -> int:
        """How many files there are, with the metadata of Zarr."""
        if not self.format.startswith("zarr"):
            return 1
        part = self.layout.shard_shape or self.layout.chunk_shape
        return prod(ceil_div(length, chunk) for length, chunk in zip(shape, part, strict=True)) + 1

    def memory_nbytes(self, element_nbytes: int, threads: int) -> int:
        """The memory that a reader needs for chunks at the same time, besides its results."""
        if self.layout.contiguous or self.reader == "flat":
            return 0
        chunk = self.chunk_nbytes(element_nbytes)
        if self.reader == "zarr":
            return chunk * SIDE_BY_SIDE
        if self.reader == "hyperslab":
            return chunk * threads + CHUNK_CACHE_NBYTES
        cache = self.library(()).chunk_cache_nbytes  # type: ignore[union-attr] # it is HDF5
        return chunk + max(cache, 0)

    def with_chunks(self, chunk_shape: tuple[int, ...]) -> Candidate:
        """The same with another chunk shape, without shards."""
        layout = Layout(chunk_shape, None, self.layout.ratio, self.layout.codecs)
        return replace(self, layout=layout, is_today=False, label="")

    def with_encoding(self, encoding: CodecChain, ratio: float | None) -> Candidate:
        """The same with other codecs, which reach this ratio."""
        layout = replace(self.layout, ratio=ratio, codecs=encoding.without_shuffle, manifest=None, index=None)
        return replace(self, layout=layout, encoding=encoding, is_today=False, label="")

    @property
    def shape_text(self) -> str:
        """Chunks and shards in words."""
        if self.layout.contiguous:
            return "in one piece"
        chunks = "×".join(map(str, self.layout.chunk_shape))
        if self.layout.shard_shape is None:
            return chunks
        return f"{chunks} in shards of {'×'.join(map(str, self.layout.shard_shape))}"

    @property
    def calling_library(self) -> str:
        """Through which library a program calls HDF5."""
        return CALLERS.get(self.caller, "netCDF4" if self.by_netcdf else "h5py")

    @property
    def reader_text(self) -> str:
        """Who reads it, in words."""
        if self.reader == "hyperslab":
            return "hyperslab run" if self.format in ("hdf5", "netcdf4") else "hyperslab.open"
        if self.reader == "zarr":
            return "zarr-python"
        if self.reader == "flat":
            return "its own library"
        name = self.calling_library
        usual: list[int | None] = [None]
        if name != "netCDF4":
            usual.append(Hdf5Settings().library().chunk_cache_nbytes)
        if self.format == "netcdf4" and name != "h5py":
            usual.append(netcdf_cache()[0])
        if self.cache_nbytes in usual:
            return name
        return f"{name}, cache {set_nbytes_text(self.cache_nbytes or 0)}"

    @property
    def file_title(self) -> str:
        """The file in one line, whoever reads it."""
        order = "" if self.order is None else f", axes {self.order}"
        return f"{self.format} {self.shape_text}, {self.encoding.text}{order}"

    @property
    def title(self) -> str:
        """The candidate in one line."""
        return f"{self.file_title}, by {self.reader_text}"

    def advised(self, reason: str, append_axis: int | None) -> AdvisedArray:
        """What `convert` needs to know."""
        layout = self.layout
        codec = self.encoding.codec
        fields: dict[str, Any] = {
            "format": self.format if self.format in ("hdf5", "netcdf4", "zarr2", "zarr3") else "hdf5",
            "chunks": None if layout.contiguous else list(layout.chunk_shape),
            "shards": None if layout.shard_shape is None else list(layout.shard_shape),
            "codec": None if codec is None else codec.name,
            "level": None if codec is None else codec.level,
            "shuffle": Codec("shuffle") in self.encoding,
            "order": None if self.order is None else list(self.order),
            "append_axis": None if layout.contiguous else append_axis,
            "keep": self.is_today,
            "reason": reason,
        }
        return AdvisedArray(**fields)
