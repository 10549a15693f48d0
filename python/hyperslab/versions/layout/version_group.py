"""`VersionGroup`: a group of a version, whose arrays are given only where they agree with their chunks.

Earlier releases made unchanged arrays links to one object. versioned-hdf5's `modify_metadata` then put another in the
place of one link, and the chunks of all were cut anew: what the other links show are pieces of wrong chunks.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from hyperslab.archive.array import Array
from hyperslab.archive.tree import Group
from hyperslab.errors import DamagedFile, HyperslabError
from hyperslab.versions.layout.names import DATA, VERSIONS
from hyperslab.versions.layout.slots import grid_slots


class VersionGroup(Group):
    """A group of a version."""

    def __init__(self, group: Group) -> None:
        super().__init__(group.opened, group.key[1], group.name)

    @property
    def plain(self) -> Group:
        """The same, with arrays given as they are."""
        return Group(self._file, self._number, self.name)

    def _child(self, name: str, hops: int) -> Group | Array:
        found = super()._child(name, hops)
        if isinstance(found, Group):
            return VersionGroup(found)
        check_agrees(found)
        return found


def check_agrees(array: Array) -> None:
    """Refuse an array of a version that is cut otherwise than its chunks are, or shows some that are not there.

    Raises
    ------
    DamagedFile
        It is.
    """
    raw, said = None, None
    with suppress(HyperslabError, KeyError, TypeError, ValueError):  # of what is missing others say what it means
        raw = _chunks(array)
        said = tuple(int(length) for length in np.atleast_1d(array.attrs["chunks"]))
    if not isinstance(raw, Array) or said is None or raw.chunks is None:
        return
    problem = None
    check_chunks(array, said, raw.chunks)
    if not (raw.unsupported or array.unsupported) and array.dtype != raw.dtype:
        problem = f"its elements are {array.dtype}, and those of its chunks {raw.dtype}"
    else:
        slots = None
        with suppress(HyperslabError):
            slots = grid_slots(array, said)
        last = -1 if slots is None else int(slots.max(initial=-1))
        if last * said[0] >= raw.shape[0] and last >= 0:
            problem = f"it shows chunk {last} of {raw.shape[0] // said[0]}"
    if problem is not None:
        raise _damaged(array, problem)


def checked_chunks(array: Array) -> Array:
    """The chunks that an array of a version is made of.

    Raises
    ------
    DamagedFile
        They are no array, or it does not agree with them.
    """
    check_agrees(array)
    raw = _chunks(array)
    if not isinstance(raw, Array):
        raise DamagedFile(f"{array.filename}: the chunks of {array.name} are no array")
    return raw


def _chunks(array: Array) -> Group | Array:
    before, _, path = array.name.rpartition(f"{VERSIONS}/")
    return Group(array._file, 0, "/")[f"{before}{DATA}/{path.partition('/')[2]}/raw_data"]


def check_chunks(array: Array, said: tuple[int, ...], chunks: tuple[int, ...]) -> None:
    """Refuse an array of a version that says to be made of other chunks than there are.

    Raises
    ------
    DamagedFile
        It does.
    """
    if said != chunks:
        raise _damaged(array, f"it is said to be made of chunks of {said}, and its chunks are {chunks}")


def _damaged(array: Array, problem: str) -> DamagedFile:
    how = "older files do not bear versioned-hdf5's modify_metadata, nor commits after its rebuild_hashtables"
    return DamagedFile(f"{array.name} in {array.filename}: {problem}: {how}; hyperslab.versions.repair may help")
