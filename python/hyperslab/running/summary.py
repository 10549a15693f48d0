"""The line that `hyperslab run` prints at the end."""

from __future__ import annotations

from hyperslab.running.records import REASONS, Totals
from hyperslab.storage.table import filter_name

SHORT_SECONDS = 1.0
"""Below this, the library may not have compared yet: that would have taken more than a few percent of the time."""


def line(found: Totals, notes: list[str]) -> str:
    """What happened, in one line of words."""
    return "hyperslab run: " + "; ".join([*_said(found), *notes])


def _said(found: Totals) -> list[str]:
    if not found.served_reads and not found.passed_reads:
        return ["no reads through libhdf5 were seen"]
    said = []
    if found.served_reads:
        size = nbytes(found.served_nbytes)
        ahead = f", {found.ahead_reads} of them ahead" if found.ahead_reads else ""
        took = f"{size}, in {_s(found.served_seconds)} ({_compared(found)})"
        said.append(f"served {_reads(found.served_reads)}{ahead}, {took}")
    if found.lacking_reads:
        said.append(_lacking(found))
    if found.passed_reads:
        reasons = sorted(found.passed.items(), key=lambda item: -item[1][0])
        why = ", ".join(f"{reads} {REASONS[reason]}" for reason, (reads, _) in reasons)
        # Reading the clock would take a part of the time of a small read.
        untimed = ", small ones not counted" if "small" in found.passed else ""
        took = f" ({_s(found.passed_seconds)}{untimed})" if found.passed_seconds else ""
        said.append(f"left {_reads(found.passed_reads)} to libhdf5{took}: {why}")
    if found.process_count > 1:
        said.append(f"{found.process_count} processes")
    if found.unknown_count:
        said.append(f"the counts of {found.unknown_count} processes cannot be read")
    return said


def _lacking(found: Totals) -> str:
    """What the program could not have read by itself, and how it could."""
    known = {number: filter_name(number) for number in found.lacked_filters}
    named = (str(number) if str(number) in name else f"{number} ({name})" for number, name in known.items())
    filters = " and ".join(sorted(named))
    them = "all of them" if found.lacking_reads == found.served_reads else f"{found.lacking_reads} of them"
    return (
        f"{them} need HDF5's filter {filters}, which the program's libhdf5 does not have: without `hyperslab run` "
        "they would fail (HDF5_PLUGIN_PATH names folders with filters)"
    )


def _compared(found: Totals) -> str:
    """What libhdf5 would have taken, or why that is not known."""
    if found.libhdf5_seconds is not None:
        return f"libhdf5 would have taken about {_s(found.libhdf5_seconds)}"
    if found.served_seconds < SHORT_SECONDS:
        return "too short to compare with libhdf5"
    return "libhdf5's time is unknown: most reads could not be compared"


def _reads(count: int) -> str:
    return f"{count} read" if count == 1 else f"{count} reads"


def _s(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def nbytes(count: int) -> str:
    """Bytes in the unit that people would use."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{count} B" if count < 1024 else f"{size:.1f} {units[0]}"


def as_json(found: Totals, notes: list[str], status: int, signal: str | None) -> str:
    """The same for programs: one JSON object."""
    import json

    passed = {reason: {"reads": reads, "nbytes": size} for reason, (reads, size) in found.passed.items()}
    return json.dumps({
        "served": {
            "reads": found.served_reads, "nbytes": found.served_nbytes, "seconds": found.served_seconds,
            "libhdf5_seconds": found.libhdf5_seconds, "ahead": found.ahead_reads,
            "lacking": found.lacking_reads, "lacked_filters": sorted(found.lacked_filters),
        },
        "passed": {"reads": found.passed_reads, "timed_seconds": found.passed_seconds, "reasons": passed},
        "processes": found.process_count, "unreadable_records": found.unknown_count,
        "exit_status": status, "signal": signal, "notes": notes,
    })  # fmt: skip
