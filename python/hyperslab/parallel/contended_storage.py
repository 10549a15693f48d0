"""What processes wait for in a parallel file system: formulas 8 and 9, and two ways to share a file.

    symbol   meaning                                                                  unit
    alpha    a process moves a MiB while nobody else uses the servers                 s/MiB
    beta     a target moves a MiB                                                     s/MiB
    omega    the additional wait for each piece of a file that processes share        s
    mu       the metadata server creates or opens a file                              s
    kappa    what a MiB costs a target that one process asks in order, against beta   1

With p processes on c targets, each of which moves s MiB, the contention factor is cf = 1 + (p - 1) / c (formula 8).

A file for each process:  t = s (alpha + beta cf) + mu p
A shared file, whose requests are larger than a piece, so that every process asks the targets itself:
    reading:  t = s (alpha + beta cf) + (s / w) omega + mu p
              A process waits for its pieces of w MiB one after another. Locks for reading do not exclude each other.
              All processes open the file, as they would open files of their own.
    writing:  t = s (alpha + beta cf) + k (s / w) omega cf(n, c)
              The lock of a piece belongs to one of the n nodes, not to a process. So the k processes of a node wait for
              each other, and nodes contend for the pieces of a target, as formula 8 says of processes. Waiting for
              locks hides the time to open the file.
A shared file, whose requests are pieces: collective buffering has gathered them in one process for each target.
    t = (p s) / (min(c, p) w) (kappa beta w + omega)

    kappa is about 1 unless the table says otherwise. Where the streams of thousands of processes burden a target more
    than a single one does, it is smaller, and gathered requests are faster than files for each process.

Apart from the metadata server, bandwidth never falls if processes are added. It never exceeds c / beta, or for gathered
requests c / (kappa beta).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Path: TypeAlias = Literal["own file", "shared, collective", "shared, direct"]


@dataclass(frozen=True)
class Coefficients:
    """Seconds, as in the table above, for one direction on one partition of a machine."""

    alpha: float
    beta: float
    omega: float
    mu: float
    kappa: float = 1.0


@dataclass(frozen=True)
class Load:
    """What all processes do, and how the file is spread.

    `targets` are the data servers that serve it. `piece_mib` is the unit in which a shared file is locked and spread.
    """

    path: Path
    direction: Literal["read", "write"]
    processes: int
    processes_per_node: float
    targets: float
    mib_per_process: float
    piece_mib: float


def shares(clients: float, targets: float) -> float:
    """Formula 8 for numbers that need not be whole: how many clients a target serves at the same time."""
    return 1.0 + max(clients - 1.0, 0.0) / targets


def seconds_of(load: Load, coefficients: Coefficients) -> Mapping[str, float]:
    """The seconds of the slowest process by what it waits for; their sum is its time."""
    p, c, s = load.processes, load.targets, load.mib_per_process
    if load.path == "shared, collective":
        writers = min(c, p)
        turns = p * s / (writers * load.piece_mib)
        moved = turns * load.piece_mib * coefficients.beta * coefficients.kappa
        return {"servers": moved, "pieces": turns * coefficients.omega}
    parts = {"processes": s * coefficients.alpha, "servers": s * coefficients.beta * shares(p, c)}
    if load.path == "own file":
        return {**parts, "metadata": coefficients.mu * p}
    pieces = s / load.piece_mib
    if load.direction == "write":
        nodes = max(p / load.processes_per_node, 1.0)
        pieces *= (p / nodes) * shares(nodes, c)
    opens = coefficients.mu * p if load.direction == "read" else 0.0
    return {**parts, "pieces": pieces * coefficients.omega, "metadata": opens}
