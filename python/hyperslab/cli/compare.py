"""`hyperslab compare` compares two runs cell by cell."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hyperslab.cli.output import console


def compare_runs(
    run_a: Annotated[Path, typer.Argument(help="Directory of the first run.")],
    run_b: Annotated[Path, typer.Argument(help="Directory of the second run; ratios are second / first.")],
    unlike: Annotated[bool, typer.Option("--unlike", help="Compare even if the machines differ.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two runs of the same studies, and show what became faster or slower and by how much."""
    from hyperslab.bench.compare import compare
    from hyperslab.bench.results import load_run
    from hyperslab.report.terminal import print_comparison

    comparison = compare(load_run(run_a), load_run(run_b), allow_unlike=unlike)
    if as_json:
        typer.echo(json.dumps(asdict(comparison), indent=1, default=str))
    else:
        print_comparison(comparison, console())
