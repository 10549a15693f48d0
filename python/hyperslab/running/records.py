"""What the processes of a program counted. The preloaded library writes a small file for each."""

from __future__ import annotations

import os
import struct

from hyperslab.preloading import content, users_folders

# As in crates/hyperslab-preload/src/counts.rs: a mark with the version, thirteen numbers, and two for each reason; then
# five numbers on writes, and two for each of their reasons; then six on files at URLs.
MAGIC = b"HSRUN\0\0\x08"
REASONS = {
    "small": "small",
    "writable": "of files open for writing",
    "driver": "by another file driver",
    "swmr": "with SWMR",
    "changed": "of files that changed",
    "properties": "with transfer properties",
    "conversion": "that convert elements",
    "pointers": "of variable length or references",
    "selection": "of irregular selections",
    "memory": "into irregular memory",
    "layout": "of a layout or filter that we do not read",
    "failed": "that failed",
    "library": "by an older or wrapped libhdf5",
    "invalid": "with wrong arguments",
    "busy": "at the same time as others",
    "stack": "by threads with small stacks",
}
"""Why reads were left to libhdf5, in the order of crates/hyperslab-preload/src/reason.rs, and how to say it."""
WRITE_REASONS = {
    "small": "small",
    "plain": "without filters",
    "parts": "of parts of chunks",
    "again": "to the same chunks again",
    "filter": "with filters that we do not encode",
    "driver": "by another file driver",
    "swmr": "with SWMR",
    "properties": "with transfer properties",
    "conversion": "that convert elements",
    "pointers": "of variable length or references",
    "memory": "from irregular memory",
    "invalid": "with wrong arguments",
    "library": "by an older or wrapped libhdf5",
    "failed": "that failed",
    "stuck": "after one that could not be stored",
}
"""Why writes were left to libhdf5, in the order of crates/hyperslab-preload/src/write_reason.rs, and how to say it."""
_NUMBERS = 13
_FIRST_WRITE = _NUMBERS + 2 * len(REASONS)
_FIRST_LEFT = _FIRST_WRITE + 5
_FIRST_FAR = _FIRST_LEFT + 2 * len(WRITE_REASONS)
_WORDS = struct.Struct(f"<{_FIRST_FAR + 6}Q")


class FarTotals:
    """What files at URLs cost."""

    def __init__(self) -> None:
        self.files: int = 0
        """How often one was opened, or could not be."""
        self.requests: int = 0
        """The requests for them."""
        self.nbytes: int = 0
        """The bytes that came."""
        self.kept_nbytes: int = 0
        """The bytes that were asked for again and had come before."""
        self.reads: int = 0
        """Reads of parts of them by libhdf5 and netCDF-C."""
        self.reads_kept: int = 0
        """The reads of `reads` for which nothing had to be fetched."""

    def add(self, numbers: tuple[int, ...]) -> None:
        """Add the numbers of one process."""
        files, requests, nbytes, kept_nbytes, reads, reads_kept = numbers
        self.files += files
        self.requests += requests
        self.nbytes += nbytes
        self.kept_nbytes += kept_nbytes
        self.reads += reads
        self.reads_kept += reads_kept


class Totals:
    """The counts of all processes of a program."""

    # No dataclass: importing `dataclasses` would take longer than all that `hyperslab run` does.
    def __init__(self) -> None:
        self.process_count: int = 0
        """How many processes read HDF5 files."""
        self.unknown_count: int = 0
        """How many left a record that cannot be read: of another version, or cut off."""
        self.served_reads: int = 0
        """Reads that our engine did."""
        self.served_nbytes: int = 0
        """The bytes that they brought."""
        self.served_seconds: float = 0.0
        """The time that they took."""
        self.passed_seconds: float = 0.0
        """The time of the reads that were passed on and timed; small ones are not."""
        self.estimated_seconds: float = 0.0
        """What libhdf5 would have taken for the reads of `compared_seconds`, by samples."""
        self.compared_seconds: float = 0.0
        """The time of the reads that were compared with libhdf5."""
        self.ahead_reads: int = 0
        """The reads of `served_reads` that were done ahead, while the program computed."""
        self.lacking_reads: int = 0
        """The reads of `served_reads` that libhdf5 could not have done, for want of a filter."""
        self.lacked_filters: set[int] = set()
        """The numbers of such filters, one for each process."""
        self.waits: int = 0
        """How often a thread waited until another one had done its call of a library that is not made for threads."""
        self.waited_seconds: float = 0.0
        """How long all of them waited."""
        self.passed: dict[str, tuple[int, int]] = {}
        """For each reason, how many reads were left to libhdf5, and how many bytes of them are known."""
        self.encoded_writes: int = 0
        """Writes that our engine encoded."""
        self.encoded_chunks: int = 0
        """The chunks that they stored."""
        self.encoded_nbytes: int = 0
        """The bytes that they had before they were encoded."""
        self.encoding_seconds: float = 0.0
        """The time that they took."""
        self.waited_writes: int = 0
        """How many of them were encoded while the program went on."""
        self.left_writes: dict[str, tuple[int, int]] = {}
        """For each reason, how many writes were left to libhdf5, and how many bytes of them are known."""
        self.far: FarTotals = FarTotals()
        """What files at URLs cost."""

    def add(self, record: bytes) -> None:
        """Add the record of one process."""
        if len(record) != len(MAGIC) + _WORDS.size or not record.startswith(MAGIC):
            self.unknown_count += 1
            return
        numbers = _WORDS.unpack(record[len(MAGIC) :])
        self.process_count += 1
        self.served_reads += numbers[0]
        self.served_nbytes += numbers[1]
        self.served_seconds += numbers[2] / 1e9
        self.passed_seconds += numbers[3] / 1e9
        self.estimated_seconds += numbers[6] / 1e9
        self.compared_seconds += numbers[7] / 1e9
        self.ahead_reads += numbers[8]
        self.lacking_reads += numbers[9]
        if numbers[9]:
            self.lacked_filters.add(numbers[10])
        self.waits += numbers[11]
        self.waited_seconds += numbers[12] / 1e9
        _add(self.passed, REASONS, numbers[_NUMBERS:])
        writes, chunks, nbytes, nanoseconds, waited = numbers[_FIRST_WRITE:_FIRST_LEFT]
        self.encoded_writes += writes
        self.encoded_chunks += chunks
        self.encoded_nbytes += nbytes
        self.encoding_seconds += nanoseconds / 1e9
        self.waited_writes += waited
        _add(self.left_writes, WRITE_REASONS, numbers[_FIRST_LEFT:])
        self.far.add(numbers[_FIRST_FAR:])

    @property
    def passed_reads(self) -> int:
        """Reads that libhdf5 did."""
        return sum(reads for reads, _ in self.passed.values())

    @property
    def has_writes(self) -> bool:
        """Whether writes were seen."""
        return bool(self.encoded_writes or self.left_writes)

    @property
    def libhdf5_seconds(self) -> float | None:
        """What libhdf5 would have taken for all reads that we served; None if too little of that was compared."""
        if not self.served_reads or self.compared_seconds < self.served_seconds / 2:
            return None
        return self.estimated_seconds * self.served_seconds / self.compared_seconds


def _add(sums: dict[str, tuple[int, int]], reasons: dict[str, str], numbers: tuple[int, ...]) -> None:
    """Add how many calls there were for each reason, and their bytes."""
    for place, reason in enumerate(reasons):
        calls, nbytes = numbers[2 * place : 2 * place + 2]
        before = sums.get(reason, (0, 0))
        if calls:
            sums[reason] = (before[0] + calls, before[1] + nbytes)


def totals(folder: str) -> Totals:
    """The sum of all records in a folder."""
    sums = Totals()
    folders = users_folders(folder)
    for path in (f"{one}/{entry}" for one in folders for entry in sorted(os.listdir(one))):  # noqa: PTH208
        if path.endswith(".so") or path in folders:
            continue
        try:
            sums.add(content(path, 1 << 16))
        except OSError:
            sums.unknown_count += 1
    return sums
