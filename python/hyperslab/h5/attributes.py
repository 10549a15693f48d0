"""`AttributeManager`: the attributes of an object, with the values and dtypes that h5py gives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from hyperslab.h5 import elements, spaces
from hyperslab.h5.dtypes import Empty, check_string_dtype
from hyperslab.h5.identifiers import ObjectID, TypeID
from hyperslab.h5.mappings import MappingHDF5
from hyperslab.h5.names import as_text
from hyperslab.h5.refused import refuse

ASCII, UTF8 = "ascii", "utf-8"


class AttributeManager(MappingHDF5):
    """The attributes of an object by name, in creation order if the file tracks it, otherwise in order of their names.

    Parameters
    ----------
    parent : HLObject or ObjectID
        A file, group, dataset or named datatype, or its `id`.
    """

    def __init__(self, parent: Any) -> None:
        self._id: ObjectID = parent if isinstance(parent, ObjectID) else parent.id

    def _stored(self) -> dict[str, Any]:
        facts = self._id.facts
        rows = facts["attributes"]
        if facts["attributes_ordered"]:
            rows = sorted(rows, key=lambda attribute: attribute[1] or 0)
        else:
            rows = sorted(rows, key=lambda attribute: attribute[0].encode("utf-8", "surrogateescape"))
        return {name: stored for name, _, stored in rows}

    def _one(self, name: Any) -> Any:
        text = as_text(name)
        if not self._id:
            raise KeyError("Unable to synchronously open attribute (the file was closed: open it again)")
        stored = self._stored()
        if text not in stored:
            raise KeyError(f"Unable to synchronously open attribute (can't locate attribute: {text!r})")
        if isinstance(stored[text], Exception):
            raise stored[text]
        return stored[text]

    def __getitem__(self, name: Any) -> Any:
        element, shape, stored, heap = self._one(name)
        dtype = elements.dtype_of(element)
        if shape is None:
            return Empty(dtype)
        array = elements.values(element, dtype, stored, heap).reshape(shape + dtype.shape)
        text = check_string_dtype(dtype)
        if text is not None and text.length is None:
            decoded = np.empty(array.shape, dtype)
            decoded.reshape(-1)[:] = [one.decode("utf-8", "surrogateescape") for one in array.flat]
            array = decoded
        return array[()] if array.ndim == 0 else array

    def get_id(self, name: Any) -> AttrID:
        """Return an identifier of the attribute, which has its name, shape and dtype.

        Raises
        ------
        KeyError
            There is no such attribute, or the file was closed.
        """
        return AttrID(as_text(name), self._one(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored())

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._stored())

    def __len__(self) -> int:
        return len(self._id.facts["attributes"])

    def __contains__(self, name: object) -> bool:
        return as_text(name) in self._stored()

    def __setitem__(self, name: str, value: Any) -> NoReturn:
        refuse("create attribute", OSError)

    def __delitem__(self, name: str) -> NoReturn:
        refuse("delete attribute", KeyError)

    def create(self, name: str, data: Any, shape: Any = None, dtype: Any = None) -> NoReturn:
        """Raise OSError: the file is open for reading."""
        refuse("create attribute", OSError)

    def modify(self, name: str, value: Any) -> NoReturn:
        """Raise OSError: the file is open for reading."""
        refuse("create attribute", OSError)

    def __repr__(self) -> str:
        if not self._id:
            return "<Attributes of closed HDF5 object>"
        return f"<Attributes of HDF5 object at {id(self._id)}>"


class AttrID:
    """The identifier of an attribute: name, shape and dtype, without the value."""

    shape: Any

    def __init__(self, name: str, stored: tuple[Any, ...]) -> None:
        self.name: bytes = name.encode("utf-8", "surrogateescape")
        self._element, self.shape, _, _ = stored

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of an element."""
        return elements.dtype_of(self._element)

    def get_type(self) -> TypeID:
        """Return the datatype of an element."""
        return TypeID(self._element)

    def get_space(self) -> spaces.SpaceID:
        """Return the dataspace."""
        return spaces.SpaceID(self.shape, self.shape)

    def get_storage_size(self) -> int:
        """Return the number of bytes that the value takes in the file."""
        return 0 if self.shape is None else math.prod(self.shape) * int(self._element[1])
