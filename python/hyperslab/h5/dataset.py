"""`Dataset`: h5py's interface to a dataset; hyperslab's engine reads it."""

from __future__ import annotations

import math
import posixpath
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from hyperslab.cached import cached_property
from hyperslab.h5 import elements, property_lists, reading, spaces
from hyperslab.h5.chunk_iterator import ChunkIterator
from hyperslab.h5.converting import converted
from hyperslab.h5.dimensions import DimensionManager, is_scale
from hyperslab.h5.dtypes import Empty, check_string_dtype
from hyperslab.h5.identifiers import DatasetID
from hyperslab.h5.objects import HLObject
from hyperslab.h5.references import NONE, RegionReference, coordinates, region_shape
from hyperslab.h5.refused import refuse
from hyperslab.h5.selecting import Selected, of_coordinates, select
from hyperslab.h5.views import AsStrView, AsTypeView, FieldsView, first_length

CLOSED = "Unable to synchronously get dataspace (identifier is not of specified type): the file was closed"


class VDSmap(NamedTuple):
    """A mapping of a virtual dataset: its elements `vspace` are the elements `src_space` of another dataset."""

    vspace: spaces.SpaceID
    file_name: str
    dset_name: str
    src_space: spaces.SpaceID


class Dataset(HLObject):
    """A dataset of a file. Indexing it reads; creating it reads no elements.

    Parameters
    ----------
    bind : DatasetID
        The `id` of a dataset.
    readonly : bool
        Ignored: a dataset is always read-only here.
    """

    _id: DatasetID

    def __init__(self, bind: DatasetID, *, readonly: bool = True) -> None:
        if not isinstance(bind, DatasetID):
            raise ValueError(f"{bind} is not a DatasetID")
        super().__init__(bind)

    @property
    def id(self) -> DatasetID:
        """The identifier of the dataset, with the methods of h5py's low-level interface that reading needs."""
        return self._id

    @property
    def _facts(self) -> dict[str, Any]:
        return self._id.facts

    @cached_property
    def shape(self) -> tuple[int, ...] | None:
        """The length of each axis; None for a null dataspace, which has no elements."""
        if not self:
            raise RuntimeError(CLOSED)
        return self._id.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of an element, with h5py's metadata."""
        self._store.opened  # noqa: B018 -- raises if the file is closed
        return self._id.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape or ())

    @property
    def size(self) -> int | None:
        """The number of elements; None for a null dataspace."""
        return None if self.shape is None else math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes that all elements take in memory."""
        return 0 if self.size is None else self.dtype.itemsize * self.size

    @property
    def maxshape(self) -> tuple[int | None, ...] | None:
        """The maximum length of each axis; None for an unlimited axis, and for a null dataspace as a whole."""
        if not self:
            raise RuntimeError(CLOSED)
        if self.shape is None:
            return None
        most: tuple[int | None, ...] = self._facts["max_shape"]
        return most

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of a chunk; None if the dataset is not chunked."""
        kind, shape = self._storage
        return shape if kind == "chunked" else None

    @property
    def _storage(self) -> tuple[str, Any]:
        storage = self._facts["storage"]
        if isinstance(storage, Exception):
            raise storage
        layout: tuple[str, Any] = storage
        return layout

    @property
    def _filters(self) -> dict[str, Any]:
        return property_lists.filters(self._facts)

    @property
    def compression(self) -> str | None:
        """The compression filter: "gzip", "lzf" or "szip"; "unknown" for a filter of a plugin; None for no filter."""
        filters = self._filters
        for name in property_lists.COMPRESSIONS:
            if name in filters:
                return name
        return "unknown" if any(name not in property_lists.OTHERS for name in filters) else None

    @property
    def compression_opts(self) -> Any:
        """The settings of the compression filter: the level of gzip, the coding and pixels per block of szip."""
        compression = self.compression
        return None if compression is None else self._filters.get(compression)

    @property
    def filter_ids(self) -> tuple[int, ...]:
        """The HDF5 identifiers of the filters, in the order in which they are applied."""
        return tuple(number for number, _, _ in self._facts["filters"])

    @property
    def filter_names(self) -> tuple[str, ...]:
        """The names of the filters as stored in the file."""
        return tuple(name or property_lists.OWN_NAMES.get(number, "") for number, name, _ in self._facts["filters"])

    @property
    def shuffle(self) -> bool:
        """Whether the chunks go through the shuffle filter."""
        return "shuffle" in self._filters

    @property
    def fletcher32(self) -> bool:
        """Whether each chunk has a Fletcher-32 checksum."""
        return "fletcher32" in self._filters

    @property
    def scaleoffset(self) -> int | None:
        """The setting of the scale-offset filter: a number of bits or of decimal places; None without the filter."""
        filters = self._filters
        return filters["scaleoffset"][1] if "scaleoffset" in filters else None

    @property
    def external(self) -> list[tuple[str, int, int]] | None:
        """Name, offset and length in bytes of each external raw file; None if the elements are in this file."""
        self._storage  # noqa: B018 -- raises if the layout cannot be read
        files = self._facts["external"]
        return [(name, at, spaces.UNLIMITED if nbytes is None else nbytes) for name, at, nbytes in files] or None

    @property
    def fillvalue(self) -> Any:
        """The fill value: the value of elements that were never written.

        Raises
        ------
        RuntimeError
            The file declares the fill value as undefined.
        """
        self._storage  # noqa: B018 -- raises if the layout cannot be read
        kind, stored = self._facts["fill"]
        if kind == "undefined":
            raise RuntimeError("Unable to get fill value (fill value is undefined)")
        element = self._facts["element"]
        if kind == "default":
            return reading.default_fill(self.dtype)
        heap = self._id.array.heap_values(stored) if elements.has_pointers(element) else []
        return reading.shaped(element, self.dtype, stored, heap, (1,))[0]

    @property
    def dims(self) -> DimensionManager:
        """The dimensions with their labels and scales."""
        return DimensionManager(self)

    @property
    def is_scale(self) -> bool:
        """Whether the dataset is a dimension scale."""
        return is_scale(self._id)

    @property
    def is_virtual(self) -> bool:
        """Whether the dataset is virtual: its elements come from other datasets."""
        return self._storage[0] == "virtual"

    def virtual_sources(self) -> list[VDSmap]:
        """Return the mappings of a virtual dataset.

        Raises
        ------
        RuntimeError
            The dataset is not virtual.
        """
        if not self.is_virtual:
            raise RuntimeError("Not a virtual dataset")
        shape, most = self.shape, self._facts["max_shape"]
        return [
            VDSmap(spaces.SpaceID(shape, most, shown), file, path, spaces.SpaceID((), (), source))
            for file, path, shown, source in self._id.array.virtual_sources()
        ]

    def astype(self, dtype: Any) -> Any:
        """Return a view that converts elements to another dtype by HDF5's rules."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        if dtype.kind == "T" and check_string_dtype(self.dtype) is None:
            raise TypeError(f"dset.astype({dtype}) can only be used on datasets with an HDF5 string datatype")
        return AsTypeView(self.shape, self.read_as, dtype)

    def asstr(self, encoding: str | None = None, errors: str = "strict") -> AsStrView:
        """Return a view that decodes text to `str`.

        Parameters
        ----------
        encoding : str or None
            The encoding of the text; by default the one that the file declares.
        errors : str
            What to do with bytes that are not in the encoding, as in `bytes.decode`.

        Raises
        ------
        TypeError
            The elements are not text.
        """
        text = check_string_dtype(self.dtype)
        if text is None:
            raise TypeError("dset.asstr() can only be used on datasets with an HDF5 string datatype")
        return AsStrView(self.shape, self.read_as, encoding or text.encoding, errors)

    def fields(self, names: Any, *, _prior_dtype: Any = None) -> FieldsView:
        """Return a view that reads only some fields of compound elements.

        Parameters
        ----------
        names : str or sequence of str
            The name of one field, which gives an array of its dtype; or several names, which give a compound dtype.

        Raises
        ------
        ValueError
            The elements have no fields, or no field of that name.
        """
        return FieldsView(self.shape, self.read_as, self.dtype if _prior_dtype is None else _prior_dtype, names)

    def __len__(self) -> int:
        length = self.len()
        if length > sys.maxsize:
            raise OverflowError("Value too big for Python's __len__; use Dataset.len() instead.")
        return length

    def len(self) -> int:
        """Return the length of the first axis."""
        return first_length(self.shape)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("Can't iterate over a scalar dataset")
        for place in range(self.shape[0]):
            yield self[place]

    def iter_chunks(self, sel: Any = None) -> ChunkIterator:
        """Iterate over the chunks as tuples of slices.

        Parameters
        ----------
        sel : int, slice, tuple of these, or None
            Iterate only over the chunks that the selection touches, and cut them at its bounds.

        Raises
        ------
        TypeError
            The dataset is not chunked.
        ValueError
            The selection is empty or does not fit the dataset.
        """
        return ChunkIterator(self.shape or (), self.chunks, sel)

    def __getitem__(self, args: Any, new_dtype: Any = None) -> Any:
        return self.read_as(args, new_dtype)

    def read_as(self, args: Any, new_dtype: Any = None) -> Any:
        """Read `dataset[args]`, converted to `new_dtype` if it is given."""
        args = args if isinstance(args, tuple) else (args,)
        if any(item is None for item in args):
            raise TypeError("Indexing with None (or np.newaxis) is not supported")
        if self.shape is None:
            if args == () or (len(args) == 1 and args[0] is Ellipsis):
                return Empty(self.dtype)
            raise ValueError("Empty datasets cannot be sliced")
        names = tuple(item for item in args if isinstance(item, str))
        if names:
            rest = tuple(item for item in args if not isinstance(item, str))
            return self.fields(names[0] if len(names) == 1 else names, _prior_dtype=new_dtype)[rest]
        if len(args) == 1 and isinstance(args[0], RegionReference):
            return self._region(args[0], new_dtype)
        return self._select_read(self._selected(args), new_dtype)

    def _selected(self, args: tuple[Any, ...]) -> Selected:
        shape = self.shape or ()
        if shape == ():
            if args == () or (len(args) == 1 and args[0] is Ellipsis):
                return select((), args)._replace(is_scalar=args == ())
            raise ValueError("Illegal slicing argument for scalar dataspace")
        if self.size == 0 and (args == () or (len(args) == 1 and args[0] is Ellipsis)):
            return select(shape, (...,))
        return select(shape, args)

    def _region(self, reference: RegionReference, new_dtype: Any) -> Any:
        region, shape = reference.region, self.shape or ()
        if not reference or region is None or reference.address != self._place.address:
            raise ValueError("Region reference must point to this dataset")
        if not shape and region.kind == NONE:
            return Empty(self.dtype if new_dtype is None else new_dtype)
        if region.kind == NONE:
            return np.zeros(region_shape(region, shape), new_dtype or self.dtype)
        if region.points is None and region.axes is None and region.boxes is None:
            return self._select_read(select(shape, (...,))._replace(is_scalar=False), new_dtype)
        selected = of_coordinates(coordinates(region, shape), shape)
        values = self._select_read(selected, new_dtype)
        return values.reshape(region_shape(region, shape) + values.shape[1:])

    def _select_read(self, selected: Selected, new_dtype: Any) -> Any:
        values = reading.read(self._id, selected)
        if new_dtype is not None:
            values = converted(values, self.dtype, np.dtype(new_dtype))
        return values[()] if selected.is_scalar and values.ndim == 0 else values

    def read_direct(self, dest: np.ndarray[Any, Any], source_sel: Any = None, dest_sel: Any = None) -> None:
        """Read into an existing array.

        Parameters
        ----------
        dest : np.ndarray
            The array to fill; it must be writable and in C order.
        source_sel : index or None
            The elements to read, for example `numpy.s_[0:10]`; all by default.
        dest_sel : index or None
            The elements of `dest` to fill; all by default.

        Raises
        ------
        TypeError
            `dest` is not writable or not in C order, the selections do not fit each other, or the dataset has a null
            dataspace.
        """
        if self.shape is None:
            raise TypeError("Empty datasets have no numpy representation")
        if not isinstance(dest, np.ndarray) or not dest.flags.c_contiguous or not dest.flags.writeable:
            raise TypeError("Array must be C-contiguous and writable")
        source = reading.optional_selection(self.shape, source_sel)
        target = reading.optional_selection(dest.shape, dest_sel)
        array = np.asarray(self[()] if source is None else self._select_read(source, None))
        if check_string_dtype(self.dtype) is None or dest.dtype != self.dtype:
            array = converted(array, self.dtype, dest.dtype)
        source_shape = self.shape if source is None else source.shape
        target_shape = dest.shape if target is None else target.shape
        if not reading.fits(source_shape, target_shape):
            raise TypeError(f"Can't broadcast {source_shape} -> {target_shape}")
        dest[... if dest_sel is None else dest_sel] = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError(f"Dataset.__array__ received {copy=} but memory allocation cannot be avoided on read")
        if self.shape is None:
            raise TypeError("Empty datasets have no numpy representation")
        values = np.asarray(self._select_read(self._selected((...,))._replace(is_scalar=False), None))
        return values if dtype is None else values.astype(dtype, copy=False)

    def resize(self, size: Any, axis: int | None = None) -> NoReturn:
        """Raise TypeError if the dataset is not chunked, otherwise RuntimeError: the file is open for reading."""
        if self.chunks is None:
            raise TypeError("Only chunked datasets can be resized")
        refuse("synchronously change a dataset's dimensions", RuntimeError)

    def write_direct(self, source: Any, source_sel: Any = None, dest_sel: Any = None) -> NoReturn:
        """Raise OSError: the file is open for reading."""
        refuse("write data", OSError)

    def make_scale(self, name: str = "") -> NoReturn:
        """Raise RuntimeError: the file is open for reading."""
        refuse("make a dimension scale", RuntimeError)

    def __setitem__(self, args: Any, value: Any) -> NoReturn:
        refuse("write data", OSError)

    def refresh(self) -> None:
        """Do nothing. To see what another program wrote, open the file again."""
        self._id.refresh()

    def flush(self) -> None:
        """Do nothing: there is nothing to write."""
        self._store.opened  # noqa: B018 -- raises if the file is closed

    def __repr__(self) -> str:
        if not self:
            return "<Closed HDF5 dataset>"
        name = "(anonymous)" if self.name is None else f'"{posixpath.basename(posixpath.normpath(self.name))}"'
        return f'<HDF5 dataset {name}: shape {self.shape}, type "{self.dtype.str}">'
