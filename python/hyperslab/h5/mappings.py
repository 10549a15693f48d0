"""`MappingHDF5`: a mapping of names, with the views that h5py's `keys`, `values` and `items` return."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any


class KeysViewHDF5(KeysView[str]):
    """The names, in the order in which the mapping iterates."""

    _mapping: Any

    def __str__(self) -> str:
        return f"<KeysViewHDF5 {list(self)}>"

    __repr__ = __str__

    def __reversed__(self) -> Iterator[str]:
        yield from reversed(self._mapping)


class ValuesViewHDF5(ValuesView[Any]):
    """The values; None for a broken link."""

    _mapping: Any

    def __contains__(self, value: object) -> bool:
        return any(value == held for held in self)

    def __iter__(self) -> Iterator[Any]:
        for name in self._mapping:
            yield self._mapping.get(name)

    def __reversed__(self) -> Iterator[Any]:
        for name in reversed(self._mapping):
            yield self._mapping.get(name)


class ItemsViewHDF5(ItemsView[str, Any]):
    """Pairs of name and value; the value is None for a broken link."""

    _mapping: Any

    def __contains__(self, item: Any) -> bool:
        name, value = item
        return name in self._mapping and bool(value == self._mapping.get(name))

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for name in self._mapping:
            yield name, self._mapping.get(name)

    def __reversed__(self) -> Iterator[tuple[str, Any]]:
        for name in reversed(self._mapping):
            yield name, self._mapping.get(name)


class MappingHDF5(Mapping[str, Any]):
    """A mapping of names to values, with h5py's views."""

    def keys(self) -> KeysViewHDF5:
        """Return a view of the names."""
        return KeysViewHDF5(self)

    def values(self) -> ValuesViewHDF5:
        """Return a view of the values."""
        return ValuesViewHDF5(self)

    def items(self) -> ItemsViewHDF5:
        """Return a view of the pairs of name and value."""
        return ItemsViewHDF5(self)

    def _ipython_key_completions_(self) -> list[str]:
        return sorted(self)
