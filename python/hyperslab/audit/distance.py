"""`Distance`: how far away a server is, and the seconds that its requests take by that alone."""

from __future__ import annotations

from dataclasses import dataclass

from hyperslab.chunk_grid import ceil_div

# As many requests as a host gets at first (`FIRST_IN_FLIGHT` of the core).
IN_FLIGHT = 32
ROUND_TRIP_SECONDS, NBYTES_PER_SECOND = 0.040, 100e6


@dataclass(frozen=True)
class Distance:
    """A round trip to a server, and how many bytes come in a second. Decoding is not in it."""

    round_trip_seconds: float = ROUND_TRIP_SECONDS
    nbytes_per_second: float = NBYTES_PER_SECOND

    def seconds(self, request_count: int, nbytes: float, round_count: int = 1) -> float:
        """What requests take: those of a round are made side by side, and a round waits for the one before it."""
        if request_count <= 0:
            return 0.0
        waits = max(1, round_count) + ceil_div(max(request_count - round_count, 0) + 1, IN_FLIGHT) - 1
        return waits * self.round_trip_seconds + nbytes / self.nbytes_per_second
