"""Disks that fail, and disks that remember: what stands between a journaled file and the operating system."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path
from typing import Any


class Counting:
    """Passes calls on, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def meets(self) -> bool:
        """Whether this call is to be made."""
        self.count += 1
        return True

    def open(self, path: str, flags: int, mode: int) -> int:
        return os.open(path if self.meets() else "/dev/null", flags, mode)

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
    """The process is killed in a call: of a write the first part is done, and nothing from then on.

    All that the dead process still tries fails: libhdf5 would break off in its own way if it read back what it never
    wrote, though it thinks so.
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


class Failing(Counting):
    """A call fails; all later ones too, if the disk stays full or broken."""

    def __init__(self, last: int, number: int, *, stays: bool) -> None:
        super().__init__()
        self.last, self.number, self.stays = last, number, stays

    def meets(self) -> bool:
        self.count += 1
        if self.count == self.last or (self.stays and self.count > self.last):
            raise OSError(self.number, errno.errorcode[self.number])
        return True


class Remembering(Counting):
    """Remembers all calls, so that disks can be made as a power cut may leave them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, ...]] = []
        self.marks: list[tuple[int, str]] = []

    def mark(self, name: str) -> None:
        """A commit has returned."""
        self.marks.append((len(self.calls), name))

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
    """Files as a cut after these calls may leave them: what no sync followed is there, or not, sector by sector."""
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
