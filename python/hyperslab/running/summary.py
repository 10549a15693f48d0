"""The line that `hyperslab run` prints at the end."""

from __future__ import annotations

from hyperslab.quantities import nbytes_text
from hyperslab.running.records import REASONS, WRITE_REASONS, Totals
from hyperslab.storage.table import filter_name

SHORT_SECONDS = 1.0
"""Below this, the library may not have compared yet: that would have taken more than a few percent of the time."""


def line(totals: Totals, notes: list[str]) -> str:
    """What happened, in one line of words."""
    return "hyperslab run: " + "; ".join([*_said(totals), *notes])


def _said(totals: Totals) -> list[str]:
    said = []
    if not (totals.served_reads or totals.passed_reads or totals.has_writes):
        said.append("no reads through libhdf5 were seen")
    if totals.served_reads:
        size = nbytes_text(totals.served_nbytes)
        ahead = f", {totals.ahead_reads} of them ahead" if totals.ahead_reads else ""
        took = f"{size}, in {_s(totals.served_seconds)} ({_compared(totals)})"
        said.append(f"served {_reads(totals.served_reads)}{ahead}, {took}")
    if totals.lacking_reads:
        said.append(_lacking(totals))
    if totals.passed_reads:
        why = _listed(totals.passed, REASONS)
        # Reading the clock would take a part of the time of a small read.
        untimed = ", small ones not counted" if "small" in totals.passed else ""
        took = f" ({_s(totals.passed_seconds)}{untimed})" if totals.passed_seconds else ""
        said.append(f"left {_reads(totals.passed_reads)} to libhdf5{took}: {why}")
    said += _writes(totals)
    if totals.far.files:
        said.append(_far(totals))
    if totals.waits:
        times = "once" if totals.waits == 1 else f"{totals.waits} times"
        said.append(f"threads waited {times} for each other's calls ({_s(totals.waited_seconds)})")
    if totals.process_count > 1:
        said.append(f"{totals.process_count} processes")
    if totals.unknown_count:
        said.append(f"the counts of {totals.unknown_count} processes cannot be read")
    return said


def _writes(totals: Totals) -> list[str]:
    """What happened to writes, if there were any."""
    said = []
    if totals.encoded_writes:
        size, took = nbytes_text(totals.encoded_nbytes), _s(totals.encoding_seconds)
        chunks = "1 chunk" if totals.encoded_chunks == 1 else f"{totals.encoded_chunks} chunks"
        beside = f" ({totals.waited_writes} while the program went on)" if totals.waited_writes else ""
        said.append(f"encoded {_count(totals.encoded_writes, 'write')}, {size} in {chunks}, in {took}{beside}")
    if totals.left_writes:
        count = sum(writes for writes, _ in totals.left_writes.values())
        said.append(f"left {_count(count, 'write')} to libhdf5: {_listed(totals.left_writes, WRITE_REASONS)}")
    return said


def _far(totals: Totals) -> str:
    """What files at URLs cost."""
    fetched, kept = nbytes_text(totals.far.nbytes), nbytes_text(totals.far.kept_nbytes)
    cost = f"{_count(totals.far.requests, 'request')}, {fetched}"
    hits = f"{totals.far.reads_kept} of {_count(totals.far.reads, 'small read')} found what had come before, {kept}"
    return f"opened {_count(totals.far.files, 'URL')}: {cost}; {hits}"


def _listed(calls: dict[str, tuple[int, int]], words: dict[str, str]) -> str:
    """The reasons, the most frequent one first."""
    reasons = sorted(calls.items(), key=lambda item: -item[1][0])
    return ", ".join(f"{count} {words[reason]}" for reason, (count, _) in reasons)


def _lacking(totals: Totals) -> str:
    """What the program could not have read by itself, and how it could."""
    known = {number: filter_name(number) for number in totals.lacked_filters}
    named = (str(number) if str(number) in name else f"{number} ({name})" for number, name in known.items())
    filters = " and ".join(sorted(named))
    them = "all of them" if totals.lacking_reads == totals.served_reads else f"{totals.lacking_reads} of them"
    return (
        f"{them} need HDF5's filter {filters}, which the program's libhdf5 does not have: without `hyperslab run` "
        "they would fail (HDF5_PLUGIN_PATH names folders with filters)"
    )


def _compared(totals: Totals) -> str:
    """What libhdf5 would have taken, or why that is not known."""
    if totals.libhdf5_seconds is not None:
        return f"libhdf5 would have taken about {_s(totals.libhdf5_seconds)}"
    if totals.served_seconds < SHORT_SECONDS:
        return "too short to compare with libhdf5"
    return "libhdf5's time is unknown: most reads could not be compared"


def _reads(count: int) -> str:
    return _count(count, "read")


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _s(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def as_json(totals: Totals, notes: list[str], status: int, signal: str | None) -> str:
    """The same for programs: one JSON object."""
    import json

    left = {reason: {"writes": writes, "nbytes": size} for reason, (writes, size) in totals.left_writes.items()}
    passed = {reason: {"reads": reads, "nbytes": size} for reason, (reads, size) in totals.passed.items()}
    return json.dumps({
        "served": {
            "reads": totals.served_reads, "nbytes": totals.served_nbytes, "seconds": totals.served_seconds,
            "libhdf5_seconds": totals.libhdf5_seconds, "ahead": totals.ahead_reads,
            "lacking": totals.lacking_reads, "lacked_filters": sorted(totals.lacked_filters),
        },
        "passed": {"reads": totals.passed_reads, "timed_seconds": totals.passed_seconds, "reasons": passed},
        "waits": {"count": totals.waits, "seconds": totals.waited_seconds},
        "writes": {
            "encoded": totals.encoded_writes, "chunks": totals.encoded_chunks, "nbytes": totals.encoded_nbytes,
            "seconds": totals.encoding_seconds, "waited": totals.waited_writes, "left": left,
        },
        "urls": {
            "files": totals.far.files, "requests": totals.far.requests, "nbytes": totals.far.nbytes,
            "kept_nbytes": totals.far.kept_nbytes, "reads": totals.far.reads, "reads_kept": totals.far.reads_kept,
        },
        "processes": totals.process_count, "unreadable_records": totals.unknown_count,
        "exit_status": status, "signal": signal, "notes": notes,
    })  # fmt: skip
