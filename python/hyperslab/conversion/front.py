"""Whether all metadata of an HDF5 file stand in front of its chunks, so that they come with its first bytes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group
from hyperslab.errors import HyperslabError


class _Front:
    """A file as it would be with zeros from a position on."""

    def __init__(self, path: str, stop: int) -> None:
        self._file = open(path, "rb")  # noqa: SIM115 - `close` closes it
        self._stop = stop

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The position."""
        return self._file.tell()

    def read(self, nbytes: int = -1) -> bytes:
        """Read bytes."""
        start = self._file.tell()
        found = self._file.read(nbytes)
        kept = max(0, self._stop - start)
        return found[:kept] + bytes(max(0, len(found) - kept))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def has_metadata_in_front(group: Group) -> bool:
    """Whether the file of an HDF5 archive on this machine could be opened without anything from its first chunk on."""
    stop = min((first for array in group.walk() if (first := _first_chunk(array)) is not None), default=None)
    if stop is None:
        return True
    front = _Front(group.filename, stop)
    try:
        with open_archive(front) as alone:
            return _described(alone) == _described(group)
    except (HyperslabError, OSError):
        return False
    finally:
        front.close()


def _first_chunk(array: Array) -> int | None:
    """Where the first chunk of an array lies in its own file; None if it has none there."""
    try:
        if array.chunks is None or array.filename != array.file_paths()[0]:
            return None
        found = [segment.offsets()[segment.files() == 0] for segment in array.segments()]
    except HyperslabError:
        return None
    return min((int(offsets.min()) for offsets in found if len(offsets)), default=None)


def _described(group: Group) -> list[Any]:
    """What opening a file tells of it."""
    told: list[Any] = []

    def tell(name: str, node: Group | Array) -> None:
        told.append((name, [(key, _plain(value)) for key, value in node.attrs.items()]))
        if isinstance(node, Array):
            told.append((str(node.dtype), node.shape, node.chunks, node.damaged, node.unsupported))
            told.extend((one.indices().tobytes(), one.offsets().tobytes()) for one in _segments(node))

    tell("", group)
    group.visititems(tell)
    return told


def _segments(array: Array) -> Any:
    try:
        return array.segments()
    except HyperslabError as error:
        return [] if str(error) else None


def _plain(value: Any) -> Any:
    elements = np.asarray(value)
    return repr(value) if elements.dtype.hasobject else (elements.shape, elements.tobytes())
