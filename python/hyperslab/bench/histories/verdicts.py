"""Verdicts on the claims of versioned-hdf5's article, with today's release on this machine and our own figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np

from hyperslab.bench.histories.trials import History
from hyperslab.lab.verdict import Verdict

Word = Literal["holds", "reverses", "undecided"]
STUDY = "versioned-histories"
CLAIMED, OURS, PLAIN = "versioned-hdf5", "hyperslab", "h5py, unversioned"
CHUNK_LENGTH = 1 << 12
CONSTANT = "large_fraction_constant_sparse"
LINEAR = (0.8, 1.2)  # range of the exponent over the number of versions


def judge(histories: Iterable[History]) -> list[Verdict]:
    """A verdict on each claim. It is `undecided` if the run lacks the necessary trials."""
    done = [history for history in histories if history.status == "ok"]
    return [
        _verdict("S4-01", "versions of an array take less than half of the space of separate files",
                 "252 MB of 572 MB, 5000 versions", done, _space, lambda ratio: ratio < 0.5),
        _verdict("S4-02", "a version takes 6 to 8 times as long to write as in a file without versions",
                 "6-8 times", done, _writing, lambda ratio: 6 <= ratio <= 8),
        _verdict("S4-03", "the latest version takes 5 to 10 times as long to read as a file without versions",
                 "5-10 times", done, _reading, lambda ratio: 5 <= ratio <= 10),
        _verdict("S4-04", "the time to create a file grows linearly with its versions, where arrays do not grow",
                 "linear", done, _growth, lambda power: LINEAR[0] <= power <= LINEAR[1]),
        _verdict("S4-05", "the time to read all versions grows linearly with them, where arrays do not grow",
                 "close to linear", done, _reading_all, lambda power: LINEAR[0] <= power <= LINEAR[1]),
    ]  # fmt: skip


def _verdict(
    identity: str,
    claim: str,
    published: str,
    done: list[History],
    figure: Callable[[list[History], str], float | None],
    holds: Callable[[float], bool],
) -> Verdict:
    theirs, ours = figure(done, CLAIMED), figure(done, OURS)
    word: Word = "undecided" if theirs is None else "holds" if holds(theirs) else "reverses"
    figures = ((CLAIMED, theirs), (OURS, ours))
    said = ", ".join(f"{name} {'not measured' if value is None else f'{value:.2g}'}" for name, value in figures)
    reason = (
        f"{'whether ' if word == 'undecided' else 'it is not so that ' if word == 'reverses' else ''}{claim} ({said})"
    )
    return Verdict(identity, STUDY, claim, published, "not run", said, word, reason)


def _constant(done: list[History], contender: str, chunk_length: int = CHUNK_LENGTH) -> list[History]:
    """The histories of arrays that do not grow, without compression, shortest first."""
    histories = [
        history
        for history in done
        if (history.workload, history.format, history.compression) == (CONSTANT, contender, "none")
        and history.chunk_length == chunk_length
    ]
    return sorted(histories, key=lambda history: history.count)


def _space(done: list[History], contender: str) -> float | None:
    histories = _constant(done, contender)
    if not histories or not histories[-1].separate_nbytes or histories[-1].stored_nbytes is None:
        return None
    return histories[-1].stored_nbytes / histories[-1].separate_nbytes


def _writing(done: list[History], contender: str) -> float | None:
    histories, plain = _constant(done, contender), _constant(done, PLAIN)
    if not histories or not plain:
        return None
    return float(np.median(histories[-1].version_seconds[1:]) / np.median(plain[-1].version_seconds[1:]))


def _reading(done: list[History], contender: str) -> float | None:
    """The median over all workloads, with the longest history of each."""
    ratios = []
    for workload in {history.workload for history in done}:
        own = [one for one in done if one.workload == workload and one.compression == "none"]
        versions = [one for one in own if one.format == contender]
        plain = {(one.count, one.chunk_length): one for one in own if one.format == PLAIN}
        pairs = [
            (one, plain[one.count, one.chunk_length]) for one in versions if (one.count, one.chunk_length) in plain
        ]
        if pairs:
            one, other = max(pairs, key=lambda pair: pair[0].count)
            ratios.append(float(np.median(one.read_latest_seconds) / np.median(other.read_latest_seconds)))
    return float(np.median(ratios)) if ratios else None


def _growth(done: list[History], contender: str) -> float | None:
    return _power([(one.count, one.creation_seconds) for one in _constant(done, contender)])


def _reading_all(done: list[History], contender: str) -> float | None:
    histories = [one for one in _constant(done, contender, 1 << 14) if one.read_all_seconds is not None]
    return _power([(one.count, one.read_all_seconds or 0) for one in histories])


def _power(points: list[tuple[int, float]]) -> float | None:
    """The exponent with which the seconds grow with the number of versions."""
    if len(points) < 2:
        return None
    counts, seconds = np.log(np.array(points)).T
    return float(np.polyfit(counts, seconds, 1)[0])
