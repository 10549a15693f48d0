"""What a workload costs if several processes share it: formulas 8 to 10, for the slowest process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from hyperslab._core import contention
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import Refused, UsageError
from hyperslab.meant import meant
from hyperslab.model.cells import CellCache, ModelCell
from hyperslab.model.counting import Direction
from hyperslab.model.hdf5_settings import Hdf5Settings
from hyperslab.model.libraries import Hdf5, Layout, Library, Zarr
from hyperslab.model.predict import library_of, predict_cell, why_not
from hyperslab.model.store_profile import StoreProfile
from hyperslab.model.workload import Workload
from hyperslab.parallel.machine import USUAL
from hyperslab.parallel.partition import Partition, divided
from hyperslab.parallel.profile import Asked, ParallelProfile
from hyperslab.parallel.published_profile import PublishedProfile
from hyperslab.parallel.striping import ProcessRequests, Striping, parallel_library, requests_of, turns_at_servers

LIBRARIES = ("hdf5", "zarr")
DIRECTIONS: tuple[Direction, ...] = ("read", "write")
Transfer = Literal["independent", "collective"]
Counted: TypeAlias = dict[Direction, tuple[float, float]]  # requests and bytes
# Seconds by part, those of P2, and the factor from the prediction to each end of its interval.
Priced: TypeAlias = tuple[dict[str, float], float, float]
Price: TypeAlias = Callable[[Direction, tuple[float, float]], Priced]


@dataclass(frozen=True)
class Sharing:
    """How a workload is shared: by how many processes, which chunks each one owns, and where the files are."""

    processes: int
    striping: Striping
    partition: Partition = "rows"
    transfer: Transfer = "independent"


@dataclass(frozen=True)
class ParallelPrediction:
    """What a workload costs in one layout by one library. `n` and `s` are those of the slowest process, by direction.

    `p2_seconds` is what the baseline P2 says, which has no startup time.
    """

    library: str
    layout: Layout
    seconds: float
    low: float
    high: float
    parts: dict[str, float]
    p2_seconds: float
    cf: float
    servers: int
    n: dict[str, float]
    s: dict[str, float]
    opens: int
    extrapolating: tuple[str, ...] = ()
    per_process: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        return {**vars(self), "layout": str(self.layout)}


def predict_parallel(
    workload: Workload,
    layouts: Sequence[Layout],
    sharing: Sharing,
    profile: ParallelProfile | PublishedProfile | StoreProfile,
    *,
    libraries: Iterable[str] | None = None,
    cache: CellCache = "cold",
    hdf5: Hdf5Settings | None = None,
) -> list[ParallelPrediction]:
    """Predict what a workload costs in each layout by each library, for all processes. The fastest comes first.

    Parameters
    ----------
    workload : Workload
        The accesses of the whole program.
    layouts : Sequence[Layout]
        The layouts.
    sharing : Sharing
        How processes share the accesses, and where the files are.
    profile : ParallelProfile | PublishedProfile | StoreProfile
        A parallel profile has the coefficients of formulas 9 and 10, a published profile those of another machine. With
        the store profile of one machine, the serial time of the slowest process is taken, and what it spends on the
        device is multiplied with cf.
    libraries : Iterable[str] | None
        `hdf5`, `zarr`, or both (the default).
    cache : CellCache
        `cold`, or `new` for an array that does not exist yet.
    hdf5 : Hdf5Settings | None
        HDF5's version and settings.

    Raises
    ------
    UsageError
        There are fewer chunks than processes, or an access cannot be shared.
    Refused
        A library cannot store a layout or make an access.
    """
    if cache not in ("cold", "new"):
        raise UsageError(f"--cache {cache}: parallel programs are priced cold, or new")
    chosen = list(libraries) if libraries is not None else [one for one in LIBRARIES if one in profile.libraries]
    if unknown := [name for name in chosen if name not in LIBRARIES]:
        known, near = " and ".join(LIBRARIES), meant(unknown[0], LIBRARIES)
        raise UsageError(f"parallel programs are priced for {known}, not for {unknown[0]}{near}")
    predictions = []
    for layout in layouts:
        shares = divided(workload, layout, sharing.processes, sharing.partition)
        for name in chosen:
            library = library_of(name, None, workload, layout, hdf5 or Hdf5Settings())
            library = parallel_library(library, writes=sharing.processes > 1 and _writes(workload))
            reason = why_not(ModelCell(workload, layout, library, cache))
            if reason is not None:
                raise Refused(f"{name}, layout {layout}: {reason}")
            if isinstance(profile, ParallelProfile | PublishedProfile):
                predictions.append(_by_formulas(shares, layout, library, sharing, profile, cache))
            else:
                predictions.append(_by_serial_prices(shares, layout, library, sharing, profile, cache))
    return sorted(predictions, key=lambda each: each.seconds)


def count_processes(
    workload: Workload, layout: Layout, library: Library, sharing: Sharing, cache: CellCache = "cold"
) -> list[ProcessRequests]:
    """The requests of each process, in order: what a simulation serves, and what the servers' logs must show.

    Raises
    ------
    UsageError
        There are fewer chunks than processes, or an access cannot be shared.
    """
    shares = divided(workload, layout, sharing.processes, sharing.partition)
    library = parallel_library(library, writes=sharing.processes > 1 and _writes(workload))
    return [requests_of(one, layout, library, sharing.striping, is_new=cache == "new") for one in shares]


def servers_of(library: str, striping: Striping) -> int:
    """The data servers that hold an array: c of formula 8."""
    return striping.servers if library == Zarr.name else striping.stripe_count


def _writes(workload: Workload) -> bool:
    return any(access.operation == "write" for access in workload.accesses)


def _by_formulas(
    shares: list[Workload],
    layout: Layout,
    library: Library,
    sharing: Sharing,
    profile: ParallelProfile | PublishedProfile,
    cache: CellCache,
) -> ParallelPrediction:
    made = [requests_of(one, layout, library, sharing.striping, is_new=cache == "new") for one in shares]
    counted: list[Counted] = [{d: each.totals(d) for d in DIRECTIONS} for each in made]
    # Processes whose chunks are not asked for wait for nobody, and nobody waits for them.
    c, p = servers_of(library.name, sharing.striping), len(shares)
    if isinstance(profile, PublishedProfile):
        prices = [_published_price(each.opens, library.name, p, c, sharing, profile) for each in made]
    else:
        most: Counted = {d: turns_at_servers(made, d, sharing.striping.servers) for d in DIRECTIONS}
        if sharing.transfer == "collective" and isinstance(library, Hdf5):
            p = min(c, p)
            counted = [_gathered(counted, sharing.striping.stripe_nbytes, p)]
            most = counted[0]
        prices = [_trained_price(most, library.name, p, c, profile)] * len(counted)
    priced = [_priced(each, price) for each, price in zip(counted, prices, strict=True)]
    slowest = max(range(len(priced)), key=lambda k: sum(priced[k][0].values()))
    parts, p2, reach = priced[slowest]
    seconds, (n, s) = sum(parts.values()), map(sum, zip(*counted[slowest].values(), strict=True))
    return ParallelPrediction(
        library=library.name,
        layout=layout,
        seconds=seconds,
        extrapolating=profile.outside(n, s, p),
        low=seconds / reach,
        high=seconds * reach,
        parts=parts,
        p2_seconds=p2,
        cf=contention(p, c),
        servers=c,
        n={d: counted[slowest][d][0] for d in DIRECTIONS},
        s={d: counted[slowest][d][1] for d in DIRECTIONS},
        opens=made[slowest].opens,
        per_process=[
            {"n": {d: each[d][0] for d in DIRECTIONS}, "s": {d: each[d][1] for d in DIRECTIONS}} for each in counted
        ],
    )


def _priced(counted: Counted, price: Price) -> Priced:
    """What one process waits for, in both directions."""
    parts: dict[str, float] = {}
    baseline, reach = 0.0, 1.0
    for direction, own in counted.items():
        if own[0] > 0:
            by_part, p2, factor = price(direction, own)
            parts |= {f"{direction} {part}": seconds for part, seconds in by_part.items()}
            baseline, reach = baseline + p2, max(reach, factor)
    return parts, baseline, reach


def _published_price(opens: int, library: str, p: int, c: int, sharing: Sharing, profile: PublishedProfile) -> Price:
    def price(direction: Direction, own: tuple[float, float]) -> Priced:
        is_collective, stripe_nbytes = sharing.transfer == "collective", sharing.striping.stripe_nbytes
        return profile.seconds(library, direction, own, opens, p, c, stripe_nbytes, collective=is_collective)

    return price


def _trained_price(most: Counted, library: str, p: int, c: int, profile: ParallelProfile) -> Price:
    def price(direction: Direction, own: tuple[float, float]) -> Priced:
        seconds, _, p2 = profile.seconds(library, direction, Asked.of(own, most[direction]), p, c)
        return seconds, p2, profile.reach(library, direction)

    return price


def _gathered(counted: Sequence[Counted], stripe_nbytes: int, writers: int) -> Counted:
    """What one of the writers of collective buffering asks: all bytes, in stripes, divided among the writers."""
    gathered: Counted = {}
    for direction in DIRECTIONS:
        nbytes = sum(each[direction][1] for each in counted)
        gathered[direction] = (ceil_div(int(nbytes), stripe_nbytes) / writers, nbytes / writers)
    return gathered


def _by_serial_prices(
    shares: list[Workload],
    layout: Layout,
    library: Library,
    sharing: Sharing,
    profile: StoreProfile,
    cache: CellCache,
) -> ParallelPrediction:
    """The serial price of the slowest process, with its device phases multiplied by cf.

    How much of a request a server is busy with, a serial profile does not say. The interval begins with no contention.
    """
    if sharing.transfer == "collective":
        raise UsageError("collective transfers need a parallel profile: `hyperslab calibrate --parallel` makes one")
    c, p = servers_of(library.name, sharing.striping), len(shares)
    cf = contention(p, c)
    priced = []
    for one in shares:
        serial = predict_cell(ModelCell(one, layout, library, cache), profile)
        counted = {str(d): v for d, v in serial.variables.items()}
        opens = sum(v.n_open + v.n_create for v in counted.values()) if isinstance(library, Zarr) else 0.0
        device = serial.cost.phases["device_read"] + serial.cost.phases["device_write"]
        parts: dict[str, float] = {
            **{str(name): seconds for name, seconds in serial.cost.phases.items() if seconds},
            "waiting for data servers": (cf - 1) * device,
            "waiting for the metadata server": opens * USUAL["mu"] * (p - 1),
        }
        priced.append((sum(parts.values()), serial.cost, parts, counted, int(opens)))
    seconds, cost, parts, counted, opens = max(priced, key=lambda each: each[0])
    factor = cost.high / cost.seconds if cost.seconds else 1.0
    return ParallelPrediction(
        library=library.name,
        layout=layout,
        seconds=seconds,
        low=min(cost.low, seconds),
        high=seconds * factor,
        parts=parts,
        p2_seconds=_bytes_alone(counted, profile, library.name) * cf,
        cf=cf,
        servers=c,
        n={name: v.n_rdisk + v.n_rindex + v.n_wdisk + v.n_windex for name, v in counted.items()},
        s={name: v.s_rdisk + v.s_wdisk for name, v in counted.items()},
        opens=opens,
    )


def _bytes_alone(counted: dict[str, Any], profile: StoreProfile, library: str) -> float:
    """The seconds of the device's bytes, without those that start a request."""
    total = 0.0
    for direction, variables in counted.items():
        for each in profile.coefficients(library, "write" if direction == "write" else "read").each:
            if each.term.phase in ("device_read", "device_write") and each.term.variable.startswith("s_"):
                total += each.value * each.term.value(variables)
    return total
