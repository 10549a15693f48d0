"""Simulate processes and servers request by request. Everything here is simulation, not measurement and not formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hyperslab._core import serve_requests
from hyperslab.parallel.striping import ProcessRequests


@dataclass(frozen=True)
class ServerSpeeds:
    """How fast the servers of a store are, and what a request takes outside of them.

    A data server serves a request in `request_seconds` + `seconds_per_byte` · bytes, and then takes the next one. The
    metadata server takes `metadata_seconds` for a file. A process spends `process_seconds` +
    `process_seconds_per_byte` · bytes on a request while no server is busy with it.
    """

    request_seconds: float
    seconds_per_byte: float
    metadata_seconds: float
    process_seconds: float = 0.0
    process_seconds_per_byte: float = 0.0


@dataclass(frozen=True)
class Simulated:
    """What a simulation says: the time of the slowest process, of each process, and how busy each server was.

    The last server is the metadata server.
    """

    seconds: float
    process_seconds: npt.NDArray[np.float64]
    busy_seconds: npt.NDArray[np.float64]
    label: str = "simulation"


def simulate(processes: Sequence[ProcessRequests], data_servers: int, speeds: ServerSpeeds) -> Simulated:
    """Simulate all processes, which begin at the same time.

    Raises
    ------
    ValueError
        A request goes to a server that does not exist, or a speed is negative or not finite.
    """
    starts = np.concatenate([[0], np.cumsum([len(each.nbytes) for each in processes])]).astype(np.uint64)
    servers = np.concatenate([each.servers for each in processes] or [np.empty(0, np.uint32)])
    nbytes = np.concatenate([each.nbytes for each in processes] or [np.empty(0)])
    return simulate_columns(starts, servers, nbytes, data_servers, speeds)


def simulate_columns(
    starts: npt.NDArray[np.uint64],
    servers: npt.NDArray[np.uint32],
    nbytes: npt.NDArray[np.float64],
    data_servers: int,
    speeds: ServerSpeeds,
) -> Simulated:
    """The same for requests in columns: those of process k are from `starts[k]` to `starts[k + 1]`.

    Requests to the metadata server, which has the number `data_servers`, have negative bytes.
    """
    moved = np.maximum(nbytes, 0.0)
    is_metadata = servers == data_servers
    service = np.where(is_metadata, speeds.metadata_seconds, speeds.request_seconds + speeds.seconds_per_byte * moved)
    own = speeds.process_seconds + speeds.process_seconds_per_byte * moved
    ends, busy = serve_requests(starts, servers.astype(np.uint32), service, own, data_servers + 1)
    return Simulated(float(ends.max(initial=0.0)), ends, busy)
