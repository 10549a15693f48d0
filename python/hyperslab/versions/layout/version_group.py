"""`VersionGroup`: a group of a version that gives you an array only if it agrees with its chunks.

Earlier releases stored unchanged arrays as several links to one object. `modify_metadata` of versioned-hdf5 then
replaced one link and cut all chunks anew, so that the other links now show pieces of the wrong chunks.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group
from hyperslab.archive.tree.open_file import Place
from hyperslab.errors import DamagedFile, HyperslabError
from hyperslab.versions.layout.names import DATA, VERSIONS
from hyperslab.versions.layout.slots import grid_slots


class VersionGroup(Group):
    """A group of a version."""

    def __init__(self, group: Group) -> None:
        super().__init__(group.opened, group.key[1], group.name)

    @property
    def plain(self) -> Group:
        """The same group, with its arrays unchecked."""
        return Group(self._file, self._number, self.name)

    def _made(self, place: Place) -> Group | Array:
        made = super()._made(place)
        if isinstance(made, Group):
            return VersionGroup(made)
        check_agrees(made)
        return made


def check_agrees(array: Array) -> None:
    """Refuse an array of a version whose chunks have another shape or dtype, or which shows chunks that do not exist.

    Raises
    ------
    DamagedFile
        The array does not agree with its chunks.
    """
    raw, said = None, None
    with suppress(HyperslabError, KeyError, TypeError, ValueError):  # other code reports what is missing
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
    """The array of chunks that an array of a version is made of.

    Raises
    ------
    DamagedFile
        The chunks are not an array, or the array does not agree with them.
    """
    check_agrees(array)
    raw = _chunks(array)
    if not isinstance(raw, Array):
        raise DamagedFile(f"{array.filename}: the chunks of {array.name} are not an array")
    return raw


def _chunks(array: Array) -> Group | Array:
    before, _, path = array.name.rpartition(f"{VERSIONS}/")
    return Group(array._file, 0, "/")[f"{before}{DATA}/{path.partition('/')[2]}/raw_data"]


def check_chunks(array: Array, said: tuple[int, ...], chunks: tuple[int, ...]) -> None:
    """Refuse an array of a version whose chunk shape is not that of its chunks.

    Raises
    ------
    DamagedFile
        The chunk shapes differ.
    """
    if said != chunks:
        raise _damaged(array, f"its attributes give the chunk shape {said}, but its chunks have the shape {chunks}")


def _damaged(array: Array, problem: str) -> DamagedFile:
    how = "older files break after versioned-hdf5's modify_metadata, or when you commit after its rebuild_hashtables"
    return DamagedFile(f"{array.name} in {array.filename}: {problem}: {how}; hyperslab.versions.repair may help")
