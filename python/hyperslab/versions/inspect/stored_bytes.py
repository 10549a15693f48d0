"""`StoredBytes`: the stored bytes of chunks, from a file that must stay the one that was parsed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from types import TracebackType

from hyperslab.errors import DamagedFile, FileChanged, Unsupported

# Ranges as near to each other as GAP_NBYTES are read together, up to READ_NBYTES at a time.
GAP_NBYTES = 1 << 14
READ_NBYTES = 8 << 20


class StoredBytes:
    """A file from which chunks are copied. It is a context manager; open it before the file is parsed.

    Parameters
    ----------
    path : str
        The path of the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY)

    def __enter__(self) -> StoredBytes:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        os.close(self._descriptor)

    def check(self) -> None:
        """Check that the path still leads to this file. Call it after others have opened the path.

        Raises
        ------
        FileChanged
            Another file has its name now.
        """
        own, now = os.fstat(self._descriptor), os.stat(self.path)  # noqa: PTH116
        if (own.st_dev, own.st_ino) != (now.st_dev, now.st_ino):
            raise FileChanged(f"{self.path} was replaced by another file meanwhile: try again")

    def ranges(self, ranges: Iterable[tuple[str | None, int, int]]) -> Iterator[memoryview]:
        """The bytes of ranges, each given by path, offset and length. Adjacent ranges are read together.

        Raises
        ------
        DamagedFile
            The file ends before a range does.
        Unsupported
            A range lies in another file.
        """
        together: list[tuple[int, int]] = []
        stop = 0
        for path, offset, length in ranges:
            if path != self.path:
                raise Unsupported(f"{self.path}: some of its chunks are in {path}, and cannot be copied from there")
            is_next = stop <= offset <= stop + GAP_NBYTES
            if together and not (is_next and offset + length - together[0][0] <= READ_NBYTES):
                yield from self._read(together)
                together = []
            together.append((offset, length))
            stop = offset + length
        yield from self._read(together)

    def _read(self, ranges: list[tuple[int, int]]) -> Iterator[memoryview]:
        """Read ascending ranges in one piece."""
        if not ranges:
            return
        start, stop = ranges[0][0], sum(ranges[-1])
        read = memoryview(os.pread(self._descriptor, stop - start, start))
        if len(read) < stop - start:
            raise DamagedFile(f"{self.path} ends before byte {stop}, where a chunk should")
        for offset, length in ranges:
            yield read[offset - start : offset - start + length]
