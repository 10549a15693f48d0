"""`Meter`: how much of a conversion is done, on one scale for writing and verifying."""

from __future__ import annotations

from hyperslab.progress import Progress

MB = 10**6


class Meter:
    """Tells a progress callback how much is done: MB of all that will be written and read again, or chunks.

    Parameters
    ----------
    progress : Progress | None
        The callback.
    counts_chunks : bool
        Whether to tell how many chunks of each array are copied, of all that it has.

    Attributes
    ----------
    copied
        How many chunks, and stored bytes, each array has whose chunks are copied as they are stored, by its path.
    """

    def __init__(self, progress: Progress | None, *, counts_chunks: bool = False) -> None:
        self._progress = progress
        self._counts_chunks = counts_chunks
        self._done = 0
        self._all = 0
        self.copied: dict[str, tuple[int, int]] = {}
        self._done_of: dict[str, int] = {}

    def expect(self, nbytes: int) -> None:
        """So many more bytes will be added."""
        self._all += nbytes

    def is_copied(self, path: str, chunk_count: int, nbytes: int) -> None:
        """Note an array whose chunks are copied as they are stored."""
        self.copied[path.strip("/")] = (chunk_count, nbytes)

    def add(self, what: str, nbytes: int) -> None:
        """So many bytes are done."""
        self._done += nbytes
        if self._progress is None:
            return
        if not self._counts_chunks:
            self._progress(what, self._done // MB, max(self._all, self._done) // MB)
            return
        path = what.strip("/")
        count, whole = self.copied.get(path, (0, 0))
        if whole and nbytes:
            self._done_of[path] = self._done_of.get(path, 0) + nbytes
            self._progress(path, self._done_of[path] * count // whole, count)
