"""A run on disk: the journal, which survives a kill, and the tables that people use.

`trials.jsonl` is the journal. It has one line for each finished trial, synced when it is written. All other files are
generated from it; each is written under another name and then renamed, so that no reader sees half a file.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from hyperslab.arrow import value_column
from hyperslab.bench.budgets import looks_of
from hyperslab.bench.histories.study import HistoryCase
from hyperslab.bench.histories.trials import History, load_histories
from hyperslab.bench.histories.verdicts import judge as judge_histories
from hyperslab.bench.published import make_replay
from hyperslab.bench.rankings import PointEstimate, Ranking, rank, summarise
from hyperslab.bench.recommendations import Recommendation, recommend
from hyperslab.bench.records import Summary, Trial
from hyperslab.bench.study import Case, Scale
from hyperslab.errors import RunError, UsageError
from hyperslab.lab.environment import Environment
from hyperslab.lab.journal import Journal, load_lines
from hyperslab.lab.verdict import Verdict
from hyperslab.replacing import replace_with

MOST_ANSWERS = 10  # that a notebook shows above the table
RUN_FILE, JOURNAL_FILE = "run.json", "trials.jsonl"


@dataclass(frozen=True)
class RunDescription:
    """The request of a run and the machine: run.json."""

    version: str
    started_at: str
    scale: Scale
    methods: tuple[str, ...]
    seed: int  # seed of the order of trials
    cases: tuple[Case, ...]
    environment: Environment
    histories: tuple[HistoryCase, ...] = ()
    scale_notes: dict[str, str] = field(default_factory=dict)  # how a case differs from its full size
    trials: int | None = None  # exactly as many of each cell; None for the scale's own rule
    until_decided: bool = False
    scratch: str | None = None  # directory for measured files; None for that of the run

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for run.json."""
        said = {
            key: [case.model_dump(exclude_none=True, exclude_defaults=True) for case in cases]
            for key, cases in (("cases", self.cases), ("histories", self.histories))
        }
        return {**asdict(self), **said, "environment": self.environment.to_dict()}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> RunDescription:
        """The inverse of `to_dict`."""
        return cls(
            version=given["version"],
            started_at=given["started_at"],
            scale=given["scale"],
            methods=tuple(given["methods"]),
            seed=given["seed"],
            cases=tuple(Case.model_validate(case) for case in given["cases"]),
            environment=Environment(**given["environment"]),
            histories=tuple(HistoryCase.model_validate(case) for case in given.get("histories", [])),
            scale_notes=given.get("scale_notes", {}),
            trials=given.get("trials"),
            until_decided=given.get("until_decided", False),
            scratch=given.get("scratch"),
        )


@dataclass(frozen=True)
class Run:
    """A loaded run: the request, all trials, and the results."""

    directory: Path
    description: RunDescription
    trials: list[Trial]
    summaries: list[Summary]
    rankings: list[Ranking]
    verdicts: list[Verdict]
    histories: list[History] = field(default_factory=list)
    recommendations: list[Recommendation] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<hyperslab.bench run in {str(self.directory)!r}: {len(self.trials)} trials>"

    def _repr_html_(self) -> str:
        from hyperslab.archive.views import display_html

        cells = (
            (one.case, one.method, one.conditions, one.operation, one.shape, one.cache, one.format, seconds)
            for ranking in self.rankings
            for one in ranking.entries
            for seconds in (f"{one.median_seconds:.3g}",)
        )
        titles = ["study", "method", "conditions", "operation", "shape", "cache", "format", "seconds"]
        facts = [f"{self.description.scale}, started {self.description.started_at}"]
        fair = [one for one in self.recommendations if one.method == "fair"] or self.recommendations
        for one in fair[:MOST_ANSWERS]:
            name, conditions = one.recommended
            sure = "not certain" if one.confidence == "open" else one.confidence
            facts.append(f"{one.case}: {name} ({conditions}) leads all operations together ({sure})")
        name = f"{self.directory}: {len(self.trials)} trials"
        return display_html.rows("hyperslab.bench run", name, titles, cells, facts)


def start_run(directory: Path, description: RunDescription) -> None:
    """Create a run in `directory`. Raises UsageError if it already holds a run."""
    if (directory / RUN_FILE).exists() or load_histories(directory):
        raise UsageError(
            f"{directory} already holds a run; continue it with --resume, or choose another directory with -o"
        )
    save_description(directory, description)


def save_description(directory: Path, description: RunDescription) -> None:
    """Write the request of a run, again if it changed."""
    replace_with(directory / RUN_FILE, json.dumps(description.to_dict(), indent=1) + "\n")


def load_description(directory: Path) -> RunDescription:
    """The request of the run in a directory."""
    path = directory / RUN_FILE
    try:
        return RunDescription.from_dict(json.loads(path.read_text()))
    except FileNotFoundError as error:
        if load_histories(directory):
            raise UsageError(
                f"{directory} holds histories from an earlier version of hyperslab, which did not record the "
                "machine: they cannot be continued, so start a new run"
            ) from error
        raise UsageError(
            f"{directory} does not hold a run (there is no {RUN_FILE}); `hyperslab bench STUDY -o DIR` starts one"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is not a run of this version of hyperslab ({error})") from error


def open_journal(directory: Path) -> Journal[Trial]:
    """The journal of a run's trials, by cell."""
    return Journal(directory / JOURNAL_FILE, lambda line: Trial(**line), Trial.to_dict, lambda trial: trial.cell_key)


def load_trials(directory: Path) -> list[Trial]:
    """All finished trials of a run."""
    return [Trial(**line) for line in load_lines(directory / JOURNAL_FILE)]


def load_run(directory: Path) -> Run:
    """Load a run and derive all results from its trials."""
    from hyperslab.bench.conclusions import load as load_conclusions
    from hyperslab.bench.verdicts import judge

    description = load_description(directory)
    trials = load_trials(directory)
    summaries = summarise(trials, point_estimate_of(description.cases))
    histories = load_histories(directory)
    looks = looks_of(description)
    verdicts = judge(load_conclusions(), summaries, looks) + (judge_histories(histories) if histories else [])
    rankings = rank(summaries, looks)
    advice = recommend(rankings, looks)
    return Run(directory, description, trials, summaries, rankings, verdicts, histories, advice)


def point_estimate_of(cases: Sequence[Case]) -> Callable[[Trial], PointEstimate]:
    """A function that returns a trial's point estimate: the published study's own for its method, else the median."""
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
    """Write trials.parquet, trials.csv, summary.csv and the answers as JSON. Returns their paths."""
    directory = run.directory
    replace_with(directory / "trials.csv", _csv(Trial, run.trials))
    replace_with(directory / "summary.csv", _csv(Summary, run.summaries))
    replace_with(directory / "rankings.json", _json(run.rankings))
    replace_with(directory / "recommendations.json", _json(run.recommendations))
    replace_with(directory / "verdicts.json", _json(run.verdicts))
    replace_with(directory / "trials.parquet", _parquet(run.trials))
    names = ("trials.parquet", "trials.csv", "summary.csv", "rankings.json", "recommendations.json", "verdicts.json")
    return [directory / name for name in names]


def _json(rows: Sequence[Any]) -> str:
    return json.dumps([asdict(row) for row in rows], indent=1) + "\n"


def _csv(kind: type[Any], rows: Sequence[Any]) -> str:
    from io import StringIO

    stream = StringIO()
    names = [field.name for field in fields(kind) if field.metadata.get("column", True)]
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(_cells(rows, names))
    return stream.getvalue()


def _cells(rows: Sequence[Any], names: list[str]) -> Iterator[list[Any]]:
    """Table cells. An unknown value is empty, never zero."""
    for row in rows:
        yield ["" if (value := getattr(row, name)) is None else value for name in names]


def _parquet(trials: Sequence[Trial]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, type] = {"int": int, "float": float, "bool": bool}
    rows = [trial.to_dict() for trial in trials]
    named = [(field.name, kinds.get(str(field.type).split(" ")[0], str)) for field in fields(Trial)]
    columns = [value_column([row.get(name) for row in rows], kind) for name, kind in named]
    table = pa.Table.from_arrays(columns, names=[name for name, _ in named])
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
