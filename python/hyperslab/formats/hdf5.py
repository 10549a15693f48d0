"""HDF5 through h5py: the format of most scientific array files.

Specification: https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html. Library: h5py (which contains
HDF5), and hdf5plugin for the codecs zstd, blosc-lz4 and blosc-zstd. Options: `libver` ("earliest", "v110", "latest",
…) and the chunk cache's `rdcc_nbytes`, `rdcc_nslots`, `rdcc_w0`; None keeps the library's default.

If you give a layout, the file is not prefilled, unless `fills` is set. If you give none, h5py's defaults apply: a
contiguous layout, or chunks that h5py guesses for growable arrays. Codecs are applied in the order in which you name
them.

Cannot express: codecs or growth without chunks, shards. Encodes and decodes with one thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab, Points
from hyperslab.errors import UsageError
from hyperslab.formats.contract import (
    ArrayFile,
    ArrayHandle,
    ArraySpec,
    Capabilities,
    Format,
    Installed,
    Need,
    imported,
)
from hyperslab.formats.far import fsspec_file
from hyperslab.meant import meant_or_known
from hyperslab.needed import advice
from hyperslab.storage.chain import Codec, CodecChain
from hyperslab.storage.hdf5_plugins import h5py_with_own_plugins, plugins_version
from hyperslab.storage.layout import StoredLayout
from hyperslab.storage.table import parameters_put_before, written_names


@dataclass(frozen=True)
class Hdf5(Format):
    """HDF5 through h5py."""

    libver: str | None = None
    rdcc_nbytes: int | None = None
    rdcc_nslots: int | None = None
    rdcc_w0: float | None = None
    fills: bool = False

    name: ClassVar[str] = "hdf5"
    extension: ClassVar[str] = ".h5"
    aliases: ClassVar[tuple[str, ...]] = (".hdf5", ".he5")
    capabilities: ClassVar[Capabilities] = Capabilities(
        codecs=written_names("hdf5"),
        chunks=True,
        append=True,
        urls=True,
        byte_order="either",
        notes="codecs and growth need chunks; zstd and blosc need hdf5plugin; URLs through fsspec's files",
    )
    default_layout: ClassVar[str] = "contiguous"

    @classmethod
    def library(cls) -> Installed:
        """h5py, the HDF5 that it contains, and hdf5plugin if it is installed."""
        h5py = import_h5py()
        plugins = plugins_version()
        parts = [("HDF5", h5py.version.hdf5_version), *([] if plugins is None else [("hdf5plugin", plugins)])]
        return Installed("h5py", h5py.__version__, tuple(parts))

    def create(self, path: Path) -> ArrayFile:
        """Create an empty file."""
        return Hdf5File(self._open(path, "x"), fills=self.fills)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open a file."""
        if not path.is_file():
            raise UsageError(f"{path} is not a file")
        return Hdf5File(self._open(path, mode))

    def open_url(self, url: str, storage_options: Mapping[str, Any]) -> ArrayFile:
        """Open a URL with h5py through a file object of fsspec, which reads ahead in blocks."""
        return Hdf5File(import_h5py().File(fsspec_file(url, storage_options), "r"))

    def _open(self, path: Path, mode: str) -> Any:
        try:
            return import_h5py().File(
                path,
                mode,
                libver=self.libver,
                rdcc_nbytes=self.rdcc_nbytes,
                rdcc_nslots=self.rdcc_nslots,
                rdcc_w0=self.rdcc_w0,
            )
        except OSError as error:
            raise UsageError(f"{path}: HDF5 cannot open it: {error}") from error

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        layout = spec.layout
        if layout is None:
            return
        if layout.contiguous and layout.codecs:
            yield "HDF5 codecs need chunks; give a chunk shape"
        if layout.contiguous and spec.growable:
            yield "HDF5 arrays can grow only in chunks; give a chunk shape"
        if not layout.contiguous and int(np.prod(layout.chunk_shape)) * spec.dtype.itemsize >= 2**32:
            yield "HDF5 chunks must be smaller than 4 GiB"
        for codec in layout.codecs:
            if reason := _missing_filter(codec):
                yield reason


class Hdf5File(ArrayFile):
    """An open HDF5 file."""

    def __init__(self, file: Any, *, fills: bool = False) -> None:
        self._file = file
        self._fills = fills

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:
        """Create the dataset; HDF5 allocates its space when it is written."""
        return Hdf5Array(self._create_dataset(name, spec))

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:  # noqa: ARG002 - the file describes itself
        """Open the dataset."""
        return Hdf5Array(self._dataset(name))

    def array_names(self) -> list[str]:
        """Every dataset, in all groups."""
        names: list[str] = []
        self._file.visititems(lambda name, node: names.append(name) if hasattr(node, "dtype") else None)
        return names

    def describe(self, name: str) -> ArraySpec:
        """Read shape, dtype and layout from the file; the codecs come from its filter pipeline."""
        dataset = self._dataset(name)
        growable = bool(dataset.maxshape) and dataset.maxshape[0] is None
        properties = dataset.id.get_create_plist()
        described = [properties.get_filter(index) for index in range(properties.get_nfilters())]
        codecs = CodecChain(Codec.of_hdf5(number, values) for number, _, values, _ in described)
        return ArraySpec(dataset.shape, dataset.dtype, StoredLayout(dataset.chunks, codecs=codecs), growable)

    def flush(self) -> None:
        """Call H5Fflush."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _create_dataset(self, name: str, spec: ArraySpec) -> Any:
        maxshape = (None, *spec.shape[1:]) if spec.growable else None
        if spec.layout is None:
            return self._file.create_dataset(name, spec.shape, spec.dtype, maxshape=maxshape)
        h5py = import_h5py()
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        if not self._fills:
            properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        for codec in spec.layout.codecs:
            (number, flags, values), _ = codec.hdf5(spec.dtype.itemsize)
            properties.set_filter(number, flags, values[parameters_put_before(number) :])
        return self._file.create_dataset(
            name, spec.shape, spec.dtype, maxshape=maxshape, chunks=spec.layout.chunk_shape or None, dcpl=properties
        )

    def _dataset(self, name: str) -> Any:
        dataset = self._file.get(name)
        if dataset is None or not hasattr(dataset, "dtype"):
            raise UsageError(f"{self._file.filename} has no array {name!r}{meant_or_known(name, self.array_names())}")
        return dataset


class Hdf5Array(ArrayHandle):
    """An open dataset."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Make one H5Dwrite call."""
        if (slices := _slices(selection)) is not None:
            self._dataset[slices] = data
            return
        memory, file = self._spaces(selection)
        self._dataset.id.write(memory, file, np.ascontiguousarray(data))

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Make one H5Dread call."""
        if (slices := _slices(selection)) is not None:
            elements: np.ndarray = self._dataset[slices]
            return elements
        memory, file = self._spaces(selection)
        out = np.empty(memory.shape, self._dataset.dtype)
        self._dataset.id.read(memory, file, out)
        return out

    def read_points(self, points: Points) -> np.ndarray:
        """Make one H5Dread call with a selection of elements."""
        h5s = import_h5py().h5s
        file = self._dataset.id.get_space()
        file.select_elements(np.ascontiguousarray(points.coordinates, np.uint64))
        out = np.empty(points.shape, self._dataset.dtype)
        self._dataset.id.read(h5s.create_simple(points.shape), file, out)
        return out

    def append(self, data: np.ndarray) -> None:
        """Resize, then write the new rows."""
        row_count = self._dataset.shape[0]
        self._dataset.resize(row_count + data.shape[0], axis=0)
        self._dataset[row_count:] = data

    def _spaces(self, selection: Any) -> tuple[Any, Any]:
        h5s = import_h5py().h5s
        file = self._dataset.id.get_space()
        file.select_hyperslab(selection.start, selection.count, selection.stride, selection.block)
        return h5s.create_simple(selection.shape), file


def _slices(selection: Hyperslab | None) -> Any:
    """The index for h5py's brackets; None if blocks of several elements need HDF5's own hyperslab selection."""
    if selection is None:
        return ()
    try:
        return selection.slices
    except ValueError:
        return None


def import_h5py() -> Any:
    """h5py, with hdf5plugin's codecs registered if it is installed; raises MissingLibrary."""
    imported("h5py")
    return h5py_with_own_plugins()


def _missing_filter(codec: Codec) -> str | None:
    """Why a codec cannot be used (its filter is not installed), or None."""
    if codec.name not in Hdf5.capabilities.codecs:
        return None  # the contract says that
    (number, *_), _ = codec.hdf5()
    if import_h5py().h5z.filter_avail(number):
        return None
    return f"codec {codec.name} is not installed: {advice('hdf5plugin')}"
