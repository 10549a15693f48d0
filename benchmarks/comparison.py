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
from pathlib import Path
from typing import Any

import numpy as np
from paired import RESAMPLES, paired_ratio

from hyperslab.errors import MissingLibrary
from hyperslab.lab import cache

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
    accepted, rejected = interleaved({name: side.run for name, side in ready.items()}, turns, row.files)
    seconds = {name: [turn.seconds[name] / row.per_turn for turn in accepted] for name in ready}
    return {
        "key": row.key,
        "work": row.work,
        "turns": turns,
        "seconds": {name: float(np.median(all_took)) for name, all_took in seconds.items()},
        "comparisons": _comparisons(row, seconds, absent),
        "limit": _limit(row, seconds[OURS]),
        "cache": {
            "state": "warm",
            "turns_made_again": len(rejected),
            "device_read_nbytes": max((turn.device_read or 0 for turn in accepted), default=0),
            "not_proved": next((turn.not_warm for turn in accepted if turn.not_warm), None),
        },
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


@dataclass(frozen=True)
class Turn:
    """Seconds of each side, and why the files are not proved to have been warm; None where they were."""

    seconds: dict[str, float]
    device_read: int | None
    not_warm: str | None


def interleaved(
    sides: Mapping[str, Callable[[], Any]], turns: int, files: Sequence[Path]
) -> tuple[list[Turn], list[Turn]]:
    """The turns that count, and those that were made again because the files were not warm.

    The first turn warms up. At most as many are made again as count; then they count, and say what is wrong.
    """
    accepted: list[Turn] = []
    rejected: list[Turn] = []
    drawn = random.Random(1)
    _turn(sides, drawn, files)
    while len(accepted) < turns:
        turn = _turn(sides, drawn, files)
        if turn.not_warm and len(rejected) < turns:
            rejected.append(turn)
            cache.warm_up(files)
        else:
            accepted.append(turn)
    return accepted, rejected


def _turn(sides: Mapping[str, Callable[[], Any]], drawn: random.Random, files: Sequence[Path]) -> Turn:
    """Every side once, in an order drawn anew, without garbage collection."""
    order, seconds = drawn.sample(list(sides), len(sides)), {}
    gc.collect()
    gc.disable()
    before = cache.device_bytes()
    try:
        for name in order:
            start = time.perf_counter()
            result = sides[name]()
            seconds[name] = time.perf_counter() - start
            del result
    finally:
        gc.enable()
    after = cache.device_bytes()
    device_read = (after - before).read if before and after else None
    # A process's own code may have to be paged in again; so little beside the files bears on no figure.
    much = None if device_read is None else max(0, device_read - sum(path.stat().st_size for path in files) // 1000)
    return Turn(seconds, device_read, cache.why_not("warm", cache.resident_fraction(files), much, 0))


def _comparisons(row: Row, seconds: dict[str, list[float]], absent: dict[str, str]) -> list[dict[str, Any]]:
    made = []
    for peer in row.sides:
        if peer == OURS:
            continue
        target = row.targets.get(peer)
        found: dict[str, Any] = {"peer": peer, "status": absent.get(peer, "measured"), "target": target}
        if peer in seconds:
            ratio = paired_ratio(seconds[OURS], seconds[peer])
            found |= {"ratio": ratio.ratio, "low": ratio.low, "high": ratio.high}
            found["verdict"] = verdict(ratio.ratio, ratio.low, ratio.high, target)
        made.append(found)
    return made


def _limit(row: Row, ours: list[float]) -> dict[str, Any] | None:
    """The row's absolute target, where it has one."""
    if row.most_seconds is None:
        return None
    drawn = np.random.default_rng(3).integers(0, len(ours), (RESAMPLES, len(ours)))
    low, high = np.percentile(np.median(np.array(ours)[drawn], axis=1), [2.5, 97.5])
    value = float(np.median(ours))
    target = row.most_seconds
    said = verdict(value, float(low), float(high), target)
    return {"seconds": value, "low": float(low), "high": float(high), "target": target, "verdict": said}


def verdict(value: float, low: float, high: float, target: float | None) -> str | None:
    """`met` or `missed`; with a question mark where the interval holds the target too."""
    if target is None:
        return None
    sure = "" if high <= target or low > target else "?"
    return ("met" if value <= target else "missed") + sure
