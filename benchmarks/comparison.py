"""One row of the speed table: sides that do the same work, checked once, then timed in turn on warm files."""

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
    """What a side read is what is checked."""
    return read


@dataclass(frozen=True)
class Side:
    """`run` is timed. What it gave becomes, by `answer`, what must be the same for all sides."""

    run: Callable[[], Any]
    answer: Callable[[Any], Any] = as_it_is


@dataclass(frozen=True)
class Row:
    """A work, done by us and by each named peer.

    `sides` make each side ready, or raise ImportError, MissingLibrary or FileNotFoundError if it is not installed.
    `targets` hold the most that our time may be of a peer's, `most_seconds` the most that it may be by itself.
    A turn does the work `per_turn` times; seconds are those of one.
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


def measure(row: Row, quick: bool) -> dict[str, Any]:
    """The record of one row: each peer measured, or why not; proof that the files stayed warm."""
    os.sync()  # what was just made is written back before anything is timed
    cache.warm_up(row.files)
    ready, absent = _ready(row)
    if OURS not in ready:
        raise RuntimeError(f"{row.key}: hyperslab itself is {absent[OURS]}")
    turns = min(3, row.turns) if quick else row.turns
    took, proof = interleaved({name: partial(seconds_of, side.run) for name, side in ready.items()}, turns, row.files)
    seconds = {name: [each / row.per_turn for each in all_took] for name, all_took in took.items()}
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
    """When, and by which code."""
    described = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(described, cwd=ROOT, capture_output=True, text=True, check=False)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    return {"measured_at": f"{now} UTC", "revision": done.stdout.strip() or "unknown"}


def _ready(row: Row) -> tuple[dict[str, Side], dict[str, str]]:
    """The sides that do the work right, and of the others the reason."""
    ready, absent = {}, {}
    for name, make in row.sides.items():
        try:
            side = make()
            right = same(side.answer(side.run()), row.expected)
        except (ImportError, MissingLibrary, FileNotFoundError) as error:
            absent[name] = f"not installed: {error}"
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of a peer's Rust is no Exception
            absent[name] = f"failed: {type(error).__name__}: {error}"[:300]
        else:
            if right:
                ready[name] = side
            else:
                absent[name] = "wrong: it read something else"
    return ready, absent


def same(read: Any, expected: Any) -> bool:
    """Whether all elements are equal, and of one dtype; axes of length 1 may be kept or dropped."""
    if isinstance(expected, list):
        return len(read) == len(expected) and all(map(same, read, expected))
    a, b = np.asarray(read), np.asarray(expected)
    alike = a.dtype == b.dtype or not isinstance(expected, np.ndarray)
    return alike and np.squeeze(a).shape == np.squeeze(b).shape and bool(np.array_equal(a.ravel(), b.ravel()))


def interleaved(
    sides: Mapping[str, Callable[[], float]], turns: int, files: Sequence[Path] = ()
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """The seconds that each side gives in so many turns, after one that warms up; and proof that files stayed warm.

    A turn is every side once, in an order drawn anew: one trial of the lab's rounds. It is made again if the files were
    not warm. After so many of these the next ones count, and the proof says what is wrong.
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
    rounds.run(["turn"], make, tally, warm_up=warm_up)
    return seconds, proof


def _turn(
    sides: Mapping[str, Callable[[], float]], order: random.Random, files: Sequence[Path]
) -> tuple[dict[str, float], int | None, str | None]:
    """Seconds of each side, without garbage collection; bytes from the device; why the files are not proved warm."""
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
    # A process's own code may have to be paged in again; so little beside the files bears on no figure.
    much = None if device_read is None else max(0, device_read - sum(path.stat().st_size for path in files) // 1000)
    return took, device_read, cache.why_not("warm", cache.resident_fraction(files), much, 0)


def seconds_of(run: Callable[[], Any]) -> float:
    """Seconds of a call; what it gives is let go of afterwards."""
    start = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - start
    del result
    return seconds


def compared(ours: Sequence[float], peer: Sequence[float], target: float | None = None) -> dict[str, Any]:
    """Our median / the peer's, with its interval by resampling the turns, and what that says of a target."""
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
    """The row's absolute target, where it has one."""
    if row.most_seconds is None:
        return None
    low, high = interval_of_median(ours) or (None, None)
    value, target = float(np.median(ours)), row.most_seconds
    said = verdict(value, low, high, target)
    return {"seconds": value, "low": low, "high": high, "target": target, "verdict": said}


def verdict(value: float, low: float | None, high: float | None, target: float | None) -> str | None:
    """`met` or `missed`; with a question mark where the interval holds the target too, or is not known."""
    if target is None:
        return None
    sure = "" if low is not None and high is not None and (high <= target or low > target) else "?"
    return ("met" if value <= target else "missed") + sure
