"""`Array`: an array of an archive, read by indexing."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any, Literal

import numpy as np

from hyperslab._core import Points, ReadPlan, Segment, StoredArray
from hyperslab.archive.tree import fallback
from hyperslab.archive.tree.attributes import Attributes, filled
from hyperslab.archive.tree.indexing import Key, NormalizedKey, normalize, of_count, of_points
from hyperslab.archive.tree.open_file import OpenFile
from hyperslab.archive.views import display, display_html
from hyperslab.cached import cached_property
from hyperslab.errors import FileChanged, HyperslabError, TooLargeForMemory, Unsupported, UsageError, printable
from hyperslab.memory import aligned_empty

# Limits of a plan, in chunks and bytes. A plan looks at every chunk and request; above these limits that takes minutes,
# and only damaged files and empty arrays are that large.
MOST_PLANNED_CHUNKS, MOST_PLANNED = 1 << 31, 1 << 50


class Array:
    """An array of an archive. Indexing it reads; creating it reads nothing. Threads and processes may share it.

    `array[0, ::4, 10:20]` reads with as many threads as there are cores. An integer drops its axis, steps must be
    positive, and lists and masks pick indices of one axis each; a mask of the array's shape picks elements. `read` does
    the same with an output array and a number of threads of your choice. `plan` tells you what a read would take,
    without reading.
    """

    def __init__(self, file: OpenFile, number: int, name: str) -> None:
        self._file = file
        self._number = number
        self.name = name

    @property
    def key(self) -> tuple[int, int]:
        """What identifies the array while its file is open, whichever link led to it."""
        return (id(self._file), self._number)

    @cached_property
    def _stored(self) -> StoredArray:
        return self._file.core.array(self._number, self.name)

    @cached_property
    def _has_pointers(self) -> bool:
        return self._stored.has_pointers

    @property
    def filename(self) -> str:
        """The path of the file that the array is in, or its URL without query and credentials."""
        return self._file.path

    @property
    def format(self) -> str:
        """The format of the file: "hdf5", "netcdf3", "fits", "hdf4", "zarr", "references", "dmrpp" or "collection"."""
        return self._file.core.format

    @property
    def fill_is_missing(self) -> bool:
        """Whether CF readers use the fill value as `_FillValue`, as they do for Zarr 2."""
        return self._stored.fill_is_missing

    @property
    def is_variable(self) -> bool:
        """Whether the array holds data: it is neither null nor a placeholder for a NetCDF-4 dimension."""
        return not self.is_null and not self.is_dimension_only

    @property
    def is_dimension_only(self) -> bool:
        """Whether the array is a placeholder for a NetCDF-4 dimension without a variable; it holds no data."""
        return self._stored.is_dimension_only

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis; `(0,)` for HDF5's null dataspace, which has no elements."""
        shape = self._stored.shape
        return (0,) if shape is None else shape

    @property
    def max_shape(self) -> tuple[int | None, ...]:
        """The largest shape that the writer allowed; None for an unlimited axis."""
        return tuple(self._stored.max_shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return reduce(operator.mul, self.shape, 1)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements, in the byte order of the file."""
        try:
            if self.via == "h5py":
                return fallback.dtype_of(self._file.path, self.name, self._file.document_resolver)
            return self._stored.dtype
        except UsageError:  # the request is wrong, not the file
            raise
        except (TypeError, ValueError, OverflowError, Unsupported) as error:
            said = f"array {self.name} of {self._file.path} has elements that NumPy cannot represent ({error})"
            raise Unsupported(f"{said}: the file is damaged, or each element is larger than 2 GiB") from error

    @property
    def is_text(self) -> bool:
        """Whether the elements are text of variable length (then `dtype` is object, as in h5py)."""
        metadata = self.dtype.metadata
        return metadata is not None and metadata.get("vlen") is str

    @property
    def nbytes(self) -> int:
        """Size of the whole array in memory, in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def stored_nbytes(self) -> int | None:
        """Size of the stored chunks, in bytes; None for remote Zarr arrays, whose chunks are not listed."""
        return self._stored.stored_nbytes

    @property
    def chunk_count(self) -> int:
        """The number of chunks in the chunk grid, stored or not."""
        return self._stored.chunk_count

    @property
    def stored_chunk_count(self) -> int | None:
        """The number of chunks that are in the file; None for remote Zarr arrays, whose chunks are not listed."""
        return self._stored.stored_chunk_count

    @cached_property
    def is_null(self) -> bool:
        """Whether the array is HDF5's null dataspace: it has neither elements nor a shape."""
        return self._stored.shape is None

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of a chunk; None if the array is contiguous, or if its parts have different chunk shapes."""
        return self._stored.chunks

    @property
    def chunk_lengths(self) -> tuple[int | tuple[int, ...], ...] | None:
        """The chunk length of each axis; a tuple of all lengths where the files of a collection differ.

        If you cut the array along these lengths, no task reads a chunk that another task reads too. None for contiguous
        arrays, and for virtual arrays that map others with steps.
        """
        by_axis = self._stored.chunk_lengths() if self.chunks is not None or self.format == "collection" else None
        return None if by_axis is None else tuple(each[0] if len(each) == 1 else tuple(each) for each in by_axis)

    @property
    def codecs(self) -> tuple[str, ...]:
        """The names of the codecs, in the order of encoding."""
        return tuple(self._stored.codecs)

    @property
    def filters(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The identifier and the parameters of each HDF5 filter, in the order of encoding; empty for other formats."""
        return tuple((number, tuple(parameters)) for number, parameters in self._stored.filters)

    @property
    def type_name(self) -> str | None:
        """The name of the committed HDF5 datatype of the elements; None if they do not have one."""
        return self._stored.type_name

    @property
    def dims(self) -> tuple[str, ...] | None:
        """The names of the dimensions; None if the file does not name them."""
        dimensions = self._stored.dimensions
        return None if dimensions is None else tuple(dimensions)

    @cached_property
    def attrs(self) -> Attributes:
        """The attributes, in the order of the file."""
        return Attributes(self._stored.attributes())

    @cached_property
    def fill_value(self) -> Any:
        """The value of elements that were never written; None if the file defines no fill value."""
        fill = self._stored.fill
        if fill is None or self.unsupported or self.damaged:
            return None
        if self.dtype.hasobject:
            return self._stored.fill_object
        element = np.ndarray((), self.dtype, buffer=fill)
        return element[()] if element.ndim == 0 else element.copy()

    @cached_property
    def unsupported(self) -> str | None:
        """Why hyperslab cannot read the array itself; None if it can."""
        return self._stored.unsupported

    @cached_property
    def damaged(self) -> str | None:
        """Why the array cannot be read at all; None if its metadata and chunk index are intact."""
        return self._stored.damaged

    @cached_property
    def via(self) -> Literal["hyperslab", "h5py"]:
        """What reads the array: "hyperslab", or "h5py" if hyperslab cannot read it and h5py is installed."""
        return "h5py" if self.unsupported and self._can_fall_back else "hyperslab"

    @property
    def _can_fall_back(self) -> bool:
        return self._file.core.format == "hdf5" and not self._file.is_remote and fallback.is_possible()

    @property
    def fill_bytes(self) -> bytes:
        """The fill value as the bytes of one element in memory; zeros if the file defines none."""
        return self._stored.fill or bytes(self._stored.element_nbytes)

    def segments(self) -> list[Segment]:
        """The parts of the array, with the byte ranges of their chunks; references are written from these."""
        return self._stored.segments()

    def file_paths(self) -> list[str | None]:
        """Paths or URLs of the files that hold the chunks; segments refer to them by their index in this list."""
        return self._stored.file_paths()

    @property
    def is_own(self) -> bool:
        """Whether all data are in files that you named; only then may references hold copies of them."""
        if self.via == "h5py":
            files = fallback.files_of(self._file.path, self.name, self._file.document_resolver)
            return all(map(self._file.owns, files))
        return all(path is None or self._file.owns(path) for path in self.file_paths())

    def check_files(self, paths: Iterable[str | None]) -> None:
        """Check that the array's file may lead to these files, so that references may too; None is the file itself.

        Raises
        ------
        NotAllowed
            One of the files is at a location that is not allowed.
        """
        for path in paths:
            if path is not None:
                self._file.check_allowed(path)

    def plan(self, selection: Key = ...) -> ReadPlan:
        """Compute what reading a selection would take: chunks, requests, bytes and read amplification. Nothing is read.

        Parameters
        ----------
        selection : Key
            The same as for `read`; by default the whole array.

        Returns
        -------
        ReadPlan
            The plan, with counts of chunks and requests, and sizes in bytes.

        Raises
        ------
        Unsupported
            hyperslab cannot read the array, or it is a remote Zarr array, whose chunks are not listed.
        DamagedFile
            The metadata of the array or its chunk index are damaged.
        TooLargeForMemory
            The selection has too many chunks or bytes to plan at once.
        """
        if isinstance(selection, Points):
            return self._stored.plan_points(selection)
        try:
            index = normalize(selection, self.shape)
            if index.points is not None:
                return self._stored.plan_points(index.points)
            count = math.prod(index.full_shape)
            most = self.chunk_count > MOST_PLANNED_CHUNKS < count or count * self._stored.element_nbytes > MOST_PLANNED
            if most and self.damaged is None:  # a damaged array says what is damaged
                said = f"array {self.name} of {self._file.path} has {self.nbytes} bytes"
                raise TooLargeForMemory(f"{said} in {self.chunk_count} chunks: plan a part of it at a time")
            return self._stored.plan(list(index.axes))
        except (OverflowError, ValueError) as error:
            self._explain(selection, error)
            raise

    def read(self, selection: Key = ..., *, out: np.ndarray[Any, Any] | None = None, threads: int | None = None) -> Any:
        """Read a selection.

        Parameters
        ----------
        selection : Key
            Anything that you could write between the brackets of `array[...]`, a `Hyperslab`, or `Points`. Points give
            a result with one axis. By default the whole array.
        out : np.ndarray[Any, Any] | None
            An array to read into, with the shape of the selection. If it is C-contiguous and has the array's dtype, no
            copy is made; otherwise the elements are cast, if that is safe.
        threads : int | None
            The number of threads that read and decode; by default one per core.

        Returns
        -------
        np.ndarray[Any, Any] | Any
            The selected elements, in the dtype of the array; a scalar if every axis was indexed by an integer. If you
            gave `out`, that.

        Raises
        ------
        IndexError
            An index is outside the array.
        ValueError
            `out` has another shape than the selection, or `threads` is below 1.
        Unsupported
            The array uses a feature that hyperslab cannot read, and h5py is not installed.
        TooLargeForMemory
            The selection needs more memory than there is.
        DamagedFile
            The stored bytes contradict the format; the message names the file, array, chunk and offset.
        FileChanged
            The file was changed since it was opened.
        """
        if self.is_null:
            raise Unsupported(f"array {self.name} of {self._file.path} has no elements (a null dataspace)")
        if threads is not None and threads < 1:
            raise ValueError(f"{threads} threads: use at least 1")
        try:
            return self._read_selection(selection, out, threads)
        except (MemoryError, OverflowError, ValueError) as error:
            self._explain(selection, error)
            raise

    def _explain(self, selection: Key, error: Exception) -> None:
        """Replace errors of NumPy and Python about numbers that are too large by ours; ignore all other errors."""
        said = f"array {self.name} of {self._file.path}"
        if isinstance(error, HyperslabError):
            return
        if max(self.shape, default=0) > sys.maxsize:
            raise Unsupported(f"{said} has an axis longer than 2^63 - 1: the file is damaged") from error
        if isinstance(selection, Points):
            count = len(selection.coordinates)
        else:
            count = math.prod(normalize(selection, self.shape).full_shape)
        nbytes = count * self.dtype.itemsize
        if isinstance(error, MemoryError) or nbytes > sys.maxsize:
            told = f"the selection needs {nbytes} bytes of memory, more than there is: read a part of it at a time"
            raise TooLargeForMemory(f"{said}: {told}") from error

    def _read_selection(self, selection: Key, out: np.ndarray[Any, Any] | None, threads: int | None) -> Any:
        index = of_points(selection, self.shape) if isinstance(selection, Points) else normalize(selection, self.shape)
        return self.read_index(index, out, threads)

    def read_index(
        self, index: NormalizedKey, out: np.ndarray[Any, Any] | None = None, threads: int | None = None
    ) -> Any:
        """Read a key that is already normalized, perhaps by other rules than NumPy's."""
        if index.mask is not None:
            picked = np.asarray(self.read_index(index.around, None, threads))[index.mask]
            return self._finish(of_count(len(picked)), picked, out)
        if self.via == "hyperslab":
            try:
                return self._finish(index, self._read(index, out, threads), out)
            except Unsupported:
                if not self._can_fall_back:
                    raise
                self.__dict__["via"] = "h5py"  # only decoding reveals a rare variant of a codec
        read = fallback.read(self._file.path, self.name, index, self._file.document_resolver)
        return self._finish(index, read, out)

    def _read(
        self, index: NormalizedKey, out: np.ndarray[Any, Any] | None, threads: int | None
    ) -> np.ndarray[Any, Any]:
        """Read the selection with all axes, into the memory of `out` if it fits."""
        if self._has_pointers:
            return self._read_pointed(index, threads)
        full_shape = (*index.full_shape, *self.dtype.shape)
        reused = out if out is not None and self._takes(out, index) else None
        array = aligned_empty(index.full_shape, self.dtype) if reused is None else reused.reshape(full_shape)
        self._read_bytes(index, array.reshape(-1).view(np.uint8), threads, is_reused=reused is not None)
        return array

    def _read_bytes(
        self, index: NormalizedKey, out: np.ndarray[Any, Any], threads: int | None, is_reused: bool
    ) -> None:
        if index.points is None:
            self._stored.read_into(list(index.axes), out, threads, is_reused)
        else:
            self._stored.read_points_into(index.points, out, threads)

    def _takes(self, out: np.ndarray[Any, Any], index: NormalizedKey) -> bool:
        return (
            out.dtype == self.dtype.base
            and out.shape == (*index.shape, *self.dtype.shape)
            and out.flags.c_contiguous
            and out.flags.writeable
        )

    def _read_pointed(self, index: NormalizedKey, threads: int | None) -> np.ndarray[Any, Any]:
        """Read elements of variable length: first their pointers, then the values that these point to."""
        pointers = np.empty(index.full_shape, f"V{self._stored.element_nbytes}").reshape(-1).view(np.uint8)
        if index.points is None:
            objects = self._stored.read_objects(list(index.axes), pointers, threads)
        else:
            objects = self._stored.read_point_objects(index.points, pointers, threads)
        return filled(index.full_shape, self.dtype, objects)

    def read_stored(self, index: NormalizedKey) -> np.ndarray[Any, Any]:
        """Read the selected elements as bytes, as the file stores them, without following pointers."""
        if index.mask is not None:
            around = self.read_stored(index.around).reshape(*index.full_shape, -1)
            return np.ascontiguousarray(around[index.mask]).reshape(-1)
        stored = np.empty(math.prod(index.full_shape) * self._stored.element_nbytes, np.uint8)
        self._read_bytes(index, stored, None, is_reused=False)
        return stored

    def heap_values(self, stored: Any) -> list[bytes]:
        """Read the values that pointers in HDF5 elements lead to, in order; after a sequence, those of its pointers."""
        return self._stored.heap_values(bytes(stored))

    def virtual_sources(self) -> list[tuple[str, str, Any, Any]]:
        """Return the mappings of a virtual HDF5 array: file, path, selection of this array, selection of the source."""
        return self._stored.virtual_sources()

    def _finish(self, index: NormalizedKey, read: np.ndarray[Any, Any], out: np.ndarray[Any, Any] | None) -> Any:
        shaped = read.reshape((*index.shape, *read.shape[len(index.full_shape) :]))
        if out is None:
            return shaped[()] if index.is_element else shaped
        if not np.may_share_memory(out, shaped):
            if out.shape != shaped.shape:
                raise ValueError(f"out has shape {out.shape}, but the selection has shape {shaped.shape}")
            np.copyto(out, shaped, casting="safe")
        return out

    def __getitem__(self, key: Key) -> Any:
        if isinstance(key, str):
            return self.read(...)[key]
        return self.read(key)

    def __setitem__(self, key: Key, value: object) -> None:
        raise TypeError(f"{self.name} of {self._file.path} is read-only: hyperslab does not write archives")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("copy=False is not possible: reading an array from a file always makes a copy")
        array = np.asarray(self.read(...))
        return array if dtype is None else array.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("an array without axes cannot be iterated over")
        return (self[index] for index in range(self.shape[0]))

    def __repr__(self) -> str:
        return f"<hyperslab.Array {self.name!r} {self._facts()}>"

    def _repr_html_(self) -> str:
        return display_html.leaf(self.branch(self.name))

    def branch(self, name: str) -> display.Branch:
        """What is shown of the array in a tree, where it has this name."""
        return display.Branch(name, f": {self._facts()}", lambda: self.attrs)

    def _facts(self) -> str:
        """Element, shape, chunks, codecs and size, and what is wrong with it."""
        try:
            if self.is_dimension_only:  # what netCDF4 keeps as an array of fill values
                return f"a dimension of length {self.shape[0]:,}"
            is_known = not self.unsupported or self.via == "h5py"
            parts = [f"{display.element(self.dtype) if is_known else '?'} {display.shape(self.shape, self.dims)}"]
            parts += [f"chunks {self.chunks}"] if self.chunks else []
            parts += [printable("+".join(self.codecs))] if self.codecs else []
            size = display.size(self.nbytes if is_known else None, self.stored_nbytes, is_encoded=bool(self.codecs))
            parts += [size] if size else []
        except Exception as error:  # a repr never raises
            return f"cannot be described: {printable(str(error))}"
        parts += [f"via {self.via}"] if self.via != "hyperslab" else []
        parts += [f"unsupported: {printable(self.unsupported)}"] if self.unsupported and not is_known else []
        parts += [f"damaged: {printable(self.damaged)}"] if self.damaged else []
        return ", ".join(parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_found_again, (self._file, self.name))

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return self._file.token(self.name)


def _found_again(file: OpenFile, name: str) -> Array:
    """What a pickled array becomes."""
    place = file.root.below(name)
    if place.is_group:
        raise FileChanged(f"{name} of {file.path} was an array, but is a group now: open the file again")
    return Array(place.file, place.number, place.name)
