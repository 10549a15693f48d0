"""`Timers`: takes the seconds of what is measured. Other clocks only wait, give up, or tell when."""

from __future__ import annotations

import time


class Timers:
    """Seconds by phase: `with timers("read"):` adds to one of them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu_seconds: float = 0.0
        self._phase = ""

    def __call__(self, phase: str) -> Timers:
        """Set the name of the next phase."""
        self._phase = phase
        return self

    def __enter__(self) -> None:
        self._cpu = time.process_time()
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        elapsed = time.perf_counter() - self._start
        self.cpu_seconds += time.process_time() - self._cpu
        self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + elapsed


def compute_for(seconds: float) -> None:
    """Keep the processor busy for so long, as a program does between its calls."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
