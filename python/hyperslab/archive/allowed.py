"""`Allowed`: what a document, be it a file of references or one with links, may lead to. docs/security.md has the rule.

Files of this machine are judged where they are opened (`allowed.rs`), URLs by `SourceResolver.file`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from hyperslab.archive.url_prefix import folder_of, is_below
from hyperslab.errors import UsageError

Locations = Iterable[str | os.PathLike[str]]


@dataclass(frozen=True)
class Allowed:
    """What a user allows; without that, documents of this machine lead anywhere, others to their own folder."""

    locations: tuple[str, ...] | None = None  # folders, files, and URLs with all below them
    own: tuple[str, ...] = ()  # what the user named: these are no places that a document leads to

    @staticmethod
    def of(locations: Locations | None, own: str) -> Allowed:
        """What a user said, of a file that he opens.

        Raises
        ------
        UsageError
            It is no list of places.
        """
        if locations is None:
            return Allowed(None, (own,))
        if isinstance(locations, str | os.PathLike):
            raise UsageError(f"allowed={os.fspath(locations)!r}: give a list of folders and URLs, or () for none")
        return Allowed(tuple(_absolute(os.fspath(location)) for location in locations), (own,))

    def listed(self, near: str | None) -> list[str]:
        """What is allowed to a document of this machine, or one with a URL, beside itself; of a free one nothing."""
        if self.locations is not None:
            return list(self.locations)
        return [] if near is None else [folder_of(near)]

    def files(self, near: str | None) -> list[str] | None:
        """The same of this machine; None for whatever there is."""
        if self.locations is None and near is None:
            return None
        return [location for location in (*self.listed(near), *self.own) if "://" not in location]

    def permits(self, url: str, near: str | None) -> bool:
        """Whether a document may lead to a URL."""
        if self.locations is None and near is None:
            return True
        return any(is_below(url, location) for location in (*self.listed(near), *self.own) if "://" in location)

    def redirects(self) -> list[str] | None:
        """What servers may redirect to beside themselves; None for any: what a document may lead to does not matter,
        for it is the server that leads on.
        """
        return None if self.locations is None else [location for location in self.locations if "://" in location]

    def holds(self, location: str) -> bool:
        """Whether a file may be copied from: the user named it, or it is where he allows files to be."""
        if self.locations is not None:
            return True  # it would not have been opened
        if "://" in location:
            return any(is_below(location, own) for own in self.own if "://" in own)
        return any(_is_in(location, own) for own in self.own if "://" not in own)

    def permits_file(self, path: str, near: str | None) -> bool:
        """Whether a document may lead to a file of this machine, whose name goes into references."""
        files = self.files(near)
        return files is None or any(_is_in(path, location) for location in files)


def _is_in(path: str, location: str) -> bool:
    real, location = os.path.realpath(path), os.path.realpath(location)
    return real == location or real.startswith(location.rstrip(os.sep) + os.sep)


def _absolute(location: str) -> str:
    if location.startswith("file://"):
        location = location.removeprefix("file://")
    return location if "://" in location else os.path.abspath(os.path.expanduser(location))  # noqa: PTH100, PTH111
