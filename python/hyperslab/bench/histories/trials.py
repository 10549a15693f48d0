"""Trials of histories: each writes a file with one version after another and then reads it.

A history is not a cell of the other studies, because their trials repeat on a file that stays the same. It uses the
same rounds, workers, journal and verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.bench.histories.contenders import HISTORY_FORMATS, Arrays, HistoryFormat
from hyperslab.bench.histories.edits import EDIT_PATTERNS, Edit
from hyperslab.bench.histories.study import HistoryCase
from hyperslab.errors import HyperslabError, MissingLibrary, NoSpace
from hyperslab.lab.cache import disk_usage, files_below, warm_up
from hyperslab.lab.journal import Journal, load_lines
from hyperslab.lab.room import disk_full
from hyperslab.lab.rounds import Tally
from hyperslab.lab.worker import LocalWorkers, Workbench
from hyperslab.scratch import remove
from hyperslab.timers import Timers

JOURNAL = "histories.jsonl"
READ_COUNT = 20  # reads of the latest version, as in the article
# chunk lengths at which all versions are read, for one axis and for two, as in the article
ALL_READ = (1 << 14, 1 << 8)
VERSIONS_WITHIN_TIMEOUT = 100  # versions that a worker may write within one timeout


@dataclass(frozen=True)
class History:
    """One trial with its timings. Figures are None if they could not be measured, and `status` says why.

    Parameters
    ----------
    workload : str
        The name of its edits.
    version_seconds : tuple[float, ...]
        Seconds of each version.
    read_latest_seconds : tuple[float, ...]
        Seconds of each read of the latest version, including opening the file.
    read_all_seconds : float | None
        Seconds of reading every version once; None if the study does not ask for it.
    separate_nbytes : int | None
        Bytes of the elements of all versions, each counted separately.
    """

    workload: str
    format: str
    count: int
    chunk_length: int
    compression: str
    status: str = "ok"
    stored_nbytes: int | None = None
    separate_nbytes: int | None = None
    version_seconds: tuple[float, ...] = ()
    read_latest_seconds: tuple[float, ...] = ()
    read_all_seconds: float | None = None

    @property
    def key(self) -> tuple[str, str, int, int, str]:
        """What all trials of the same history have in common."""
        return self.workload, self.format, self.count, self.chunk_length, self.compression

    @property
    def name(self) -> str:
        """The history's name for people."""
        return " ".join(map(str, self.key))

    @property
    def creation_seconds(self) -> float:
        """Seconds of all versions together."""
        return sum(self.version_seconds)


def planned(case: HistoryCase) -> Iterator[list[History]]:
    """The histories of a study, without figures. Those of all contenders are measured in turn."""
    for name in case.edits:
        lengths = case.dense_chunk_lengths if EDIT_PATTERNS[name].columns else case.chunk_lengths
        for count in case.counts:
            for length in lengths:
                for compression in case.conditions:
                    yield [History(name, contender, count, length, compression) for contender in case.formats]


def open_journal(directory: Path) -> Journal[History]:
    """The journal of a run's histories."""
    return Journal(directory / JOURNAL, _history, asdict, lambda history: history.key)


def load_histories(directory: Path) -> list[History]:
    """All finished histories of a run."""
    return [_history(line) for line in load_lines(directory / JOURNAL)]


def _history(line: Mapping[str, Any]) -> History:
    series = {name: tuple(line[name]) for name in ("version_seconds", "read_latest_seconds")}
    return History(**{**line, **series})


def tally_of(known: Sequence[History]) -> Tally:
    """What the stop rule needs of the trials of one history."""
    seconds = [one.creation_seconds for one in known if one.status == "ok"]
    return Tally(seconds, is_over=len(seconds) < len(known))


def make(history: History, workers: LocalWorkers, directory: Path, timeout_seconds: float) -> History:
    """Make a history in its contender's process. A failure, in whichever library, stops no other history."""
    task = MakeHistory(history, directory / "history")
    allowed = timeout_seconds * max(1.0, history.count / VERSIONS_WITHIN_TIMEOUT)
    try:
        made: History = workers.worker(history.format).ask(task, allowed)
    except MissingLibrary as error:
        made = replace(history, status=f"not available: {error}")
    except NoSpace as full:
        raise disk_full(directory, history.name, full, "histories") from full
    except HyperslabError as error:
        made = replace(history, status=f"failed: {error}")
    finally:
        remove(task.path)  # a killed worker leaves its file
    return made


@dataclass(frozen=True)
class MakeHistory:
    """A worker's task: make a history and read it. The latest version is compared with what it should be."""

    history: History
    path: Path

    def run(self, _: Workbench) -> History:
        """Run the task."""
        remove(self.path)
        try:
            return _measured(self.history, HISTORY_FORMATS[self.history.format], self.path)
        finally:
            remove(self.path)


def _measured(history: History, kind: type[HistoryFormat], path: Path) -> History:
    seconds, separate = list[float](), 0
    edits = list(EDIT_PATTERNS[history.workload].edits(history.count))
    file = kind(path, history.chunk_length, history.compression)
    shapes: dict[str, tuple[int, ...]] = {}
    for number, edit in enumerate(edits):
        seconds.append(_timed(lambda number=number, edit=edit: file.add(number, edit)))  # type: ignore[misc]
        shapes |= {name: one.shape for name, one in edit.items()}
        separate += sum(int(np.prod(shape)) for shape in shapes.values()) * 8
    seconds[-1] += _timed(file.close)  # includes what the library writes only at closing
    if not _is_right(kind, path, edits):
        return replace(history, status="wrong: the latest version has other elements")
    warm_up(files_below(path))
    latest = [_timed(lambda: kind.latest(path)) for _ in range(READ_COUNT)]
    reads_all = kind.keeps_versions and history.compression == "none" and history.chunk_length in ALL_READ
    return replace(
        history,
        stored_nbytes=disk_usage(path)[0],
        separate_nbytes=separate,
        version_seconds=tuple(seconds),
        read_latest_seconds=tuple(latest),
        read_all_seconds=_timed(lambda: kind.every(path, history.count)) if reads_all else None,
    )


def _is_right(kind: type[HistoryFormat], path: Path, edits: list[Mapping[str, Edit]]) -> bool:
    expected: Arrays = {}
    for edit in edits:
        for name, one in edit.items():
            kept = expected[name][: one.first_row] if name in expected else one.rows[:0]
            expected[name] = np.concatenate([kept, one.rows])
    latest = kind.latest(path)
    return latest.keys() == expected.keys() and all(np.array_equal(latest[name], expected[name]) for name in expected)


def _timed(work: Callable[[], object]) -> float:
    timers = Timers()
    with timers("work"):
        work()
    return timers.seconds["work"]
