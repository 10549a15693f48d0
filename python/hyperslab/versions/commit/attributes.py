"""The attributes that the layout needs, written through h5py's low-level API, which is ten times as fast."""

from __future__ import annotations

from functools import cache
from typing import Any

import h5py
import numpy as np

from hyperslab.archive.tree.attributes import Attributes
from hyperslab.versions.layout.names import text_bytes
from hyperslab.versions.stage.attributes import StagedAttributes

TEXT = h5py.string_dtype()


@cache
def _text_type() -> Any:
    return h5py.h5t.py_create(TEXT, logical=True)


@cache
def _flag_type() -> Any:
    return h5py.h5t.py_create(np.dtype(bool), logical=True)


def put_text(holder: h5py.HLObject, name: str, value: str) -> None:
    """Set an attribute to a text of variable length.

    An existing attribute is deleted first: libhdf5 would overwrite the old text, which others still read while the
    commit is only half applied.
    """
    key = name.encode()
    if h5py.h5a.exists(holder.id, key):
        if not h5py.h5a.open(holder.id, key).get_type().equal(_text_type()):  # another library wrote it
            holder.attrs[name] = value
            return
        h5py.h5a.delete(holder.id, key)
    attribute = h5py.h5a.create(holder.id, key, _text_type(), h5py.h5s.create(h5py.h5s.SCALAR))
    attribute.write(np.array(value, TEXT), mtype=h5py.h5t.py_create(TEXT))


def put_flag(holder: h5py.HLObject, name: str, value: bool) -> None:
    """Create an attribute that is true or false."""
    made = h5py.h5a.create(holder.id, name.encode(), _flag_type(), h5py.h5s.create(h5py.h5s.SCALAR))
    made.write(np.array(value, bool))


def is_flagged(group: h5py.Group, name: str, attribute: str) -> bool:
    """Whether an object in a group has an attribute that says "true"; if not, it may be anything else or unreadable."""
    try:
        found = h5py.h5a.open(group.id, attribute.encode(), obj_name=text_bytes(name))
        value = np.zeros((), bool)
        if found.dtype != value.dtype or found.shape != ():
            return False
        found.read(value)
    except (KeyError, OSError, RuntimeError, TypeError, ValueError):
        return False
    return bool(value)


def put_integers(holder: h5py.HLObject, name: str, values: tuple[int, ...]) -> None:
    """Create an attribute of 64-bit integers."""
    array = np.array(values, np.int64)
    space = h5py.h5s.create_simple(array.shape)
    h5py.h5a.create(holder.id, name.encode(), h5py.h5t.NATIVE_INT64, space).write(array)


def integer(holder: h5py.HLObject, name: str) -> int:
    """The integer that an attribute holds."""
    value = np.zeros((), np.int64)
    h5py.h5a.open(holder.id, name.encode()).read(value)
    return int(value)


def put_integer(holder: h5py.HLObject, name: str, value: int) -> None:
    """Change an existing integer attribute."""
    h5py.h5a.open(holder.id, name.encode()).write(np.array(value, np.int64))


def copy_attributes(old: Any, new: Any, leave: tuple[str, ...] = ()) -> None:
    """Copy the attributes of an object, with their types."""
    for index in range(h5py.h5a.get_num_attrs(old)):
        attribute = h5py.h5a.open(old, index=index)
        if attribute.name.decode() not in leave:
            copy_attribute(attribute, new)


def copy_attribute(attribute: Any, new: Any) -> None:
    """Copy an attribute, with its type."""
    space = attribute.get_space()
    made = h5py.h5a.create(new, attribute.name, attribute.get_type(), space)
    if space.get_simple_extent_type() != h5py.h5s.NULL:
        elements: Any = np.empty(attribute.shape, attribute.dtype)
        attribute.read(elements)
        if h5py.check_string_dtype(attribute.dtype) is not None and elements.dtype.hasobject:
            flat = elements.reshape(-1)
            flat[:] = [text_bytes(one) for one in flat]  # h5py refuses `str` that is not UTF-8
        made.write(elements)


def as_in_hdf5(attributes: Attributes, leave: tuple[str, ...] = ()) -> dict[str, Any]:
    """The attributes of an archive's group or array as values that h5py stores with the same types."""
    stored: dict[str, Any] = {}
    for name in attributes:
        if name in leave:
            continue
        shape, dtype, elements = attributes.stored(name)
        is_text = dtype is None or dtype.metadata == {"vlen": str}
        if shape is None:
            stored[name] = h5py.Empty(TEXT if is_text else dtype)
        elif not isinstance(elements, list):
            stored[name] = np.ndarray(shape, dtype, buffer=elements).copy() if elements else np.empty(shape, dtype)
        elif is_text:
            stored[name] = np.array([text_bytes(one) for one in elements], TEXT).reshape(shape)
        else:
            stored[name] = attributes[name]
    return stored


def write_attributes(made: Any, attributes: StagedAttributes, owner: str, before: Any, name: str) -> None:
    """Write the attributes of a new group or array.

    Parameters
    ----------
    made : h5py.Group or h5py.Dataset
        The new object.
    attributes : StagedAttributes
        Its attributes.
    owner : str
        Its path in the version.
    before : h5py.Group or None
        A group of the version before. Attributes that did not change are copied from there, with their types.
    name : str
        The name of the same object in that group.
    """
    for key in attributes:
        try:
            if before is not None and attributes.is_kept(key):
                copy_attribute(h5py.h5a.open(before.id, text_bytes(key), obj_name=name.encode()), made.id)
            else:
                made.attrs[key] = attributes[key]
        except (TypeError, ValueError, OSError, RuntimeError, KeyError) as error:
            kind = OSError if isinstance(error, OSError) else TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"attribute {key!r} of {owner!r} cannot be written: {error}") from error
