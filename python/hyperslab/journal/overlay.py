"""`Overlay`: the committed bytes that the next commit overwrites. They stay in memory until its journal is on disk."""

from __future__ import annotations

import os

from hyperslab.chunk_grid import ceil_div
from hyperslab.journal.write_order import Overwritten

PAGE_NBYTES = 4096


class Page:
    """A page with committed bytes that will be overwritten, from `start` to `stop`."""

    data: bytearray
    old: bytes
    start: int
    stop: int

    __slots__ = ("data", "old", "start", "stop")

    def __init__(self, old: bytes) -> None:
        self.data, self.old, self.start, self.stop = bytearray(old), old, PAGE_NBYTES, 0

    def put(self, start: int, piece: memoryview) -> None:
        """Overwrite the bytes from `start`."""
        stop = start + len(piece)
        self.data[start:stop] = piece
        self.start, self.stop = min(self.start, start), max(self.stop, stop)


class Overlay:
    """Bytes that lie over a file, page by page.

    Parameters
    ----------
    descriptor : int
        The file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pages: dict[int, Page] = {}
        self._written: dict[int, int] = {}  # start and stop of the bytes that will be overwritten

    def __bool__(self) -> bool:
        return bool(self._pages)

    def put(self, start: int, view: memoryview) -> None:
        """Overwrite the bytes from `start`."""
        done = 0
        self._written[start] = max(self._written.get(start, 0), start + len(view))
        while done < len(view):
            number, within = divmod(start + done, PAGE_NBYTES)
            page = self._pages.get(number)
            if page is None:
                stored = os.pread(self._descriptor, PAGE_NBYTES, number * PAGE_NBYTES)
                page = self._pages[number] = Page(stored.ljust(PAGE_NBYTES, b"\0"))
            count = min(PAGE_NBYTES - within, len(view) - done)
            page.put(within, view[done : done + count])
            done += count

    def lay_over(self, view: memoryview, start: int, most: int) -> None:
        """Change what was read from `start` to what it will be; only committed bytes, those before `most`."""
        stop = start + len(view)
        for number in range(start // PAGE_NBYTES, ceil_div(stop, PAGE_NBYTES)):
            page = self._pages.get(number)
            if page is not None:
                origin = number * PAGE_NBYTES
                first, last = max(start, origin), min(stop, origin + PAGE_NBYTES, most)
                if first < last:
                    view[first - start : last - start] = page.data[first - origin : last - origin]

    def changed(self) -> list[Overwritten]:
        """The committed bytes that have changed, object by object."""
        runs: list[tuple[int, int]] = []
        for start, stop in sorted(self._written.items()):
            if runs and start < runs[-1][1]:
                runs[-1] = runs[-1][0], max(stop, runs[-1][1])
            else:
                runs.append((start, stop))
        overwritten = (Overwritten(start, *self._old_and_new(start, stop)) for start, stop in runs)
        return [one for one in overwritten if one.old != one.new]

    def _old_and_new(self, start: int, stop: int) -> tuple[bytes, bytes]:
        old, new = [], []
        for number in range(start // PAGE_NBYTES, ceil_div(stop, PAGE_NBYTES)):
            page, origin = self._pages[number], number * PAGE_NBYTES
            part = slice(max(start - origin, 0), min(stop - origin, PAGE_NBYTES))
            old.append(page.old[part])
            new.append(page.data[part])
        return b"".join(old), b"".join(new)

    def clear(self) -> None:
        """Forget everything."""
        self._pages.clear()
        self._written.clear()
