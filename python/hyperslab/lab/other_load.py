"""How much of the processors other programs use, before something is measured and while it is.

The kernel counts the time that each processor was busy, or was taken away by the host of a virtual machine. What this
process and all that it started used is subtracted from that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# If other programs use at least this share of the processors, the machine is busy.
BUSY = 0.1
SAMPLE_SECONDS = 0.5
MOST_WAITED_SECONDS = 10.0


@dataclass(frozen=True)
class _Times:
    """Seconds of processors up to a moment."""

    at: float
    busy: float
    own: float


class OtherLoad:
    """What other programs use from the moment on at which this is made.

    Parameters
    ----------
    proc : Path
        Where the kernel's counters are.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._processors = os.sched_getaffinity(0)
        self._first = self._times()

    def share(self) -> float | None:
        """The share of the processors that other programs have used since; None if the kernel does not say."""
        now = self._times()
        if now is None or self._first is None or now.at <= self._first.at:
            return None
        room = (now.at - self._first.at) * len(self._processors)
        used = (now.busy - self._first.busy) - (now.own - self._first.own)
        return min(max(used / room, 0.0), 1.0)

    def _times(self) -> _Times | None:
        tick = os.sysconf("SC_CLK_TCK")
        try:
            lines = (self._proc / "stat").read_text().splitlines()
            counted = {int(name[3:]): list(map(int, rest)) for name, *rest in map(str.split, lines) if _is_one(name)}
            own = _own_ticks(self._proc)
        except (OSError, ValueError):
            return None
        # user, nice, system, idle, iowait, irq, softirq, steal; guests are counted as user too
        mine = [counted[number] for number in self._processors if number in counted]
        if not mine or min(map(len, mine)) < 8:
            return None
        busy = sum(sum(one[:8]) - one[3] - one[4] for one in mine)
        return _Times(time.monotonic(), busy / tick, own / tick)


def _is_one(name: str) -> bool:
    return name.startswith("cpu") and name[3:].isdigit()


def _own_ticks(proc: Path) -> int:
    """The time that this process and its descendants used, with that of children which have ended."""
    parents, ticks = {}, {}
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            rest = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        parents[int(folder.name)] = int(rest[1])
        ticks[int(folder.name)] = sum(map(int, rest[11:15]))
    return sum(ticks[number] for number in ticks if _descends(number, parents))


def _descends(number: int, parents: dict[int, int]) -> bool:
    own, seen = os.getpid(), set[int]()
    while number in parents and number not in seen:
        if number == own:
            return True
        seen.add(number)
        number = parents[number]
    return False


def sampled() -> float | None:
    """The share of the processors that other programs use now."""
    load = OtherLoad()
    time.sleep(SAMPLE_SECONDS)
    return load.share()


def wait_until_quiet(
    say: Callable[[str], None],
    most_seconds: float = MOST_WAITED_SECONDS,
    sample: Callable[[], float | None] = sampled,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """If other programs keep the machine busy, say so and wait for them, but not for long."""
    share = sample()
    if share is None or share < BUSY:
        return
    say(f"the machine is busy: other programs use {share_text(share)}; waiting up to {most_seconds:.0f} s for them")
    end = clock() + most_seconds
    while clock() < end:
        share = sample()
        if share is None or share < BUSY:
            say("the machine is quiet now")
            return
    say("the machine is still busy: what is measured now gets wider intervals")


def share_text(share: float) -> str:
    """A share of the processors in words."""
    return f"{share:.0%} of the processors".replace("%", " %")
