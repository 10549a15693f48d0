"""One row of the speed table: several sides do the same work.

They are checked once and then timed in turn on warm files.
"""

from __future__ import annotations

import gc
import os
import random
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.errors import MissingLibrary
from hyperslab.lab import cache
from hyperslab.lab.rounds import MOST_REJECTED, Rounds, Tally, exactly, trial_count
from hyperslab.lab.statistics import interval_of_median, interval_of_ratio

OURS = "hyperslab"
ROOT = Path(__file__).parents[1]


def as_it_is(read: Any) -> Any:
    """The answer is what was read."""
    return read


@dataclass(frozen=True)
class Side:
    """`run` is timed. `answer` converts its result to something that must be equal for all sides."""

    run: Callable[[], Any]
    answer: Callable[[Any], Any] = as_it_is


@dataclass(frozen=True)
class Row:
    """Some work, done by us and by each named peer.

    `sides` prepare each side. They raise ImportError, MissingLibrary or FileNotFoundError if it is not installed.
    `targets` are the largest allowed ratios of our time to a peer's; `most_seconds` is the longest allowed time of
    ours. A turn does the work `per_turn` times, and the seconds are those of one time. Checking the answers is the
    first run of every side, so rows that take minutes need no other one to warm up.
    """

    key: str
    work: str
    files: Sequence[Path]
    expected: Any
    sides: Mapping[str, Callable[[], Side]]
    targets: Mapping[str, float] = field(default_factory=dict)
    most_seconds: float | None = None
    turns: int = 9
    per_turn: int = 1
    warms_up: bool = True


def measure(row: Row, quick: bool) -> dict[str, Any]:
    """Measure one row: each peer, or why it could not be measured, with the proof that the files stayed warm."""
    os.sync()  # write back new files before anything is timed
    cache.warm_up(row.files)
    ready, absent = _ready(row)
    if OURS not in ready:
        raise RuntimeError(f"{row.key}: hyperslab itself is {absent[OURS]}")
    turns = min(3, row.turns) if quick else row.turns
    runs = {name: partial(seconds_of, side.run) for name, side in ready.items()}
    took, proof = interleaved(runs, turns, row.files, warms_up=row.warms_up)
    seconds = {name: [each / row.per_turn for each in all_took] for name, all_took in took.items()}
    return measured(row, seconds, absent, proof, turns)


def measured(
    row: Row, seconds: dict[str, list[float]], absent: dict[str, str], proof: dict[str, Any], turns: int
) -> dict[str, Any]:
    """What is kept of a row."""
    return {
        "key": row.key,
        "work": row.work,
        "turns": turns,
        "seconds": {name: float(np.median(all_took)) for name, all_took in seconds.items()},
        "comparisons": _comparisons(row, seconds, absent),
        "limit": _limit(row, seconds[OURS]),
        "cache": proof,
        "samples": {name: [round(took, 8) for took in all_took] for name, all_took in seconds.items()},
        **provenance(),
    }


def provenance() -> dict[str, str]:
    """The date, and the commit of the code."""
    described = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(described, cwd=ROOT, capture_output=True, text=True, check=False)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    return {"measured_at": f"{now} UTC", "revision": done.stdout.strip() or "unknown"}


def _ready(row: Row) -> tuple[dict[str, Side], dict[str, str]]:
    """The sides that do the work correctly, and why the others do not."""
    ready, absent = {}, {}
    for name, make in row.sides.items():
        try:
            side = make()
            right = same(side.answer(side.run()), row.expected)
        except (ImportError, MissingLibrary, FileNotFoundError) as error:
            absent[name] = f"not installed: {error}"
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in a peer's Rust code is not an Exception
            absent[name] = f"failed: {type(error).__name__}: {error}"[:300]
        else:
            if right:
                ready[name] = side
            else:
                absent[name] = "wrong: it read something else"
    return ready, absent


def same(read: Any, expected: Any) -> bool:
    """Whether all elements and the dtype are equal. Axes of length 1 are ignored."""
    if isinstance(expected, list):
        return len(read) == len(expected) and all(map(same, read, expected))
    a, b = np.asarray(read), np.asarray(expected)
    alike = a.dtype == b.dtype or not isinstance(expected, np.ndarray)
    return alike and np.squeeze(a).shape == np.squeeze(b).shape and bool(np.array_equal(a.ravel(), b.ravel()))


def interleaved(
    sides: Mapping[str, Callable[[], float]], turns: int, files: Sequence[Path] = (), *, warms_up: bool = True
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """The seconds of each side over `turns` turns, with the proof that the files stayed warm. A warm-up turn is first.

    A turn runs every side once in a new random order: it is one trial of the lab's rounds. If the files were not warm,
    the turn is repeated. After as many repeats as turns, the next turns count anyway, and the proof says what is wrong.
    """
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    proof: dict[str, Any] = {"state": "warm", "turns_made_again": 0, "device_read_nbytes": 0, "not_proved": None}
    order, rule = random.Random(1), exactly(turns)

    def make(_: str) -> None:
        took, device_read, not_warm = _turn(sides, order, files)
        if not_warm and proof["turns_made_again"] < MOST_REJECTED:
            proof["turns_made_again"] += 1
            cache.warm_up(files)
            return
        proof["device_read_nbytes"] = max(proof["device_read_nbytes"], device_read or 0)
        proof["not_proved"] = proof["not_proved"] or not_warm
        for name in sides:
            seconds[name].append(took[name])

    def warm_up(_: str) -> None:
        _turn(sides, order, files)

    def tally(_: str) -> Tally:
        return Tally(next(iter(seconds.values())), proof["turns_made_again"])

    rounds = Rounds(rule, 1, lambda *_: None, trial_count(1, rule))
    rounds.run(["turn"], make, tally, warm_up=warm_up if warms_up else None)
    return seconds, proof


def _turn(
    sides: Mapping[str, Callable[[], float]], order: random.Random, files: Sequence[Path]
) -> tuple[dict[str, float], int | None, str | None]:
    """One turn without garbage collection: the seconds of each side, bytes from the device, and why the files may not
    be warm.
    """
    took = {}
    gc.collect()
    before = cache.device_bytes()
    for name in order.sample(list(sides), len(sides)):
        gc.disable()
        try:
            took[name] = sides[name]()
        finally:
            gc.enable()
    after = cache.device_bytes()
    device_read = (after - before).read if before and after else None
    # A process may have to page in its own code again. This little, compared with the files, affects no figure.
    much = None if device_read is None else max(0, device_read - sum(path.stat().st_size for path in files) // 1000)
    return took, device_read, cache.why_not("warm", cache.resident_fraction(files), much, 0)


def seconds_of(run: Callable[[], Any]) -> float:
    """The seconds of a call. Its result is freed afterwards."""
    start = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - start
    del result
    return seconds


def compared(ours: Sequence[float], peer: Sequence[float], target: float | None = None) -> dict[str, Any]:
    """The ratio of our median to the peer's, with its interval over the turns, and the verdict on a target."""
    ratio = float(np.median(ours) / np.median(peer))
    low, high = interval_of_ratio(peer, ours, paired=True) or (None, None)
    return {"ratio": ratio, "low": low, "high": high, "verdict": verdict(ratio, low, high, target)}


def _comparisons(row: Row, seconds: dict[str, list[float]], absent: dict[str, str]) -> list[dict[str, Any]]:
    made = []
    for peer in row.sides:
        if peer == OURS:
            continue
        target = row.targets.get(peer)
        found: dict[str, Any] = {"peer": peer, "status": absent.get(peer, "measured"), "target": target}
        if peer in seconds:
            found |= compared(seconds[OURS], seconds[peer], target)
        made.append(found)
    return made


def _limit(row: Row, ours: list[float]) -> dict[str, Any] | None:
    """The row's absolute target, if it has one."""
    if row.most_seconds is None:
        return None
    low, high = interval_of_median(ours) or (None, None)
    value, target = float(np.median(ours)), row.most_seconds
    said = verdict(value, low, high, target)
    return {"seconds": value, "low": low, "high": high, "target": target, "verdict": said}


def verdict(value: float, low: float | None, high: float | None, target: float | None) -> str | None:
    """`met` or `missed`, with a question mark if the interval includes the target or is unknown."""
    if target is None:
        return None
    sure = "" if low is not None and high is not None and (high <= target or low > target) else "?"
    return ("met" if value <= target else "missed") + sure
