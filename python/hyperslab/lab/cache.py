"""The state of the page cache: how to bring it about and how to prove it.

cold     Every file is synced, then evicted (posix_fadvise DONTNEED; also drop_caches if permitted, which drops
         directories and inodes too). Proof: mincore finds nothing resident before, and the trial reads from the
         device. The host of a virtual machine may still cache the files: cold means cold for the guest.
warm     Every file is read through once. Proof: mincore finds all of it resident before, and the trial reads
         nothing from the device.
new      The file does not exist yet, because the trial writes it. Other dirty pages are synced first.
unknown  Nothing is done and nothing is claimed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hyperslab.chunk_grid import ceil_div

PAGE = mmap.PAGESIZE
DROP_CACHES = "/proc/sys/vm/drop_caches"
# With more files than this, one syncfs is cheaper than syncing each file.
MOST_FSYNCS = 64

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def files_below(path: Path) -> list[Path]:
    """The file at `path`, or every file below the directory `path`."""
    if not path.is_dir():
        return [path] if path.exists() else []
    return [Path(folder, name) for folder, _, names in os.walk(path) for name in sorted(names)]


def disk_usage(path: Path) -> tuple[int, int]:
    """Bytes and number of the files below a path. A sparse file counts only its allocated blocks, as with `du`."""
    files = files_below(path)
    return sum(file.stat().st_size for file in files), len(files)


def make_durable(path: Path) -> None:
    """Sync a file or tree to the device: fsync each file and directory, or use syncfs if there are many."""
    files = files_below(path)
    if len(files) > MOST_FSYNCS:
        with _descriptor_of(path) as descriptor:
            if _libc.syncfs(descriptor) != 0:
                raise OSError(ctypes.get_errno(), "syncfs", str(path))
        return
    folders = {path.parent, *(file.parent for file in files)}
    for entry in [*files, *sorted(folders, reverse=True)]:
        with _descriptor_of(entry) as descriptor:
            os.fsync(descriptor)


def evict(paths: Sequence[Path], *, others: bool = True) -> None:
    """Make files cold: sync them and advise the kernel to drop them.

    With `others`, all caches are dropped if that is permitted: directories too, and what other programs need.
    """
    for path in paths:
        with _descriptor_of(path) as descriptor:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    if others and os.access(DROP_CACHES, os.W_OK):
        with open(DROP_CACHES, "w") as control:
            control.write("3")


def warm_up(paths: Sequence[Path]) -> None:
    """Make files warm by reading each of them through.

    They are synced first so that no write-back disturbs the trial.
    """
    buffer = bytearray(1 << 20)
    for path in paths:
        with _descriptor_of(path) as descriptor:
            os.fsync(descriptor)
            while os.readv(descriptor, [buffer]):
                pass


def resident_fraction(paths: Sequence[Path]) -> float | None:
    """The share of the files' pages that are in the page cache, by mincore(2). None if the files have no pages."""
    pages = [_resident_pages(path) for path in paths]
    total = sum(count for _, count in pages)
    return sum(resident for resident, _ in pages) / total if total else None


def _resident_pages(path: Path) -> tuple[int, int]:
    length = path.stat().st_size
    if length == 0:
        return 0, 0
    count = ceil_div(length, PAGE)
    with _descriptor_of(path) as descriptor:
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


@contextmanager
def _descriptor_of(path: Path) -> Iterator[int]:
    """A read-only descriptor of a file or directory. Leaving the context closes it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class DeviceBytes:
    """Bytes that this process, with all its threads, has read from and written to devices, by /proc/self/io."""

    read: int
    written: int

    def __sub__(self, other: DeviceBytes) -> DeviceBytes:
        return DeviceBytes(self.read - other.read, self.written - other.written)


def device_bytes() -> DeviceBytes | None:
    """The current counters, or None if the kernel does not keep them."""
    try:
        with open("/proc/self/io", "rb", buffering=0) as stream:
            counters = dict(line.split(b": ") for line in stream.read().splitlines())
    except OSError:
        return None
    return DeviceBytes(int(counters[b"read_bytes"]), int(counters[b"write_bytes"]))


def bring_about(state: str, paths: Sequence[Path]) -> float | None:
    """Put the files into a state before a read. Returns the resident fraction that mincore then finds."""
    if state == "cold":
        evict(paths)
    elif state == "warm":
        warm_up(paths)
    return resident_fraction(paths)


def why_not(state: str, resident: float | None, device_read: int | None, least_device_read: int) -> str | None:
    """Why the cache state of a trial is not proved, or None if it is.

    Parameters
    ----------
    state : str
        `cold`, `warm`, `new` or `unknown`.
    resident : float | None
        The share of the files that was in the page cache before the trial.
    device_read : int | None
        Bytes that the trial read from the device.
    least_device_read : int
        Bytes that a cold trial must read from the device.

    Returns
    -------
    str | None
        The reason, in words.
    """
    if state not in ("cold", "warm") or resident is None:
        return None
    if device_read is None:
        return "the kernel does not count device bytes (/proc/self/io), so no cache state can be proved"
    if state == "cold":
        if resident > 0.01:
            return f"not cold: {resident:.0%} of the file was still in the page cache (tmpfs, or mapped elsewhere?)"
        if device_read < least_device_read:
            return f"not cold: {device_read} bytes came from the device, but at least {least_device_read} were needed"
        return None
    if resident < 0.99:
        return f"not warm: only {resident:.0%} of the file stayed in the page cache (more memory, or smaller files)"
    return f"not warm: {device_read} bytes came from the device" if device_read else None
