"""What makes a file slow or hard to read: the rules, each with the seconds that it costs at a distance.

`FAULTS` lists them. A rule looks at the facts of one file alone, so that an audit needs nothing but metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hyperslab.archive.views import display
from hyperslab.audit.accesses import MANY_TINY_ARRAYS, is_cut_coordinate, is_large, is_small, tiny_of
from hyperslab.audit.distance import Distance
from hyperslab.audit.facts import TINY_NBYTES, ArrayFacts, FileFacts
from hyperslab.audit.file_audit import AccessCost, Fault
from hyperslab.chunk_grid import ceil_div
from hyperslab.quantities import names_text, nbytes_text

# What the request that opens a far file brings; a second round also brings as many from its end.
FIRST_NBYTES = 512 << 10
PART_NBYTES = 64 << 20  # that one more request for metadata brings at most
MOST_NAMED = 3


@dataclass(frozen=True)
class Judged:
    """A file with what its accesses take: what the rules look at."""

    facts: FileFacts
    distance: Distance
    accesses: tuple[AccessCost, ...]

    def saved_by(self, arrays: list[ArrayFacts]) -> float:
        """What the right chunks of some arrays save."""
        names = {one.name for one in arrays}
        return sum(cost.saved_seconds for cost in self.accesses if cost.array in names)


def scattered_metadata(judged: Judged) -> Iterator[Fault]:
    """The metadata of an HDF5 file are not in one block at the front."""
    opening = judged.facts.opening
    if opening is None or is_in_front(judged.facts):
        return
    places = display.counted(opening.place_count, "place", "places")
    said = (
        f"its metadata ({nbytes_text(opening.metadata_nbytes)}) are in {places}: opening it takes "
        f"{opening.request_count} requests in {opening.round_count} rounds"
    )
    yield Fault("scattered-metadata", said, saved_by_opening(judged.facts, judged.distance))


def is_in_front(facts: FileFacts) -> bool:
    """Whether the metadata are in one block at the front: in the first request, or with few other bytes between them.

    Only HDF5 puts them anywhere; other formats count as good.
    """
    opening = facts.opening
    if opening is None or facts.format != "hdf5":
        return True
    return opening.metadata_end <= max(FIRST_NBYTES, 2 * opening.metadata_nbytes)


def open_seconds(facts: FileFacts, distance: Distance) -> float:
    """The seconds that opening a file takes; 0 where nothing was counted."""
    opening = facts.opening
    if opening is None:
        return 0.0
    return distance.seconds(opening.request_count, opening.fetched_nbytes, opening.round_count)


def saved_by_opening(facts: FileFacts, distance: Distance) -> float:
    """What the metadata in front save."""
    if facts.opening is None or is_in_front(facts):
        return 0.0
    more = max(0, facts.opening.metadata_nbytes - FIRST_NBYTES)
    count, rounds = (2 + ceil_div(more, PART_NBYTES), 2) if more else (1, 1)
    nbytes = min(facts.opening.nbytes, rounds * FIRST_NBYTES + more)
    return max(0.0, open_seconds(facts, distance) - distance.seconds(count, nbytes, rounds))


def small_chunks(judged: Judged) -> Iterator[Fault]:
    """Arrays have several chunks that are too small for a far reader."""
    found = [one for one in judged.facts.arrays if is_small(one) and not is_cut_coordinate(one)]
    if found:
        worst = max(found, key=lambda one: one.stored_chunk_count or 0)
        mean = (worst.stored_nbytes or 0) / max(worst.stored_chunk_count or 1, 1)
        said = f"{_named(found)} in chunks that are too small: {worst.name} has {worst.stored_chunk_count:,} of "
        yield Fault("small-chunks", f"{said}{nbytes_text(mean)}", judged.saved_by(found))


def large_chunks(judged: Judged) -> Iterator[Fault]:
    """Reading any part of an array fetches very much."""
    found = [one for one in judged.facts.arrays if is_large(one)]
    if found:
        worst = max(found, key=lambda one: (one.stored_nbytes or 0) / max(one.stored_chunk_count or 1, 1))
        mean = (worst.stored_nbytes or 0) / max(worst.stored_chunk_count or 1, 1)
        said = f"{_named(found)} in chunks that are too large: {worst.name} in chunks of {nbytes_text(mean)}"
        yield Fault("large-chunks", said, judged.saved_by(found))


def cut_coordinates(judged: Judged) -> Iterator[Fault]:
    """Coordinates have more than one chunk, although every reader reads them whole."""
    found = [one for one in judged.facts.arrays if is_cut_coordinate(one)]
    if found:
        worst = max(found, key=lambda one: one.stored_chunk_count or 0)
        said = f"coordinates are in more than one chunk: {worst.name} has {worst.stored_chunk_count:,}"
        yield Fault("cut-coordinates", said, judged.saved_by(found))


def tiny_arrays(judged: Judged) -> Iterator[Fault]:
    """So many arrays of a few bytes that reading them takes a request each."""
    count = len(tiny_of(judged.facts))
    if count >= MANY_TINY_ARRAYS:
        said = f"{count:,} arrays have at most {TINY_NBYTES:,} bytes each: a reader needs a request for each"
        yield Fault("tiny-arrays", said, sum(cost.saved_seconds for cost in judged.accesses if not cost.array))


def foreign_filters(judged: Judged) -> Iterator[Fault]:
    """HDF5 decodes an array only with a plugin."""
    found = [one for one in judged.facts.arrays if one.foreign_filters]
    if found:
        filters = dict.fromkeys(name for one in found for name in one.foreign_filters)
        said = f"HDF5 alone cannot decode {_named(found)}: {names_text(filters)} needs a plugin"
        yield Fault("foreign-filters", said)


def unsupported_arrays(judged: Judged) -> Iterator[Fault]:
    """Our engine cannot read an array itself."""
    found = [one for one in judged.facts.arrays if one.unsupported and not one.damaged]
    if found:
        yield Fault("unsupported", f"hyperslab cannot read {_named(found)} itself: {found[0].unsupported}")


def _named(found: list[ArrayFacts]) -> str:
    names = [one.name for one in found[:MOST_NAMED]]
    more = len(found) - len(names)
    return names_text([*names, f"{more:,} others"] if more > 1 else [*names, *(one.name for one in found[MOST_NAMED:])])


FAULTS: tuple[Callable[[Judged], Iterator[Fault]], ...] = (
    scattered_metadata, small_chunks, large_chunks, cut_coordinates, tiny_arrays, foreign_filters, unsupported_arrays,
)  # fmt: skip
TITLES = {
    "unreadable": "not readable",
    "damaged": "damaged",
    "scattered-metadata": "metadata in several places",
    "small-chunks": "chunks that are too small",
    "large-chunks": "chunks that are too large",
    "cut-coordinates": "coordinates in more than one chunk",
    "tiny-arrays": "very many tiny arrays",
    "foreign-filters": "filters that HDF5 does not have itself",
    "unsupported": "arrays that hyperslab cannot read itself",
}
