"""What the formats that use zarr-python 3 share: a directory store with a group, and arrays in the group.

A contiguous layout is one chunk that is the whole array; conversely, an array of one chunk is described as
contiguous. If you give a layout, every chunk is stored (`write_empty_chunks`), even one that holds only the fill
value; otherwise constant data would seem to cost nothing. If you give no layout, the library decides.

All of these formats have the option `threads`, the number of chunks that are processed at a time (None:
zarr-python's default of 10). It is a setting of the process, which applies for the duration of each call.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab, Points
from hyperslab.errors import MissingLibrary, Refused, UsageError
from hyperslab.formats.contract import (
    ArrayFile,
    ArrayHandle,
    ArraySpec,
    Format,
    Installed,
    Need,
    imported,
    installed_version,
)  # fmt: skip
from hyperslab.formats.far import obstore_store
from hyperslab.formats.zarr_metadata import (
    encoded_chunk_reasons,
    shard_reasons,
    v2_codec,
    v3_codec,
    v3_codec_json,
    v3_serializer_json,
    v3_stored_dtype,
)
from hyperslab.needed import advice
from hyperslab.storage.chain import Codec, CodecChain
from hyperslab.storage.layout import StoredLayout


@dataclass(frozen=True)
class Encoding:
    """Arguments for `Group.create_array`; "auto" leaves the choice to zarr-python."""

    chunks: tuple[int, ...] | Literal["auto"] = "auto"
    shards: tuple[int, ...] | Literal["auto"] | None = None
    filters: Any = "auto"
    compressors: Any = "auto"
    serializer: Any = "auto"
    write_empty_chunks: bool = False


@dataclass(frozen=True)
class ZarrPython(Format):
    """A Zarr hierarchy in a directory, through zarr-python."""

    threads: int | None = None

    extension: ClassVar[str] = ".zarr"
    zarr_format: ClassVar[Literal[2, 3]]

    @classmethod
    def library(cls) -> Installed:
        """zarr-python, and numcodecs, which has the compressors."""
        return Installed("zarr", _recent(installed_version("zarr")), (("numcodecs", version("numcodecs")),))

    def create(self, path: Path) -> ArrayFile:
        """Create the directory and its group's metadata."""
        group = import_zarr().open_group(path, mode="w-", zarr_format=self.zarr_format)
        return ZarrFile(path, group, self)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open a group of either version of the format."""
        zarr = import_zarr()
        try:
            return ZarrFile(path, zarr.open_group(path, mode=mode), self)
        except (FileNotFoundError, zarr.errors.ContainsArrayError) as error:
            raise UsageError(f"{path} is not a Zarr group that holds arrays: {error}") from error

    def open_url(self, url: str, storage_options: Mapping[str, Any]) -> ArrayFile:
        """Open a group through obstore, without looking for consolidated metadata."""
        zarr = import_zarr()
        store = zarr.storage.ObjectStore(obstore_store(url, storage_options), read_only=True)
        group = zarr.open_group(store, mode="r", zarr_format=self.zarr_format, use_consolidated=False)
        return ZarrFile(Path(url), group, self)

    def open_in_memory(self, path: Path) -> ArrayFile:
        """Open a copy of a directory in memory; afterwards no file is accessed."""
        zarr = import_zarr()
        buffer = import_module("zarr.core.buffer").default_buffer_prototype().buffer
        kept = {
            str(file.relative_to(path)): buffer.from_bytes(file.read_bytes())
            for file in path.rglob("*")
            if file.is_file()
        }
        return ZarrFile(path, zarr.open_group(zarr.storage.MemoryStore(kept), mode="r"), self)

    def pipeline(self) -> AbstractContextManager[Any]:
        """The context in which arrays are created or opened; they keep the codec pipeline that it sets."""
        return nullcontext()

    def during_io(self) -> AbstractContextManager[Any]:
        """The context in which elements are read or written: it sets how many chunks are processed at a time."""
        if self.threads is None:
            return nullcontext()
        limit: AbstractContextManager[Any] = import_zarr().config.set({"async.concurrency": self.threads})
        return limit

    @abstractmethod
    def encoding(self, spec: ArraySpec) -> Encoding:
        """How an array is stored."""

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        yield from encoded_chunk_reasons(spec)
        yield from shard_reasons(spec)


class ZarrFile(ArrayFile):
    """An open group."""

    def __init__(self, path: Path, group: Any, kind: Any) -> None:
        self._path = path
        self._group = group
        self._kind = kind

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:
        """Write the array's metadata."""
        encoding = self._kind.encoding(spec)
        with self._kind.pipeline():
            array = self._group.create_array(
                name,
                shape=spec.shape,
                dtype=spec.dtype if self._kind.zarr_format == 2 else spec.dtype.newbyteorder("="),
                chunks=encoding.chunks,
                shards=encoding.shards,
                filters=encoding.filters,
                compressors=encoding.compressors,
                serializer=encoding.serializer,
                config={"write_empty_chunks": encoding.write_empty_chunks},
            )
        return ZarrArray(array, self._kind)

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:  # noqa: ARG002 - the file describes itself
        """Read the array's metadata."""
        with self._kind.pipeline():
            array = self._array(name)
            if not array.read_only:
                array = array.with_config({"write_empty_chunks": True})
        return ZarrArray(array, self._kind)

    def array_names(self) -> list[str]:
        """The names of all arrays in the hierarchy."""
        is_array = import_zarr().Array
        return sorted(name for name, member in self._group.members(max_depth=None) if isinstance(member, is_array))

    def describe(self, name: str) -> ArraySpec:
        """Read shape, dtype and layout from the array's metadata."""
        array = self._array(name)
        return ArraySpec(array.shape, _dtype(array), _layout(array))

    def close(self) -> None:
        """Close the store."""
        self._group.store.close()

    def _array(self, name: str) -> Any:
        try:
            array = self._group[name]
        except KeyError as error:
            raise UsageError(f"{self._path} has no array {name!r}") from error
        if not isinstance(array, import_zarr().Array):
            raise UsageError(f"{self._path}: {name!r} is a group, not an array")
        return array


class ZarrArray(ArrayHandle):
    """An open array."""

    def __init__(self, array: Any, kind: Any) -> None:
        self._array = array
        self._kind = kind

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Encode and store every chunk that the selection touches."""
        self._refuse_if_read_only()
        with self._kind.during_io():
            self._array[self._slices(selection)] = data

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Read and decode every chunk that the selection touches."""
        with self._kind.during_io():
            return np.asarray(self._array[self._slices(selection)])

    def read_points(self, points: Points) -> np.ndarray:
        """Read listed elements with one coordinate selection (`vindex`)."""
        with self._kind.during_io():
            return np.asarray(self._array.vindex[tuple(points.coordinates.T)])

    def append(self, data: np.ndarray) -> None:
        """Rewrite the metadata, then store the chunks."""
        self._refuse_if_read_only()
        with self._kind.during_io():
            self._array.append(data, axis=0)

    def _refuse_if_read_only(self) -> None:
        # zarr-python itself would check this, but the pipeline zarrs writes without the store.
        if self._array.read_only:
            raise UsageError(f"{self._array.store_path} was opened for reading only")

    def _slices(self, selection: Hyperslab | None) -> Any:
        if selection is None:
            return ...
        slices = selection.slices
        if not self._kind.capabilities.strided and any((piece.step or 1) != 1 for piece in slices):
            raise Refused(f"{self._kind.name} supports only steps of 1")
        return slices


def v3_encoding(spec: ArraySpec) -> Encoding:
    """The encoding of an array in version 3."""
    if spec.layout is None:
        return Encoding(serializer=v3_serializer_json(spec.dtype))
    return Encoding(
        chunks=chunks_of(spec.layout, spec.shape),
        shards=spec.layout.shard_shape,
        filters=None,
        compressors=[v3_codec_json(codec, spec.dtype.itemsize) for codec in spec.layout.codecs] or None,
        serializer=v3_serializer_json(spec.dtype),
        write_empty_chunks=True,
    )


def chunks_of(layout: StoredLayout, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The chunk shape of a layout; the array's whole shape if the layout is contiguous."""
    return layout.chunk_shape or tuple(max(length, 1) for length in shape)


def import_zarr() -> Any:
    """The module zarr, version 3; raises MissingLibrary, which says how to install it."""
    zarr = imported("zarr")
    _recent(zarr.__version__)
    return zarr


def _recent(number: str) -> str:
    if number.startswith(("0.", "1.", "2.")):
        raise MissingLibrary(f"zarr {number} is too old: {advice('zarr')}")
    return number


def _dtype(array: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = array.dtype
    return dtype if array.metadata.zarr_format == 2 else v3_stored_dtype(dtype, array.serializer.to_dict())


def _layout(array: Any) -> StoredLayout:
    whole = array.shards is None and array.chunks == array.shape
    return StoredLayout(None if whole else array.chunks, array.shards, codecs=CodecChain(_codecs(array)))


def _codecs(array: Any) -> Iterator[Codec]:
    for codec in (*array.filters, *array.compressors):
        yield v2_codec(codec.get_config()) if array.metadata.zarr_format == 2 else v3_codec(codec.to_dict())
