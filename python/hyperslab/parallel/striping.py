"""Which data server has which bytes: files that are striped over servers, and the requests of each process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hyperslab._core import CacheState, ChunkGrid
from hyperslab.errors import UsageError
from hyperslab.model.counting import Direction
from hyperslab.model.libraries import Hdf5, Layout, Library, Zarr, options_of
from hyperslab.model.workload import Workload

WRITES = ("write_chunk", "write_part")
# What can be counted in seconds and held in memory.
MOST_SERVERS, MOST_REQUESTS = 100_000, 10_000_000
Placed: TypeAlias = tuple[int, int, bool, int, int]


@dataclass(frozen=True)
class Striping:
    """How files are spread over data servers.

    A shared file has stripes of `stripe_nbytes`, which go to `stripe_count` of the `servers` in turn. Of many small
    files, such as the chunks of a Zarr array, each is whole on one server, and they take turns over all servers.
    """

    servers: int
    stripe_nbytes: int
    stripe_count: int

    def __post_init__(self) -> None:
        if self.servers < 1:
            raise UsageError(f"servers is {self.servers}: there must be at least one data server")
        if self.servers > MOST_SERVERS:
            raise UsageError(f"servers is {self.servers}: no file system has more than {MOST_SERVERS} data servers")
        if self.stripe_nbytes < 1:
            raise UsageError(f"the stripe size is {self.stripe_nbytes}: it must be at least one byte")
        if not 1 <= self.stripe_count <= self.servers:
            raise UsageError(
                f"a stripe count of {self.stripe_count} does not fit {self.servers} servers: use 1 to {self.servers}"
            )

    def pieces(self, offset: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
        """The server, the offset on it, and the length of each piece of a byte range of a shared file."""
        while nbytes > 0:
            stripe, within = divmod(offset, self.stripe_nbytes)
            length = min(nbytes, self.stripe_nbytes - within)
            turn, server = divmod(stripe, self.stripe_count)
            yield server, turn * self.stripe_nbytes + within, length
            offset, nbytes = offset + length, nbytes - length


@dataclass(frozen=True)
class ProcessRequests:
    """What one process asks of the servers, in order. The metadata server has the number after the last data server."""

    servers: npt.NDArray[np.uint32]
    nbytes: npt.NDArray[np.float64]
    writes: npt.NDArray[np.bool_]
    objects: npt.NDArray[np.uint64]  # 0 for the shared file, a chunk's number + 1 for its file
    offsets: npt.NDArray[np.uint64]  # in the server's part of the object
    opens: int

    def totals(self, direction: Direction) -> tuple[float, float]:
        """The requests to data servers, and their bytes."""
        chosen = (self.writes == (direction == "write")) & (self.nbytes >= 0)
        return float(chosen.sum()), float(self.nbytes[chosen].sum())


def busiest(processes: Sequence[ProcessRequests], direction: Direction, servers: int) -> tuple[float, float]:
    """What all processes together ask of the data server that moves most bytes: requests, and bytes."""
    counts, nbytes = np.zeros(servers), np.zeros(servers)
    for each in processes:
        chosen = (each.writes == (direction == "write")) & (each.nbytes >= 0)
        counts += np.bincount(each.servers[chosen], minlength=servers)[:servers]
        nbytes += np.bincount(each.servers[chosen], each.nbytes[chosen], minlength=servers)[:servers]
    most = int(nbytes.argmax())
    return float(counts[most]), float(nbytes[most])


def requests_of(
    workload: Workload, layout: Layout, library: Library, striping: Striping, *, is_new: bool = False
) -> ProcessRequests:
    """The requests of one process, in order, with nothing cached beforehand.

    Requests to the metadata server have -1 bytes. Only Zarr makes them: one for each chunk file that it opens.

    Raises
    ------
    ValueError
        The layout or an option is invalid, or the library cannot make one of the accesses.
    """
    shape, chunks = workload.array.shape, layout.chunk_shape
    state = CacheState(
        ChunkGrid(shape, chunks),
        workload.array.element_nbytes,
        library.name,
        chunks="missing" if is_new else "row_major",
        ratio=layout.ratio,
        options=options_of(library, layout),
    )
    made: list[Placed] = []
    opens = 0
    for step in workload.steps():
        rows: list[Any] = state.requests(step.operation, step.selection)[1]
        opens += _placed(rows, library, striping, made)
    opens += _placed(state.close()[1], library, striping, made)
    columns = list(zip(*made, strict=True)) or [()] * 5
    return ProcessRequests(
        servers=np.array(columns[0], np.uint32),
        nbytes=np.array(columns[1], np.float64),
        writes=np.array(columns[2], np.bool_),
        objects=np.array(columns[3], np.uint64),
        offsets=np.array(columns[4], np.uint64),
        opens=opens,
    )


def _placed(rows: list[Any], library: Library, striping: Striping, made: list[Placed]) -> int:
    """Add requests with their servers; returns how many files were opened."""
    opens = 0
    for purpose, chunk, offset, nbytes in rows:
        writes = purpose in WRITES
        if isinstance(library, Zarr):
            opens += 1
            made.append((striping.servers, -1, writes, chunk + 1, 0))
            made.append((chunk % striping.servers, nbytes, writes, chunk + 1, offset))
        else:
            if len(made) + nbytes // striping.stripe_nbytes > MOST_REQUESTS:
                raise UsageError(
                    f"stripes of {striping.stripe_nbytes} bytes cut the accesses of one process into more than "
                    f"{MOST_REQUESTS} requests: use larger stripes"
                )
            made += [(server, length, writes, 0, place) for server, place, length in striping.pieces(offset, nbytes)]
    return opens


def parallel_library(library: Library, *, writes: bool) -> Library:
    """The library as a process of a parallel program has it: HDF5 that writes with MPI has no chunk cache."""
    if isinstance(library, Hdf5) and writes:
        return Hdf5(**{**vars(library), "mpi_writing": True})
    return library
