"""Reads boxes of arrays of the source, and the targets of its links."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hyperslab.conversion.filling import Box, Bytes


def reader(array: Any, threads: int | None) -> Callable[[Box, Bytes], None]:
    """A function that reads boxes of an array into bytes."""

    def read(box: Box, data: Bytes) -> None:
        shape = tuple(one.stop - one.start for one in box)
        out = data.view(array.dtype.base).reshape((*shape, *array.dtype.shape))
        array.read(box, out=out, threads=threads)

    return read


def link_of(group: Any, name: str) -> Any:
    """The target of a link: a path, or a file and a path; the reason if it cannot be read."""
    return group.opened.links(group.key[1])[name][1]
