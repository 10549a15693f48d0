"""A log of evaluations on drawn workloads: a CSV file with one row for each seed that was looked at.

A seed whose results somebody has seen is part of the training from then on, even if no cell of it was fitted: whoever
changes the model next knows them. So the log says which seeds are spent, and which commit each score belongs to.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from hyperslab._core import __version__
from hyperslab.errors import UsageError
from hyperslab.lab.environment import Environment
from hyperslab.lab.source import commit_of_source
from hyperslab.replacing import replace_with

SCORES = (
    "workloads",
    "cells",
    "library_accuracy",
    "layout_accuracy",
    "rmse_log10",
    "coverage",
    "zarr_recall",
    "regret_median",
    "regret_p95",
    "regret_worst",
    "ties",
    "seconds",
)
COLUMNS = ("date", "commit", "seed", "asked", "machine", "calibrated", "constant_library", *SCORES)


def append_row(path: Path, generated: dict[str, Any], environment: Environment) -> None:
    """Add the scores of one evaluation. A new log gets a first line with the names of its columns.

    Raises
    ------
    UsageError
        The file is not such a log, or cannot be written.
    """
    try:
        text = path.read_text() if path.exists() else ""
        header = next(csv.reader(io.StringIO(text)), None)
        if header is not None and tuple(header) != COLUMNS:
            raise UsageError(f"{path} is not a log of evaluations: its first line has other columns")
        stream = io.StringIO()
        table = csv.writer(stream, lineterminator="\n")
        if header is None:
            table.writerow(COLUMNS)
        table.writerow([_shown(each) for each in _row(generated, environment)])
        ended = text if not text or text.endswith("\n") else f"{text}\n"
        replace_with(path, (ended + stream.getvalue()).encode())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be written as a log of evaluations: {error}") from error


def check_log(path: Path) -> None:
    """Raise UsageError if scores could not be added later, before anything is measured."""
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"{path} cannot be a log: give --log a file in a directory that exists")
    if path.exists() and path.stat().st_size and path.read_text().splitlines()[0] != ",".join(COLUMNS):
        raise UsageError(f"{path} is not a log of evaluations: its first line has other columns")


def _row(generated: dict[str, Any], environment: Environment) -> list[Any]:
    known = {
        "date": generated["measured_at"],
        "commit": commit_of_source() or f"version {__version__}",
        "seed": generated["seed"],
        "asked": generated["asked"],
        "machine": machine_text(environment),
        "calibrated": generated["profile"]["made_at"],
        "constant_library": max(generated["constant_library"].values(), default=None),
    }
    return [known[name] if name in known else generated[name] for name in COLUMNS]


def machine_text(environment: Environment) -> str:
    """The machine in a few words, without names of hosts or directories."""
    memory = "" if environment.memory_nbytes is None else f", {environment.memory_nbytes / 2**30:.0f} GiB"
    cores = f"{environment.cpu_count} cores"
    return f"{environment.cpu or 'unknown processor'}, {cores}{memory}, {environment.file_system or 'unknown disk'}"


def _shown(value: Any) -> Any:
    return f"{value:.5g}" if isinstance(value, float) else "" if value is None else value
