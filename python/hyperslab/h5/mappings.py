"""`MappingHDF5`: names and what they lead to, with views that follow the file."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any


class KeysViewHDF5(KeysView[str]):
    """Names, in the file's order."""

    _mapping: Any

    def __str__(self) -> str:
        return f"<KeysViewHDF5 {list(self)}>"

    __repr__ = __str__

    def __reversed__(self) -> Iterator[str]:
        yield from reversed(self._mapping)


class ValuesViewHDF5(ValuesView[Any]):
    """What names lead to; None where a link leads nowhere."""

    _mapping: Any

    def __contains__(self, value: object) -> bool:
        return any(value == found for found in self)

    def __iter__(self) -> Iterator[Any]:
        for name in self._mapping:
            yield self._mapping.get(name)

    def __reversed__(self) -> Iterator[Any]:
        for name in reversed(self._mapping):
            yield self._mapping.get(name)


class ItemsViewHDF5(ItemsView[str, Any]):
    """Names and what they lead to; None where a link leads nowhere."""

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
    """A mapping whose views follow the file."""

    def keys(self) -> KeysViewHDF5:
        """The names."""
        return KeysViewHDF5(self)

    def values(self) -> ValuesViewHDF5:
        """What they lead to."""
        return ValuesViewHDF5(self)

    def items(self) -> ItemsViewHDF5:
        """Both."""
        return ItemsViewHDF5(self)

    def _ipython_key_completions_(self) -> list[str]:
        return sorted(self)
