"""Experiments on the striped store: what trains the parallel model, and what it is asked afterwards.

The clients make the requests that HDF5 and zarr-python would make, as `requests_of` counts them: a shared file with
stripes of one chunk on c servers, or a file per chunk on all servers. They are not the libraries themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log10, prod, sqrt
from statistics import median

from hyperslab.model.cells import CellCache
from hyperslab.model.counting import Direction
from hyperslab.model.libraries import Hdf5, Layout, Library, Zarr
from hyperslab.model.workload import Access, Workload, WorkloadArray
from hyperslab.parallel.partition import Partition
from hyperslab.parallel.predict import DIRECTIONS, Sharing, count_processes, servers_of
from hyperslab.parallel.profile import Asked, ParallelObservation, ParallelProfile
from hyperslab.parallel.simulation import ServerSpeeds, simulate
from hyperslab.parallel.striped_store.store import StripedStore
from hyperslab.parallel.striping import ProcessRequests, Striping, turns_at_servers
from hyperslab.progress import Progress

SERVERS = 4
REPEATS = 3
KIB = 1024
LIBRARIES: dict[str, Library] = {"hdf5": Hdf5(), "zarr": Zarr()}


@dataclass(frozen=True)
class Experiment:
    """One program on the striped store: an array of float32 that is read or written as a whole."""

    library: str
    direction: Direction
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    processes: int
    stripe_count: int
    partition: Partition = "rows"

    @property
    def name(self) -> str:
        """The experiment in a few words."""
        shape, chunk = ("x".join(map(str, each)) for each in (self.shape, self.chunk_shape))
        return (
            f"{self.library} {self.direction} {shape} in {chunk}, {self.processes} processes by {self.partition}, "
            f"{self.stripe_count} servers"
        )

    @property
    def question(self) -> tuple[object, ...]:
        """Equal for the two libraries that answer the same question."""
        return (self.direction, self.shape, self.chunk_shape, self.processes, self.partition)

    @property
    def sharing(self) -> Sharing:
        """How the processes share it. A stripe is a chunk, as the paper assumes."""
        stripe = prod(self.chunk_shape) * 4
        return Sharing(self.processes, Striping(SERVERS, stripe, self.stripe_count), self.partition)

    def requests(self) -> list[ProcessRequests]:
        """The requests of each process."""
        workload = Workload(
            array=WorkloadArray(shape=list(self.shape), dtype="float32"),
            accesses=[Access(select="all", operation=self.direction)],
        )
        state: CellCache = "new" if self.direction == "write" else "cold"
        return count_processes(workload, Layout(self.chunk_shape), LIBRARIES[self.library], self.sharing, state)

    @property
    def servers(self) -> int:
        """The data servers that hold the array."""
        return servers_of(self.library, self.sharing.striping)


@dataclass(frozen=True)
class Measured:
    """The time of the slowest process in each repetition."""

    experiment: Experiment
    seconds: tuple[float, ...]
    asked: Asked

    @property
    def median_seconds(self) -> float:
        """The median of the repetitions."""
        return median(self.seconds)

    def observation(self) -> ParallelObservation:
        """What the parallel model is fitted to."""
        each = self.experiment
        return ParallelObservation(
            each.library, each.direction, each.processes, each.servers, self.asked, self.median_seconds, each.name
        )


def training() -> list[Experiment]:
    """Tables of 64 columns, read and written by rows: chunks, processes and stripe counts vary."""
    chosen = []
    for direction in DIRECTIONS:
        for rows, chunk_rows in ((16384, 256), (16384, 1024), (32768, 512), (24576, 1536)):
            for processes in (1, 2, 4, 7):
                for library, counts in (("hdf5", (1, 2, 4)), ("zarr", (4,))):
                    chosen += [
                        Experiment(library, direction, (rows, 64), (chunk_rows, 64), processes, count)
                        for count in counts
                    ]
    return chosen


def quick_training() -> list[Experiment]:
    """A part of the training that is enough for a fit: without the stripe counts 1 and 4 of HDF5."""
    return [each for each in training() if each.processes != 4 and (each.library == "zarr" or each.stripe_count == 2)]


def held_out() -> list[Experiment]:
    """Other shapes, chunks, partitions, numbers of processes and stripe counts than the training has."""
    chosen = []
    cases: list[tuple[tuple[int, ...], tuple[int, ...], Partition]] = [
        ((24, 96, 256), (2, 48, 256), "blocks"),
        ((12288, 128), (384, 128), "round-robin"),
        ((20480, 96), (640, 96), "random"),
    ]
    for direction in ("read", "write"):
        for shape, chunk, partition in cases:
            for processes in (1, 3, 6, 8):
                for library, counts in (("hdf5", (1, 3)), ("zarr", (4,))):
                    chosen += [
                        Experiment(library, direction, shape, chunk, processes, count, partition) for count in counts
                    ]
    return chosen


def tiny(experiments: Sequence[Experiment]) -> list[Experiment]:
    """A few of them, for tests."""
    return [each for each in experiments if each.processes in (1, 3, 4)][::5]


def measure(store: StripedStore, experiments: Sequence[Experiment], repeats: int, progress: Progress) -> list[Measured]:
    """Run all experiments, in turns, so that a disturbance does not hit all repetitions of one."""
    plans = [each.requests() for each in experiments]
    seconds: list[list[float]] = [[] for _ in experiments]
    for turn in range(repeats):
        for position, plan in enumerate(plans):
            progress(experiments[position].name, turn * len(plans) + position, repeats * len(plans))
            seconds[position].append(max(store.run(plan)))
    measured = []
    for experiment, plan, times in zip(experiments, plans, seconds, strict=True):
        own = max((each.totals(experiment.direction) for each in plan), key=lambda each: (each[1], each[0]))
        asked = Asked.of(own, turns_at_servers(plan, experiment.direction, SERVERS))
        measured.append(Measured(experiment, tuple(times), asked))
    return measured


@dataclass(frozen=True)
class ParallelScores:
    """How good predictions of held-out experiments are. A pair that does not part counts for no model."""

    experiments: int
    pairs: int
    ties: int
    order_right: int
    rmse_log10: float
    inside: int

    @property
    def accuracy(self) -> float:
        """The share of pairs whose faster library is predicted."""
        return self.order_right / self.pairs if self.pairs else float("nan")


def predicted_seconds(profile: ParallelProfile, measured: Measured) -> tuple[float, float, float]:
    """What our model says, formulas 9 and 10 alone, and the baseline P2."""
    each = measured.experiment
    parts, paper, p2 = profile.seconds(each.library, each.direction, measured.asked, each.processes, each.servers)
    return sum(parts.values()), paper, p2


def simulated_seconds(speeds: ServerSpeeds, experiment: Experiment) -> float:
    """What the simulation says."""
    return simulate(experiment.requests(), SERVERS, speeds).seconds


def scores(
    measured: Sequence[Measured], seconds: Sequence[float], reach: Callable[[Experiment], float] | None = None
) -> ParallelScores:
    """Judge the predictions of experiments, in the same order."""
    errors = [log10(one / each.median_seconds) for one, each in zip(seconds, measured, strict=True)]
    inside = sum(abs(e) <= log10(reach(m.experiment)) for e, m in zip(errors, measured, strict=True)) if reach else 0
    pairs = right = ties = 0
    for a, one in zip(measured, seconds, strict=True):
        for b, other in zip(measured, seconds, strict=True):
            if a.experiment.question != b.experiment.question or a.experiment.library >= b.experiment.library:
                continue
            if min(a.seconds) <= max(b.seconds) and min(b.seconds) <= max(a.seconds):
                ties += 1
                continue
            pairs += 1
            right += (one < other) == (a.median_seconds < b.median_seconds)
    rmse = sqrt(sum(error**2 for error in errors) / len(errors))
    return ParallelScores(len(measured), pairs, ties, right, rmse, inside)
