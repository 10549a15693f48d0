"""`Allowed`: where a document (a file of references, or any file with links) may lead. docs/security.md has the rule.

Local files are checked where they are opened (`allowed.rs`), URLs in `SourceResolver.file`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from hyperslab.archive.far.url_prefix import folder_of, is_below
from hyperslab.errors import UsageError

Locations = Iterable[str | os.PathLike[str]]


@dataclass(frozen=True)
class Allowed:
    """The locations that the user allows. By default, local documents lead anywhere, remote ones to their folder."""

    locations: tuple[str, ...] | None = None  # folders, files and URLs, each with everything below it
    own: tuple[str, ...] = ()  # the file that the user opened, which needs no permission

    @staticmethod
    def of(locations: Locations | None, own: str) -> Allowed:
        """Parse the `allowed=` of a user who opens the file `own`.

        Raises
        ------
        UsageError
            `locations` is a single path instead of a list, or one of them is empty; or a name is not UTF-8.
        """
        _check_name(own, own)
        if locations is None:
            return Allowed(None, (own,))
        if isinstance(locations, str | os.PathLike):
            raise UsageError(f"allowed={os.fspath(locations)!r}: give a list of folders and URLs, or () for none")
        given = [os.fspath(location) for location in locations]
        for location in given:
            if location in ("", "file://"):  # the working directory would be allowed, which nobody means by that
                raise UsageError(f"allowed={given}: {location!r} is no folder and no URL; give () to allow none")
            _check_name(location, f"allowed={given}")
        return Allowed(tuple(map(_absolute, given)), (own,))

    def listed(self, near: str | None) -> list[str]:
        """The allowed locations, for messages: `near` is the URL of a remote document. Empty if anything is allowed."""
        if self.locations is not None:
            return list(self.locations)
        return [] if near is None else [folder_of(near)]

    def files(self, near: str | None) -> list[str] | None:
        """The local locations that are allowed; None if all are."""
        if self.locations is None and near is None:
            return None
        return [location for location in (*self.listed(near), *self.own) if "://" not in location]

    def permits(self, url: str, near: str | None) -> bool:
        """Whether a document may lead to a URL."""
        if self.locations is None and near is None:
            return True
        return any(is_below(url, location) for location in (*self.listed(near), *self.own) if "://" in location)

    def redirects(self) -> list[str] | None:
        """URLs that servers may redirect to, besides their own; None for any.

        The rules for documents do not apply, because it is the server that redirects, not the document.
        """
        return None if self.locations is None else [location for location in self.locations if "://" in location]

    def holds(self, location: str) -> bool:
        """Whether data of a file may be copied: the user named the file, or allowed its location."""
        if self.locations is not None:
            return True  # a file outside of them would not have been opened
        if "://" in location:
            return any(is_below(location, own) for own in self.own if "://" in own)
        return any(_is_in(location, own) for own in self.own if "://" not in own)

    def permits_file(self, path: str, near: str | None) -> bool:
        """Whether a document may lead to a local file, whose name is written to references."""
        files = self.files(near)
        return files is None or any(_is_in(path, location) for location in files)


def _check_name(name: str, where: str) -> None:
    """Refuse names that only Python can express: zeros, and bytes that are not UTF-8."""
    if "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise UsageError(f"{where!r}: a name must be text in UTF-8, without zeros: rename the file or folder")


def _is_in(path: str, location: str) -> bool:
    real, location = os.path.realpath(path), os.path.realpath(location)
    return real == location or real.startswith(location.rstrip(os.sep) + os.sep)


def _absolute(location: str) -> str:
    if location.startswith("file://"):
        location = location.removeprefix("file://")
    return location if "://" in location else os.path.abspath(os.path.expanduser(location))  # noqa: PTH100, PTH111
