"""`Array`: an array of an archive, read by indexing."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hyperslab._core import Points, ReadPlan, Segment, StoredArray
from hyperslab.archive import display, fallback
from hyperslab.archive.attributes import Attributes, filled
from hyperslab.archive.indexing import Key, NormalizedKey, normalize, of_points
from hyperslab.cached import cached_property
from hyperslab.errors import HyperslabError, TooLargeForMemory, Unsupported
from hyperslab.memory import aligned_empty

if TYPE_CHECKING:
    from hyperslab.archive.tree import OpenFile

# Chunks and bytes that a plan looks at, chunk by chunk and request by request: more take minutes, and only damaged
# files and empty arrays have so many.
MOST_PLANNED_CHUNKS, MOST_PLANNED = 1 << 31, 1 << 50


class Array:
    """An array of an archive. Nothing is read before it is indexed; threads and processes may share it.

    `array[0, ::4, 10:20]` reads with as many threads as there are cores. Ints drop their axis, steps are positive,
    lists and masks pick indices axis by axis. `read` does the same with an output array and a number of threads of
    your choice, `plan` says what a read takes without making it.
    """

    def __init__(self, file: OpenFile, number: int, name: str) -> None:
        self._file = file
        self._number = number
        self.name = name

    @property
    def key(self) -> tuple[int, int]:
        """Tells arrays apart while their file is open, under whichever name they were found."""
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
        """What kind of file the array is in: hdf5, netcdf3, fits, hdf4, zarr or references."""
        return self._file.core.format

    @property
    def fill_is_missing(self) -> bool:
        """Whether readers of CF take the fill value for `_FillValue`, as in Zarr 2."""
        return self._stored.fill_is_missing

    @property
    def is_variable(self) -> bool:
        """Whether there is anything in it: not where it only stands for a dimension of NetCDF-4, or has no elements."""
        return not self.is_null and not self.is_dimension_only

    @property
    def is_dimension_only(self) -> bool:
        """Whether it only stands for a dimension of NetCDF-4 that has no variable: nothing is in it."""
        return self._stored.is_dimension_only

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis. An array without any element (HDF5's null dataspace) cannot be read: `(0,)`."""
        shape = self._stored.shape
        return (0,) if shape is None else shape

    @property
    def max_shape(self) -> tuple[int | None, ...]:
        """The largest shape that the array's writer allowed; None on an axis without bound."""
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
        """The elements' dtype, in the file's byte order."""
        try:
            if self.via == "h5py":
                return fallback.dtype_of(self._file.path, self.name, self._file.reach)
            return self._stored.dtype
        except (TypeError, ValueError, OverflowError, Unsupported) as error:
            said = f"array {self.name} of {self._file.path} has elements that NumPy cannot represent ({error})"
            raise Unsupported(f"{said}: the file is damaged, or they are larger than 2 GiB each") from error

    @property
    def is_text(self) -> bool:
        """Whether the elements are text of any length (`dtype` is object, as in h5py)."""
        metadata = self.dtype.metadata
        return metadata is not None and metadata.get("vlen") is str

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array in memory."""
        return self.size * self.dtype.itemsize

    @property
    def stored_nbytes(self) -> int | None:
        """Bytes that the array's chunks take in the file; None for Zarr far away, where nobody lists them."""
        return self._stored.stored_nbytes

    @property
    def chunk_count(self) -> int:
        """Chunks that there are room for in the array's shape, written or not."""
        return self._stored.chunk_count

    @property
    def stored_chunk_count(self) -> int | None:
        """Chunks that are in the file, the others were never written; None for Zarr far away."""
        return self._stored.stored_chunk_count

    @cached_property
    def is_null(self) -> bool:
        """Whether there is no element to read, not even none of a shape: HDF5's null dataspace."""
        return self._stored.shape is None

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of a chunk; None if the array is in one piece, or its parts are cut differently."""
        return self._stored.chunks

    @property
    def chunk_lengths(self) -> tuple[int | tuple[int, ...], ...] | None:
        """On each axis the length of the chunks, or the lengths of all where a collection's files differ.

        Along which Dask and others may cut the array without having to read a chunk twice. None where `chunks` is for
        an array in one piece, and of arrays that show others with steps.
        """
        found = self._stored.chunk_lengths() if self.chunks is not None or self.format == "collection" else None
        return None if found is None else tuple(each[0] if len(each) == 1 else tuple(each) for each in found)

    @property
    def codecs(self) -> tuple[str, ...]:
        """The names of the codecs, in the order of encoding."""
        return tuple(self._stored.codecs)

    @property
    def filters(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """HDF5's filters: the number and the parameters of each, in the order of encoding; of other formats none."""
        return tuple((number, tuple(parameters)) for number, parameters in self._stored.filters)

    @property
    def type_name(self) -> str | None:
        """The name of the committed datatype of HDF5 that the elements have; None where they have none."""
        return self._stored.type_name

    @property
    def dims(self) -> tuple[str, ...] | None:
        """The names of the dimensions, where the file names them."""
        dimensions = self._stored.dimensions
        return None if dimensions is None else tuple(dimensions)

    @cached_property
    def attrs(self) -> Attributes:
        """The attributes, in the file's order."""
        return Attributes(self._stored.attributes())

    @cached_property
    def fill_value(self) -> Any:
        """What elements are that nobody wrote; None if the writer said that there is no such value."""
        fill = self._stored.fill
        if fill is None or self.dtype.hasobject or self.unsupported or self.damaged:
            return None
        element = np.ndarray((), self.dtype, buffer=fill)
        return element[()] if element.ndim == 0 else element.copy()

    @cached_property
    def unsupported(self) -> str | None:
        """What of the array hyperslab cannot read itself; None if it can."""
        return self._stored.unsupported

    @cached_property
    def damaged(self) -> str | None:
        """Why nothing of the array can be read; None where its description and the table of its chunks are whole."""
        return self._stored.damaged

    @cached_property
    def via(self) -> Literal["hyperslab", "h5py"]:
        """What reads the array: hyperslab, or h5py where hyperslab cannot and h5py is installed."""
        return "h5py" if self.unsupported and self._can_fall_back else "hyperslab"

    @property
    def _can_fall_back(self) -> bool:
        return self._file.core.format == "hdf5" and not self._file.is_remote and fallback.is_possible()

    @property
    def fill_bytes(self) -> bytes:
        """One element that nobody wrote, as it is in memory: zeros where the writer said that there is none."""
        return self._stored.fill or bytes(self._stored.element_nbytes)

    def segments(self) -> list[Segment]:
        """The parts that the array is made of, with the places of their chunks, to write references from."""
        return self._stored.segments()

    def file_paths(self) -> list[str | None]:
        """Paths or URLs of the files that chunks lie in, by the numbers that segments have for them."""
        return self._stored.file_paths()

    @property
    def is_own(self) -> bool:
        """Whether all of it is in files that the user named: then references may hold copies of its elements."""
        if self.via == "h5py":
            files = fallback.files_of(self._file.path, self.name, self._file.reach)
            return all(map(self._file.owns, files))
        return all(path is None or self._file.owns(path) for path in self.file_paths())

    def check_files(self, paths: Iterable[str | None]) -> None:
        """Refuse what references must not lead to, because the array's own file may not; None is that file.

        Raises
        ------
        NotAllowed
            One of the files is such a place.
        """
        for path in paths:
            if path is not None:
                self._file.check_allowed(path)

    def plan(self, selection: Key = ...) -> ReadPlan:
        """What reading a selection takes: chunks, requests, bytes, read amplification. Nothing is read.

        Raises
        ------
        Unsupported
            hyperslab cannot read the array, or its chunks are Zarr's far away: nobody lists them.
        DamagedFile
            The array's description, or the table of its chunks, is damaged.
        """
        if isinstance(selection, Points):
            return self._stored.plan_points(selection)
        try:
            index = normalize(selection, self.shape)
            count = math.prod(index.full_shape)
            most = self.chunk_count > MOST_PLANNED_CHUNKS < count or count * self._stored.element_nbytes > MOST_PLANNED
            if most and self.damaged is None:  # a damaged array says what is damaged
                said = f"array {self.name} of {self._file.path} has room for {self.nbytes} bytes"
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
            What would stand between brackets, a `Hyperslab`, or `Points`, which give one axis.
        out : np.ndarray[Any, Any] | None
            Where the elements go; read into directly if it is in C order and of the array's dtype, else cast into if
            that is safe.
        threads : int | None
            How many threads read and decode; by default one per core.

        Raises
        ------
        Unsupported
            The array uses something that we cannot read, and h5py is not there to do it.
        TooLargeForMemory
            There is not as much memory as the selection takes.
        DamagedFile
            What was stored is not what its format says; the message has file, array, chunk, offset.
        FileChanged
            The file is not the one that was opened any more.
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
        """Say in our words what NumPy or Python say of numbers that nothing can hold; other errors are let through."""
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
            told = f"the selection takes {nbytes} bytes of memory, more than there is: read a part of it at a time"
            raise TooLargeForMemory(f"{said}: {told}") from error

    def _read_selection(self, selection: Key, out: np.ndarray[Any, Any] | None, threads: int | None) -> Any:
        index = of_points(selection, self.shape) if isinstance(selection, Points) else normalize(selection, self.shape)
        if self.via == "hyperslab":
            try:
                return self._finish(index, self._read(index, out, threads), out)
            except Unsupported:
                if not self._can_fall_back:
                    raise
                self.__dict__["via"] = "h5py"  # known only now: a rare variety of a codec
        read = fallback.read(self._file.path, self.name, index, self._file.reach)
        return self._finish(index, read, out)

    def _read(
        self, index: NormalizedKey, out: np.ndarray[Any, Any] | None, threads: int | None
    ) -> np.ndarray[Any, Any]:
        """The selection with all axes, in `out`'s memory if that can take it."""
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
        """Elements of any length: first their pointers, then what they lead to."""
        pointers = np.empty(index.full_shape, f"V{self._stored.element_nbytes}")
        flat = pointers.reshape(-1).view(np.uint8)
        self._read_bytes(index, flat, threads, is_reused=False)
        return filled(index.full_shape, self.dtype, self._stored.resolve(flat))

    def _finish(self, index: NormalizedKey, read: np.ndarray[Any, Any], out: np.ndarray[Any, Any] | None) -> Any:
        shaped = read.reshape((*index.shape, *read.shape[len(index.full_shape) :]))
        if out is None:
            return shaped[()] if index.is_element else shaped
        if not np.may_share_memory(out, shaped):
            if out.shape != shaped.shape:
                raise ValueError(f"out has the shape {out.shape}, the selection {shaped.shape}")
            np.copyto(out, shaped, casting="safe")
        return out

    def __getitem__(self, key: Key) -> Any:
        if isinstance(key, str):
            return self.read(...)[key]
        return self.read(key)

    def __setitem__(self, key: Key, value: object) -> None:
        raise TypeError(f"{self.name} of {self._file.path} is open for reading: hyperslab writes no archives")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array of a file cannot be had without reading it: a copy is always made")
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
        return display.array(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._file.reopening(self.name)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return self._file.token(self.name)
