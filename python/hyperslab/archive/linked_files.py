"""`LinkedFiles`: the files that links of a file lead to. Each is opened once, whatever names the links use for it."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakValueDictionary

from hyperslab.archive.given_files import Given
from hyperslab.archive.remote import Remote
from hyperslab.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Hashable

    from hyperslab.archive.tree import OpenFile

# A malicious server can invent a file for every name, each with a link to the next.
MOST_FILES = 4096


class LinkedFiles:
    """The files that were opened through links from one file. It does not keep them open."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Hashable, OpenFile] = WeakValueDictionary()

    def add(self, file: OpenFile) -> None:
        """Remember an open file."""
        self._known.setdefault(identity(file.location), file)

    def known(self, location: str | Remote | Given) -> OpenFile | None:
        """The open file that is at a place; none where it is not open.

        Raises
        ------
        Unsupported
            Opening it would exceed the limit of linked files.
        """
        file = self._known.get(identity(location))
        if file is not None and not file.is_closed:
            return file
        if len(self._known) >= MOST_FILES:
            raise Unsupported(f"links lead to more than {MOST_FILES} files: open the files that you need one by one")
        return None


def identity(location: str | Remote | Given) -> Hashable:
    """What tells files apart: device and inode, since names may be links themselves; far away the URL."""
    if isinstance(location, Remote):
        parts = urlsplit(location.url)
        return urlunsplit(parts._replace(path=posixpath.normpath(parts.path)))
    if isinstance(location, Given):
        return id(location)
    try:
        found = os.stat(location)  # noqa: PTH116
    except OSError:
        return location  # opening it will raise the error
    return (found.st_dev, found.st_ino)
