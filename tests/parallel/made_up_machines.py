"""Tables of supercomputers that do not exist: each median is simulated request by request, not taken from our formulas.

The simulation knows queues only: targets that serve one request at a time, processes that wait for their own requests,
and nodes whose processes wait for each other's locks. Programs and columns are those of the published table of Cori.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hyperslab.parallel.published_cells import PublishedCell
from hyperslab.parallel.simulation import ServerSpeeds, simulate_columns

MIB_PER_GB = 1e9 / 2**20
PER_NODE = 16
PIECES = 24  # requests of each process in a simulation


@dataclass(frozen=True)
class Truth:
    """What the table does not say: seconds for a MiB in a process and in a target, and for the lock of a piece."""

    processes: int
    targets: int
    process: float
    target: float
    lock: float
    gathered: float  # what a MiB costs a target that one process asks, against `target`
    piece_mib: float


def drawn(random: np.random.Generator, processes: int, targets: int) -> Truth:
    """A machine at random."""
    target = 1 / random.uniform(300, 3000)
    piece = float(random.choice([1.0, 4.0, 8.0]))
    lock = target * piece * float(np.exp(random.uniform(np.log(0.3), np.log(10))))
    return Truth(processes, targets, 1 / random.uniform(60, 300), target, lock, random.uniform(0.6, 1.0), piece)


def bandwidth(clients: int, targets: int, mib: float, own: float, service: float, seed: int, *, fixed: bool) -> float:
    """MiB a second of clients that each ask one target (`fixed`), or all of them in turn from a random one on."""
    first = np.random.default_rng(seed).permutation(max(clients, targets))[:clients] % targets
    turns = np.zeros(PIECES, np.int64) if fixed else np.arange(PIECES)
    servers = ((first[:, None] + turns) % targets).astype(np.uint32).ravel()
    starts = np.arange(0, clients * PIECES + 1, PIECES).astype(np.uint64)
    speeds = ServerSpeeds(service, 0.0, 0.0, process_seconds=own)
    found = simulate_columns(starts, servers, np.full(clients * PIECES, mib * 2**20), targets, speeds)
    return clients * PIECES * mib / found.seconds


def medians(truth: Truth, seed: int) -> dict[tuple[str, bool], float]:
    """MiB a second by how the file is used, and whether it is written."""
    p, c, w = truth.processes, truth.targets, truth.piece_mib
    nodes = p // PER_NODE
    own = bandwidth(p, c, 4.0, 4 * truth.process, 4 * truth.target, seed, fixed=True)
    gathered = bandwidth(min(p, c), c, w, 0.0, w * truth.target * truth.gathered + truth.lock, seed, fixed=True)
    read = bandwidth(p, c, w, w * truth.process + truth.lock, w * truth.target, seed, fixed=False)
    # The processes of a node prepare their pieces at the same time, and then wait for each other's locks.
    locked = bandwidth(nodes, c, w, w * truth.process / PER_NODE, w * truth.target + truth.lock, seed, fixed=False)
    return {
        ("own", False): own, ("own", True): own * 1.1, ("gathered", False): gathered, ("gathered", True): gathered,
        ("direct", False): read, ("direct", True): min(locked, own),
    }  # fmt: skip


def cells_of(
    name: str, truth: Truth, seed: int, *, osts: bool = True, direct: bool = True, noise: float = 0.1, line: int = 2
) -> list[PublishedCell]:
    """The eight cells of one file system. `direct`: the HDF5 programs ask themselves, in large requests."""
    random, found = np.random.default_rng(seed), medians(truth, seed)
    piece_mb = truth.piece_mib * 2**20 / 1e6
    how, request = ("direct", 20 * piece_mb) if direct else ("gathered", 2 * piece_mb)
    rows = [
        ("ior", False, "own", 4.194, 1.07), ("ior", True, "own", 4.194, 1.07),
        ("ior", False, "gathered", piece_mb, 0.54), ("ior", True, "gathered", piece_mb, 0.54),
        ("hacc_io", False, "own", 217.3, 2.17), ("hacc_io", True, "own", 217.3, 2.17),
        ("dbscan_read", False, how, request, 0.81), ("vpicio_uni", True, how, request, 1.07),
    ]  # fmt: skip
    return [
        PublishedCell(
            line=line + number,
            file_system=name,
            app=app,
            direction="write" if writes else "read",
            mode="file-per-process" if used == "own" else "shared",
            processes=truth.processes,
            gbytes=truth.processes * gbytes,
            mib_s_median=found[used, writes] * float(np.exp(random.normal(0, noise))),
            partition="made-up",
            mb_per_request=mb,
            osts=float(truth.targets) if osts else None,
        )
        for number, (app, writes, used, mb, gbytes) in enumerate(rows)
    ]
