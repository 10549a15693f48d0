"""A run on disk: the journal that survives a kill, and the tables that people use.

`trials.jsonl` is the journal: one line for each finished trial, synced as it is written. Everything else is made
from it, beside and then renamed, so that no reader ever sees half a file.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from hyperslab.bench.published import make_replay
from hyperslab.bench.records import Summary, Trial, Verdict
from hyperslab.bench.statistics import PointEstimate, Ranking, rank, summarise
from hyperslab.bench.study import Case, Scale
from hyperslab.errors import RunError, UsageError
from hyperslab.lab.environment import Environment
from hyperslab.replacing import replace_with

RUN_FILE, JOURNAL_FILE = "run.json", "trials.jsonl"


@dataclass(frozen=True)
class RunDescription:
    """What was asked, and where: run.json."""

    version: str
    started_at: str
    scale: Scale
    methods: tuple[str, ...]
    seed: int  # of the order of trials
    cases: tuple[Case, ...]
    environment: Environment

    def to_dict(self) -> dict[str, Any]:
        """For run.json."""
        cases = [case.model_dump(exclude_none=True, exclude_defaults=True) for case in self.cases]
        return {**asdict(self), "cases": cases, "environment": self.environment.to_dict()}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> RunDescription:
        """From run.json."""
        return cls(
            version=given["version"],
            started_at=given["started_at"],
            scale=given["scale"],
            methods=tuple(given["methods"]),
            seed=given["seed"],
            cases=tuple(Case.model_validate(case) for case in given["cases"]),
            environment=Environment(**given["environment"]),
        )


@dataclass(frozen=True)
class Run:
    """A run as it is read back: what was asked, every raw trial, and what follows from them."""

    directory: Path
    description: RunDescription
    trials: list[Trial]
    summaries: list[Summary]
    rankings: list[Ranking]
    verdicts: list[Verdict]


class Journal:
    """Appends what is finished, a line each; it is on the device before the next thing starts."""

    def __init__(self, path: Path) -> None:
        _drop_torn_line(path)
        self._stream = open(path, "a", encoding="utf-8")  # noqa: SIM115 - it lives as long as the journal

    def append(self, finished: Mapping[str, Any]) -> None:
        """Write one line and sync it."""
        self._stream.write(json.dumps(finished) + "\n")
        self._stream.flush()
        os.fdatasync(self._stream.fileno())

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def _drop_torn_line(path: Path) -> None:
    """A kill can leave half a last line; cut it so that the next trial starts on a line of its own."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)


def start_run(directory: Path, description: RunDescription) -> None:
    """Make `directory` a run's; refuses one that holds a run already."""
    if (directory / RUN_FILE).exists():
        raise UsageError(f"{directory} holds a run already; go on with it by --resume, or choose another with -o")
    replace_with(directory / RUN_FILE, json.dumps(description.to_dict(), indent=1) + "\n")


def load_description(directory: Path) -> RunDescription:
    """What a run's directory says was asked."""
    path = directory / RUN_FILE
    try:
        return RunDescription.from_dict(json.loads(path.read_text()))
    except FileNotFoundError as error:
        raise UsageError(
            f"{directory} holds no run (no {RUN_FILE}); `hyperslab bench STUDY -o DIR` makes one"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: not a run of this version of hyperslab ({error})") from error


def load_trials(directory: Path) -> list[Trial]:
    """Every finished trial of a run."""
    return [Trial(**line) for line in load_lines(directory / JOURNAL_FILE)]


def load_lines(journal: Path) -> list[dict[str, Any]]:
    """What a journal holds, nothing if there is none; a torn last line, left by a kill, is not one of its lines."""
    if not journal.exists():
        return []
    return [json.loads(line) for line in journal.read_bytes().split(b"\n")[:-1] if line]


def load_run(directory: Path) -> Run:
    """A run with everything that follows from its trials."""
    from hyperslab.bench.conclusions import load as load_conclusions
    from hyperslab.bench.verdicts import judge

    description = load_description(directory)
    trials = load_trials(directory)
    summaries = summarise(trials, point_estimate_of(description.cases))
    verdicts = judge(load_conclusions(), summaries)
    return Run(directory, description, trials, summaries, rank(summaries), verdicts)


def point_estimate_of(cases: Sequence[Case]) -> Callable[[Trial], PointEstimate]:
    """Each trial's own estimate: the published studies' for their method, the median otherwise."""
    import numpy as np

    replays = {case.name: make_replay(case.replay) for case in cases if case.replay}

    def estimate_of(trial: Trial) -> PointEstimate:
        if trial.method != "published":
            return lambda values: float(np.median(values))
        if replays[trial.case].statistic == "min":
            return min
        return lambda values: float(np.mean(values))

    return estimate_of


def write_tables(run: Run) -> list[Path]:
    """trials.parquet and .csv, summary.csv, rankings.json, verdicts.json; returns their paths."""
    directory = run.directory
    replace_with(directory / "trials.csv", _csv(Trial, run.trials))
    replace_with(directory / "summary.csv", _csv(Summary, run.summaries))
    replace_with(directory / "rankings.json", _json(run.rankings))
    replace_with(directory / "verdicts.json", _json(run.verdicts))
    replace_with(directory / "trials.parquet", _parquet(run.trials))
    names = ("trials.parquet", "trials.csv", "summary.csv", "rankings.json", "verdicts.json")
    return [directory / name for name in names]


def _json(rows: Sequence[Any]) -> str:
    return json.dumps([asdict(row) for row in rows], indent=1) + "\n"


def _csv(kind: type[Any], rows: Sequence[Any]) -> str:
    from io import StringIO

    stream = StringIO()
    names = [field.name for field in fields(kind)]
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(_cells(rows, names))
    return stream.getvalue()


def _cells(rows: Sequence[Any], names: list[str]) -> Iterator[list[Any]]:
    """Unknown stays an empty cell, never a zero."""
    for row in rows:
        yield ["" if (value := getattr(row, name)) is None else value for name in names]


def _parquet(trials: Sequence[Trial]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    schema = pa.schema([(field.name, kinds.get(str(field.type).split(" ")[0], pa.string())) for field in fields(Trial)])
    table = pa.Table.from_pylist([trial.to_dict() for trial in trials], schema=schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
