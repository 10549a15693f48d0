"""`hyperslab evaluate --published` and `--parallel`: how good the predictions for several processes are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from hyperslab.cli.lab import evaluate_on_striped_store
from hyperslab.cli.output import console
from hyperslab.errors import UsageError

Published = Annotated[
    str | None,
    typer.Option("--published", help="Predict a published table of parallel runs instead: cori, or a CSV file."),
]
CalibrateOn = Annotated[
    str | None, typer.Option("--calibrate-on", help="Cells of that table to calibrate on (default: app=ior).")
]
Parallel = Annotated[
    bool, typer.Option("--parallel", help="Ask a parallel profile about experiments on the striped store instead.")
]


def evaluate_processes(
    published: str | None,
    calibrate_on: str | None,
    others: bool,
    profile: Path | None,
    output: Path,
    is_tiny: bool,
    as_json: bool,
) -> None:
    """Judge the parallel model on a published table, or without one on the striped store."""
    if published is None:
        if calibrate_on is not None:
            raise UsageError("--calibrate-on needs --published")
        if others:
            raise UsageError(
                "--parallel can only be combined with --profile, --output and --json: it has experiments of its own"
            )
        evaluate_on_striped_store(profile, output, is_tiny, as_json)
        return
    if others or profile is not None:
        raise UsageError("--published can only be combined with --calibrate-on and --json: it measures nothing here")
    _evaluate_table(published, calibrate_on or "app=ior", as_json)


def _evaluate_table(named: str, conditions: str, as_json: bool) -> None:
    from hyperslab.parallel.published import evaluate_published
    from hyperslab.parallel.published_cells import table_path
    from hyperslab.report.published import print_published

    made = evaluate_published(table_path(named), conditions)
    if as_json:
        typer.echo(json.dumps(made.to_dict(), indent=1))
        return
    print_published(made, console())
