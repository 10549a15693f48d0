"""`hyperslab report` makes tables, figures and the report page again from a run's raw trials."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hyperslab.cli.output import console
from hyperslab.needed import need_report


def report(run: Annotated[Path, typer.Argument(help="Directory of a run.")]) -> None:
    """Make tables, figures and report.html again from the trials of a run."""
    need_report("hyperslab report")
    from hyperslab.bench.session import finish
    from hyperslab.report import make_report
    from hyperslab.report.terminal import print_answers, print_verdicts

    finished = finish(run)
    page = make_report(finished)
    out = console()
    print_answers(finished, out)
    print_verdicts(finished, out)
    out.print(f"report: {page}", soft_wrap=True)
