"""The raw log: what a process writes while it is recorded, one file for each process.

All numbers are little-endian. A file begins with a header of 56 bytes:

    8s   b"HSTRACE\\0"
    u32  version of this format: 2
    u32  process ID
    u32  process ID of the parent
    u16  state: 0 running (or killed), 1 ended, 2 the recorder stopped because it could not write, 3 the process started
         another program in its place (exec)
    u16  errno, in state 2
    u64  the time of day, in nanoseconds since 1970
    u64  CLOCK_MONOTONIC at the same moment, in nanoseconds
    u64  accesses that are not in the log because the recorder had stopped
    u64  accesses that the log should have; may be 0 while running

Records follow: u32 length of the body, u8 kind, three zeros, the body, and zeros up to a multiple of eight bytes. Eight
zeros in place of a record end the log. The bodies, by kind:

    1 array   u32 number, then JSON: library, file, array, shape, chunks, shards, dtype, element_nbytes, filters,
              layout, cache_nbytes, cache_slots, cache_w0, stored_nbytes, decodes (the numbers of the filters that the
              program's own libhdf5 has, of those that an advice may name); whatever is unknown is left out
    2 access  u64 start (CLOCK_MONOTONIC, ns), u64 duration (ns), u64 thread, u64 bytes in the array's dtype, u32 array,
              u32 text that names the dtype in memory (0 if unknown), u8 operation (0 read, 1 write),
              u8 flags (1 collective, 2 failed, 4 encoded chunk, 8 the array was closed and opened again since this
              process accessed it before, 16 so was its file), u8 kind of selection, then the selection as i64
    3 text    u32 number (from 1), then UTF-8
    4 event   JSON: `arguments` at the start
    5 element access to a single element: u64 start, u64 thread, u32 duration, u32 array, u32 text, u8 operation,
              u8 flags, u16 zero, then its indices as i64

Kinds of selection, for an array with n axes:

    0 all        nothing
    1 hyperslab  for each axis: start, stride, count, block
    2 boxes      for each box: n starts, n lengths
    3 points     for each point: n indices
    4 lists      for each axis: 0, start, step, count, or 1, number of indices, the indices; their outer product is
                 selected
    5 bounds     n starts, n lengths: something irregular lies within, which is unknown or has too many parts
    6 nothing    nothing

A record is written with one call of write, so that a killed process loses at most the last one. If that fails, the
recorder stops and says so in the header, whose bytes are on the disk already; the program goes on. The library that is
preloaded (`crates/hyperslab-preload/src/recording/log.rs`) writes the same into memory that is mapped to the file.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

MAGIC, VERSION = b"HSTRACE\0", 2
HEADER = struct.Struct("<8sIIIHHQQQQ")
STATE_OFFSET = 20
STATE = struct.Struct("<HH")
COUNTS_OFFSET = 40
COUNTS = struct.Struct("<QQ")
RECORD = struct.Struct("<IB3x")
ALIGNMENT = 8
ACCESS = struct.Struct("<QQQQIIBBB")
NUMBER = struct.Struct("<I")
ELEMENT_ACCESS = struct.Struct("<QQIIIBBxx")
ARRAY, ACCESSED, TEXT, EVENT, ELEMENT = 1, 2, 3, 4, 5
READ, WRITE = 0, 1
COLLECTIVE, FAILED, ENCODED, REOPENED, FILE_REOPENED = 1, 2, 4, 8, 16
RUNNING, ENDED, STOPPED, REPLACED = 0, 1, 2, 3
ALL, HYPERSLAB, BOXES, POINTS, LISTS, BOUNDS, NOTHING = range(7)
MOST_NUMBERS = 1 << 20  # of a selection: above, only its bounds are written
clock = time.perf_counter_ns  # CLOCK_MONOTONIC on Linux, which processes share


def _record(kind: int, body: bytes) -> bytes:
    return RECORD.pack(len(body), kind) + body + bytes(-len(body) % ALIGNMENT)


class Log:
    """The raw log of this process. A forked child gets its own."""

    def __init__(self, folder: str, is_whole_program: bool = False) -> None:
        self.folder: str = os.path.abspath(folder)
        self.epoch: int = 0
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._dtype_names: dict[Any, str] = {}
        self._forget()
        self._is_whole_program = is_whole_program
        if is_whole_program:
            os.register_at_fork(after_in_child=self._leave_to_parent)
            atexit.register(self.close)
        self.is_open: bool = True
        self.inside = threading.local()  # an access that a library makes to serve another one counts once
        self.preloaded: str | None = None
        """The path of the preloaded library, if it records too."""
        self._tell: Callable[[int], Any] | None = None

    def _forget(self) -> None:
        self._arrays: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        self._is_stopped = False
        self._count = self._lost = 0

    def _leave_to_parent(self) -> None:
        self._lock = threading.Lock()  # another thread of the parent may have held it
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self.epoch += 1  # numbers of arrays are those of another file now
        self._forget()

    def enter(self) -> None:
        """This thread begins an access: those that libraries make to serve it do not count."""
        self.inside.depth = 1
        self._tell_preloaded(1)

    def leave(self) -> None:
        """The access has ended."""
        self.inside.depth = 0
        self._tell_preloaded(-1)

    def _tell_preloaded(self, change: int) -> None:
        if self.preloaded is None:
            return
        if self._tell is None:
            import ctypes

            self._tell = ctypes.CDLL(self.preloaded).hyperslab_recording_inside
        self._tell(change)

    def array(self, description: dict[str, Any]) -> int:
        """The number of an array; its description is written the first time."""
        text = json.dumps(description)
        with self._lock:
            number = self._arrays.get(text)
            if number is None:
                number = self._arrays[text] = len(self._arrays)
                self._write(ARRAY, NUMBER.pack(number) + text.encode())
            return number

    def dtype_name(self, dtype: Any) -> str:
        """The name of a dtype; NumPy takes long to make it."""
        if dtype is None:
            return ""
        name = self._dtype_names.get(dtype)
        if name is None:
            name = self._dtype_names[dtype] = str(dtype)
        return name

    def access(
        self,
        times: tuple[int, int],
        array: int,
        operation: int,
        selection: tuple[int, list[int]],
        nbytes: int,
        memory_type: str = "",
        flags: int = 0,
    ) -> None:
        """Write one access: when it began and ended, the array, and what was selected."""
        kind, numbers = selection
        with self._lock:
            if not self.is_open:
                return
            text = self._texts.get(memory_type, 0)
            if text == 0 and memory_type:
                text = self._texts[memory_type] = len(self._texts) + 1
                self._write(TEXT, NUMBER.pack(text) + memory_type.encode())
            start, stop = times
            thread = threading.get_ident()
            head = ACCESS.pack(start, stop - start, thread, nbytes, array, text, operation, flags, kind)
            is_written = self._write(ACCESSED, head + struct.pack(f"<{len(numbers)}q", *numbers))
            self._count += 1
            self._lost += not is_written

    def close(self) -> None:
        """Say in the header that the process ended, and how many accesses there were."""
        with self._lock:
            self.is_open = not self._is_whole_program and self.is_open  # threads may outlive `atexit`
            if self._descriptor is None:
                return
            with contextlib.suppress(OSError):
                os.pwrite(self._descriptor, COUNTS.pack(self._lost, self._count), COUNTS_OFFSET)
                if not self._is_stopped:
                    os.pwrite(self._descriptor, STATE.pack(ENDED, 0), STATE_OFFSET)
            os.close(self._descriptor)
            self._descriptor = None
            self.is_open = False

    def _write(self, kind: int, body: bytes) -> bool:
        if self._is_stopped:
            return False
        try:
            if self._descriptor is None:
                self._open()
            assert self._descriptor is not None
            record = _record(kind, body)
            written = os.write(self._descriptor, record)
            if written < len(record):  # the disk is full: writing the rest tells why
                os.write(self._descriptor, record[written:])
        except OSError as error:
            self._is_stopped = True
            self._say_stopped(error.errno or 0)
            return False
        return True

    def _say_stopped(self, errno: int) -> None:
        with contextlib.suppress(OSError):
            if self._descriptor is not None:
                os.pwrite(self._descriptor, STATE.pack(STOPPED, errno & 0xFFFF), STATE_OFFSET)
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"hyperslab trace: recording stops in process {os.getpid()}: {os.strerror(errno)}\n")

    def _open(self) -> None:
        path = f"{self.folder}/{os.getpid()}-{time.monotonic_ns()}.log"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        header = HEADER.pack(MAGIC, VERSION, os.getpid(), os.getppid(), RUNNING, 0, time.time_ns(), clock(), 0, 0)
        os.write(self._descriptor, header)
        body = json.dumps({"arguments": getattr(sys, "orig_argv", sys.argv)[:100]}).encode()
        os.write(self._descriptor, _record(EVENT, body))
        util = sys.modules.get("multiprocessing.util")
        if util is not None and self._is_whole_program:  # its children leave without `atexit`
            util.Finalize(None, self.close, exitpriority=-1000)
