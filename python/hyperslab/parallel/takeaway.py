"""The paper's takeaway (iii): a gain from more processes on one cluster says nothing about another one."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from hyperslab.lab.verdict import Verdict
from hyperslab.parallel.experiments import Experiment, Measured
from hyperslab.parallel.paper_figures import PaperFigure, paper_figures

# Times as fast with the most processes: at least this is a gain, and at most that is none.
GAIN, NONE = 2.0, 1.5


def gains(measured: Sequence[Measured], elsewhere: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """For each panel and library: the time of one process by that of the most processes."""
    by_figure: dict[str, dict[str, float]] = {}
    for figure in paper_figures():
        seconds = {each.experiment: median(each.seconds) for each in (elsewhere if figure.elsewhere else measured)}
        lines = _lines(figure, seconds) if figure.along == "processes" else {}
        if lines:
            by_figure[f"{figure.number}: {figure.title}"] = lines
    return by_figure


def judge_gains(measured: Sequence[Measured], elsewhere: Sequence[Measured]) -> Verdict:
    """The verdict: it holds if a library gains from more processes on one store or file and not on another."""
    by_panel = gains(measured, elsewhere)
    by_library: dict[str, list[float]] = {}
    for lines in by_panel.values():
        for library, gain in lines.items():
            by_library.setdefault(library, []).append(gain)
    verdict = "undecided"
    if any(len(each) > 1 for each in by_library.values()):
        holds = any(max(each) >= GAIN and min(each) <= NONE for each in by_library.values())
        verdict = "holds" if holds else "reverses"
    told = "; ".join(
        f"{panel}: {', '.join(f'{library} {gain:.2g} times as fast' for library, gain in lines.items())}"
        for panel, lines in by_panel.items()
    )
    return Verdict(
        id="S1-iii",
        study="seed1",
        conclusion="a gain from more processes on one machine says nothing about another machine",
        published="faster with more processes on Cori, not on Owens and RI2 (takeaway iii)",
        by_published_method="not measured",
        by_fair_method=told or "not measured",
        verdict=verdict,  # type: ignore[arg-type] # one of three words
    )


def _lines(figure: PaperFigure, seconds: dict[Experiment, float]) -> dict[str, float]:
    by_library: dict[str, dict[int, float]] = {}
    for each in figure.experiments:
        if each in seconds:
            by_library.setdefault(each.library, {})[each.processes] = seconds[each]
    return {
        library: times[1] / times[max(times)] for library, times in by_library.items() if 1 in times and len(times) > 1
    }
