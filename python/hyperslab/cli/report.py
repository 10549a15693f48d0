"""`hyperslab report`: tables, figures and the page, made anew from a run's raw trials."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def report(run: Annotated[Path, typer.Argument(help="Directory of a run.")]) -> None:
    """Make tables, figures and report.html anew from the trials of a run."""
    from hyperslab.bench.session import finish
    from hyperslab.report import make_report
    from hyperslab.report.terminal import print_rankings, print_verdicts

    finished = finish(run)
    page = make_report(finished)
    console = Console()
    print_rankings(finished, console)
    print_verdicts(finished, console)
    console.print(f"report: {page}", soft_wrap=True)
