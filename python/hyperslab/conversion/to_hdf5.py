"""Converts any archive to HDF5 or NetCDF4, from its groups, arrays, attributes and dimensions.

Dimensions become dimension scales. For NetCDF4 they get what netCDF-C writes itself: identifiers, a marked array for
each dimension without a variable, tracked orders, and the record of the library that wrote the file.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from hyperslab._core import __version__
from hyperslab.archive.dimensions import PhonyDimensions
from hyperslab.conversion.codecs import chain_of
from hyperslab.conversion.encoding import SlabEncoder
from hyperslab.conversion.filling import Filling
from hyperslab.conversion.hdf5_target import Hdf5Array, creation_list
from hyperslab.conversion.partial_file import PartialFile, created
from hyperslab.conversion.reading import BoxReader, link_of
from hyperslab.conversion.sources import missing_sources
from hyperslab.conversion.wishes import Wish, shape_of, usual_chunk_shape
from hyperslab.errors import HyperslabError, Refused, printable

if TYPE_CHECKING:
    from hyperslab.archive.array import Array
    from hyperslab.archive.tree import Group

ONLY_DIMENSION = "This is a netCDF dimension but not a netCDF variable."
NOT_COORDINATE = "_nc4_non_coord_"
TRACKED = h5py.h5p.CRT_ORDER_TRACKED | h5py.h5p.CRT_ORDER_INDEXED
# Chunks without codecs of at most this many bytes gain nothing.
SMALL_NBYTES = 64 << 10


class Scale:
    """A dimension: the array that stands for it, its length, and whether it can grow."""

    def __init__(self, group: h5py.Group, name: str, length: int, *, can_grow: bool) -> None:
        self.group = group
        self.name = name
        self.length = length
        self.can_grow = can_grow
        self.array: h5py.Dataset | None = None


class ToHdf5:
    """Creates the objects of a new HDF5 or NetCDF4 file, and lists the arrays to fill.

    Parameters
    ----------
    source : Group
        The source.
    file : PartialFile
        What libhdf5 writes to.
    wish : Wish
        The wanted chunks and codecs.
    threads : int | None
        How many threads encode.
    is_netcdf : bool
        Whether netCDF-C must read the file as one of its own.
    """

    def __init__(self, source: Group, file: PartialFile, wish: Wish, threads: int | None, *, is_netcdf: bool) -> None:
        self._root = source
        self._file = file
        self._wish = wish
        self._threads = threads
        self._is_netcdf = is_netcdf
        creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        creation.set_link_creation_order(TRACKED)
        creation.set_attr_creation_order(TRACKED)
        creation.set_obj_track_times(False)
        self.target = created(file, creation, low=int(h5py.h5f.LIBVER_V18))
        self._phony = PhonyDimensions(source)
        self._scales: dict[str, dict[str, Scale]] = {}
        self._made: list[tuple[h5py.Dataset, list[Scale]]] = []
        self._hard: dict[tuple[bool, tuple[int, int]], str] = {}
        self.fillings: list[Filling] = []
        self.losses: list[tuple[str, str]] = []
        self.notes: list[tuple[str, str]] = []

    def build(self) -> None:
        """Create everything but the elements of chunked arrays."""
        if self._is_netcdf:
            library = ".".join(map(str, h5py.version.hdf5_version_tuple))
            self._put_attribute(self.target["/"], "_NCProperties", f"version=2,hyperslab={__version__},hdf5={library}")
        waiting = [("", self._root)]
        while waiting:
            path, group = waiting.pop()
            self._hard[True, group.key] = path or "/"
            made = self._group(path)
            self._attributes(made, group.attrs, path or "/")
            self._members(path, group, made, waiting)
        self._attach()

    def close(self) -> None:
        """Close the file."""
        self.target.close()

    def _group(self, path: str) -> h5py.Group:
        if not path:
            return self.target["/"]
        settings = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
        settings.set_link_creation_order(TRACKED)
        settings.set_attr_creation_order(TRACKED)
        parent, _, name = path.rpartition("/")
        inner = self.target[f"/{parent}"].id
        return h5py.Group(h5py.h5g.create(inner, name.encode(), gcpl=settings))

    def _members(self, path: str, group: Group, made: h5py.Group, waiting: list[tuple[str, Group]]) -> None:
        names = self._phony.names(group)
        inner: list[tuple[str, Any]] = []
        for name, kind in group.kinds():
            below = f"{path}/{name}" if path else name
            if "/" in name:
                self.losses.append((below, "HDF5 has no names with a slash"))
            elif kind == "soft":
                made[name] = h5py.SoftLink(link_of(group, name))
            elif kind == "external":
                made[name] = h5py.ExternalLink(*link_of(group, name))
            elif kind in ("group", "array"):
                found: Any = group[name]
                known = self._hard.get((kind == "group", found.key))
                if known is not None:
                    made[name] = self.target[known]
                elif kind == "group":
                    inner.append((below, found))
                    self._hard[True, found.key] = below
                else:
                    self._hard[False, found.key] = below
                    self._array(below, name, found, made, names.get(name) if self._is_netcdf else found.dims)
            else:
                self.losses.append((below, f"it cannot be read: {printable(str(link_of(group, name)))}"))
        waiting.extend(reversed(inner))

    def _array(self, path: str, name: str, array: Any, parent: h5py.Group, dims: tuple[str, ...] | None) -> None:
        if array.is_dimension_only:
            return
        try:
            if array.damaged or (array.unsupported and array.via != "h5py"):
                raise Refused(array.damaged or array.unsupported)
            if self._is_netcdf and not _is_of_netcdf(array):
                raise Refused(f"NetCDF has no elements of the type {array.dtype}")
            gone = missing_sources(array)
            if gone is not None:
                self.losses.append((path, gone))  # it is copied all the same, if you allow that
            scales = self._dimensions(array, dims, parent)
            made = self._created(path, name, array, parent, scales, dims)
        except HyperslabError as error:
            self.losses.append((path, str(error)))
            return
        self._attributes(made, array.attrs, path)
        if self._is_netcdf and array.dtype.kind == "b":
            self._put_attribute(made, "dtype", "bool")  # as xarray writes and reads it
        has_fill = array.fill_is_missing and array.fill_value is not None and array.dtype.kind != "b"
        if has_fill and "_FillValue" not in array.attrs:
            self._put_attribute(made, "_FillValue", array.fill_value)
        self._made.append((made, scales))
        if len(scales) == array.ndim == 1 and scales[0].name == name and scales[0].group == parent:
            scales[0].array = made

    def _dimensions(self, array: Array, dims: tuple[str, ...] | None, parent: h5py.Group) -> list[Scale]:
        """The scales of the axes: those of this group or of the groups around it, or new ones in this group."""
        if dims is None or array.is_null:
            return []
        found = []
        for axis, name in enumerate(dims):
            length, can_grow = array.shape[axis], array.max_shape[axis] is None
            group: h5py.Group = parent
            known = None
            while True:
                known = self._scales.get(group.name, {}).get(name)
                if known is not None or group.name == "/":
                    break
                group = group.parent
            if known is not None and known.length != length:
                if group == parent:
                    said = f"its dimension {printable(name)!r} has the length {length}, but {known.length} elsewhere"
                    raise Refused(f"{said}, which NetCDF does not allow in one group")
                known = None
            if known is None:
                known = Scale(parent, name, length, can_grow=can_grow)
                self._scales.setdefault(parent.name, {})[name] = known
            known.can_grow |= can_grow
            found.append(known)
        return found

    def _created(
        self,
        path: str,
        name: str,
        array: Array,
        parent: h5py.Group,
        scales: list[Scale],
        dims: tuple[str, ...] | None,
    ) -> h5py.Dataset:
        stored = name
        is_of_itself = len(scales) == 1 and scales[0].name == name
        if (
            self._is_netcdf
            and not is_of_itself
            and name in self._scales.get(parent.name, {})
            and name not in (dims or ())
        ):
            stored = NOT_COORDINATE + name
        if array.is_null:
            return parent.create_dataset(stored, dtype=self._stored_dtype(array), shape=None)
        dtype = self._stored_dtype(array)
        kind = h5py.h5t.py_create(dtype, logical=True)
        can_grow = any(limit is None for limit in array.max_shape)
        limits = tuple(h5py.h5s.UNLIMITED if limit is None else limit for limit in array.max_shape)
        space = h5py.h5s.create_simple(array.shape, limits) if array.shape else h5py.h5s.create(h5py.h5s.SCALAR)
        wish = self._wish.of(path)
        width = array.dtype.itemsize
        chunks = shape_of(wish.chunks, array.shape, dims, array.chunks) if array.shape else None
        chain = wish.codec or chain_of(array.codecs, array.filters)
        is_few = array.nbytes <= SMALL_NBYTES and array.chunks is None and wish.chunks is None
        if chunks is None and array.shape and (can_grow or ((chain.codec or chain.shuffle) and not is_few)):
            chunks = usual_chunk_shape(array.shape, width)
        if array.dtype.hasobject or not array.shape or 0 in array.shape:
            return self._by_h5py(array, parent, stored, kind, space, chunks if can_grow else None)
        if chunks is None:
            chunks = usual_chunk_shape(array.shape, width) if array.nbytes > SMALL_NBYTES else None
            chain = wish.codec or type(chain)()
        if chunks is None:
            return self._by_h5py(array, parent, stored, kind, space, None)
        grown = zip(chunks, array.shape, array.max_shape, strict=True)
        chunks = tuple(one if limit is None else min(one, max(length, 1)) for one, length, limit in grown)
        filters, steps = chain.hdf5(width, math.prod(chunks) * width)
        settings = creation_list(None, chunks, filters)
        fill = _fill_of(array)
        settings.set_fill_value(np.frombuffer(fill, dtype, 1)[0:1].reshape(()))
        settings.set_attr_creation_order(TRACKED)
        settings.set_obj_track_times(False)
        made = h5py.h5d.create(parent.id, stored.encode(), kind, space, settings)
        target = Hdf5Array(self._file, made, SlabEncoder(chunks, tuple(steps), fill, self._threads))
        read = BoxReader(array, self._threads)
        self.fillings.append(Filling(path, array.shape, width, fill, array.chunks, chunks, read, target))
        return h5py.Dataset(made)

    def _by_h5py(
        self, array: Array, parent: h5py.Group, name: str, kind: Any, space: Any, chunks: tuple[int, ...] | None
    ) -> h5py.Dataset:
        """A small array, or one of values of variable length."""
        settings = creation_list(None, chunks, [])
        settings.set_attr_creation_order(TRACKED)
        settings.set_obj_track_times(False)
        if array.dtype.kind in "biufc" and not array.dtype.hasobject and array.dtype.names is None:
            settings.set_fill_value(np.frombuffer(_fill_of(array), self._stored_dtype(array), 1).reshape(()))
        made = h5py.Dataset(h5py.h5d.create(parent.id, name.encode(), kind, space, settings))
        if array.size:
            elements = np.asarray(array.read())
            made[...] = elements.view(np.int8) if self._is_netcdf and array.dtype.kind == "b" else elements
        return made

    def _stored_dtype(self, array: Array) -> Any:
        if self._is_netcdf and array.dtype.kind == "b":
            return np.dtype(np.int8)
        return h5py.string_dtype() if array.is_text else array.dtype

    def _attributes(self, holder: Any, attributes: Any, path: str) -> None:
        for name in attributes:
            try:
                if name != "_NCProperties":
                    self._put_attribute(holder, name, attributes[name])
            except (HyperslabError, TypeError, ValueError, OSError, RuntimeError) as error:
                said = f"its attribute {printable(name)!r} cannot be written: {error}"
                self.losses.append((path, said))

    def _put_attribute(self, holder: Any, name: str, value: Any) -> None:
        """Write an attribute as netCDF-C does: text of fixed length, and lists even of one number."""
        key = name.encode()
        if value is None:
            holder.attrs[name] = h5py.Empty("f4")
            return
        if isinstance(value, str | bytes):
            text = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
            if b"\0" in text or not text:
                kind = h5py.h5t.TypeID.copy(h5py.h5t.C_S1)
                space = h5py.h5s.create(h5py.h5s.NULL) if not text else h5py.h5s.create(h5py.h5s.SCALAR)
                kind.set_size(max(len(text), 1))
                made = h5py.h5a.create(holder.id, key, kind, space)
                if text:
                    made.write(np.array(text, f"S{len(text)}"))
                return
            kind = h5py.h5t.TypeID.copy(h5py.h5t.C_S1)
            kind.set_size(len(text))
            if not text.isascii():
                kind.set_cset(h5py.h5t.CSET_UTF8)
            made = h5py.h5a.create(holder.id, key, kind, h5py.h5s.create(h5py.h5s.SCALAR))
            made.write(np.array(text, f"S{len(text)}"), kind)
            return
        elements = np.asarray(value)
        if elements.dtype.kind in "UO":
            elements = np.asarray(elements, h5py.string_dtype())
        if self._is_netcdf and elements.ndim == 0:
            elements = elements.reshape(1)
        if elements.dtype.kind == "b" and self._is_netcdf:
            elements = elements.astype(np.int8)
        holder.attrs.create(name, elements)

    def _attach(self) -> None:
        """Make the arrays of dimensions scales, and attach them to the axes that they name."""
        number = 0
        for scales in self._scales.values():
            for scale in scales.values():
                if scale.array is None:
                    if scale.name in scale.group:
                        self.losses.append((f"{scale.group.name}/{scale.name}", "its name is that of a dimension"))
                        continue
                    limits = (None if scale.can_grow else scale.length,)
                    chunks = (1024,) if scale.can_grow else None
                    scale.array = scale.group.create_dataset(
                        scale.name, (scale.length,), ">f4", maxshape=limits, chunks=chunks, track_times=False
                    )
                    scale.array.make_scale(f"{ONLY_DIMENSION}{scale.length:10d}")
                else:
                    scale.array.make_scale(scale.name)
                if self._is_netcdf:
                    scale.array.attrs.create("_Netcdf4Dimid", np.int32(number))
                    number += 1
        for made, attached in self._made:
            for axis, scale in enumerate(attached):
                if scale.array is not None and scale.array.id != made.id:
                    made.dims[axis].attach_scale(scale.array)


def _is_of_netcdf(array: Array) -> bool:
    """Whether netCDF-C reads elements of this type; it skips others without a word."""
    if array.dtype.hasobject:
        return array.is_text
    return array.dtype.kind in "Sbiu" or (array.dtype.kind == "f" and array.dtype.itemsize in (4, 8))


def _fill_of(array: Array) -> bytes:
    """The fill value: CF's, or the one that the source declares."""
    given = array.attrs.get("_FillValue", None)
    if given is not None and array.dtype.kind in "biuf":
        element = np.asarray(given).reshape(-1)
        if element.size == 1 and element.dtype.kind in "biuf":
            return bytes(element[0].astype(array.dtype).tobytes())
    return array.fill_bytes
