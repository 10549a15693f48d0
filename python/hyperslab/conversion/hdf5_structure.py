"""Copies what an HDF5 file has besides the elements of its arrays: groups, types, links, attributes and references.

Every object is created again, under its own first path, with its own property list, so that tracked orders and fill
values stay. References and links to the same object lead to the same new object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import h5py
import numpy as np

from hyperslab.errors import printable
from hyperslab.libhdf5 import loaded


@dataclass
class Original:
    """An array of the source and where its copy goes."""

    path: str
    source: Any  # h5py's low-level array
    parent: Any  # the group of the copy, low-level
    name: bytes
    own_shape: tuple[int, ...] | None = None  # of an array of a version, whose source is the stack of its chunks

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Its shape; None for a null dataspace."""
        return self.own_shape if self.own_shape is not None else self.source.shape

    @property
    def limits(self) -> tuple[int | None, ...]:
        """The lengths to which the axes can grow; None for any length."""
        if self.own_shape is not None:
            return (None,) * len(self.own_shape)  # as in the next version
        most = self.source.get_space().get_simple_extent_dims(maxdims=True)
        return tuple(None if one is None or one == h5py.h5s.UNLIMITED else int(one) for one in most)


@dataclass
class StructureCopy:
    """Copies the objects of one file into another.

    Attributes
    ----------
    source, target
        The files.
    make_array
        Creates the array that stands for one of the source; without its attributes.
    root
        The group of the source that becomes the root of the target.
    losses
        What cannot be copied: path and reason.
    notes
        What may be different in the copy: path and reason.
    later
        Arrays of references: the old and the new one. They are written last, when what they lead to exists.
    """

    source: h5py.File
    target: h5py.File
    make_array: Callable[[Original, StructureCopy], None]
    root: str = "/"
    losses: list[tuple[str, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    later: list[tuple[h5py.Dataset, h5py.Dataset]] = field(default_factory=list)
    _made: dict[int, bytes] = field(default_factory=dict)  # by address in the source, paths in the target
    _waiting: dict[int, bytes] = field(default_factory=dict)  # by address, types that were needed before their links
    _named: list[tuple[Any, bytes]] = field(default_factory=list)

    def copy(self) -> None:
        """Copy everything: first all objects, then the attributes, which may refer to any of them."""
        root = self.source[self.root].id
        self._made[h5py.h5o.get_info(root).addr] = b"/"
        self._named.append((root, b"/"))
        waiting = [(root, self.target["/"].id, b"")]
        while waiting:
            waiting.extend(reversed(list(self._group(*waiting.pop()))))
        for old, path in self._named:
            self._attributes(old, path)
            self._comment(old, path)
        for before, after in self.later:
            self._references(before, after)
        for name in self._waiting.values():
            self.target.id.unlink(name)

    def _references(self, old: h5py.Dataset, new: h5py.Dataset) -> None:
        try:
            if old.size:
                new[...] = self.referring(np.asarray(old[...]))
        except (TypeError, ValueError, OSError, RuntimeError) as error:
            self.losses.append((_text(h5py.h5i.get_name(old.id) or b""), f"its references cannot be copied: {error}"))

    def _group(self, old: Any, new: Any, path: bytes) -> Iterator[tuple[Any, Any, bytes]]:
        """Copy the members of a group; yields its groups, which follow later."""
        for name in _names(old):
            inner = path + b"/" + name
            link = old.links.get_info(name)
            if link.type == h5py.h5l.TYPE_HARD:
                try:
                    info = h5py.h5o.get_info(old, name)
                except (KeyError, OSError, RuntimeError) as error:  # its metadata are damaged
                    self.losses.append((_text(inner), f"it cannot be read: {error}"))
                    continue
                if info.addr in self._made:
                    new.links.create_hard(name, self.target.id, self._made[info.addr])
                    if info.addr in self._waiting:
                        self._made[info.addr] = inner
                    continue
                child = self.opened(old, name, info.type, inner)
                if child is None:
                    continue
                self._made[info.addr] = inner
                if info.type == h5py.h5o.TYPE_GROUP:
                    made = h5py.h5g.create(new, name, lcpl=None, gcpl=child.get_create_plist())
                    self._named.append((child, inner))
                    yield child, made, inner
                elif info.type == h5py.h5o.TYPE_NAMED_DATATYPE:
                    child.copy().commit(new, name)
                    self._named.append((child, inner))
                else:
                    self.make_array(Original(inner.decode("utf-8", "surrogateescape"), child, new, name), self)
                    if new.links.exists(name):
                        self._named.append((child, inner))
                    else:
                        del self._made[info.addr]  # it is among the losses
            else:
                self._link(old, new, name, inner)

    def opened(self, group: Any, name: bytes, kind: int, path: bytes) -> Any:  # noqa: ARG002 - a version needs them
        """A member of a group that a hard link leads to; None if it is among the losses."""
        return h5py.h5o.open(group, name)

    def _link(self, old: Any, new: Any, name: bytes, path: bytes) -> None:
        """Copy a link that is not a hard one."""
        kind = old.links.get_info(name).type
        if kind == h5py.h5l.TYPE_SOFT:
            new.links.create_soft(name, old.links.get_val(name))
        elif kind == h5py.h5l.TYPE_EXTERNAL:
            file, there = old.links.get_val(name)
            new.links.create_external(name, file, there)
            if not file.startswith(b"/"):
                self.notes.append((_text(path), f"it links to {_text(file)!r}, which is looked for beside the copy"))
        else:
            self.losses.append((_text(path), "its link is of a kind that a program defined"))

    def type_of(self, array: Any) -> Any:
        """The type for a new array or attribute: the copy of the committed type, if the old one has one."""
        own = array.get_type()
        if own.committed():
            address = h5py.h5o.get_info(own).addr
            if address not in self._made:
                # Its link comes later: it gets another name until then.
                waiting = b"hyperslab-type-%d" % len(self._waiting)
                own.copy().commit(self.target.id, waiting)
                self._waiting[address] = waiting
                self._made[address] = waiting
                self._named.append((own, waiting))
            return h5py.h5t.open(self.target.id, self._made[address])
        return own.copy()

    def _attributes(self, old: Any, path: bytes) -> None:
        new = h5py.h5o.open(self.target.id, path)
        kept = h5py.h5a.get_num_attrs(new)
        for attribute in self.attributes_of(old, path):
            if kept and h5py.h5a.exists(new, attribute.name):
                if not has_references(attribute.get_type()):
                    continue
                h5py.h5a.delete(new, attribute.name)  # libhdf5 copied it with references into the source
            try:
                self._attribute(attribute, new)
            except (TypeError, ValueError, NotImplementedError, OSError, RuntimeError) as error:
                said = (
                    f"its attribute {printable(attribute.name.decode('utf-8', 'replace'))!r} cannot be copied: {error}"
                )
                self.losses.append((_text(path), said))

    def attributes_of(self, old: Any, path: bytes) -> Iterator[Any]:  # noqa: ARG002 - a version needs the path
        """The attributes to copy."""
        for index in range(h5py.h5a.get_num_attrs(old)):
            yield h5py.h5a.open(old, index=index, index_type=_attribute_order(old))

    def _comment(self, old: Any, path: bytes) -> None:
        """Copy an object's comment, with libhdf5 itself: h5py returns the bytes of memory that it has freed."""
        library = loaded()
        said = None if library is None else library.comment(old.id)
        if said is not None:
            h5py.h5o.set_comment(self.target.id, said, obj_name=path)

    def _attribute(self, old: Any, new: Any) -> None:
        space, kind = old.get_space(), old.get_type()
        if space.get_simple_extent_type() == h5py.h5s.NULL:
            h5py.h5a.create(new, old.name, self.type_of(old), space)
            return
        if not has_pointers(kind):  # as bytes: h5py has no such element for every type, and may cut text
            stored: Any = np.empty(old.shape, f"V{kind.get_size()}")
            old.read(stored, kind)
            h5py.h5a.create(new, old.name, self.type_of(old), space).write(stored, kind)
            return
        elements: Any = np.empty(old.shape, old.dtype)
        old.read(elements)
        if has_references(kind):
            elements = self.referring(elements)
        made = h5py.h5a.create(new, old.name, self.type_of(old), space)
        made.write(elements)

    def referring(self, elements: Any) -> Any:
        """The same elements, with references to the copies of what they referred to."""
        made = np.empty(elements.shape, elements.dtype)
        if elements.dtype.names:
            for name in elements.dtype.names:
                inner = elements[name]
                made[name] = self.referring(inner) if inner.dtype.hasobject else inner
            return made
        for index in np.ndindex(elements.shape):
            made[index] = self._referring(elements[index])
        return made

    def _referring(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self.referring(value)
        if isinstance(value, h5py.h5r.RegionReference):
            return self._region(value)
        if isinstance(value, h5py.h5r.Reference):
            path = self._path_of(value)
            return value if path is None else h5py.h5r.create(self.target.id, path, h5py.h5r.OBJECT)
        return value

    def _region(self, value: Any) -> Any:
        path = self._path_of(value)
        if path is None:
            return value
        space = h5py.h5r.get_region(value, self.source.id)
        return h5py.h5r.create(self.target.id, path, h5py.h5r.DATASET_REGION, space)

    def _path_of(self, value: Any) -> bytes | None:
        """The path of the copy of what a reference leads to; None for a null reference."""
        if not value:
            return None
        target = h5py.h5r.dereference(value, self.source.id)
        path = self._made.get(h5py.h5o.get_info(target).addr) if target is not None else None
        if path is None:
            raise ValueError("a reference leads to an object that no link leads to")
        return path


def has_references(kind: Any) -> bool:
    """Whether elements of an HDF5 type are references, or contain some."""
    hdf5_class = kind.get_class()
    if hdf5_class == h5py.h5t.REFERENCE:
        return True
    if hdf5_class == h5py.h5t.COMPOUND:
        return any(has_references(kind.get_member_type(index)) for index in range(kind.get_nmembers()))
    return hdf5_class in (h5py.h5t.VLEN, h5py.h5t.ARRAY) and has_references(kind.get_super())


def has_pointers(kind: Any) -> bool:
    """Whether elements of an HDF5 type point to values elsewhere in their file, or contain such elements.

    All others are copied as they are stored, whatever their type is: libhdf5 does not convert to an equal type.
    """
    hdf5_class = kind.get_class()
    if hdf5_class == h5py.h5t.STRING:
        return bool(kind.is_variable_str())
    if hdf5_class == h5py.h5t.COMPOUND:
        return any(has_pointers(kind.get_member_type(index)) for index in range(kind.get_nmembers()))
    if hdf5_class == h5py.h5t.ARRAY:
        return has_pointers(kind.get_super())
    return hdf5_class in (h5py.h5t.REFERENCE, h5py.h5t.VLEN)


def is_plain(kind: Any) -> bool:
    """Whether elements of an HDF5 type are numbers of a usual kind, text of fixed length, or made of these."""
    hdf5_class = kind.get_class()
    if hdf5_class == h5py.h5t.INTEGER:
        return bool(kind.get_precision() == 8 * kind.get_size())
    if hdf5_class in (h5py.h5t.FLOAT, h5py.h5t.BITFIELD):
        return any(kind.equal(known) for known in (USUAL_FLOATS if hdf5_class == h5py.h5t.FLOAT else USUAL_BITFIELDS))
    if hdf5_class == h5py.h5t.STRING:
        return not kind.is_variable_str()
    if hdf5_class in (h5py.h5t.ENUM, h5py.h5t.ARRAY):
        return is_plain(kind.get_super())
    if hdf5_class == h5py.h5t.COMPOUND:
        return all(is_plain(kind.get_member_type(index)) for index in range(kind.get_nmembers()))
    return bool(hdf5_class == h5py.h5t.OPAQUE)


USUAL_FLOATS = [
    h5py.h5t.IEEE_F16LE, h5py.h5t.IEEE_F16BE, h5py.h5t.IEEE_F32LE, h5py.h5t.IEEE_F32BE, h5py.h5t.IEEE_F64LE,
    h5py.h5t.IEEE_F64BE,
]  # fmt: skip
# PyTables stores booleans as these. h5py does not tell the precision of a bitfield.
USUAL_BITFIELDS = [
    h5py.h5t.STD_B8LE, h5py.h5t.STD_B8BE, h5py.h5t.STD_B16LE, h5py.h5t.STD_B16BE, h5py.h5t.STD_B32LE,
    h5py.h5t.STD_B32BE, h5py.h5t.STD_B64LE, h5py.h5t.STD_B64BE,
]  # fmt: skip


def _names(group: Any) -> list[bytes]:
    """The names in a group in the order in which they were added, if it tracks that."""
    is_tracked = group.get_create_plist().get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED
    names: list[bytes] = []
    group.links.iterate(names.append, idx_type=h5py.h5.INDEX_CRT_ORDER if is_tracked else h5py.h5.INDEX_NAME)
    return names


def _attribute_order(holder: Any) -> int:
    tracked = holder.get_create_plist().get_attr_creation_order() if hasattr(holder, "get_create_plist") else 0
    return int(h5py.h5.INDEX_CRT_ORDER if tracked & h5py.h5p.CRT_ORDER_TRACKED else h5py.h5.INDEX_NAME)


def _text(path: bytes) -> str:
    return printable(path.decode("utf-8", "replace")) or "/"
