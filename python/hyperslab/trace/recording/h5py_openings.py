"""Which of h5py's accesses are to an array that was closed and opened again: HDF5 then forgets its chunks.

It keeps them until the last identifier of the array is closed. Whether one was opened before another was closed follows
from the order in which h5py made and freed them. Those by which nobody has accessed an array are only asked where they
lead to if that matters.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from itertools import count
from typing import Any

from .log import FILE_REOPENED, REOPENED

Place = tuple[int, int]
_NEVER = float("inf")


@dataclass(eq=False)
class _Identifier:
    """One that h5py has made, from a moment to another; and the array that it stands for, once that is asked."""

    born: float
    reference: weakref.ref[Any] | None = None
    died: float = _NEVER
    place: Place | None = None

    @property
    def ended(self) -> float:
        """When it was closed. Nobody knows the moment of those that were not freed; it was before now."""
        known = None if self.reference is None else self.reference()
        return self.died if known is None or known.valid else -1.0

    def find(self) -> Place | None:
        """Where its array is, if it is open."""
        known = None if self.reference is None else self.reference()
        if self.place is None and known is not None and known.valid:
            self.place = place_of(known)
        return self.place


def place_of(known: Any) -> Place:
    """The number that libhdf5 gave to the file when it was opened, and the address of the array in it."""
    import h5py

    info = h5py.h5o.get_info(known)
    return int(info.fileno), int(info.addr)


class Openings:
    """The identifiers of arrays that h5py has made."""

    def __init__(self) -> None:
        self._moments = count()
        self._known: dict[int, _Identifier] = {}
        self._accessed: dict[Place, list[_Identifier]] = {}
        self._last: dict[Any, Place] = {}

    def made(self, identifier: Any) -> None:
        """h5py has made an identifier of an array."""
        if identifier.id not in self._known:
            self._keep(identifier, next(self._moments))

    def _keep(self, identifier: Any, born: float) -> _Identifier:
        kept, number = _Identifier(born), identifier.id

        def closed(_: Any) -> None:
            kept.died = next(self._moments)
            if self._known.get(number) is kept:
                del self._known[number]

        kept.reference = weakref.ref(identifier, closed)
        self._known[number] = kept
        return kept

    def accessed(self, identifier: Any, named: Any) -> int:
        """The program accesses an array of this name. Returns the flags of `log.py`."""
        kept = self._known.get(identifier.id) or self._keep(identifier, -1.0)
        if kept.place is not None and kept in self._accessed.get(kept.place, ()):
            return 0
        place = kept.find() or place_of(identifier)
        before, self._last[named] = self._last.get(named), place
        was_open = self._was_open(kept, place)
        others = [one for one in self._accessed.get(place, ()) if one.ended == _NEVER]
        self._accessed[place] = [*others, kept]
        if before is None:
            return 0
        if before[0] != place[0]:
            self._accessed.pop(before, None)
            return REOPENED | FILE_REOPENED
        return 0 if was_open else REOPENED

    def _was_open(self, kept: _Identifier, place: Place) -> bool:
        """Whether something stood for the array from the access before until now."""
        until = max((one.ended for one in self._accessed.get(place, ())), default=-1.0)
        if kept.born < until:
            return True
        others = [one for one in self._known.values() if one is not kept and one.born < until]
        return any(one.find() == place for one in others)
