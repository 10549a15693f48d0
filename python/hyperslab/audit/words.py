"""What an audit found, as lines of text: of one file, which `info --advise` prints too, and of an archive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hyperslab.archive.views import display
from hyperslab.audit.distance import Distance
from hyperslab.audit.file_audit import FileAudit
from hyperslab.audit.ledger import FaultGroup, Sums
from hyperslab.quantities import names_text, nbytes_text, seconds_text


def file_lines(audit: FileAudit, distance: Distance) -> Iterator[str]:
    """One file: the grade with its reason, what opening and reading take, the faults, and the remedy."""
    yield f"{audit.grade}: {audit.reason}"
    if audit.error is None:
        yield from _facts(audit, distance)
    for fault in audit.faults[1:] if audit.grade != "good" else audit.faults:
        yield f"also: {fault.said}"
    for note in audit.notes:
        yield f"note: {note}"
    yield from remedy_lines(audit)
    for said in audit.unmet:
        yield f"required, but not met: {said}"


def _facts(audit: FileAudit, distance: Distance) -> Iterator[str]:
    where = f"{distance.round_trip_seconds * 1000:g} ms away"
    if audit.request_count is not None:
        requests = display.counted(audit.request_count, "request", "requests")
        rounds = display.counted(audit.round_count or 0, "round", "rounds")
        yield (
            f"to open, {where}: {requests} in {rounds}, {nbytes_text(audit.fetched_nbytes)}, "
            f"{seconds_text(audit.open_seconds)}"
        )
    for cost in audit.accesses:
        here = "" if cost.local_seconds is None else f"; on this machine {seconds_text(cost.local_seconds)}"
        after = f", {seconds_text(cost.remedied_seconds)} in better chunks" if cost.saved_seconds > 0 else ""
        of = f" of {cost.array}" if cost.array and cost.array != audit.main_array else ""
        requests = display.counted(cost.request_count, "request", "requests")
        took = f"{nbytes_text(cost.fetched_nbytes)}, {seconds_text(cost.far_seconds)}"
        yield f"{cost.access}{of}: {requests}, {took}{after}{here}"
    if audit.missing_chunk_count:
        yield f"never written: {audit.missing_chunk_count:,} of {audit.chunk_count:,} chunks"


def remedy_lines(audit: FileAudit) -> Iterator[str]:
    """The commands, what they save and what they cost."""
    if audit.remedy is None:
        return
    for command in audit.remedy.commands:
        yield f"remedy: {command}"
    remedy = audit.remedy
    if remedy.read_nbytes:
        gain = seconds_text(remedy.saved_seconds) if remedy.saved_seconds > 0 else "nothing"
        saves = f"it would save {gain} each time the file is opened and read"
        costs = f"costs about {seconds_text(remedy.seconds)} once (an estimate)"
        moves = f"it reads {nbytes_text(remedy.read_nbytes)} and writes {nbytes_text(remedy.written_nbytes)}"
        yield f"{saves}, and {costs}: {moves}"


def headline(sums: Sums) -> str:
    """The answer in one sentence."""
    if not sums.file_count:
        return "There is no file to judge"
    files = display.counted(sums.file_count, "file", "files")
    bad = [(count, grade) for grade, count in sums.grades.items() if count and grade not in ("good",)]
    said = [f"{count:,} {'is' if count == 1 else 'are'} {grade}" for count, grade in reversed(bad)]
    if sums.unmet_count:
        said.append(f"{sums.unmet_count:,} {'lacks' if sums.unmet_count == 1 else 'lack'} what is required")
    if not said:
        return f"All is well with {files}: opening and reading them takes hardly longer than it must"
    return f"Of {files}, {names_text(said)}"


def sum_lines(sums: Sums, distance: Distance) -> Iterator[str]:
    """An archive: the answer, and what all files take together."""
    yield headline(sums)
    where = f"{distance.round_trip_seconds * 1000:g} ms away"
    requests = display.counted(sums.open_request_count, "request", "requests")
    yield (
        f"to open all of them once, {where}: {requests}, {nbytes_text(sums.open_nbytes)}, "
        f"{seconds_text(sums.open_seconds)} one after the other"
    )
    here = "" if sums.local_seconds is None else f"; the accesses on this machine {seconds_text(sums.local_seconds)}"
    yield f"to open them and make their accesses: {seconds_text(sums.seconds)}{here}"
    if sums.saved_seconds:
        yield (
            f"the remedies would save {seconds_text(sums.saved_seconds)} of that each time, and cost about "
            f"{seconds_text(sums.remedy_seconds)} once (an estimate)"
        )
    if sums.missing_chunk_count:
        total = sums.missing_chunk_count + sums.stored_chunk_count
        yield f"never written: {sums.missing_chunk_count:,} of {total:,} chunks"


def group_lines(groups: Iterable[FaultGroup]) -> Iterator[str]:
    """The groups of files with the same fault, those first whose remedy saves most."""
    for group in groups:
        files = display.counted(group.file_count, "file", "files")
        saved = f", costs {seconds_text(group.saved_seconds)}" if group.saved_seconds else ""
        example = f"such as {group.worst[0][1]}: {group.said}"
        yield f"{group.title}: {files} ({nbytes_text(group.nbytes)}){saved}; {example}"
