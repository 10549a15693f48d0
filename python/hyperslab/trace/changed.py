"""Whether the files of a trace are still those that the program read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hyperslab.trace.table import AccessTable

MOST_FILES = 1000
"""Of more files, the first ones are known."""


def known_files(trace: AccessTable) -> dict[str, list[int]]:
    """The bytes of each file of a trace and when it was last changed, in nanoseconds: as they are now."""
    paths = dict.fromkeys(one.file for one in trace.arrays if one.is_local)
    return {path: stamp for path in list(paths)[:MOST_FILES] if (stamp := stamp_of(path)) is not None}


def stamp_of(path: str | Path) -> list[int] | None:
    """The bytes of a file and when it was last changed; of a folder, only the latter. None if it is not there."""
    try:
        now = Path(path).stat()
    except (OSError, ValueError):
        return None
    return [0 if Path(path).is_dir() else now.st_size, now.st_mtime_ns]


def has_changed(program: dict[str, Any], path: str) -> bool:
    """Whether a file is not as it was when the program had ended; one that is gone has not changed."""
    known, now = (program.get("files") or {}).get(path), stamp_of(path)
    return known is not None and now is not None and now != list(known)
