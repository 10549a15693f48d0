"""Disks that fail, and disks that remember, between a journaled file and the operating system; and a way to run some
work again and again, until each of its calls has failed once.

`HYPERSLAB_CRASHES=all` tries every call; otherwise a sample.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle, pairwise, product
from pathlib import Path
from typing import Any

import pytest

from hyperslab.versions.commit import writing

ALL = os.environ.get("HYPERSLAB_CRASHES") == "all"


class Counting:
    """Passes calls on, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def meets(self) -> bool:
        """Whether to make this call."""
        self.count += 1
        return True

    def open(self, path: str, flags: int, mode: int) -> int:
        return os.open(path, flags, mode) if self.meets() else os.open("/dev/null", os.O_WRONLY)

    def pwrite(self, descriptor: int, data: Any, offset: int) -> int:
        return os.pwrite(descriptor, data, offset) if self.meets() else len(data)

    def ftruncate(self, descriptor: int, length: int) -> None:
        if self.meets():
            os.ftruncate(descriptor, length)

    def fdatasync(self, descriptor: int) -> None:
        self.meets()

    def fsync(self, descriptor: int) -> None:
        self.meets()

    def unlink(self, path: str) -> None:
        if self.meets():
            Path(path).unlink()

    def rename(self, path: str, to: str) -> None:
        if self.meets():
            Path(path).rename(to)


class Killed(Counting):
    """The process is killed during a call: the first part of a write is done, and nothing after that.

    Everything that the dead process still tries fails. If it seemed to work, libhdf5 would read back what it never
    wrote, and fail in its own way.
    """

    def __init__(self, last: int, part: float) -> None:
        super().__init__()
        self.last, self.part = last, part

    def meets(self) -> bool:
        self.count += 1
        if self.count >= self.last:
            raise OSError(errno.EIO, "killed")
        return True

    def pwrite(self, descriptor: int, data: Any, offset: int) -> int:
        if self.count + 1 == self.last:
            os.pwrite(descriptor, bytes(data)[: int(len(data) * self.part)], offset)
        return super().pwrite(descriptor, data, offset)


class Dying(Counting):
    """The process dies after its first journal is complete, and after some of the calls that overwrite the file.

    What it still tries has no effect, although it seems to work.
    """

    def __init__(self, applied: int = 0) -> None:
        super().__init__()
        self.applied, self.sync_count = applied, 0

    def fsync(self, descriptor: int) -> None:
        self.sync_count += 1  # of the journal, then of its folder

    def unlink(self, path: str) -> None:
        if self.sync_count < 2:
            super().unlink(path)

    def meets(self) -> bool:
        if self.sync_count >= 2:
            self.count += 1
        return self.count <= self.applied


class Failing(Counting):
    """A call fails; later calls fail too if the disk stays full or broken."""

    def __init__(self, last: int, number: int, *, stays: bool) -> None:
        super().__init__()
        self.last, self.number, self.stays = last, number, stays

    def meets(self) -> bool:
        self.count += 1
        if self.count == self.last or (self.stays and self.count > self.last):
            raise OSError(self.number, errno.errorcode[self.number])
        return True


class Remembering(Counting):
    """Remembers all calls, so that you can make disks as a power cut may leave them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, ...]] = []
        self.marks: list[tuple[int, int]] = []

    def mark(self, done: int) -> None:
        """Note that this many steps have returned."""
        self.marks.append((len(self.calls), done))

    def _name(self, descriptor: int) -> str:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())

    def open(self, path: str, flags: int, mode: int) -> int:
        self.calls.append(("create", path))
        return os.open(path, flags, mode)

    def pwrite(self, descriptor: int, data: Any, offset: int) -> int:
        self.calls.append(("write", self._name(descriptor), offset, bytes(data)))
        return os.pwrite(descriptor, data, offset)

    def ftruncate(self, descriptor: int, length: int) -> None:
        self.calls.append(("truncate", self._name(descriptor), length))
        os.ftruncate(descriptor, length)

    def fdatasync(self, descriptor: int) -> None:
        self.calls.append(("sync", self._name(descriptor)))

    fsync = fdatasync

    def unlink(self, path: str) -> None:
        self.calls.append(("unlink", path))
        Path(path).unlink()

    def rename(self, path: str, to: str) -> None:
        self.calls.append(("rename", path, to))
        Path(path).rename(to)


SECTOR_NBYTES = 512


def after_power_cut(calls: list[tuple[Any, ...]], start: dict[str, bytes], rng: random.Random) -> dict[str, bytes]:
    """Files as a power cut after these calls may leave them: each sector that was not synced is there or not."""
    lasting = {"": -1}
    for number, call in enumerate(calls):
        if call[0] == "sync":
            lasting[call[1]] = number
    files = {name: bytearray(data) for name, data in start.items()}
    pending: list[tuple[Any, ...]] = []
    for number, call in enumerate(calls):
        if call[0] == "sync":
            continue
        folder = str(Path(call[1]).parent)
        synced_by = lasting.get(folder if call[0] in ("create", "unlink", "rename") else call[1], -1)
        if number < synced_by:
            _do(files, call)
        else:
            pending.append(call)
    sectors: list[tuple[Any, ...]] = []
    for call in pending:
        if call[0] != "write":
            sectors.append(call)
            continue
        _, name, offset, data = call
        at = 0
        while at < len(data):
            count = min(SECTOR_NBYTES - (offset + at) % SECTOR_NBYTES, len(data) - at)
            sectors.append(("write", name, offset + at, data[at : at + count]))
            at += count
    share = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    chosen = [call for call in sectors if rng.random() < share]
    created = [call for call in chosen if call[0] == "create"]
    rest = [call for call in chosen if call[0] != "create"]
    rng.shuffle(rest)
    for call in created + rest:
        _do(files, call)
    return {name: bytes(data) for name, data in files.items()}


def _do(files: dict[str, bytearray], call: tuple[Any, ...]) -> None:
    kind, name = call[0], call[1]
    if kind == "create":
        files[name] = bytearray()
    elif kind == "unlink":
        files.pop(name, None)
    elif name in files and kind == "rename":
        files[call[2]] = files.pop(name)
    elif name in files:
        file = files[name]
        if kind == "truncate":
            del file[call[2] :]
            file.extend(bytes(call[2] - len(file)))
        else:
            _, _, offset, data = call
            file.extend(bytes(max(0, offset + len(data) - len(file))))
            file[offset : offset + len(data)] = data


def sample(count: int, most: int) -> list[int]:
    """All numbers from 1 to `count`, or some of them: one of each of `most` ranges of the same length."""
    if ALL or count <= most:
        return list(range(1, count + 1))
    rng, ends = random.Random(5), [number * count // most for number in range(most + 1)]
    return [rng.randint(start + 1, end) for start, end in pairwise(ends)]


class Trials:
    """Do some work on a copy of a file, `path`, whose disk fails at one of its calls; then again for other calls.

    Each run yields how many steps of the work had returned; what is found then must fit that.

    Parameters
    ----------
    begun
        The file to start from.
    work
        The work to do with a path. It returns how many steps have returned.
    monkeypatch
        Puts disks under the files that are opened.
    returned
        How many steps `begun` has.
    """

    def __init__(
        self, begun: Path, work: Callable[[Path], Iterator[int]], monkeypatch: pytest.MonkeyPatch, returned: int
    ) -> None:
        self.path = begun.with_name("v.h5")
        self._start, self._work, self._returned = begun.read_bytes(), work, returned
        self._monkeypatch = monkeypatch

    def put(self, system: Any) -> None:
        """Put a disk under files that are opened from now on."""
        self._monkeypatch.setattr(writing, "SYSTEM", system)

    def _begin(self, system: Any) -> None:
        for one in self.path.parent.glob(f"{self.path.name}*"):
            one.unlink()
        self.path.write_bytes(self._start)
        self.put(system)

    def call_count(self) -> int:
        """The number of calls to the disk that the work makes."""
        counting = Counting()
        self._begin(counting)
        list(self._work(self.path))
        return counting.count

    def kills(self, most: int) -> Iterator[int]:
        """The process is killed during a call, of which nothing, half or all is done: in turn, unless all are tried."""
        parts, tried = (0.0, 0.5, 1.0), sample(self.call_count(), most)
        for last, part in product(tried, parts) if ALL else zip(tried, cycle(parts), strict=False):
            killed, returned = Killed(last, part), self._returned
            self._begin(killed)
            try:
                for done in self._work(self.path):
                    if killed.count >= last:
                        break
                    returned = done
            except Exception:
                if killed.count < last:  # what a process does after its death does not count
                    raise
            self.put(os)
            yield returned

    def failures(self, number: int, *, stays: bool, most: int) -> Iterator[int]:
        """A call fails with this error; later calls fail too if it is permanent."""
        for last in sample(self.call_count(), most):
            returned = self._returned
            self._begin(Failing(last, number, stays=stays))
            with suppress(OSError):
                for done in self._work(self.path):
                    returned = done
            self.put(os)
            yield returned

    def power_cuts(self, most: int, turns: int) -> Iterator[int]:
        """The power is cut after a call; if all calls are tried, `turns` times after each."""
        rng, remembering = random.Random(11), Remembering()
        self._begin(remembering)
        for done in self._work(self.path):
            remembering.mark(done)
        self.put(os)
        points = [*range(len(remembering.calls) + 1)] * (turns if ALL else 1)
        for point in points if ALL else rng.sample(points, min(most, len(points))):
            files = after_power_cut(remembering.calls[:point], {str(self.path): self._start}, rng)
            self._begin(os)
            self.path.unlink()
            for name, stored in files.items():
                Path(name).write_bytes(stored)
            yield max([self._returned, *(done for at, done in remembering.marks if at <= point)])
