"""What the commands share: opening a file with versions with readable errors, and finding the version you name."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from hyperslab.errors import HyperslabError, NoSuchFile, UsageError
from hyperslab.meant import meant
from hyperslab.regular_files import open_regular

if TYPE_CHECKING:
    from hyperslab.versions import VersionedFile
    from hyperslab.versions.file import Mode
    from hyperslab.versions.layout.table import VersionKey

FileArgument: TypeAlias = Annotated[
    str, typer.Argument(help="A file with versions, written by hyperslab or versioned-hdf5.")
]
Timeout: TypeAlias = Annotated[
    float, typer.Option(min=0, help="Seconds to wait for other programs that have the file open.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
VERSION_HELP = (
    "A version: its name, a branch or a tag, a time in UTC (2024-05-01T12:00), 0 for the current one, -1 for its"
    " parent, …"
)


@contextmanager
def opened(path: str, mode: Mode = "r", timeout: float = 0.0) -> Iterator[VersionedFile]:
    """Open a file with versions. A missing or unreadable file raises `UsageError`."""
    import hyperslab

    try:
        if os.path.exists(path):  # noqa: PTH110 -- it may be a URL, which is refused by name
            open_regular(path).close()  # a pipe would let it wait
        file = hyperslab.VersionedFile(path, mode, timeout=timeout)
    except FileNotFoundError as error:
        raise NoSuchFile(f"there is no file {error.filename or path}: check the path") from error
    except HyperslabError:
        raise
    except OSError as error:
        raise UsageError(f"{path} cannot be opened: {error.strerror or error}") from error
    with file:
        yield file


@contextmanager
def refused() -> Iterator[None]:
    """Turn what a file with versions refuses to do into a wrong request of the user."""
    try:
        yield
    except HyperslabError:
        raise
    except (ValueError, KeyError, IndexError) as error:
        raise UsageError(str(error.args[0])) from error


def name_of(file: VersionedFile, said: str | None) -> str:
    """The name of the version that the user's text means; the current version for None.

    Raises
    ------
    UsageError
        There is no such version.
    """
    try:
        return file.find(_key(file, said))
    except (KeyError, IndexError) as error:
        known = file.versions
        if not known:
            raise UsageError(str(error.args[0])) from error
        some = ", ".join(known[-8:])
        near = meant(said or "", known) or f"; there are {len(known)}: {'…, ' if len(known) > 8 else ''}{some}"
        raise UsageError(f"{error.args[0]}{near}") from error


def _key(file: VersionedFile, said: str | None) -> VersionKey:
    if said is None or said in file or said in file.branches or said in file.tags:
        return said
    try:
        return int(said)
    except ValueError:
        pass
    try:
        time = dt.datetime.fromisoformat(said)
    except ValueError:
        return said
    return time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)
