"""What `info`, `read` and `verify` share: they open an archive with readable errors, and walk through its content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hyperslab.errors import DamagedFile, HyperslabError, NoSuchFile, ReadError, Unsupported, UsageError
from hyperslab.meant import meant_or_known

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array
    from hyperslab.archive.tree.group import Group

Found: TypeAlias = "Array | Group | Exception"
MOST_NAMES = 20
MOST_COMPARED = 1000  # of the arrays that are compared with the name you gave


@dataclass(frozen=True)
class Entry:
    """A name in an archive: its path, the lines that draw its branch of the tree, and what the name leads to."""

    path: str
    branch: str
    margin: str
    found: Found
    is_again: bool = False


def open_archive(
    path: str | list[str], options: list[str], concat: str | None = None, allowed: list[str] | None = None
) -> Group:
    """Open an archive and return its root. A missing or unreadable file raises `UsageError`.

    `options` are `key=value` pairs for `storage_options`; `concat` is the dimension or axis along which several files
    are concatenated; `allowed` lists the folders and URLs to which the file may lead.
    """
    import hyperslab

    reached, prefixes = storage_options(options), allowed_prefixes(allowed)
    try:
        if concat is None:
            return hyperslab.open(path, storage_options=reached, allowed=prefixes)
        along = int(concat) if concat.isdecimal() else concat
        return hyperslab.open(path, storage_options=reached, concat=along, allowed=prefixes)
    except FileNotFoundError as error:
        raise NoSuchFile(f"there is no file {error.filename or path}: {_meant(path)}") from error
    except HyperslabError:
        raise
    except OSError as error:
        raise UsageError(f"{path} cannot be opened: {error.strerror or error}") from error


def _meant(path: str | list[str]) -> str:
    """What to do about a file that is not there: perhaps an array of it was named."""
    file, _, array = path.rpartition(":") if isinstance(path, str) else ("", "", "")
    if not file or not Path(file).exists():
        return "check the path"
    return f"{file} is there, but this command takes files; hyperslab read {file} {array} reads one of its arrays"


def allowed_prefixes(allowed: list[str] | None) -> tuple[str, ...] | None:
    """The prefixes in the form that `hyperslab.open` takes; a single empty string allows none."""
    return tuple(filter(None, allowed)) if allowed else None


def storage_options(options: list[str]) -> dict[str, Any]:
    """The options as a dictionary, with numbers and booleans converted and everything else as text."""
    pairs = [option.partition("=") for option in options]
    if any(not name or not equals for name, equals, _ in pairs):
        raise UsageError("an --option has no key or no '=': write it as --option key=value")
    return {name: _value(name, value) for name, _, value in pairs}


def _value(name: str, text: str) -> Any:
    """A number, a boolean, JSON's lists and objects, or the text itself."""
    if text.startswith(("{", "[")):
        try:
            return json.loads(text)
        except ValueError as error:
            said = f"--option {name}: the value is not valid JSON ({error})"
            raise UsageError(f'{said}: write --option \'{name}={{"name": "value"}}\'') from error
    return {"true": True, "false": False}.get(text.lower(), _number(text))


def _number(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def array_of(root: Group, name: str) -> Array:
    """The array at a path.

    Raises
    ------
    UsageError
        There is no such array; the message lists the arrays of the archive.
    """
    from hyperslab.archive.tree.group import Group

    try:
        array_or_group = root[name]
    except KeyError as error:
        names = [array.name for _, array in zip(range(MOST_COMPARED), arrays_of(root), strict=False)]
        near = meant_or_known(name, names, "it has no arrays")
        why = message_of(error).partition(";")[0]  # a link may lead to what is not there
        because = "" if repr(f"/{name.strip('/')}") in why else f" ({why})"
        raise UsageError(f"{root.filename} has no array {name!r}{because}{near}") from error
    except FileNotFoundError as error:
        raise NoSuchFile(f"{name!r} of {root.filename} is in {error.filename}, which does not exist") from error
    if isinstance(array_or_group, Group):
        raise UsageError(f"{name!r} of {root.filename} is a group, not an array; {_names(array_or_group)}")
    return array_or_group


def _names(group: Group) -> str:
    names = [array.name for _, array in zip(range(MOST_NAMES + 1), arrays_of(group), strict=False)]
    more = ", …" if len(names) > MOST_NAMES else ""
    return f"it has {', '.join(names[:MOST_NAMES])}{more}" if names else "it has no arrays"


def arrays_of(root: Group) -> Iterator[Array]:
    """Every array, each of them once."""
    from hyperslab.archive.tree.array import Array

    seen = set()
    for entry in entries(root):
        if isinstance(entry.found, Array) and (entry.found.filename, entry.found.name) not in seen:
            seen.add((entry.found.filename, entry.found.name))
            yield entry.found


def entries(root: Group) -> Iterator[Entry]:
    """Everything below a group in tree order. The content of a group appears once, however many links lead to it."""
    from hyperslab.archive.tree.group import Group

    seen = {root.key}
    waiting = [_inside(root, root.name.rstrip("/"), "")]  # an explicit stack, because archives may be nested deeply
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
    for position, name in enumerate(names):
        branch, inner = ("└── ", "    ") if position == len(names) - 1 else ("├── ", "│   ")
        yield Entry(f"{path}/{name}", margin + branch, margin + inner, _found(group, name))


def _found(group: Group, name: str) -> Found:
    try:
        return group[name]
    except (KeyError, OSError, ReadError) as error:
        return error


def status_of(error: Exception) -> str:
    """The state of an entry that raised `error`: damaged, unsupported, unreadable, or dangling (a broken link)."""
    if isinstance(error, DamagedFile):
        return "damaged"
    if isinstance(error, Unsupported):
        return "unsupported"
    return "unreadable" if isinstance(error, ReadError) else "dangling"


def message_of(error: Exception) -> str:
    """An error's message, without the quotes that `KeyError` puts around its own."""
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
