"""An array of an existing file, with what advice needs to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab.advise.codecs import encoding_of
from hyperslab.advise.sensible import LIBRARY_OF, OURS, sensible_layouts
from hyperslab.archive.far.remote import is_url
from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group
from hyperslab.errors import HyperslabError, NoSuchFile, Refused, UsageError
from hyperslab.meant import meant_or_known
from hyperslab.model.codec_sample import sample_of
from hyperslab.model.file_layout import facts_of, layout_of
from hyperslab.model.libraries import Layout
from hyperslab.storage.chain import CodecChain

NETCDF = (".nc", ".nc4", ".cdf")
# The least and the most bytes of a chunk of the sample, and its size.
SAMPLE = (256 << 10, 1 << 20, 4 << 20)


Member = tuple[str, str]  # a file and the name of an array in it


@dataclass(frozen=True)
class StoredArray:
    """An array with today's layout, and a sample of its elements. It may stand for others that are alike."""

    file: str
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    dims: tuple[str, ...] | None
    format: str  # hdf5, netcdf4, zarr2, zarr3, or another one that we can read
    library: str  # the cost model's name of the library that the format belongs to
    layout: Layout = field(repr=False)
    encoding: CodecChain
    stored_nbytes: int
    file_count: int
    sample_chunk: tuple[int, ...] = ()
    sample: npt.NDArray[np.generic] | None = field(default=None, repr=False, compare=False)
    alike: tuple[Member, ...] = field(default=(), repr=False)  # for which it stands, with itself; empty: for itself

    @property
    def members(self) -> tuple[Member, ...]:
        """All arrays for which it stands."""
        return self.alike or ((self.file, self.name),)

    @property
    def count(self) -> int:
        """For how many arrays it stands."""
        return len(self.members)

    @property
    def title(self) -> str:
        """The name of its file and its own name, and how many others are alike."""
        own = f"{self.file.rstrip('/').rpartition('/')[2]}:{self.name or '/'}"
        if self.count == 1:
            return own
        files = len(dict.fromkeys(file for file, _ in self.members))
        others = f"{self.count - 1:,} other array{'s' if self.count > 2 else ''}"
        return f"{own} and {others} like it" + (f", in {files:,} files" if files > 1 else "")

    @property
    def nbytes(self) -> int:
        """Decoded bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def is_netcdf4(self) -> bool:
        """Whether netCDF calls HDF5 for it, with its own chunk cache, unless a trace says otherwise."""
        return self.format == "netcdf4"

    @property
    def grows(self) -> bool:
        """Whether an axis of an HDF5 array can grow, so that a program may append to it."""
        limits = self.layout.max_shape or self.shape
        pairs = zip(limits, self.shape, strict=True)
        return any(limit is None or limit > length for limit, length in pairs)

    @property
    def cut(self) -> list[tuple[int, ...]]:
        """Chunk shapes that are always worth a look, and today's."""
        others = [one.chunk_shape for one in sensible_layouts(self.shape, self.dtype.itemsize, self.layout)]
        return others if self.layout.contiguous else [self.layout.chunk_shape, *others]

    @property
    def priced_dtype(self) -> str:
        """A dtype of the same width that a workload accepts."""
        return self.dtype.str if self.dtype.kind in "iufcb" else f"V{self.dtype.itemsize}"


@contextmanager
def archive_of(path: str, options: Mapping[str, Any]) -> Iterator[Group]:
    """The archive of a file that somebody asks advice on.

    Raises
    ------
    NoSuchFile
        There is no such file.
    """
    try:
        with open_archive(path, storage_options=options) as archive:
            yield archive
    except FileNotFoundError as error:
        raise NoSuchFile(f"there is no file {path}: name an existing file, or an array of it as FILE:ARRAY") from error


def stored_arrays(
    path: str, names: list[str] | None, options: Mapping[str, Any], notes: list[str], *, samples: bool = True
) -> list[StoredArray]:
    """Arrays of a file by their names; with None, all whose reads can be priced. `notes` says which are left out.

    `samples` says whether to read a few chunks of each.

    Raises
    ------
    UsageError
        There is no such array.
    NoSuchFile
        There is no such file.
    Refused
        A named array cannot be priced.
    ReadError
        The file cannot be read.
    """
    with archive_of(path, options) as archive:
        if names is None:
            return _all(path, archive, options, notes)
        return [_described(path, _named(path, archive, name), options, samples=samples) for name in names]


def _named(path: str, archive: Group, name: str) -> Array:
    member = archive.get(name if name.strip("/") else "")  # an array of Zarr may be at the root of its store
    if isinstance(member, Array):
        return member
    near = meant_or_known(name, (each.name for each in archive.walk()), "it has no arrays")
    raise UsageError(f"{path} has no array {name!r}{near}")


def _all(path: str, archive: Group, options: Mapping[str, Any], notes: list[str]) -> list[StoredArray]:
    described = []
    for array in archive.walk():
        if not array.is_variable:
            continue
        try:
            described.append(_described(path, array, options))
        except HyperslabError as error:
            notes.append(f"{array.name} is left out: {error}")
    return described


def _described(path: str, array: Array, options: Mapping[str, Any], *, samples: bool = True) -> StoredArray:
    if not array.shape or 0 in array.shape:
        raise Refused(f"{path}: {array.name} has the shape {array.shape}, so there is nothing to read in parts")
    if array.dtype.hasobject or array.dtype.itemsize == 0:
        raise Refused(f"{path}: the elements of {array.name} have no fixed width, so their reads cannot be priced")
    if any(part.startswith("_i_") for part in array.name.split("/")):
        raise Refused(f"{path}: {array.name} belongs to an index of PyTables, which needs the chunks that it has")
    layout = layout_of(array, facts_of(path, array, options))
    if layout is None:
        raise Refused(f"{path}: the chunks of {array.name} have different shapes, so they cannot be priced")
    encoding = encoding_of(array, layout.codec)
    if layout.codec is not None:
        layout = replace(layout, codecs=encoding.without_shuffle)
    chunk, sample = sample_of(array, layout.chunk_shape, *SAMPLE) if samples else ((), None)
    return StoredArray(
        path,
        array.name,
        tuple(array.shape),
        array.dtype,
        array.dims,
        _format_of(path, array),
        LIBRARY_OF.get(array.format, OURS),
        layout,
        encoding,
        array.stored_nbytes or array.nbytes,
        _file_count(path, array),
        chunk,
        sample,
    )


def _format_of(path: str, array: Array) -> str:
    if array.format == "hdf5":
        return "netcdf4" if path.lower().endswith(NETCDF) else "hdf5"
    if array.format == "zarr" and not is_url(path):
        return "zarr3" if Path(array.filename, array.name.strip("/"), "zarr.json").exists() else "zarr2"
    return "zarr3" if array.format == "zarr" else array.format


def _file_count(path: str, array: Array) -> int:
    if array.format != "zarr" or is_url(path):
        return 1
    folder = Path(array.filename, array.name.strip("/"))
    return sum(1 for each in folder.rglob("*") if each.is_file()) if folder.is_dir() else 1
