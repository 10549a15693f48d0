"""What `group.get(name, getlink=True)` gives."""

from __future__ import annotations

import os
from typing import Any


class HardLink:
    """A name of an object."""


class SoftLink:
    """A name that leads to a path of the same file."""

    def __init__(self, path: str) -> None:
        self._path = str(path)

    @property
    def path(self) -> str:
        """The path, which may lead nowhere."""
        return self._path

    def __repr__(self) -> str:
        return f'<SoftLink to "{self.path}">'


class ExternalLink:
    """A name that leads to a path of another file."""

    def __init__(self, filename: Any, path: str) -> None:
        self._filename = os.fsdecode(filename)
        self._path = path

    @property
    def path(self) -> str:
        """The path in the other file."""
        return self._path

    @property
    def filename(self) -> str:
        """The other file."""
        return self._filename

    def __repr__(self) -> str:
        return f'<ExternalLink to "{self.path}" in file "{self.filename}"'
