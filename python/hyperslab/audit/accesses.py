"""What the usual accesses to an array take: at a distance by its requests, here by the cost model.

The requests are those of the plan that a read would execute, so a server's log counts the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from hyperslab._core import ChunkGrid, Hyperslab, Points
from hyperslab.advise.candidate import Candidate
from hyperslab.advise.cloud import MOST_GROWN_NBYTES, are_too_large, are_too_small, chunks_for_cloud
from hyperslab.advise.codecs import encoding_of
from hyperslab.advise.demand import Demand
from hyperslab.advise.pricing import Pricer
from hyperslab.advise.sensible import LIBRARY_OF, OURS
from hyperslab.advise.stored import NETCDF
from hyperslab.advise.usual_reads import usual_accesses
from hyperslab.archive.tree.array import Array
from hyperslab.audit.distance import Distance
from hyperslab.audit.facts import TINY_NBYTES, ArrayFacts, FileFacts
from hyperslab.audit.file_audit import AccessCost
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
    for name, selection in ({} if main is None else selections(main)).items():
        assert main is not None
        cost = cost_of(name, main, selection, distance)
        if cost is not None:
            yield replace(cost, local_seconds=local_seconds(main, name, selection, profile))
    others = [one for one in facts.arrays if one is not main and wished_chunks(one) is not None]
    for one in sorted(others, key=lambda one: -(one.stored_chunk_count or 0))[:MOST_OTHERS]:
        cost = cost_of(ALL, one, Hyperslab.all(one.shape), distance)
        if cost is not None:
            yield cost
    tiny = tiny_of(facts)
    if len(tiny) >= MANY_TINY_ARRAYS:
        nbytes = sum(one.nbytes for one in tiny)
        now, then = distance.seconds(len(tiny), nbytes), distance.seconds(1, nbytes)
        yield AccessCost("", f"each of {len(tiny):,} tiny arrays", nbytes, len(tiny), nbytes, now, then)


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


def cost_of(name: str, facts: ArrayFacts, selection: Hyperslab | Points, distance: Distance) -> AccessCost | None:
    """What one access takes at a distance; None if it cannot be planned."""
    if facts.array is None:
        return None
    try:
        plan = facts.array.plan(selection)
        requests, nbytes = plan.request_count, plan.fetched_nbytes
        then = _remedied(facts, selection, distance)
    except (HyperslabError, OSError, IndexError, OverflowError, ValueError):
        return None
    now = distance.seconds(requests, nbytes)
    asked = prod(selection.shape) * facts.element_nbytes
    return AccessCost(facts.name, name, asked, requests, nbytes, now, now if then is None else min(now, then))


def _remedied(facts: ArrayFacts, selection: Hyperslab | Points, distance: Distance) -> float | None:
    """The seconds of an access to the chunks that the array should have, with today's ratio."""
    wish = wished_chunks(facts)
    if wish is None:
        return None
    totals = ChunkGrid(facts.shape, wish).totals(selection)
    share = (facts.stored_nbytes or facts.nbytes) / facts.nbytes if facts.nbytes else 1.0
    nbytes = totals.decoded_element_count * facts.element_nbytes * min(share, 1.0)
    # Neighbours come together: no more requests than chunks, or than there are parts of the bytes.
    return distance.seconds(max(1, min(totals.chunk_count, int(nbytes // MOST_REQUEST_NBYTES) + 1)), nbytes)


# --- on this machine -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Asked:
    """What a price depends on: files that are alike share it."""

    format: str
    library: str
    by_netcdf: bool
    shape: tuple[int, ...]
    dtype: str
    layout: Layout
    encoding: CodecChain
    access: str
    selection: Hyperslab


def local_seconds(facts: ArrayFacts, access: str, selection: Hyperslab, profile: StoreProfile | None) -> float | None:
    """The seconds of an access on this machine with a cold cache; None if the cost model cannot say it."""
    if profile is None or profile.is_far or facts.array is None:
        return None
    try:
        asked = _asked(facts, facts.array, access, selection)
    except (HyperslabError, OSError, ValueError):
        return None
    return None if asked is None else _priced(asked, _Profile(profile))


class _Profile:
    """A store profile as a key: there is one in a process."""

    def __init__(self, profile: StoreProfile) -> None:
        self.profile = profile

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Profile) and self.profile is other.profile

    def __hash__(self) -> int:
        return id(self.profile)


def _asked(facts: ArrayFacts, array: Array, access: str, selection: Hyperslab) -> _Asked | None:
    layout = layout_of(array, with_manifest=False)
    if layout is None or array.dtype.hasobject:
        return None
    encoding = encoding_of(array, layout.codec)
    ratio = None if layout.ratio is None else float(f"{layout.ratio:.2g}")
    layout = replace(layout, ratio=ratio, codecs=encoding.without_shuffle if layout.codec else layout.codecs)
    is_netcdf = array.format == "hdf5" and array.filename.lower().endswith(NETCDF)
    dtype = array.dtype.str if array.dtype.kind in "iufcb" else f"V{array.dtype.itemsize}"
    kind = "netcdf4" if is_netcdf else array.format
    library = LIBRARY_OF.get(array.format, OURS)
    return _Asked(kind, library, is_netcdf, facts.shape, dtype, layout, encoding, access, selection)


@lru_cache(MOST_KNOWN)
def _priced(asked: _Asked, known: _Profile) -> float | None:
    profile = known.profile
    library = asked.library if asked.library in profile.libraries else OURS
    if library not in profile.libraries:
        return None
    demand = Demand(asked.access, asked.shape, asked.dtype, [Step("read", asked.selection)], cache="cold")
    candidate = Candidate(asked.format, library, asked.layout, asked.encoding, by_netcdf=asked.by_netcdf, is_today=True)
    return Pricer(profile, [demand]).price(candidate).known_seconds
