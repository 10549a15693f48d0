"""xarray's engine "hyperslab": `xr.open_dataset(path, engine="hyperslab", chunks={})`.

The engine reads a variable only when you index it. Reads hold no lock, so Dask's threads run in parallel. xarray itself
decodes masks, scales, times and text, exactly as for its other engines. The interface is described in xarray's
documentation under "How to add a new backend".
"""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
import warnings
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, StoreBackendEntrypoint
from xarray.core import indexing

from hyperslab.archive.conventions.cf import BOOKKEEPING, attributes
from hyperslab.archive.conventions.encoding import as_netcdf, encoding, without_text_in_fields
from hyperslab.archive.far.allowed import Locations
from hyperslab.archive.opening import open
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.dimensions import PhonyDimensions
from hyperslab.archive.tree.group import Group, groups_by_path, root_of
from hyperslab.archive.tree.signatures import begins_like_a_file
from hyperslab.archive.xarray_options import split
from hyperslab.cached import cached_property
from hyperslab.errors import NoSuchGroup, UsageError, printable
from hyperslab.versions.layout.names import bookkeeping

if TYPE_CHECKING:
    from xarray import DataTree

    from hyperslab.versions.layout.table import VersionKey

SUFFIXES = (
    ".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".he5", ".hdf", ".h4", ".fits", ".fit", ".fts", ".zarr", ".hs", ".dmrpp",
)  # fmt: skip
MOST_FILES = 32  # files that a worker keeps open for tasks that came from other processes
# NetCDF-4 puts this prefix before the name of a variable that has the name of a dimension but is not its coordinate.
NON_COORDINATE = "_nc4_non_coord_"


_opening = [threading.Lock()]
if hasattr(os, "register_at_fork"):  # a forked child lacks the thread that holds the lock, so it gets a new lock
    os.register_at_fork(after_in_child=lambda: _opening.__setitem__(0, threading.Lock()))


class LazyArray(BackendArray):
    """An array of an archive for xarray, which indexes it with integers, slices and lists, axis by axis.

    A pickle of it holds only how to find the array again. Unpickling opens no file; the first read does, because
    schedulers that pass tasks on have neither the file nor the credentials. All tasks of a worker share one open file.
    """

    # While xarray opens a dataset, it reads the first element of an array of objects to see whether that is a date.
    # Objects of our arrays are never dates. So xarray gets None without a read, and one unreadable array does not
    # prevent it from opening the others.
    is_opening = False

    def __init__(self, array: Array) -> None:
        self.__dict__["_array"] = array
        self.shape: tuple[int, ...] = array.shape
        self.dtype: Any = array.dtype
        self._recipe = (array._file.__reduce__(), array.name, array.__dask_tokenize__())

    @cached_property
    def _array(self) -> Array:
        """The array. If it came from another process, the first use opens its file."""
        recipe, name, token = self._recipe
        with _opening[0]:  # the first thread opens the file, and the other threads of the worker share it
            array = _root_again(pickle.dumps(recipe), token[2])[name]
        assert isinstance(array, Array)
        return array

    def __reduce__(self) -> tuple[Any, ...]:
        return _unopened, (self.shape, self.dtype, self._recipe)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        if self.is_opening and not any(key.tuple):
            return None
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Read like `__getitem__`, but in a thread, so that the event loop is not blocked."""
        return await asyncio.to_thread(self.__getitem__, key)

    def _read(self, key: tuple[Any, ...]) -> Any:
        if not any(isinstance(item, slice) and item.step is not None and item.step < 0 for item in key):
            return without_text_in_fields(self._array.read(key))
        turned = [_forward(item, length) for item, length in zip(key, self.shape, strict=True)]
        read = without_text_in_fields(self._array.read(tuple(item for item, _ in turned)))
        kept = (flip for item, flip in turned if not isinstance(item, int | np.integer))
        return read[tuple(slice(None, None, -1 if flip else 1) for flip in kept)]

    def __dask_tokenize__(self) -> Any:
        return self._recipe[2]


def _unopened(shape: tuple[int, ...], dtype: np.dtype[Any], recipe: tuple[Any, ...]) -> LazyArray:
    lazy = LazyArray.__new__(LazyArray)
    lazy.shape, lazy.dtype, lazy._recipe = shape, dtype, recipe
    return lazy


@lru_cache(maxsize=MOST_FILES)
def _root_again(recipe: bytes, version: str) -> Group:  # noqa: ARG001 -- a file that changed is opened again
    again, arguments = pickle.loads(recipe)
    return root_of(again(*arguments))


def _forward(item: Any, length: int) -> tuple[Any, bool]:
    """Select the same elements with a positive step.

    Returns
    -------
    tuple[Any, bool]
        The integer, list or slice; and whether it selects the elements in reverse order.
    """
    if not isinstance(item, slice) or item.step is None or item.step > 0:
        return item, False
    positions = range(*item.indices(length))
    return (slice(positions[-1], positions[0] + 1, -positions.step) if positions else slice(0, 0)), True


class ArchiveDataStore(AbstractDataStore):
    """The arrays of one group as xarray's variables.

    Parameters
    ----------
    group : Group
        The group; groups below it are not included.
    drop_variables : Iterable[str]
        Names to leave out.
    phony : PhonyDimensions or None
        Names for axes without a name, numbered through the whole tree; by default they are numbered within the group.
    """

    def __init__(self, group: Group, drop_variables: Iterable[str] = (), phony: PhonyDimensions | None = None) -> None:
        self._group = group
        dropped = set(drop_variables)
        names = (PhonyDimensions(group) if phony is None else phony).names(group)
        called = {name: name.removeprefix(NON_COORDINATE) for name in names}
        self._arrays = {called[name]: array for name, array in group.arrays.items() if called[name] not in dropped}
        self._dimensions = {called[name]: dimensions for name, dimensions in names.items()}
        self._lazy: list[LazyArray] = []

    def get_variables(self) -> dict[str, Variable]:
        """Return the variables by name, without placeholders for dimensions and arrays that have no elements."""
        return {name: self._variable(name, array) for name, array in self._arrays.items() if array.is_variable}

    def _variable(self, name: str, array: Array) -> Variable:
        dimensions = self._dimensions[name]
        lazy, said = LazyArray(array), encoding(array, dimensions)
        if array.is_text and not _is_loaded(array):
            said["dtype"] = array.dtype
        lazy.is_opening = array.dtype.hasobject and said["dtype"] is not str
        self._lazy.append(lazy)
        return Variable(dimensions, indexing.LazilyIndexedArray(lazy), _attributes(array), said)

    def end_opening(self) -> None:
        """Read objects from now on: xarray has opened the dataset."""
        for lazy in self._lazy:
            lazy.is_opening = False

    def get_attrs(self) -> dict[str, Any]:
        """Return the attributes of the group."""
        return _attributes(self._group)

    def get_dimensions(self) -> dict[str, int]:
        """Return the length of each dimension by its name."""
        pairs = ((self._dimensions[name], array.shape) for name, array in self._arrays.items())
        return {name: length for names, shape in pairs for name, length in zip(names, shape, strict=True)}

    def get_encoding(self) -> dict[str, Any]:
        """Return `unlimited_dims`: the names of the dimensions without a maximum length."""
        pairs = ((self._dimensions[name], array.max_shape) for name, array in self._arrays.items())
        unlimited = {name for names, most in pairs for name, length in zip(names, most, strict=False) if length is None}
        return {"unlimited_dims": unlimited}

    def close(self) -> None:
        """Close the file."""
        self._group.close()


def _is_loaded(array: Array) -> bool:
    """Whether xarray reads text while it opens the dataset, to convert it to NumPy's text of one fixed width.

    xarray does this with its engines for netCDF. With its engine for Zarr it leaves text in the file.
    """
    is_readable = array.via == "h5py" or not (array.unsupported or array.damaged)
    return array.is_text and array.format not in ("zarr", "references") and is_readable


def _attributes(node: Group | Array) -> dict[str, Any]:
    """Return attributes as xarray's other engines do, without those that a versioned file uses internally.

    An attribute that cannot be read is left out with a warning: it may be the scale of packed numbers.
    """
    own = bookkeeping(node.name, is_array=isinstance(node, Array))
    for name, reason in node.attrs.unreadable():
        if name not in own and name not in BOOKKEEPING:
            said = f"{printable(node.name)} of {printable(node.filename)} is left out: {printable(str(reason))}"
            warnings.warn(f"attribute {printable(name)!r} of {said}", UserWarning, stacklevel=2)
    kept = {name: value for name, value in attributes(node).items() if name not in own}
    return {name: as_netcdf(name, value, node) for name, value in kept.items()}


class Engine(BackendEntrypoint):
    """The entry point that xarray calls for `engine="hyperslab"`."""

    description = "Open HDF5, NetCDF, FITS, HDF4, Zarr and references to them: paths, URLs, stores, open files, bytes"
    supports_groups = True
    open_dataset_parameters: ClassVar[tuple[str, ...]] = (
        *("filename_or_obj", "mask_and_scale", "decode_times", "concat_characters", "decode_coords"),
        *("drop_variables", "use_cftime", "decode_timedelta", "group", "concat", "version", "allowed"),
        "open_options",
    )

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        concat: str | int | None = None,
        version: VersionKey = None,
        allowed: Locations | None = None,
        open_options: dict[str, Any] | None = None,
        **keywords: Any,
    ) -> Dataset:
        """Open one group as a dataset.

        Parameters
        ----------
        filename_or_obj : str, PathLike, bytes, file object, store, Group, or list of these
            What `hyperslab.open` can open: a path, a URL, a pattern such as `"2019-*.nc"`, bytes, an open file, or a
            store (docs/xarray.md); or a `hyperslab.Group` that is already open.
        drop_variables : str, iterable of str, or None
            Names of variables to leave out.
        group : str or None
            The path of the group; the root by default.
        concat : str, int or None
            The name or number of the dimension along which to concatenate several files.
        version : str, int, datetime or None
            The version to open, for a file with versions: its name; a time in UTC; 0 for the current version, -1 for
            its parent, and so on.
        allowed : iterable of str or PathLike, or None
            Folders and URLs that the file may lead to, as in `hyperslab.open`.
        open_options : dict or None
            Other keyword arguments for `hyperslab.open`, such as `cache_nbytes`.
        keywords : Any
            Keyword arguments for xarray's decoding (`mask_and_scale`, `decode_times`, ...), `storage_options` as in
            `hyperslab.open`, and keyword arguments of xarray's other engines (docs/xarray.md).

        Returns
        -------
        Dataset
            Its variables are read when you use them.

        Raises
        ------
        UsageError
            The engine cannot follow an option, or `group` is the path of an array.
        NoSuchGroup
            The file has no such group.
        TypeError
            No engine knows the keyword argument.
        """
        options, decoders, numbering = split(keywords)
        options = _options(options, open_options, concat=concat, version=version, allowed=allowed)
        opened = _group(filename_or_obj, group, options)
        decoded = self._decoded(opened, drop_variables, decoders, PhonyDimensions(opened, numbering))
        if not _is_path(filename_or_obj):  # xarray would keep the URL with its password and signature
            decoded.encoding["source"] = opened.filename
        return decoded

    def _decoded(
        self,
        group: Group,
        drop_variables: str | Iterable[str] | None,
        decoders: dict[str, Any],
        phony: PhonyDimensions,
    ) -> Dataset:
        dropped = [drop_variables] if isinstance(drop_variables, str) else list(drop_variables or ())
        store = ArchiveDataStore(group, dropped, phony)
        decoded = StoreBackendEntrypoint().open_dataset(store, drop_variables=dropped, **decoders)
        store.end_opening()
        return decoded

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        concat: str | int | None = None,
        version: VersionKey = None,
        allowed: Locations | None = None,
        open_options: dict[str, Any] | None = None,
        **keywords: Any,
    ) -> dict[str, Dataset]:
        """Open a group and all groups below it.

        The parameters are those of `open_dataset`.

        Returns
        -------
        dict[str, Dataset]
            Each dataset by its path relative to `group`; `"/"` is `group` itself.
        """
        options, decoders, numbering = split(keywords)
        options = _options(options, open_options, concat=concat, version=version, allowed=allowed)
        top = _group(filename_or_obj, group, options)
        phony, by_path = PhonyDimensions(top, numbering), groups_by_path(top)
        return {f"/{path}": self._decoded(each, drop_variables, decoders, phony) for path, each in by_path}

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> DataTree:
        """Open a group and all groups below it as a tree. The parameters are those of `open_dataset`."""
        from xarray import DataTree

        groups = self.open_groups_as_dict(filename_or_obj, **options)
        tree = DataTree.from_dict(groups)
        for path, group in groups.items():
            tree[path].set_close(group._close)
        if not _is_path(filename_or_obj) and tree.variables:
            tree.encoding["source"] = next(iter(tree.variables.values())).encoding.get("source")
        return tree

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether the name or the first bytes show a file that hyperslab reads. xarray asks its own engines first.

        It asks its engine "zarr" last, so hyperslab leaves names of Zarr to it: if you install hyperslab, xarray still
        chooses the engine that it chose before.
        """
        if isinstance(filename_or_obj, Group):
            return True
        if isinstance(filename_or_obj, str | os.PathLike):
            name = str(filename_or_obj).rstrip("/")
            if name.endswith(".zarr") and find_spec("zarr") is not None:
                return False
            if name.endswith(SUFFIXES):
                return True
        return begins_like_a_file(filename_or_obj)


def _is_path(source: Any) -> bool:
    """Whether `source` is a local path."""
    return isinstance(source, str | os.PathLike) and "://" not in str(source) and "::" not in str(source)


def _options(given: dict[str, Any], open_options: dict[str, Any] | None, **named: Any) -> dict[str, Any]:
    """Collect the keyword arguments for `hyperslab.open`."""
    options = {**(open_options or {}), **{name: value for name, value in named.items() if value is not None}}
    if "storage_options" in given:
        options["storage_options"] = {**(options.get("storage_options") or {}), **given["storage_options"]}
    return options


def _group(source: Any, path: str | None, options: dict[str, Any]) -> Group:
    if path is not None and not isinstance(path, str):
        raise ValueError(f"group={path!r} must be a string: the path of a group")
    if isinstance(source, Group) and options:
        raise UsageError(f"{', '.join(options)}: {source.filename} is already open, so give this to hyperslab.open")
    root = source if isinstance(source, Group) else open(source, **options)
    if options.get("version") is not None and path is not None:
        path = path.lstrip("/")  # relative to the version, not to the file
    try:
        chosen = root if path is None else root[path]
    except KeyError as error:
        raise NoSuchGroup(f"{error.args[0]}: no group {path!r}") from error
    if not isinstance(chosen, Group):
        raise UsageError(f"{path!r} of {root.filename} is an array: give the group that contains it")
    return chosen
