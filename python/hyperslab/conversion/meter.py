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

    def add(self, what: str, nbytes: int) -> None:
        """So many bytes are done."""
        self._done += nbytes
        if self._progress is not None:
            self._progress(what, self._done >> 20, max(self._all, self._done) >> 20)
