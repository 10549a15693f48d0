"""The bytes of chunks as they are stored, one after another."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

from hyperslab.errors import DamagedFile


def stored_bytes(ranges: Iterable[tuple[str, int, int]]) -> Iterator[bytes]:
    """The bytes of ranges of files: path, offset and length of each.

    Raises:
        DamagedFile: A file ends before a range does.
    """
    with ExitStack() as opened:
        files: dict[str, int] = {}
        for path, offset, length in ranges:
            if path not in files:
                files[path] = os.open(path, os.O_RDONLY)
                opened.callback(os.close, files[path])
            read = os.pread(files[path], length, offset)
            if len(read) < length:
                raise DamagedFile(f"{path} ends before byte {offset + length}, where a chunk should")
            yield read
