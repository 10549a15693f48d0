"""The output for users: tables, figures and one self-contained page, made from a run. Nothing is measured here."""

from __future__ import annotations

from pathlib import Path

from hyperslab.bench.results import Run


def make_report(run: Run) -> Path:
    """Draw every figure, write report.html into the run's directory, and return the page's path."""
    from hyperslab.report.figures import draw
    from hyperslab.report.page import write_page

    draw(run)
    return write_page(run)
