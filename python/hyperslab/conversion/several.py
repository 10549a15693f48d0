"""`convert_each`: several files, each written by itself into a folder. One that fails leaves the others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group
from hyperslab.conversion.advice import AdviceFile
from hyperslab.conversion.converting import convert, format_of
from hyperslab.conversion.settings import Conversion
from hyperslab.conversion.suffixes import suited
from hyperslab.errors import HyperslabError, UsageError
from hyperslab.meant import meant_or_known


@dataclass(frozen=True)
class Outcome:
    """What became of one file: the conversion, or why there is none. With neither, its target was there already."""

    source: str
    target: Path
    done: Conversion | None = None
    error: Exception | None = None


def convert_each(
    sources: Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    *,
    format: str | None = None,
    like: Any = None,
    resume: bool = False,
    overwrite: bool = False,
    opening: Mapping[str, Any] | None = None,
    **options: Any,
) -> Iterator[Outcome]:
    """Convert files one after the other, each into a file of its own name in a folder.

    Parameters
    ----------
    sources : Sequence[str | os.PathLike[str]]
        The files.
    folder : str | os.PathLike[str]
        Where the results go; it is made if it does not exist.
    format : {"hdf5", "netcdf4", "zarr2", "zarr3"} | None
        The format of all results; by default that of each file's suffix.
    like : Any
        An advice, as in `convert`. Each file takes what it says of the arrays that it has.
    resume : bool
        Whether to go on: unfinished conversions are finished, and what is there already is left.
    overwrite : bool
        Whether to replace results that exist.
    opening : Mapping[str, Any] | None
        Options of `hyperslab.open`.
    **options : Any
        Other options of `convert`, for each file.

    Yields
    ------
    Outcome
        What became of each file, in their order.

    Raises
    ------
    UsageError
        Before anything is written: two files would get one name, a format is not clear, or the advice names an array
        that none of the files has.
    """
    named = [os.fspath(one) for one in sources]
    where = Path(folder)
    targets = _targets(named, where, format)
    reached = dict(opening or {})
    advice = None if like is None else AdviceFile.read(like)
    likes = dict.fromkeys(named, like) if advice is None else _of_each(named, advice, reached)
    _make_folder(where)
    for source, target in zip(named, targets, strict=True):
        if resume and not overwrite and target.exists():
            yield Outcome(source, target)
            continue
        asked = {"format": format, "like": likes[source], "resume": resume, "overwrite": overwrite}
        try:
            done = convert(source, target, **asked, **options, **reached)
        except (HyperslabError, OSError) as error:
            yield Outcome(source, target, error=error)
        else:
            yield Outcome(source, target, done)


def convert_in_place(
    sources: Sequence[str | os.PathLike[str]], *, opening: Mapping[str, Any] | None = None, **options: Any
) -> Iterator[Outcome]:
    """Convert files one after the other, each in its own place. One that fails stays as it is, and leaves the others.

    Parameters
    ----------
    sources : Sequence[str | os.PathLike[str]]
        HDF5 and NetCDF4 files on this machine.
    opening : Mapping[str, Any] | None
        Options of `hyperslab.open`.
    **options : Any
        Other options of `convert`, for each file.

    Yields
    ------
    Outcome
        What became of each file, in their order.
    """
    for given in sources:
        source = os.fspath(given)
        try:
            done = convert(source, source, in_place=True, **options, **(opening or {}))
        except (HyperslabError, OSError) as error:
            yield Outcome(source, Path(source), error=error)
        else:
            yield Outcome(source, Path(source), done)


def _targets(sources: Sequence[str], folder: Path, format: str | None) -> list[Path]:
    """A name for each result: the file's own, with the suffix of the format that was asked for."""
    made: dict[Path, str] = {}
    for source in sources:
        name = Path(source.partition("?")[0].rstrip("/")).name
        target = folder / name
        target = target.with_suffix(suited(target, format_of(target, format)))  # refuses what is not clear
        if target in made:
            raise UsageError(f"{made[target]} and {source} would both be written to {target}: convert them one by one")
        made[target] = source
    return list(made)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except FileNotFoundError as error:
        raise UsageError(f"there is no folder {folder.parent} to make {folder.name} in: create it first") from error
    except OSError as error:
        raise UsageError(f"{folder} cannot be made a folder: {error.strerror}; name another one with -o") from error


def _of_each(sources: Sequence[str], advice: AdviceFile, opening: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an advice for each file; a file that cannot be opened keeps all, and says itself what is wrong."""
    parts: dict[str, Any] = {}
    known: set[str] = set()
    is_all_open = True
    for source in sources:
        try:
            with open_archive(source, **opening) as archive:
                mine = {path: one for path, one in advice.arrays.items() if _has(archive, path)}
        except (HyperslabError, OSError):
            is_all_open, mine = False, dict(advice.arrays)
        else:
            known.update(mine)
        parts[source] = json.loads(replace(advice, arrays=mine).to_json())
    missing = [path for path in advice.arrays if path not in known]
    if missing and is_all_open:
        near = meant_or_known(missing[0], known, "they have none of the arrays that it names")
        raise UsageError(f"none of the files has the array {missing[0]!r} of the advice{near}")
    return parts


def _has(archive: Group, path: str) -> bool:
    return isinstance(archive.get(path if path.strip("/") else ""), Array)
