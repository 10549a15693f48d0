"""What `info`, `read` and `verify` share: an archive opened with messages for people, and all that is in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from hyperslab.errors import DamagedFile, ReadError, Unsupported, UsageError

if TYPE_CHECKING:
    from hyperslab.archive.array import Array
    from hyperslab.archive.tree import Group

FileArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="An HDF5, NetCDF, FITS or HDF4 file, its URL (https, s3, gs, az), a Zarr folder, or a pattern in quotes."
    ),
]
Concat: TypeAlias = Annotated[
    str | None, typer.Option("--concat", help="Several files: the dimension, or the number of the axis, to join along.")
]
Options: TypeAlias = Annotated[
    list[str], typer.Option("--option", help="How to reach a URL, as key=value: see docs/remote.md. Repeatable.")
]
Allowed: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--allowed", help="A folder or URL that the file may lead to (docs/security.md); '' for none. Repeatable."
    ),
]
Found: TypeAlias = "Array | Group | Exception"
MOST_NAMES = 20


@dataclass(frozen=True)
class Entry:
    """A name in an archive: where its line stands in the tree, and what it leads to."""

    path: str
    branch: str
    margin: str
    found: Found
    is_again: bool = False


def open_archive(
    path: str | list[str], options: list[str], concat: str | None = None, allowed: list[str] | None = None
) -> Group:
    """The root of an archive; a file that is not there or may not be read is the user's mistake.

    `options` are `key=value`, as in `storage_options`; `concat` is what several files are concatenated along;
    `allowed` are places that the file may lead to.
    """
    import hyperslab

    reached, places = storage_options(options), allowed_places(allowed)
    try:
        if concat is None:
            return hyperslab.open(path, storage_options=reached, allowed=places)
        along = int(concat) if concat.isdecimal() else concat
        return hyperslab.open(path, storage_options=reached, concat=along, allowed=places)
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {error.filename or path}") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be opened: {error.strerror or error}") from error


def allowed_places(allowed: list[str] | None) -> tuple[str, ...] | None:
    """Places as `hyperslab.open` takes them; an empty one alone says that there are none."""
    return tuple(filter(None, allowed)) if allowed else None


def storage_options(options: list[str]) -> dict[str, Any]:
    """Numbers and truth values as such, all else as text."""
    pairs = [option.partition("=") for option in options]
    if any(not name or not equals for name, equals, _ in pairs):
        raise UsageError("give options as --option key=value")
    known = {"true": True, "false": False}
    return {name: known.get(value.lower(), _number(value)) for name, _, value in pairs}


def _number(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def array_of(root: Group, name: str) -> Array:
    """An array by its path.

    Raises:
        UsageError: There is no such array; the message lists those that there are.
    """
    from hyperslab.archive.tree import Group

    try:
        found = root[name]
    except KeyError as error:
        raise UsageError(f"{root.filename} has no array {name!r} ({message_of(error)}); {_names(root)}") from error
    except FileNotFoundError as error:
        raise UsageError(f"{name!r} of {root.filename} is in {error.filename}, which is not there") from error
    if isinstance(found, Group):
        raise UsageError(f"{name!r} of {root.filename} is a group, not an array; {_names(found)}")
    return found


def _names(group: Group) -> str:
    names = [array.name for _, array in zip(range(MOST_NAMES + 1), arrays_of(group), strict=False)]
    more = ", …" if len(names) > MOST_NAMES else ""
    return f"it has {', '.join(names[:MOST_NAMES])}{more}" if names else "it has no arrays"


def arrays_of(root: Group) -> Iterator[Array]:
    """Every array, each once."""
    from hyperslab.archive.array import Array

    seen = set()
    for entry in entries(root):
        if isinstance(entry.found, Array) and (entry.found.filename, entry.found.name) not in seen:
            seen.add((entry.found.filename, entry.found.name))
            yield entry.found


def entries(root: Group) -> Iterator[Entry]:
    """Everything below a group in the order of a tree; what is in a group comes once, however many links lead to it."""
    from hyperslab.archive.tree import Group

    seen = {root.key}
    waiting = [_inside(root, root.name.rstrip("/"), "")]  # a stack of our own: archives may be nested deeply
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
        elif not isinstance(entry.found, Group):
            yield entry
        elif entry.found.key in seen:
            yield Entry(entry.path, entry.branch, entry.margin, entry.found, is_again=True)
        else:
            seen.add(entry.found.key)
            yield entry
            waiting.append(_inside(entry.found, entry.path, entry.margin))


def _inside(group: Group, path: str, margin: str) -> Iterator[Entry]:
    try:
        names = list(group)
    except ReadError as error:
        yield Entry(path, margin + "└── ", margin + "    ", error)
        return
    for place, name in enumerate(names):
        branch, inner = ("└── ", "    ") if place == len(names) - 1 else ("├── ", "│   ")
        yield Entry(f"{path}/{name}", margin + branch, margin + inner, _found(group, name))


def _found(group: Group, name: str) -> Found:
    try:
        return group[name]
    except (KeyError, OSError, ReadError) as error:
        return error


def lost(root: Group) -> str:
    """That the file is shorter than it says, in words."""
    said = f"the file is {root.lost_nbytes} bytes shorter than it says"
    return f"{said}: it was cut off, in a download perhaps, or its writer never closed it"


def status_of(error: Exception) -> str:
    """What an error says about what a name leads to: damaged, unsupported, unreadable, or a link that leads nowhere."""
    if isinstance(error, DamagedFile):
        return "damaged"
    if isinstance(error, Unsupported):
        return "unsupported"
    return "unreadable" if isinstance(error, ReadError) else "dangling"


def message_of(error: Exception) -> str:
    """An error's message, without the quotes that `KeyError` puts around its own."""
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
