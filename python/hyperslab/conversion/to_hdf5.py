"""Converts any archive to HDF5 or NetCDF4, from its groups, arrays, attributes and dimensions.

Dimensions become dimension scales. For NetCDF4 they get what netCDF-C writes itself: identifiers, a marked array for
each dimension without a variable, tracked orders, and the record of the library that wrote the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from hyperslab._core import __version__
from hyperslab.archive.conventions import cf
from hyperslab.archive.tree.dimensions import PhonyDimensions
from hyperslab.conversion.encoding import SlabEncoder
from hyperslab.conversion.filling import Filling
from hyperslab.conversion.hdf5_target import Hdf5Array, WrittenByLibhdf5, created_array, creation_list
from hyperslab.conversion.index_room import Indexed, IndexRoom, planned_counts, set_chunk_index_width
from hyperslab.conversion.partial_file import PartialFile, created
from hyperslab.conversion.reading import (
    NON_COORDINATE_PREFIX,
    BoxReader,
    bookkeeping_of,
    check_readable,
    limits_of,
    link_of,
    member_of,
    name_in_copy,
)
from hyperslab.conversion.sources import check_external, missing_sources
from hyperslab.conversion.wishes import ArrayWish, Wish, shape_of, usual_chunk_shape
from hyperslab.errors import HyperslabError, Refused, printable
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.references import zarr2
from hyperslab.storage.chain import CodecChain, Filter, needs

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array
    from hyperslab.archive.tree.group import Group

ONLY_DIMENSION = "This is a netCDF dimension but not a netCDF variable."
TRACKED = h5py.h5p.CRT_ORDER_TRACKED | h5py.h5p.CRT_ORDER_INDEXED
# Chunks without codecs of at most this many bytes gain nothing.
SMALL_NBYTES = 64 << 10
# Elements that wait in memory until the room for indexes is reserved; more are written at once, in front of it.
MOST_KEPT_NBYTES = 64 << 20


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
        self._small: list[tuple[h5py.Dataset, Any]] = []
        self._small_nbytes = 0
        creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        creation.set_link_creation_order(TRACKED)
        creation.set_attr_creation_order(TRACKED)
        creation.set_obj_track_times(False)
        width = set_chunk_index_width(creation, planned_counts(source, wish))
        self.target: Any = created(file, creation, low=int(h5py.h5f.LIBVER_V18))
        self.room: IndexRoom = IndexRoom(self.target, int(h5py.h5f.LIBVER_V18), width)
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
            self._attributes(made, group, path or "/")
            self._members(path, group, made, waiting)
        self._attach()

    def small(self) -> list[Indexed | None]:
        """The arrays that are not worth our threads."""
        return [Indexed.of_small(made.id) for made, _ in self._small]

    def write_small(self) -> None:
        """Write the elements of these."""
        for made, elements in self._small:
            raise_pending_signals()
            made[...] = elements
        self._small.clear()

    def close(self) -> None:
        """Close the file."""
        self.room.close()
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
            shown = name or name_in_copy(self._root, group, name)
            below = f"{path}/{shown}" if path else shown
            if "/" in name:
                self.losses.append((below, "HDF5 has no names with a slash"))
            elif kind == "soft":
                made[name] = h5py.SoftLink(link_of(group, name))
            elif kind == "external":
                made[name] = h5py.ExternalLink(*link_of(group, name))
            elif kind in ("group", "array"):
                member = member_of(group, name)
                if isinstance(member, str):
                    self.losses.append((below, member))
                    continue
                known = self._hard.get((kind == "group", member.key))
                if known is not None:
                    made[name] = self.target[known]
                elif kind == "group":
                    inner.append((below, member))
                    self._hard[True, member.key] = below
                else:
                    self._hard[False, member.key] = below
                    self._array(below, shown, member, made, names.get(name) if self._is_netcdf else member.dims)
            else:
                self.losses.append((below, f"it cannot be read: {printable(str(link_of(group, name)))}"))
        waiting.extend(reversed(inner))

    def _array(self, path: str, name: str, array: Any, parent: h5py.Group, dims: tuple[str, ...] | None) -> None:
        if array.is_dimension_only:
            return
        try:
            check_readable(array)
            if self._is_netcdf and not _is_of_netcdf(array):
                raise Refused(f"NetCDF has no elements of the type {array.dtype}")
            check_external(array)
            gone = missing_sources(array)
            if gone is not None:
                self.losses.append((path, gone))  # it is copied all the same, if you allow that
            limits = self._wish.of(path).limits(limits_of(self._root, array))
            scales = self._dimensions(array, dims, limits, parent)
            made = self._created(path, name, array, parent, scales, dims, limits)
        except HyperslabError as error:
            self.losses.append((path, str(error)))
            return
        except TypeError as error:  # h5py's, of a dtype that HDF5 does not have
            self.losses.append((path, f"HDF5 has no elements of the type {array.dtype}: {error}"))
            return
        self._attributes(made, array, path, is_array_of_zarr=array.format in ("zarr", "references"))
        if self._is_netcdf and array.dtype.kind == "b":
            self._put_attribute(made, "dtype", "bool")  # as xarray writes and reads it
        fill = zarr2.marked(array) if array.format in ("zarr", "references") else None
        if fill is not None and array.dtype.kind in "iuf":
            self._put_attribute(made, "_FillValue", fill)
        self._made.append((made, scales))
        if len(scales) == array.ndim == 1 and scales[0].name == name and scales[0].group == parent:
            scales[0].array = made

    def _dimensions(
        self, array: Array, dims: tuple[str, ...] | None, limits: Sequence[int | None], parent: h5py.Group
    ) -> list[Scale]:
        """The scales of the axes: those of this group or of the groups around it, or new ones in this group."""
        if dims is None or array.is_null:
            return []
        scales = []
        for axis, name in enumerate(dims):
            length, can_grow = array.shape[axis], limits[axis] is None
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
            scales.append(known)
        return scales

    def _created(
        self,
        path: str,
        name: str,
        array: Array,
        parent: h5py.Group,
        scales: list[Scale],
        dims: tuple[str, ...] | None,
        most: tuple[int | None, ...],
    ) -> h5py.Dataset:
        stored = self._stored_name(name, parent, scales, dims)
        dtype = self._stored_dtype(array)
        if array.is_null:
            return parent.create_dataset(stored, dtype=dtype, shape=None)
        kind = h5py.h5t.py_create(dtype, logical=True)
        limits = tuple(h5py.h5s.UNLIMITED if limit is None else limit for limit in most)
        space = h5py.h5s.create_simple(array.shape, limits) if array.shape else h5py.h5s.create(h5py.h5s.SCALAR)
        wish, width = self._wish.of(path), array.dtype.itemsize
        has_objects = _has_variable_length(array)
        if wish.is_contiguous and array.shape and not has_objects:
            return self._in_one_piece(path, array, parent, stored, kind)
        chunks, chain = self._chunks_and_codec(array, wish, dims, most)
        if has_objects and array.shape and (wish.codec is not None or wish.chunks is not None):
            self.notes.append((path, "its elements have variable length, so it is stored without chunks and codecs"))
        filters, steps = chain.hdf5(width, math.prod(chunks) * width) if chunks and not has_objects else ([], [])
        needed = needs(number for number, *_ in filters)
        if needed is not None:
            self.notes.append((path, f"its readers need {needed}"))
        if chunks is None or has_objects or 0 in array.shape:
            return self._by_h5py(array, parent, stored, kind, space, chunks, filters)
        settings = creation_list(None, chunks, filters)
        fill = _fill_of(array)
        settings.set_fill_value(np.frombuffer(fill, dtype, 1)[0:1].reshape(()))
        settings.set_attr_creation_order(TRACKED)
        settings.set_obj_track_times(False)
        made = created_array(parent.id, stored.encode(), kind, space, settings)
        target = Hdf5Array(self._file, made, SlabEncoder(chunks, tuple(steps), fill, self._threads))
        read = BoxReader(array, self._threads)
        path = _path_in(parent, stored)
        self.fillings.append(Filling(path, array.shape, width, fill, array.chunks, chunks, read, target))
        return h5py.Dataset(made)

    def _stored_name(self, name: str, parent: h5py.Group, scales: list[Scale], dims: tuple[str, ...] | None) -> str:
        """The name of an array; netCDF-C gives another one to an array that has the name of a dimension by chance."""
        is_of_itself = len(scales) == 1 and scales[0].name == name
        is_by_chance = name in self._scales.get(parent.name, {}) and name not in (dims or ()) and not is_of_itself
        return NON_COORDINATE_PREFIX + name if self._is_netcdf and is_by_chance else name

    @staticmethod
    def _chunks_and_codec(
        array: Array, wish: ArrayWish, dims: tuple[str, ...] | None, most: tuple[int | None, ...]
    ) -> tuple[tuple[int, ...] | None, CodecChain]:
        """The chunk shape, None for an array in one piece, and the codec."""
        chain = CodecChain.nearest(array.codecs, array.filters) if wish.codec is None else wish.codec
        if not array.shape:
            return None, chain
        width, can_grow = array.dtype.itemsize, None in most
        chunks = shape_of(wish.chunks, array.shape, dims, array.chunks, most)
        is_few = array.nbytes <= SMALL_NBYTES and array.chunks is None and wish.codec is None
        if chunks is None and (can_grow or ((chain.codec or chain.shuffle) and not is_few)):
            chunks = usual_chunk_shape(array.shape, width)
        if _has_variable_length(array) or 0 in array.shape:
            return (chunks if can_grow else None), chain
        if chunks is None and array.nbytes > SMALL_NBYTES:
            chunks, chain = usual_chunk_shape(array.shape, width), wish.codec or CodecChain()
        if chunks is None:
            return None, chain
        bounds = zip(chunks, most, strict=True)
        return tuple(one if limit is None else min(one, max(limit, 1)) for one, limit in bounds), chain

    def _in_one_piece(self, path: str, array: Array, parent: h5py.Group, name: str, kind: Any) -> h5py.Dataset:
        """An array without chunks, which libhdf5 writes."""
        if None in array.max_shape:
            self.notes.append((path, "an array in one piece cannot grow"))
        settings, fill, width = creation_list(None, None, []), _fill_of(array), array.dtype.itemsize
        settings.set_fill_value(np.frombuffer(fill, self._stored_dtype(array), 1)[0:1].reshape(()))
        settings.set_attr_creation_order(TRACKED)
        settings.set_obj_track_times(False)
        made = created_array(parent.id, name.encode(), kind, h5py.h5s.create_simple(array.shape), settings)
        if array.size:
            unit = usual_chunk_shape(array.shape, width)
            target = WrittenByLibhdf5(self._file, made, array.dtype, SlabEncoder(unit, (), fill, self._threads))
            read = BoxReader(array, self._threads)
            inner = _path_in(parent, name)
            self.fillings.append(Filling(inner, array.shape, width, fill, array.chunks, unit, read, target))
        return h5py.Dataset(made)

    def _by_h5py(
        self,
        array: Array,
        parent: h5py.Group,
        name: str,
        kind: Any,
        space: Any,
        chunks: tuple[int, ...] | None,
        filters: Sequence[Filter] = (),
    ) -> h5py.Dataset:
        """A small array, an empty one, or one of values of variable length."""
        settings = creation_list(None, chunks, list(filters))
        settings.set_attr_creation_order(TRACKED)
        settings.set_obj_track_times(False)
        if array.dtype.kind in "biufc" and not array.dtype.hasobject and array.dtype.names is None:
            settings.set_fill_value(np.frombuffer(_fill_of(array), self._stored_dtype(array), 1).reshape(()))
        made = h5py.Dataset(created_array(parent.id, name.encode(), kind, space, settings))
        if array.size:
            elements = np.asarray(array.read())
            if array.dtype.kind == "U":
                elements = elements.astype(object)
            if self._is_netcdf and array.dtype.kind == "b":
                elements = elements.view(np.int8)
            self._small_nbytes += elements.nbytes
            is_sure = not elements.dtype.hasobject or array.is_text or array.dtype.kind == "U"  # that h5py writes it
            if is_sure and self._small_nbytes <= MOST_KEPT_NBYTES:
                self._small.append((made, elements))
            else:
                made[...] = elements
        return made

    def _stored_dtype(self, array: Array) -> Any:
        if self._is_netcdf and array.dtype.kind == "b":
            return np.dtype(np.int8)
        if array.dtype.kind in "mM":
            return h5py.opaque_dtype(array.dtype)  # as h5py stores dates
        if array.is_text or array.dtype.kind == "U":
            about: Mapping[str, Any] = array.dtype.metadata or {}
            return h5py.string_dtype(about.get("h5py_encoding", "utf-8"))
        return array.dtype

    def _attributes(self, holder: Any, node: Any, path: str, *, is_array_of_zarr: bool = False) -> None:
        """Copy attributes; `_FillValue` of an array in Zarr is written as a number of the array's dtype later."""
        attributes, left = node.attrs, bookkeeping_of(self._root, node)
        for name in (one for one in attributes if one not in left):
            try:
                if name == "_NCProperties" or (name == "_FillValue" and is_array_of_zarr):
                    continue
                value = attributes[name]
                if isinstance(value, dict | list):
                    value = json.dumps(value)
                    self.notes.append((path, f"its attribute {printable(name)!r} is JSON, and becomes text"))
                self._put_attribute(holder, name, value)
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
                    if scale.name in scale.group and not self._renamed(scale):
                        name = f"{scale.group.name}/{scale.name}".lstrip("/")
                        self.losses.append((name, "its name is that of a dimension"))
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

    def _renamed(self, scale: Scale) -> bool:
        """Give an array that has the name of a dimension, but is not its variable, the name that netCDF-C gives it."""
        if not self._is_netcdf or not isinstance(scale.group[scale.name], h5py.Dataset):
            return False
        name, old = NON_COORDINATE_PREFIX + scale.name, _path_in(scale.group, scale.name)
        scale.group.move(scale.name, name)
        for filling in self.fillings:
            if filling.path == old:
                filling.path = _path_in(scale.group, name)
        return True


def _path_in(group: h5py.Group, name: str) -> str:
    return f"{group.name}/{name}".lstrip("/")


def _has_variable_length(array: Array) -> bool:
    """Whether HDF5 stores the elements as text or sequences of variable length."""
    return array.dtype.hasobject or array.dtype.kind == "U"


def _is_of_netcdf(array: Array) -> bool:
    """Whether netCDF-C reads elements of this type; it skips others without a word."""
    if _has_variable_length(array):
        return array.is_text or array.dtype.kind == "U"
    return array.dtype.kind in "Sbiu" or (array.dtype.kind == "f" and array.dtype.itemsize in (4, 8))


def _fill_of(array: Array) -> bytes:
    """The fill value: CF's, or the one that the source declares."""
    given = cf.fill_value(array)
    if given is not None and array.dtype.kind in "biuf":
        element = np.asarray(given).reshape(-1)
        if element.size == 1 and element.dtype.kind in "biuf":
            return bytes(element[0].astype(array.dtype).tobytes())
    return array.fill_bytes
