"""Reads boxes of arrays of the source, and the targets of its links."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperslab.archive.tree.array import Array
from hyperslab.conversion.encoding import Box, Bytes
from hyperslab.errors import DamagedFile, HyperslabError
from hyperslab.versions.layout.names import ARRAY_BOOKKEEPING, VERSION_BOOKKEEPING, VERSIONS
from hyperslab.versions.layout.version_group import VersionGroup

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


def member_of(group: Any, name: str) -> Any:
    """A group or array in a group; text if it cannot be read, which says why: an array of a version may be damaged."""
    try:
        return group[name]
    except HyperslabError as error:
        return str(error)


def check_readable(array: Any) -> None:
    """Check that an array can be read, if only by h5py, before anything is written.

    Raises
    ------
    DamagedFile
        It contradicts its format.
    Unsupported
        Neither hyperslab nor h5py can read it here.
    """
    if array.damaged:
        raise DamagedFile(f"{array.name} of {array.filename}: {array.damaged}")
    if array.unsupported:
        array[(slice(0, 1),) * array.ndim]  # says what is missing


def link_of(group: Any, name: str) -> Any:
    """The target of a link: a path, or a file and a path; the reason if it cannot be read."""
    return group.opened.links(group.key[1])[name][1]


def bookkeeping_of(root: Any, node: Any) -> tuple[str, ...]:
    """The attributes of a group or array that stay behind: those that only the layout of versions needs.

    Parameters
    ----------
    root : Any
        The group that is converted.
    node : Any
        This group, or a group or array in it.
    """
    if not isinstance(root, VersionGroup):
        return ()
    if isinstance(node, Array):
        return ARRAY_BOOKKEEPING
    is_version = "/" not in node.name.rpartition(f"/{VERSIONS}/")[2]
    return VERSION_BOOKKEEPING if is_version and node.key == root.key else ()


def limits_of(root: Any, array: Any) -> tuple[int | None, ...]:
    """How far each axis can grow; None without a limit. All axes of a version can, as in the next version."""
    most: tuple[int | None, ...] = array.max_shape
    return (None,) * len(most) if isinstance(root, VersionGroup) else most
