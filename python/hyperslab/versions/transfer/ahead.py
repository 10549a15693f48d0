"""`Ahead`: compares a file with the one before it in another thread, while that one becomes a version."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from types import TracebackType
from typing import NamedTuple, TypeAlias

from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group, groups_by_path
from hyperslab.errors import HyperslabError
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.versions.transfer.stored_grid import Mask, StoredGrid


class Pair(NamedTuple):
    """An array, the one before it, and which stored chunks are equal."""

    new: StoredGrid
    old: StoredGrid
    same: Mask


Compared: TypeAlias = dict[str, Pair]
Open: TypeAlias = Callable[[], AbstractContextManager[Group]]
SECONDS = 0.1  # between looks for Ctrl-C


class Ahead(AbstractContextManager["Ahead"]):
    """Finds out which chunks of a file are those of the one before. One pair of files is compared at a time."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(1, "hyperslab-compare")
        self._is_ended = threading.Event()
        self._begun: dict[str, Future[Compared]] = {}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_ended.set()
        self._worker.shutdown(cancel_futures=True)

    def begin(self, name: str, new: Open, before: Open) -> None:
        """Begin to compare two files. `new` and `before` open them; `name` is what the result is asked for by."""
        self._begun[name] = self._worker.submit(self._compared, new, before)

    def take(self, name: str) -> Compared:
        """The arrays that could be compared by their stored bytes, by path. Empty if this was not begun, or if
        a file could not be read, which whoever reads it next will say.
        """
        future = self._begun.pop(name, None)
        if future is None:
            return {}
        while not wait([future], SECONDS).done:
            raise_pending_signals()
        return future.result()

    def _compared(self, new: Open, before: Open) -> Compared:
        found: Compared = {}
        try:
            with new() as group, before() as old:
                for path, array in arrays_by_path(group):
                    other = old.get(path)
                    if not isinstance(other, Array) or self._is_ended.is_set():
                        continue
                    mine, theirs = StoredGrid.of(array), StoredGrid.of(other)
                    if mine is not None and theirs is not None:
                        found[path] = Pair(mine, theirs, mine.same(theirs, self._is_ended.is_set))
        except (HyperslabError, OSError):
            return {}
        return found


def arrays_by_path(top: Group) -> Iterator[tuple[str, Array]]:
    """All arrays below a group, by their paths from there."""
    for path, group in groups_by_path(top):
        for name, array in group.arrays.items():
            yield f"{path.strip('/')}/{name}".lstrip("/"), array
