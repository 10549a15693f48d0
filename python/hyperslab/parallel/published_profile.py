"""A published table as a store profile: price a workload on a machine that you have never used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import log10

from hyperslab.errors import UsageError
from hyperslab.model.counting import Direction
from hyperslab.parallel.bytes_only import fit_bytes
from hyperslab.parallel.contended_storage import Coefficients, Load, Path, seconds_of, shares
from hyperslab.parallel.machine import MOST_PIECES_GATHERED, USUAL_PROCESSES_PER_NODE, Machine
from hyperslab.parallel.published_cells import PublishedCell, own_tables, read_cells

MIB = 2**20
DEVIATIONS = 1.96
# This far beyond the published cells, a prediction does not say so yet.
TOLERANCE = 1.5


@dataclass(frozen=True)
class PublishedProfile:
    """A machine, and the partition of it whose nodes the processes run on."""

    name: str
    machine: Machine
    partition: str

    @property
    def cells(self) -> list[PublishedCell]:
        """The cells of the partition."""
        return [cell for cell in self.machine.training if cell.partition == self.partition]

    @property
    def servers(self) -> int:
        """The data servers (targets) of its file system."""
        first = self.cells[0]
        return round(first.osts or self.machine.assumed[first.file_system].targets)

    @property
    def libraries(self) -> list[str]:
        """The libraries that can be priced."""
        return ["hdf5", "zarr"]

    @property
    def store(self) -> str:
        """What the profile describes."""
        return f"published: {self.name}, {self.partition or self.cells[0].file_system}, {len(self.cells)} cells"

    def seconds(
        self,
        library: str,
        direction: Direction,
        asked: tuple[float, float],
        opens: float,
        processes: int,
        targets: int,
        stripe_nbytes: int,
        *,
        collective: bool,
    ) -> tuple[dict[str, float], float, float]:
        """The seconds of one process by what it waits for; those of P2; and the factor to the ends of the interval.

        `asked` are the requests and bytes of the process, `opens` the files that it opens.
        """
        coefficients, (first, second), reach = _constants(self, library, direction, processes, targets)
        mib = asked[1] / MIB
        piece = stripe_nbytes / MIB
        path: Path = "own file"
        if library == "hdf5":
            path = "shared, collective" if collective else "shared, direct"
        load = Load(path, direction, processes, USUAL_PROCESSES_PER_NODE, targets, mib, piece)
        parts = dict(seconds_of(load, coefficients))
        if library == "hdf5" and not collective:
            parts["pieces"] *= max(1.0, piece / mib) if mib else 1.0  # at least one
        else:
            parts["metadata"] = parts.get("metadata", 0.0) * opens
        return parts, mib * (first + second * shares(processes, targets)), reach

    def outside(self, requests: float, nbytes: float, processes: int) -> tuple[str, ...]:
        """What lies outside of the table, so that the interval does not cover it."""
        sizes = [cell.mb_per_request * 1e6 for cell in self.machine.training if cell.mb_per_request]
        counts = [cell.processes for cell in self.machine.training]
        reasons = []
        if requests and sizes and nbytes / requests < min(sizes) / TOLERANCE:
            reasons.append(f"requests of {nbytes / requests:.3g} bytes, published from {min(sizes):.3g}")
        if not min(counts) / TOLERANCE <= processes <= max(counts) * TOLERANCE:
            reasons.append(f"{processes} processes, published from {min(counts)} to {max(counts)}")
        return tuple(reasons)

    def like(self, direction: Direction, processes: int) -> PublishedCell:
        """A cell for these processes, with a request large enough to be direct."""
        mine = [cell for cell in self.cells if cell.direction == direction]
        if not mine:
            raise UsageError(f"{self.name} has no cells for {direction} on {self.partition or 'it'}")
        near = min(mine, key=lambda cell: abs(log10(cell.processes / processes)))
        piece = self.machine.assumed[near.file_system].piece_mib
        large = 2 * MOST_PIECES_GATHERED * piece * MIB / 1e6
        return replace(near, line=0, processes=processes, mb_per_request=large, nodes=None)


@lru_cache(maxsize=64)
def _constants(
    profile: PublishedProfile, library: str, direction: Direction, processes: int, targets: int
) -> tuple[Coefficients, tuple[float, float], float]:
    """What is the same for all processes: the coefficients, those of P2, and the factor to the ends of the interval."""
    machine, cell = profile.machine, profile.like(direction, processes)
    known = [one for one in machine.training if one.direction == direction]
    rows = zip(*((k.mib_per_process, k.processes, k.osts or targets, k.seconds) for k in known), strict=True)
    like = replace(cell, mode="shared" if library == "hdf5" else "file-per-process")
    return machine.coefficients(cell), fit_bytes(*rows), 10 ** (DEVIATIONS * machine.deviation_log10(like))


def is_published(named: str) -> bool:
    """Whether a profile's name is that of a table of the package, such as `cori` or `cori:cori-knl`."""
    return named.partition(":")[0] in own_tables()


def published_profile(named: str, processes: int) -> PublishedProfile:
    """The profile of a table, such as `cori`, for the partition that is named, such as `cori:cori-knl`.

    Without a name it is the partition whose programs have the nearest number of processes.

    Raises
    ------
    UsageError
        There is no such partition.
    """
    name, _, partition = named.partition(":")
    cells = read_cells(own_tables()[name])
    partitions = list(dict.fromkeys(cell.partition for cell in cells))
    if partition and partition not in partitions:
        raise UsageError(f"{name} has no partition {partition}: it has {', '.join(partitions)}")
    near = min(cells, key=lambda cell: abs(log10(cell.processes / processes)))
    return PublishedProfile(name, Machine(cells), partition or near.partition)
