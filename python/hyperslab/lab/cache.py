"""The state of the page cache: how it is brought about, and how it is proved.

cold     every file synced, then evicted (posix_fadvise DONTNEED, and drop_caches where that is permitted, which
         also forgets directories and inodes); proof: mincore finds nothing resident before, and the device was
         read during the trial. The host below a virtual machine may still cache: cold is guest-cold.
warm     every file read through once; proof: mincore finds all of it resident before, no device byte during.
new      the file does not exist yet: a write; other dirty pages are synced first.
unknown  nothing was done and nothing is claimed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperslab.chunk_grid import ceil_div

PAGE = mmap.PAGESIZE
DROP_CACHES = "/proc/sys/vm/drop_caches"
# Beyond so many files one syncfs costs less than syncing each, and does the same.
MOST_FSYNCS = 64

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def files_below(path: Path) -> list[Path]:
    """The file at `path`, or every file below the directory `path`."""
    if not path.is_dir():
        return [path] if path.exists() else []
    return [Path(folder, name) for folder, _, names in os.walk(path) for name in sorted(names)]


def disk_usage(path: Path) -> tuple[int, int]:
    """Bytes and number of the files below a path; sparse files count what they hold, as `du` does."""
    files = files_below(path)
    return sum(file.stat().st_size for file in files), len(files)


def make_durable(path: Path) -> None:
    """Bring a file or tree to the device: fsync files and directories, or syncfs where they are many."""
    files = files_below(path)
    if len(files) > MOST_FSYNCS:
        with _Descriptor(path) as descriptor:
            if _libc.syncfs(descriptor) != 0:
                raise OSError(ctypes.get_errno(), "syncfs", str(path))
        return
    folders = {path.parent, *(file.parent for file in files)}
    for entry in [*files, *sorted(folders, reverse=True)]:
        with _Descriptor(entry) as descriptor:
            os.fsync(descriptor)


def evict(paths: Sequence[Path]) -> None:
    """Make files cold: sync, advise the kernel to drop them, and drop all caches where that is permitted."""
    for path in paths:
        with _Descriptor(path) as descriptor:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    if os.access(DROP_CACHES, os.W_OK):
        with open(DROP_CACHES, "w") as control:
            control.write("3")


def warm_up(paths: Sequence[Path]) -> None:
    """Make files warm by reading each of them through, after syncing so that no write-back runs meanwhile."""
    buffer = bytearray(1 << 20)
    for path in paths:
        with _Descriptor(path) as descriptor:
            os.fsync(descriptor)
            while os.readv(descriptor, [buffer]):
                pass


def resident_fraction(paths: Sequence[Path]) -> float | None:
    """The share of the files' pages that the page cache holds, by mincore(2); None where there are no pages."""
    pages = [_resident_pages(path) for path in paths]
    total = sum(count for _, count in pages)
    return sum(resident for resident, _ in pages) / total if total else None


def _resident_pages(path: Path) -> tuple[int, int]:
    length = path.stat().st_size
    if length == 0:
        return 0, 0
    count = ceil_div(length, PAGE)
    with _Descriptor(path) as descriptor:
        address = _libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address is None or address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "mmap", str(path))
        try:
            vector = (ctypes.c_ubyte * count)()
            if _libc.mincore(address, length, vector) != 0:
                raise OSError(ctypes.get_errno(), "mincore", str(path))
        finally:
            _libc.munmap(address, length)
    return sum(byte & 1 for byte in bytes(vector)), count


class _Descriptor:
    """A read-only descriptor of a file or directory, closed on leaving."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> int:
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


@dataclass(frozen=True)
class DeviceBytes:
    """What this process, all its threads included, moved to and from devices, by /proc/self/io."""

    read: int
    written: int

    def __sub__(self, other: DeviceBytes) -> DeviceBytes:
        return DeviceBytes(self.read - other.read, self.written - other.written)


def device_bytes() -> DeviceBytes | None:
    """The counters now; None where the kernel does not keep them."""
    try:
        with open("/proc/self/io", "rb", buffering=0) as stream:
            counters = dict(line.split(b": ") for line in stream.read().splitlines())
    except OSError:
        return None
    return DeviceBytes(int(counters[b"read_bytes"]), int(counters[b"write_bytes"]))


def bring_about(state: str, paths: Sequence[Path]) -> float | None:
    """Put the files into a state before a read; gives the resident fraction that mincore then finds."""
    if state == "cold":
        evict(paths)
    elif state == "warm":
        warm_up(paths)
    return resident_fraction(paths)


def why_not(state: str, resident: float | None, device_read: int | None, least_device_read: int) -> str | None:
    """Why a trial's state is not proved, or None where it is. `least_device_read`: what a cold read must fetch."""
    if state not in ("cold", "warm") or resident is None:
        return None
    if device_read is None:
        return "the kernel does not count device bytes (/proc/self/io): no cache state can be proved"
    if state == "cold":
        if resident > 0.01:
            return f"not cold: {resident:.0%} of the file was still in the page cache (tmpfs, or mapped elsewhere?)"
        if device_read < least_device_read:
            return f"not cold: {device_read} bytes came from the device, at least {least_device_read} were needed"
        return None
    if resident < 0.99:
        return f"not warm: only {resident:.0%} of the file stayed in the page cache (more memory, or smaller files)"
    return f"not warm: {device_read} bytes came from the device" if device_read else None
