"""`audit_file` judges one file from its metadata: its grade, the reason, what usual accesses take, and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hyperslab.advise.conversion import estimated_rewrite
from hyperslab.archive.far.allowed import Locations
from hyperslab.archive.far.remote import is_url, shown
from hyperslab.archive.views import display
from hyperslab.audit import remedies
from hyperslab.audit.accesses import costs_of, main_array, tiny_of, wished_chunks
from hyperslab.audit.distance import Distance
from hyperslab.audit.facts import FileFacts, facts_of
from hyperslab.audit.faults import FAULTS, Judged, open_seconds, saved_by_opening
from hyperslab.audit.file_audit import Fault, FileAudit, Grade, Remedy
from hyperslab.audit.requirements import REQUIREMENTS
from hyperslab.audit.traced import TracedFiles
from hyperslab.conversion.purposes import changes_for
from hyperslab.errors import HyperslabError, InternalError
from hyperslab.model.store_profile import StoreProfile
from hyperslab.panics import is_panic
from hyperslab.quantities import nbytes_text, seconds_text

# A file whose accesses take at most so many times as long as after the remedy.
FAIR, SLOW, POOR = 1.25, 2.0, 5.0
# Savings of less than so many round trips do not matter.
WORTH_ROUND_TRIPS = 1.5
MOST_PROBLEMS = 3


@dataclass(frozen=True)
class Question:
    """What is asked of each file."""

    distance: Distance = field(default_factory=Distance)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    allowed: Locations | None = None
    require: str | None = None
    profile: StoreProfile | None = field(default=None, repr=False)
    traced: TracedFiles | None = field(default=None, repr=False)


def audit_file(name: str, question: Question) -> FileAudit:
    """Judge one file. What is wrong with it is in the result: nothing about a file is raised.

    Parameters
    ----------
    name : str
        A file, a Zarr folder, or a URL.
    question : Question
        What is asked.
    """
    given, name = name, shown(name) if is_url(name) else name  # a query may be a secret
    try:
        facts = facts_of(given, question.options, question.allowed)
        try:
            return _judged(facts, question)
        finally:
            if facts.root is not None:
                facts.root.close()
    except OSError as error:
        code = error.code if isinstance(error, HyperslabError) else "unreadable"
        return _unreadable(name, error.strerror or str(error), code, question)
    except HyperslabError as error:
        return _unreadable(name, str(error), error.code, question)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        said = f"a fault in hyperslab ({type(error).__name__}: {error}): please report it"
        return _unreadable(name, said, InternalError.code, question)


def _unreadable(name: str, said: str, code: str, question: Question) -> FileAudit:
    fault, unmet = Fault("unreadable", said), (said,) if question.require else ()
    return FileAudit(name, "unreadable", said, faults=(fault,), remedy=_check(name), error=said, code=code, unmet=unmet)


def _check(name: str) -> Remedy | None:
    """What to do about a file that cannot be read as a whole: `convert` refuses it."""
    return None if "://" in name else Remedy(remedies.check(name), 0.0, 0.0, 0, 0)


def _judged(facts: FileFacts, question: Question) -> FileAudit:
    distance, notes = question.distance, list[str]()
    if question.traced is None:
        accesses = tuple(costs_of(facts, distance, question.profile))
    else:
        accesses = tuple(question.traced.costs(facts, question.options, distance, question.profile, notes))
    judged = Judged(facts, distance, accesses)
    faults = sorted((fault for rule in FAULTS for fault in rule(judged)), key=lambda fault: -fault.saved_seconds)
    damage = _damage(facts)
    unmet = [] if question.require is None else [*damage, *REQUIREMENTS[question.require](judged)]
    opening = open_seconds(facts, distance)
    seconds = opening + sum(one.far_seconds for one in accesses)
    saved = saved_by_opening(facts, distance) + sum(one.saved_seconds for one in accesses)
    grade = _grade(seconds, saved, faults, distance, is_damaged=bool(damage))
    found = [*(Fault("damaged", said) for said in damage[:1]), *faults]
    reason = found[0].said if found and grade != "good" else _good(facts, opening, has_faults=bool(found))
    local = [one.local_seconds for one in accesses if one.local_seconds is not None]
    return replace(
        _described(facts, judged), grade=grade, reason=reason, faults=tuple(found), unmet=tuple(unmet),
        remedy=_check(facts.name) if damage else _remedy(judged, faults, question.require if unmet else None),
        seconds=seconds, open_seconds=opening,
        notes=(*notes, *facts.problems[:MOST_PROBLEMS]), local_seconds=sum(local) if local else None,
    )  # fmt: skip


def _damage(facts: FileFacts) -> list[str]:
    said = [f"{one.name} is damaged: {one.damaged}" for one in facts.arrays if one.damaged]
    if facts.lost_nbytes:
        said.insert(0, f"the file lacks {nbytes_text(facts.lost_nbytes)} at its end: it was cut off or never closed")
    return said


def _grade(seconds: float, saved: float, faults: list[Fault], distance: Distance, *, is_damaged: bool) -> Grade:
    """By how many times as long the file takes as it would without its faults."""
    if is_damaged:
        return "unreadable"
    least: Grade = "fair" if any(fault.kind in ("foreign-filters", "unsupported") for fault in faults) else "good"
    times = seconds / max(seconds - saved, 1e-9)
    if saved < WORTH_ROUND_TRIPS * distance.round_trip_seconds or times < FAIR:
        return least
    return "fair" if times < SLOW else "slow" if times < POOR else "poor"


def _remedy(judged: Judged, faults: list[Fault], unmet: str | None) -> Remedy | None:
    """The command for what is required and not met, or else for all faults that a command can remedy."""
    kinds, facts = {fault.kind for fault in faults}, judged.facts
    wishes = {one.name: wished_chunks(one) for one in facts.arrays}
    chunks = {name: wish for name, wish in wishes.items() if wish is not None}
    plain, purpose = "foreign-filters" in kinds, None
    if unmet == "cmip7":
        purpose, chunks = "cmip7", _grown_for(facts, "cmip7")
    elif chunks and not plain and chunks == _grown_for(facts, "cloud"):
        purpose = "cloud"
    commands = remedies.commands(
        facts.name, format=facts.format, purpose=purpose, chunks=chunks, relayout="scattered-metadata" in kinds,
        plain_codec=plain,
    )  # fmt: skip
    if not commands:
        return None
    saved = sum(cost.saved_seconds for cost in judged.accesses if cost.array in chunks)
    saved += saved_by_opening(facts, judged.distance)
    stored = facts.nbytes or sum(one.stored_nbytes or 0 for one in facts.arrays)
    encoded = sum(one.nbytes for one in facts.arrays if one.name in chunks or (plain and one.foreign_filters))
    stored_count = sum(one.stored_chunk_count or 0 for one in facts.arrays)
    cost = estimated_rewrite(stored, encoded, stored_count, len(facts.arrays))
    return Remedy(commands, saved, cost.seconds, stored, stored)


def _grown_for(facts: FileFacts, purpose: str) -> dict[str, tuple[int, ...]]:
    """The chunks that `convert --for` would make, by array."""
    if facts.root is None or (purpose == "cloud" and facts.format == "zarr"):  # Zarr stays Zarr
        return {}
    return {f"/{one.path}": one.chunks for one in changes_for(facts.root, purpose)}


def _good(facts: FileFacts, seconds: float, *, has_faults: bool) -> str:
    if facts.opening is None:
        return f"{display.counted(len(facts.arrays), 'array', 'arrays')}, nothing found that makes it slow"
    requests = display.counted(facts.opening.request_count, "request", "requests")
    chunks = "what could be better costs little" if has_faults else "its chunks suit far readers"
    return f"opening it takes {requests} ({seconds_text(seconds)}), and {chunks}"


def _described(facts: FileFacts, judged: Judged) -> FileAudit:
    opening, main = facts.opening, main_array(facts)
    counts: dict[str, Any] = {}
    if opening is not None:
        counts = {
            "request_count": opening.request_count, "round_count": opening.round_count,
            "fetched_nbytes": opening.fetched_nbytes, "metadata_nbytes": opening.metadata_nbytes,
            "place_count": opening.place_count,
        }  # fmt: skip
    if main is not None:
        mean = (main.stored_nbytes or 0) / main.stored_chunk_count if main.stored_chunk_count else None
        counts |= {
            "main_array": main.name, "main_shape": main.shape, "main_chunks": main.chunks, "main_chunk_nbytes": mean,
        }  # fmt: skip
    arrays = facts.arrays
    return FileAudit(
        facts.name, "good", "", facts.format, facts.nbytes, accesses=judged.accesses, array_count=len(arrays),
        tiny_array_count=len(tiny_of(facts)), decoded_nbytes=sum(one.nbytes for one in arrays),
        stored_nbytes=sum(one.stored_nbytes or 0 for one in arrays),
        chunk_count=sum(one.chunk_count for one in arrays),
        stored_chunk_count=sum(one.stored_chunk_count or 0 for one in arrays),
        missing_chunk_count=sum(one.missing_chunk_count for one in arrays),
        codecs=tuple(dict.fromkeys(codec for one in arrays for codec in one.codecs)),
        foreign_filters=tuple(dict.fromkeys(name for one in arrays for name in one.foreign_filters)), **counts,
    )  # fmt: skip
