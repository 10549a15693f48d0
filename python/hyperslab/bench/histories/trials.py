"""Seed 4's study, "Performance of the Versioned HDF5 Library": how files grow, and slow down, with their versions.

A trial is a whole history: a file that gets one version after another, and is then read. That is no cell of the other
studies, whose trials are repeated on a file that stays as it is; the journal, the verdicts and the rules are the same.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.bench.histories.contenders import HISTORY_FORMATS, Arrays, HistoryFormat, removed
from hyperslab.bench.histories.edits import WORKLOADS, Edit
from hyperslab.bench.results import Journal, load_lines
from hyperslab.errors import MissingLibrary, RunError
from hyperslab.lab.cache import warm_up

NAME = "seed4-histories"
JOURNAL = "histories.jsonl"
READ_COUNT = 20  # reads of the latest version, the article's
ALL_READ = (1 << 14, 1 << 8)  # chunk lengths at which all versions are read: of one axis, and of two; the article's


@dataclass(frozen=True)
class Scale:
    """How much of the study is run; chunk lengths are those of the workload with two axes where it has them."""

    counts: tuple[int, ...]
    chunk_lengths: tuple[int, ...]
    dense_chunk_lengths: tuple[int, ...]
    compressions: tuple[str, ...]


SCALES = {
    "quick": Scale((20, 50), (1 << 12, 1 << 14), (1 << 8,), ("none", "gzip")),
    "small": Scale((50, 100, 500), (1 << 12, 1 << 14), (1 << 8,), ("none", "gzip", "lzf", "blosc")),
    "paper": Scale(
        (50, 100, 500, 1000, 5000),
        tuple(1 << power for power in range(10, 17)),
        (1 << 8, 1 << 10),
        ("none", "gzip", "lzf", "blosc"),
    ),
}


@dataclass(frozen=True)
class History:
    """One trial: which, and what it took. Figures are None where it was not to be had, and `status` says why.

    Args:
        version_seconds: Of each version in turn.
        read_latest_seconds: Of each reading of the latest version, opening the file included.
        read_all_seconds: Of reading every version once; None where that was not asked.
        separate_nbytes: The elements of all versions, each counted anew.
    """

    workload: str
    format: str
    count: int
    chunk_length: int
    compression: str
    status: str
    stored_nbytes: int | None = None
    separate_nbytes: int | None = None
    version_seconds: tuple[float, ...] = ()
    read_latest_seconds: tuple[float, ...] = ()
    read_all_seconds: float | None = None

    @property
    def key(self) -> tuple[str, str, int, int, str]:
        """What tells it from other trials."""
        return self.workload, self.format, self.count, self.chunk_length, self.compression

    def key_and_status(self, status: str) -> tuple[str, str, int, int, str, str]:
        """What tells it from other trials, and what became of it."""
        return (*self.key, status)

    @property
    def creation_seconds(self) -> float:
        """All versions together."""
        return sum(self.version_seconds)


def planned(scale: str) -> list[tuple[str, str, int, int, str]]:
    """The trials of a scale: all contenders of one case one after another, in an order drawn anew for each case.

    Raises:
        RunError: There is no such scale.
    """
    if scale not in SCALES:
        raise RunError(f"no scale {scale}: there are {', '.join(SCALES)}")
    asked, drawn, found = SCALES[scale], random.Random(4), []
    for name, workload in WORKLOADS.items():
        lengths = asked.dense_chunk_lengths if workload.columns else asked.chunk_lengths
        for count in asked.counts:
            for length in lengths:
                for compression in asked.compressions:
                    order = drawn.sample(list(HISTORY_FORMATS), len(HISTORY_FORMATS))
                    found += [(name, contender, count, length, compression) for contender in order]
    return found


def run(output: Path, scale: str, say: Callable[[str], None], *, resume: bool = False) -> list[History]:
    """Run what the journal does not have yet.

    Args:
        output: Folder of the journal; files are made and removed in it.
        scale: One of SCALES.
        say: Told of each trial.
        resume: Whether the folder may hold a part of the run.

    Raises:
        RunError: The folder holds a run already.
    """
    output.mkdir(parents=True, exist_ok=True)
    journal = output / JOURNAL
    done = {history.key: history for history in map(_history, load_lines(journal))}
    if done and not resume:
        raise RunError(f"{output} holds a run already: choose another folder, or go on with it by --resume")
    trials = planned(scale)
    with closing(Journal(journal)) as kept:
        for number, key in enumerate(trials, 1):
            if key in done:
                continue
            history = done[key] = trial(output, *key)
            kept.append(asdict(history))
            say(f"{number}/{len(trials)} {' '.join(map(str, key))}: {_told(history)}")
    return [done[key] for key in trials]


def load(output: Path) -> list[History]:
    """The trials that a journal has.

    Raises:
        RunError: There is none.
    """
    found = [_history(stored) for stored in load_lines(output / JOURNAL)]
    if not found:
        raise RunError(f"{output} holds no histories: run `hyperslab bench {NAME} -o {output}`")
    return found


def _history(stored: Mapping[str, Any]) -> History:
    series = {name: tuple(stored[name]) for name in ("version_seconds", "read_latest_seconds")}
    return History(**{**stored, **series})


def _told(history: History) -> str:
    if history.status != "ok":
        return history.status
    return f"{history.creation_seconds:.2f} s, {(history.stored_nbytes or 0) / 1e6:.1f} MB"


def trial(output: Path, workload: str, contender: str, count: int, chunk_length: int, compression: str) -> History:
    """One history, made and read; the latest version is compared with what it must be."""
    begun = History(workload, contender, count, chunk_length, compression, "ok")
    path = output / "history"
    removed(path)
    kind = HISTORY_FORMATS[contender]
    try:
        return _measured(begun, kind, path)
    except MissingLibrary as error:
        return History(*begun.key_and_status(f"not available: {error}"))
    except Exception as error:  # of whatever library: the others go on
        return History(*begun.key_and_status(f"failed: {type(error).__name__}: {error}"))
    finally:
        removed(path)


def _measured(begun: History, kind: type[HistoryFormat], path: Path) -> History:
    workload, seconds, separate = WORKLOADS[begun.workload], [], 0
    edits = list(workload.edits(begun.count))
    file = kind(path, begun.chunk_length, begun.compression)
    shapes: dict[str, tuple[int, ...]] = {}
    for number, edit in enumerate(edits):
        start = time.perf_counter()
        file.add(number, edit)
        seconds.append(time.perf_counter() - start)
        shapes |= {name: one.shape for name, one in edit.items()}
        separate += sum(int(np.prod(shape)) for shape in shapes.values()) * 8
    start = time.perf_counter()
    file.close()
    seconds[-1] += time.perf_counter() - start  # what is written only now is a part of the work
    if not _is_right(kind, path, edits):
        return History(*begun.key_and_status("wrong: the latest version is another"))
    warm_up(list(_files(path)))
    latest = [_timed(lambda: kind.latest(path)) for _ in range(READ_COUNT)]
    reads_all = kind.keeps_versions and begun.compression == "none" and begun.chunk_length in ALL_READ
    read_all = _timed(lambda: kind.every(path, begun.count)) if reads_all else None
    stored = sum(one.stat().st_size for one in _files(path))
    return History(*begun.key_and_status("ok"), stored, separate, tuple(seconds), tuple(latest), read_all)


def _is_right(kind: type[HistoryFormat], path: Path, edits: list[Mapping[str, Edit]]) -> bool:
    expected: Arrays = {}
    for edit in edits:
        for name, one in edit.items():
            kept = expected[name][: one.first_row] if name in expected else one.rows[:0]
            expected[name] = np.concatenate([kept, one.rows])
    found = kind.latest(path)
    return found.keys() == expected.keys() and all(np.array_equal(found[name], expected[name]) for name in expected)


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _files(path: Path) -> Iterator[Path]:
    yield from [path] if path.is_file() else (one for one in path.rglob("*") if one.is_file())
