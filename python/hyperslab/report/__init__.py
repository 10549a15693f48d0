"""The output for users: tables, figures and one self-contained page, made from a run. Nothing is measured here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from hyperslab.bench.results import Run


def make_report(run: Run) -> Path:
    """Draw every figure, write report.html (and histories.md) into the run's directory; return the page's path."""
    from hyperslab.report.figures import draw
    from hyperslab.report.histories import make_page
    from hyperslab.report.page import write_page

    histories = make_page(run.histories, run.verdicts, run.directory) if run.histories else None
    if histories is not None and not run.description.cases:
        return histories
    draw(run)
    return write_page(run)
