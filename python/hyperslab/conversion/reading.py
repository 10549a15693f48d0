"""Reads boxes of arrays of the source, and the targets of its links."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperslab.conversion.encoding import Box, Bytes

NON_COORDINATE_PREFIX = "_nc4_non_coord_"


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


def name_in_copy(root: Any, group: Any, name: str) -> str:
    """The name of a member of a group in a copy that is not HDF5, or whose source is not.

    An array that is all of a Zarr hierarchy has no name: it gets that of the folder. netCDF-C puts a prefix before
    variables that are called like a dimension that they do not belong to.
    """
    if not name:
        return Path(root.filename.rstrip("/")).stem or "array"
    plain = name.removeprefix(NON_COORDINATE_PREFIX)
    if plain != name and plain in group and getattr(group[plain], "is_dimension_only", False):
        return plain
    return name


def link_of(group: Any, name: str) -> Any:
    """The target of a link: a path, or a file and a path; the reason if it cannot be read."""
    return group.opened.links(group.key[1])[name][1]
