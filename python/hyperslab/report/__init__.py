"""What people look at: tables, figures and one self-contained page, made from a run and measuring nothing."""

from __future__ import annotations

from pathlib import Path

from hyperslab.bench.results import Run


def make_report(run: Run) -> Path:
    """Draw every figure and write report.html into the run's directory; gives the page's path."""
    from hyperslab.report.figures import draw
    from hyperslab.report.page import write_page

    draw(run)
    return write_page(run)
