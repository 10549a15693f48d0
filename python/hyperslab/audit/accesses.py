"""What the usual accesses to an array take: at a distance by its requests, here by the cost model.

The requests are those of the plan that a read would execute, so a server's log counts the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from hyperslab._core import ChunkGrid, Hyperslab, Points
from hyperslab.advise.candidate import Candidate
from hyperslab.advise.cloud import are_too_large, are_too_small
from hyperslab.advise.codecs import encoding_of
from hyperslab.advise.demand import Demand
from hyperslab.advise.pricing import Pricer
from hyperslab.advise.sensible import LIBRARY_OF, OURS
from hyperslab.advise.stored import NETCDF
from hyperslab.advise.usual_reads import usual_accesses
from hyperslab.audit.distance import Distance
from hyperslab.audit.facts import TINY_NBYTES, ArrayFacts, FileFacts
from hyperslab.audit.file_audit import AccessCost
from hyperslab.chunk_grid import MOST_GROWN_NBYTES, chunks_for_cloud
from hyperslab.errors import HyperslabError
from hyperslab.model.file_layout import layout_of
from hyperslab.model.libraries import Layout
from hyperslab.model.store_profile import StoreProfile
from hyperslab.model.workload import Step
from hyperslab.storage.chain import CodecChain

# More chunks than this take too long to plan for each of many files.
MOST_CHUNKS = 2_000_000
# The most that one request brings, neighbouring chunks together.
MOST_REQUEST_NBYTES = 2 << 20
# Besides the largest array, of so many are the accesses counted.
MOST_OTHERS = 50
MANY_TINY_ARRAYS = 100
ALL = "all of it"
# The cost model simulates every chunk, which takes too long for more.
MOST_PRICED_CHUNKS = 100_000
# Prices of layouts that are alike are found once.
MOST_KNOWN = 4096


def can_be_read(facts: ArrayFacts) -> bool:
    """Whether the accesses to an array can be planned."""
    is_known = not (facts.damaged or facts.unsupported) and facts.element_nbytes > 0 and 0 not in facts.shape
    return bool(is_known and facts.shape and facts.array is not None and facts.chunk_count <= MOST_CHUNKS)


def is_cut_coordinate(facts: ArrayFacts) -> bool:
    """Whether a coordinate has more than one chunk, and would fit into one: every reader reads all of it."""
    return facts.is_coordinate and facts.is_cut and facts.nbytes <= MOST_GROWN_NBYTES


def is_small(facts: ArrayFacts) -> bool:
    """Whether the chunks are too small for a far reader."""
    return are_too_small(facts.stored_chunk_count, facts.stored_nbytes, facts.chunk_nbytes)


def is_large(facts: ArrayFacts) -> bool:
    """Whether the chunks are too large for a far reader."""
    return facts.chunks is not None and are_too_large(facts.stored_chunk_count, facts.stored_nbytes)


def wished_chunks(facts: ArrayFacts) -> tuple[int, ...] | None:
    """The chunk shape that an array should have; None if its own is good, or nobody can tell."""
    if facts.chunks is None or not can_be_read(facts):
        return None
    if is_cut_coordinate(facts):
        return facts.shape
    if is_small(facts) or is_large(facts):
        return chunks_for_cloud(facts.shape, facts.chunks, facts.element_nbytes)
    return None


def costs_of(facts: FileFacts, distance: Distance, profile: StoreProfile | None) -> Iterator[AccessCost]:
    """What usual accesses take: those to the largest array, and all of each other array that has the wrong chunks."""
    main = main_array(facts)
    if main is not None:
        yield from _main_costs(main, distance, profile)
    wishes = [(one, wished_chunks(one)) for one in facts.arrays if one is not main]
    others = sorted(((one, wish) for one, wish in wishes if wish), key=lambda pair: -(pair[0].stored_chunk_count or 0))
    for one, wish in others[:MOST_OTHERS]:
        cost = cost_of(ALL, one, Hyperslab.all(one.shape), distance, wish)
        if cost is not None:
            yield cost
    tiny = tiny_of(facts)
    if len(tiny) >= MANY_TINY_ARRAYS:
        nbytes = sum(one.nbytes for one in tiny)
        now, then = distance.seconds(len(tiny), nbytes), distance.seconds(1, nbytes)
        yield AccessCost("", f"each of {len(tiny):,} tiny arrays", nbytes, len(tiny), nbytes, now, then)


def _main_costs(main: ArrayFacts, distance: Distance, profile: StoreProfile | None) -> Iterator[AccessCost]:
    wish, here = wished_chunks(main), _stored_here(main, profile)
    for name, selection in selections(main).items():
        cost = cost_of(name, main, selection, distance, wish)
        if cost is not None:
            seconds = None if here is None or profile is None else _priced(here, name, selection, _Profile(profile))
            yield replace(cost, local_seconds=seconds)


def main_array(facts: FileFacts) -> ArrayFacts | None:
    """The largest array."""
    return max(filter(can_be_read, facts.arrays), key=lambda one: one.nbytes, default=None)


def tiny_of(facts: FileFacts) -> list[ArrayFacts]:
    """The arrays of a few bytes."""
    return [one for one in facts.arrays if one.nbytes <= TINY_NBYTES]


def selections(facts: ArrayFacts) -> dict[str, Hyperslab]:
    """The usual accesses, by name."""
    ones = [1] * len(facts.shape)
    usual = usual_accesses(facts.shape, facts.dims).items()
    return {name: Hyperslab(box["start"], ones, box["shape"], ones) for name, box in usual}


def cost_of(
    name: str, facts: ArrayFacts, selection: Hyperslab | Points, distance: Distance, wish: Sequence[int] | None
) -> AccessCost | None:
    """What one access takes at a distance, also in the chunks that somebody wishes; None if it cannot be planned."""
    if facts.array is None:
        return None
    try:
        plan = facts.array.plan(selection)
        requests, nbytes = plan.request_count, plan.fetched_nbytes
        then = None if wish is None else _remedied(facts, selection, distance, wish)
    except (HyperslabError, OSError, IndexError, OverflowError, ValueError):
        return None
    now = distance.seconds(requests, nbytes)
    asked = prod(selection.shape) * facts.element_nbytes
    return AccessCost(facts.name, name, asked, requests, nbytes, now, now if then is None else min(now, then))


def _remedied(facts: ArrayFacts, selection: Hyperslab | Points, distance: Distance, wish: Sequence[int]) -> float:
    """The seconds of an access to the chunks that the array should have, with today's ratio."""
    totals = ChunkGrid(facts.shape, wish).totals(selection)
    share = (facts.stored_nbytes or facts.nbytes) / facts.nbytes if facts.nbytes else 1.0
    nbytes = totals.decoded_element_count * facts.element_nbytes * min(share, 1.0)
    # Neighbours come together: no more requests than chunks, or than there are parts of the bytes.
    return distance.seconds(max(1, min(totals.chunk_count, int(nbytes // MOST_REQUEST_NBYTES) + 1)), nbytes)


# --- on this machine -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _StoredHere:
    """What prices depend on: files with the same layout and ratio share them."""

    format: str
    library: str
    by_netcdf: bool
    shape: tuple[int, ...]
    dtype: str
    layout: Layout
    encoding: CodecChain


class _Profile:
    """A store profile as a key: there is one in a process."""

    def __init__(self, profile: StoreProfile) -> None:
        self.profile = profile

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Profile) and self.profile is other.profile

    def __hash__(self) -> int:
        return id(self.profile)


def _stored_here(facts: ArrayFacts, profile: StoreProfile | None) -> _StoredHere | None:
    """How an array is stored, as the cost model sees it; None if that cannot say what accesses take here."""
    array = facts.array
    if array is None or profile is None or profile.is_far or facts.chunk_count > MOST_PRICED_CHUNKS:
        return None
    try:
        layout = layout_of(array)
        if layout is None or array.dtype.hasobject:
            return None
        encoding = encoding_of(array, layout.codec)
    except (HyperslabError, OSError, ValueError):
        return None
    if layout.codec is not None:
        layout = replace(layout, codecs=encoding.without_shuffle)
    is_netcdf = array.format == "hdf5" and array.filename.lower().endswith(NETCDF)
    dtype = array.dtype.str if array.dtype.kind in "iufcb" else f"V{array.dtype.itemsize}"
    kind = "netcdf4" if is_netcdf else array.format
    library = LIBRARY_OF.get(array.format, OURS)
    return _StoredHere(kind, library, is_netcdf, facts.shape, dtype, layout, encoding)


@lru_cache(MOST_KNOWN)
def _priced(here: _StoredHere, access: str, selection: Hyperslab, known: _Profile) -> float | None:
    """The seconds of an access on this machine with a cold cache; None if they are unknown."""
    profile = known.profile
    library = here.library if here.library in profile.libraries else OURS
    if library not in profile.libraries:
        return None
    demand = Demand(access, here.shape, here.dtype, [Step("read", selection)], cache="cold")
    candidate = Candidate(here.format, library, here.layout, here.encoding, by_netcdf=here.by_netcdf, is_today=True)
    return Pricer(profile, [demand]).price(candidate).known_seconds
