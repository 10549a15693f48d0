"""`Meter`: how much of a conversion is done, on one scale for writing and verifying."""

from __future__ import annotations

from hyperslab.progress import Progress


class Meter:
    """Tells a progress callback how many MiB are done, of all that will be written and read again.

    Parameters
    ----------
    progress : Progress | None
        The callback.
    """

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._done = 0
        self._all = 0

    def expect(self, nbytes: int) -> None:
        """So many more bytes will be added."""
        self._all += nbytes

    def is_copied(self, path: str, chunk_count: int, nbytes: int) -> None:
        """Note an array whose chunks are copied as they are stored."""

    def add(self, what: str, nbytes: int) -> None:
        """So many bytes are done."""
        self._done += nbytes
        if self._progress is not None:
            self._progress(what, self._done >> 20, max(self._all, self._done) >> 20)


class ChunkMeter(Meter):
    """Tells a progress callback how many chunks of each array are copied, of all chunks that it has.

    Parameters
    ----------
    progress : Progress | None
        The callback.

    Attributes
    ----------
    copied
        How many chunks, and stored bytes, each array has whose chunks are copied, by its path.
    """

    def __init__(self, progress: Progress | None) -> None:
        super().__init__(progress)
        self.copied: dict[str, tuple[int, int]] = {}
        self._done_of: dict[str, int] = {}

    def is_copied(self, path: str, chunk_count: int, nbytes: int) -> None:
        """Note an array whose chunks are copied as they are stored."""
        self.copied[path.strip("/")] = (chunk_count, nbytes)

    def add(self, what: str, nbytes: int) -> None:
        """So many bytes are done; only chunks that are copied are told."""
        path = what.strip("/")
        if path not in self.copied or self._progress is None or not nbytes:
            return
        count, whole = self.copied[path]
        self._done_of[path] = self._done_of.get(path, 0) + nbytes
        self._progress(path, self._done_of[path] * count // whole, count)
