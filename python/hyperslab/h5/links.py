"""The links that `group.get(name, getlink=True)` returns."""

from __future__ import annotations

import os
from typing import Any


class HardLink:
    """A link that leads directly to an object of the same file."""


class SoftLink:
    """A link that leads to a path in the same file."""

    def __init__(self, path: str) -> None:
        self._path = str(path)

    @property
    def path(self) -> str:
        """The path; there may be no object at it."""
        return self._path

    def __repr__(self) -> str:
        return f'<SoftLink to "{self.path}">'


class ExternalLink:
    """A link that leads to a path in another file."""

    def __init__(self, filename: Any, path: str) -> None:
        self._filename = os.fsdecode(filename)
        self._path = path

    @property
    def path(self) -> str:
        """The path in the other file."""
        return self._path

    @property
    def filename(self) -> str:
        """The name of the other file, as stored."""
        return self._filename

    def __repr__(self) -> str:
        return f'<ExternalLink to "{self.path}" in file "{self.filename}"'
