"""`begin`: makes a new file for versions in one step, so that a kill leaves no half of one, which nobody could go on
with.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from hyperslab.versions.file import VersionedFile


def begin(path: str | os.PathLike[str]) -> None:
    """Make a file without versions at a path, if nothing is there."""
    target = Path(os.path.abspath(os.fspath(path)))  # noqa: PTH100
    if os.path.lexists(target):
        return
    with tempfile.TemporaryDirectory(prefix=".hyperslab-", dir=target.parent) as folder:
        made = Path(folder) / target.name
        VersionedFile(made, "w").close()
        with suppress(FileExistsError):  # somebody else made it meanwhile
            try:
                os.link(made, target)
            except FileExistsError:
                raise
            except OSError:  # this file system has no hard links
                made.rename(target)
