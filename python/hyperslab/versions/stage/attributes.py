"""`StagedAttributes`: the attributes of a group or array of a version that you are making."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from hyperslab.errors import HyperslabError
from hyperslab.versions.layout.elements import same_value

# The oldest and the newest layout that HDF5 may use; None for its defaults. Attributes may be larger in newer ones.
Layouts: TypeAlias = "tuple[str, str] | None"


class StagedAttributes(MutableMapping[str, Any]):
    """Attributes by name. Each is checked when you set it, as h5py does; those of the version before stay as they are.

    Parameters
    ----------
    owner : str
        The path of the group or array in the version.
    base : Mapping[str, Any]
        The attributes of the version before.
    leave : tuple of str
        The names of attributes of the layout, which are not shown.
    """

    def __init__(self, owner: str, base: Mapping[str, Any] | None = None, leave: tuple[str, ...] = ()) -> None:
        self._owner = repr(owner) if owner else "the version"
        self._base: Mapping[str, Any] = {} if base is None else base
        self._kept = dict.fromkeys(name for name in self._base if name not in leave)
        self._count = len(self._kept)  # of the version before
        self._set: dict[str, Any] = {}
        self.layouts: Layouts = None

    def __getitem__(self, name: str) -> Any:
        if name in self._set:
            return self._set[name]
        if name in self._kept:
            return self._base[name]
        raise KeyError(f"{self._owner} has no attribute {name!r}")

    def __setitem__(self, name: str, value: Any) -> None:
        check_attribute(self._owner, name, value, self.layouts)
        self._set[name] = value

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(f"{self._owner} has no attribute {name!r}")
        self._set.pop(name, None)
        self._kept.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._set or name in self._kept

    def __iter__(self) -> Iterator[str]:
        yield from self._kept
        yield from (name for name in self._set if name not in self._kept)

    def __len__(self) -> int:
        return len(self._kept.keys() | self._set.keys())

    def __repr__(self) -> str:
        return f"<hyperslab.StagedAttributes of {self._owner}: {', '.join(self)}>"

    def create(self, name: str, data: Any, shape: Any = None, dtype: Any = None) -> None:
        """Set an attribute with a shape and dtype, as in h5py."""
        value = np.asarray(data, dtype)
        self[name] = value if shape is None else value.reshape(shape)

    def modify(self, name: str, value: Any) -> None:
        """Set an attribute, as in h5py."""
        self[name] = value

    def is_kept(self, name: str) -> bool:
        """Whether an attribute is that of the version before, with its type."""
        return name in self._kept and name not in self._set

    @property
    def is_same(self) -> bool:
        """Whether all attributes are those of the version before, and no others."""
        if len(self._kept) != self._count or self._set.keys() - self._kept.keys():
            return False
        try:
            return all(same_value(self._base[name], value) for name, value in self._set.items())
        except (HyperslabError, TypeError, ValueError):  # one cannot be read, or has no dtype
            return False


def check_attribute(owner: str, name: str, value: Any, layouts: Layouts = None) -> None:
    """Refuse what HDF5 cannot store as an attribute.

    Raises
    ------
    TypeError
        HDF5 has no type for the value, or the name is not text.
    ValueError
        The name or the value has a NUL or surrogates in it, or the value is too large.
    """
    what = f"attribute {name!r} of {owner}"
    if not isinstance(name, str):
        raise TypeError(f"{what}: its name is not text")
    if not name or "\0" in name:
        raise ValueError(f"{what}: its name must not be empty, nor have a NUL in it")
    from h5py._objects import phil

    try:
        with phil:  # the file is shared by all threads
            scratch = _scratch(layouts)
            scratch.attrs[name] = value
            del scratch.attrs[name]
    except UnicodeEncodeError:
        raise ValueError(f"{what} cannot be stored as UTF-8, because it has surrogates in it") from None
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what} cannot be stored: {error}") from None
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{what} cannot be stored: {error}") from None


@cache
def _scratch(layouts: Layouts) -> Any:
    """A file in memory that takes each attribute first."""
    import h5py

    name = "hyperslab attributes" + "".join(layouts or ())
    return h5py.File(name, "w", driver="core", backing_store=False, libver=layouts)
