"""What a conversion refuses before it begins: targets that must not be replaced, and wishes that concern no array."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.dimensions import PhonyDimensions
from hyperslab.archive.tree.group import groups_by_path
from hyperslab.archive.tree.open_file import instead
from hyperslab.conversion.sources import SourceFiles
from hyperslab.conversion.wishes import ArrayWish, Wish
from hyperslab.errors import HyperslabError, UsageError
from hyperslab.replacing import is_stream
from hyperslab.versions.layout.names import VERSIONS

if TYPE_CHECKING:
    from hyperslab.archive.tree.group import Group

ZARR_DOCUMENTS = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")


def check_in_place(path: Path, place: Path, group: Group) -> None:
    """Check that a file is the source, and may be replaced by a copy of itself.

    Raises
    ------
    UsageError
        It is not, or something would be lost; the message says what.
    """
    if not place.is_file() or not Path(group.filename).exists() or not place.samefile(group.filename):
        raise UsageError(f"{path} is not the source {group.filename}: name one file to convert in place")
    if group.format != "hdf5" or group.name != "/":
        raise UsageError(f"{path} is no HDF5 or NetCDF4 file, which can be converted in place: name another target")
    if VERSIONS in group:
        raise UsageError(f"{path} holds versions, which a copy would not: export the version that you need")
    if place.stat().st_nlink > 1:
        said = f"{path} has {place.stat().st_nlink} names (hard links), of which only one would lead to the new file"
        raise UsageError(f"{said}: name another target")


def check_target(path: Path, place: Path, files: SourceFiles, *, overwrite: bool, is_in_place: bool = False) -> None:
    """Check that the target may be written.

    Parameters
    ----------
    path : Path
        The target as you named it.
    place : Path
        Where links lead from there.
    files : SourceFiles
        The files of the source, which must stay.
    overwrite : bool
        Whether an existing target may be replaced.
    is_in_place : bool
        Whether the target is a file of the source.

    Raises
    ------
    UsageError
        It must not; the message says why.
    """
    if is_stream(place):
        raise UsageError(f"{path} is a pipe or a device: name a file or folder to write")
    if not place.parent.is_dir():
        raise UsageError(f"there is no folder {place.parent} to write {place.name} to: create it first")
    for source in files.paths:
        said = _clash(place, source)
        if said is not None and not (is_in_place and place.samefile(source)):
            raise UsageError(f"{path} {said}: choose another name")
    if not place.exists():
        return
    if not overwrite:
        raise UsageError(f"{path} exists: choose another name, or allow it to be replaced with --overwrite")
    if place.is_dir():
        _check_folder(path, place)
    if not os.access(place, os.W_OK):
        raise UsageError(f"{path} is write-protected: remove it, or choose another name")


def _check_folder(path: Path, place: Path) -> None:
    """Refuse to replace a folder that holds anything other than Zarr."""
    if not any((place / name).is_file() for name in ZARR_DOCUMENTS):
        raise UsageError(f"{path} is a folder that holds something else: choose another name")
    other = _not_of_zarr(place)
    if other is not None:
        said = f"{path} holds {other.relative_to(place)}, which is not of Zarr and would be lost"
        raise UsageError(f"{said}: move it away, or choose another name")


def _not_of_zarr(folder: Path) -> Path | None:
    """A file in the groups of a Zarr folder that is none of its documents; arrays are not looked into."""
    for inner, folders, files in os.walk(folder):
        if ".zarray" in files or _is_array_of_version_3(Path(inner)):
            folders.clear()
            continue
        for name in files:
            if name not in (*ZARR_DOCUMENTS, ".zattrs"):
                return Path(inner, name)
    return None


def _is_array_of_version_3(folder: Path) -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return bool(json.loads((folder / "zarr.json").read_bytes()).get("node_type") == "array")
    return False


def _clash(place: Path, source: Path) -> str | None:
    """How a target would change a file or folder of the source; None if it would not."""
    with suppress(OSError):
        own = source.resolve()
        if place == own or (place.exists() and place.samefile(own)):
            return "is the source, or one of its files"
        if own.is_dir() and place.is_relative_to(own):
            return "is inside the source"
        if place.is_dir() and own.is_relative_to(place):
            return "is a folder that holds the source"
    return None


def check_wish(group: Group, wish: Wish, format: str) -> None:
    """Check that every wish concerns some array.

    Raises
    ------
    UsageError
        A path, a dimension or a number of axes does not exist in the source.
    """
    if format != "zarr3" and any(one.shards is not None for one in (wish.every, *wish.arrays.values())):
        raise UsageError(f"only Zarr 3 has shards: leave the shards out for {format}, or write zarr3")
    if format.startswith("zarr") and any(one.is_contiguous for one in (wish.every, *wish.arrays.values())):
        raise UsageError("Zarr has no arrays in one piece: give chunks, or write HDF5 or NetCDF4")
    if wish == Wish():
        return
    axes = _axes(group)
    for path, own in wish.arrays.items():
        if path not in axes:
            with suppress(HyperslabError, KeyError):
                linked = group.get(path)  # links lead to arrays too
                if isinstance(linked, Array):
                    axes[path] = (linked.ndim, linked.dims or ())
        if path not in axes:
            raise UsageError(f"{group.filename} has no array {path!r}{instead(path, axes)}")
        _check_lengths(own, [axes[path]], f"array {path!r} has")
    _check_lengths(wish.every, list(axes.values()), "the arrays have")


Axes = tuple[int, Sequence[str]]  # the number of axes, and the names of dimensions


def _axes(group: Group) -> dict[str, Axes]:
    """The axes of each array by its path below the group."""
    phony = PhonyDimensions(group)
    axes: dict[str, Axes] = {}
    for below, inner in groups_by_path(group):
        names = phony.names(inner)
        for name, array in inner.arrays.items():
            with suppress(HyperslabError):
                known = dict.fromkeys([*(array.dims or ()), *(names.get(name) or ())])
                axes[f"{below}/{name}" if below else name] = (array.ndim, list(known))
    return axes


def _check_lengths(own: ArrayWish, axes: list[Axes], which: str) -> None:
    most = max((ndim for ndim, _ in axes), default=0)
    if own.append_axis is not None and own.append_axis >= most:
        raise UsageError(f"append_axis {own.append_axis}: {which} the axes 0 to {most - 1}")
    for what, asked in (("chunks", own.chunks), ("shards", own.shards)):
        if isinstance(asked, Mapping):
            known = list(dict.fromkeys(name for _, names in axes for name in names))
            for name in asked:
                if name not in known:
                    raise UsageError(f"{what} {_shown(asked)}: {which} no dimension {name!r}{instead(name, known)}")
        elif asked is not None and len(asked) not in [ndim for ndim, _ in axes]:
            there = ", ".join(map(str, sorted({ndim for ndim, _ in axes}))) or "no"
            raise UsageError(f"{what} {_shown(asked)}: these are {len(asked)} lengths, but {which} {there} axes")


def _shown(asked: Any) -> str:
    if isinstance(asked, Mapping):
        return ",".join(f"{name}={length}" for name, length in asked.items())
    return ",".join(map(str, asked))
