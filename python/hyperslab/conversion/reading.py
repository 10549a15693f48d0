"""Reads boxes of arrays of the source, and the targets of its links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hyperslab.conversion.encoding import Box, Bytes


@dataclass(frozen=True)
class BoxReader:
    """Reads boxes of an array into bytes; another process can have it.

    Attributes
    ----------
    array
        The array.
    threads
        How many threads decode.
    """

    array: Any
    threads: int | None

    def __call__(self, box: Box, data: Bytes) -> None:
        """Read a box."""
        array = self.array
        shape = tuple(one.stop - one.start for one in box)
        out = data.view(array.dtype.base).reshape((*shape, *array.dtype.shape))
        array.read(box, out=out, threads=self.threads)


def link_of(group: Any, name: str) -> Any:
    """The target of a link: a path, or a file and a path; the reason if it cannot be read."""
    return group.opened.links(group.key[1])[name][1]
