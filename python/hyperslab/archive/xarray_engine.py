"""xarray's engine "hyperslab": `xr.open_dataset(path, engine="hyperslab", chunks={})`.

Variables stay in the file until they are indexed; reads hold no lock, so Dask's threads really run side by side.
Masks, scales, times and text are decoded by xarray itself, exactly as for its other engines.
Interface: "How to add a new backend" in xarray's documentation.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, StoreBackendEntrypoint
from xarray.core import indexing

from hyperslab.archive.allowed import Locations
from hyperslab.archive.array import Array
from hyperslab.archive.cf import attributes
from hyperslab.archive.dimensions import PhonyDimensions
from hyperslab.archive.encoding import as_netcdf, encoding, without_text_in_fields
from hyperslab.archive.opening import open
from hyperslab.archive.signatures import begins_like_a_file
from hyperslab.archive.tree import Group
from hyperslab.archive.walking import groups_by_path
from hyperslab.archive.xarray_options import split
from hyperslab.cached import cached_property
from hyperslab.errors import NoSuchGroup, UsageError
from hyperslab.versions.layout.names import bookkeeping

if TYPE_CHECKING:
    from xarray import DataTree

    from hyperslab.versions.layout.table import VersionKey

SUFFIXES = (
    ".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".he5", ".hdf", ".h4", ".fits", ".fit", ".fts", ".zarr", ".hs", ".dmrpp",
)  # fmt: skip
MOST_FILES = 32  # that tasks of other processes are about, kept open
# What NetCDF-4 puts before the name of a variable that is called like a dimension, but is not its coordinate.
NON_COORDINATE = "_nc4_non_coord_"


_opening = [threading.Lock()]
if hasattr(os, "register_at_fork"):  # a thread that holds it is not there in a child
    os.register_at_fork(after_in_child=lambda: _opening.__setitem__(0, threading.Lock()))


class LazyArray(BackendArray):
    """An array of an archive as xarray indexes it: ints, slices and lists, axis by axis.

    It pickles as the recipe to find it again, and opens nothing before it is read: tasks pass through schedulers, which
    have neither the file nor the credentials. Tasks of one worker share the file.
    """

    # While it opens a dataset, xarray looks whether the first of an array's objects is a date. None of ours is one: it
    # gets None without a read, so that an array that cannot be read does not keep the others from being opened.
    is_opening = False

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape = array.shape
        self.dtype = array.dtype
        again, (*recipe, name) = array.__reduce__()
        self._recipe = ((again, *recipe), name, array.__dask_tokenize__())

    @cached_property
    def _array(self) -> Array:
        """The array; one that came from another process is found when it is first needed."""
        recipe, name, token = self._recipe
        with _opening[0]:  # threads of a worker share the file that the first of them opens
            found = _root_again(pickle.dumps(recipe), token[2])[name]
        assert isinstance(found, Array)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return _unopened, (self.shape, self.dtype, self._recipe)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        if self.is_opening and not any(key.tuple):
            return None
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """The same without blocking an event loop: the read runs in a thread, and without the interpreter."""
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
def _root_again(recipe: bytes, version: str) -> Group:  # noqa: ARG001 -- another version is another file
    again, *arguments = pickle.loads(recipe)
    root = again(*arguments, "/")
    assert isinstance(root, Group)
    return root


def _forward(item: Any, length: int) -> tuple[Any, bool]:
    """The same elements by a positive step, and whether they come the wrong way round then."""
    if not isinstance(item, slice) or item.step is None or item.step > 0:
        return item, False
    positions = range(*item.indices(length))
    return (slice(positions[-1], positions[0] + 1, -positions.step) if positions else slice(0, 0)), True


class ArchiveDataStore(AbstractDataStore):
    """A group of an archive as a flat set of variables."""

    def __init__(self, group: Group, drop_variables: Iterable[str] = (), phony: PhonyDimensions | None = None) -> None:
        self._group = group
        dropped = set(drop_variables)
        names = (PhonyDimensions(group) if phony is None else phony).names(group)
        called = {name: name.removeprefix(NON_COORDINATE) for name in names}
        self._arrays = {called[name]: array for name, array in group.arrays.items() if called[name] not in dropped}
        self._dimensions = {called[name]: dimensions for name, dimensions in names.items()}
        self._lazy: list[LazyArray] = []

    def get_variables(self) -> dict[str, Variable]:
        """Every variable; arrays that only stand for a dimension, or hold no elements, are none."""
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
        """From now on objects are read."""
        for lazy in self._lazy:
            lazy.is_opening = False

    def get_attrs(self) -> dict[str, Any]:
        """The group's attributes."""
        return _attributes(self._group)

    def get_dimensions(self) -> dict[str, int]:
        """The length of every dimension."""
        pairs = ((self._dimensions[name], array.shape) for name, array in self._arrays.items())
        return {name: length for names, shape in pairs for name, length in zip(names, shape, strict=True)}

    def get_encoding(self) -> dict[str, Any]:
        """The dimensions that may grow."""
        pairs = ((self._dimensions[name], array.max_shape) for name, array in self._arrays.items())
        unlimited = {name for names, most in pairs for name, length in zip(names, most, strict=False) if length is None}
        return {"unlimited_dims": unlimited}

    def close(self) -> None:
        """Let go of the file."""
        self._group.close()


def _is_loaded(array: Array) -> bool:
    """Whether xarray shall read text while it opens the dataset, to make it an array of one width.

    It does so for its own engines of netCDF, but leaves Zarr's text where it is.
    """
    is_readable = array.via == "h5py" or not (array.unsupported or array.damaged)
    return array.is_text and array.format not in ("zarr", "references") and is_readable


def _attributes(node: Group | Array) -> dict[str, Any]:
    """Attributes as xarray's other engines give them, without those that versioned files keep for themselves."""
    own = bookkeeping(node.name, is_array=isinstance(node, Array))
    found = {name: value for name, value in attributes(node).items() if name not in own}
    return {name: as_netcdf(name, value, node) for name, value in found.items()}


class Engine(BackendEntrypoint):
    """What xarray calls."""

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
        """One group as a dataset.

        Parameters
        ----------
        filename_or_obj : Any
            A path or URL, a list or a pattern of these, or a `hyperslab.Group` that is open.
        drop_variables : str | Iterable[str] | None
            Names to leave out.
        group : str | None
            The path of the group; the root by default.
        concat : str | int | None
            The dimension along which several files are concatenated.
        version : VersionKey
            Of a file with versions, the one to open: its name, a time in UTC, or 0, -1, ... for the current one, its
            parent, and so on.
        allowed : Locations | None
            Folders and URLs that the file may lead to, as for `hyperslab.open`.
        open_options : dict[str, Any] | None
            What `hyperslab.open` takes beside the path.
        keywords : Any
            What xarray decodes by: `mask_and_scale`, `decode_times`, ...; `storage_options`, as for `hyperslab.open`;
            and what its other engines take: docs/xarray.md.
        """
        options, decoders, numbering = split(keywords)
        options = _options(options, open_options, concat=concat, version=version, allowed=allowed)
        opened = _group(filename_or_obj, group, options)
        decoded = self._decoded(opened, drop_variables, decoders, PhonyDimensions(opened, numbering))
        if not _is_path(filename_or_obj):  # xarray would keep a URL as it is, with password and signature
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
        """Every group below one, by its path relative to it."""
        options, decoders, numbering = split(keywords)
        options = _options(options, open_options, concat=concat, version=version, allowed=allowed)
        top = _group(filename_or_obj, group, options)
        phony, found = PhonyDimensions(top, numbering), groups_by_path(top)
        return {f"/{path}": self._decoded(each, drop_variables, decoders, phony) for path, each in found}

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> DataTree:
        """Every group, as a tree."""
        from xarray import DataTree

        groups = self.open_groups_as_dict(filename_or_obj, **options)
        tree = DataTree.from_dict(groups)
        for path, group in groups.items():
            tree[path].set_close(group._close)
        if not _is_path(filename_or_obj) and tree.variables:
            tree.encoding["source"] = next(iter(tree.variables.values())).encoding.get("source")
        return tree

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether the name, or the first bytes, are those of a file that we read; xarray asks its own engines first.

        It asks its engine "zarr" last, so we leave names of Zarr to it: who installs hyperslab keeps the engine that
        xarray chose before.
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
    """Whether it is the path of a file of this machine."""
    return isinstance(source, str | os.PathLike) and "://" not in str(source) and "::" not in str(source)


def _options(given: dict[str, Any], open_options: dict[str, Any] | None, **named: Any) -> dict[str, Any]:
    """What `hyperslab.open` takes beside the path."""
    options = {**(open_options or {}), **{name: value for name, value in named.items() if value is not None}}
    if "storage_options" in given:
        options["storage_options"] = {**(options.get("storage_options") or {}), **given["storage_options"]}
    return options


def _group(source: Any, path: str | None, options: dict[str, Any]) -> Group:
    if path is not None and not isinstance(path, str):
        raise ValueError(f"group={path!r} must be a string: the path of a group")
    if isinstance(source, Group) and options:
        raise UsageError(f"{', '.join(options)}: only of a path or URL; {source.filename} is open already")
    root = source if isinstance(source, Group) else open(source, **options)
    if options.get("version") is not None and path is not None:
        path = path.lstrip("/")  # of the version, not of the file
    try:
        found = root if path is None else root[path]
    except KeyError as error:
        raise NoSuchGroup(f"{error.args[0]}: no group {path!r}") from error
    if not isinstance(found, Group):
        raise UsageError(f"{path!r} of {root.filename} is an array: give the group that it is in")
    return found
